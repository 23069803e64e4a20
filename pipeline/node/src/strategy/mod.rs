//! Strategies: their events, how they send orders, and many of them in one process.
//!
//! A [`Strategy`] is called with quotes, answers and gaps; it sends through [`Orders`]. No call may wait: in a
//! strategy host it would delay others.

mod on_each_record;
mod orders;
mod owners;
mod process;
mod stream;

pub use on_each_record::OnEachRecord;
pub use orders::{Numbers, OrderCause, OrderSink, Orders, SendError, TURNS_MAX};
pub use owners::{AREA as OWNERS_AREA, BYTES as OWNERS_BYTES, Owners};
pub use process::{StrategyDone, gap, join, run, starting, undecoded, with_overrun};
pub use stream::{OrderStream, note, numbers_of};

use crate::{
    StreamName,
    clock::now_ns,
    records::{Answer, PayloadError, Quote, kind},
    state::State,
};
use lowlat_ipc::stream::{Record, Stamp};

/// A quote as delivered to a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuoteSeen {
    pub instrument: u32,
    /// Its sequence in md's stream.
    pub sequence: u64,
    /// When md wrote it, in the pipeline's clock, ns.
    pub generated_ns: u64,
    /// When this process had read it, in the pipeline's clock, ns.
    pub received_ns: u64,
    pub quote: Quote,
}

impl QuoteSeen {
    /// A quote that was written and read at these times, ns, for tests of a strategy.
    pub fn new(
        instrument: u32,
        sequence: u64,
        (generated_ns, received_ns): (u64, u64),
        quote: Quote,
    ) -> Self {
        Self { instrument, sequence, generated_ns, received_ns, quote }
    }
}

/// An answer as delivered to a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerSeen {
    /// Its sequence in td's stream.
    pub sequence: u64,
    /// When td wrote it, in the pipeline's clock, ns.
    pub generated_ns: u64,
    /// When this process had read it, in the pipeline's clock, ns.
    pub received_ns: u64,
    pub answer: Answer,
}

impl AnswerSeen {
    /// An answer that was written and read at these times, ns, for tests of a strategy.
    pub fn new(sequence: u64, (generated_ns, received_ns): (u64, u64), answer: Answer) -> Self {
        Self { sequence, generated_ns, received_ns, answer }
    }
}

/// Records that a strategy lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrategyGap {
    /// Quotes, of any of its instruments.
    Quotes(u64),
    /// Answers. The state of its orders must be queried, for example from cached.
    Answers(u64),
    /// Records of other streams.
    Others(u64),
}

/// A record of another stream than md and td, as delivered to a strategy whose process reads one.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct OtherSeen<'a> {
    pub stream: &'a StreamName,
    pub record: &'a Record,
    pub payload: &'a [u8],
    /// When this process had read it, in the pipeline's clock, ns.
    pub received_ns: u64,
}

/// A strategy. No call may wait or allocate: it would delay others in the same process.
pub trait Strategy: Send {
    /// A quote of one of its instruments.
    fn on_quote(&mut self, orders: &mut Orders<'_>, seen: &QuoteSeen);
    /// An answer to one of its orders.
    fn on_answer(&mut self, orders: &mut Orders<'_>, seen: &AnswerSeen) {
        let _ = (orders, seen);
    }
    /// A record of another stream that its node joined to read ([`crate::Join::reads`]). A host of several strategies
    /// reads none.
    fn on_record(&mut self, orders: &mut Orders<'_>, seen: &OtherSeen<'_>) {
        let _ = (orders, seen);
    }
    /// The time set with [`Orders::set_timer`] has come.
    fn on_timer(&mut self, orders: &mut Orders<'_>, due_ns: u64) {
        let _ = (orders, due_ns);
    }
    /// Called when records were lost.
    fn on_gap(&mut self, orders: &mut Orders<'_>, gap: StrategyGap) {
        let _ = (orders, gap);
    }
    /// Its process was restarted: what cached saved of the predecessor, with positions by strategy number.
    /// Called first; may allocate.
    fn on_restart(&mut self, strategy: u32, state: &State) {
        let _ = (strategy, state);
    }
    /// Called when idle, in a process that never sleeps: to touch what the next call will need, so that it is
    /// in the cache. Every few hundred microseconds; must be short, and change nothing relevant.
    fn warm(&mut self) {}
}

/// What a strategy is called with.
#[derive(Debug, Clone, Copy)]
pub enum Item {
    Quote(QuoteSeen),
    Answer(AnswerSeen),
    Gap(StrategyGap),
    /// The time that was set, ns.
    Timer(u64),
}

impl Item {
    /// The item of a record; `None` for a kind that strategies do not get.
    ///
    /// Not inlined, so that a rehearsal uses the same code as a record.
    #[inline(never)]
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub fn of(record: &Record, payload: &[u8]) -> Result<Option<Self>, PayloadError> {
        let received_ns = now_ns();
        let Record { sequence, stamp: Stamp { kind, instrument, generated: generated_ns, .. }, .. } = *record;
        Ok(match kind {
            kind::QUOTE => {
                let quote = Quote::decode(payload)?;
                Some(Self::Quote(QuoteSeen { instrument, sequence, generated_ns, received_ns, quote }))
            }
            kind::ANSWER => {
                let answer = Answer::decode(payload)?;
                Some(Self::Answer(AnswerSeen { sequence, generated_ns, received_ns, answer }))
            }
            _ => None,
        })
    }

    /// Calls the strategy with this number. The cause of orders after a gap or a timer is the time. Returns the time that
    /// it set for its timer.
    #[inline]
    pub fn tell(
        &self,
        strategy: &mut dyn Strategy,
        number: u32,
        sink: &mut dyn OrderSink,
        now_ns: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let cause = match self {
            Self::Quote(seen) => OrderCause::from(seen),
            Self::Answer(seen) => OrderCause::from(seen),
            Self::Gap(_) | Self::Timer(_) => OrderCause::at(now_ns()),
        };
        let orders = &mut Orders::new(sink, number, cause);
        match self {
            Self::Quote(seen) => strategy.on_quote(orders, seen),
            Self::Answer(seen) => strategy.on_answer(orders, seen),
            Self::Gap(gap) => strategy.on_gap(orders, *gap),
            Self::Timer(due_ns) => strategy.on_timer(orders, *due_ns),
        }
        orders.timer()
    }
}
