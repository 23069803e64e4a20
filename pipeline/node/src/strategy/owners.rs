//! The node of each strategy, in an area that the master writes and td reads.
//!
//! Two words per strategy: its node, and the node that released it, whose last orders may still be pending.
//! Each is a node's number + 1, or 0 for none.

use crate::STRATEGIES_MAX;
use lowlat_ipc::region::Region;
use std::sync::atomic::{AtomicU64, Ordering};

pub const AREA: &str = "owners";
/// Words of one strategy.
const STRIDE: usize = 2;
pub const BYTES: u64 = STRATEGIES_MAX as u64 * STRIDE as u64 * 8;

/// The table in some memory.
#[derive(Debug)]
pub struct Owners<R> {
    region: R,
}

impl<R: Region> Owners<R> {
    /// The table in this memory; `None` if it is too small.
    pub fn new(region: R) -> Option<Self> {
        let words = usize::try_from(BYTES / 8).unwrap_or(usize::MAX);
        (region.words().len() >= words).then_some(Self { region })
    }

    /// Returns whether a node may send orders of a strategy: it owns the strategy, or released it.
    #[inline]
    pub fn has(&self, node: u32, strategy: u32) -> bool {
        let entry = u64::from(node) + 1;
        // Pairs with the store in `set`. Acquire: the checked order was published after the store.
        self.words(strategy).iter().any(|word| word.load(Ordering::Acquire) == entry)
    }

    /// Sets the owner of a strategy and the node that released it. Only the master calls this.
    pub fn set(&self, strategy: u32, owner: Option<u32>, before: Option<u32>) {
        // The releasing node first: at no time is a permitted node missing.
        for (word, node) in self.words(strategy).iter().rev().zip([before, owner]) {
            // Pairs with the load in `has`.
            word.store(node.map_or(0, |node| u64::from(node) + 1), Ordering::Release);
        }
    }

    /// The words of a strategy; none for a number that is too large.
    #[inline]
    fn words(&self, strategy: u32) -> &[AtomicU64] {
        let at = if strategy < STRATEGIES_MAX { strategy as usize * STRIDE } else { usize::MAX - STRIDE };
        self.region.words().get(at..at + STRIDE).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_ipc::region::Heap;

    #[test]
    fn a_strategy_belongs_to_its_node_and_to_the_one_that_released_it() {
        let owners = Owners::new(Heap::zeroed(BYTES)).unwrap();
        assert!(!owners.has(0, 5), "nobody's");
        owners.set(5, Some(0), None);
        assert!(owners.has(0, 5) && !owners.has(1, 5) && !owners.has(0, 4) && !owners.has(0, 6));
        owners.set(5, Some(1), Some(0));
        assert!(owners.has(0, 5) && owners.has(1, 5) && !owners.has(2, 5));
        for strategy in [STRATEGIES_MAX, u32::MAX] {
            owners.set(strategy, Some(1), None);
            assert!(!owners.has(1, strategy));
        }
        assert!(Owners::new(Heap::zeroed(BYTES - 8)).is_none());
    }
}
