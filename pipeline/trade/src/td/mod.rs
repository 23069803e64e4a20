//! Logic of the order gateway: a simulated exchange that answers each order exactly once, even if it dies.
//!
//! ```text
//! order -> begin: decide, write the decision into the ledger -> publish its answers -> finish: clear the decision
//! ```
//!
//! A successor of a process that died in the middle finds the decision in the [`ledger`]. The stream, whose
//! sequences continue, shows how many of its answers were published: it publishes the rest and finishes. An
//! order that is read again is recognized by its sequence in its stream, and skipped.

mod exchange;
pub mod ledger;
#[cfg(test)]
mod tests;

pub use exchange::{Decision, Exchange, FILLS_MAX, Limits, Pending, ReadOrder, Rules};
