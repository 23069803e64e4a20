//! The rings between publishers and subscribers.

use crate::node::{Memory, Overrun};
use lowlat_ipc::{
    index_ring::{self, Gap, Taken},
    latest,
};
use std::collections::BTreeMap;

/// A ring, or a table, with the segment that its positions are of.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) segment: Memory,
    pub(super) ring: Memory,
    /// Entries of the ring, or keys of the table.
    pub(super) entries: u64,
    pub(super) overrun: Overrun,
    pub(super) generation: u64,
    /// From which position on the publisher puts records into it; none while it has not connected it.
    pub(super) from: Option<u64>,
}

impl Way {
    fn is_drained(&self) -> bool {
        // A reader that lives has the table of a writer that is gone; for the one after it there is a newer one.
        self.overrun == Overrun::Conflate
            || index_ring::open(&*self.ring).is_none_or(|mut taker| !taker.has_more())
    }

    /// Whether the publisher has given its reader up in it.
    pub(super) fn is_evicted(&self) -> bool {
        self.overrun != Overrun::Conflate
            && index_ring::open(&*self.ring).is_some_and(|taker| taker.is_evicted())
    }

    /// The first position that its reader, which is gone, has not taken.
    pub(super) fn first(&self) -> Option<u64> {
        if self.overrun == Overrun::Conflate {
            return latest::open(&*self.ring)?.take();
        }
        let (Taken::Entry(first) | Taken::Gap(Gap { first, .. }) | Taken::Evicted { first }) =
            index_ring::open(&*self.ring)?.next()?;
        Some(first)
    }

    /// Gives the last record of a writer that is gone, unless it was given.
    pub(super) fn give(&self, instrument: u32, position: u64) {
        if self.overrun == Overrun::Conflate {
            let keys = u32::try_from(self.entries).ok();
            // Its reader knows what it has taken.
            if let Some(mut table) = keys.and_then(|keys| latest::create(&*self.ring, keys)) {
                table.put(instrument, position);
            }
        } else if let Some(mut pusher) = index_ring::resume(&*self.ring)
            // A process that is only stopped would put the same into the same place. Who was given up is told of all that
            // it was not given, up to the stream's end.
            && pusher.last() != Some(position)
            && !pusher.is_evicted()
        {
            pusher.push(position);
        }
    }
}

/// From one publisher to one subscriber: the rings in the order in which they are read.
#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) ways: Vec<Way>,
    /// When the reader was last connected because it had asked.
    pub(super) again_ns: u64,
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
}

/// A reader's word that it was given up, until it is connected again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Again {
    pub(super) after: Option<u64>,
    pub(super) first: u64,
}

/// All links, by publisher and subscriber.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: BTreeMap<(u32, u32), Link>,
    /// Readers that ask to be connected again, one word of each.
    pub(super) again: BTreeMap<(u32, u32), Again>,
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
        self.again.remove(&(publisher, subscriber));
        self.links.remove(&(publisher, subscriber))
    }

    /// Publishers of a subscriber.
    pub(super) fn publishers(&self, subscriber: u32) -> Vec<u32> {
        self.links.keys().filter(|(_, to)| *to == subscriber).map(|(from, _)| *from).collect()
    }
}
