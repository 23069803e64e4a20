//! Strategies: what they are told, how they send orders, and many of them in one process.
//!
//! A [`Strategy`] is called with quotes, answers and gaps; it sends through [`Orders`]. None of the calls may wait:
//! in a strategy host others come after it.

pub mod host;
mod numbers;
mod on_each_record;
mod orders;
mod owners;

pub use numbers::{Numbers, TURNS_MAX};
pub use on_each_record::OnEachRecord;
pub use orders::{Cause, OrderSink, Orders, SendError};
pub use owners::{AREA as OWNERS_AREA, BYTES as OWNERS_BYTES, Owners};

use crate::{
    cached::State,
    records::{Answer, Quote},
};

/// A quote as a strategy is given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuoteSeen {
    /// Its instrument.
    pub instrument: u32,
    /// Its number in md's stream.
    pub sequence: u64,
    /// When md wrote it, in the pipeline's clock, ns.
    pub generated_ns: u64,
    /// When this process had read it, in the pipeline's clock, ns.
    pub received_ns: u64,
    /// The quote.
    pub quote: Quote,
}

/// An answer as a strategy is given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerSeen {
    /// Its number in td's stream.
    pub sequence: u64,
    /// When td wrote it, in the pipeline's clock, ns.
    pub generated_ns: u64,
    /// When this process had read it, in the pipeline's clock, ns.
    pub received_ns: u64,
    /// The answer.
    pub answer: Answer,
}

/// What a strategy did not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// So many quotes: of which of its instruments is not known.
    Quotes(u64),
    /// So many answers. What became of its orders is to be asked for, from cached for example.
    Answers(u64),
}

/// A strategy. Nothing it does in a call may wait or allocate: others of the same process come after it.
pub trait Strategy: Send {
    /// A quote of one of its instruments.
    fn on_quote(&mut self, orders: &mut Orders<'_>, seen: &QuoteSeen);
    /// An answer to one of its orders.
    fn on_answer(&mut self, orders: &mut Orders<'_>, seen: &AnswerSeen) {
        let _ = (orders, seen);
    }
    /// Records are lost to it.
    fn on_gap(&mut self, orders: &mut Orders<'_>, gap: Gap) {
        let _ = (orders, gap);
    }
    /// Its process is started again: what cached had saved of the one before, positions by the strategy's number. Before
    /// everything else; it may allocate.
    fn on_restart(&mut self, strategy: u32, state: &State) {
        let _ = (strategy, state);
    }
    /// Nothing is there for it, and its process, which never sleeps, has time: to read what its next call will need, so that it
    /// is at hand. Each some hundreds of microseconds; it must be short, and change nothing that matters.
    fn warm(&mut self) {}
}

impl<S: Strategy + ?Sized> Strategy for Box<S> {
    fn on_quote(&mut self, orders: &mut Orders<'_>, seen: &QuoteSeen) {
        (**self).on_quote(orders, seen);
    }

    fn on_answer(&mut self, orders: &mut Orders<'_>, seen: &AnswerSeen) {
        (**self).on_answer(orders, seen);
    }

    fn on_gap(&mut self, orders: &mut Orders<'_>, gap: Gap) {
        (**self).on_gap(orders, gap);
    }

    fn on_restart(&mut self, strategy: u32, state: &State) {
        (**self).on_restart(strategy, state);
    }

    fn warm(&mut self) {
        (**self).warm();
    }
}
