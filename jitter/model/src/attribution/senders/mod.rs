//! Finds the senders of interrupts: matches what other CPUs sent with what arrived.
//!
//! [`SenderBook`] reads the events of all senders, one CPU after another, and makes a [`Note`] of each request
//! and each interrupt for a measured CPU. That CPU's attributor keeps them in an [`PendingNotes`] until they arrive. A
//! function that runs carries the address of its request, so it has exactly one sender. An interrupt carries
//! nothing: it has a sender only if all interrupts under way have the same. What does not match has no known
//! sender; nothing is guessed.

mod book;
mod inbox;
mod sums;
mod table;

pub use book::{Note, SenderBook};
pub use inbox::NOTES_MAX;
pub use table::{SENDERS_MAX, SenderNames};

pub(super) use inbox::PendingNotes;
pub(super) use sums::{SenderParts, SenderSums};

/// Index of a sender in the table of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SenderId(u16);

impl SenderId {
    pub const UNKNOWN: Self = Self(0);

    /// Its place in the table; `None` for the unknown one.
    pub(crate) fn place(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }

    fn index(self) -> usize {
        usize::from(self.0)
    }
}
