//! Rings between publishers and subscribers.

use lowlat_ipc::{
    index_ring, latest,
    stream::{Reader, Segment, cursor::Cursor},
};
use lowlat_node::{Memory, MemoryBehind, Overrun};
use std::collections::BTreeMap;

/// A ring, or a table, with the segment that its positions refer to.
#[derive(Debug, Clone)]
pub(super) struct LinkChannel {
    pub(super) segment: Memory,
    pub(super) ring: Memory,
    /// Entries of the ring, or keys of the table.
    pub(super) entries: u64,
    pub(super) overrun: Overrun,
    pub(super) generation: u64,
    /// The position from which the publisher has put records into it; `None` until it has connected it.
    pub(super) from: Option<u64>,
    /// The reader's present process has it.
    pub(super) is_told: bool,
}

impl LinkChannel {
    /// The reader's side of a ring; `None` for a table, or if its memory is damaged.
    fn taker(&self) -> Option<index_ring::Taker<&MemoryBehind>> {
        let is_ring = !matches!(self.overrun, Overrun::Conflate | Overrun::Followed);
        is_ring.then(|| index_ring::open(&*self.ring)).flatten()
    }

    /// The place of a reader that follows the stream: its next position and sequence, if known.
    pub(super) fn followed(&self) -> Option<(u64, Option<u64>)> {
        let cursor = (self.overrun == Overrun::Followed).then(|| Cursor::open(&*self.ring)).flatten();
        cursor?.place()
    }

    fn segment(&self) -> Option<Segment<&MemoryBehind>> {
        Segment::open(&*self.segment).ok()
    }

    pub(super) fn is_drained(&self) -> bool {
        if let Some((position, _)) = self.followed() {
            return self.segment().is_none_or(|segment| position >= segment.tail());
        }
        // A running reader keeps the table of a writer that has ended; the successor gets a newer one.
        self.taker().is_none_or(|mut taker| !taker.has_more())
    }

    /// True if the publisher has evicted its reader.
    pub(super) fn is_evicted(&self) -> bool {
        self.taker().is_some_and(|taker| taker.is_evicted())
    }

    fn waiting(&self) -> u64 {
        if let Some((_, Some(sequence))) = self.followed() {
            let last = self.segment().and_then(Reader::last);
            return last.map_or(0, |last| last.sequence.saturating_add(1).saturating_sub(sequence));
        }
        self.taker().map_or(0, |taker| taker.waiting())
    }

    /// Delivers the last record of a writer that has ended, unless it was delivered.
    pub(super) fn give(&self, instrument: u32, position: u64) {
        if self.overrun == Overrun::Conflate {
            let keys = u32::try_from(self.entries).ok();
            // Its reader knows what it has taken.
            if let Some(mut table) = keys.and_then(|keys| latest::create(&*self.ring, keys)) {
                table.put(instrument, position);
            }
        } else if self.overrun == Overrun::Followed {
            // The reader finds it in the stream.
        } else if let Some(mut pusher) = index_ring::resume(&*self.ring)
            // A process that is only stopped would put the same entry into the same place. An evicted reader
            // learns everything it missed, up to the stream's end.
            && pusher.last() != Some(position)
            && !pusher.is_evicted()
        {
            pusher.push(position);
        }
    }
}

/// Rings from one publisher to one subscriber, in reading order.
#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) ways: Vec<LinkChannel>,
    /// When the reader was last reconnected on request.
    pub(super) again_ns: u64,
}

impl Link {
    /// The ring into which the publisher puts records now.
    pub(super) fn active(&self) -> Option<&LinkChannel> {
        self.ways.iter().rev().find(|channel| channel.from.is_some())
    }

    /// Drops rings that were read to the end and get no more entries.
    fn prune(&mut self) {
        let active = self.ways.iter().rposition(|channel| channel.from.is_some()).unwrap_or(0);
        let mut number = 0;
        self.ways.retain(|channel| {
            number += 1;
            number > active || !channel.is_drained()
        });
    }

    pub(super) fn push(&mut self, channel: LinkChannel) {
        self.prune();
        self.ways.push(channel);
    }
}

/// A pending request of an evicted reader to be reconnected.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReconnectRequest {
    pub(super) after: Option<u64>,
    pub(super) first: u64,
}

/// All links, by publisher and subscriber.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: BTreeMap<(u32, u32), Link>,
    /// Readers to reconnect, one request each.
    pub(super) again: BTreeMap<(u32, u32), ReconnectRequest>,
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

    /// Forgets the rings of a publisher that has left, where they were read to the end. Returns true if none is left.
    pub(super) fn forget_read(&mut self, publisher: u32) -> bool {
        let mut is_left = false;
        self.links.retain(|(from, _), link| {
            if *from == publisher {
                link.ways.retain(|channel| !channel.is_drained());
                is_left |= !link.ways.is_empty();
            }
            *from != publisher || !link.ways.is_empty()
        });
        self.again.retain(|(from, _), _| *from != publisher || is_left);
        !is_left
    }

    /// Records delivered to a subscriber that it has not taken. A table holds the latest only, and does not count.
    pub(super) fn waiting(&self, subscriber: u32) -> u64 {
        let links = self.links.iter().filter(|((_, to), _)| *to == subscriber);
        links.flat_map(|(_, link)| &link.ways).map(LinkChannel::waiting).sum()
    }

    pub(super) fn publishers(&self, subscriber: u32) -> Vec<u32> {
        self.links.keys().filter(|(_, to)| *to == subscriber).map(|(from, _)| *from).collect()
    }
}
