//! Variation of counts per second beyond that of independent events: bursts.

use lowlat_jitter::{JitterCpu, JitterRecord};

/// Seconds beyond the first that a series needs before it can show bursts.
const FREEDOM_MIN: f64 = 10.0;

/// The dispersion of the interruptions of one CPU, over consecutive runs; `None` if too short.
pub(super) fn of_cpu<'r>(runs: impl Iterator<Item = &'r JitterCpu>) -> Option<f64> {
    of_series(runs.map(counts))
}

/// The dispersion over all CPUs of each run together: a broadcast to every CPU at once is one burst.
pub(super) fn of_all<'r>(runs: impl Iterator<Item = &'r JitterRecord>) -> Option<f64> {
    of_series(runs.map(|run| {
        let mut series: Vec<Vec<u64>> = run.cpus.iter().map(counts).collect();
        let longest = series.iter().map(Vec::len).max().unwrap_or(0);
        // A CPU whose sampler ended early does not shorten the others.
        series.retain(|counts| counts.len() + 1 >= longest);
        let length = series.iter().map(Vec::len).min().unwrap_or(0);
        let sum_at = |at: usize| series.iter().filter_map(|counts| counts.get(at)).sum();
        (0..length).map(sum_at).collect()
    }))
}

/// The greater of two dispersions: without events after, only the run before shows how bursty they were.
pub(super) fn greater(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

/// One cause on one CPU of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windowed {
    /// Whole seconds in which it was counted.
    window_count: f64,
    /// Interruptions in these seconds that contained it.
    count: f64,
    /// Sum of the squared numbers of each window.
    square_sum: f64,
}

impl Windowed {
    pub(super) fn of(window_count: u64, count: u64, square_sum: u64) -> Self {
        Self { window_count: window_count as f64, count: count as f64, square_sum: square_sum as f64 }
    }

    fn of_series(counts: &[u64]) -> Self {
        let counts_as_f64 = || counts.iter().map(|count| *count as f64);
        Self {
            window_count: counts.len() as f64,
            count: counts_as_f64().sum(),
            square_sum: counts_as_f64().map(|count| count * count).sum(),
        }
    }
}

/// The dispersion of one cause over all CPUs, by run; `None` if the runs are too short or did not count it by windows.
///
/// Pearson's estimate: the squared distances from the mean, divided by the mean and the degrees of freedom; at least 1.
/// Only squares of each CPU are known, not how the CPUs vary together. The result is that of CPUs which vary in step,
/// as broadcasts make them: never too small, and 1 for what is regular on each CPU, such as ticks.
pub(super) fn of_cause(runs: &[Vec<Windowed>]) -> Option<f64> {
    let (mut distances, mut freedom) = (0.0, 0.0);
    for run in runs {
        let of_windows = run.iter().filter(|of| of.window_count >= 2.0 && of.count > 0.0);
        let (mut spread, mut mean, mut windows) = (0.0, 0.0, f64::INFINITY);
        for of in of_windows {
            // Squared distances from the mean; in a hostile document they could be below zero.
            spread += (of.square_sum - of.count * of.count / of.window_count).max(0.0).sqrt();
            mean += of.count / of.window_count;
            windows = windows.min(of.window_count);
        }
        if mean > 0.0 {
            distances += spread * spread / mean;
            freedom += windows - 1.0;
        }
    }
    (freedom >= FREEDOM_MIN).then(|| (distances / freedom).max(1.0))
}

/// Counts per second without the last second, which is incomplete.
fn counts(cpu: &JitterCpu) -> Vec<u64> {
    let whole = cpu.seconds.len().saturating_sub(1);
    // Sums over all CPUs of a hostile document must not overflow.
    cpu.seconds.iter().take(whole).map(|second| second.count.min(u64::from(u32::MAX))).collect()
}

/// The dispersion of series of counts, one of each run.
fn of_series(series: impl Iterator<Item = Vec<u64>>) -> Option<f64> {
    let runs: Vec<Vec<Windowed>> = series.map(|counts| vec![Windowed::of_series(&counts)]).collect();
    of_cause(&runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_jitter::JitterSecond;

    fn cpu(counts: &[u64]) -> JitterCpu {
        let seconds = counts.iter().map(|count| JitterSecond { count: *count, ..JitterSecond::default() });
        // The last second is incomplete.
        JitterCpu { seconds: seconds.chain([JitterSecond::default()]).collect(), ..JitterCpu::default() }
    }

    #[test]
    fn regular_events_have_the_least_and_one_burst_its_size() {
        assert_eq!(of_cpu([cpu(&[250; 30])].iter()), Some(1.0));
        let mut burst = vec![0; 611];
        burst[300] = 100;
        let found = of_cpu([cpu(&burst)].iter()).unwrap();
        assert!((found - 100.0).abs() < 0.5, "{found}");
    }

    #[test]
    fn short_or_empty_runs_tell_nothing() {
        assert_eq!(of_cpu([cpu(&[1, 9, 1])].iter()), None);
        assert_eq!(of_cpu([cpu(&[0; 100])].iter()), None);
        assert_eq!(of_cpu([JitterCpu::default()].iter()), None);
        assert_eq!(of_all([].iter()), None);
    }

    fn windowed(counts: &[u64]) -> Windowed {
        let squares = counts.iter().map(|count| count * count).sum();
        Windowed::of(counts.len() as u64, counts.iter().sum(), squares)
    }

    #[test]
    fn causes_have_their_own_bursts() {
        let ticks = windowed(&[250; 12]);
        assert_eq!(of_cause(&[vec![ticks; 64]]), Some(1.0));
        let burst = windowed(&[0, 0, 0, 0, 0, 0, 90, 0, 0, 0, 0, 0]);
        let (one, four) = (of_cause(&[vec![burst]]).unwrap(), of_cause(&[vec![burst; 4]]).unwrap());
        assert!((one - 90.0).abs() < 0.1 && (four - 360.0).abs() < 0.4, "{one} {four}");
        let series: Vec<JitterCpu> = vec![cpu(&[0, 0, 0, 0, 0, 0, 90, 0, 0, 0, 0, 0])];
        assert!((of_cpu(series.iter()).unwrap() - one).abs() < 1e-9, "the same as from a series");
        assert_eq!(of_cause(&[vec![windowed(&[1, 9, 1])]]), None, "too short");
        assert!(
            of_cause(&[vec![windowed(&[1; 7])], vec![windowed(&[1; 7])]]).is_some(),
            "together long enough"
        );
        let hostile = Windowed::of(20, u64::MAX, 0);
        assert_eq!(of_cause(&[vec![hostile]]), Some(1.0));
        assert_eq!(of_cause(&[vec![Windowed { window_count: 0.0, ..ticks }]]), None, "an earlier version");
    }

    /// Each CPU alone resembles independent events, but together they occur at once.
    #[test]
    fn broadcasts_show_over_all_cpus() {
        let counts: Vec<u64> = (0..100).map(|at| u64::from(at % 10 == 0)).collect();
        let run = JitterRecord { cpus: vec![cpu(&counts); 16], ..JitterRecord::default() };
        assert_eq!(of_cpu(run.cpus.iter().take(1)), Some(1.0));
        assert!(of_all([&run].into_iter()).unwrap() > 14.0);
        let mut cut = run;
        cut.cpus.push(cpu(&[0, 0, 1, 0, 0]));
        assert!(
            of_all([&cut].into_iter()).unwrap() > 14.0,
            "a sampler that ended early does not hide the others' bursts"
        );
    }
}
