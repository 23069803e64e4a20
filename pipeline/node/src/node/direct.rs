//! A node that never sleeps and reads few streams polls for entries itself: an entry arrives in the line that
//! it polls, and its publishers set no bits. Items other than entries (a trailing loss, an eviction, messages
//! of its master) are found through the inbox, as in every node.

use super::{BEAT_NS, Event, Node, Publisher, Wait, incoming::Sources};
use crate::clock::monotonic_ns;

/// Maximum number of streams for which polling each, one line per stream, is faster than reading the inbox.
const STREAMS_DIRECT_MAX: u32 = 8;
/// Polls between two reads of the clock.
const LOOKS: u32 = 64;

/// Streams of the inbox's first word that this node polls itself, as bits: those that it follows, and in a node that spins
/// the others too, if all can be polled.
pub(super) fn streams(wait: Wait, incoming: &[Option<Sources>]) -> u64 {
    let followed = followed(incoming);
    let is_there = (0_u32..).zip(incoming).filter_map(|(number, sources)| Some((number, sources.as_ref()?)));
    let mut bits = 0_u64;
    for (number, sources) in is_there {
        match 1_u64.checked_shl(number).filter(|_| sources.tell_entries()) {
            Some(bit) => bits |= bit,
            None => return followed,
        }
    }
    if wait == Wait::Fast && bits.count_ones() <= STREAMS_DIRECT_MAX { bits } else { followed }
}

/// Streams that this node follows, whose publishers set no bits.
pub(super) fn followed(incoming: &[Option<Sources>]) -> u64 {
    let all = (0_u32..).zip(incoming);
    let followed = all.filter(|(_, sources)| sources.as_ref().is_some_and(Sources::is_followed));
    followed.filter_map(|(number, _)| 1_u64.checked_shl(number)).sum()
}

impl Node {
    /// Marks the streams that have an entry; returns false if none has.
    #[inline]
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub(super) fn look(&mut self) -> bool {
        let found = self.entries();
        // They are streams of the inbox's first word, and this is the same word.
        if let Some(pending) = self.pending.first_mut() {
            *pending |= found;
        }
        found != 0
    }

    /// Streams of [`Node::direct`] that have an entry, as bits.
    #[inline]
    fn entries(&self) -> u64 {
        let (mut bits, mut found) = (self.direct, 0);
        while bits != 0 {
            let bit = bits & bits.wrapping_neg();
            bits ^= bit;
            let sources = usize::try_from(bit.trailing_zeros()).ok().and_then(|at| self.incoming.get(at));
            if sources.and_then(Option::as_ref).is_some_and(Sources::has_entry) {
                found |= bit;
            }
        }
        found
    }

    /// Polls until something is available or the pipeline's clock shows `until_ns`.
    #[inline(never)]
    pub(super) fn wait_directly(
        &mut self,
        until_ns: u64,
        rehearsed: &mut dyn FnMut(&mut Publisher, Event<'_>),
    ) {
        if self.inbox.state() != lowlat_ipc::doorbell::SPINNING {
            self.inbox.set_spinning(true);
        }
        let mut start_ns = monotonic_ns();
        loop {
            for _ in 0..LOOKS {
                if self.entries() != 0 || self.inbox.is_ready_but(self.direct) {
                    return;
                }
                lowlat_ipc::relax();
            }
            let now_ns = monotonic_ns();
            self.beat(now_ns);
            self.rehearse(now_ns, u64::MAX, rehearsed);
            if now_ns >= until_ns || self.is_ready_beside() {
                return;
            }
            if now_ns.saturating_sub(start_ns) >= BEAT_NS {
                // Bits that are left set may announce more than entries, and a writer may have lapped a stream.
                if self.followed != 0 || self.inbox.is_ready() {
                    self.takes_all = true;
                    return;
                }
                start_ns = now_ns;
            }
        }
    }
}
