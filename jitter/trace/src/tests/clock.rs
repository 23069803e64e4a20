use crate::{ClockPair, TickMap, TraceClock};
use proptest::prelude::*;

fn pair(stamp: u64, ticks: u64) -> ClockPair {
    ClockPair { stamp, ticks, ticks_error: 0 }
}

#[test]
fn a_clock_that_is_the_counter_stays_as_it_is() {
    let map = TickMap::identity(2_500_000_000);
    for stamp in [0, 1, 1 << 59, u64::MAX] {
        assert_eq!(map.ticks(stamp), stamp);
    }
    assert_eq!(map.ticks_of_ns(1_000), 2_500);
    assert_eq!(TickMap::identity(0).ticks_of_ns(1_000), 0);
}

#[test]
fn nanoseconds_become_ticks_of_a_slower_counter() {
    let map = TickMap::at_rate(pair(1_000_000, 500), 25_000_000);
    assert_eq!(map.ticks(1_000_000), 500);
    assert_eq!(map.ticks(1_000_400), 510);
    assert_eq!(map.ticks(999_600), 490, "moments before the reading too");
    assert_eq!(map.ticks(0), 0, "not before the counter's zero");
    assert_eq!(map.ticks_of_ns(4_000), 100);
    // A day later, to the tick.
    assert_eq!(map.ticks(1_000_000 + 86_400_000_000_000), 500 + 86_400 * 25_000_000);
}

#[test]
fn two_pairs_give_offset_and_ratio() {
    let map = TickMap::through(pair(1_000, 10), pair(2_001_000, 62_510)).unwrap();
    assert_eq!((map.ticks(1_000), map.ticks(2_001_000), map.ticks(1_001_000)), (10, 62_510, 31_260));
    assert_eq!(map.ticks_of_ns(1_000), 31);
    assert_eq!(TickMap::through(pair(1_000, 10), pair(1_000, 20)), None, "no time between");
    assert_eq!(TickMap::through(pair(1_000, 10), pair(2_000, 10)), None, "the counter does not advance");
    assert_eq!(TickMap::through(pair(2_000, 10), pair(1_000, 20)), None, "the clock went back");
}

#[test]
fn a_pair_lies_amid_its_readings_and_the_narrowest_is_best() {
    let narrow = ClockPair::between(100, 7, 105).unwrap();
    assert_eq!(narrow, ClockPair { stamp: 7, ticks: 102, ticks_error: 3 });
    let wide = ClockPair::between(100, 7, 900).unwrap();
    assert_eq!(ClockPair::best([wide, narrow, wide]), Some(narrow));
    assert_eq!(ClockPair::between(5, 7, 4), None);
    assert_eq!(ClockPair::best([]), None);
}

#[test]
fn clocks_have_the_kernels_names() {
    assert_eq!((TraceClock::X86Tsc.name(), TraceClock::MonoRaw.name()), ("x86-tsc", "mono_raw"));
}

proptest! {
    #[test]
    fn time_never_goes_back(
        first in any::<(u64, u64)>(), last in any::<(u64, u64)>(), stamps in any::<(u64, u64)>(),
        hz in any::<u64>(),
    ) {
        let maps = [
            TickMap::through(pair(first.0, first.1), pair(last.0, last.1)),
            Some(TickMap::at_rate(pair(first.0, first.1), hz)),
        ];
        let (early, late) = (stamps.0.min(stamps.1), stamps.0.max(stamps.1));
        for map in maps.into_iter().flatten() {
            prop_assert!(map.ticks(early) <= map.ticks(late));
            let _ = map.ticks_of_ns(early);
        }
    }
}
