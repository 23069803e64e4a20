//! What happens to records that a node is too slow for: its own choice when it joins, stream by stream.

use super::Memory;
use lowlat_ipc::{
    index_ring::{self, Taken, Taker},
    latest::{self, LatestTaker},
    router,
};
use serde::{Deserialize, Serialize};

/// What happens to records that a node is too slow for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overrun {
    /// What finds its ring full is lost to it, and it is told how many, in their place among the others.
    #[default]
    Gap,
    /// It is given the latest record of each instrument; what a newer one took the place of is counted at its publisher.
    Conflate,
    /// Nothing is lost: while it has no room, records that it wants are refused to their publisher, which is told. Only of
    /// streams whose writer gives credit ([`super::Writes::gives_credit`]); of others it is [`Overrun::Gap`]. A process
    /// that starts again is given what the one before it had in hand.
    Credit,
    /// When more than so many records wait for it, it is given up and told how many it lost; then it begins with the
    /// next.
    Evict {
        /// How many may wait.
        behind_max: u64,
    },
}

impl Overrun {
    /// What a stream of that kind offers of it.
    #[must_use]
    pub(crate) fn of_writer(self, gives_credit: bool) -> Self {
        if self == Self::Credit && !gives_credit { Self::Gap } else { self }
    }

    /// Bytes of the memory between publisher and subscriber: a ring of so many entries, or a table of so many keys.
    pub(crate) fn bytes(self, entries: u64) -> u64 {
        match self {
            Self::Conflate => latest::bytes(u32::try_from(entries).unwrap_or(u32::MAX)),
            Self::Gap | Self::Credit | Self::Evict { .. } => index_ring::bytes(entries),
        }
    }

    /// The publisher's side of that memory; none when it is too small.
    pub(crate) fn give(self, memory: Memory, entries: u64) -> Option<router::Overrun<Memory>> {
        let ring = |memory| index_ring::create(memory, entries);
        Some(match self {
            Self::Gap => router::Overrun::Gap(ring(memory)?),
            Self::Credit => router::Overrun::Credit(ring(memory)?),
            Self::Evict { behind_max } => router::Overrun::Evict { ring: ring(memory)?, behind_max },
            Self::Conflate => {
                router::Overrun::Conflate(latest::create(memory, u32::try_from(entries).ok()?)?)
            }
        })
    }

    /// The subscriber's side of it; none when its first word does not fit.
    pub(super) fn take(self, memory: Memory) -> Option<Taking> {
        Some(match self {
            Self::Gap | Self::Evict { .. } => Taking::Ring(index_ring::open(memory)?),
            Self::Credit => Taking::Held(index_ring::open(memory)?),
            Self::Conflate => Taking::Latest { table: latest::open(memory)?, last: None },
        })
    }
}

/// How a subscriber takes positions.
#[derive(Debug)]
pub(super) enum Taking {
    Ring(Taker<Memory>),
    /// What was taken keeps its room until the next is asked for: it has been worked off then.
    Held(Taker<Memory>),
    Latest {
        table: LatestTaker<Memory>,
        last: Option<u64>,
    },
}

impl Taking {
    /// Whether an entry is there: one look at the line that it comes with. A table is not looked for so.
    #[inline]
    pub(super) fn has_entry(&self) -> bool {
        match self {
            Self::Ring(ring) | Self::Held(ring) => ring.has_entry(),
            Self::Latest { .. } => false,
        }
    }

    pub(super) fn tells_entries(&self) -> bool {
        matches!(self, Self::Ring(_) | Self::Held(_))
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<Taken> {
        match self {
            Self::Ring(ring) => ring.next(),
            Self::Held(ring) => {
                ring.release();
                ring.hold()
            }
            Self::Latest { table, last } => loop {
                let position = table.take()?;
                // The master gives a dead writer's last record once more, as it can't see whether it was taken.
                if last.is_none_or(|last| position > last) {
                    *last = Some(position);
                    return Some(Taken::Entry(position));
                }
            },
        }
    }
}
