//! Counters of a node, in memory that its master reads.
//!
//! ```text
//! words, written by the node
//!   0  published     1  read         2  lost       3  refused     4  woken others
//!   5  was woken     6  missed wakes 7  heartbeat (ns of the pipeline's clock)
//!   8  uncredited    9  conflated   10  evicted
//!  11  quotes read  12  lost        13  answers read             14  lost
//! words 1 and 2 count the records of other streams
//! written by the master
//!  32  fenced: 1 once it has dropped this process
//! written by both: words 64 to 97, see [`super::turn`]
//! ```

use super::{Memory, turn::NodeTurn};
use crate::{MD_STREAM, TD_STREAM};
use lowlat_ipc::{region::Region, router::DeliveryCounts};
use std::sync::atomic::{AtomicU64, Ordering};

pub const COUNTERS_BYTES: u64 = 4096;

const PUBLISHED: usize = 0;
const READ: usize = 1;
const REFUSED: usize = 3;
const WAKES: usize = 4;
const WOKEN: usize = 5;
const MISSED: usize = 6;
const HEARTBEAT: usize = 7;
const UNCREDITED: usize = 8;
const CONFLATED: usize = 9;
const EVICTED: usize = 10;
const QUOTES: usize = 11;
const ANSWERS: usize = 13;
const FENCED: usize = 32;

/// Largest plausible value of a counter: a billion a second for three days. A process that writes beyond its memory
/// leaves larger values.
pub const COUNT_MAX: u64 = 1 << 48;

/// Index of the counter of the records of a stream; that of its losses follows.
pub(super) fn counted_as(stream: &str) -> usize {
    match stream {
        MD_STREAM => QUOTES,
        TD_STREAM => ANSWERS,
        _ => READ,
    }
}

/// Records of one kind that a node received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Received {
    pub read: u64,
    pub lost: u64,
}

impl Received {
    fn plus(self, other: Self) -> Self {
        Self { read: self.read + other.read, lost: self.lost + other.lost }
    }
}

/// A node's counters: each only increases, and only the node writes it.
#[derive(Debug, Clone)]
pub struct Counters {
    memory: Memory,
}

/// Values of all counters, each read separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Figures {
    pub published: u64,
    pub read: u64,
    /// Records that this node lost.
    pub lost: u64,
    /// Deliveries of its records that found a subscriber's ring full.
    pub refused: u64,
    /// Sleeping subscribers woken by its records.
    pub wakes: u64,
    /// Number of times it was woken.
    pub woken: u64,
    /// Number of times the safety net woke it. Must be 0.
    pub missed: u64,
    /// Its records that were not published, because a subscriber that must not lose records had no room.
    pub uncredited: u64,
    /// Deliveries of its records that replaced one that was not taken.
    pub conflated: u64,
    /// Subscribers of its records that were evicted for being too far behind.
    pub evicted: u64,
    /// Quotes among the records read and lost.
    pub quotes: Received,
    /// Answers among the records read and lost.
    pub answers: Received,
    /// Counters above [`COUNT_MAX`], which are left out of the others.
    pub implausible: u64,
}

impl Figures {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            published: self.published + other.published,
            read: self.read + other.read,
            lost: self.lost + other.lost,
            refused: self.refused + other.refused,
            wakes: self.wakes + other.wakes,
            woken: self.woken + other.woken,
            missed: self.missed + other.missed,
            uncredited: self.uncredited + other.uncredited,
            conflated: self.conflated + other.conflated,
            evicted: self.evicted + other.evicted,
            quotes: self.quotes.plus(other.quotes),
            answers: self.answers.plus(other.answers),
            implausible: self.implausible + other.implausible,
        }
    }
}

impl Counters {
    pub fn new(memory: Memory) -> Self {
        Self { memory }
    }

    pub fn published(&self) -> u64 {
        self.get(PUBLISHED)
    }

    /// When it last polled or waited, in the pipeline's clock, to within 100 ms of polling.
    pub fn heartbeat_ns(&self) -> u64 {
        self.get(HEARTBEAT)
    }

    /// Values of all of them. Those that no node reaches count as 0 and in [`Figures::implausible`].
    pub fn figures(&self) -> Figures {
        let mut implausible = 0;
        let mut count = |at: usize| {
            let value = self.get(at);
            implausible += u64::from(value > COUNT_MAX);
            if value > COUNT_MAX { 0 } else { value }
        };
        let [others, quotes, answers] =
            [READ, QUOTES, ANSWERS].map(|at| Received { read: count(at), lost: count(at + 1) });
        let of_all = others.plus(quotes).plus(answers);
        Figures {
            published: count(PUBLISHED),
            read: of_all.read,
            lost: of_all.lost,
            refused: count(REFUSED),
            wakes: count(WAKES),
            woken: count(WOKEN),
            missed: count(MISSED),
            uncredited: count(UNCREDITED),
            conflated: count(CONFLATED),
            evicted: count(EVICTED),
            quotes,
            answers,
            implausible,
        }
    }

    /// True if the master dropped this process.
    pub fn is_fenced(&self) -> bool {
        // Pairs with the store in `fence`.
        self.word(FENCED).is_some_and(|word| word.load(Ordering::Acquire) != 0)
    }

    /// The node's turns in a stepped run.
    pub fn turn(&self) -> NodeTurn {
        NodeTurn { counters: self.memory.clone() }
    }

    /// Master: marks the process as dropped.
    pub fn fence(&self) {
        if let Some(word) = self.word(FENCED) {
            // Pairs with the load in `is_fenced`.
            word.store(1, Ordering::Release);
        }
    }

    #[inline]
    pub(super) fn add_read(&self, of: usize) {
        self.add(of, 1);
    }

    pub(super) fn add_lost(&self, of: usize, count: u64) {
        self.add(of + 1, count);
    }

    #[inline]
    pub fn add_published(&self, delivered: &DeliveryCounts) {
        self.add(PUBLISHED, 1);
        let DeliveryCounts { woken, refused, conflated, evicted, .. } = *delivered;
        for (at, count) in [(WAKES, woken), (REFUSED, refused), (CONFLATED, conflated), (EVICTED, evicted)] {
            if count > 0 {
                self.add(at, u64::from(count));
            }
        }
    }

    pub fn add_uncredited(&self) {
        self.add(UNCREDITED, 1);
    }

    pub fn set_woken_and_missed(&self, (woken, missed): (u64, u64)) {
        self.set(WOKEN, woken);
        self.set(MISSED, missed);
    }

    pub fn set_heartbeat(&self, now_ns: u64) {
        self.set(HEARTBEAT, now_ns);
    }

    fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.memory.words().get(at)
    }

    // Relaxed: a counter does not order other memory, and each has one writer.
    fn get(&self, at: usize) -> u64 {
        self.word(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn set(&self, at: usize, value: u64) {
        if let Some(word) = self.word(at) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn add(&self, at: usize, count: u64) {
        self.set(at, self.get(at).wrapping_add(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counters(words: &[u64]) -> Counters {
        let memory = Memory::new(lowlat_ipc::region::Memfd::create("counters", COUNTERS_BYTES).unwrap());
        let counters = Counters::new(memory);
        words.iter().enumerate().for_each(|(at, value)| counters.set(at, *value));
        counters
    }

    #[test]
    fn what_no_node_can_count_is_left_out_and_told() {
        let mut words = [5; 15];
        (words[WOKEN], words[ANSWERS + 1]) = (17_858_662_253_317_750_711, u64::MAX);
        let figures = counters(&words).figures();
        assert_eq!((figures.woken, figures.answers.lost, figures.lost, figures.implausible), (0, 0, 10, 2));
        assert_eq!(figures.plus(figures).implausible, 4);
    }

    proptest! {
        #[test]
        fn any_memory_gives_sums_that_fit(words in proptest::collection::vec(any::<u64>(), 15), nodes in 1_u64..1_000) {
            let figures = counters(&words).figures();
            let all = (0..nodes).fold(Figures::default(), |all, _| all.plus(figures));
            prop_assert!(all.read <= 3 * nodes * COUNT_MAX && all.published == nodes * figures.published);
        }
    }
}
