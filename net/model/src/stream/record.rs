//! Record of a run of rising rates.

use crate::{
    pingpong::{Figures, PingpongRecord, QUANTILES, Quantile, quantile_ns},
    whole,
    words::words,
};
use hdrhistogram::Histogram;
use lowlat_host::{
    histogram::{self, HistogramError},
    statistics::carries_quantile,
};
use serde::{Deserialize, Serialize};

words! {
    /// Method of measuring latency.
    #[derive(Default)]
    LatencyKind {
        /// From the time when a message was due to its arrival, on the counter that both ends share. One host only.
        #[default]
        OneWay = "one-way",
        /// From the time when a message was due to the arrival of its echo, less half the shortest round trip.
        Echo = "echo",
    }
}

/// Parameters of a run of rising rates, besides its scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StreamOptions {
    /// Rates in messages per second, each measured in every round; with [`StreamOptions::is_sweep`] the first one
    /// starts the search.
    pub rates_per_s: Vec<f64>,
    /// Searches for the highest rate that holds: doubles, then halves the gap.
    pub is_sweep: bool,
    /// Rounds of each rate; of a search only for the rate that it ends with.
    pub rounds: u32,
    /// Length of a round in milliseconds.
    pub time_ms: u64,
    /// Highest p99 of latency with which a rate holds, in nanoseconds.
    pub p99_ns_max: Option<u64>,
    /// Method of measuring latency; `None` shares the counter on one host, and uses echoes between two.
    pub latency: Option<LatencyKind>,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            rates_per_s: vec![10_000.0],
            is_sweep: true,
            rounds: 3,
            time_ms: 1_000,
            p99_ns_max: None,
            latency: None,
        }
    }
}

lowlat_host::measurement! {
    /// A run with its results.
    StreamMeasurement { record: StreamRecord, kind: "stream", command: "net stream" }
}

/// The raw facts of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StreamRecord {
    /// Scenario, ends, controls and warnings, as of a ping-pong; without sizes.
    pub set_up: PingpongRecord,
    pub options: StreamOptions,
    /// Method by which latency was measured.
    pub latency: LatencyKind,
    /// Half the shortest round trip, with [`LatencyKind::Echo`].
    pub return_ns: Option<u64>,
    /// Results in the order of measurement.
    pub rounds: Vec<StreamRound>,
}

/// Counts of the receiver in one round.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Received {
    /// Messages that arrived, each counted once.
    pub messages: u64,
    pub duplicates: u64,
    /// Messages that arrived after one with a higher number.
    pub reordered: u64,
    /// Times that the number jumped.
    pub gaps: u64,
    /// Messages that the receiver's kernel dropped because the socket was full (SK_MEMINFO_DROPS); `None` if unknown.
    pub dropped: Option<u64>,
    /// Time between the first and the last arrival.
    pub elapsed_ns: u64,
    /// Latencies in nanoseconds, if the ends share a counter: HdrHistogram V2, deflated, base64.
    pub histogram: Option<String>,
}

/// Results of one round at one rate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StreamRound {
    /// The rate that was asked for.
    pub target_per_s: f64,
    pub sent: u64,
    /// Messages that the sender's own queueing discipline dropped (ENOBUFS); they count as sent.
    pub dropped_by_sender: u64,
    pub received: Received,
    /// Messages that were sent after the next one was due.
    pub behind: u64,
    /// Time between the first and the last sending.
    pub elapsed_ns: u64,
    /// Latency from the time when each message was due.
    pub latency: Option<Distribution>,
    /// Delays of sending, from the time when each message was due.
    pub lateness: Option<Distribution>,
}

/// Distribution of times, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Distribution {
    /// Columns of sfnt-stream, with the three digits of the histogram.
    pub figures: Figures,
    /// Quantiles that the count supports.
    pub quantiles: Vec<Quantile>,
    /// The times in nanoseconds: HdrHistogram V2, deflated, base64.
    pub histogram: String,
}

impl Distribution {
    /// The distribution of a histogram; `None` if that is empty. `percentile` is between 0 and 100.
    pub fn of(times: &Histogram<u64>, percentile: f64) -> Option<Self> {
        let count = times.len();
        if count == 0 {
            return None;
        }
        let figures = Figures {
            mean_ns: whole(times.mean()),
            min_ns: times.min(),
            median_ns: times.value_at_quantile(0.5),
            max_ns: times.max(),
            percentile_ns: times.value_at_quantile(percentile / 100.0),
            stddev_ns: whole(times.stdev()),
            iterations: count,
        };
        let carried = QUANTILES.into_iter().filter(|quantile| carries_quantile(count, *quantile));
        let quantiles =
            carried.map(|quantile| Quantile { quantile, ns: times.value_at_quantile(quantile) }).collect();
        Some(Self { figures, quantiles, histogram: histogram::encode(times) })
    }

    /// The distribution of an encoded histogram.
    ///
    /// # Errors
    /// [`HistogramError`] if the text is damaged.
    pub fn decoded(text: &str, percentile: f64) -> Result<Option<Self>, HistogramError> {
        histogram::decode(text).map(|times| Self::of(&times, percentile))
    }

    /// A quantile that the count supports.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        quantile_ns(&self.quantiles, quantile)
    }
}

impl StreamRound {
    /// Messages that did not arrive.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received.messages)
    }

    /// Lost messages that neither kernel reports as dropped: they were lost on the way.
    pub fn lost_on_the_way(&self) -> u64 {
        self.lost().saturating_sub(self.dropped_by_sender + self.received.dropped.unwrap_or(0))
    }

    pub fn send_per_s(&self) -> f64 {
        per_second(self.sent, self.elapsed_ns)
    }

    /// Messages that arrived per second.
    pub fn receive_per_s(&self) -> f64 {
        per_second(self.received.messages, self.received.elapsed_ns)
    }
}

/// The first message starts the time, so it is not counted in it.
fn per_second(messages: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { messages.saturating_sub(1) as f64 * 1e9 / elapsed_ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_apart_by_where_they_happened() {
        let received =
            Received { messages: 90, dropped: Some(6), elapsed_ns: 89_000_000, ..Received::default() };
        let round = StreamRound {
            sent: 100,
            dropped_by_sender: 1,
            received,
            elapsed_ns: 99_000_000,
            ..StreamRound::default()
        };
        assert_eq!((round.lost(), round.lost_on_the_way()), (10, 3));
        assert_eq!((round.send_per_s().round(), round.receive_per_s().round()), (1_000.0, 1_000.0));
        assert!(StreamRound::default().send_per_s() < 1.0);
    }

    #[test]
    fn a_distribution_has_what_its_count_carries() {
        let mut times = Histogram::<u64>::new_with_bounds(1, 1 << 30, 3).unwrap();
        assert_eq!(Distribution::of(&times, 99.0), None);
        (1..=400).for_each(|ns| times.record(ns).unwrap());
        let of = Distribution::of(&times, 99.0).unwrap();
        assert_eq!((of.figures.iterations, of.figures.median_ns, of.figures.percentile_ns), (400, 200, 396));
        assert_eq!((of.quantile_ns(0.99), of.quantile_ns(0.999)), (Some(396), None));
        assert_eq!(Distribution::decoded(&of.histogram, 99.0), Ok(Some(of)));
        assert!(Distribution::decoded("x", 99.0).is_err());
    }
}
