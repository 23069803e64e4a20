//! Cost of the loop and of recording on this CPU, measured before the run.

use super::{
    recorder::CpuRecorder,
    spin::{STRETCH_TURNS, spin},
};
use crate::clock::{MonotonicCounter, TickScale};

/// Number of turns for the calibration.
const TURNS: u32 = 256 * STRETCH_TURNS;
/// Turns per sample of the period.
const SAMPLE_TURNS: u32 = 64;
const RECORDINGS: u64 = 1_024;

/// The shortest default threshold: the value used by the low-latency guides of AMD and HPE with sysjitter.
const THRESHOLD_NS_MIN: u64 = 100;
/// Minimum ratio of the default threshold to a turn of the slowest CPU's loop, so that a slightly slow turn, as
/// with a busy sibling thread, is not an interruption.
const THRESHOLD_TURNS: f64 = 5.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Median time of one turn.
    pub period_ns: f64,
    /// Time of the shortest turn.
    pub floor_ns: f64,
    /// Median time of one recording.
    pub recording_ticks: u64,
}

/// Calibrates on the calling thread's CPU. Leaves the recorder empty.
pub fn calibrate<C: MonotonicCounter>(
    counter: &C,
    recorder: &mut CpuRecorder,
    scale: TickScale,
) -> Calibration {
    let period_ticks = period_ticks(counter);
    Calibration {
        period_ns: scale.ns_fraction(period_ticks),
        // Searching for the minimum adds a comparison to a turn, which must not affect the median.
        floor_ns: scale.ns_fraction(period_ticks.min(floor_ticks(counter) as f64)),
        recording_ticks: recording_ticks(counter, recorder),
    }
}

/// Median of the time per turn over samples of [`SAMPLE_TURNS`] turns of the run's own loop.
fn period_ticks<C: MonotonicCounter>(counter: &C) -> f64 {
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

fn floor_ticks<C: MonotonicCounter>(counter: &C) -> u64 {
    let mut floor = u64::MAX;
    let mut last = counter.now();
    for _ in 0..TURNS {
        let now = counter.now();
        // A backward reading wraps to a large gap, so it is never the minimum.
        floor = floor.min(now.wrapping_sub(last));
        last = now;
    }
    floor
}

fn recording_ticks<C: MonotonicCounter>(counter: &C, recorder: &mut CpuRecorder) -> u64 {
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

/// The default threshold of a run: one for all CPUs, so that they are comparable. At least five turns of the
/// slowest loop and 100 ns, rounded up to 10 ns.
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

    /// Steps of 20, with an occasional step of 5 and of 50,000.
    struct Steps(Cell<u64>, Cell<u64>);

    impl MonotonicCounter for Steps {
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

    fn recorder(scale: TickScale) -> CpuRecorder {
        CpuRecorder::new(scale, SeriesPlan::of(Duration::from_secs(1), 1), 4, 4)
    }

    #[test]
    fn period_and_floor_match_the_steps() {
        let scale = TickScale::new(2_000_000_000);
        let mut recorder = recorder(scale);
        let calibration = calibrate(&Steps(Cell::new(0), Cell::new(0)), &mut recorder, scale);
        assert_eq!(calibration, Calibration { period_ns: 10.0, floor_ns: 2.5, recording_ticks: 20 });
        assert_eq!(recorder.count, 0);
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
