//! Streams of one host's trading run in another's.
//!
//! ```text
//! run on host A --node--> sender ==frames over a carrier==> receiver --node each stream--> run on host B
//! ```
//!
//! * [`frame`] is what goes over the wire: a record as it was written, with its stream, run, epoch and sequence.
//! * [`accounts`] knows which number comes next, what is lost, and who is too old to be heard. Pure.
//! * [`mark`] is what readers on host B are told of it, in the stream itself.
//! * [`sender`] and [`receiver`] are those two beside a node. They know no transport, but a [`Carrier`].
//!
//! With feature `aeron` the carrier is Aeron, and there is the program `lowlat-bridge`. docs/bridge.md tells when to use it.
#![forbid(unsafe_code)]

pub mod accounts;
#[cfg(feature = "aeron")]
pub mod aeron;
pub mod frame;
mod hop;
pub mod mark;
pub mod receiver;
pub mod sender;

pub use hop::{Hop, HopFigures};

/// What became of a frame that was offered once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offered {
    /// The carrier has it.
    Taken,
    /// It has no room now: the other side or the network is slower than the stream.
    BackPressure,
    /// Nobody listens.
    NotConnected,
    /// More bytes than a message of this carrier holds.
    TooLong,
    /// It takes nothing any more; in its words.
    Closed(String),
}

/// What carries frames to the other host, in order, each once or not at all.
pub trait Carrier {
    /// Offers a frame, and does not wait.
    fn offer(&mut self, frame: &[u8]) -> Offered;

    /// Whether somebody listens.
    fn is_connected(&self) -> bool;
}
