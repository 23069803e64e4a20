//! Streams of messages in one direction, at rates that rise.

mod client;
mod receive;
mod send;

pub use client::{StreamClientOptions, run};
pub use receive::{RoundPlan, receive_round};

use hdrhistogram::Histogram;

/// Longest latency that a histogram records, in nanoseconds: a minute. Longer ones count as a minute.
const NS_MAX: u64 = 60_000_000_000;
const DIGITS: u8 = 3;

/// An empty histogram of times.
fn times() -> Histogram<u64> {
    let bounded = Histogram::new_with_bounds(1, NS_MAX, DIGITS);
    // The bounds are constants that the histogram accepts.
    bounded.unwrap_or_else(|_| Histogram::new(1).unwrap_or_else(|_| unreachable!("one digit is accepted")))
}
