//! Latency of records inside one end of the bridge. Each end uses its host's clock, and nothing here compares
//! two clocks.

use hdrhistogram::Histogram;
use lowlat_host::statistics::carries_quantile;

/// Longest latency that is resolved: longer ones count as that.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Latencies of one end. Recording does not allocate.
#[derive(Debug)]
pub struct Hop {
    histogram: Option<Histogram<u64>>,
}

/// Statistics of a [`Hop`], for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HopFigures {
    /// Number of records with a latency.
    pub count: u64,
    /// Median; `None` with too few records.
    pub p50_ns: Option<u64>,
    /// 99th percentile; `None` with too few records.
    pub p99_ns: Option<u64>,
    /// Largest latency; `None` without records.
    pub latency_ns_max: Option<u64>,
}

impl Default for Hop {
    fn default() -> Self {
        Self { histogram: Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).ok() }
    }
}

impl Hop {
    /// Counts the time between both; ignored if the first is missing or after the second, because it is from
    /// another clock.
    pub fn record(&mut self, from_ns: u64, to_ns: u64) {
        if let (Some(histogram), Some(latency_ns)) = (&mut self.histogram, to_ns.checked_sub(from_ns))
            && from_ns > 0
        {
            histogram.saturating_record(latency_ns);
        }
    }

    pub fn figures(&self) -> HopFigures {
        let Some(histogram) = self.histogram.as_ref().filter(|histogram| !histogram.is_empty()) else {
            return HopFigures::default();
        };
        let count = histogram.len();
        let at =
            |quantile: f64| carries_quantile(count, quantile).then(|| histogram.value_at_quantile(quantile));
        HopFigures { count, p50_ns: at(0.5), p99_ns: at(0.99), latency_ns_max: Some(histogram.max()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_need_enough_records() {
        let mut hop = Hop::default();
        assert_eq!(hop.figures(), HopFigures::default());
        hop.record(10, 30);
        let figures = hop.figures();
        assert_eq!((figures.count, figures.p50_ns, figures.latency_ns_max), (1, None, Some(20)));
        // A time of another host, and no time.
        hop.record(u64::MAX, 30);
        hop.record(0, 30);
        assert_eq!(hop.figures().count, 1);
        for _ in 0..999 {
            hop.record(1, 101);
        }
        let figures = hop.figures();
        assert_eq!((figures.p50_ns, figures.p99_ns), (Some(100), Some(100)));
    }
}
