//! Names come and go: what they had is given back.

use crate::master_thread::{MasterThread, join, reads, until, writes};
use lowlat_ipc::{interest::SUBSCRIBERS_MAX, stream::Stamp};
use lowlat_node::{Event, JoinError, Keys, Node, NodeEnded, NodePublishError, Strategies};
use std::fs;

/// Pieces of memory that this process has open whose names contain this.
fn pieces(name: &str) -> usize {
    let entries = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter(|target| target.to_string_lossy().contains(name)).count()
}

#[test]
fn a_run_has_more_names_than_numbers() {
    let master = MasterThread::start(|_| ());
    let mut reader = master.join(&join("reader", None, vec![reads("job.*", Keys::All)]));
    let named = |count: u32| {
        join(&format!("namesjob-{count}"), writes(&format!("job.{count}"), 4), vec![])
            .claiming(Strategies::Free)
    };
    let mut seen = Vec::new();
    let hear = |node: &mut Node, seen: &mut Vec<(String, u8)>| {
        node.poll(&mut |_, event| match event {
            Event::Record { stream, payload, .. } => seen.push((stream.as_str().to_owned(), payload[0])),
            other => assert!(!matches!(other, Event::Lost { .. }), "{other:?}"),
        });
    };
    let jobs = SUBSCRIBERS_MAX + 80;
    for count in 0..jobs {
        let mut node = master.join(&named(count));
        let payload = [u8::try_from(count % 251).unwrap()];
        node.publisher().publish(&Stamp { kind: 9, instrument: 3, ..Stamp::default() }, &payload).unwrap();
        drop(node);
        if count % 7 == 0 {
            hear(&mut reader, &mut seen);
        }
    }
    until("all records", || {
        hear(&mut reader, &mut seen);
        seen.len() >= usize::try_from(jobs).unwrap()
    });
    for (count, (stream, payload)) in (0_u32..).zip(&seen) {
        assert_eq!((stream, u32::from(*payload)), (&format!("job.{count}"), count % 251));
    }
    until("the memory of those that left", || pieces("namesjob-") == 0);
    // One that restarts under its name continues.
    let first = master.join(&named(7_000));
    let (number, strategies) = (first.number(), first.strategies().to_vec());
    drop(first);
    until("its memory", || pieces("namesjob-") == 0);
    let again = master.join(&named(7_000));
    assert_eq!((again.number(), again.strategies(), again.epoch()), (number, &*strategies, 2));
    let shown = master.with(|master, _| master.published(0));
    assert_eq!(shown, None, "the reader writes nothing");
}

#[test]
fn an_instrument_beyond_the_keys_is_refused_where_it_is_asked_for() {
    let master = MasterThread::start(|_| ());
    let mut early = master.join(&join("early", None, vec![reads("few", Keys::Only(vec![1, 77]))]));
    let mut writer = master.join(&join("writer", writes("few", 2), vec![]));
    let mut is_over = false;
    until("the refusal of the reader", || {
        early.poll(&mut |_, event| is_over |= matches!(event, Event::Stop));
        is_over
    });
    let Some(NodeEnded::Refused { reason }) = early.ended() else { panic!("{:?}", early.ended()) };
    assert!(reason.contains("stream few") && reason.contains("keys are 0 to 1"), "{reason}");
    let late = Node::join(&master.socket(), &join("late", None, vec![reads("few", Keys::Only(vec![2]))]));
    assert!(
        matches!(&late, Err(JoinError::Refused { reason, .. }) if reason.contains("keys are 0 to 1")),
        "{late:?}"
    );
    let mut publish = |instrument| {
        writer.publisher().publish(&Stamp { kind: 9, instrument, ..Stamp::default() }, b"x").map(|_| ())
    };
    assert_eq!(publish(1), Ok(()));
    for instrument in [2, u32::MAX] {
        assert_eq!(publish(instrument), Err(NodePublishError::Instrument { instrument, keys: 2 }));
    }
}
