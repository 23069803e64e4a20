//! The order gateway's logic: a simulated exchange that answers each order exactly once, also over its own death.
//!
//! ```text
//! order -> begin: decide, write the decision into the ledger -> publish its answers -> finish: the ledger forgets it
//! ```
//!
//! A process that comes after one that died in the middle finds the decision in the [`ledger`]. How many of its answers
//! were published it knows from the stream, whose sequences go on: it publishes the rest and finishes. An order that is
//! read again is known by its sequence in its stream, and passed over.

mod exchange;
pub mod ledger;
mod limits;
#[cfg(test)]
mod tests;

pub use exchange::{Begun, Exchange, FILLS_MAX, Pending, Rules, Taken};
pub use limits::Limits;
