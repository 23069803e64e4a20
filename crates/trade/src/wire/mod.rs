//! The pipeline's ends on the network: the socket of a feed, the connection to an exchange, and a simulated exchange.
//!
//! Packets carry the kernel's stamps, in CLOCK_REALTIME. [`StampClock`] converts them to the pipeline's clock.

mod address;
mod clock;
mod connection;
pub mod exchange;
mod flights;
mod place;
mod receiver;

pub use address::{AddressError, FeedAddress, Format, GatewayAddress};
pub use clock::StampClock;
pub(crate) use connection::{Connection, Trip};
pub(crate) use flights::{Flight, Flights};
pub use receiver::{FeedSocket, Packet, ReceiverOptions};

use thiserror::Error;

/// Why a socket cannot be used.
#[derive(Debug, Error)]
#[error("cannot {doing}: {source}\nhint: {hint}")]
pub struct WireError {
    /// The attempted operation with its object.
    doing: String,
    /// The system's error.
    source: std::io::Error,
    /// What to do.
    hint: &'static str,
}

impl WireError {
    fn new(doing: String, hint: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self { doing, source, hint }
    }
}
