//! Choice of the next rate, and the highest rate that holds.

use super::{StreamOptions, StreamRound};
use std::fmt;

/// Highest rate that is tried, in messages per second.
pub const RATE_MAX_PER_S: f64 = 10_000_000.0;
/// Lowest rate that a search tries.
const RATE_MIN_PER_S: f64 = 10.0;
/// A round must reach this part of its rate.
const REACHED_MIN: f64 = 0.95;
/// A search ends when the lowest rate that breaks is at most this much above the highest that holds.
const GAP_MAX: f64 = 1.1;
/// Most rounds of a search.
const ROUNDS_MAX: usize = 64;

/// Reason why a rate does not hold in a round.
#[derive(Debug, Clone, PartialEq)]
pub enum Break {
    /// This many messages were lost.
    Lost(u64),
    /// The sender did not keep up.
    /// - `sent_per_s`: the rate that it reached.
    Slow { sent_per_s: f64 },
    /// Latency was above the limit.
    Late { p99_ns: u64 },
    /// Too few latencies for the p99 that has a limit.
    Few(u64),
}

impl fmt::Display for Break {
    /// A phrase: "5 messages were lost".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(1) => f.write_str("1 message was lost"),
            Self::Lost(messages) => write!(f, "{messages} messages were lost"),
            Self::Slow { sent_per_s } => write!(f, "the sender reached {sent_per_s:.0}/s"),
            Self::Few(count) => write!(f, "{count} latencies are too few for a p99"),
            Self::Late { p99_ns } => write!(f, "p99 was {:.1} us", *p99_ns as f64 / 1e3),
        }
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// Highest rate that held in each of its rounds.
    pub holds_per_s: Option<f64>,
    /// Number of rounds at that rate.
    pub rounds: u32,
    /// Lowest rate above it that broke, with the first reason.
    pub breaks: Option<(f64, Break)>,
}

impl StreamRound {
    /// Returns the reason why the rate does not hold; `None` if it does.
    pub fn breaks(&self, options: &StreamOptions) -> Option<Break> {
        let p99 = self.latency.as_ref().and_then(|latency| latency.quantile_ns(0.99));
        match (self.lost(), self.send_per_s(), p99, options.p99_ns_max) {
            (lost @ 1.., ..) => Some(Break::Lost(lost)),
            (_, sent_per_s, ..) if sent_per_s < REACHED_MIN * self.target_per_s => {
                Some(Break::Slow { sent_per_s })
            }
            (.., None, Some(_)) => {
                Some(Break::Few(self.latency.as_ref().map_or(0, |latency| latency.figures.iterations)))
            }
            (.., Some(p99_ns), Some(max)) if p99_ns > max => Some(Break::Late { p99_ns }),
            _ => None,
        }
    }
}

/// Judges the rounds of a run.
pub fn verdict(options: &StreamOptions, rounds: &[StreamRound]) -> Verdict {
    let breaks_at = |rate: f64| {
        rounds
            .iter()
            .filter(move |round| same(round.target_per_s, rate))
            .find_map(|round| round.breaks(options))
    };
    let mut rates: Vec<f64> = rounds.iter().map(|round| round.target_per_s).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup_by(|a, b| same(*a, *b));
    let broken = rates.iter().find_map(|rate| Some((*rate, breaks_at(*rate)?)));
    // A rate above one that breaks proves nothing, even if it held once.
    let limit = broken.as_ref().map_or(f64::INFINITY, |(rate, _)| *rate);
    let holds_per_s = rates.iter().copied().rfind(|rate| *rate < limit);
    let count =
        rounds.iter().filter(|round| holds_per_s.is_some_and(|rate| same(rate, round.target_per_s))).count();
    Verdict { holds_per_s, rounds: u32::try_from(count).unwrap_or(u32::MAX), breaks: broken }
}

/// Returns the rate of the next round; `None` if the run is complete.
///
/// A list is measured round by round, so that a disturbance of the host meets every rate. A search doubles the rate
/// until one breaks, tries the middle of the gap until that is narrow, and repeats the highest rate that holds.
pub fn next_rate(options: &StreamOptions, rounds: &[StreamRound]) -> Option<f64> {
    let rounds_max = usize::try_from(options.rounds).unwrap_or(usize::MAX);
    let start = options.rates_per_s.first().copied()?;
    if !options.is_sweep {
        let count = options.rates_per_s.len();
        let is_left = rounds.len() < count.saturating_mul(rounds_max);
        return if is_left { options.rates_per_s.get(rounds.len() % count).copied() } else { None };
    }
    if rounds.is_empty() {
        return Some(start);
    }
    if rounds.len() >= ROUNDS_MAX {
        return None;
    }
    let found = verdict(options, rounds);
    let is_confirmed = usize::try_from(found.rounds).unwrap_or(usize::MAX) >= rounds_max;
    if found.holds_per_s.is_none() && matches!(found.breaks, Some((_, Break::Few(_)))) {
        // Lower rates have even fewer latencies.
        return None;
    }
    match (found.holds_per_s, found.breaks.map(|(rate, _)| rate)) {
        (Some(low), None) if low < RATE_MAX_PER_S => Some((low * 2.0).min(RATE_MAX_PER_S)),
        (None, Some(high)) => (high > RATE_MIN_PER_S).then(|| rounded((high / 2.0).max(RATE_MIN_PER_S))),
        (Some(low), Some(high)) if high > low * GAP_MAX => Some(rounded(f64::midpoint(low, high))),
        (Some(low), _) if !is_confirmed => Some(low),
        _ => None,
    }
}

/// Rounds a rate to three digits, two more than the gap of a search needs.
fn rounded(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.log10().floor() - 2.0);
    (rate / unit).round() * unit
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= f64::EPSILON * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Distribution, Received};
    use hdrhistogram::Histogram;
    use std::time::Duration;

    /// A round at a rate with losses and latencies of this length.
    fn round(target_per_s: f64, lost: u64, latency_ns: u64) -> StreamRound {
        let mut times = Histogram::<u64>::new_with_bounds(1, 1 << 30, 3).unwrap();
        times.record_n(latency_ns, 1_000).unwrap();
        StreamRound {
            target_per_s,
            sent: 1_001,
            elapsed_ns: u64::try_from(Duration::from_secs_f64(1e3 / target_per_s).as_nanos()).unwrap(),
            received: Received { messages: 1_001 - lost, ..Received::default() },
            latency: Distribution::of(&times, 99.0),
            ..StreamRound::default()
        }
    }

    /// Runs a search on a host where rates break from `limit` on.
    fn searched(options: &StreamOptions, limit: f64) -> Vec<StreamRound> {
        let mut rounds = Vec::new();
        while let Some(rate) = next_rate(options, &rounds) {
            rounds.push(round(rate, u64::from(rate >= limit), 500));
        }
        rounds
    }

    #[test]
    fn a_search_finds_the_limit_and_confirms_it() {
        let options = StreamOptions::default();
        for limit in [20.0, 700.0, 9_000.0, 123_456.0, 5_000_000.0] {
            let rounds = searched(&options, limit);
            let found = verdict(&options, &rounds);
            let holds = found.holds_per_s.unwrap();
            assert!(holds < limit && holds * 1.13 >= limit, "{limit}: {holds}");
            assert_eq!((found.rounds, rounds.len() < 30), (3, true), "{limit}: {}", rounds.len());
            assert!(matches!(found.breaks, Some((rate, Break::Lost(1))) if rate >= limit));
        }
        let rounds = searched(&options, f64::INFINITY);
        assert_eq!(
            verdict(&options, &rounds),
            Verdict { holds_per_s: Some(RATE_MAX_PER_S), rounds: 3, breaks: None }
        );
        let rounds = searched(&options, 0.0);
        assert_eq!(verdict(&options, &rounds).holds_per_s, None, "nothing holds, and the search ends");
    }

    #[test]
    fn a_rate_that_breaks_in_a_later_round_does_not_hold() {
        let options = StreamOptions::default();
        let mut rounds = searched(&options, 100_000.0);
        let held = verdict(&options, &rounds).holds_per_s.unwrap();
        rounds.push(round(held, 2, 500));
        let found = verdict(&options, &rounds);
        assert!(found.holds_per_s.unwrap() < held);
        assert_eq!(found.breaks, Some((held, Break::Lost(2))));
        assert!(next_rate(&options, &rounds).is_some(), "the search continues below it");
    }

    #[test]
    fn latency_and_pace_break_a_rate_too() {
        let options = StreamOptions { p99_ns_max: Some(1_000), ..StreamOptions::default() };
        assert_eq!(round(10_000.0, 0, 900).breaks(&options), None);
        assert!(matches!(round(10_000.0, 0, 5_000).breaks(&options), Some(Break::Late { .. })));
        let slow = StreamRound { elapsed_ns: 200_000_000, ..round(10_000.0, 0, 900) };
        assert_eq!(slow.breaks(&options).unwrap().to_string(), "the sender reached 5000/s");
        let few = StreamRound { latency: None, ..round(10_000.0, 0, 900) };
        assert_eq!(few.breaks(&options), Some(Break::Few(0)));
        assert_eq!(few.breaks(&StreamOptions::default()), None);
        assert_eq!(next_rate(&options, &[few]), None, "lower rates have even fewer");
    }

    #[test]
    fn a_list_is_measured_round_by_round() {
        let options = StreamOptions {
            rates_per_s: vec![10.0, 20.0],
            is_sweep: false,
            rounds: 2,
            ..StreamOptions::default()
        };
        let rates: Vec<f64> = searched(&options, 15.0).iter().map(|round| round.target_per_s).collect();
        assert_eq!(rates, [10.0, 20.0, 10.0, 20.0]);
        assert_eq!(next_rate(&StreamOptions { rates_per_s: vec![], ..options }, &[]), None);
    }
}
