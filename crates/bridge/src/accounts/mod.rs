//! What is known of each stream at each end: which number comes next, what is lost, who is too old to be heard. No clock,
//! no memory but its own, no transport.
//!
//! Numbers of a stream go up by one with each record, over restarts of its writer as well. A number can be missing for
//! two reasons. A writer that starts anew spends one to say that what it had begun is abandoned: that one is *void*, no
//! record has it. Every other one is *lost*.

mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

pub use incoming::{Incoming, Told, Verdict, Why};
pub use outgoing::{Outgoing, Seen};
