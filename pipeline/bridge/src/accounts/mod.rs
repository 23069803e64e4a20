//! Account of each stream at each end: the next number, losses, and obsolete senders. No clock, no shared
//! memory, no transport.
//!
//! Numbers of a stream increase by one with each record, also across restarts of its writer. A number can be
//! missing for two reasons. A restarted writer uses one to mark that unfinished records are abandoned: that
//! number is *void*, no record has it. Any other missing number is *lost*.

mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

pub use incoming::{Incoming, Notice, Verdict, Why};
pub use outgoing::{Outgoing, SendDecision};
