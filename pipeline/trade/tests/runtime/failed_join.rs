//! A join that fails.

use crate::master_thread::{MasterThread, join, until, writes};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{Event, JoinError, Keys, Node, Overrun, Reads};
use std::{thread, time::Duration};

/// A writer is silent while its reader has died: the reader's successor fails to join, and dies. Records that were
/// kept for the first reader reach the third.
#[test]
fn a_failed_join_takes_nothing_from_the_next() {
    let master = MasterThread::start(|_| ());
    // From then on, a join waits for the writers.
    master.begin();
    let orders = Reads::new("orders.*", Keys::All).with(Overrun::Credit);
    let reader = join("reader", None, vec![orders]);
    let mut writer = master.join(&join("writer", writes("orders.w", 1), Vec::new()));
    let join_beside = |writer: &mut Node| {
        thread::scope(|scope| {
            let joining = scope.spawn(|| master.join(&reader));
            while !joining.is_finished() {
                writer.poll(&mut |_, _| ());
                thread::sleep(Duration::from_millis(1));
            }
            joining.join().unwrap()
        })
    };
    let mut first = join_beside(&mut writer);
    for _ in 0..3 {
        writer.publisher().publish(&Stamp::default(), b"order").unwrap();
    }
    // It sends the master no message, as when it is killed.
    first.must_be_stopped();
    drop(first);
    let failed = Node::join_within(&master.socket(), &reader, Duration::from_millis(5));
    assert!(matches!(failed, Err(JoinError::Silent { .. })));
    let mut third = join_beside(&mut writer);
    let (mut records, mut lost) = (0, 0);
    until("the records of the first", || {
        third.poll(&mut |_, event| match event {
            Event::Record { .. } => records += 1,
            Event::Lost { count, .. } => lost += count,
            _ => {}
        });
        records + lost >= 3
    });
    assert_eq!((records, lost), (3, 0));
}
