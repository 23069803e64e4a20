//! Where a recording is gone on with.

use super::{Block, Recording, file::DataFile, index::FileIndex, recording::list};
use crate::{
    layout::{BlockHead, BlockKind, END_GOES_ON, FILE_NUMBER_MAX, index_name, manifest::StreamEntry},
    record::{
        Disk, Place, RecordError, Storage,
        identity::{Clock, Identity, boot_id},
    },
};
use rustix::fs::OFlags;
use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

/// Where the recording in a folder goes on: in a new file, behind the last record that is proved good. None when the
/// folder holds no recording.
pub fn resume(folder: &Path) -> Result<Option<(Identity, Place)>, RecordError> {
    let listing = list(folder).map_err(|source| RecordError::refused(folder, "read the folder", source))?;
    // A file that is missing, and whose index is left, keeps its number.
    let last_file = listing.data.last().copied().unwrap_or(0).max(listing.last_index);
    if last_file == 0 {
        return Ok(None);
    }
    let other = |why: String| RecordError::Other { path: folder.to_owned(), why };
    // The lock is the caller's, who has written nothing yet.
    let recording = Recording::open_as(folder, false).map_err(|error| other(error.to_string()))?;
    let number = recording.number().ok_or_else(|| other("none of its blocks can be read".to_owned()))?;
    let boot = boot_id();
    let made_in = recording.files().iter().rev().find_map(|file| file.head).map(|head| head.boot_id);
    if let Some(made_in) = made_in
        && made_in != boot
        && made_in != [0; 16]
        && boot != [0; 16]
    {
        return Err(other("the host was restarted since, and its clock began anew".to_owned()));
    }
    let mut streams: Vec<StreamEntry> = recording.streams().to_vec();
    let mut block = 1;
    for (at, file) in recording.files().iter().enumerate().rev() {
        let Ok(data) = recording.open_file(at) else { continue };
        let index = recording.index(at, &data);
        if let Some(head) = index.scan.blocks.last() {
            block = block.max(head.number + 1);
            read_on(&recording, &mut streams, at);
            break;
        }
        block = block.max(file.head.map_or(1, |head| head.first_block));
    }
    if last_file == FILE_NUMBER_MAX {
        return Err(other(format!("its files are numbered up to {last_file}")));
    }
    let identity = Identity { recording: number, boot_id: boot, clock: Clock::System };
    Ok(Some((identity, Place { file: last_file + 1, block, streams })))
}

/// Makes the end of a file name the file that now follows it, so that this one is missed when it is gone. A file without an
/// end is left as it is. The index goes first: it has a copy of the end, and is made again.
pub fn name_next_file(folder: &Path, file: u64, recording: u64) -> Result<(), RecordError> {
    let Ok(data) = DataFile::open_of(folder, file, Some(recording)) else { return Ok(()) };
    let index = FileIndex::load(&data, Some(recording), false);
    let end = index.scan.blocks.last().filter(|last| last.kind == BlockKind::End && !last.goes_on());
    let Some(end) = end else { return Ok(()) };
    let refused = |source| RecordError::refused(&data.path, "name the next file in it", source);
    let index_path = folder.join(index_name(file));
    match fs::remove_file(&index_path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(refused(source)),
        _ => {}
    }
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits()).unwrap_or(0);
    let out = OpenOptions::new().write(true).custom_flags(flags).open(&data.path).map_err(refused)?;
    let named = BlockHead { detail: END_GOES_ON, ..*end };
    out.write_all_at(&named.encode(), end.offset).and_then(|()| out.sync_data()).map_err(refused)?;
    if let Some(bytes) = FileIndex::load(&data, Some(recording), false).encode(&data, recording) {
        // It only saves time.
        Disk.write_whole(&index_path, &bytes).ok();
    }
    Ok(())
}

/// Brings streams up to the last good record of a file. Blocks of files that have an end were read back by nobody, but
/// their heads are right; in one without an end the last block may be torn, so each stream's last one is read.
fn read_on(recording: &Recording, streams: &mut [StreamEntry], at: usize) {
    let Ok(data) = recording.open_file(at) else { return };
    let index = recording.index(at, &data);
    let start = recording.files().get(at).and_then(|file| file.streams.clone()).unwrap_or_default();
    let mut block = Block::default();
    for (number, stream) in (0_u32..).zip(streams) {
        if let Some(entry) = start.get(crate::bytes::narrow(number.into())) {
            (stream.next_sequence, stream.generated_max) = (entry.next_sequence, entry.generated_max);
        }
        for nth in 0..index.blocks_of(number) {
            let Some(head) = index.block_of(number, nth) else { break };
            stream.generated_max = stream.generated_max.max(head.generated_max);
            let is_last = nth + 1 == index.blocks_of(number);
            if head.kind == BlockKind::Gap || !is_last {
                stream.next_sequence = head.last_sequence + 1;
                continue;
            }
            block.load(&data, head);
            while let Some(Ok((record, _))) = block.next(&data) {
                stream.next_sequence = record.sequence + 1;
            }
        }
    }
}
