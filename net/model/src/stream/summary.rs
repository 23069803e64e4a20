//! Rounds of one rate together.

use super::{Break, Distribution, StreamRecord, StreamRound};
use hdrhistogram::Histogram;
use lowlat_host::histogram;

/// Everything measured at one rate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RateSummary {
    /// The rate that was asked for.
    pub target_per_s: f64,
    /// Lowest rate at which messages were sent in a round.
    pub sent_per_s: f64,
    /// Lowest rate at which messages arrived in a round.
    pub received_per_s: f64,
    pub rounds: u32,
    /// Rounds in which the rate held.
    pub held: u32,
    pub sent: u64,
    /// Messages that did not arrive.
    pub lost: u64,
    /// Those that the sender's queueing discipline dropped.
    pub dropped_by_sender: u64,
    /// Those that the receiver's kernel dropped because the socket was full.
    pub dropped_by_receiver: u64,
    /// Those that were lost between the two.
    pub lost_on_the_way: u64,
    pub reordered: u64,
    pub duplicates: u64,
    /// Latencies of all rounds together.
    pub latency: Option<Distribution>,
    /// First reason why the rate broke.
    pub breaks: Option<Break>,
}

impl StreamRecord {
    /// The rates in ascending order, each with its rounds together.
    pub fn by_rate(&self) -> Vec<RateSummary> {
        let mut rates: Vec<f64> = self.rounds.iter().map(|round| round.target_per_s).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        rates.into_iter().map(|rate| self.summary(rate)).collect()
    }

    fn summary(&self, rate: f64) -> RateSummary {
        let is_meant = |round: &&StreamRound| round.target_per_s.total_cmp(&rate).is_eq();
        let mut all = RateSummary {
            target_per_s: rate,
            sent_per_s: f64::INFINITY,
            received_per_s: f64::INFINITY,
            ..RateSummary::default()
        };
        let mut latency: Option<Histogram<u64>> = None;
        for round in self.rounds.iter().filter(is_meant) {
            let breaks = round.breaks(&self.options);
            all.rounds += 1;
            all.held += u32::from(breaks.is_none());
            all.breaks = all.breaks.or(breaks);
            all.sent_per_s = all.sent_per_s.min(round.send_per_s());
            all.received_per_s = all.received_per_s.min(round.receive_per_s());
            all.sent += round.sent;
            all.lost += round.lost();
            all.dropped_by_sender += round.dropped_by_sender;
            all.dropped_by_receiver += round.received.dropped.unwrap_or(0);
            all.lost_on_the_way += round.lost_on_the_way();
            all.reordered += round.received.reordered;
            all.duplicates += round.received.duplicates;
            let times = round.latency.as_ref().and_then(|of| histogram::decode(&of.histogram).ok());
            latency = match (latency, times) {
                // Both have the range of a run's histograms; a damaged one of a document is left out.
                (Some(mut sum), Some(times)) => sum.add(times).is_ok().then_some(sum),
                (sum, times) => sum.or(times),
            };
        }
        all.latency = latency.and_then(|times| Distribution::of(&times, self.set_up.percentile));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Received;

    #[test]
    fn rounds_of_a_rate_are_added_and_the_slowest_counts() {
        let round = |target_per_s: f64, lost: u64, latency_ns: u64| {
            let mut times = Histogram::<u64>::new_with_bounds(1, 1 << 30, 3).unwrap();
            times.record_n(latency_ns, 10).unwrap();
            StreamRound {
                target_per_s,
                sent: 101,
                elapsed_ns: 1_000_000 * (lost + 1),
                received: Received { messages: 101 - lost, dropped: Some(1), ..Received::default() },
                latency: Distribution::of(&times, 99.0),
                ..StreamRound::default()
            }
        };
        let rounds = vec![round(2_000.0, 0, 50), round(1_000.0, 0, 10), round(2_000.0, 3, 70)];
        let record = StreamRecord { rounds, ..StreamRecord::default() };
        let [low, high] = record.by_rate().try_into().unwrap();
        assert_eq!((low.rounds, low.held, low.lost), (1, 1, 0));
        assert_eq!((high.rounds, high.held, high.sent, high.lost, high.lost_on_the_way), (2, 1, 202, 3, 2));
        assert_eq!((high.sent_per_s.round(), high.breaks), (25_000.0, Some(Break::Lost(3))));
        let latency = high.latency.unwrap().figures;
        assert_eq!((latency.iterations, latency.min_ns, latency.max_ns), (20, 50, 70));
    }
}
