//! State made of records.

use crate::records::{Answer, Order, Outcome, Price, Quote, Side};
use std::collections::{BTreeMap, BTreeSet};

/// A record of the pipeline, with the stream that it came on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen<'a> {
    /// The stream's name.
    pub stream: &'a str,
    /// The record's number in it.
    pub sequence: u64,
    /// When it was written, in the pipeline's clock, ns.
    pub generated_ns: u64,
    /// The record's instrument: of quotes and orders the instrument, of answers the strategy.
    pub key: u32,
    /// Who made it: of orders the strategy.
    pub source: u32,
    /// What it holds.
    pub what: What,
}

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum What {
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
    /// Its number in md's stream.
    pub sequence: u64,
    /// When it was written, ns.
    pub generated_ns: u64,
    /// The quote.
    pub quote: Quote,
}

/// Which order: strategy and number.
pub type OrderKey = (u32, u64);

/// How far an order is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Sent, not answered.
    Sent,
    /// Accepted; open while less than its quantity is filled.
    Accepted,
    /// Rejected; the code is that of the answer's payload.
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
    /// How many.
    pub quantity: u32,
    /// How many of them are traded.
    pub filled: u32,
    /// How far it is.
    pub progress: Progress,
}

impl OrderState {
    /// Whether more can come of it.
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
    /// Bought less sold.
    pub quantity: i64,
    /// What was paid less what was received, in ten-thousandths of the currency.
    pub cost: i128,
}

/// The state, with what of it is not saved yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub(super) quotes: BTreeMap<u32, QuoteState>,
    pub(super) orders: BTreeMap<OrderKey, OrderState>,
    pub(super) positions: BTreeMap<(u32, u32), Position>,
    /// Number of the run that orders and streams are of: both begin again with a new master.
    pub(super) run: i64,
    /// The last record of each stream.
    pub(super) streams: BTreeMap<String, u64>,
    pub(super) changed: Changed,
}

/// What changed since it was saved.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Changed {
    pub(super) quotes: BTreeSet<u32>,
    pub(super) orders: BTreeSet<OrderKey>,
    pub(super) positions: BTreeSet<(u32, u32)>,
    pub(super) records: u64,
}

impl State {
    /// Begins a run: streams and order numbers start again, quotes and positions stay.
    pub fn begin_run(&mut self) {
        self.run += 1;
        self.streams.clear();
        self.orders.clear();
        self.changed.orders.clear();
    }

    /// Applies a record; false when that one, or a later one of its stream, was applied before.
    pub fn apply(&mut self, seen: &Seen<'_>) -> bool {
        match self.streams.get_mut(seen.stream) {
            Some(last) if seen.sequence <= *last => return false,
            Some(last) => *last = seen.sequence,
            None => _ = self.streams.insert(seen.stream.to_owned(), seen.sequence),
        }
        self.changed.records += 1;
        match seen.what {
            What::Quote(quote) => {
                let Seen { sequence, generated_ns, key, .. } = *seen;
                self.quotes.insert(key, QuoteState { sequence, generated_ns, quote });
                self.changed.quotes.insert(key);
            }
            What::Order(order) => self.order(seen, &order),
            What::Answer(answer) => self.answer(seen.key, &answer),
        }
        true
    }

    fn order(&mut self, seen: &Seen<'_>, order: &Order) {
        let key = (seen.source, order.number);
        let Order { price, quantity, side, .. } = *order;
        // Streams are read one after the other: its answer may have come first.
        self.orders.entry(key).or_insert(OrderState {
            instrument: seen.key,
            side,
            price,
            quantity,
            filled: 0,
            progress: Progress::Sent,
        });
        self.changed.orders.insert(key);
    }

    fn answer(&mut self, strategy: u32, answer: &Answer) {
        let key = (strategy, answer.order_number);
        if answer.outcome == Outcome::Rejected(crate::records::Reject::DuplicateNumber) {
            // It is of another order than the one of that number.
            return;
        }
        let order = self.orders.entry(key).or_insert(OrderState {
            instrument: answer.instrument,
            side: answer.side,
            price: answer.price,
            quantity: answer.quantity,
            filled: 0,
            progress: Progress::Sent,
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

    /// All is saved. Orders of which nothing comes any more leave the memory; they are in the store.
    pub fn saved(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        for key in changed.orders {
            if self.orders.get(&key).is_some_and(|order| !order.is_open()) {
                self.orders.remove(&key);
            }
        }
    }

    /// The last quote of an instrument.
    pub fn quote(&self, instrument: u32) -> Option<&QuoteState> {
        self.quotes.get(&instrument)
    }

    /// Orders of a strategy that are open, or not saved yet, by number.
    pub fn orders(&self, strategy: u32) -> impl Iterator<Item = (u64, &OrderState)> {
        self.orders.range((strategy, 0)..=(strategy, u64::MAX)).map(|((_, number), order)| (*number, order))
    }

    /// Positions of a strategy, by instrument.
    pub fn positions(&self, strategy: u32) -> impl Iterator<Item = (u32, &Position)> {
        let all = (strategy, 0)..=(strategy, u32::MAX);
        self.positions.range(all).map(|((_, instrument), position)| (*instrument, position))
    }

    /// The number of the last record of a stream that was applied.
    pub fn last_sequence(&self, stream: &str) -> Option<u64> {
        self.streams.get(stream).copied()
    }
}
