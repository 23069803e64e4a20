//! State derived from records.

use crate::{
    ORDERS_PREFIX,
    records::{Answer, Order, OrderAction, Outcome, Price, Quote, Side},
};
use std::collections::{BTreeMap, BTreeSet};

/// A record of the pipeline, with its stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordSeen<'a> {
    pub stream: &'a str,
    /// The record's sequence in it.
    pub sequence: u64,
    /// When it was written, in the pipeline's clock, ns.
    pub generated_ns: u64,
    /// The stamp's instrument: for quotes and orders the instrument, for answers the strategy.
    pub key: u32,
    /// The stamp's source: for orders the strategy.
    pub source: u32,
    pub what: Payload,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Payload {
    Quote(Quote),
    Order(Order),
    Answer(Answer),
}

/// The last quote of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuoteState {
    /// Its sequence in md's stream.
    pub sequence: u64,
    /// When it was written, ns.
    pub generated_ns: u64,
    pub quote: Quote,
}

/// Key of an order: the strategy's number and the order's number.
pub type OrderKey = (u32, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Progress {
    /// Sent, not answered.
    #[default]
    Sent,
    /// Accepted; open until its whole quantity is filled.
    Accepted,
    /// Rejected, with the code of the answer's payload.
    Rejected,
    /// Cancelled, maybe after fills.
    Cancelled,
    /// It was open when answers were lost: it may be filled or cancelled since.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OrderState {
    pub instrument: u32,
    pub side: Side,
    pub price: Price,
    pub quantity: u32,
    pub filled: u32,
    pub progress: Progress,
    /// Its own record was read. Streams are read one after the other, so answers may precede it.
    pub is_seen: bool,
}

impl OrderState {
    /// True if more records of it may follow.
    pub fn is_open(&self) -> bool {
        match self.progress {
            Progress::Sent | Progress::Unknown => true,
            Progress::Accepted => self.filled < self.quantity,
            Progress::Rejected | Progress::Cancelled => false,
        }
    }
}

/// Key of a position: the strategy's name and the instrument.
pub type PositionKey = (String, u32);

/// A strategy's position in an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Quantity bought minus quantity sold.
    pub quantity: i64,
    /// Cost: paid minus received, in ten-thousandths of the currency.
    pub cost: i128,
}

impl Position {
    fn add(&mut self, more: &Self) {
        self.quantity = self.quantity.saturating_add(more.quantity);
        self.cost = self.cost.saturating_add(more.cost);
    }
}

/// The state, and which parts of it are not saved yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub quotes: BTreeMap<u32, QuoteState>,
    pub orders: BTreeMap<OrderKey, OrderState>,
    pub positions: BTreeMap<PositionKey, Position>,
    /// Names of strategies by their number in this run.
    pub names: BTreeMap<u32, String>,
    /// Numbers below are of the run's own strategies, wherever they run.
    pub reserved: u32,
    /// Number of the run of the orders and streams: both restart with a new master.
    pub run: i64,
    /// The last record of each stream.
    pub streams: BTreeMap<String, u64>,
    pub changed: Changed,
}

/// Changes since the last save.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changed {
    pub quotes: BTreeSet<u32>,
    pub orders: BTreeSet<OrderKey>,
    pub positions: BTreeSet<PositionKey>,
    pub names: BTreeSet<u32>,
    pub records: u64,
}

impl State {
    /// Starts a run, once for each new master and before its records: streams, order numbers and the numbers of
    /// strategies restart, quotes and positions remain.
    pub fn begin_run(&mut self) {
        self.run += 1;
        self.streams.clear();
        self.names.clear();
        self.changed.names.clear();
        self.orders.clear();
        self.changed.orders.clear();
    }

    /// Applies a record; returns false if it, or a later one of its stream, was already applied.
    pub fn apply(&mut self, seen: &RecordSeen<'_>) -> bool {
        match self.streams.get_mut(seen.stream) {
            Some(last) if seen.sequence <= *last => return false,
            Some(last) => *last = seen.sequence,
            None => _ = self.streams.insert(seen.stream.to_owned(), seen.sequence),
        }
        self.changed.records += 1;
        match seen.what {
            Payload::Quote(quote) => {
                let RecordSeen { sequence, generated_ns, key, .. } = *seen;
                self.quotes.insert(key, QuoteState { sequence, generated_ns, quote });
                self.changed.quotes.insert(key);
            }
            Payload::Order(order) => self.order(seen, &order),
            Payload::Answer(answer) => {
                self.name(seen.key, seen.stream);
                self.answer(seen.key, &answer);
            }
        }
        true
    }

    /// Names a strategy: one of the run's own by its number, another by the process that sends its orders, because its
    /// number follows the order of joining. Fills that were read before its first order are then moved to its name.
    fn name(&mut self, strategy: u32, stream: &str) {
        if self.names.contains_key(&strategy) {
            return;
        }
        let name = if strategy < self.reserved {
            format!("s{strategy}")
        } else if let Some(node) = stream.strip_prefix(ORDERS_PREFIX) {
            node.to_owned()
        } else {
            return;
        };
        let unnamed = self.name_of(strategy);
        let places: Vec<_> = self.positions.keys().filter(|(of, _)| *of == unnamed).cloned().collect();
        for from in places {
            let to = (name.clone(), from.1);
            let moved = self.positions.remove(&from).unwrap_or_default();
            self.positions.entry(to.clone()).or_default().add(&moved);
            self.changed.positions.extend([from, to]);
        }
        self.names.insert(strategy, name);
        self.changed.names.insert(strategy);
    }

    fn name_of(&self, strategy: u32) -> String {
        let unnamed = || format!("strategy {strategy} of run {}", self.run);
        self.names.get(&strategy).cloned().unwrap_or_else(unnamed)
    }

    fn order(&mut self, seen: &RecordSeen<'_>, order: &Order) {
        self.name(seen.source, seen.stream);
        if order.action != OrderAction::New {
            // Its answer says what it changed.
            return;
        }
        let key = (seen.source, order.number);
        let Order { price, quantity, side, .. } = *order;
        let instrument = seen.key;
        let made = OrderState { instrument, side, price, quantity, is_seen: true, ..OrderState::default() };
        self.orders.entry(key).and_modify(|order| order.is_seen = true).or_insert(made);
        self.changed.orders.insert(key);
    }

    fn answer(&mut self, strategy: u32, answer: &Answer) {
        let key = (strategy, answer.order_number);
        if matches!(
            answer.outcome,
            Outcome::NotChanged(_) | Outcome::Rejected(crate::records::Reject::DuplicateNumber)
        ) {
            // The second belongs to another order than the one with this number.
            return;
        }
        let Answer { instrument, side, price, quantity, .. } = *answer;
        let made = OrderState { instrument, side, price, quantity, ..OrderState::default() };
        let order = self.orders.entry(key).or_insert(made);
        self.changed.orders.insert(key);
        match answer.outcome {
            Outcome::Accepted => order.progress = Progress::Accepted,
            Outcome::Rejected(_) => order.progress = Progress::Rejected,
            Outcome::Cancelled => order.progress = Progress::Cancelled,
            Outcome::Replaced => (order.price, order.quantity) = (price, quantity),
            Outcome::NotChanged(_) => {}
            Outcome::Filled => {
                order.filled = order.filled.saturating_add(answer.quantity);
                let place = (self.name_of(strategy), answer.instrument);
                let quantity = answer.side.signed(answer.quantity);
                let cost = i128::from(quantity) * i128::from(answer.price);
                self.positions.entry(place.clone()).or_default().add(&Position { quantity, cost });
                self.changed.positions.insert(place);
            }
        }
    }

    /// Answers were lost: what has become of open orders is not known, until their next answer.
    pub fn lose_answers(&mut self) {
        for (key, order) in self.orders.iter_mut().filter(|(_, order)| order.is_open()) {
            order.progress = Progress::Unknown;
            self.changed.orders.insert(*key);
        }
        self.changed.records += 1;
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

    /// Positions of a strategy of this run, by instrument.
    pub fn positions(&self, strategy: u32) -> impl Iterator<Item = (u32, &Position)> {
        let name = self.name_of(strategy);
        let all = (name.clone(), 0)..=(name, u32::MAX);
        self.positions.range(all).map(|((_, instrument), position)| (*instrument, position))
    }

    /// Sequence of the last applied record of a stream.
    pub fn last_sequence(&self, stream: &str) -> Option<u64> {
        self.streams.get(stream).copied()
    }
}
