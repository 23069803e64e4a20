//! Policy for records that a node is too slow for, chosen per stream when it joins.

use super::Memory;
use lowlat_ipc::{
    index_ring::{self, Taken, Taker},
    latest::{self, LatestTaker},
    router,
    stream::cursor::{self, Cursor},
};
use serde::{Deserialize, Serialize};

/// Policy for records that a node is too slow for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overrun {
    /// Records that find its ring full are lost, and it learns their number, in place.
    #[default]
    Gap,
    /// It gets the latest record of each instrument; its publisher counts the replaced ones.
    Conflate,
    /// Nothing is lost: while it has no room, the publisher is refused the records that it wants, and notified.
    /// Only for streams whose writer gives credit ([`super::Writes::gives_credit`]); for others it equals
    /// [`Overrun::Gap`]. A restarted process gets again what its predecessor was working on.
    Credit,
    /// If more than this many records are pending, it is evicted and learns how many it lost; then it continues
    /// with the next.
    Evict {
        /// Maximum number of pending records.
        behind_max: u64,
    },
    /// [`Overrun::Gap`] for a node that spins: it follows the stream itself, and its publisher does nothing for it. Chosen
    /// by the master. Lost records count whether or not the node wanted them.
    Followed,
}

impl Overrun {
    /// The policy that applies to a stream of that kind.
    #[must_use]
    pub fn of_writer(self, gives_credit: bool) -> Self {
        if self == Self::Credit && !gives_credit { Self::Gap } else { self }
    }

    /// Bytes of the memory between publisher and subscriber: a ring with this many entries, or a table with
    /// this many keys.
    pub fn bytes(self, entries: u64) -> u64 {
        match self {
            Self::Conflate => latest::bytes(u32::try_from(entries).unwrap_or(u32::MAX)),
            Self::Followed => cursor::BYTES,
            Self::Gap | Self::Credit | Self::Evict { .. } => index_ring::bytes(entries),
        }
    }

    /// The publisher's side of that memory; `None` if it is too small, or the publisher has none.
    pub fn give(self, memory: Memory, entries: u64) -> Option<router::Delivery<Memory>> {
        let ring = |memory| index_ring::create(memory, entries);
        Some(match self {
            Self::Gap => router::Delivery::Gap(ring(memory)?),
            Self::Credit => router::Delivery::Credit(ring(memory)?),
            Self::Evict { behind_max } => router::Delivery::Evict { ring: ring(memory)?, behind_max },
            Self::Conflate => {
                router::Delivery::Conflate(latest::create(memory, u32::try_from(entries).ok()?)?)
            }
            Self::Followed => return None,
        })
    }

    /// The subscriber's side of it; `None` if its first word does not match.
    pub(super) fn take(self, memory: Memory) -> Option<Taking> {
        Some(match self {
            Self::Gap | Self::Evict { .. } => Taking::Ring(index_ring::open(memory)?),
            Self::Credit => Taking::Held(index_ring::open(memory)?),
            Self::Conflate => Taking::Latest { table: latest::open(memory)?, last: None },
            Self::Followed => Taking::Followed { cursor: Cursor::open(memory)?, wanted: Wanted::All },
        })
    }
}

/// A subscriber's side of a ring or table, from which it takes positions.
#[derive(Debug)]
pub(super) enum Taking {
    Ring(Taker<Memory>),
    /// Taken entries keep their room until the next one is requested, when they have been processed.
    Held(Taker<Memory>),
    Latest {
        table: LatestTaker<Memory>,
        last: Option<u64>,
    },
    /// The stream itself, read one after the other; the cursor is for a successor.
    Followed {
        cursor: Cursor<Memory>,
        wanted: Wanted,
    },
}

/// Instruments whose records a node takes of a stream that it follows.
#[derive(Debug)]
pub(super) enum Wanted {
    All,
    /// One bit each.
    Only(Box<[u64]>),
}

impl Wanted {
    pub(super) fn only(instruments: impl Iterator<Item = u32>) -> Self {
        let mut bits = Vec::new();
        for instrument in instruments {
            let at = usize::try_from(instrument / 64).unwrap_or(0);
            if bits.len() <= at {
                bits.resize(at + 1, 0);
            }
            bits[at] |= 1_u64 << (instrument % 64);
        }
        Self::Only(bits.into())
    }

    #[inline]
    pub(super) fn has(&self, instrument: u32) -> bool {
        let Self::Only(bits) = self else { return true };
        let word = usize::try_from(instrument / 64).ok().and_then(|at| bits.get(at));
        word.is_some_and(|word| word >> (instrument % 64) & 1 != 0)
    }
}

impl Taking {
    /// True if an entry is available: one read of the entry's own line. Tables are not polled this way.
    #[inline]
    pub(super) fn has_entry(&self) -> bool {
        match self {
            Self::Ring(ring) | Self::Held(ring) => ring.has_entry(),
            // A stream that is followed is read by its source.
            Self::Latest { .. } | Self::Followed { .. } => false,
        }
    }

    pub(super) fn tells_entries(&self) -> bool {
        matches!(self, Self::Ring(_) | Self::Held(_))
    }

    #[inline]
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub(super) fn next(&mut self) -> Option<Taken> {
        match self {
            Self::Ring(ring) => ring.next(),
            Self::Held(ring) => {
                ring.release();
                ring.hold()
            }
            Self::Followed { .. } => None,
            Self::Latest { table, last } => loop {
                let position = table.take()?;
                // The master delivers a dead writer's last record again, because it cannot see whether it was
                // taken.
                if last.is_none_or(|last| position > last) {
                    *last = Some(position);
                    return Some(Taken::Entry(position));
                }
            },
        }
    }
}
