//! Readers that are too slow, dead, or never read: the effect of each policy.

use crate::{
    master_thread::{MasterThread, join, reads, until, writes},
    runtime::in_process::{poll_until, told},
};
use lowlat_ipc::stream::{PublishError as Refused, Stamp};
use lowlat_node::{Event, Join, Keys, Node, NodePublishError, Overrun, Wait, Writes};
use lowlat_trade::master::Standing;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

fn stamp(instrument: u32) -> Stamp {
    Stamp { instrument, kind: 1, ..Stamp::default() }
}

fn publish(node: &mut Node, instrument: u32, number: u64) -> Result<u32, NodePublishError> {
    let published = node.publisher().publish(&stamp(instrument), format!("{number}").as_bytes())?;
    Ok(published.delivered.subscribers)
}

/// Publishes until there is no credit. Returns the number of records, and the subscriber without room.
fn fill(node: &mut Node, from: u64) -> (u64, u32) {
    for number in from.. {
        match publish(node, 0, number) {
            Ok(_) => {}
            Err(NodePublishError::Refused(Refused::NoCredit { subscriber })) => return (number, subscriber),
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

fn orders(from: u64, to: u64) -> Vec<String> {
    (from..to).map(|number| format!("orders.s 0 {number}")).collect()
}

/// A writer learns of nodes that have joined since.
fn meet(writer: &mut Node) {
    writer.poll(&mut |_, _| ());
}

/// Sleeping readers get everything through their inbox; spinning ones poll for entries themselves.
const WAITS: [Wait; 2] = [Wait::Parked, Wait::Fast];

fn td(wait: Wait) -> Join {
    join("td", None, vec![reads("orders.*", Keys::All).with(Overrun::Credit)]).waiting(wait)
}

fn td_and_strategy(master: &MasterThread, wait: Wait) -> (Node, Node) {
    (master.join(&td(wait)), master.join(&join("s", writes("orders.s", 1), vec![])))
}

fn figures(master: &MasterThread, name: &'static str) -> lowlat_node::Figures {
    master.with(move |master, _| {
        master.nodes().into_iter().find(|node| node.name == name).map(|node| node.figures).unwrap()
    })
}

#[test]
fn a_slow_td_refuses_orders_and_loses_none() {
    WAITS.into_iter().for_each(a_slow_td_refuses_orders_and_loses_none_by);
}

fn a_slow_td_refuses_orders_and_loses_none_by(wait: Wait) {
    let master = MasterThread::start(|_| {});
    let (mut td, mut strategy) = td_and_strategy(&master, wait);
    let mut sent = 0;
    for _ in 0..5 {
        let (to, subscriber) = fill(&mut strategy, sent);
        assert!(to > sent && subscriber == td.number(), "room again each time");
        let expected = orders(sent, to);
        assert_eq!(poll_until(&mut td, |seen| seen.len() >= expected.len()), expected);
        sent = to;
    }
    assert_eq!(figures(&master, "td").lost, 0);
    let figures = figures(&master, "s");
    assert_eq!((figures.published, figures.uncredited, figures.refused), (sent, 5, 0));
}

#[test]
fn orders_for_a_dead_td_wait_for_its_successor_and_strategies_do_not() {
    WAITS.into_iter().for_each(orders_for_a_dead_td_wait_for_the_next_and_no_strategy_for_it_by);
}

fn orders_for_a_dead_td_wait_for_the_next_and_no_strategy_for_it_by(wait: Wait) {
    let master = MasterThread::start(|_| {});
    let (td, mut strategy) = td_and_strategy(&master, wait);
    master.begin();
    publish(&mut strategy, 0, 0).unwrap();
    // As when its process is killed: sent orders stay for its successor.
    master.with(|master, _| master.drop_node("td").unwrap());
    let (sent, _) = fill(&mut strategy, 1);
    assert!(publish(&mut strategy, 0, sent).is_err(), "again, without waiting");
    drop(td);
    // It has joined once the strategy, which keeps polling, has connected its new ring: before it reads
    // anything.
    let (joined, socket) = (AtomicBool::new(false), master.socket());
    let mut td = thread::scope(|scope| {
        scope.spawn(|| {
            while !joined.load(Ordering::Acquire) {
                strategy.poll(&mut |_, _| ());
                thread::sleep(Duration::from_millis(1));
            }
        });
        let td = Node::join(&socket, &self::td(wait));
        joined.store(true, Ordering::Release);
        td.unwrap()
    });
    assert_eq!(td.epoch(), 2);
    assert!(publish(&mut strategy, 0, sent).is_err(), "the pending orders of the old ring are unread");
    let expected = orders(0, sent);
    let mut seen = poll_until(&mut td, |seen| seen.len() > expected.len());
    seen.retain(|seen| seen != "begin");
    assert_eq!(seen, expected);
    publish(&mut strategy, 0, sent).unwrap();
    assert_eq!(poll_until(&mut td, |seen| !seen.is_empty()), orders(sent, sent + 1));
    assert_eq!(figures(&master, "td").lost, 0);
}

#[test]
fn a_td_that_left_blocks_nobody() {
    let master = MasterThread::start(|_| {});
    let (td, mut strategy) = td_and_strategy(&master, Wait::Parked);
    let (sent, _) = fill(&mut strategy, 0);
    drop(td);
    until("it is disconnected", || {
        strategy.poll(&mut |_, _| ());
        publish(&mut strategy, 0, sent) == Ok(0)
    });
}

/// A td that dies while it works on an order: that order is delivered again, and earlier ones are not.
#[test]
fn the_order_in_hand_of_a_dead_td_is_delivered_again() {
    WAITS.into_iter().for_each(what_a_dead_td_had_in_hand_comes_again_by);
}

fn what_a_dead_td_had_in_hand_comes_again_by(wait: Wait) {
    let master = MasterThread::start(|_| {});
    let (mut td, mut strategy) = td_and_strategy(&master, wait);
    (0..4).for_each(|number| _ = publish(&mut strategy, 0, number).unwrap());
    let dies = catch_unwind(AssertUnwindSafe(|| {
        // The stream itself arrives with the first.
        loop {
            td.poll(&mut |_, event| assert_ne!(told(&event), "orders.s 0 2"));
        }
    }));
    assert!(dies.is_err());
    master.with(|master, _| master.drop_node("td").unwrap());
    assert_eq!(poll_until(&mut master.join(&self::td(wait)), |seen| seen.len() >= 2), orders(2, 4));
}

#[test]
fn a_writer_without_credit_never_waits() {
    let master = MasterThread::start(|_| {});
    let market = Writes::new("md", 1 << 16, 1);
    let mut md = master.join(&join("md", Some(market), vec![]));
    let mut never = master.join(&join("never", None, vec![reads("md", Keys::All).with(Overrun::Credit)]));
    meet(&mut md);
    (0..5000).for_each(|number| _ = publish(&mut md, 0, number).unwrap());
    // The records of its ring are overwritten by then.
    assert_eq!(poll_until(&mut never, |seen| !seen.is_empty()), ["md lost 5000"], "each is reported");
    assert_eq!(figures(&master, "md").uncredited, 0);
}

/// Nothing follows it, so no entry announces it.
#[test]
fn a_trailing_loss_is_reported_to_spinning_readers_too() {
    for wait in WAITS {
        let master = MasterThread::start(|_| {});
        let mut md = master.join(&join("md", writes("md", 1), vec![]));
        // One that spins would follow a single stream itself.
        let mut slow = master.join(&join("slow", None, vec![reads("md*", Keys::All)]).waiting(wait));
        meet(&mut md);
        (0..2).for_each(|number| _ = publish(&mut md, 0, number).unwrap());
        assert_eq!(poll_until(&mut slow, |seen| seen.len() >= 2), ["md 0 0", "md 0 1"]);
        let sent = (2..10_000).find(|number| publish(&mut md, 0, *number).unwrap() == 0).unwrap() + 1;
        // The records of its ring may be overwritten in the stream, which is reported too.
        let count = |seen: &[String]| {
            seen.iter()
                .map(|one| one.strip_prefix("md lost ").map_or(1, |lost| lost.parse().unwrap()))
                .sum::<u64>()
        };
        let seen = poll_until(&mut slow, |seen| count(seen) >= sent - 2);
        assert_eq!((count(&seen), seen.last().unwrap().as_str()), (sent - 2, "md lost 1"));
        publish(&mut md, 0, sent).unwrap();
        assert_eq!(poll_until(&mut slow, |seen| !seen.is_empty()), [format!("md 0 {sent}")]);
    }
}

#[test]
fn a_reader_that_conflates_gets_the_latest_quotes() {
    let master = MasterThread::start(|_| {});
    let mut md = master.join(&join("md", writes("md", 4), vec![]));
    let asked = reads("md", Keys::Only(vec![1, 3])).with(Overrun::Conflate);
    let mut strategy = master.join(&join("s", None, vec![asked]));
    meet(&mut md);
    for number in 0..5000 {
        publish(&mut md, u32::try_from(number % 4).unwrap(), number).unwrap();
    }
    assert_eq!(poll_until(&mut strategy, |seen| seen.len() >= 2), ["md 1 4997", "md 3 4999"]);
    publish(&mut md, 1, 5000).unwrap();
    assert_eq!(poll_until(&mut strategy, |seen| !seen.is_empty()), ["md 1 5000"]);
    assert_eq!(figures(&master, "md").conflated, 2 * (1250 - 1));
    // A writer that restarts: earlier records come first, and nothing twice.
    publish(&mut md, 3, 5001).unwrap();
    drop(md);
    let mut md = master.join(&join("md", writes("md", 4), vec![]));
    until("it is connected", || publish(&mut md, 3, 5002).is_ok_and(|subscribers| subscribers == 1));
    let seen = poll_until(&mut strategy, |seen| seen.iter().any(|seen| seen.ends_with("5002")));
    assert_eq!(seen, ["md 3 5001", "md 3 5002"]);
}

#[test]
fn a_sink_that_is_too_far_behind_is_evicted_and_reconnected() {
    WAITS.into_iter().for_each(a_sink_that_is_too_far_behind_is_given_up_and_begins_anew_by);
}

fn a_sink_that_is_too_far_behind_is_given_up_and_begins_anew_by(wait: Wait) {
    let master = MasterThread::start(|_| {});
    let mut md = master.join(&join("md", writes("md", 1), vec![]));
    let asked = reads("*", Keys::All).with(Overrun::Evict { behind_max: 100 });
    let mut sink = master.join(&join("sink", None, vec![asked]).waiting(wait));
    meet(&mut md);
    (0..300).for_each(|number| _ = publish(&mut md, 0, number).unwrap());
    assert_eq!(figures(&master, "md").evicted, 1);
    let (mut records, mut lost, mut number) = (0, 0, 300);
    until("it is reconnected", || {
        sink.poll(&mut |_, event| match event {
            Event::Record { .. } => records += 1,
            Event::Lost { count, .. } => lost += count,
            _ => {}
        });
        // Handles the sink's request.
        md.poll(&mut |_, _| ());
        number += 1;
        publish(&mut md, 0, number - 1) == Ok(1)
    });
    until("each record was delivered or reported lost", || {
        sink.poll(&mut |_, event| match event {
            Event::Record { .. } => records += 1,
            Event::Lost { count, .. } => lost += count,
            _ => {}
        });
        records + lost == number
    });
    assert!(records > 100 && lost >= 100, "{records} {lost}");
}

/// It asks to be reconnected when no writer is running: it still learns its loss, before the next writer's
/// records.
#[test]
fn an_evicted_sink_learns_its_loss_even_if_the_writer_has_ended() {
    WAITS.into_iter().for_each(a_sink_that_was_given_up_is_told_its_loss_when_the_writer_is_gone_by);
}

fn a_sink_that_was_given_up_is_told_its_loss_when_the_writer_is_gone_by(wait: Wait) {
    let master = MasterThread::start(|_| {});
    let market = join("md", writes("md", 1), vec![]);
    let mut md = master.join(&market);
    let asked = reads("*", Keys::All).with(Overrun::Evict { behind_max: 100 });
    let mut sink = master.join(&join("sink", None, vec![asked]).waiting(wait));
    meet(&mut md);
    (0..300).for_each(|number| _ = publish(&mut md, 0, number).unwrap());
    assert_eq!(figures(&master, "md").evicted, 1);
    master.with(|master, _| master.drop_node("md").unwrap());
    drop(md);
    let seen = poll_until(&mut sink, |seen| seen.iter().any(|seen| seen.starts_with("md lost")));
    let (lost, records) = seen.split_last().unwrap();
    assert!(records.len() > 100 && records.iter().all(|seen| !seen.contains("lost")), "{seen:?}");
    assert_eq!(*lost, format!("md lost {}", 300 - records.len()));
    let mut md = master.join(&market);
    assert_eq!(publish(&mut md, 0, 300), Ok(1));
    assert_eq!(poll_until(&mut sink, |seen| !seen.is_empty()), ["md 0 300"]);
}

/// Returns the first events of a node that joined a run that had begun, other than the run's beginning, which comes
/// by another way and therefore before, between or after them.
fn begins_with(node: &mut Node, count: usize) -> Vec<String> {
    let mut seen = poll_until(node, |seen| seen.len() > count);
    let at = seen.iter().position(|seen| seen == "begin");
    seen.remove(at.expect("the run's beginning"));
    seen
}

/// Nothing is pushed for it. What its predecessor had not read is there for one that spins too, and is counted for one
/// that sleeps.
#[test]
fn a_spinning_reader_follows_the_stream() {
    let master = MasterThread::start(|_| {});
    master.begin();
    let mut md = master.join(&join("md", writes("md", 4), vec![]));
    let asked = |wait| join("fast", None, vec![reads("md", Keys::Only(vec![1, 3]))]).waiting(wait);
    let send = |md: &mut Node, numbers: std::ops::Range<u64>, subscribers| {
        for number in numbers {
            let told = publish(md, u32::try_from(number % 4).unwrap(), number).unwrap();
            assert_eq!(told, if number % 2 == 1 { subscribers } else { 0 });
        }
    };
    let dies = |mut node: Node| {
        node.must_be_stopped();
        drop(node);
        until("its end", || {
            master.with(|master, _| {
                master.nodes().iter().any(|node| node.name == "fast" && node.standing == Standing::Dead)
            })
        });
    };
    let mut fast = master.join(&asked(Wait::Fast));
    poll_until(&mut fast, |seen| seen.contains(&"begin".to_owned()));
    send(&mut md, 0..8, 0);
    assert_eq!(poll_until(&mut fast, |seen| seen.len() >= 4), ["md 1 1", "md 3 3", "md 1 5", "md 3 7"]);
    send(&mut md, 8..12, 0);
    dies(fast);
    let mut fast = master.join(&asked(Wait::Fast));
    assert_eq!(begins_with(&mut fast, 2), ["md 1 9", "md 3 11"]);
    // Its writer laps it: what is overwritten counts, wanted or not.
    send(&mut md, 12..5000, 0);
    let seen = poll_until(&mut fast, |seen| seen.last().is_some_and(|last| last == "md 3 4999"));
    let lost: u64 = seen[0].strip_prefix("md lost ").unwrap().parse().unwrap();
    let first: u64 = seen[1].rsplit(' ').next().unwrap().parse().unwrap();
    assert!(lost > 4000 && (12 + lost..=12 + lost + 1).contains(&first), "{lost} {first}");
    // Its writer restarts.
    send(&mut md, 5000..5002, 0);
    drop(md);
    let mut md = master.join(&join("md", writes("md", 4), vec![]));
    send(&mut md, 5002..5004, 0);
    assert_eq!(poll_until(&mut fast, |seen| seen.len() >= 2), ["md 1 5001", "md 3 5003"]);
    send(&mut md, 5004..5008, 0);
    dies(fast);
    let joining = thread::scope(|scope| {
        let joining = scope.spawn(|| master.join(&asked(Wait::Parked)));
        while !joining.is_finished() {
            md.poll(&mut |_, _| ());
            thread::sleep(Duration::from_millis(1));
        }
        joining.join().unwrap()
    });
    let mut parked = joining;
    assert_eq!(begins_with(&mut parked, 1), ["md lost 2"]);
    send(&mut md, 5008..5010, 1);
    assert_eq!(poll_until(&mut parked, |seen| !seen.is_empty()), ["md 1 5009"]);
}
