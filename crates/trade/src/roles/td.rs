//! td: answers orders, and counts how long they took to come.

use super::{ORDERS_PREFIX, RoleError, STAGES_AREA, STRATEGIES_MAX, StageSink, TD_STREAM};
use crate::{
    clock::now_ns,
    node::{Event, Join, Keys, Node, Publisher, Reads, Wait, Writes},
    records::{Order, kind},
    run::tally::{self, Tally},
    stages::{Stage, StageRecorder},
    td::{Begun, Exchange, Pending, Rules, Taken, ledger::AREA},
};
use lowlat_ipc::{
    region::{Memfd, Region},
    stream::{Record, Stamp},
};
use std::sync::Arc;

/// How long td goes on after the word to end while orders are there.
const LAST_ORDERS_NS: u64 = 1_000_000_000;

/// What td does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TdOptions {
    /// How it answers.
    pub rules: Rules,
}

/// What this process of td did. What td did over all its processes is in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TdDone {
    /// Orders answered.
    pub orders: u64,
    /// Of those, rejected.
    pub rejected: u64,
    /// Answers of an order that the process before this one had not finished.
    pub finished: u64,
    /// Orders that came again and had been answered.
    pub known: u64,
    /// Records that are no order, or of no strategy.
    pub not_orders: u64,
    /// Orders that were lost on the way, as its node says.
    pub lost: u64,
    /// Orders missing between the last one that the process before this one answered, and the first of this one.
    pub missing: u64,
}

/// How td joins.
pub fn join(capacity_bytes: u64, wait: Wait) -> Join {
    Join {
        name: TD_STREAM.to_owned(),
        role: "td".to_owned(),
        writes: Some(Writes { stream: TD_STREAM.to_owned(), capacity_bytes, keys: STRATEGIES_MAX }),
        reads: vec![Reads { streams: format!("{ORDERS_PREFIX}*"), keys: Keys::All }],
        wait,
    }
}

/// Answers orders until the word to end. First it finishes what a td before it had begun.
pub fn run(mut node: Node, options: &TdOptions) -> Result<TdDone, RoleError> {
    let no_area = |name| RoleError::NoArea { name, role: "td" };
    let area = node.area(AREA).map(Arc::clone).ok_or_else(|| no_area(AREA))?;
    let exchange = Exchange::new(area, node.epoch(), options.rules.clone())?;
    let stages = node.area(STAGES_AREA).and_then(|area| StageRecorder::new(Arc::clone(area)));
    let tally = node.area(tally::AREA).map(Arc::clone).and_then(Tally::new);
    let mut desk = Desk { exchange, stages, tally, td: node.number(), done: TdDone::default() };
    desk.finish_what_is_left(node.publisher())?;
    let mut failed = None;
    let (mut end_ns, mut events) = (None, 0);
    // Orders that were there before the word to end are answered.
    while failed.is_none() && end_ns.is_none_or(|end_ns| events > 0 && now_ns() < end_ns) {
        if end_ns.is_none() {
            node.wait(None);
        }
        events = node.poll(&mut |publisher, event| match event {
            _ if failed.is_some() => {}
            Event::Record { stream, record, payload } => {
                failed = desk.take(publisher, stream.writer(), record, payload).err();
            }
            Event::Lost { count, .. } => desk.done.lost += count,
            Event::Stop => end_ns = Some(now_ns() + LAST_ORDERS_NS),
            Event::Begin | Event::Command(_) => {}
        });
    }
    match (failed, node.ended()) {
        (Some(error), _) => Err(error),
        (None, Some(ended)) => Err(ended.into()),
        (None, None) => Ok(desk.done),
    }
}

/// The exchange with what it needs around it.
struct Desk<R, S> {
    exchange: Exchange<R>,
    stages: S,
    /// Counts of a run; only there in one.
    tally: Option<Tally<Arc<Memfd>>>,
    td: u32,
    done: TdDone,
}

impl<R: Region, S: StageSink> Desk<R, S> {
    fn finish_what_is_left(&mut self, publisher: &mut Publisher) -> Result<(), RoleError> {
        let next_sequence = publisher.next_sequence().unwrap_or(0);
        if let Some(pending) = self.exchange.recover(self.td, next_sequence)? {
            self.done.finished = u64::try_from(pending.answers().count()).unwrap_or(u64::MAX);
            self.answer(publisher, pending)?;
        }
        Ok(())
    }

    #[inline]
    fn take(
        &mut self,
        publisher: &mut Publisher,
        writer: u32,
        record: &Record,
        payload: &[u8],
    ) -> Result<(), RoleError> {
        let now = now_ns();
        let order = match Order::decode(payload) {
            Ok(order) if record.stamp.kind == kind::ORDER => order,
            _ => {
                self.done.not_orders += 1;
                return Ok(());
            }
        };
        let taken = Taken { writer, sequence: record.sequence, stamp: record.stamp, order };
        if let Some(last) = self.exchange.ledger().last_sequence(writer) {
            self.done.missing += record.sequence.saturating_sub(last + 1);
        }
        let next_sequence = publisher.next_sequence().unwrap_or(0);
        match self.exchange.begin(self.td, &taken, now, next_sequence) {
            Begun::Answers(pending) => {
                self.count(now, &record.stamp, &order);
                if let Some(tally) = &self.tally {
                    tally.ordered();
                }
                self.answer(publisher, pending)?;
            }
            Begun::Known => self.done.known += 1,
            Begun::NoStrategy => self.done.not_orders += 1,
            Begun::Fenced => return Err(RoleError::TakenOver),
        }
        Ok(())
    }

    fn answer(&mut self, publisher: &mut Publisher, pending: Pending) -> Result<(), RoleError> {
        for (stamp, answer) in pending.answers() {
            publisher.publish(&Stamp { generated: now_ns(), ..stamp }, &answer.encode())?;
        }
        self.done.orders += 1;
        self.done.rejected += u64::from(pending.is_rejected());
        if let Some(tally) = &self.tally {
            tally.answered(pending.is_rejected());
        }
        if self.exchange.finish(&pending) { Ok(()) } else { Err(RoleError::TakenOver) }
    }

    fn count(&self, now: u64, stamp: &Stamp, order: &Order) {
        let latencies = [
            (Stage::Md, order.received_ns.saturating_sub(stamp.trigger)),
            (Stage::Order, now.saturating_sub(stamp.generated)),
            (Stage::T2o, now.saturating_sub(stamp.trigger)),
            (Stage::T2oScheduled, now.saturating_sub(order.scheduled_ns)),
        ];
        for (stage, latency_ns) in latencies {
            self.stages.record(stage, latency_ns);
        }
    }
}
