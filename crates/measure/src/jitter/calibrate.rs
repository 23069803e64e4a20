//! What the loop and the recording cost on this CPU, measured before the run.

use super::{
    recorder::Recorder,
    spin::{STRETCH_TURNS, spin},
};
use crate::clock::{Counter, TickScale};

/// Turns that are calibrated over.
const TURNS: u32 = 256 * STRETCH_TURNS;
/// Turns of one sample of the period.
const SAMPLE_TURNS: u32 = 64;
/// Recordings that are timed.
const RECORDINGS: u64 = 1_024;

/// The shortest default threshold: what the low-latency guides of AMD and HPE use with sysjitter.
const THRESHOLD_NS_MIN: u64 = 100;
/// The default threshold is at least so many turns of the slowest CPU's loop, so that a turn that is somewhat
/// slow, as when the sibling thread is busy, is no interruption.
const THRESHOLD_TURNS: f64 = 5.0;

/// A CPU's calibration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Median time of one turn.
    pub period_ns: f64,
    /// Shortest turn.
    pub floor_ns: f64,
    /// Median time of one recording.
    pub recording_ticks: u64,
}

/// Calibrates on the calling thread's CPU. Leaves the recorder empty.
pub fn calibrate<C: Counter>(counter: &C, recorder: &mut Recorder, scale: TickScale) -> Calibration {
    let period_ticks = period_ticks(counter);
    Calibration {
        period_ns: scale.ns_fraction(period_ticks),
        // Looking for the shortest makes a turn longer by a comparison, which must not show.
        floor_ns: scale.ns_fraction(period_ticks.min(floor_ticks(counter) as f64)),
        recording_ticks: recording_ticks(counter, recorder),
    }
}

/// Median of the time per turn over samples of [`SAMPLE_TURNS`] turns of the very loop of the run.
fn period_ticks<C: Counter>(counter: &C) -> f64 {
    let mut samples: Vec<u64> = Vec::with_capacity((TURNS / SAMPLE_TURNS) as usize);
    let mut last = counter.now();
    for _ in 0..TURNS / SAMPLE_TURNS {
        // No gap reaches the threshold, so all turns are made.
        let stretch = spin(counter, last, u64::MAX, SAMPLE_TURNS);
        samples.push(stretch.now.saturating_sub(last));
        last = stretch.now;
    }
    median(&mut samples) as f64 / f64::from(SAMPLE_TURNS)
}

fn floor_ticks<C: Counter>(counter: &C) -> u64 {
    let mut floor = u64::MAX;
    let mut last = counter.now();
    for _ in 0..TURNS {
        let now = counter.now();
        // A reading that goes backwards wraps to a large gap and so is no floor.
        floor = floor.min(now.wrapping_sub(last));
        last = now;
    }
    floor
}

fn recording_ticks<C: Counter>(counter: &C, recorder: &mut Recorder) -> u64 {
    recorder.begin(counter.now());
    let mut samples: Vec<u64> = Vec::with_capacity(usize::try_from(RECORDINGS).unwrap_or(0));
    for n in 0..RECORDINGS {
        let before = counter.now();
        recorder.record(before, before.saturating_add(1_000 + n * 37));
        samples.push(counter.now().saturating_sub(before));
    }
    recorder.clear();
    median(&mut samples)
}

fn median(samples: &mut [u64]) -> u64 {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or(0)
}

/// The threshold of a run for which the user named none: one for all CPUs, so that they compare. Five turns of the
/// slowest loop and 100 ns at least, rounded up to 10 ns.
pub fn default_threshold_ns(calibrations: &[Calibration]) -> u64 {
    let slowest = calibrations.iter().map(|one| one.period_ns).fold(0.0, f64::max);
    // A period is a positive number of ns far below 2^52; the cast saturates.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let turns = (slowest * THRESHOLD_TURNS).ceil() as u64;
    turns.max(THRESHOLD_NS_MIN).div_ceil(10).saturating_mul(10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::MonotonicRaw, jitter::series::SeriesPlan};
    use std::{cell::Cell, time::Duration};

    /// Steps of 20, with a step of 5 and one of 50,000 now and then.
    struct Steps(Cell<u64>, Cell<u64>);

    impl Counter for Steps {
        fn now(&self) -> u64 {
            let turn = self.1.get();
            self.1.set(turn + 1);
            let step = match turn % 4_096 {
                100 => 5,
                3_000 => 50_000,
                _ => 20,
            };
            self.0.set(self.0.get() + step);
            self.0.get()
        }
    }

    fn recorder(scale: TickScale) -> Recorder {
        Recorder::new(scale, SeriesPlan::of(Duration::from_secs(1), 1), 4, 4)
    }

    #[test]
    fn period_and_floor_are_those_of_the_steps() {
        let scale = TickScale::new(2_000_000_000);
        let mut recorder = recorder(scale);
        let calibration = calibrate(&Steps(Cell::new(0), Cell::new(0)), &mut recorder, scale);
        assert_eq!(calibration, Calibration { period_ns: 10.0, floor_ns: 2.5, recording_ticks: 20 });
        assert_eq!(recorder.count(), 0);
    }

    #[test]
    fn a_real_counter_has_a_period_above_its_floor() {
        let scale = TickScale::new(1_000_000_000);
        let calibration = calibrate(&MonotonicRaw, &mut recorder(scale), scale);
        assert!(
            calibration.period_ns > 0.0 && calibration.floor_ns <= calibration.period_ns,
            "{calibration:?}"
        );
    }

    #[test]
    fn the_default_threshold_is_a_multiple_of_the_slowest_period() {
        let of = |periods: &[f64]| {
            let all: Vec<Calibration> = periods
                .iter()
                .map(|period_ns| Calibration { period_ns: *period_ns, floor_ns: 1.0, recording_ticks: 1 })
                .collect();
            default_threshold_ns(&all)
        };
        assert_eq!(of(&[8.0, 12.0]), 100);
        assert_eq!(of(&[8.0, 25.3]), 130);
        assert_eq!(of(&[1_500.0]), 7_500);
        assert_eq!(of(&[]), 100);
    }
}
