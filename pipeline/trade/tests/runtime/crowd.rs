//! Many nodes at once.

use crate::master_thread::{MasterThread, join, reads, until, writes};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{Event, Keys, Node, Writes};
use std::thread;

const NODES: u32 = 200;
const THREADS: u32 = 8;

#[test]
fn two_hundred_nodes_join_at_once_and_each_gets_its_own() {
    let master = MasterThread::start(|_| {});
    let mut md = master.join(&join("md", writes("md", NODES), vec![]));
    let mut td = master.join(&join("td", writes("td", 1024), vec![reads("orders.*", Keys::All)]));
    let socket = master.socket();
    let joining: Vec<_> = (0..THREADS)
        .map(|number| {
            let socket = socket.clone();
            thread::spawn(move || {
                (number..NODES)
                    .step_by(THREADS as usize)
                    .map(|key| {
                        let stream = Writes::new(&format!("orders.{key}"), 4096, 1);
                        let wants =
                            vec![reads("md", Keys::Only(vec![key])), reads("td", Keys::Only(vec![key]))];
                        (key, Node::join(&socket, &join(&format!("s{key}"), Some(stream), wants)).unwrap())
                    })
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let mut nodes: Vec<(u32, Node)> = joining.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    master.begin();
    let mut has_begun = false;
    until("md is notified", || {
        md.poll(&mut |_, event| has_begun |= matches!(event, Event::Begin));
        has_begun
    });
    for key in 0..NODES {
        let published = md.publisher().publish(&Stamp { instrument: key, ..Stamp::default() }, b"q").unwrap();
        assert_eq!(published.delivered.subscribers, 1);
    }
    for (key, node) in &mut nodes {
        let mut seen = Vec::new();
        until("its quote and the begin arrive", || {
            node.poll(&mut |publisher, event| match event {
                Event::Record { record, .. } => {
                    seen.push(record.stamp.instrument);
                    publisher.publish(&Stamp::default(), b"o").unwrap();
                }
                Event::Begin => seen.push(u32::MAX),
                _ => {}
            });
            seen.len() == 2
        });
        assert!(seen.contains(key) && seen.contains(&u32::MAX), "{seen:?}");
    }
    let mut orders = 0;
    until("all orders arrive", || {
        td.poll(&mut |_, event| orders += u32::from(matches!(event, Event::Record { .. })));
        orders == NODES
    });
}
