//! Carries streams of one host's trading run into another's.
//!
//! ```text
//! run on host A --node--> sender ==frames over a carrier==> receiver --node each stream--> run on host B
//! ```
//!
//! * [`frame`] is the wire format: an unchanged record, with its stream, run, epoch and sequence.
//! * [`accounts`] knows the next number, losses, and obsolete senders. Pure.
//! * [`mark`] is how readers on host B learn of losses, in the stream itself.
//! * [`sender`] and [`receiver`] connect these to a node. They are independent of the transport, a [`Carrier`].
//!
//! With the feature `aeron` the carrier is Aeron, and the program `lowlat-bridge` is built. docs/bridge.md
//! explains when to use it.
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

use lowlat_node::Refusal;

/// Result of offering a frame once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offered {
    /// The carrier accepted the frame.
    Taken,
    /// The carrier has no room now: the receiver or the network is slower than the stream.
    BackPressure,
    NotConnected,
    /// Longer than a message of this carrier.
    TooLong,
    /// The carrier has ended; with its error text.
    Closed(String),
}

/// Carries frames to the other host, in order, each at most once.
pub trait Carrier {
    /// Offers a frame, without waiting.
    fn offer(&mut self, frame: &[u8]) -> Offered;

    /// Returns true if a receiver is connected.
    fn is_connected(&self) -> bool;
}

/// The refusal of a carrier that has ended, with these words.
fn closed(words: &str) -> Refusal {
    Refusal::new(format!("the carrier has ended: {words}\nhint: check its driver, then restart"))
}
