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
    /// After each block.
    Each,
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
    /// Blocks between the follower and the writing thread, besides one of each stream: what a stall of the disk fills.
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
            spare_blocks: 64,
            block_age_max: Duration::from_millis(200),
        }
    }
}

impl Options {
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
