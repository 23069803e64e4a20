//! Doubts about a counter, found before and after a run.

use super::{ArchCounter, CounterKind, MonotonicCounter, MonotonicRaw, TickScale, counter::nanoseconds};
use lowlat_host::Reading;
use lowlat_host_run::Root;
use lowlat_jitter::Warning;
use rustix::time::ClockId;

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const CLOCKSOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Accepted drift between counter and kernel clock during a run: 200 ppm. Crystals are accurate to 100 ppm.
const DRIFT_PPM_MAX: f64 = 200.0;
/// Shorter runs cannot distinguish a drift from the time it takes to read both clocks.
const DRIFT_RUN_NS_MIN: u64 = 500_000_000;
/// A jump of the time of day against the time since boot that counts as set. Less can be a delay between the
/// two readings.
const STEP_NS_MIN: u64 = 1_000_000;
/// Readings of the time of day, of which the tightest is used.
const STEP_READINGS: u32 = 16;
/// Shorter suspends are ignored.
const SUSPENDED_NS_MIN: u64 = 10_000_000;

/// The clocks of a host at one moment.
#[derive(Debug, Clone)]
pub struct ClockState {
    ticks: u64,
    raw_ns: u64,
    monotonic_ns: u64,
    boottime_ns: u64,
    day: TimeOfDay,
    clocksource: Reading<String>,
}

impl ClockState {
    pub fn read(root: &Root) -> Self {
        Self {
            ticks: ArchCounter.now(),
            raw_ns: MonotonicRaw.now(),
            monotonic_ns: nanoseconds(ClockId::Monotonic),
            boottime_ns: nanoseconds(ClockId::Boottime),
            day: TimeOfDay::read(),
            clocksource: root.read(CLOCKSOURCE),
        }
    }

    /// Returns doubts about the clocks from what happened between two states.
    pub fn doubts_until(&self, after: &Self, kind: CounterKind, scale: TickScale) -> Vec<Warning> {
        let mut doubts = Vec::new();
        let asleep = |state: &Self| state.boottime_ns.saturating_sub(state.monotonic_ns);
        let suspended_ns = asleep(after).saturating_sub(asleep(self));
        if suspended_ns >= SUSPENDED_NS_MIN {
            doubts.push(Warning::Suspended { suspended_ns });
        }
        if self.clocksource != after.clocksource {
            let (before, after) = (self.clocksource.clone(), after.clocksource.clone());
            doubts.push(Warning::ClockSourceChanged { before, after });
        }
        doubts.extend(self.day.step_until(&after.day));
        let raw_ns = after.raw_ns.saturating_sub(self.raw_ns);
        if kind != CounterKind::MonotonicRaw && raw_ns >= DRIFT_RUN_NS_MIN && suspended_ns < SUSPENDED_NS_MIN
        {
            let counted_ns = scale.ns(after.ticks.saturating_sub(self.ticks));
            let drift_ppm = (counted_ns as f64 / raw_ns as f64 - 1.0) * 1e6;
            if drift_ppm.abs() > DRIFT_PPM_MAX {
                doubts.push(Warning::CounterDrifted { counter: kind.name(), drift_ppm });
            }
        }
        doubts
    }
}

/// Offset of the time of day from the time since boot, including suspends. Both are slewed in the same way, so
/// the offset changes only if the time of day is set.
#[derive(Debug, Clone, Copy)]
struct TimeOfDay {
    since_boot_ns: i128,
    /// Time between the two readings of the time since boot around that of the time of day.
    doubt_ns: u64,
}

impl TimeOfDay {
    fn read() -> Self {
        let once = || {
            let before_ns = nanoseconds(ClockId::Boottime);
            let day_ns = i128::from(nanoseconds(ClockId::Realtime));
            let doubt_ns = nanoseconds(ClockId::Boottime).saturating_sub(before_ns);
            Self { since_boot_ns: day_ns - i128::from(before_ns), doubt_ns }
        };
        (1..STEP_READINGS)
            .map(|_| once())
            .fold(once(), |best, one| if one.doubt_ns < best.doubt_ns { one } else { best })
    }

    fn step_until(&self, after: &Self) -> Option<Warning> {
        let step_ns = after.since_boot_ns - self.since_boot_ns;
        (step_ns.unsigned_abs() > u128::from(STEP_NS_MIN + self.doubt_ns + after.doubt_ns))
            .then_some(Warning::TimeOfDaySet { step_ns })
    }
}

/// The counter to use on this host, and its doubts.
///
/// The processor's counter, unless it is a TSC that is neither invariant nor offered by the kernel as a clock
/// source: its rate could change during the measurement, so the kernel's clock is used.
pub fn choose(root: &Root) -> (CounterKind, Vec<Warning>) {
    let kind = ArchCounter::KIND;
    if kind != CounterKind::Tsc {
        return (kind, Vec::new());
    }
    choose_tsc(
        is_tsc_invariant(),
        &root.read(CLOCKSOURCES).map(|text| text.split_whitespace().any(|name| name == "tsc")),
        &root.read(CLOCKSOURCE),
    )
}

fn choose_tsc(
    is_invariant: bool,
    is_offered: &Reading<bool>,
    clocksource: &Reading<String>,
) -> (CounterKind, Vec<Warning>) {
    let mut doubts = Vec::new();
    match (is_invariant, is_offered.known()) {
        (true, Some(false)) => doubts.push(Warning::TscNotOffered),
        (false, Some(true)) => doubts.push(Warning::TscNotReportedInvariant),
        (false, _) => return (CounterKind::MonotonicRaw, vec![Warning::TscNotUsed]),
        (true, _) => {}
    }
    if let Some(name) = clocksource.known().filter(|name| *name != "tsc" && is_offered.known() == Some(&true))
    {
        doubts.push(Warning::ClockSourceNotTsc { name: name.clone() });
    }
    (CounterKind::Tsc, doubts)
}

#[cfg(target_arch = "x86_64")]
fn is_tsc_invariant() -> bool {
    super::cpuid::is_tsc_invariant()
}

#[cfg(not(target_arch = "x86_64"))]
fn is_tsc_invariant() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(seconds: u64, slept_s: u64, ticks_ppm: u64, clocksource: &str) -> ClockState {
        ClockState {
            ticks: seconds * 1_000 * (1_000_000 + ticks_ppm),
            raw_ns: seconds * 1_000_000_000,
            monotonic_ns: seconds * 1_000_000_000,
            boottime_ns: (seconds + slept_s) * 1_000_000_000,
            day: TimeOfDay { since_boot_ns: 1_700_000_000_000_000_000, doubt_ns: 300 },
            clocksource: Reading::Known(clocksource.into()),
        }
    }

    fn text(doubts: &[Warning]) -> String {
        doubts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_quiet_run_raises_no_doubt() {
        let scale = TickScale::new(1_000_000_000);
        let doubts =
            |after: ClockState| text(&state(0, 5, 0, "tsc").doubts_until(&after, CounterKind::Tsc, scale));
        assert_eq!(doubts(state(60, 5, 50, "tsc")), "");
        assert!(doubts(state(60, 5, 500, "tsc")).contains("+500 ppm"));
        assert!(doubts(state(60, 65, 500, "tsc")).starts_with("The host was suspended for 60.000 s"));
        assert!(doubts(state(60, 5, 0, "hpet")).contains("from tsc to hpet"));
    }

    #[test]
    fn a_set_time_of_day_is_reported() {
        let scale = TickScale::new(1_000_000_000);
        let doubts = |by_ns: i128, doubt_ns| {
            let mut after = state(60, 5, 0, "tsc");
            after.day = TimeOfDay { since_boot_ns: after.day.since_boot_ns + by_ns, doubt_ns };
            text(&state(0, 5, 0, "tsc").doubts_until(&after, CounterKind::Tsc, scale))
        };
        assert!(
            doubts(-1_000_000_000, 100).starts_with("The time of day was set during the run, by -1.000 s.")
        );
        assert!(doubts(37_000_000_000, 100).contains("by +37.000 s"));
        assert_eq!(doubts(900_000, 100), "", "a delay between two readings is no step");
        assert_eq!(doubts(3_000_000, 2_500_000), "", "nor is a long, detected one");
    }

    #[test]
    fn the_time_of_day_of_this_host_is_not_set_during_the_test() {
        let before = TimeOfDay::read();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let told = before.step_until(&TimeOfDay::read());
        assert!(told.is_none(), "{told:?}; was the clock set meanwhile?");
    }

    #[test]
    fn the_tsc_is_used_if_invariant_or_offered_by_the_kernel() {
        let clock = |name: &str| Reading::Known(name.to_owned());
        let tsc = |invariant, offered: Reading<bool>, name| choose_tsc(invariant, &offered, &clock(name));
        assert_eq!(tsc(true, Reading::Known(true), "tsc"), (CounterKind::Tsc, vec![]));
        assert_eq!(tsc(true, Reading::Absent, "tsc"), (CounterKind::Tsc, vec![]));
        assert_eq!(tsc(false, Reading::Known(false), "hpet").0, CounterKind::MonotonicRaw);
        for (invariant, offered, name) in
            [(true, false, "hpet"), (false, true, "tsc"), (true, true, "kvm-clock")]
        {
            let (kind, doubts) = tsc(invariant, Reading::Known(offered), name);
            assert_eq!((kind, doubts.len()), (CounterKind::Tsc, 1), "{doubts:?}");
        }
    }
}
