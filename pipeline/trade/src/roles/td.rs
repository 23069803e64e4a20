//! td: answers orders, and measures their latency.

use super::{STAGES_AREA, remote::Remote};
use crate::{
    run::tally::{self, Tally},
    stages::{Stage, StageRecorder},
    td::{Decision, Exchange, Limits, Pending, ReadOrder, Rules},
    wire::GatewayAddress,
};
use lowlat_ipc::stream::{Record, Stamp};
use lowlat_node::{
    Event, Join, Keys, MD_STREAM, Memory, Node, ORDERS_PREFIX, Overrun, Publisher, Reads, Refusal,
    STRATEGIES_MAX, StreamName, TD_STREAM, Wait, Writes,
    clock::{monotonic_ns, now_ns},
    ledger::AREA,
    records::{Order, Quote, kind},
    strategy::undecoded,
    strategy::{OWNERS_AREA, Owners},
};

/// Time that td continues after the stop request while orders are pending.
const LAST_ORDERS_NS: u64 = 1_000_000_000;
/// Longest sleep while the exchange has orders to answer: its answers do not wake td, so that nothing is between an
/// order and its send call.
const ANSWERS_NS: u64 = 1_000_000;
/// The same for a td that spins.
const ANSWERS_FAST_NS: u64 = 20_000;
/// The master's command to td after it has halted strategies.
pub const HALT: &str = "halt";
/// Longest sleep with a connection.
const CONNECTION_NS: u64 = 100_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TdOptions {
    pub rules: Rules,
    /// Exchange to which it sends the orders; `None`: it answers them itself.
    pub gateway: Option<GatewayAddress>,
}

/// Result of this process of td. Totals over all its processes are in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TdDone {
    pub orders: u64,
    pub rejected: u64,
    /// Answers to an order that the predecessor had not completed.
    pub finished: u64,
    /// Repeated orders, already answered.
    pub known: u64,
    /// Orders of strategies that do not belong to their sender. They are not answered: the answer would go to
    /// the owner of the number.
    pub foreign: u64,
    /// Records that are not orders, or of no strategy.
    pub not_orders: u64,
    /// Orders lost on the way, as reported by its node.
    pub lost: u64,
    /// Missing numbers in the streams of orders. A strategy's restarted process leaves one unused; more are
    /// lost orders.
    pub missing: u64,
}

/// The request with which td joins. To fill against the run's quotes, it also reads md. For
/// [`Limits::price_deviation_max_per_mille`] alone, the latest quote of each instrument is enough. Without either, no
/// quote wakes td.
pub fn join(capacity_bytes: u64, rules: &Rules, wait: Wait) -> Join {
    // An order without room is refused to its strategy before it is written, rather than lost here.
    let orders = Reads::new(&format!("{ORDERS_PREFIX}*"), Keys::All).with(Overrun::Credit);
    let quotes = Reads::new(MD_STREAM, Keys::All);
    let quotes = match rules.limits.price_deviation_max_per_mille {
        _ if rules.needs_quotes() => Some(quotes),
        limit => limit.map(|_| quotes.with(Overrun::Conflate)),
    };
    Join::new(TD_STREAM, "td")
        .writing(Writes::new(TD_STREAM, capacity_bytes, STRATEGIES_MAX))
        .reading(quotes.into_iter().chain([orders]))
        .waiting(wait)
}

/// Answers orders until it is stopped. First it completes what a previous td had started.
#[inline(never)]
// SAFETY: an executable section, as that of any other code.
#[unsafe(link_section = ".text.hot.wake")]
pub fn run(node: Node, options: &TdOptions) -> Result<TdDone, Refusal> {
    let mut td = Td::new(node, options)?;
    while td.is_open() {
        let until_ns = td.until_ns();
        td.wait(until_ns);
        td.poll()?;
    }
    td.end()
}

pub(super) struct Td {
    pub(super) node: Node,
    gateway: Gateway,
    /// Latest time of its end; `None` before the stop request.
    end_ns: Option<u64>,
    events: usize,
    is_spinning: bool,
}

pub(super) fn taken_over() -> Refusal {
    Refusal::new("another td has taken over")
}

impl Td {
    pub(super) fn new(mut node: Node, options: &TdOptions) -> Result<Self, Refusal> {
        node.must_be_stopped();
        let no_area = |name: &str| {
            Refusal::new(format!(
                "the master has no area {name:?}, which td needs\nhint: start it with the areas that the roles use"
            ))
        };
        let area = node.area(AREA).cloned().ok_or_else(|| no_area(AREA))?;
        let exchange = Exchange::new(area, node.epoch(), options.rules.clone())?;
        let stages = node.area(STAGES_AREA).cloned().and_then(StageRecorder::new);
        let tally = node.area(tally::TD_AREA).cloned().and_then(Tally::new);
        let owners = node.area(OWNERS_AREA).cloned().and_then(Owners::new);
        let owners = owners.ok_or_else(|| no_area(OWNERS_AREA))?;
        let done = TdDone::default();
        let figures = tally.as_ref().map(Tally::gateway).unwrap_or_default();
        let remote = options.gateway.map(|address| Remote::open(address, figures)).transpose()?;
        let Limits { position_max, open_orders_max, .. } = options.rules.limits;
        let is_limited = position_max.is_some() || open_orders_max.is_some();
        let td = node.number();
        let mut gateway =
            Gateway { exchange, owners, stages, tally, td, foreign: None, done, remote, is_limited };
        gateway.finish_what_is_left(node.publisher())?;
        let is_spinning = node.waits() == Wait::Fast;
        Ok(Self { node, gateway, end_ns: None, events: 0, is_spinning })
    }

    /// True while td continues. Orders from before the stop request are answered.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        let is_busy = self.events > 0
            || self.gateway.exchange.arrives_ns().is_some()
            || self.gateway.remote.as_ref().is_some_and(Remote::is_busy);
        self.end_ns.is_none_or(|end_ns| is_busy && monotonic_ns() < end_ns)
    }

    /// The latest end of its next wait, so that the exchange's answers are read.
    fn until_ns(&mut self) -> Option<u64> {
        let remote = self.gateway.remote.as_mut()?;
        let slice_ns = match (remote.is_busy(), self.is_spinning) {
            (true, true) => ANSWERS_FAST_NS,
            (true, false) => ANSWERS_NS,
            (false, _) => {
                remote.connection.clock.check();
                CONNECTION_NS
            }
        };
        Some(now_ns() + slice_ns)
    }

    /// Sleeps or spins until something is available, or has arrived at the simulated exchange, or until that time. After
    /// the stop request it only waits for what is to arrive.
    pub(super) fn wait(&mut self, until_ns: Option<u64>) {
        let arrives_ns = self.gateway.exchange.arrives_ns();
        if self.end_ns.is_none() || arrives_ns.is_some() {
            self.node.wait(arrives_ns.into_iter().chain(until_ns).min());
        }
    }

    /// Answers what is available, and never blocks. Returns the number of events.
    #[inline]
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub(super) fn poll(&mut self) -> Result<usize, Refusal> {
        let (mut failed, gateway, end_ns) = (None, &mut self.gateway, &mut self.end_ns);
        self.events = self.node.poll(&mut |publisher, event| {
            if failed.is_none() {
                failed = gateway.hear(publisher, &event, end_ns).err();
            }
        });
        if self.gateway.remote.is_some() && failed.is_none() {
            match self.gateway.poll_remote(self.node.publisher()) {
                Ok(messages) => self.events += messages,
                Err(error) => failed = Some(error),
            }
            if let Some(words) = self.gateway.remote.as_mut().and_then(|remote| remote.said.take()) {
                self.node.say(&words);
            }
        }
        if failed.is_none() && self.gateway.has_book_work() {
            failed = self.gateway.continue_book(self.node.publisher()).err();
        }
        if let Some((strategy, stream)) = self.gateway.foreign.take() {
            self.node.say(&format!(
                "{stream} sends orders of strategy {strategy}, which its node has not claimed; they are not answered"
            ));
        }
        failed.map_or(Ok(self.events), Err)
    }

    /// Leaves its master.
    pub(super) fn end(mut self) -> Result<TdDone, Refusal> {
        if let (Some(remote), Some(tally)) = (&mut self.gateway.remote, &self.gateway.tally) {
            remote.connection.forget_trips();
            remote.show(tally);
        }
        self.node.result(self.gateway.done)
    }
}

/// The exchange with its node and counters.
pub(super) struct Gateway {
    pub(super) exchange: Exchange<Memory>,
    owners: Owners<Memory>,
    pub(super) stages: Option<StageRecorder<Memory>>,
    pub(super) tally: Option<Tally<Memory>>,
    pub(super) td: u32,
    /// The strategy and stream of a refused order, until it is reported to the master.
    foreign: Option<(u32, StreamName)>,
    pub(super) done: TdDone,
    /// The exchange of another process.
    pub(super) remote: Option<Remote>,
    /// Limits depend on orders in flight.
    pub(super) is_limited: bool,
}

impl Gateway {
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    #[inline(never)]
    fn hear(
        &mut self,
        publisher: &mut Publisher,
        event: &Event<'_>,
        end_ns: &mut Option<u64>,
    ) -> Result<(), Refusal> {
        match *event {
            Event::Record { stream, record, payload } if stream.as_str() == MD_STREAM => {
                return self.quote(publisher, stream.as_str(), record, payload);
            }
            Event::Record { stream, record, payload } => {
                return self.take(publisher, stream, record, payload);
            }
            // After a lost quote, the market stays at the previous one.
            Event::Lost { stream, .. } if stream.as_str() == MD_STREAM => {}
            Event::Lost { count, .. } => self.done.lost += count,
            Event::Stop => *end_ns = Some(monotonic_ns() + LAST_ORDERS_NS),
            Event::Begin => self.remote.iter_mut().for_each(Remote::start),
            Event::Command(HALT) => {
                self.exchange.on_halt();
                self.remote.iter_mut().for_each(Remote::halt);
            }
            _ => {}
        }
        Ok(())
    }

    fn finish_what_is_left(&mut self, publisher: &mut Publisher) -> Result<(), Refusal> {
        if let Some(pending) = self.exchange.recover(self.td, publisher.published())? {
            self.done.finished = u64::try_from(pending.answers().count()).unwrap_or(u64::MAX);
            self.answer(publisher, &pending)?;
        }
        Ok(())
    }

    /// True if [`Gateway::continue_book`] may have something to do.
    #[inline]
    fn has_book_work(&self) -> bool {
        self.remote.is_none() && (self.exchange.arrives_ns().is_some() || self.exchange.has_next())
    }

    /// Decides what has arrived at the simulated exchange, and publishes what the last quote or a halt leads to.
    fn continue_book(&mut self, publisher: &mut Publisher) -> Result<(), Refusal> {
        while self.exchange.arrives_ns().is_some() {
            match self.exchange.arrive(self.td, now_ns(), publisher.published())? {
                Some(Decision::Answers(pending)) => self.answer(publisher, &pending)?,
                Some(_) => return Err(taken_over()),
                None => break,
            }
        }
        while self.exchange.has_next() {
            match self.exchange.next(self.td, publisher.published()) {
                Some(Decision::Answers(pending)) => self.publish(publisher, &pending)?,
                Some(_) => return Err(taken_over()),
                None => break,
            }
        }
        Ok(())
    }

    /// The market.
    fn quote(
        &mut self,
        publisher: &mut Publisher,
        stream: &str,
        record: &Record,
        payload: &[u8],
    ) -> Result<(), Refusal> {
        if record.stamp.kind != kind::QUOTE {
            return Ok(());
        }
        let quote = Quote::decode(payload).map_err(|error| undecoded(stream, record.sequence, &error))?;
        // What has arrived before it was decided by the quote before.
        if self.has_book_work() {
            self.continue_book(publisher)?;
        }
        self.exchange.on_quote(record.stamp.instrument, &quote);
        if self.has_book_work() { self.continue_book(publisher) } else { Ok(()) }
    }

    #[inline]
    fn take(
        &mut self,
        publisher: &mut Publisher,
        stream: &StreamName,
        record: &Record,
        payload: &[u8],
    ) -> Result<(), Refusal> {
        let (now, writer) = (now_ns(), stream.writer());
        let order = match Order::decode(payload) {
            Ok(order) if record.stamp.kind == kind::ORDER => order,
            _ => {
                self.refuse_other();
                return Ok(());
            }
        };
        if !self.owners.has(writer, record.stamp.source) {
            self.refuse(stream, record.stamp.source);
            return Ok(());
        }
        let taken = ReadOrder { writer, sequence: record.sequence, stamp: record.stamp, order };
        if self.remote.is_some() {
            return self.forward(publisher, &taken, now);
        }
        if let Some(last) = self.exchange.ledger().last_sequence(writer) {
            self.done.missing += record.sequence.saturating_sub(last + 1);
        }
        match self.exchange.begin(self.td, &taken, now, publisher.published()) {
            Decision::Answers(pending) => {
                self.answer(publisher, &pending)?;
                self.count(now, &record.stamp, &order);
            }
            Decision::Later => self.count(now, &record.stamp, &order),
            Decision::Known => self.done.known += 1,
            Decision::NoStrategy => self.refuse_other(),
            Decision::Fenced => return Err(taken_over()),
        }
        Ok(())
    }

    /// Counts an order of a strategy that does not belong to its sender.
    #[cold]
    fn refuse(&mut self, stream: &StreamName, strategy: u32) {
        // Reported once: a sender with a wrong number uses it in all its orders.
        if self.done.foreign == 0 {
            self.foreign = Some((strategy, stream.clone()));
        }
        self.done.foreign += 1;
        self.tally.iter().for_each(Tally::refused_foreign);
    }

    /// Counts a record that is no order.
    #[cold]
    fn refuse_other(&mut self) {
        self.done.not_orders += 1;
        self.tally.iter().for_each(Tally::refused_other);
    }

    pub(super) fn answer(&mut self, publisher: &mut Publisher, pending: &Pending) -> Result<(), Refusal> {
        self.publish(publisher, pending)?;
        self.done.orders += u64::from(pending.is_of_request());
        self.done.rejected += u64::from(pending.is_rejected());
        Ok(())
    }

    /// Publishes the answers of an order, and completes it. All of them take one wake of the strategy.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub(super) fn publish(&mut self, publisher: &mut Publisher, pending: &Pending) -> Result<(), Refusal> {
        let mut answers = pending.answers().peekable();
        while let Some((stamp, answer)) = answers.next() {
            let stamp = Stamp { generated: now_ns(), ..stamp };
            let is_last = answers.peek().is_none();
            publisher.publish_waking(&stamp, &answer.encode(), is_last).map_err(Refusal::of)?;
        }
        if self.exchange.finish(pending) { Ok(()) } else { Err(taken_over()) }
    }

    pub(super) fn count(&self, now: u64, stamp: &Stamp, order: &Order) {
        let Some(stages) = &self.stages else { return };
        let latencies = [
            (Stage::Md, order.received_ns.saturating_sub(stamp.trigger)),
            (Stage::Order, now.saturating_sub(stamp.generated)),
            (Stage::T2o, now.saturating_sub(stamp.trigger)),
            (Stage::T2oScheduled, now.saturating_sub(order.scheduled_ns)),
        ];
        for (stage, latency_ns) in latencies {
            stages.record(stage, latency_ns);
        }
    }
}
