//! Ticks of a counter: converted to nanoseconds and back, and counted between two readings.

/// Converts ticks to nanoseconds with one multiplication, so that recording needs no division.
///
/// The factor has 48 fractional bits: over a day, at any frequency of a counter, the error is below 1 ns per
/// 10^5 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickScale {
    hz: u64,
    ns_per_tick_shifted: u128,
}

const SHIFT: u32 = 48;
const NS_PER_S: u128 = 1_000_000_000;

impl TickScale {
    /// A counter whose ticks are nanoseconds.
    pub const NANOSECONDS: Self = Self { hz: 1_000_000_000, ns_per_tick_shifted: 1 << SHIFT };

    /// Creates the scale of a counter with this frequency; zero counts as one.
    pub fn new(hz: u64) -> Self {
        let hz = hz.max(1);
        let half = u128::from(hz) / 2;
        Self { hz, ns_per_tick_shifted: ((NS_PER_S << SHIFT) + half) / u128::from(hz) }
    }

    pub fn hz(&self) -> u64 {
        self.hz
    }

    /// Converts ticks to nanoseconds, rounded to the nearest.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        // At most 64 bits times 78 bits: the shift leaves space for every real pair; others saturate.
        let product = u128::from(ticks).saturating_mul(self.ns_per_tick_shifted);
        u64::try_from((product.saturating_add(1 << (SHIFT - 1))) >> SHIFT).unwrap_or(u64::MAX)
    }

    /// Converts ticks to nanoseconds, with a fraction.
    pub fn ns_fraction(&self, ticks: f64) -> f64 {
        ticks * 1e9 / self.hz as f64
    }

    /// Converts nanoseconds to ticks, rounded up: a gap of that many ticks is never shorter than the span.
    pub fn ticks(&self, ns: u64) -> u64 {
        let ticks = (u128::from(ns) * u128::from(self.hz)).div_ceil(NS_PER_S);
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }
}

/// Ticks from one reading to a later one, including a wrap; `None` if the later one is lower.
#[inline]
pub fn ticks_between(before: u64, now: u64) -> Option<u64> {
    let ticks = now.wrapping_sub(before);
    (ticks <= i64::MAX.cast_unsigned()).then_some(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        let scale = TickScale::new(2_000_000_000);
        assert_eq!((scale.ns(0), scale.ns(1), scale.ns(2), scale.ns(3)), (0, 1, 1, 2));
        assert_eq!(scale.ticks(100), 200);
        assert_eq!(TickScale::new(1_000_000_000), TickScale::NANOSECONDS);
        assert_eq!(TickScale::new(24_000_000).ticks(100), 3, "2.4 ticks are three whole ones");
        assert_eq!(TickScale::new(0).hz(), 1);
        assert_eq!(TickScale::new(1).ns(u64::MAX), u64::MAX);
        // A day at 2.596132 GHz.
        let scale = TickScale::new(2_596_132_000);
        assert_eq!(scale.ns(2_596_132_000 * 86_400), 86_400_000_000_000);
    }

    #[test]
    fn readings_wrap_and_never_run_backwards() {
        assert_eq!(ticks_between(u64::MAX - 1, 3), Some(5));
        assert_eq!(ticks_between(7, 7), Some(0));
        assert_eq!(ticks_between(8, 7), None);
    }

    proptest! {
        #[test]
        fn agrees_with_the_division(hz in 1_000_000_u64..10_000_000_000, ticks in 0_u64..1 << 50) {
            let exact = u128::from(ticks) * NS_PER_S / u128::from(hz);
            let ns = u128::from(TickScale::new(hz).ns(ticks));
            prop_assert!(ns.abs_diff(exact) <= 1 + exact / 1_000_000_000_000, "{} {}", ns, exact);
        }

        #[test]
        fn a_threshold_in_ticks_is_never_shorter(hz in 1_000_000_u64..10_000_000_000, ns in 1_u64..1 << 40) {
            let scale = TickScale::new(hz);
            let ticks = scale.ticks(ns);
            prop_assert!(scale.ns(ticks) >= ns);
            prop_assert!(u128::from(ticks - 1) * NS_PER_S < u128::from(ns) * u128::from(hz));
        }
    }
}
