//! What happens to records that a subscriber is too slow for.

use crate::{
    index_ring::Pusher,
    latest::{LatestPutter, Put},
    region::Region,
};

/// How positions go to one subscriber, and what becomes of those that it is too slow for. Chosen when it is connected.
#[derive(Debug)]
pub enum Overrun<R> {
    /// What finds its ring full is lost to it, and it is told exactly what: [`crate::index_ring::Gap`].
    Gap(Pusher<R>),
    /// It has no ring, but the latest position of each instrument; a newer one takes the place of an older one.
    Conflate(LatestPutter<R>),
    /// Nothing is lost: as long as it has no room, records that it wants are refused to the publisher before they are
    /// appended, and so are all that would be written over what it has not read. For orders. It takes with
    /// [`crate::index_ring::Taker::hold`]. One that has died must be disconnected, or the publisher stands still.
    Credit(Pusher<R>),
    /// When a record comes and it has more than so many still to take, it is given up, and told.
    Evict {
        /// Where positions go.
        ring: Pusher<R>,
        /// How many may wait.
        behind_max: u64,
    },
}

/// What became of one position at one subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handed {
    Given,
    Conflated,
    Refused,
    Evicted,
}

impl<R: Region> Overrun<R> {
    #[inline]
    pub(super) fn hand(&mut self, instrument: u32, position: u64) -> Handed {
        let is_in = match self {
            Self::Gap(ring) | Self::Credit(ring) => ring.push(position),
            Self::Conflate(table) => {
                return match table.put(instrument, position) {
                    Put::New => Handed::Given,
                    Put::Conflated => Handed::Conflated,
                    Put::Outside => Handed::Refused,
                };
            }
            Self::Evict { ring, behind_max } => {
                // What it had taken when it was last looked up is enough to know that it is not behind.
                if ring.is_behind(*behind_max) || !ring.has_room() {
                    ring.evict(position);
                    return Handed::Evicted;
                }
                ring.push(position)
            }
        };
        if is_in { Handed::Given } else { Handed::Refused }
    }

    /// Has the place of the next position fetched.
    #[inline]
    pub(super) fn warm(&self) {
        match self {
            Self::Gap(ring) | Self::Credit(ring) | Self::Evict { ring, .. } => ring.warm(),
            Self::Conflate(_) => {}
        }
    }

    /// The ring of a subscriber that may lose nothing.
    pub(super) fn credit(&mut self) -> Option<&mut Pusher<R>> {
        if let Self::Credit(ring) = self { Some(ring) } else { None }
    }
}
