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

pub use address::{FeedAddress, Format, GatewayAddress};
pub use clock::StampClock;
pub(crate) use connection::{Connection, Trip};
pub(crate) use flights::{Flight, Flights};
pub use receiver::{FeedSocket, Packet, ReceiverOptions};

use crate::refusal::Refusal;

/// The refusal for an error of a socket; `doing` is the attempted operation with its object.
fn refused(doing: String, hint: &'static str) -> impl FnOnce(std::io::Error) -> Refusal {
    move |error| Refusal::new(format!("cannot {doing}: {error}\nhint: {hint}"))
}
