//! Recording: a subscriber without filters, and a thread that writes what it collects.
//!
//! ```text
//! streams --> follower --copies each record into--> block of its stream --full, or old--> writing thread --> file
//!                                                      ^------------- empty blocks ------------/
//! ```
//!
//! The follower makes a system call only to hand over a whole block, so a slow disk has no effect until all
//! blocks are full. Then only the rings in shared memory are left; if a writer laps the follower there, the
//! loss is recorded as a gap.

mod buffer;
mod compress;
#[cfg(test)]
mod compress_tests;
mod direct;
mod disk;
mod files;
mod follow;
pub mod identity;
#[cfg(test)]
mod keep_tests;
mod recorder;
mod storage;
#[cfg(test)]
mod tests;

pub use buffer::BlockBuffer;
pub use compress::compress_all;
pub(crate) use compress::decompress_file;
pub use direct::{DirectDisk, DirectFile};
pub use files::{Files, Place, Written};
pub use follow::{Follower, Source};
pub use recorder::{Recorded, Recorder};
pub use storage::{CachedDisk, FolderLock, Storage, StoredFile};

use std::{io, path::Path, time::Duration};
use thiserror::Error;

/// When data is synced to the disk. With any policy, a process that dies loses nothing that it handed to the
/// kernel; a power cut loses what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Never; the kernel writes back by itself, usually within half a minute.
    None,
    /// With the first block after this interval.
    Interval(Duration),
    /// After each block; blocks that arrive during a sync share the next one.
    Each,
}

/// Method of writing to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMethod {
    /// Past the page cache, where the file system supports it. This takes far less CPU time and evicts no pages
    /// of other programs; apart from what the blocks hold, the disk must keep up.
    Direct,
    /// Through the page cache: bursts go to free memory, until the kernel throttles the writer or a sync waits
    /// for all of it.
    Cached,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Source of the times in the heads of a new recording's files.
    pub clock: identity::Clock,
    /// Largest block in bytes, including its head, except for longer records.
    pub block_bytes: usize,
    /// Largest file in bytes; its space is reserved at creation.
    pub file_bytes_max: u64,
    pub sync: SyncPolicy,
    pub writes: WriteMethod,
    /// Blocks between the follower and the writing thread, in addition to one per stream: they absorb a stall
    /// of the disk, see [`Options::riding_out`]. The recorder allocates them at its start.
    pub spare_blocks: usize,
    /// Age at which a partial block is written.
    pub block_age_max: Duration,
    /// Interval of the time of day, counted from 1970 in UTC, with a new file for each; `None`: files are as large as
    /// they may be.
    pub roll: Option<Duration>,
    pub keep: Keep,
    /// Whether each file is compressed once the next one has begun ([`crate::read::packed`]).
    pub is_compressed: bool,
}

/// Which files stay when a new one begins. The oldest ones are deleted first, and never the one being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    /// Time after its last record at which a file is deleted.
    pub age_max: Option<Duration>,
    /// Largest total of the data files in bytes, with the space reserved for the new one.
    pub bytes_max: Option<u64>,
}

/// Smallest and largest size of a block, in bytes.
pub const BLOCK_BYTES: std::ops::RangeInclusive<usize> = 4096..=(16 << 20);

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: identity::Clock::System,
            block_bytes: 256 << 10,
            file_bytes_max: 1 << 30,
            sync: SyncPolicy::Interval(Duration::from_secs(1)),
            writes: WriteMethod::Direct,
            spare_blocks: 64,
            block_age_max: Duration::from_millis(200),
            roll: None,
            keep: Keep::default(),
            is_compressed: false,
        }
    }
}

impl Options {
    /// The same with spare blocks for a stall of the disk, at this rate of bytes per second, counting 64 bytes
    /// per record besides its payload. Stalls in which the follower itself gets no CPU must be absorbed by the
    /// stream's ring, whose capacity must hold what is published meanwhile; if a ring covers both stalls, no
    /// spare blocks are needed.
    #[must_use]
    pub fn riding_out(self, stall: Duration, bytes_per_s: u64) -> Self {
        let bytes = u128::from(bytes_per_s).saturating_mul(stall.as_micros()) / 1_000_000;
        let blocks = usize::try_from(bytes.div_ceil(self.block_bytes.max(1) as u128)).unwrap_or(usize::MAX);
        Self { spare_blocks: blocks, ..self }.bounded()
    }

    /// The same, with every value clamped to its limits.
    #[must_use]
    pub fn bounded(self) -> Self {
        let block_bytes = self.block_bytes.clamp(*BLOCK_BYTES.start(), *BLOCK_BYTES.end());
        let file_bytes_min = 4 * crate::bytes::wide(block_bytes);
        Self {
            block_bytes: block_bytes.next_multiple_of(64),
            file_bytes_max: self.file_bytes_max.clamp(file_bytes_min, 64 << 30),
            spare_blocks: self.spare_blocks.clamp(1, 4096),
            ..self
        }
    }
}

/// Error that prevents a recording from being started or continued. What was written before stays readable.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct RecordError(pub(crate) String);

impl RecordError {
    /// A system error; `doing` is the attempted operation, a verb that precedes the path.
    pub(crate) fn refused(path: &Path, doing: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self(format!("cannot {doing} {}: {source}{}", path.display(), advice(&source)))
    }

    /// Why nothing can be recorded into a directory.
    fn at(folder: &Path, why: &str) -> Self {
        Self(format!("cannot record into {}: {why}", folder.display()))
    }

    /// The writing thread has already ended; the first error was reported then.
    fn ended(folder: &Path) -> Self {
        Self::at(folder, "the recording has already ended with an error")
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "\nhint: free space or use another disk; everything recorded so far is intact"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "\nhint: name a directory that this user can write to"
        }
        io::ErrorKind::NotFound => "\nhint: create its parent directory first",
        _ => "\nhint: check the kernel's log for disk errors",
    }
}
