//! Counts of md and td in a run, in addition to the counters of every node. Each writes a separate area.
//!
//! ```text
//! words of md's area, MD_AREA                             words of td's area, TD_AREA
//!   0  ticks scheduled                                     16  orders of strategies that are not the sender's
//!   1  when the first quote was published (ns)             17  records that are no orders
//!   2  when the last quote was published (ns)
//!  32  counts of a feed                                     32  counts of a gateway
//! ```

use lowlat_feed::sequence::Counts;
use lowlat_ipc::region::Region;
use lowlat_pipeline::{FeedFigures, GatewayFigures, SequenceRange};
use std::sync::atomic::Ordering;

pub const MD_AREA: &str = "tally.md";
pub const TD_AREA: &str = "tally.td";
/// Size of each area, in bytes.
pub const BYTES: u64 = 4096;

const SCHEDULED: usize = 0;
const FIRST: usize = 1;
const LAST: usize = 2;
const FOREIGN: usize = 16;
const NOT_ORDERS: usize = 17;
const FEED: usize = 32;
const GATEWAY: usize = 32;

/// A run's counts. Each word has one writer.
#[derive(Debug, Clone, Copy)]
pub struct Tally<R> {
    region: R,
}

impl<R: Region> Tally<R> {
    /// The counts in zeroed memory, or in memory that others write; `None` if it is too small.
    pub fn new(region: R) -> Option<Self> {
        (region.words().len() > NOT_ORDERS).then_some(Self { region })
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

    /// td: an order was refused, because its strategy is not its sender's.
    pub fn refused_foreign(&self) {
        self.set(FOREIGN, self.get(FOREIGN) + 1);
    }

    /// td: a record of an orders stream was no order.
    pub fn refused_other(&self) {
        self.set(NOT_ORDERS, self.get(NOT_ORDERS) + 1);
    }

    /// Records of orders streams that td does not answer: orders of strategies that are not the sender's, and records
    /// that are no orders.
    pub fn refused(&self) -> [u64; 2] {
        [FOREIGN, NOT_ORDERS].map(|at| self.get(at))
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

    /// md: sets its counts of a feed, and the figures beside its sequence.
    pub fn set_feed(&self, counts: &Counts, of: &FeedFigures) {
        let beside = [of.published, of.foreign, of.unstamped, of.unapplied, of.clock_steps, of.over_loopback];
        (FEED..).zip(counts.words().into_iter().chain(beside)).for_each(|(at, word)| self.set(at, word));
    }

    /// Returns md's counts of a feed, and the figures beside its sequence.
    pub fn feed(&self) -> (Counts, FeedFigures) {
        let word = |at| self.get(FEED + at);
        let counts = Counts::of(std::array::from_fn(word));
        let [published, foreign, unstamped, unapplied, clock_steps, over_loopback] =
            std::array::from_fn(|at| word(Counts::WORDS + at));
        let beside = FeedFigures {
            published,
            foreign,
            unstamped,
            unapplied,
            clock_steps,
            over_loopback,
            ..FeedFigures::default()
        };
        (counts, beside)
    }

    /// All figures of a feed, for a record.
    pub fn feed_figures(&self) -> FeedFigures {
        let (counts, beside) = self.feed();
        let range = |range: lowlat_feed::sequence::Range| {
            (counts.gaps > 0).then_some(SequenceRange { first: range.first, last: range.last })
        };
        FeedFigures {
            datagrams: counts.datagrams,
            malformed: counts.malformed,
            received: counts.delivered,
            gaps: counts.gaps,
            missing: counts.missing,
            missing_in_socket: counts.missing_in_socket,
            first_gap: range(counts.first_gap),
            last_gap: range(counts.last_gap),
            late: counts.late,
            doubled: counts.doubled,
            socket_drops: counts.socket_drops,
            sessions: counts.sessions,
            is_ended: counts.ended > 0,
            ..beside
        }
    }

    /// td: sets the figures of its connection to an exchange.
    pub fn set_gateway(&self, of: &GatewayFigures) {
        let words = [
            of.sent,
            of.unsent,
            of.accepted,
            of.rejected,
            of.fills,
            of.lost_in_flight,
            u64::from(of.is_lost),
            of.unstamped,
            of.measured,
            of.adding_up,
            u64::from(of.is_loopback),
            u64::from(of.is_same_machine),
            of.exchange_cpu.map_or(0, |cpu| u64::from(cpu) + 1),
        ];
        (GATEWAY..).zip(words).for_each(|(at, word)| self.set(at, word));
    }

    /// Returns the figures of td's connection to an exchange.
    pub fn gateway(&self) -> GatewayFigures {
        // In the order of `set_gateway`: fields are evaluated as they are written.
        let mut words = (GATEWAY..).map(|at| self.get(at));
        let mut next = || words.next().unwrap_or_default();
        GatewayFigures {
            sent: next(),
            unsent: next(),
            accepted: next(),
            rejected: next(),
            fills: next(),
            lost_in_flight: next(),
            is_lost: next() > 0,
            unstamped: next(),
            measured: next(),
            adding_up: next(),
            is_loopback: next() > 0,
            is_same_machine: next() > 0,
            exchange_cpu: next().checked_sub(1).and_then(|cpu| u32::try_from(cpu).ok()),
        }
    }
}
