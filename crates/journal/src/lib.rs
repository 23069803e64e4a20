//! Streams of `lowlat-ipc` on disk. A recorder is one more subscriber; what it writes outlives the memory.
//!
//! ```text
//! streams in shared memory --> record::Follower --> folder of data files --> read::{StreamReader, Merge, Tail}
//!                                                                        --> replay, diff, export
//! ```
//!
//! * A *recording* is a folder. Its bytes are described in [`layout`]; each is taken for hostile when it is read.
//! * What was not recorded stands in the recording as a gap with its sequences and the reason.
//! * What is damaged is told with file and offset, and costs as little as its checksums can prove.
#![forbid(unsafe_code)]

mod bytes;
pub mod damage;
pub mod diff;
pub mod export;
pub mod layout;
pub mod read;
pub mod record;
pub mod replay;
#[cfg(test)]
mod testing;
