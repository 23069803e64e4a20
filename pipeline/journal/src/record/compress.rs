//! Compression of finished data files ([`crate::read::packed`]).

use super::{FolderLock, RecordError};
use crate::{
    bytes::{narrow, wide},
    layout::{data_name, packed_name},
    read::{
        self,
        file::{DataFile, open_regular},
        packed::{FRAME_BYTES, table_of},
    },
};
use rustix::fs::{Advice, fadvise};
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    num::NonZeroU64,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Sender, channel},
    },
    thread::{self, JoinHandle},
};
use tempfile::NamedTempFile;
use zstd_safe::CCtx;

/// Fastest level: higher ones gain little on records.
const LEVEL: i32 = 1;
/// Priority of the thread: the lowest.
const NICE: i32 = 19;

/// Replaces a finished data file with a compressed one. Leaves it as it is once `stop` is raised.
fn compress_file(path: &Path, packed_path: &Path, stop: &AtomicBool) -> io::Result<()> {
    let (mut file, metadata) = open_regular(path)?;
    let mut out = NamedTempFile::new_in(path.parent().unwrap_or(path))?;
    let mut context = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
    let (mut data, mut packed) = (vec![0; FRAME_BYTES], vec![0; zstd_safe::compress_bound(FRAME_BYTES)]);
    let (mut at, mut sizes) = (0, Vec::new());
    while at < metadata.len() {
        // Relaxed: a lone flag.
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let bytes = narrow(metadata.len() - at).min(FRAME_BYTES);
        let data = data.get_mut(..bytes).unwrap_or_default();
        file.read_exact(data)?;
        // The pages of other programs stay in memory. Nothing is lost without it.
        fadvise(&file, at, NonZeroU64::new(wide(bytes)), Advice::DontNeed).ok();
        let compressed = context.compress(&mut packed[..], data, LEVEL);
        let compressed = compressed.map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))?;
        out.write_all(packed.get(..compressed).unwrap_or_default())?;
        sizes.push([compressed, bytes]);
        at += wide(bytes);
    }
    out.write_all(&table_of(&sizes))?;
    replace(out, packed_path, path)
}

/// Replaces one form of a data file with the other, so that one exists at any time.
fn replace(new: NamedTempFile, path: &Path, old: &Path) -> io::Result<()> {
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    File::open(path.parent().unwrap_or(path))?.sync_all()?;
    fs::remove_file(old)
}

/// Replaces a compressed data file with the original, so that it can be changed. Others stay as they are.
pub fn decompress_file(folder: &Path, number: u64) -> io::Result<()> {
    let (path, packed) = (folder.join(data_name(number)), folder.join(packed_name(number)));
    let Ok(file) = DataFile::open(folder, number) else { return Ok(()) };
    if file.path == path {
        return Ok(());
    }
    let (mut out, mut data, mut at) = (NamedTempFile::new_in(folder)?, vec![0; FRAME_BYTES], 0);
    while at < file.bytes {
        let read = file.read(&mut data, at)?;
        out.write_all(data.get(..read).unwrap_or_default())?;
        at += wide(read);
    }
    replace(out, &path, &packed)
}

/// Compresses the finished files of a recording, until `stop` is raised.
pub fn compress_all(folder: &Path, stop: &AtomicBool) -> Result<(), RecordError> {
    let lock = FolderLock::take(folder).map_err(RecordError::refused(folder, "lock directory"))?;
    let _lock = lock.ok_or_else(|| RecordError::at(folder, "another process is recording there"))?;
    compress_before(folder, u64::MAX, stop)
}

/// Compresses the files before this one that are not, until `stop` is raised.
fn compress_before(folder: &Path, before: u64, stop: &AtomicBool) -> Result<(), RecordError> {
    let files = read::list(folder).map_err(RecordError::refused(folder, "read directory"))?.data;
    for number in files.into_iter().take_while(|number| *number < before) {
        let path = folder.join(data_name(number));
        match compress_file(&path, &folder.join(packed_name(number)), stop) {
            // Compressed already, or deleted before its turn.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            compressed => compressed.map_err(RecordError::refused(&path, "compress"))?,
        }
    }
    Ok(())
}

/// A thread that compresses files while others are written.
pub struct Compressor {
    before: Sender<u64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), RecordError>>,
}

impl Compressor {
    pub fn start(folder: &Path) -> Result<Self, RecordError> {
        let (before, taken) = channel();
        let (stop, of) = (Arc::<AtomicBool>::default(), folder.to_owned());
        let stopped = Arc::clone(&stop);
        let run = move || {
            // Of this thread alone. Without it, compression only takes more from others.
            rustix::process::nice(NICE).ok();
            taken.into_iter().try_for_each(|before| compress_before(&of, before, &stopped))
        };
        let thread = thread::Builder::new().name("lowlat-compress".to_owned()).spawn(run);
        let thread = thread.map_err(RecordError::refused(folder, "start the compressing thread for"))?;
        Ok(Self { before, stop, thread })
    }

    /// Compresses the files before this one.
    pub fn take(&self, before: u64) {
        // An error that ended the thread is returned in the end.
        self.before.send(before).ok();
    }

    /// Ends it; a file that it is at stays as it was.
    pub fn stop(self) -> Result<(), RecordError> {
        // Relaxed: a lone flag.
        self.stop.store(true, Ordering::Relaxed);
        drop(self.before);
        self.thread.join().unwrap_or(Ok(()))
    }
}
