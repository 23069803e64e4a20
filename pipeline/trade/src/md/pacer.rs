//! Determines which quote is due. Late quotes are still published: none is left out.

use super::{DueQuote, Feed};

/// Lateness of due quotes at the moment of publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lateness {
    pub quotes: u64,
    /// Of those, quotes after whose due time the next one was due already: md could not keep up.
    pub behind: u64,
    /// Sum of all lateness, ns.
    pub sum_ns: u64,
    pub max_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacerStep {
    /// Publish this quote; its `scheduled_ns` is in the caller's clock.
    Publish(DueQuote),
    /// Wait until this time, in the caller's clock, ns.
    WaitUntil(u64),
    Done,
}

/// Returns the quotes of a feed when they are due.
#[derive(Debug, Clone)]
pub struct Pacer {
    feed: Feed,
    next: Option<DueQuote>,
    /// Due time of `next` and when it was returned, until the quote after it is made: after it was published.
    returned: Option<[u64; 2]>,
    start_ns: u64,
    lateness: Lateness,
}

impl Pacer {
    /// A pacer whose feed starts at `start_ns`.
    pub fn new(mut feed: Feed, start_ns: u64) -> Self {
        let next = feed.next();
        Self { feed, next, returned: None, start_ns, lateness: Lateness::default() }
    }

    /// Returns the action at `now_ns`.
    #[inline]
    pub fn step(&mut self, now_ns: u64) -> PacerStep {
        if let Some([at_ns, returned_ns]) = self.returned.take() {
            self.next = self.feed.next();
            let next_ns = self.next.map(|next| self.start_ns.saturating_add(next.due_ns));
            let is_behind = next_ns.is_some_and(|next_ns| next_ns > at_ns && next_ns <= returned_ns);
            self.lateness.behind += u64::from(is_behind);
        }
        let Some(mut due) = self.next else { return PacerStep::Done };
        let at_ns = self.start_ns.saturating_add(due.due_ns);
        if now_ns < at_ns {
            return PacerStep::WaitUntil(at_ns);
        }
        self.returned = Some([at_ns, now_ns]);
        let late_ns = now_ns - at_ns;
        let lateness = &mut self.lateness;
        lateness.quotes += 1;
        lateness.sum_ns = lateness.sum_ns.saturating_add(late_ns);
        lateness.max_ns = lateness.max_ns.max(late_ns);
        due.quote.scheduled_ns = at_ns;
        PacerStep::Publish(due)
    }

    pub fn lateness(&self) -> Lateness {
        self.lateness
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the clock does between calls, every quote is returned once, in order, never early, with its
        /// due time.
        #[test]
        fn all_quotes_come_and_none_is_early(
            instruments in 1_u32..5, records in 1_u64..20, interval in 0_u64..100, delay in 0_u64..100,
            jumps in proptest::collection::vec(0_u64..300, 1..200), start in 0_u64..1000,
        ) {
            let scenario = Scenario {
                name: String::new(), instruments, records_per_instrument: records,
                interval_ns: interval, start_delay_ns: delay, instruments_with_one_more: instruments / 2,
            };
            let expected: Vec<_> = Feed::simulated(&scenario, 1).map(|due| (due.due_ns, due.instrument)).collect();
            let mut pacer = Pacer::new(Feed::simulated(&scenario, 1), start);
            let (mut now, mut given, mut late_sum, mut late_max) = (0, Vec::new(), 0, 0);
            let mut jumps = jumps.into_iter().cycle();
            loop {
                match pacer.step(now) {
                    PacerStep::Publish(due) => {
                        prop_assert_eq!(due.quote.scheduled_ns, start + due.due_ns);
                        prop_assert!(due.quote.scheduled_ns <= now);
                        late_sum += now - due.quote.scheduled_ns;
                        late_max = late_max.max(now - due.quote.scheduled_ns);
                        given.push((due.due_ns, due.instrument));
                    }
                    PacerStep::WaitUntil(then) => {
                        prop_assert!(then > now);
                        // A sleep that lasts longer than requested.
                        now = then + jumps.next().unwrap_or(0);
                    }
                    PacerStep::Done => break,
                }
            }
            prop_assert_eq!(&given, &expected);
            let lateness = pacer.lateness();
            prop_assert_eq!(lateness.quotes, scenario.records());
            prop_assert_eq!((lateness.sum_ns, lateness.max_ns), (late_sum, late_max));
            prop_assert!(lateness.behind < lateness.quotes);
        }
    }

    #[test]
    fn quotes_on_time_are_not_behind() {
        let scenario = Scenario::at_rate(1, 1e6, 0.0001).unwrap();
        let run = |sleep_ns| {
            let (mut pacer, mut now) = (Pacer::new(Feed::simulated(&scenario, 1), 0), 0);
            loop {
                match pacer.step(now) {
                    PacerStep::Publish(_) => {}
                    PacerStep::WaitUntil(then) => now = then + sleep_ns,
                    PacerStep::Done => return pacer.lateness(),
                }
            }
        };
        assert_eq!(run(0).behind, 0);
        assert!(run(5000).behind > 0);
    }
}
