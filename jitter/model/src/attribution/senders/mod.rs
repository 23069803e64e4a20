//! Finds the senders of interrupts: matches what other CPUs sent with what arrived.
//!
//! [`SenderBook`] reads the events of all senders, one CPU after another, and makes a [`Note`] of each request
//! and each interrupt for a measured CPU. That CPU's attributor keeps them in an [`PendingNotes`] until they arrive. A
//! function that runs carries the address of its request, so it has exactly one sender. An interrupt carries
//! nothing: it has a sender only if all interrupts under way have the same. What does not match has no known
//! sender; nothing is guessed.

mod book;
mod inbox;
mod table;

pub use book::{Note, SenderBook};
pub use inbox::NOTES_MAX;
pub use table::{SENDERS_MAX, SenderNames};

pub(super) use inbox::PendingNotes;

use crate::SenderTotal;
use lowlat_host::TickScale;

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

/// Number of senders with the unknown one.
const COUNT: usize = SENDERS_MAX + 1;

/// Ticks by sender of one interruption.
#[derive(Debug, Default)]
pub(crate) struct SenderParts {
    ticks: Vec<u64>,
    is_there: Vec<bool>,
    present: Vec<SenderId>,
}

impl SenderParts {
    /// Reserves memory for all senders.
    pub(crate) fn reserve(&mut self) {
        self.ticks.resize(COUNT, 0);
        self.is_there.resize(COUNT, false);
        self.present.reserve(COUNT);
    }

    pub(crate) fn clear(&mut self) {
        for id in self.present.drain(..) {
            self.ticks[id.index()] = 0;
            self.is_there[id.index()] = false;
        }
    }

    /// Adds ticks, perhaps none, to a sender's, if there is one.
    pub(crate) fn add(&mut self, id: Option<SenderId>, ticks: u64) {
        let Some(id) = id else { return };
        let Some(is_there) = self.is_there.get_mut(id.index()) else { return };
        if !std::mem::replace(is_there, true) {
            self.present.push(id);
        }
        self.ticks[id.index()] += ticks;
    }

    /// Removes ticks that turned out to be of something else.
    pub(crate) fn remove(&mut self, id: Option<SenderId>, ticks: u64) {
        if let Some(sum) = id.and_then(|id| self.ticks.get_mut(id.index())) {
            *sum = sum.saturating_sub(ticks);
        }
    }

    fn iter(&self) -> impl Iterator<Item = (SenderId, u64)> + '_ {
        self.present.iter().map(|id| (*id, self.ticks[id.index()]))
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u64,
    ticks: u64,
    ticks_max: u64,
}

/// Sums by sender of one CPU.
#[derive(Debug, Default)]
pub(crate) struct SenderSums {
    sums: Vec<Sum>,
}

impl SenderSums {
    /// Reserves memory for all senders.
    pub(crate) fn reserve(&mut self) {
        self.sums.resize(COUNT, Sum::default());
    }

    pub(crate) fn add(&mut self, parts: &SenderParts) {
        for (id, ticks) in parts.iter() {
            let Some(sum) = self.sums.get_mut(id.index()) else { continue };
            sum.count += 1;
            sum.ticks = sum.ticks.saturating_add(ticks);
            sum.ticks_max = sum.ticks_max.max(ticks);
        }
    }

    /// The totals, with raw places of senders.
    pub(crate) fn finish(&self, scale: TickScale) -> Vec<SenderTotal> {
        let total = |(index, sum): (usize, &Sum)| SenderTotal {
            sender: index.checked_sub(1),
            count: sum.count,
            ns_total: scale.ns(sum.ticks),
            ns_max: scale.ns(sum.ticks_max),
        };
        self.sums.iter().enumerate().filter(|(_, sum)| sum.count > 0).map(total).collect()
    }
}
