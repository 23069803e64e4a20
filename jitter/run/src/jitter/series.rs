//! Time series of a run: one bin per second, wider bins if the run is too long for that.

use crate::clock::TickScale;
use lowlat_jitter::{JitterSecond, LONG_NS};
use std::{hint::black_box, time::Duration};

/// Maximum bins per CPU: a day of seconds.
pub const BINS_MAX: u64 = 86_400;
/// Maximum bins of all CPUs of a run, 127 MiB: a day of seconds on 64 CPUs. More CPUs share them.
const BINS_MAX_TOTAL: u64 = 64 * BINS_MAX;
const BINS_MIN: u64 = 600;

/// Number and width of the bins of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesPlan {
    /// Width of a bin in whole seconds.
    pub bin_s: u64,
    pub count: usize,
}

impl SeriesPlan {
    /// For a run of this duration on this many CPUs.
    pub fn of(duration: Duration, cpu_count: usize) -> Self {
        let bins_max = (BINS_MAX_TOTAL / (cpu_count as u64).max(1)).clamp(BINS_MIN, BINS_MAX);
        let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
        let bin_s = seconds.div_ceil(bins_max).max(1);
        let count = usize::try_from(seconds.div_ceil(bin_s).max(1)).expect("at most BINS_MAX bins");
        Self { bin_s, count }
    }

    pub fn bin_ns(&self) -> u64 {
        self.bin_s * 1_000_000_000
    }
}

/// The bins of one CPU, in ticks.
#[derive(Debug)]
pub struct Series {
    bins: Vec<Bin>,
    bin_ticks: u64,
    long_ticks: u64,
    scale: TickScale,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    /// A loop has fewer iterations within the longest bin.
    count: u32,
    long_count: u32,
    ticks_total: u64,
    ticks_max: u64,
}

impl Series {
    pub fn new(plan: SeriesPlan, scale: TickScale) -> Self {
        Self {
            bins: vec![Bin::default(); plan.count],
            bin_ticks: scale.hz().saturating_mul(plan.bin_s).max(1),
            long_ticks: scale.ticks(LONG_NS),
            scale,
        }
    }

    /// Writes to each bin, so that its memory is resident.
    pub fn touch(&mut self) {
        self.bins.fill(Bin { count: 1, ..Bin::default() });
        // Keeps the compiler from dropping the write because of the next one.
        black_box(&mut self.bins);
        self.clear();
    }

    pub fn clear(&mut self) {
        self.bins.fill(Bin::default());
    }

    /// Counts an interruption in the bin in which it ended; one that outlasts the run in the last bin.
    pub fn record(&mut self, end: u64, length: u64) {
        let last = self.bins.len().saturating_sub(1);
        let index = usize::try_from(end / self.bin_ticks).map_or(last, |index| index.min(last));
        if let Some(bin) = self.bins.get_mut(index) {
            bin.count = bin.count.saturating_add(1);
            bin.long_count = bin.long_count.saturating_add((length >= self.long_ticks).into());
            bin.ticks_total = bin.ticks_total.saturating_add(length);
            bin.ticks_max = bin.ticks_max.max(length);
        }
    }

    /// The bins reached by the run.
    pub fn into_seconds(mut self, run_ticks: u64) -> Vec<JitterSecond> {
        let reached = usize::try_from(run_ticks.div_ceil(self.bin_ticks)).unwrap_or(usize::MAX);
        self.bins.truncate(reached);
        let scale = self.scale;
        self.bins
            .into_iter()
            .map(|bin| JitterSecond {
                count: bin.count.into(),
                ns_total: scale.ns(bin.ticks_total),
                ns_max: scale.ns(bin.ticks_max),
                long_count: Some(bin.long_count.into()),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_bins_is_bounded() {
        let plan = |seconds, ns| {
            let plan = SeriesPlan::of(Duration::new(seconds, ns), 64);
            (plan.bin_s, plan.count)
        };
        assert_eq!(plan(0, 1), (1, 1));
        assert_eq!(plan(1, 0), (1, 1));
        assert_eq!(plan(1, 1), (1, 2));
        assert_eq!(plan(86_400, 0), (1, 86_400));
        assert_eq!(plan(86_400, 1), (2, 43_201));
        assert_eq!(plan(365 * 86_400, 0), (365, 86_400));
    }

    #[test]
    fn many_cpus_share_the_bins() {
        let plan = |cpus| {
            let plan = SeriesPlan::of(Duration::from_secs(86_400), cpus);
            (plan.bin_s, plan.count)
        };
        assert_eq!((plan(0), plan(64), plan(65)), ((1, 86_400), (1, 86_400), (2, 43_200)));
        assert_eq!((plan(1_024), plan(65_536)), ((16, 5_400), (144, 600)));
        // Ten minutes keep one bin per second on any host.
        assert_eq!(SeriesPlan::of(Duration::from_secs(600), 65_536).bin_s, 1);
    }

    #[test]
    fn a_gap_over_a_boundary_counts_where_it_ended() {
        let mut series = Series::new(SeriesPlan::of(Duration::from_secs(3), 1), TickScale::new(1_000));
        series.record(999, 10);
        series.record(1_000, 10);
        series.record(1_005, 20);
        series.record(3_200, 400);
        let counts = |seconds: &[JitterSecond]| -> Vec<(u64, u64)> {
            seconds.iter().map(|second| (second.count, second.ns_max / 1_000_000)).collect()
        };
        let seconds = series.into_seconds(3_200);
        assert_eq!(counts(&seconds), [(1, 10), (2, 20), (1, 400)]);
        assert_eq!(seconds[1].long_count, Some(2), "10 and 20 ms are long");
    }

    #[test]
    fn a_run_cut_short_has_no_empty_tail() {
        let series = || Series::new(SeriesPlan::of(Duration::from_secs(10), 1), TickScale::new(1_000));
        assert_eq!(series().into_seconds(0).len(), 0);
        assert_eq!(series().into_seconds(1).len(), 1);
        assert_eq!(series().into_seconds(2_000).len(), 2);
        assert_eq!(series().into_seconds(u64::MAX).len(), 10);
    }
}
