//! Readers of a run, and the items that they get.

use crate::run::{Run, join};
use lowlat_bridge::mark::{self, Mark};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{Event, Keys, Node, Reads, clock::now_ns};

/// A node that reads `md`.
pub fn reader(run: &Run, name: &str, keys: Keys) -> Node {
    let reads = Reads::new("md", keys);
    Node::join(&run.socket(), &join(name, None, vec![reads])).unwrap()
}

/// Items read in the second run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    Record(u64, Stamp),
    Mark(u32, Mark),
}

/// Reads all items that are available.
pub fn read(node: &mut Node) -> Vec<Read> {
    let mut seen = Vec::new();
    // The bell may ring late; earlier records are in the ring.
    loop {
        node.wait(Some(now_ns()));
        let events = node.poll(&mut |_, event| match event {
            Event::Record { record, payload, .. } if record.stamp.kind == mark::KIND => {
                seen.push(Read::Mark(record.stamp.instrument, Mark::decode(payload).unwrap()));
            }
            Event::Record { record, payload, .. } => {
                seen.push(Read::Record(u64::from_le_bytes(payload.try_into().unwrap()), record.stamp));
            }
            Event::Lost { .. } => panic!("the reader is too slow"),
            _ => {}
        });
        if events == 0 {
            return seen;
        }
    }
}

pub fn records(read: &[Read]) -> Vec<(u64, Stamp)> {
    read.iter()
        .filter_map(|read| match read {
            Read::Record(sequence, stamp) => Some((*sequence, *stamp)),
            Read::Mark(..) => None,
        })
        .collect()
}

pub fn marks(read: &[Read]) -> Vec<(u32, Mark)> {
    read.iter()
        .filter_map(|read| match read {
            Read::Mark(instrument, mark) => Some((*instrument, *mark)),
            Read::Record(..) => None,
        })
        .collect()
}
