//! Handles records that a subscriber is too slow for.

use crate::{
    index_ring::Pusher,
    latest::{LatestPutter, Put},
    region::Region,
};

/// Delivery of positions to one subscriber, and handling of those that it is too slow for. Chosen when it connects.
#[derive(Debug)]
pub enum Delivery<R> {
    /// Records that find its ring full are lost, and it gets an exact account of them:
    /// [`crate::index_ring::RingGap`].
    Gap(Pusher<R>),
    /// It has no ring, but the latest position of each instrument: a newer one replaces an older one.
    Conflate(LatestPutter<R>),
    /// Nothing is lost. While the subscriber has no room, the publisher is refused records that it wants,
    /// before they are appended, and all records that would overwrite what it has not read. Meant for orders.
    /// It reads with [`crate::index_ring::Taker::hold`]. A dead subscriber must be disconnected, or the
    /// publisher stays blocked.
    Credit(Pusher<R>),
    /// A subscriber with more than this many unread entries is evicted at the next record, and notified.
    Evict {
        ring: Pusher<R>,
        /// Largest number of unread entries.
        behind_max: u64,
    },
}

/// Result of handing one position to one subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handed {
    Given,
    Conflated,
    Refused,
    Evicted,
}

/// Apart, because few subscribers have it.
#[inline(never)]
fn push_or_evict<R: Region>(ring: &mut Pusher<R>, behind_max: u64, position: u64) -> Handed {
    // If it was close enough by the last known count, the subscriber's line need not be read.
    if ring.is_behind(behind_max) || !ring.has_room() {
        ring.evict(position);
        return Handed::Evicted;
    }
    if ring.push(position) { Handed::Given } else { Handed::Refused }
}

impl<R: Region> Delivery<R> {
    #[inline]
    pub(super) fn hand(&mut self, instrument: u32, position: u64) -> Handed {
        match self {
            Self::Gap(ring) | Self::Credit(ring) => {
                if ring.push(position) {
                    Handed::Given
                } else {
                    Handed::Refused
                }
            }
            Self::Conflate(table) => match table.put(instrument, position) {
                Put::New => Handed::Given,
                Put::Conflated => Handed::Conflated,
                Put::Outside => Handed::Refused,
            },
            Self::Evict { ring, behind_max } => push_or_evict(ring, *behind_max, position),
        }
    }

    /// Prefetches the place of the next position.
    #[inline]
    pub(super) fn warm(&self) {
        match self {
            Self::Gap(ring) | Self::Credit(ring) | Self::Evict { ring, .. } => ring.warm(),
            Self::Conflate(_) => {}
        }
    }

    /// The ring of a subscriber that must not lose records.
    pub(super) fn credit(&mut self) -> Option<&mut Pusher<R>> {
        if let Self::Credit(ring) = self { Some(ring) } else { None }
    }
}
