//! Quotes in the order of their due times, from any source.

use super::Walk;
use crate::scenario::{Scenario, Schedule, Speed, Ticks};
use crate::wire::quote_of;
use lowlat_node::records::Quote;
use std::sync::Arc;

/// A quote and its due time, ns after the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueQuote {
    pub due_ns: u64,
    pub instrument: u32,
    /// The quote; its `scheduled_ns` is `due_ns` until the start is known.
    pub quote: Quote,
}

#[derive(Debug, Clone)]
enum Origin {
    Simulated { schedule: Schedule, walk: Walk },
    Recorded { ticks: Arc<Ticks>, speed: Speed, at: usize },
    Timed { times: Arc<[u64]>, speed: Speed, at: u32 },
}

/// Returns quotes in order of time. Allocates nothing while iterating.
#[derive(Debug, Clone)]
pub struct Feed {
    origin: Origin,
    records: u64,
    instruments: u32,
    /// The due time of its first quote, if some were left out; 0 otherwise.
    skipped_ns: u64,
}

impl Feed {
    /// Random walks at the times of a scenario.
    pub fn simulated(scenario: &Scenario, seed: u64) -> Self {
        let origin = Origin::Simulated {
            schedule: Schedule::new(scenario),
            walk: Walk::new(seed, scenario.instruments),
        };
        Self { origin, records: scenario.records(), instruments: scenario.instruments, skipped_ns: 0 }
    }

    /// Recorded ticks at a speed.
    pub fn recorded(ticks: Arc<Ticks>, speed: Speed) -> Self {
        let records = u64::try_from(ticks.count()).unwrap_or(u64::MAX);
        let instruments = u32::try_from(ticks.names().len()).unwrap_or(u32::MAX);
        Self { origin: Origin::Recorded { ticks, speed, at: 0 }, records, instruments, skipped_ns: 0 }
    }

    /// Times of other items than quotes, ns after the start: the instrument of each is its number.
    pub fn timed(times: Arc<[u64]>, speed: Speed) -> Self {
        let records = u64::try_from(times.len()).unwrap_or(u64::MAX);
        Self { origin: Origin::Timed { times, speed, at: 0 }, records, instruments: 0, skipped_ns: 0 }
    }

    /// Leaves out the first quotes. Times then count from the first remaining quote.
    pub fn skip_first(&mut self, count: u64) {
        if count > 0 {
            (0..count).take_while(|_| self.next().is_some()).for_each(drop);
            self.skipped_ns = self.clone().next().map_or(0, |due| due.due_ns);
        }
    }

    /// The time of the first quote that was not left out, ns after the start.
    pub fn skipped_ns(&self) -> u64 {
        self.skipped_ns
    }

    /// Number of all quotes, including those returned or left out.
    pub fn records(&self) -> u64 {
        self.records
    }

    pub fn instruments(&self) -> u32 {
        self.instruments
    }
}

impl Iterator for Feed {
    type Item = DueQuote;

    #[inline]
    fn next(&mut self) -> Option<DueQuote> {
        let (due_ns, instrument, quote) = match &mut self.origin {
            Origin::Simulated { schedule, walk } => {
                let due = schedule.next()?;
                let quote = walk.quote(due.instrument, due.due_ns);
                (due.due_ns, due.instrument, quote)
            }
            Origin::Timed { times, speed, at } => {
                let after_ns = times.get(usize::try_from(*at).ok()?)?;
                let due_ns = speed.due_ns(*after_ns);
                *at += 1;
                (due_ns, *at - 1, Quote::default())
            }
            Origin::Recorded { ticks, speed, at } => {
                let tick = ticks.as_slice().get(*at)?;
                *at += 1;
                let due_ns = speed.due_ns(tick.after_ns);
                (due_ns, tick.quote.instrument, quote_of(&tick.quote, due_ns))
            }
        };
        Some(DueQuote { due_ns: due_ns - self.skipped_ns, instrument, quote })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn both_sources_return_their_quotes_in_order() {
        let text = "time_ns,instrument,bid,ask\n10,a,1,2\n10,b,1,2\n30,a,2,3\n";
        let ticks = Ticks::from_csv(Path::new("x"), text.as_bytes()).unwrap();
        let recorded = Feed::recorded(Arc::new(ticks), Speed::parse("x2").unwrap());
        assert_eq!((recorded.records(), recorded.instruments()), (3, 2));
        let given: Vec<_> = recorded.map(|due| (due.due_ns, due.instrument, due.quote.bid)).collect();
        assert_eq!(given, [(0, 0, 10_000), (0, 1, 10_000), (10, 0, 20_000)]);
        // Every length of what was published before.
        let scenario = Scenario::at_rate(3, 1000.0, 0.01).unwrap();
        let whole: Vec<_> = Feed::simulated(&scenario, 5).collect();
        for skipped in 0..=whole.len() {
            let mut rest = Feed::simulated(&scenario, 5);
            rest.skip_first(u64::try_from(skipped).unwrap());
            let start_ns = whole.get(skipped).map_or(0, |due| due.due_ns);
            let rest: Vec<_> = rest.map(|due| (due.due_ns + start_ns, due.instrument, due.quote)).collect();
            let left = whole[skipped..].iter().map(|due| (due.due_ns, due.instrument, due.quote));
            assert!(left.eq(rest), "{skipped}");
        }
        let scenario = Scenario::at_rate(3, 3000.0, 0.01).unwrap();
        let feed = Feed::simulated(&scenario, 5);
        let records = usize::try_from(feed.records()).unwrap();
        let given: Vec<_> = feed.collect();
        assert_eq!(given.len(), records);
        assert!(given.windows(2).all(|pair| pair[0].due_ns <= pair[1].due_ns));
        assert!(given.iter().all(|due| due.quote.scheduled_ns == due.due_ns));
    }
}
