//! One data file and its blocks.

use super::packed::PackedFile;
use crate::{
    bytes::{is_zero, narrow, wide},
    damage::{DamagedPlace, Problem},
    layout::{
        self, BLOCK_ALIGN, BLOCK_HEAD_BYTES, BlockHead, BlockKind, FILE_HEAD_BYTES, FileHead, HeadProblem,
    },
};
use rustix::fs::OFlags;
use std::{
    fs::{self, File, FileType, Metadata, OpenOptions},
    io,
    ops::Range,
    os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

/// [`BLOCK_ALIGN`] as a size in memory.
const LINE_BYTES: usize = 64;
const _: () = assert!(LINE_BYTES as u64 == BLOCK_ALIGN);
/// Bytes scanned at once for the next block.
const SEARCH_BYTES: usize = 256 << 10;
/// Largest number of consecutive missing files that are listed.
const NAMED_MAX: usize = 16;

/// A data file, open for reading.
#[derive(Debug)]
pub struct DataFile {
    pub path: PathBuf,
    /// Its number, from its name.
    pub number: u64,
    /// Its length when it was last checked.
    pub bytes: u64,
    /// Its head, or what is wrong with it.
    pub head: Result<FileHead, HeadProblem>,
    source: Source,
}

/// Where its bytes come from.
#[derive(Debug)]
enum Source {
    Plain(File),
    Packed(Arc<PackedFile>),
}

impl Source {
    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::Plain(file) => read_up_to(file, bytes, offset),
            Self::Packed(frames) => frames.read(bytes, offset),
        }
    }
}

impl DataFile {
    /// Opens the file with this number.
    pub fn open(folder: &Path, number: u64) -> Result<Self, DamagedPlace> {
        // In this order: a file that is compressed meanwhile is found.
        let forms = [layout::data_name(number), layout::packed_name(number)].map(|name| folder.join(name));
        let [path, packed] = forms;
        match Self::open_as(path, number, false) {
            Err(DamagedPlace { problem: Problem::FileMissing, .. }) if is_there(&packed) => {
                Self::open_as(packed, number, true)
            }
            opened => opened,
        }
    }

    fn open_as(path: PathBuf, number: u64, is_packed: bool) -> Result<Self, DamagedPlace> {
        let unreadable = |error: io::Error| {
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            let problem = if is_missing { Problem::FileMissing } else { Problem::unreadable(&error) };
            DamagedPlace { file: path.clone(), offset: 0, bytes: 0, problem }
        };
        let (file, metadata) = open_regular(&path).map_err(unreadable)?;
        let (source, bytes) = if is_packed {
            let frames = PackedFile::open(file, metadata.len()).map_err(unreadable)?;
            let bytes = frames.bytes();
            (Source::Packed(Arc::new(frames)), bytes)
        } else {
            (Source::Plain(file), metadata.len())
        };
        let mut head = vec![0; FILE_HEAD_BYTES];
        let read = source.read(&mut head, 0).map_err(unreadable)?;
        head.truncate(read);
        Ok(Self { head: FileHead::decode(&head), path, number, bytes, source })
    }

    /// Uses what another reader has decompressed, or lets others use this.
    pub fn share(&mut self, shared: &mut Weak<PackedFile>) {
        let Source::Packed(frames) = &mut self.source else { return };
        match shared.upgrade() {
            Some(others) => {
                others.share();
                *frames = others;
            }
            None => *shared = Arc::downgrade(frames),
        }
    }

    /// Decompresses in a second thread what will be read next.
    pub fn read_ahead(&self) {
        if let Source::Packed(frames) = &self.source {
            frames.read_ahead();
        }
    }

    /// The same for a file that must belong to this recording, as far as its head shows.
    pub fn open_of(folder: &Path, number: u64, recording: Option<u64>) -> Result<Self, DamagedPlace> {
        let file = Self::open(folder, number)?;
        let foreign = file.head.as_ref().ok().and_then(|head| {
            let of_file = (head.file, number);
            let of_recording = (head.recording, recording.unwrap_or(head.recording));
            [of_file, of_recording].into_iter().find(|(found, expected)| found != expected)
        });
        match foreign {
            Some((found, expected)) => Err(file.damage(0, file.bytes, Problem::Foreign { found, expected })),
            None => Ok(file),
        }
    }

    /// Damage of the head; `None` if it is valid.
    pub fn head_damage(&self) -> Option<DamagedPlace> {
        let why = self.head.as_ref().err()?.clone();
        let bytes = wide(FILE_HEAD_BYTES).min(self.bytes);
        Some(self.damage(0, bytes, Problem::FileHead { why }))
    }

    /// A damaged place of this file.
    pub fn damage(&self, offset: u64, bytes: u64, problem: Problem) -> DamagedPlace {
        DamagedPlace { file: self.path.clone(), offset, bytes, problem }
    }

    /// Updates the length, for a file that grows.
    pub fn refresh(&mut self) {
        if let Source::Plain(file) = &self.source {
            self.bytes = file.metadata().map_or(self.bytes, |metadata| metadata.len());
        }
    }

    /// Reads up to this many bytes; fewer only at the end of the file.
    pub fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.source.read(bytes, offset)
    }

    /// The head of the block at this offset, if there is one of this file and recording.
    pub fn block_at(&self, offset: u64, recording: Option<u64>) -> io::Result<Option<BlockHead>> {
        let mut bytes = [0; BLOCK_HEAD_BYTES];
        let read = self.read(&mut bytes, offset)?;
        Ok(self.accept(bytes.get(..read).unwrap_or_default(), offset, recording))
    }

    fn accept(&self, bytes: &[u8], offset: u64, recording: Option<u64>) -> Option<BlockHead> {
        BlockHead::decode(bytes).filter(|head| {
            head.file == self.number
                && head.offset == offset
                && recording.is_none_or(|recording| head.recording == recording)
        })
    }

    /// Returns true if only zeros follow an offset, as far as one read shows.
    fn is_unwritten(&self, offset: u64) -> bool {
        let mut line = [0; LINE_BYTES];
        let is_zero_up_to = |bytes: &mut [u8]| {
            self.read(bytes, offset).is_ok_and(|read| is_zero(bytes.get(..read).unwrap_or_default()))
        };
        is_zero_up_to(&mut line) && is_zero_up_to(&mut vec![0; SEARCH_BYTES])
    }

    /// The next block at or after an offset, and the end of nonzero bytes before it.
    pub fn find_block(&self, from: u64, recording: Option<u64>) -> io::Result<Found> {
        let mut buffer = vec![0; SEARCH_BYTES + BLOCK_HEAD_BYTES];
        let (mut at, mut used) = (from.next_multiple_of(BLOCK_ALIGN), from);
        // Nothing can start before the alignment.
        let mut lead = [0; LINE_BYTES];
        let lead_bytes = narrow(at - from).min(lead.len());
        let read = self.read(lead.get_mut(..lead_bytes).unwrap_or_default(), from)?;
        if !is_zero(lead.get(..read).unwrap_or_default()) {
            used = at;
        }
        loop {
            let read = self.read(&mut buffer, at)?;
            let chunk = buffer.get(..read).unwrap_or_default();
            // Reserved space may be large.
            let lines = if is_zero(chunk) { 0 } else { SEARCH_BYTES / LINE_BYTES };
            for (place, line) in (at..).step_by(LINE_BYTES).zip(chunk.chunks(LINE_BYTES)).take(lines) {
                if is_zero(line) {
                    continue;
                }
                if BlockHead::is_begun(line) {
                    let rest = chunk.get(narrow(place - at)..).unwrap_or_default();
                    if let Some(head) = self.accept(rest, place, recording) {
                        return Ok(Found { head: Some(head), used });
                    }
                }
                used = place + wide(line.len());
            }
            if read <= SEARCH_BYTES {
                return Ok(Found { head: None, used });
            }
            at += wide(SEARCH_BYTES);
        }
    }
}

/// Result of a search for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The next block; `None` if none follows.
    pub head: Option<BlockHead>,
    /// One past the last nonzero byte before it; the start of the search if all are zero.
    pub used: u64,
}

/// Opens a regular file for reading. Never blocks and follows no link: a FIFO, socket, device or directory with
/// the name of a data file is a specific error.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    // Checked before opening as well, because opening a device can have effects.
    check_regular(fs::symlink_metadata(path)?.file_type())?;
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    check_regular(metadata.file_type())?;
    Ok((file, metadata))
}

fn check_regular(kind: FileType) -> io::Result<()> {
    let found = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_symlink() => "a symbolic link",
        _ if kind.is_dir() => "a directory",
        _ if kind.is_fifo() => "a FIFO",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(io::Error::other(format!("found {found}, expected a regular file")))
}

fn read_up_to(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<usize> {
    let mut total = 0;
    while !bytes.is_empty() {
        match file.read_at(bytes, offset) {
            Ok(0) => break,
            Ok(read) => {
                total += read;
                offset += wide(read);
                bytes = bytes.get_mut(read..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEnd {
    /// As intended by its writer; with `goes_on` if another file follows.
    Ended { goes_on: bool },
    /// Without an end: the next block would start here.
    Open {
        /// Offset of the next block.
        at: u64,
    },
}

/// Everything that the heads of a file show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    pub blocks: Vec<BlockHead>,
    /// Bytes that are not blocks.
    pub damages: Vec<DamagedPlace>,
    pub end: FileEnd,
}

/// Reads a file from head to head, and skips from damage to the next block. In a growing file, reserved space
/// is not scanned: reading it would fill the page cache with zeros.
pub fn scan(file: &DataFile, recording: Option<u64>, is_growing: bool) -> Scan {
    let mut at = wide(FILE_HEAD_BYTES);
    let mut scan = Scan { blocks: Vec::new(), damages: Vec::new(), end: FileEnd::Open { at } };
    scan.damages.extend(file.head_damage());
    if matches!(file.head, Err(HeadProblem::Version { .. })) {
        return scan;
    }
    while at < file.bytes {
        if is_growing && file.is_unwritten(at) {
            break;
        }
        let found = file.block_at(at, recording).and_then(|head| match head {
            Some(_) => Ok(Found { head, used: at }),
            None => file.find_block(at, recording),
        });
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                scan.damages.push(file.damage(at, file.bytes - at, Problem::unreadable(&error)));
                break;
            }
        };
        let next = found.head.map_or(found.used, |head| head.offset);
        if next > at {
            scan.damages.push(file.damage(at, next - at, Problem::NoBlock));
        }
        let Some(head) = found.head else {
            scan.end = FileEnd::Open { at };
            return scan;
        };
        at = head.offset.saturating_add(head.bytes());
        scan.end = FileEnd::Open { at };
        scan.blocks.push(head);
        if head.kind == BlockKind::End {
            scan.end = FileEnd::Ended { goes_on: head.goes_on() };
            scan.damages.extend(behind_end(file, at, recording));
            return scan;
        }
    }
    scan
}

/// Checks what follows the end: possibly space that was not released, but nothing else.
pub fn behind_end(file: &DataFile, at: u64, recording: Option<u64>) -> Option<DamagedPlace> {
    let found = file.find_block(at, recording).ok()?;
    let to = found.head.map_or(found.used, |head| head.offset + head.bytes());
    (to > at).then(|| file.damage(at, to - at, Problem::NoBlock))
}

/// Returns true if a data file exists in any form, as far as this user can see.
pub fn is_stored(folder: &Path, number: u64) -> bool {
    [layout::data_name(number), layout::packed_name(number)].iter().any(|name| is_there(&folder.join(name)))
}

/// Returns true if a file exists, as far as this user can see.
pub fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Reports the files with these numbers, up to a limit.
pub fn missing(folder: &Path, numbers: Range<u64>) -> impl Iterator<Item = DamagedPlace> {
    numbers.take(NAMED_MAX).map(|number| DamagedPlace {
        file: folder.join(layout::data_name(number)),
        offset: 0,
        bytes: 0,
        problem: Problem::FileMissing,
    })
}
