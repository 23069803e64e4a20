//! The rings between publishers and subscribers.

use crate::node::Memory;
use lowlat_ipc::index_ring;
use std::collections::BTreeMap;

/// A ring with the segment that its positions are of.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) segment: Memory,
    pub(super) ring: Memory,
    pub(super) entries: u64,
    pub(super) generation: u64,
    /// From which position on the publisher puts records into it; none while it has not connected it.
    pub(super) from: Option<u64>,
    /// What it had refused when its last reader ended.
    pub(super) refused: u64,
}

impl Way {
    fn is_drained(&self) -> bool {
        index_ring::open(&*self.ring)
            .is_none_or(|mut taker| !taker.has_more() && taker.refused() == self.refused)
    }
}

/// From one publisher to one subscriber: the rings in the order in which they are read.
#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) ways: Vec<Way>,
}

impl Link {
    /// The ring into which the publisher puts records now.
    pub(super) fn active(&self) -> Option<&Way> {
        self.ways.iter().rev().find(|way| way.from.is_some())
    }

    /// Forgets what was read to its end and comes no more.
    fn prune(&mut self) {
        let active = self.ways.iter().rposition(|way| way.from.is_some()).unwrap_or(0);
        let mut number = 0;
        self.ways.retain(|way| {
            number += 1;
            number > active || !way.is_drained()
        });
    }

    pub(super) fn push(&mut self, way: Way) {
        self.prune();
        self.ways.push(way);
    }

    /// The reader ended: what was refused up to now was its own.
    pub(super) fn reader_ended(&mut self) {
        for way in &mut self.ways {
            way.refused = index_ring::open(&*way.ring).map_or(0, |taker| taker.refused());
        }
    }
}

/// All links, by publisher and subscriber.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: BTreeMap<(u32, u32), Link>,
}

impl Links {
    pub(super) fn entry(&mut self, publisher: u32, subscriber: u32) -> &mut Link {
        self.links.entry((publisher, subscriber)).or_default()
    }

    pub(super) fn get(&self, publisher: u32, subscriber: u32) -> Option<&Link> {
        self.links.get(&(publisher, subscriber))
    }

    pub(super) fn get_mut(&mut self, publisher: u32, subscriber: u32) -> Option<&mut Link> {
        self.links.get_mut(&(publisher, subscriber))
    }

    pub(super) fn remove(&mut self, publisher: u32, subscriber: u32) -> Option<Link> {
        self.links.remove(&(publisher, subscriber))
    }

    /// Publishers of a subscriber.
    pub(super) fn publishers(&self, subscriber: u32) -> Vec<u32> {
        self.links.keys().filter(|(_, to)| *to == subscriber).map(|(from, _)| *from).collect()
    }
}
