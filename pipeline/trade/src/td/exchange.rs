//! The simulated exchange.

use super::{
    book::{BookRules, Market, OpenOrders},
    ledger::{InHand, LedgerWriter},
};
use lowlat_ipc::{interest::SUBSCRIBERS_MAX, region::Region, stream::Stamp};
use lowlat_node::{
    Refusal, STRATEGIES_MAX,
    ledger::{Ledger, OPEN_WORDS, OpenOrder},
    records::{Answer, Order, OrderAction, OrderType, Outcome, Price, Quote, Reject, SCHEMA, Side, kind},
};

/// Maximum number of fills per order.
pub const FILLS_MAX: u32 = 16;
/// Length of the window in which requests are counted.
const SECOND_NS: u64 = 1_000_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Known instruments: numbers below this.
    pub instruments: u32,
    pub matching: Matching,
    pub limits: Limits,
}

/// How accepted orders are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    /// At once and whole, at their own price, in up to this many parts, at most [`FILLS_MAX`]; 0: they stay open. For
    /// measurements of latency, and for tests.
    AtOnce(u32),
    /// Against the quotes of the run.
    Quotes(BookRules),
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
    /// Position of a strategy in an instrument, bought or sold, if all its open orders of that side were filled.
    pub position_max: Option<u32>,
    /// Orders of a strategy that are accepted and not filled.
    pub open_orders_max: Option<u32>,
    /// New orders and replaces of a strategy, in each second after the first one.
    pub orders_per_s_max: Option<u32>,
}

impl Rules {
    /// True if td needs every quote.
    pub fn needs_quotes(&self) -> bool {
        matches!(self.matching, Matching::Quotes(_))
    }

    fn book(&self) -> BookRules {
        match self.matching {
            Matching::Quotes(rules) => rules,
            Matching::AtOnce(_) => BookRules::default(),
        }
    }
}

/// The exchange with its ledger. Allocates nothing and makes no system call per order.
#[derive(Debug)]
pub struct Exchange<R> {
    ledger: LedgerWriter<R>,
    rules: Rules,
    /// By instrument.
    market: Vec<Market>,
    open: OpenOrders,
    /// The next open order that the last quote of an instrument may fill.
    sweep: Option<(u32, usize)>,
    /// The next row whose order is cancelled if its strategy is halted.
    halting: usize,
    /// Of each strategy: start of its second, and requests in it. Empty without the limit.
    rates: Vec<(u64, u32)>,
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
    /// It is on its way to the exchange; [`Exchange::arrive`] answers it.
    Later,
    /// It was already answered: it was read again after a restart.
    Known,
    /// It cannot be answered: no strategy has that number.
    NoStrategy,
    /// Another td has taken over.
    Fenced,
}

/// Answers to be published, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    decided: InHand,
    /// The first of its answers to be published.
    first: u32,
    td: u32,
}

impl Pending {
    /// True if an order is rejected.
    pub fn is_rejected(&self) -> bool {
        matches!(self.decided.outcome, Some(Outcome::Rejected(_)))
    }

    /// True if they answer a request.
    pub fn is_of_request(&self) -> bool {
        self.decided.outcome.is_some()
    }

    /// Its answers; their stamps lack only the time of writing.
    pub fn answers(&self) -> impl Iterator<Item = (Stamp, Answer)> + use<> {
        let pending = *self;
        (self.first..self.decided.answers()).map(move |number| pending.answer(number))
    }

    fn answer(&self, number: u32) -> (Stamp, Answer) {
        let InHand { taken, outcome, fills, filled, fill_price, cancelled, .. } = &self.decided;
        let ReadOrder { stamp, order, .. } = taken;
        let own = (order.price, order.quantity);
        let (outcome, (price, quantity)) = match (outcome, number.checked_sub(u32::from(outcome.is_some()))) {
            (Some(outcome), None) => (*outcome, own),
            (_, Some(fill)) if fill < *fills => (Outcome::Filled, (*fill_price, part(*filled, fill, *fills))),
            _ => (Outcome::Cancelled, (order.price, *cancelled)),
        };
        let answer = Answer {
            order_number: order.number,
            outcome,
            received_ns: self.decided.read_ns,
            price,
            quantity,
            instrument: stamp.instrument,
            side: order.side,
        };
        let stamp = Stamp {
            kind: kind::ANSWER,
            schema: SCHEMA,
            instrument: stamp.source,
            source: self.td,
            generated: 0,
            trigger: stamp.generated,
            cause: taken.sequence,
        };
        (stamp, answer)
    }
}

impl InHand {
    fn answers(&self) -> u32 {
        u32::from(self.outcome.is_some()) + self.fills + u32::from(self.cancelled > 0)
    }

    /// Enters the answer to a request.
    fn decide(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        self.answered_of_after += 1;
        self.totals_after.answered += 1;
        self.totals_after.rejected += u64::from(matches!(outcome, Outcome::Rejected(_)));
    }

    /// Enters that what is left is cancelled, without a request.
    fn cancel(&mut self, left: u32) {
        self.cancelled = left;
        self.totals_after.cancelled += u64::from(left > 0);
    }
}

/// Part `number` of a quantity that is split as evenly as possible; the parts add up to it.
fn part(quantity: u32, number: u32, parts: u32) -> u32 {
    let [size, more] =
        [quantity.checked_div(parts), quantity.checked_rem(parts)].map(Option::unwrap_or_default);
    size + u32::from(number < more)
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl<R: Region> Exchange<R> {
    /// An exchange with a ledger, as td process number `epoch` under its name.
    pub fn new(region: R, epoch: u64, rules: Rules) -> Result<Self, Refusal> {
        let ledger = LedgerWriter::open(region, epoch)?;
        let strategies = rules.limits.orders_per_s_max.map_or(0, |_| index(STRATEGIES_MAX));
        Ok(Self {
            market: vec![Market::default(); index(rules.instruments)],
            open: OpenOrders::of(ledger.read(), rules.instruments),
            sweep: None,
            // A predecessor may have died while it cancelled.
            halting: 0,
            rates: vec![(0, 0); strategies],
            ledger,
            rules,
        })
    }

    pub fn ledger(&self) -> &Ledger<R> {
        self.ledger.read()
    }

    /// Returns the answers that the previous td had decided and not published, if any. `published`, the number of
    /// records that all of them have published, shows how many are left. They must be published before anything else,
    /// followed by [`Exchange::finish`], even if none is left. `td` is this node's number.
    pub fn recover(&self, td: u32, published: u64) -> Result<Option<Pending>, Refusal> {
        let Some(decided) = self.ledger.in_hand()? else { return Ok(None) };
        let of_it = published.saturating_sub(decided.first_answer);
        let first = u32::try_from(of_it).unwrap_or(u32::MAX).min(decided.answers());
        Ok(Some(Pending { decided, first, td }))
    }

    /// Checks a request that the exchange of another process decides. `in_flight` are the strategy's unanswered orders,
    /// and the position that all of its orders in flight add up to. `changed` are the side, the filled quantity and what is
    /// left of the order that it changes.
    pub fn check(
        &mut self,
        taken: &ReadOrder,
        in_flight: (u64, i64),
        changed: Option<(Side, u32, u32)>,
        now_ns: u64,
    ) -> Result<(), Reject> {
        let ReadOrder { stamp, order, .. } = taken;
        if order.action == OrderAction::New {
            let open = self.ledger().open_count(stamp.source) + in_flight.0 + 1;
            self.judge_new(stamp, order, now_ns)?;
            return self.judge_exposure(stamp, order, order.quantity, open, in_flight.1);
        }
        let (side, filled, left) = changed.ok_or(Reject::UnknownOrder)?;
        if order.action == OrderAction::Cancel {
            return Ok(());
        }
        let order = Order { side, order_type: OrderType::Limit, ..*order };
        self.judge_order(stamp, &order, now_ns)?;
        if order.quantity <= filled {
            return Err(Reject::BadQuantity);
        }
        let others = in_flight.1.saturating_sub(side.signed(left));
        self.judge_exposure(stamp, &order, order.quantity - filled, 0, others)
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
        let mut decided = self.in_hand(taken, read_ns, published);
        let done = verdict.and_then(|()| match taken.order.action {
            OrderAction::New => {
                decided.decide(Outcome::Accepted);
                if let Some(row) = self.open.free_row() {
                    self.rest(&mut decided, row, opened(taken, read_ns, published));
                }
                Ok(())
            }
            OrderAction::Cancel => self.decide_cancel(&mut decided),
            OrderAction::Replace => self.settle_replace(&mut decided),
        });
        if let Err(reject) = done {
            decided.decide(refused(&taken.order, reject));
        }
        self.write(&decided, td)
    }

    fn settle_replace(&self, decided: &mut InHand) -> Result<(), Reject> {
        let ReadOrder { stamp, order, .. } = decided.taken;
        let (row, open) = self.find(&stamp, order.number).ok_or(Reject::UnknownOrder)?;
        decided.taken.order.side = open.side;
        decided.decide(Outcome::Replaced);
        self.rest(decided, row, OpenOrder { price: order.price, quantity: order.quantity, ..open });
        Ok(())
    }

    /// Writes to the ledger that another process's exchange has cancelled what is left of an order that does not rest.
    pub fn lapse(&mut self, td: u32, taken: &ReadOrder, left: u32, read_ns: u64, published: u64) -> Decision {
        let mut decided = self.in_hand(taken, read_ns, published);
        decided.cancel(left);
        if let Some((row, _)) = self.find(&taken.stamp, taken.order.number) {
            self.close(&mut decided, row);
        }
        self.write(&decided, td)
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
        let mut decided = self.in_hand(taken, read_ns, published);
        let (quantity, price) = fill;
        self.enter_fills(&mut decided, &taken.order, (1, quantity, price));
        if let Some((row, order)) = self.find(&taken.stamp, taken.order.number) {
            if is_last {
                self.close(&mut decided, row);
            } else {
                let filled = order.filled.saturating_add(quantity);
                self.rest(&mut decided, row, OpenOrder { filled, ..order });
            }
        }
        self.write(&decided, td)
    }

    /// A decision about this request that changes nothing.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn in_hand(&self, taken: &ReadOrder, read_ns: u64, published: u64) -> InHand {
        let ReadOrder { writer, sequence, stamp, order } = taken;
        let ledger = self.ledger();
        InHand {
            first_answer: published,
            taken: *taken,
            read_ns,
            outcome: None,
            fills: 0,
            filled: 0,
            fill_price: 0,
            cancelled: 0,
            // Answers may come in another order than the requests.
            sequence_after: ledger.last_sequence(*writer).map_or(*sequence, |last| last.max(*sequence)),
            number_after: ledger.last_number(stamp.source).max(order.number),
            open_after: ledger.open_count(stamp.source),
            position_after: None,
            answered_of_after: ledger.answered_of(*writer),
            arrived_after: ledger.word(lowlat_node::ledger::words::ARRIVED),
            totals_after: ledger.totals(),
            row_after: None,
        }
    }

    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn write(&self, decided: &InHand, td: u32) -> Decision {
        if !self.ledger.is_own() {
            return Decision::Fenced;
        }
        self.ledger.take_in_hand(decided);
        Decision::Answers(Pending { decided: *decided, first: 0, td })
    }

    /// Decides a request, or puts it on its way. The ledger then has the decision. `published` is the number of records
    /// in td's stream so far, `now_ns` when the request had been read.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub fn begin(&mut self, td: u32, taken: &ReadOrder, now_ns: u64, published: u64) -> Decision {
        let ReadOrder { writer, sequence, stamp, .. } = taken;
        if !self.ledger.is_own() {
            return Decision::Fenced;
        }
        if stamp.source >= STRATEGIES_MAX || *writer >= SUBSCRIBERS_MAX {
            return Decision::NoStrategy;
        }
        if self.ledger().last_sequence(*writer).is_some_and(|last| *sequence <= last) {
            return Decision::Known;
        }
        if self.rules.book().latency_ns > 0 {
            return self.put_on_its_way(td, taken, now_ns, published);
        }
        self.decide(td, taken, now_ns, published, false)
    }

    #[cold]
    fn put_on_its_way(&mut self, td: u32, taken: &ReadOrder, now_ns: u64, published: u64) -> Decision {
        if self.ledger.has_sent_last(taken) {
            // A predecessor died before it entered that it had read it.
            self.ledger.mark_read(taken);
            return Decision::Known;
        }
        if self.ledger.send(taken, now_ns) {
            return Decision::Later;
        }
        // Too many are on their way.
        let mut decided = self.in_hand(taken, now_ns, published);
        decided.decide(refused(&taken.order, Reject::OverLimit));
        self.write(&decided, td)
    }

    /// When the next request arrives, ns.
    #[inline]
    pub fn arrives_ns(&self) -> Option<u64> {
        let latency_ns = self.rules.book().latency_ns;
        if latency_ns == 0 { None } else { Some(self.ledger.first_read_ns()?.saturating_add(latency_ns)) }
    }

    /// Decides the next request that has arrived by now.
    pub fn arrive(&mut self, td: u32, now_ns: u64, published: u64) -> Result<Option<Decision>, Refusal> {
        if self.arrives_ns().is_none_or(|arrives_ns| arrives_ns > now_ns) {
            return Ok(None);
        }
        let Some((taken, read_ns)) = self.ledger.first_on_the_way()? else { return Ok(None) };
        Ok(Some(self.decide(td, &taken, read_ns, published, true)))
    }

    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn decide(
        &mut self,
        td: u32,
        taken: &ReadOrder,
        read_ns: u64,
        published: u64,
        has_arrived: bool,
    ) -> Decision {
        let mut decided = self.in_hand(taken, read_ns, published);
        decided.arrived_after += u64::from(has_arrived);
        let refusal = match taken.order.action {
            OrderAction::New => self.decide_new(&mut decided),
            OrderAction::Cancel => self.decide_cancel(&mut decided),
            OrderAction::Replace => self.decide_replace(&mut decided),
        };
        if let Err(reject) = refusal {
            decided.decide(refused(&taken.order, reject));
        }
        self.write(&decided, td)
    }

    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn decide_new(&mut self, decided: &mut InHand) -> Result<(), Reject> {
        let ReadOrder { stamp, order, .. } = decided.taken;
        self.judge_new(&stamp, &order, decided.read_ns)?;
        let exposed = self.open_quantity(&stamp, &order);
        let fills_whole = matches!(self.rules.matching, Matching::AtOnce(1..));
        let open = decided.open_after + u64::from(!fills_whole);
        self.judge_exposure(&stamp, &order, order.quantity, open, exposed)?;
        let free_row = self.open.free_row();
        if free_row.is_none() && !fills_whole {
            return Err(Reject::OverLimit);
        }
        decided.decide(Outcome::Accepted);
        let left = order.quantity - self.trade(decided, &order, order.quantity);
        match free_row {
            _ if left == 0 => {}
            Some(row) if order.order_type == OrderType::Limit => {
                let mut opened = opened(&decided.taken, decided.read_ns, decided.first_answer);
                opened.filled = order.quantity - left;
                opened.queue = self.queue(&opened);
                self.rest(decided, row, opened);
            }
            _ => decided.cancel(left),
        }
        Ok(())
    }

    fn decide_cancel(&mut self, decided: &mut InHand) -> Result<(), Reject> {
        let ReadOrder { stamp, order, .. } = decided.taken;
        let (row, open) = self.find(&stamp, order.number).ok_or(Reject::UnknownOrder)?;
        let order = &mut decided.taken.order;
        (order.price, order.quantity, order.side) = (open.price, open.left(), open.side);
        decided.decide(Outcome::Cancelled);
        self.close(decided, row);
        Ok(())
    }

    fn decide_replace(&mut self, decided: &mut InHand) -> Result<(), Reject> {
        let ReadOrder { stamp, order, .. } = decided.taken;
        let (row, open) = self.find(&stamp, order.number).ok_or(Reject::UnknownOrder)?;
        let order = Order { side: open.side, order_type: OrderType::Limit, ..order };
        decided.taken.order.side = open.side;
        self.judge_order(&stamp, &order, decided.read_ns)?;
        if order.quantity <= open.filled {
            return Err(Reject::BadQuantity);
        }
        let wanted = order.quantity - open.filled;
        let others = self.open_quantity(&stamp, &order).saturating_sub(open.side.signed(open.left()));
        self.judge_exposure(&stamp, &order, wanted, 0, others)?;
        decided.decide(Outcome::Replaced);
        let traded = self.trade(decided, &order, wanted);
        let mut replaced = OpenOrder { price: order.price, quantity: order.quantity, ..open };
        replaced.filled += traded;
        // It keeps its turn if it asks for no more at the same price.
        if order.price != open.price || order.quantity > open.quantity {
            replaced.turn = decided.first_answer;
            replaced.queue = self.queue(&replaced);
        }
        self.rest(decided, row, replaced);
        Ok(())
    }

    /// What an arriving order trades at once. Returns the quantity.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn trade(&mut self, decided: &mut InHand, order: &Order, wanted: u32) -> u32 {
        let (fills, quantity, price) = match self.rules.matching {
            Matching::AtOnce(0) => return 0,
            Matching::AtOnce(parts) => (parts.min(FILLS_MAX).min(wanted), wanted, order.price),
            Matching::Quotes(_) => {
                let market = self.market.get_mut(index(decided.taken.stamp.instrument));
                let (quantity, price) = market.map_or((0, 0), |market| market.take(order, wanted));
                (u32::from(quantity > 0), quantity, price)
            }
        };
        if quantity > 0 {
            self.enter_fills(decided, order, (fills, quantity, price));
        }
        quantity
    }

    /// Enters fills of an order, the quantity that they add up to and their price, and the position after them.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn enter_fills(&self, decided: &mut InHand, order: &Order, fill: (u32, u32, Price)) {
        (decided.fills, decided.filled, decided.fill_price) = fill;
        decided.totals_after.fills += u64::from(decided.fills);
        decided.position_after = self.moved(&decided.taken.stamp, order, decided.filled);
    }

    fn queue(&mut self, order: &OpenOrder) -> Option<u64> {
        let Matching::Quotes(rules) = self.rules.matching else { return None };
        self.market.get_mut(index(order.instrument))?.queue(order.side, order.price, &rules)
    }

    /// Enters an order in a row, or closes it if nothing is left.
    fn rest(&self, decided: &mut InHand, row: usize, order: OpenOrder) {
        if order.left() == 0 {
            return self.close(decided, row);
        }
        decided.open_after += u64::from(self.ledger.open_at(row).is_none());
        decided.row_after = Some((row, order.encode()));
    }

    fn close(&self, decided: &mut InHand, row: usize) {
        let was_open = self.ledger.open_at(row).is_some();
        decided.open_after = decided.open_after.saturating_sub(u64::from(was_open));
        decided.row_after = Some((row, [0; OPEN_WORDS]));
    }

    /// The open order of a strategy with this number.
    fn find(&self, stamp: &Stamp, number: u64) -> Option<(usize, OpenOrder)> {
        let rows = self.open.rows(stamp.instrument);
        let mut orders = rows.filter_map(|row| Some((row, self.ledger.open_at(row)?)));
        orders.find(|(_, order)| (order.strategy, order.number) == (stamp.source, number))
    }

    /// Completes a decision whose answers are all published. Returns false if another td has taken over.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub fn finish(&mut self, pending: &Pending) -> bool {
        if !self.ledger.is_own() {
            return false;
        }
        let Some((row, words)) = &pending.decided.row_after else {
            self.ledger.enter(&pending.decided);
            return true;
        };
        let was = self.ledger.open_at(*row);
        self.ledger.enter(&pending.decided);
        self.open.change(*row, was.as_ref(), OpenOrder::decode(words).as_ref());
        true
    }

    /// Updates the market. [`Exchange::next`] returns what it fills.
    pub fn on_quote(&mut self, instrument: u32, quote: &Quote) {
        let rules = self.rules.book();
        let Some(market) = self.market.get_mut(index(instrument)) else { return };
        market.update(quote, &rules);
        if self.rules.needs_quotes() {
            self.sweep = self.open.first(instrument).map(|row| (instrument, row));
        }
    }

    /// The master has halted strategies: [`Exchange::next`] cancels their open orders. New ones are rejected anyway.
    pub fn on_halt(&mut self) {
        self.halting = 0;
    }

    /// True if [`Exchange::next`] may return something.
    #[inline]
    pub fn has_next(&self) -> bool {
        self.sweep.is_some() || self.halting < self.ledger().rows()
    }

    /// The next open order that the last quote fills, or that is cancelled because its strategy is halted.
    pub fn next(&mut self, td: u32, published: u64) -> Option<Decision> {
        if let Matching::Quotes(rules) = self.rules.matching {
            while let Some((instrument, row)) = self.sweep {
                self.sweep = self.open.next(row).map(|row| (instrument, row));
                let Some(order) = self.ledger.open_at(row) else { continue };
                let Some(market) = self.market.get_mut(index(instrument)) else { continue };
                let (quantity, queue) = market.fill(&order, &rules);
                if quantity > 0 {
                    let taken = sent(&order);
                    let mut decided = self.in_hand(&taken, order.read_ns, published);
                    self.enter_fills(&mut decided, &taken.order, (1, quantity, order.price));
                    self.rest(
                        &mut decided,
                        row,
                        OpenOrder { filled: order.filled + quantity, queue, ..order },
                    );
                    return Some(self.write(&decided, td));
                }
                if let Some(queue) = queue.filter(|_| queue != order.queue) {
                    self.ledger.set_queue(row, queue);
                }
            }
        }
        while self.halting < self.ledger().rows() {
            let row = self.halting;
            self.halting += 1;
            let is_halted = |order: &OpenOrder| self.ledger().is_halted(order.strategy);
            let Some(order) = self.ledger.open_at(row).filter(is_halted) else { continue };
            let mut decided = self.in_hand(&sent(&order), order.read_ns, published);
            decided.cancel(order.left());
            self.close(&mut decided, row);
            return Some(self.write(&decided, td));
        }
        None
    }

    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn judge_new(&mut self, stamp: &Stamp, order: &Order, read_ns: u64) -> Result<(), Reject> {
        if order.number <= self.ledger().last_number(stamp.source) {
            return Err(Reject::DuplicateNumber);
        }
        self.judge_order(stamp, order, read_ns)
    }

    /// Checks a new order or a replace, except for what it adds to.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn judge_order(&mut self, stamp: &Stamp, order: &Order, read_ns: u64) -> Result<(), Reject> {
        if self.ledger().is_halted(stamp.source) {
            return Err(Reject::Halted);
        }
        if self.is_too_fast(stamp.source, read_ns) {
            return Err(Reject::TooFast);
        }
        if stamp.instrument >= self.rules.instruments {
            return Err(Reject::UnknownInstrument);
        }
        // In a book, a market order has no price of its own.
        let has_price = order.order_type != OrderType::Market || !self.rules.needs_quotes();
        if has_price && !self.is_good_price(stamp.instrument, order.price) {
            return Err(Reject::BadPrice);
        }
        if order.quantity == 0 || is_over(u64::from(order.quantity), self.rules.limits.quantity_max) {
            return Err(Reject::BadQuantity);
        }
        Ok(())
    }

    /// Checks what an order adds to: `open` are the strategy's open orders then, `exposed` the position that its open
    /// orders of the same side, or those in flight, add up to.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn judge_exposure(
        &self,
        stamp: &Stamp,
        order: &Order,
        quantity: u32,
        open: u64,
        exposed: i64,
    ) -> Result<(), Reject> {
        let limits = &self.rules.limits;
        if is_over(open, limits.open_orders_max) {
            return Err(Reject::OverLimit);
        }
        if limits.position_max.is_none() {
            return Ok(());
        }
        // A position that cannot be stored cannot be limited.
        let (_, position) = self.moved(stamp, order, quantity).ok_or(Reject::OverLimit)?;
        let at_most = position.saturating_add(exposed);
        if is_over(at_most.unsigned_abs(), limits.position_max) { Err(Reject::OverLimit) } else { Ok(()) }
    }

    /// The position that the strategy's open orders of the same side add up to; 0 if nothing depends on it.
    fn open_quantity(&self, stamp: &Stamp, order: &Order) -> i64 {
        if self.rules.limits.position_max.is_none() {
            return 0;
        }
        let rows = self.open.rows(stamp.instrument).filter_map(|row| self.ledger.open_at(row));
        let its = rows.filter(|open| (open.strategy, open.side) == (stamp.source, order.side));
        its.map(|open| open.side.signed(open.left())).fold(0, i64::saturating_add)
    }

    /// Counts a request; true if it is one too many.
    fn is_too_fast(&mut self, strategy: u32, read_ns: u64) -> bool {
        let Some((since_ns, count)) = self.rates.get_mut(index(strategy)) else { return false };
        if read_ns.saturating_sub(*since_ns) >= SECOND_NS {
            (*since_ns, *count) = (read_ns, 0);
        }
        *count = count.saturating_add(1);
        is_over(u64::from(*count), self.rules.limits.orders_per_s_max)
    }

    /// The position's row and its value after this quantity; `None` if it cannot be stored.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn moved(&self, stamp: &Stamp, order: &Order, quantity: u32) -> Option<(usize, i64)> {
        let row = self.ledger().position_row(stamp.source, stamp.instrument)?;
        Some((row, self.ledger().position_at(row).saturating_add(order.side.signed(quantity))))
    }

    fn is_good_price(&self, instrument: u32, price: Price) -> bool {
        let limits = &self.rules.limits;
        let middle = self.market.get(index(instrument)).map_or(0, |market| market.middle);
        let is_near = |per_mille: u32| {
            let far = i128::from(price).abs_diff(i128::from(middle)) * 1000;
            middle == 0 || far <= i128::from(middle).unsigned_abs() * u128::from(per_mille)
        };
        price > 0
            && limits.price_max_ten_thousandths.is_none_or(|max| price <= max)
            && limits.price_deviation_max_per_mille.is_none_or(is_near)
    }
}

fn is_over(value: u64, limit: Option<u32>) -> bool {
    limit.is_some_and(|limit| value > u64::from(limit))
}

/// The answer that refuses a request.
fn refused(order: &Order, reject: Reject) -> Outcome {
    match order.action {
        OrderAction::New => Outcome::Rejected(reject),
        OrderAction::Cancel | OrderAction::Replace => Outcome::NotChanged(reject),
    }
}

/// An order that starts to be open.
fn opened(taken: &ReadOrder, read_ns: u64, turn: u64) -> OpenOrder {
    let ReadOrder { writer, sequence, stamp, order } = taken;
    OpenOrder {
        strategy: stamp.source,
        instrument: stamp.instrument,
        number: order.number,
        price: order.price,
        quantity: order.quantity,
        filled: 0,
        side: order.side,
        writer: *writer,
        sequence: *sequence,
        generated_ns: stamp.generated,
        read_ns,
        queue: None,
        turn,
    }
}

/// An open order as td had read it.
fn sent(order: &OpenOrder) -> ReadOrder {
    let OpenOrder {
        strategy, instrument, number, price, quantity, side, writer, sequence, generated_ns, ..
    } = *order;
    let stamp = Stamp {
        instrument,
        source: strategy,
        generated: generated_ns,
        kind: kind::ORDER,
        schema: SCHEMA,
        ..Stamp::default()
    };
    ReadOrder { writer, sequence, stamp, order: Order { number, price, quantity, side, ..Order::default() } }
}
