//! A node that never sleeps and reads few streams looks for their entries itself: what it waits for comes with the line
//! that it looks at, and its publishers have no bit to set. What has no entry (a loss that nothing came behind, an
//! eviction, its master's word) is found through the inbox, as by everybody else.

use super::{BEAT_NS, Node, Wait, incoming::Sources, mark};
use crate::clock::now_ns;

/// Streams up to which looking at each of them is quicker than asking the inbox: a line each.
const STREAMS_DIRECT_MAX: u32 = 8;
/// Looks between two at the clock.
const LOOKS: u32 = 64;

/// Streams of the inbox's first word that this node looks for itself, as bits; none for a node that sleeps.
pub(super) fn streams(wait: Wait, incoming: &[Option<Sources>]) -> u64 {
    let is_there = (0_u32..).zip(incoming).filter_map(|(number, sources)| Some((number, sources.as_ref()?)));
    let mut bits = 0_u64;
    for (number, sources) in is_there {
        match 1_u64.checked_shl(number).filter(|_| sources.tell_entries()) {
            Some(bit) => bits |= bit,
            None => return 0,
        }
    }
    if wait == Wait::Fast && bits.count_ones() <= STREAMS_DIRECT_MAX { bits } else { 0 }
}

impl Node {
    /// Marks the streams that have an entry; false when none has.
    #[inline]
    pub(super) fn look(&mut self) -> bool {
        let mut bits = self.direct;
        let mut has_found = false;
        while bits != 0 {
            let stream = bits.trailing_zeros();
            bits &= bits - 1;
            if self.has_entry(stream) {
                mark(&mut self.pending, stream);
                has_found = true;
            }
        }
        has_found
    }

    #[inline]
    fn has_entry(&self, stream: u32) -> bool {
        let sources = usize::try_from(stream).ok().and_then(|at| self.incoming.get(at));
        sources.and_then(Option::as_ref).is_some_and(Sources::has_entry)
    }

    /// Whether [`Node::look`] would find something.
    #[inline]
    fn is_direct_ready(&self) -> bool {
        let mut bits = self.direct;
        while bits != 0 {
            if self.has_entry(bits.trailing_zeros()) {
                return true;
            }
            bits &= bits - 1;
        }
        false
    }

    /// Looks until something is there or the pipeline's clock shows `until_ns`.
    pub(super) fn wait_directly(&mut self, until_ns: u64) {
        if self.inbox.state() != lowlat_ipc::doorbell::SPINNING {
            self.inbox.set_spinning(true);
        }
        let mut start_ns = now_ns();
        loop {
            for _ in 0..LOOKS {
                if self.is_direct_ready() || self.inbox.is_ready_but(self.direct) {
                    return;
                }
                lowlat_ipc::relax();
            }
            let now_ns = now_ns();
            self.beat(now_ns);
            self.rehearse(now_ns);
            if now_ns >= until_ns || self.is_ready_beside() {
                return;
            }
            if now_ns.saturating_sub(start_ns) >= BEAT_NS {
                // Bits that are left alone may stand for more than entries.
                if self.inbox.is_ready() {
                    self.takes_all = true;
                    return;
                }
                start_ns = now_ns;
            }
        }
    }
}
