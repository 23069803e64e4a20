//! Streams of `lowlat-ipc` on disk. A recorder is an additional subscriber; what it writes outlives the shared
//! memory.
//!
//! ```text
//! streams in shared memory --> record::Follower --> directory of data files --> read::{StreamReader, Merge, Tail}
//!                                                                           --> replay, diff, export
//! ```
//!
//! * A *recording* is a directory. [`layout`] documents its bytes; readers treat each of them as untrusted.
//! * Records that were not recorded are documented by a gap with their sequences and the reason.
//! * Damage is reported with file and offset, and costs only what checksums cannot prove intact.
#![forbid(unsafe_code)]

mod bytes;
pub mod damage;
#[cfg(feature = "diff")]
pub mod diff;
#[cfg(feature = "export")]
pub mod export;
pub mod layout;
pub mod read;
pub mod record;
pub mod replay;
#[cfg(test)]
mod testing;
