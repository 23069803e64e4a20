//! The simulated exchange.

use super::ledger::{InHand, Ledger};
use lowlat_ipc::{interest::SUBSCRIBERS_MAX, region::Region, stream::Stamp};
use lowlat_node::{
    Refusal, STRATEGIES_MAX,
    records::{Answer, Order, Outcome, Price, Quote, Reject, SCHEMA, kind},
};

/// Maximum number of fills per order.
pub const FILLS_MAX: u32 = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Known instruments: numbers below this.
    pub instruments: u32,
    /// Number of parts in which an accepted order is filled at once, up to [`FILLS_MAX`]; 0: it stays open.
    pub fills: u32,
    pub limits: Limits,
}

/// Limits of orders; those that are `None` do not apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Quantity of one order.
    pub quantity_max: Option<u32>,
    /// Price, in ten-thousandths of the currency.
    pub price_max_ten_thousandths: Option<Price>,
    /// Largest deviation of a price from the middle of the last quote, in thousandths. Applies once td has seen
    /// a quote of the instrument.
    pub price_deviation_max_per_mille: Option<u32>,
    /// Position of a strategy in an instrument, bought or sold.
    pub position_max: Option<u32>,
    /// Orders of a strategy that are accepted and not filled.
    pub open_orders_max: Option<u32>,
}

/// The exchange with its ledger. Allocates nothing and makes no system call per order.
#[derive(Debug)]
pub struct Exchange<R> {
    ledger: Ledger<R>,
    rules: Rules,
    /// Middle of the last quote by instrument; 0 before the first.
    market: Vec<Price>,
}

/// An order as td read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOrder {
    /// Number of the node that writes the stream.
    pub writer: u32,
    /// The order's sequence in it.
    pub sequence: u64,
    /// Its stamp: the instrument, and the strategy as `source`.
    pub stamp: Stamp,
    pub order: Order,
}

/// Result of handling an order.
#[expect(clippy::large_enum_variant, reason = "almost all are answers, and a box would allocate")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Its answers must all be published; then [`Exchange::finish`] is called.
    Answers(Pending),
    /// It was already answered: it was read again after a restart.
    Known,
    /// It cannot be answered: no strategy has that number.
    NoStrategy,
    /// Another td has taken over.
    Fenced,
}

/// Answers of one order to be published, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    order: InHand,
    /// The first of its answers to be published.
    first: u32,
    td: u32,
}

impl Pending {
    /// True if the order is rejected.
    pub fn is_rejected(&self) -> bool {
        matches!(self.order.outcome, Outcome::Rejected(_))
    }

    /// Its answers; their stamps lack only the time of writing.
    pub fn answers(&self) -> impl Iterator<Item = (Stamp, Answer)> + use<> {
        let pending = *self;
        (self.first..self.order.answers).map(move |number| pending.answer(number))
    }

    fn answer(&self, number: u32) -> (Stamp, Answer) {
        let order = &self.order;
        let fills = order.answers - 1;
        let (outcome, quantity) = match number.checked_sub(1) {
            None => (order.outcome, order.order.quantity),
            Some(fill) => (Outcome::Filled, part(order.order.quantity, fill, fills)),
        };
        let stamp = Stamp {
            kind: kind::ANSWER,
            schema: SCHEMA,
            instrument: order.stamp.source,
            source: self.td,
            generated: 0,
            trigger: order.stamp.generated,
            cause: order.sequence,
        };
        let answer = Answer {
            order_number: order.order.number,
            outcome,
            received_ns: order.read_ns,
            price: order.order.price,
            quantity,
            instrument: order.stamp.instrument,
            side: order.order.side,
        };
        (stamp, answer)
    }
}

impl InHand {
    /// Enters an answer, and the fills that follow it, in the values after the order.
    fn decide(&mut self, outcome: Outcome, fills: u32) {
        let answered = u64::from(outcome != Outcome::Filled);
        self.outcome = outcome;
        self.answered_of_after += answered;
        self.totals_after.answered += answered;
        self.totals_after.rejected += u64::from(matches!(outcome, Outcome::Rejected(_)));
        self.totals_after.fills += u64::from(fills);
    }
}

/// Part `number` of a quantity that is split as evenly as possible; the parts add up to it.
fn part(quantity: u32, number: u32, parts: u32) -> u32 {
    let [size, more] =
        [quantity.checked_div(parts), quantity.checked_rem(parts)].map(Option::unwrap_or_default);
    size + u32::from(number < more)
}

impl<R: Region> Exchange<R> {
    /// An exchange with a ledger, as td process number `epoch` under its name.
    pub fn new(region: R, epoch: u64, rules: Rules) -> Result<Self, Refusal> {
        let market = vec![0; usize::try_from(rules.instruments).unwrap_or(0)];
        Ok(Self { ledger: Ledger::open(region, epoch)?, rules, market })
    }

    pub fn ledger(&self) -> &Ledger<R> {
        &self.ledger
    }

    /// Returns the answers that the previous td had decided and not published, if any. `published`, the number of
    /// records that all of them have published, shows how many are left. They must be published before anything else,
    /// followed by [`Exchange::finish`], even if none is left. `td` is this node's number.
    pub fn recover(&self, td: u32, published: u64) -> Result<Option<Pending>, Refusal> {
        let Some(order) = self.ledger.in_hand()? else { return Ok(None) };
        let of_it = published.saturating_sub(order.first_answer);
        let first = u32::try_from(of_it).unwrap_or(u32::MAX).min(order.answers);
        Ok(Some(Pending { order, first, td }))
    }

    /// Checks an order that the exchange of another process decides. `in_flight` are the strategy's unanswered orders,
    /// and the position that all of its orders in flight add up to.
    pub fn check(&self, taken: &ReadOrder, in_flight: (u64, i64)) -> Result<(), Reject> {
        let ReadOrder { stamp, order, .. } = taken;
        let open = self.ledger.open_orders(stamp.source) + in_flight.0;
        self.judge(stamp, order, open + 1, in_flight.1).map(|_| ())
    }

    /// Writes the answer of another process's exchange to the ledger, as [`Exchange::begin`] writes a decision. An
    /// accepted order is open until [`Exchange::fill`] has filled it.
    pub fn settle(
        &mut self,
        td: u32,
        taken: &ReadOrder,
        verdict: Result<(), Reject>,
        read_ns: u64,
        published: u64,
    ) -> Decision {
        let mut order = self.in_hand(taken, read_ns, published);
        order.open_after += u64::from(verdict.is_ok());
        order.decide(verdict.map_or_else(Outcome::Rejected, |()| Outcome::Accepted), 0);
        self.write(order, td)
    }

    /// Writes a fill by another process's exchange to the ledger; the last one closes the order.
    pub fn fill(
        &mut self,
        td: u32,
        taken: &ReadOrder,
        fill: (u32, Price),
        is_last: bool,
        read_ns: u64,
        published: u64,
    ) -> Decision {
        let mut order = self.in_hand(taken, read_ns, published);
        (order.order.quantity, order.order.price) = fill;
        order.open_after = order.open_after.saturating_sub(u64::from(is_last));
        order.position_after = self.moved(&order.stamp, &order.order);
        order.decide(Outcome::Filled, 1);
        self.write(order, td)
    }

    /// An order with one answer, which changes nothing else.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn in_hand(&self, taken: &ReadOrder, read_ns: u64, published: u64) -> InHand {
        let ReadOrder { writer, sequence, stamp, order } = *taken;
        InHand {
            first_answer: published,
            answers: 1,
            writer,
            // Answers of an exchange may come in another order than the orders.
            sequence: self.ledger.last_sequence(writer).map_or(sequence, |last| last.max(sequence)),
            stamp,
            order,
            read_ns,
            outcome: Outcome::Accepted,
            number_after: self.ledger.last_number(stamp.source).max(order.number),
            open_after: self.ledger.open_orders(stamp.source),
            position_after: None,
            answered_of_after: self.ledger.answered_of(writer),
            totals_after: self.ledger.totals(),
        }
    }

    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn write(&mut self, order: InHand, td: u32) -> Decision {
        if !self.ledger.is_own() {
            return Decision::Fenced;
        }
        self.ledger.take_in_hand(&order);
        Decision::Answers(Pending { order, first: 0, td })
    }

    /// Decides an order, and writes the decision to the ledger. `published` is the number of records in td's
    /// stream so far, `now_ns` when the order had been read.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub fn begin(&mut self, td: u32, taken: &ReadOrder, now_ns: u64, published: u64) -> Decision {
        let ReadOrder { writer, sequence, stamp, order } = *taken;
        if !self.ledger.is_own() {
            return Decision::Fenced;
        }
        if stamp.source >= STRATEGIES_MAX || writer >= SUBSCRIBERS_MAX {
            return Decision::NoStrategy;
        }
        if self.ledger.last_sequence(writer).is_some_and(|last| sequence <= last) {
            return Decision::Known;
        }
        let mut in_hand = self.in_hand(taken, now_ns, published);
        let open = in_hand.open_after + u64::from(self.rules.fills == 0);
        match self.judge(&stamp, &order, open, 0) {
            Err(reject) => in_hand.decide(Outcome::Rejected(reject), 0),
            Ok(moved) => {
                let fills = self.rules.fills.min(FILLS_MAX).min(order.quantity);
                if fills == 0 {
                    in_hand.open_after += 1;
                } else {
                    in_hand.position_after = moved;
                }
                in_hand.answers += fills;
                in_hand.decide(Outcome::Accepted, fills);
            }
        }
        self.write(in_hand, td)
    }

    /// Completes an order whose answers are all published. Returns false if another td has taken over.
    pub fn finish(&mut self, pending: &Pending) -> bool {
        let is_own = self.ledger.is_own();
        if is_own {
            self.ledger.enter(&pending.order);
        }
        is_own
    }

    /// Updates the market; needed only for [`Limits::price_deviation_max_per_mille`].
    pub fn on_quote(&mut self, instrument: u32, quote: &Quote) {
        let place = usize::try_from(instrument).ok().and_then(|at| self.market.get_mut(at));
        // Without both sides, the last middle stands.
        if let Some(middle) = place.filter(|_| quote.bid != 0 && quote.ask != 0) {
            *middle = quote.bid.midpoint(quote.ask);
        }
    }

    /// The position's row and its value after all fills, for an accepted order. `open` are the strategy's open orders
    /// then, `in_flight` is what its position will change by before.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn judge(
        &self,
        stamp: &Stamp,
        order: &Order,
        open: u64,
        in_flight: i64,
    ) -> Result<Option<(usize, i64)>, Reject> {
        let limits = &self.rules.limits;
        let is_over = |value: u64, limit: Option<u32>| limit.is_some_and(|limit| value > u64::from(limit));
        if order.number <= self.ledger.last_number(stamp.source) {
            return Err(Reject::DuplicateNumber);
        }
        if stamp.instrument >= self.rules.instruments {
            return Err(Reject::UnknownInstrument);
        }
        if !self.is_good_price(stamp.instrument, order.price) {
            return Err(Reject::BadPrice);
        }
        if order.quantity == 0 || is_over(u64::from(order.quantity), limits.quantity_max) {
            return Err(Reject::BadQuantity);
        }
        if is_over(open, limits.open_orders_max) {
            return Err(Reject::OverLimit);
        }
        let Some((row, position)) = self.moved(stamp, order) else {
            // A position that cannot be stored cannot be limited.
            return if limits.position_max.is_some() { Err(Reject::OverLimit) } else { Ok(None) };
        };
        let at_most = position.saturating_add(in_flight);
        if is_over(at_most.unsigned_abs(), limits.position_max) {
            return Err(Reject::OverLimit);
        }
        Ok(Some((row, position)))
    }

    /// The position's row and its value after an order; `None` if it cannot be stored.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn moved(&self, stamp: &Stamp, order: &Order) -> Option<(usize, i64)> {
        let row = self.ledger.position_row(stamp.source, stamp.instrument)?;
        Some((row, self.ledger.position_at(row).saturating_add(order.side.signed(order.quantity))))
    }

    fn is_good_price(&self, instrument: u32, price: Price) -> bool {
        let limits = &self.rules.limits;
        let middle = usize::try_from(instrument).ok().and_then(|at| self.market.get(at)).copied();
        let is_near = |per_mille: u32| match middle {
            None | Some(0) => true,
            Some(middle) => {
                let far = i128::from(price).abs_diff(i128::from(middle)) * 1000;
                far <= i128::from(middle).unsigned_abs() * u128::from(per_mille)
            }
        };
        price > 0
            && limits.price_max_ten_thousandths.is_none_or(|max| price <= max)
            && limits.price_deviation_max_per_mille.is_none_or(is_near)
    }
}
