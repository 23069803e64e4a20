//! Strategy host: many strategies in one process.

use crate::hosting::{StrategyBudget, StrategyHost, index, made};
use lowlat_ipc::stream::Record;
use lowlat_node::{
    Event, Node, NodePublishError, Publisher, Refusal,
    clock::now_ns,
    records::PayloadError,
    strategy::{Item, Numbers, OnEachRecord, OrderSink, OrderStream, gap, note, numbers_of, undecoded},
};

/// Calls of strategies between two polls.
const CALLS_PER_POLL: u32 = 32;
/// Strategies whose memory is touched per rehearsal.
const WARMED: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostDone {
    pub records: u64,
    /// Records that its node lost.
    pub lost: u64,
    /// Strategies that were moved out.
    pub moved_out: u32,
}

/// Prefix of the message with which a host asks its master for a separate process for a strategy, before the
/// strategy's number.
pub const MOVE_OUT: &str = "move out ";

/// Runs the strategies of a host until it is stopped; its node joined with [`lowlat_node::strategy::join`].
/// `move_out` gets the number of a strategy that needs a separate process from now on, and so does the master
/// ([`MOVE_OUT`]): that process joins with the strategy's number and instruments, and its order numbers
/// continue.
pub fn run(
    mut node: Node,
    host: &mut StrategyHost,
    move_out: &mut dyn FnMut(u32),
) -> Result<HostDone, Refusal> {
    node.must_be_stopped();
    let mut sinks = Sinks::new(&node, host);
    let mut rehearsal = HostRehearsal::new();
    let mut done = HostDone::default();
    let (mut failed, mut is_over) = (None, false);
    // Those of one turn, almost always empty.
    let mut moving = Vec::new();
    while !is_over && failed.is_none() {
        if !host.is_ready() {
            node.wait_rehearsing(None, &mut |publisher, event| {
                if rehearsal.play(publisher, &event) {
                    warm(host, &sinks);
                }
            });
        }
        node.poll(&mut |_, event| match event {
            Event::Record { stream, record, payload } => {
                done.records += 1;
                if let Err(error) = tell(host, record, payload) {
                    failed.get_or_insert_with(|| undecoded(stream.as_str(), record.sequence, &error));
                }
            }
            Event::Lost { stream, count } => {
                done.lost += count;
                host.take_gap(gap(stream.as_str(), count));
            }
            Event::Timer { .. } => host.take_timers(now_ns()),
            Event::Stop => is_over = true,
            _ => {}
        });
        let mut moved = |number| {
            done.moved_out += 1;
            moving.push(number);
            move_out(number);
        };
        let calls_max = if is_over { u32::MAX } else { CALLS_PER_POLL };
        serve(host, &mut sinks, node.publisher(), calls_max, &mut moved);
        node.publisher().set_timer(host.timer_ns());
        if let Some(error) = sinks.unsent {
            failed.get_or_insert_with(|| Refusal::of(error));
        }
        for number in moving.drain(..) {
            node.release(number);
            node.say(&format!("{MOVE_OUT}{number}"));
        }
    }
    match failed {
        Some(error) => Err(error),
        None => node.result(done),
    }
}

/// Queues a record for its strategies.
///
/// Neither this nor [`serve`] is inlined, so that a rehearsal uses the same code.
#[inline(never)]
fn tell(host: &mut StrategyHost, record: &Record, payload: &[u8]) -> Result<(), PayloadError> {
    match Item::of(record, payload)? {
        Some(Item::Quote(seen)) => host.take_quote(&seen),
        Some(Item::Answer(seen)) => host.take_answer(record.stamp.instrument, &seen),
        Some(Item::Gap(_) | Item::Timer(_)) | None => {}
    }
    Ok(())
}

/// Runs queued calls, up to this number.
#[inline(never)]
fn serve(
    host: &mut StrategyHost,
    sinks: &mut Sinks,
    publisher: &mut Publisher,
    calls_max: u32,
    move_out: &mut dyn FnMut(u32),
) {
    let Sinks { numbers, unsent } = sinks;
    let mut sink_of = |strategy: u32, then: &mut dyn FnMut(&mut dyn OrderSink)| {
        if let Some(Some(numbers)) = numbers.get_mut(index(strategy)) {
            then(&mut OrderStream::new(&mut *publisher, numbers, |error| note(unsent, error)));
        }
    };
    let mut calls = 0;
    while calls < calls_max && host.serve(&mut sink_of, &mut now_ns, move_out) {
        calls += 1;
    }
}

/// Touches the memory that some strategies need next.
fn warm(host: &mut StrategyHost, sinks: &Sinks) {
    for _ in 0..WARMED {
        let Some(number) = host.warm() else { return };
        if let Some(Some(numbers)) = sinks.numbers.get(index(number)) {
            std::hint::black_box(numbers.last());
        }
    }
}

/// A host with one strategy, for the node's rehearsals.
struct HostRehearsal {
    host: StrategyHost,
    sinks: Sinks,
}

impl HostRehearsal {
    fn new() -> Self {
        // However long a call takes, the only strategy is not moved out.
        let mut host = StrategyHost::new(StrategyBudget {
            call_ns_max: u64::MAX,
            queue_max: 2,
            ..StrategyBudget::default()
        });
        // An empty host accepts any number.
        host.add(0, &[0], Box::new(OnEachRecord::of(0))).ok();
        Self { host, sinks: Sinks { numbers: vec![Some(Numbers::of_turn(0))], unsent: None } }
    }

    /// Lets the strategy answer a quote with an order; returns false for anything else.
    fn play(&mut self, publisher: &mut Publisher, event: &Event<'_>) -> bool {
        let Event::Record { record, payload, .. } = event else { return false };
        let is_told = tell(&mut self.host, record, payload).is_ok() && self.host.is_ready();
        serve(&mut self.host, &mut self.sinks, publisher, 1, &mut |_| ());
        is_told
    }
}

/// Order numbers of all strategies.
struct Sinks {
    numbers: Vec<Option<Numbers>>,
    unsent: Option<NodePublishError>,
}

impl Sinks {
    fn new(node: &Node, host: &StrategyHost) -> Self {
        let mut numbers = Vec::new();
        for number in host.numbers() {
            *made(&mut numbers, number) = Some(numbers_of(node, number));
        }
        Self { numbers, unsent: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_ipc::fork::ForkMark;
    use lowlat_node::{Rehearsal, records::kind};
    use std::sync::Arc;

    #[test]
    fn each_rehearsed_quote_is_answered_with_an_order() {
        let mark = Arc::new(ForkMark::new().unwrap());
        let (mut node, mut rehearsal) = (Rehearsal::new(mark).unwrap(), HostRehearsal::new());
        let mut kinds = Vec::new();
        for number in 1..=1000 {
            node.run(number << 20, u64::MAX, &mut |publisher, event| {
                let Event::Record { record, .. } = &event else { panic!("{event:?}") };
                kinds.push(record.stamp.kind);
                assert_eq!(rehearsal.play(publisher, &event), record.stamp.kind == kind::QUOTE);
            });
        }
        assert_eq!(kinds, [kind::QUOTE, kind::ORDER].repeat(1000));
        assert_eq!(
            rehearsal.host.usage(0).map(|usage| (usage.calls, usage.is_moved_out)),
            Some((1000, false))
        );
        assert!(rehearsal.sinks.unsent.is_none());
    }
}
