//! The pipeline's ends on the network: the socket of a feed, the connection to an exchange, and a simulated exchange.
//!
//! Packets carry the kernel's stamps, in CLOCK_REALTIME. `WireClock` converts them to the pipeline's clock.

mod address;
mod clock;
mod connection;
pub mod exchange;
mod flights;
mod receiver;

pub use address::{FeedAddress, Format, GatewayAddress};
pub(crate) use clock::WireClock;
pub(crate) use connection::{Connection, Trip};
pub(crate) use flights::{Flight, Flights};
pub use receiver::{FeedSocket, Packet, ReceiverOptions};

use lowlat_feed::{
    gateway::{Kind, Message},
    quotes::FeedQuote,
};
use lowlat_node::{
    Refusal,
    records::{Origin, Quote},
};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs;

/// The refusal for an error of a socket; `doing` is the attempted operation with its object.
fn refused(doing: String, hint: &'static str) -> impl FnOnce(std::io::Error) -> Refusal {
    move |error| Refusal::new(format!("cannot {doing}: {error}\nhint: {hint}"))
}

/// A number of this boot of this machine, the same in all its namespaces; 0 if it is unknown.
fn machine() -> u64 {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

/// The CPU to which this thread is pinned, if it is only one.
fn cpu() -> Option<u32> {
    let cpus = sched_getaffinity(None).ok().filter(|cpus| cpus.count() == 1)?;
    (0..CpuSet::MAX_CPU).find(|cpu| cpus.is_set(*cpu)).and_then(|cpu| u32::try_from(cpu).ok())
}

/// The answer to a logon: machine and CPU of this end.
fn logged_on() -> Message {
    let quantity = cpu().map_or(0, |cpu| cpu + 1);
    Message { id: machine(), quantity, ..Message::of(Kind::LoggedOn) }
}

/// The quote of a feed, due at that time.
#[inline]
pub(crate) fn quote_of(quote: &FeedQuote, scheduled_ns: u64) -> Quote {
    let FeedQuote { bid, ask, last, bid_size, ask_size, .. } = *quote;
    Quote { scheduled_ns, bid, ask, last, bid_size, ask_size, origin: Origin::default() }
}

/// The same quote in a feed.
pub(crate) fn in_feed(quote: &Quote, instrument: u32) -> FeedQuote {
    let Quote { bid, ask, last, bid_size, ask_size, .. } = *quote;
    FeedQuote { instrument, bid_size, ask_size, bid, ask, last }
}
