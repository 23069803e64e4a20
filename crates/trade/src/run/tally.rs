//! Counts of md and td in a run, in addition to the counters of every node. Each writes a separate area.
//!
//! ```text
//! words of md's area, MD_AREA                             words of td's area, TD_AREA
//!   0  ticks scheduled                                     16  orders read
//!   1  when the first quote was published (ns)             17  orders accepted or rejected
//!   2  when the last quote was published (ns)              18  orders rejected
//! ```

use lowlat_ipc::region::Region;
use std::sync::atomic::Ordering;

/// Name of md's area.
pub const MD_AREA: &str = "tally.md";
/// Name of td's area.
pub const TD_AREA: &str = "tally.td";
/// Size of each.
pub const BYTES: u64 = 4096;

const SCHEDULED: usize = 0;
const FIRST: usize = 1;
const LAST: usize = 2;
const ORDERS: usize = 16;
const ANSWERS: usize = 17;
const REJECTED: usize = 18;

/// A run's counts. Each word has one writer.
#[derive(Debug, Clone, Copy)]
pub struct Tally<R> {
    region: R,
}

impl<R: Region> Tally<R> {
    /// The counts in zeroed memory, or in memory that others write; `None` if it is too small.
    pub fn new(region: R) -> Option<Self> {
        (region.words().len() > REJECTED).then_some(Self { region })
    }

    // Relaxed: a counter does not order other memory, and each has one writer.
    fn get(&self, at: usize) -> u64 {
        self.region.words().get(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn set(&self, at: usize, value: u64) {
        if let Some(word) = self.region.words().get(at) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// md: sets the number of quotes in its schedule.
    pub fn set_scheduled(&self, ticks: u64) {
        self.set(SCHEDULED, ticks);
    }

    /// md: a quote was published at that time of the pipeline's clock.
    #[inline]
    pub fn published(&self, now_ns: u64) {
        if self.get(FIRST) == 0 {
            self.set(FIRST, now_ns);
        }
        self.set(LAST, now_ns);
    }

    /// td: an order was read and answered.
    #[inline]
    pub fn answered(&self, is_rejected: bool) {
        self.set(ANSWERS, self.get(ANSWERS) + 1);
        if is_rejected {
            self.set(REJECTED, self.get(REJECTED) + 1);
        }
    }

    /// td: an order was read.
    #[inline]
    pub fn ordered(&self) {
        self.set(ORDERS, self.get(ORDERS) + 1);
    }

    /// Quotes in the schedule; `None` until md has set it.
    pub fn scheduled(&self) -> Option<u64> {
        Some(self.get(SCHEDULED)).filter(|ticks| *ticks > 0)
    }

    /// From the first quote to the last, ns; `None` before the first.
    pub fn published_ns(&self) -> Option<u64> {
        let first = Some(self.get(FIRST)).filter(|first| *first > 0)?;
        Some(self.get(LAST).saturating_sub(first))
    }

    /// Orders that td read.
    pub fn orders(&self) -> u64 {
        self.get(ORDERS)
    }

    /// Orders that td accepted or rejected.
    pub fn answers(&self) -> u64 {
        self.get(ANSWERS)
    }

    /// Orders that td rejected.
    pub fn rejected(&self) -> u64 {
        self.get(REJECTED)
    }
}
