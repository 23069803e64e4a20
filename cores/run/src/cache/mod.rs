//! Measurements of cores and caches.

mod bounce;
pub mod c2c;
pub mod clock;
pub mod clusters;
pub mod finder;
pub mod memory;
pub mod sharing;

pub use bounce::{BounceError, Rounds, bounce};
use std::mem;

/// Links all items to one ring in random order: each takes the place of an earlier one (Sattolo's algorithm). `link` is
/// an item's link, `place` what it holds for the item at a place.
pub fn link<T, L>(items: &mut [T], link: impl Fn(&mut T) -> &mut L, place: impl Fn(usize) -> L) {
    let mut random = fastrand::Rng::with_seed(7);
    for (at, item) in items.iter_mut().enumerate() {
        *link(item) = place(at);
    }
    for at in (1..items.len()).rev() {
        let (low, high) = items.split_at_mut(at);
        if let (Some(low), Some(high)) = (low.get_mut(random.usize(..at)), high.first_mut()) {
            mem::swap(link(low), link(high));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_links_are_one_cycle() {
        let mut lines = vec![(0, 0); 1_000];
        super::link(&mut lines, |line| &mut line.0, |place| place);
        let mut at = 0;
        for _ in 0..lines.len() {
            lines[at].1 += 1;
            at = lines[at].0;
        }
        assert!(at == 0 && lines.iter().all(|line| line.1 == 1));
    }
}
