//! Logic of the order gateway: a simulated exchange that answers each order exactly once, even if it dies.
//!
//! ```text
//! order -> begin: decide, write the decision into the ledger -> publish its answers -> finish: clear the decision
//! ```
//!
//! Orders that are not filled at once rest in the ledger, and quotes fill them: that is a decision too, of one order.
//!
//! A successor of a process that died in the middle finds the decision in the [`lowlat_node::ledger`]. The stream, whose
//! sequences continue, shows how many of its answers were published: it publishes the rest and finishes. An
//! order that is read again is recognized by its sequence in its stream, and skipped.

mod book;
mod exchange;
mod ledger;
#[cfg(test)]
mod tests;

pub use book::BookRules;
pub use exchange::{Decision, Exchange, FILLS_MAX, Limits, Matching, Pending, ReadOrder, Rules};
