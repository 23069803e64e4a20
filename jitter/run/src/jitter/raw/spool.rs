//! Spools one CPU's interruptions to disk.

use std::{
    fs::File,
    io::{self, ErrorKind, Write},
    os::unix::fs::MetadataExt,
};

/// Bytes per interruption: the counter before it and its length in ticks.
pub const RECORD_BYTES: usize = 16;
/// Interruptions per write: 16 KiB.
const BUFFERED: usize = 1_024;

pub trait Sink: Write {
    /// True if its file was removed, so that the data would be lost.
    fn is_removed(&self) -> bool;
}

impl Sink for File {
    fn is_removed(&self) -> bool {
        self.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }
}

/// Writes interruptions in blocks until an error occurs; then counts them.
#[derive(Debug)]
pub struct Spool<S> {
    pub sink: S,
    buffer: Vec<u8>,
    /// Interruptions that are completely on disk.
    pub count: u64,
    /// Total of their lengths, in ticks.
    pub ticks_total: u64,
    /// Interruptions that were not written.
    pub lost_count: u64,
    /// Reason why writing stopped; `None` if it did not.
    pub stopped: Option<String>,
}

impl<S: Sink> Spool<S> {
    /// An empty spool with its buffer allocated.
    pub fn new(sink: S) -> Self {
        let mut buffer = vec![1; BUFFERED * RECORD_BYTES];
        buffer.clear();
        Self { sink, buffer, count: 0, ticks_total: 0, lost_count: 0, stopped: None }
    }

    pub fn push(&mut self, before: u64, length: u64) {
        if self.stopped.is_some() {
            self.lost_count += 1;
            return;
        }
        self.buffer.extend_from_slice(&before.to_le_bytes());
        self.buffer.extend_from_slice(&length.to_le_bytes());
        if self.buffer.len() >= BUFFERED * RECORD_BYTES {
            self.write_out();
        }
    }

    /// Writes the buffer. On failure, incomplete interruptions are lost and nothing more is written.
    pub fn write_out(&mut self) {
        if self.stopped.is_some() || self.buffer.is_empty() {
            return;
        }
        let (bytes, result) = write_all_counted(&mut self.sink, &self.buffer);
        let (whole, _) = self.buffer.as_chunks::<RECORD_BYTES>();
        let written = bytes / RECORD_BYTES;
        self.count += written as u64;
        self.ticks_total += whole.iter().take(written).map(|record| decode(record).1).sum::<u64>();
        self.lost_count += (whole.len() - written) as u64;
        self.buffer.clear();
        self.stopped = match result {
            Err(error) => Some(error.to_string()),
            Ok(()) if self.sink.is_removed() => Some("the file was removed".to_owned()),
            Ok(()) => None,
        };
    }
}

/// The counter before an interruption and its length in ticks.
pub fn decode(record: &[u8; RECORD_BYTES]) -> (u64, u64) {
    // Both halves exist: the array is twice as long as a number.
    let number = |half: Option<&[u8; 8]>| half.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    (number(record.first_chunk()), number(record.last_chunk()))
}

/// Like `write_all`, but returns the number of bytes written before a failure.
fn write_all_counted(sink: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match sink.write(rest) {
            Ok(0) => return (done, Err(ErrorKind::WriteZero.into())),
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (done, Err(error)),
        }
    }
    (done, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for this many bytes.
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
        is_removed: bool,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room - self.bytes.len());
            if count == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Disk {
        fn is_removed(&self) -> bool {
            self.is_removed
        }
    }

    fn spool(room: usize, count: u64) -> Spool<Disk> {
        let mut spool = Spool::new(Disk { bytes: Vec::new(), room, is_removed: false });
        (0..count).for_each(|n| spool.push(1_000 + n, n));
        spool.write_out();
        spool
    }

    fn decoded(spool: &Spool<Disk>) -> Vec<(u64, u64)> {
        spool.sink.bytes.as_chunks::<RECORD_BYTES>().0.iter().map(decode).collect()
    }

    #[test]
    fn everything_is_written_in_blocks() {
        let count = 3 * BUFFERED as u64 + 5;
        let spool = spool(usize::MAX, count);
        assert_eq!(decoded(&spool), (0..count).map(|n| (1_000 + n, n)).collect::<Vec<_>>());
        assert_eq!((spool.count, spool.ticks_total), (count, count * (count - 1) / 2));
        assert_eq!((spool.lost_count, spool.stopped.as_deref()), (0, None));
        assert_eq!(spool.buffer.capacity(), BUFFERED * RECORD_BYTES);
    }

    #[test]
    fn a_full_disk_keeps_complete_interruptions_and_counts_the_others() {
        // Room for one block, three complete interruptions and part of one.
        let room = (BUFFERED + 3) * RECORD_BYTES + 7;
        let spool = spool(room, 3 * BUFFERED as u64);
        let kept = BUFFERED as u64 + 3;
        assert_eq!((spool.count, spool.lost_count), (kept, 3 * BUFFERED as u64 - kept));
        assert_eq!(spool.ticks_total, kept * (kept - 1) / 2);
        assert!(
            spool.stopped.as_deref().is_some_and(|why| why.contains("storage")),
            "{:?}",
            spool.stopped.as_deref()
        );
        assert_eq!(decoded(&spool).len() as u64, kept);
    }

    #[test]
    fn a_removed_file_is_not_written_forever() {
        let mut spool = Spool::new(Disk { bytes: Vec::new(), room: usize::MAX, is_removed: true });
        (0..2 * BUFFERED as u64).for_each(|n| spool.push(n, n));
        assert_eq!((spool.count, spool.lost_count), (BUFFERED as u64, BUFFERED as u64));
        assert_eq!(spool.stopped.as_deref(), Some("the file was removed"));
    }
}
