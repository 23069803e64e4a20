//! State derived from records.

use crate::records::{Answer, Order, Outcome, Price, Quote, Side};
use std::collections::{BTreeMap, BTreeSet};

/// A record of the pipeline, with its stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamRecord<'a> {
    /// The stream's name.
    pub stream: &'a str,
    /// The record's sequence in it.
    pub sequence: u64,
    /// When it was written, in the pipeline's clock, ns.
    pub generated_ns: u64,
    /// The stamp's instrument: for quotes and orders the instrument, for answers the strategy.
    pub key: u32,
    /// The stamp's source: for orders the strategy.
    pub source: u32,
    /// Its payload.
    pub what: Payload,
}

/// Payload of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Payload {
    /// A quote.
    Quote(Quote),
    /// An order.
    Order(Order),
    /// An answer.
    Answer(Answer),
}

/// The last quote of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuoteState {
    /// Its sequence in md's stream.
    pub sequence: u64,
    /// When it was written, ns.
    pub generated_ns: u64,
    /// The quote.
    pub quote: Quote,
}

/// Which order: strategy and number.
pub type OrderKey = (u32, u64);

/// Progress of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Sent, not answered.
    Sent,
    /// Accepted; open until its whole quantity is filled.
    Accepted,
    /// Rejected, with the code of the answer's payload.
    Rejected,
}

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderState {
    /// Its instrument.
    pub instrument: u32,
    /// Buy or sell.
    pub side: Side,
    /// Limit price.
    pub price: Price,
    /// Its quantity.
    pub quantity: u32,
    /// Quantity filled so far.
    pub filled: u32,
    /// Its progress.
    pub progress: Progress,
    /// Whether its own record was read. Streams are read one after the other, so answers may precede it.
    pub is_seen: bool,
}

impl OrderState {
    /// Whether more records of it may follow.
    pub fn is_open(&self) -> bool {
        match self.progress {
            Progress::Sent => true,
            Progress::Accepted => self.filled < self.quantity,
            Progress::Rejected => false,
        }
    }
}

/// A strategy's position in an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Quantity bought minus quantity sold.
    pub quantity: i64,
    /// Cost: paid minus received, in ten-thousandths of the currency.
    pub cost: i128,
}

/// The state, and which parts of it are not saved yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub(super) quotes: BTreeMap<u32, QuoteState>,
    pub(super) orders: BTreeMap<OrderKey, OrderState>,
    pub(super) positions: BTreeMap<(u32, u32), Position>,
    /// Number of the run of the orders and streams: both restart with a new master.
    pub(super) run: i64,
    /// The last record of each stream.
    pub(super) streams: BTreeMap<String, u64>,
    pub(super) changed: Changed,
}

/// Changes since the last save.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Changed {
    pub(super) quotes: BTreeSet<u32>,
    pub(super) orders: BTreeSet<OrderKey>,
    pub(super) positions: BTreeSet<(u32, u32)>,
    pub(super) records: u64,
}

impl State {
    /// Starts a run: streams and order numbers restart, quotes and positions remain.
    pub fn begin_run(&mut self) {
        self.run += 1;
        self.streams.clear();
        self.orders.clear();
        self.changed.orders.clear();
    }

    /// Applies a record; returns false if it, or a later one of its stream, was already applied.
    pub fn apply(&mut self, seen: &StreamRecord<'_>) -> bool {
        match self.streams.get_mut(seen.stream) {
            Some(last) if seen.sequence <= *last => return false,
            Some(last) => *last = seen.sequence,
            None => _ = self.streams.insert(seen.stream.to_owned(), seen.sequence),
        }
        self.changed.records += 1;
        match seen.what {
            Payload::Quote(quote) => {
                let StreamRecord { sequence, generated_ns, key, .. } = *seen;
                self.quotes.insert(key, QuoteState { sequence, generated_ns, quote });
                self.changed.quotes.insert(key);
            }
            Payload::Order(order) => self.order(seen, &order),
            Payload::Answer(answer) => self.answer(seen.key, &answer),
        }
        true
    }

    fn order(&mut self, seen: &StreamRecord<'_>, order: &Order) {
        let key = (seen.source, order.number);
        let Order { price, quantity, side, .. } = *order;
        let made = OrderState {
            instrument: seen.key,
            side,
            price,
            quantity,
            filled: 0,
            progress: Progress::Sent,
            is_seen: true,
        };
        self.orders.entry(key).and_modify(|order| order.is_seen = true).or_insert(made);
        self.changed.orders.insert(key);
    }

    fn answer(&mut self, strategy: u32, answer: &Answer) {
        let key = (strategy, answer.order_number);
        if answer.outcome == Outcome::Rejected(crate::records::Reject::DuplicateNumber) {
            // It belongs to another order than the one with this number.
            return;
        }
        let order = self.orders.entry(key).or_insert(OrderState {
            instrument: answer.instrument,
            side: answer.side,
            price: answer.price,
            quantity: answer.quantity,
            filled: 0,
            progress: Progress::Sent,
            is_seen: false,
        });
        self.changed.orders.insert(key);
        match answer.outcome {
            Outcome::Accepted => order.progress = Progress::Accepted,
            Outcome::Rejected(_) => order.progress = Progress::Rejected,
            Outcome::Filled => {
                order.filled = order.filled.saturating_add(answer.quantity);
                let place = (strategy, answer.instrument);
                let position = self.positions.entry(place).or_default();
                let (quantity, price) = (i64::from(answer.quantity), i128::from(answer.price));
                let signed = if answer.side == Side::Buy { quantity } else { -quantity };
                position.quantity = position.quantity.saturating_add(signed);
                position.cost = position.cost.saturating_add(i128::from(signed) * price);
                self.changed.positions.insert(place);
            }
        }
    }

    /// Records applied since the last save.
    pub fn unsaved(&self) -> u64 {
        self.changed.records
    }

    /// Marks everything as saved. Completed orders, whose own record was read too, are dropped from memory; the
    /// store has them.
    pub fn saved(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        for key in changed.orders {
            if self.orders.get(&key).is_some_and(|order| order.is_seen && !order.is_open()) {
                self.orders.remove(&key);
            }
        }
    }

    /// The last quote of an instrument.
    pub fn quote(&self, instrument: u32) -> Option<&QuoteState> {
        self.quotes.get(&instrument)
    }

    /// Orders of a strategy that are open or unsaved, by number.
    pub fn orders(&self, strategy: u32) -> impl Iterator<Item = (u64, &OrderState)> {
        self.orders.range((strategy, 0)..=(strategy, u64::MAX)).map(|((_, number), order)| (*number, order))
    }

    /// Positions of a strategy, by instrument.
    pub fn positions(&self, strategy: u32) -> impl Iterator<Item = (u32, &Position)> {
        let all = (strategy, 0)..=(strategy, u32::MAX);
        self.positions.range(all).map(|((_, instrument), position)| (*instrument, position))
    }

    /// Sequence of the last applied record of a stream.
    pub fn last_sequence(&self, stream: &str) -> Option<u64> {
        self.streams.get(stream).copied()
    }
}
