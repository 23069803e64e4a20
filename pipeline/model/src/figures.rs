//! Latencies of a run's stages.

use hdrhistogram::Histogram;
use lowlat_host::statistics::carries_quantile;
use serde::{Deserialize, Serialize};

/// Figures of one stage's latencies.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StageFigures {
    pub count: u64,
    /// Mean; `None` if there are no latencies.
    pub mean_ns: Option<f64>,
    /// Median; `None` when the count cannot carry it.
    pub p50_ns: Option<u64>,
    /// 99th percentile; `None` when the count cannot carry it.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile; `None` when the count cannot carry it.
    pub p99_9_ns: Option<u64>,
    /// Longest; `None` if there are no latencies.
    pub max_ns: Option<u64>,
    /// All latencies: HdrHistogram V2, deflated, base64.
    pub histogram: String,
}

impl StageFigures {
    /// The figures of a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let count = histogram.len();
        let at =
            |quantile: f64| carries_quantile(count, quantile).then(|| histogram.value_at_quantile(quantile));
        Self {
            count,
            mean_ns: (count > 0).then(|| histogram.mean()),
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            p99_9_ns: at(0.999),
            max_ns: (count > 0).then(|| histogram.max()),
            histogram: lowlat_host::histogram::encode(histogram),
        }
    }
}

/// The three figures of the Kungfu report, and tick to order from the time that the tick was due.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stages {
    /// Market data: md wrote the quote, the strategy had read it.
    pub md: StageFigures,
    /// Order: the strategy wrote it, td had read it.
    pub order: StageFigures,
    /// Tick to order: md wrote the quote, td had read the order that it caused.
    pub t2o: StageFigures,
    /// The same from the time the quote was due, so that a late md does not hide what its readers would have seen.
    pub t2o_scheduled: StageFigures,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(count: u64) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        (1..=count).for_each(|value| histogram.record(value).unwrap());
        histogram
    }

    #[test]
    fn no_percentile_is_given_that_the_count_cannot_carry() {
        let given = |count| {
            let figures = StageFigures::of(&histogram(count));
            [figures.p50_ns, figures.p99_ns, figures.p99_9_ns].map(|figure| figure.is_some())
        };
        assert_eq!(given(0), [false; 3]);
        assert_eq!(given(5), [false; 3]);
        assert_eq!(given(6), [true, false, false]);
        assert_eq!([given(367)[1], given(368)[1]], [false, true]);
        assert_eq!([given(3_687)[2], given(3_688)[2]], [false, true]);
        assert_eq!(StageFigures::of(&histogram(0)).max_ns, None);
        assert_eq!(StageFigures::of(&histogram(7)).max_ns, Some(7));
    }
}
