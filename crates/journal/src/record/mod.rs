//! Recording: a subscriber that never filters, and a thread that writes what it collects.
//!
//! ```text
//! streams --> follower --copies each record into--> block of its stream --full, or old--> writing thread --> file
//!                                                      ^------------- empty blocks ------------/
//! ```
//!
//! The follower calls the kernel only to hand over a whole block, so a slow disk is felt when all blocks are full. Then
//! the rings in shared memory are what is left, and when a writer laps the follower there, what was lost is written
//! down as a gap.

mod buffer;
mod direct;
mod disk;
mod error;
mod files;
mod follow;
pub mod identity;
mod recorder;
mod storage;
#[cfg(test)]
mod tests;

pub use buffer::Buffer;
pub use direct::{DirectDisk, DirectFile};
pub use error::RecordError;
pub use files::{Files, Place, Written};
pub use follow::{Follower, Source};
pub use recorder::{Recorded, Recorder};
pub use storage::{Disk, FolderLock, Storage, StoredFile};

use std::time::Duration;

/// When what was written is forced to the disk. A process that dies loses nothing that it had handed to the kernel
/// whatever the policy is; a power cut loses what was not forced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Never; the kernel writes back on its own, usually within half a minute.
    None,
    /// After the first block that comes when so much time has passed.
    Interval(Duration),
    /// After each block; blocks that come while the disk is waited for share the next wait.
    Each,
}

/// How bytes go to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// Past the page cache, where the file system can. It takes far less CPU time and leaves other programs' pages alone;
    /// the disk must keep up with what comes, but for what the blocks hold.
    Direct,
    /// Through the page cache: bursts beyond the disk's pace go to free memory, until the kernel stops the writer or a
    /// sync waits for all of it.
    Cached,
}

/// How a recording is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a block at most, head included, but for records that are longer.
    pub block_bytes: usize,
    /// Bytes of a file at most; they are reserved when it is made.
    pub file_bytes_max: u64,
    /// When the disk is waited for.
    pub sync: SyncPolicy,
    /// How bytes go there.
    pub writes: Writes,
    /// Blocks between the follower and the writing thread, besides one of each stream: what a stall of the disk fills,
    /// see [`Options::riding_out`]. They are memory of the recorder's, in use from its start.
    pub spare_blocks: usize,
    /// A block that is not full is written when it is this old.
    pub block_age_max: Duration,
}

/// Smallest and largest block.
pub const BLOCK_BYTES: std::ops::RangeInclusive<usize> = 4096..=(16 << 20);

impl Default for Options {
    fn default() -> Self {
        Self {
            block_bytes: 256 << 10,
            file_bytes_max: 1 << 30,
            sync: SyncPolicy::Interval(Duration::from_secs(1)),
            writes: Writes::Direct,
            spare_blocks: 64,
            block_age_max: Duration::from_millis(200),
        }
    }
}

impl Options {
    /// The same with spare blocks for a stall of the disk, when so many bytes a second are recorded: of each record its
    /// payload and 64 more. Stalls in which the follower itself gets no CPU are for the stream's ring, whose capacity
    /// must hold what is published meanwhile; a ring that holds both stalls needs no spare blocks at all.
    #[must_use]
    pub fn riding_out(self, stall: Duration, bytes_per_s: u64) -> Self {
        let bytes = u128::from(bytes_per_s).saturating_mul(stall.as_micros()) / 1_000_000;
        let blocks = usize::try_from(bytes.div_ceil(self.block_bytes.max(1) as u128)).unwrap_or(usize::MAX);
        Self { spare_blocks: blocks, ..self }.bounded()
    }

    /// The same, with every value inside its bounds.
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
