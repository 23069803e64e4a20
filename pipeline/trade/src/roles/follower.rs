//! follower: reads every record and keeps nothing. It stands for processes of a platform that follow all
//! streams, such as a risk monitor.

use super::cached::reads_all;
use lowlat_node::{Event, Join, Node, Refusal, clock::now_ns};
use std::{thread, time::Duration};

/// Duration of a sleep between polls; like cached it never sleeps on its bell.
const NAP: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FollowerDone {
    pub read: u64,
    pub lost: u64,
}

/// The request with which follower `number` joins.
pub fn join(number: u32) -> Join {
    Join::new(&name(number), "follower").reading(reads_all())
}

/// The name of its node.
pub fn name(number: u32) -> String {
    format!("follower{number}")
}

/// Follows everything until it is stopped.
pub fn run(mut node: Node) -> Result<FollowerDone, Refusal> {
    let mut done = FollowerDone::default();
    let (mut is_over, mut events) = (false, 0);
    // Records from before the stop request are read too.
    while !is_over || events > 0 {
        events = node.poll(&mut |_, event| match event {
            Event::Record { .. } => done.read += 1,
            Event::Lost { count, .. } => done.lost += count,
            Event::Stop => is_over = true,
            _ => {}
        });
        if events == 0 && !is_over {
            // A heartbeat.
            node.wait(Some(now_ns()));
            thread::sleep(NAP);
        }
    }
    node.result(done)
}
