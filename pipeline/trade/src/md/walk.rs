//! Simulated prices: a random walk per instrument.

use fastrand::Rng;
use lowlat_node::records::{Origin, Price, Quote};

/// One price step: 0.01 of the currency.
const TICK: Price = 100;
/// Bounds of a walk: far from 0, and from overflow of sums.
const MID_MIN: Price = 100 * TICK;
const MID_MAX: Price = 100_000 * TICK;
const SIZE_MAX: u32 = 1000;

/// A walk per instrument. The same seed gives the same quotes in the same version of lowlat.
#[derive(Debug, Clone)]
pub struct Walk {
    instruments: Vec<(Rng, Price)>,
}

impl Walk {
    /// Walks of this many instruments.
    pub fn new(seed: u64, instruments: u32) -> Self {
        let one = |instrument| {
            let mut rng = Rng::with_seed(seed ^ u64::from(instrument).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let start = rng.i64(1000..10_000) * TICK;
            (rng, start)
        };
        Self { instruments: (0..instruments).map(one).collect() }
    }

    /// The next quote of an instrument; an empty quote if the instrument does not exist.
    #[inline]
    pub fn quote(&mut self, instrument: u32, scheduled_ns: u64) -> Quote {
        let place = usize::try_from(instrument).ok().and_then(|at| self.instruments.get_mut(at));
        let Some((rng, middle)) = place else { return Quote { scheduled_ns, ..Quote::default() } };
        *middle = (*middle + rng.i64(-1..=1) * TICK).clamp(MID_MIN, MID_MAX);
        let (bid, ask) = (*middle - rng.i64(1..=2) * TICK, *middle + rng.i64(1..=2) * TICK);
        let last = if rng.bool() { bid } else { ask };
        let (bid_size, ask_size) = (rng.u32(1..SIZE_MAX), rng.u32(1..SIZE_MAX));
        Quote { scheduled_ns, bid, ask, last, bid_size, ask_size, origin: Origin::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quotes_are_quotes_and_a_seed_gives_them_again(
            seed in any::<u64>(), order in proptest::collection::vec(0_u32..5, 1..200),
        ) {
            let (mut one, mut other) = (Walk::new(seed, 5), Walk::new(seed, 5));
            for (now, instrument) in (0..).zip(order) {
                let quote = one.quote(instrument, now);
                prop_assert!(0 < quote.bid && quote.bid < quote.ask);
                prop_assert!(quote.bid <= quote.last && quote.last <= quote.ask);
                prop_assert!(quote.bid_size > 0 && quote.ask_size > 0);
                prop_assert_eq!(quote.scheduled_ns, now);
                prop_assert_eq!(other.quote(instrument, now), quote);
            }
        }

        /// The quotes of an instrument do not depend on when others are quoted.
        #[test]
        fn walks_are_their_own(seed in any::<u64>(), others in 0_usize..20) {
            let (mut alone, mut among) = (Walk::new(seed, 2), Walk::new(seed, 2));
            for _ in 0..others {
                among.quote(1, 0);
            }
            prop_assert_eq!(alone.quote(0, 0), among.quote(0, 0));
        }
    }

    #[test]
    fn an_unknown_instrument_has_no_price() {
        let quote = Walk::new(1, 1).quote(1, 5);
        assert_eq!((quote.bid, quote.scheduled_ns), (0, 5));
    }

    #[test]
    fn a_walk_moves() {
        let mut walk = Walk::new(1, 1);
        let first = walk.quote(0, 0);
        assert!((0..100).any(|_| walk.quote(0, 0).bid != first.bid));
    }
}
