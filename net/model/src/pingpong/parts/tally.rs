//! Adds up the parts of all round trips of a size, in bounded memory.

use super::{Flaw, PARTS, Part, PartFigures, RoundTrip, SizeParts, Split, Wakes};
use hdrhistogram::Histogram;
use lowlat_host::statistics::carries_quantile;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Slowest round trips that are kept.
pub const SLOWEST_MAX: usize = 100;
/// Longest part that a histogram tracks, in nanoseconds: an hour.
const NS_MAX: u64 = 3_600_000_000_000;
/// Significant decimal digits of the histograms.
const DIGITS: u8 = 3;

/// A round trip that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub exchange: RoundTrip,
    pub split: Split,
}

/// Rank of slowness: by measured time; among equal times, the earlier round trip ranks higher.
type Rank = (u64, Reverse<u64>);

impl Kept {
    fn rank(&self) -> Rank {
        (self.exchange.measured_ns, Reverse(self.exchange.at_ns))
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kept {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// The sums of a size.
#[derive(Debug)]
pub struct Tally {
    /// True if the end's wake-ups are traced: client, server.
    is_traced: [bool; 2],
    /// True if both NICs stamp packets, as the first round trip showed.
    is_by_nics: Option<bool>,
    counts: SizeParts,
    histograms: Vec<Histogram<u64>>,
    totals: [u64; PARTS.len()],
    measured: Option<Histogram<u64>>,
    slowest: BinaryHeap<Reverse<Kept>>,
}

/// The bounds are constants that the histogram accepts.
fn histogram() -> Option<Histogram<u64>> {
    Histogram::new_with_bounds(1, NS_MAX, DIGITS).ok()
}

impl Tally {
    /// Creates an empty one. `is_traced`: whether the wake-ups of client and server are known from the trace.
    pub fn new(is_traced: [bool; 2]) -> Self {
        Self {
            is_traced,
            is_by_nics: None,
            counts: SizeParts::default(),
            histograms: PARTS.iter().filter_map(|_| histogram()).collect(),
            totals: [0; PARTS.len()],
            measured: histogram(),
            slowest: BinaryHeap::with_capacity(SLOWEST_MAX + 1),
        }
    }

    /// True if both NICs stamp packets; `None` before the first round trip that has all stamps.
    pub fn is_by_nics(&self) -> Option<bool> {
        self.is_by_nics
    }

    /// Adds a round trip. Where the NICs stamp packets, one without their stamps lacks stamps.
    pub fn add(&mut self, mut exchange: RoundTrip) {
        self.counts.messages += 1;
        if self.is_by_nics == Some(false) {
            exchange.client.sent_by_nic_ns = None;
        }
        if let Some(measured) = &mut self.measured {
            measured.saturating_record(exchange.measured_ns);
        }
        let is_by_nics = exchange.between_nics().is_some();
        let split = match Split::of(&exchange) {
            Ok(_) if *self.is_by_nics.get_or_insert(is_by_nics) != is_by_nics => {
                self.counts.missing += 1;
                return;
            }
            Ok(split) => split,
            Err(Flaw::Missing) => {
                self.counts.missing += 1;
                return;
            }
            Err(Flaw::Disordered) => {
                self.counts.disordered += 1;
                return;
            }
        };
        self.counts.adding_up += u64::from(split.adds_up_to(exchange.measured_ns));
        self.keep(&exchange, split);
        let wakes = [exchange.client_wake, exchange.server_wake];
        if self.is_traced.iter().zip(wakes).any(|(is_traced, wake)| *is_traced && wake == Wakes::Unknown) {
            self.counts.untraced += 1;
            return;
        }
        for (((_, ns), histogram), total) in split.iter().zip(&mut self.histograms).zip(&mut self.totals) {
            histogram.saturating_record(ns);
            *total = total.saturating_add(ns);
        }
    }

    fn keep(&mut self, exchange: &RoundTrip, split: Split) {
        self.slowest.push(Reverse(Kept { exchange: *exchange, split }));
        if self.slowest.len() > SLOWEST_MAX {
            self.slowest.pop();
        }
    }

    /// The slowest round trips so far, slowest first.
    pub fn slowest(&self) -> Vec<Kept> {
        let mut slowest: Vec<Kept> = self.slowest.iter().map(|Reverse(kept)| *kept).collect();
        slowest.sort_by_key(|kept| Reverse(kept.rank()));
        slowest
    }

    /// The part of a round trip that exceeds its median by most, with that median.
    pub fn longest_part(&self, split: &Split) -> (Part, u64) {
        let excess = |(part, ns): (Part, u64)| (ns.saturating_sub(self.median(part)), part);
        let (_, part) = split.iter().map(excess).max().unwrap_or((0, Part::Wire));
        (part, self.median(part))
    }

    fn median(&self, part: Part) -> u64 {
        self.histograms.get(part.place()).map_or(0, |histogram| histogram.value_at_quantile(0.5))
    }

    /// The figures, without the slowest round trips and without the median of the rounds without time stamps.
    pub fn figures(&self) -> SizeParts {
        let is_shown = |part: &Part| match part {
            Part::ClientWake => self.is_traced[0],
            Part::ServerWake => self.is_traced[1],
            Part::Nics => self.is_by_nics == Some(true),
            _ => true,
        };
        let figures = |part: Part| {
            let histogram = self.histograms.get(part.place())?;
            let count = histogram.len();
            (count > 0).then(|| PartFigures {
                part,
                median_ns: histogram.value_at_quantile(0.5),
                p99_ns: carries_quantile(count, 0.99).then(|| histogram.value_at_quantile(0.99)),
                total_ns: self.totals.get(part.place()).copied().unwrap_or_default(),
            })
        };
        SizeParts {
            parts: PARTS.iter().copied().filter(is_shown).filter_map(figures).collect(),
            stamped_median_ns: self.measured.as_ref().map_or(0, |measured| measured.value_at_quantile(0.5)),
            ..self.counts.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pingpong::parts::Stamps;

    /// A round trip of 10,000 ns that starts at `at_ns`; the server's clock is `ahead_ns` ahead.
    fn exchange(at_ns: u64, ahead_ns: u64) -> RoundTrip {
        let server = |ns: u64| Some(1_000_000 + at_ns + ahead_ns + ns);
        let client = |ns: u64| Some(1_000_000 + at_ns + ns);
        RoundTrip {
            at_ns,
            measured_ns: 10_000,
            client: Stamps {
                sending_ns: client(0),
                queued_ns: client(700),
                sent_ns: client(1_000),
                arrived_ns: client(8_000),
                received_ns: client(10_000),
                ..Stamps::default()
            },
            server: Stamps {
                arrived_ns: server(2_000),
                received_ns: server(4_000),
                sending_ns: server(4_100),
                queued_ns: server(4_900),
                sent_ns: server(5_000),
                ..Stamps::default()
            },
            client_wake: Wakes::At(client(8_500).unwrap()),
            server_wake: Wakes::At(server(2_400).unwrap()),
        }
    }

    const EXPECTED: [u64; PARTS.len()] = [700, 300, 4_000, 0, 400, 1_600, 100, 800, 100, 500, 1_500];

    #[test]
    fn parts_add_up_whatever_the_clocks_of_two_hosts_say() {
        for ahead_ns in [0, 3_600_000_000_000, 17] {
            let split = Split::of(&exchange(5, ahead_ns)).unwrap();
            assert_eq!(split.iter().map(|(_, ns)| ns).collect::<Vec<_>>(), EXPECTED, "{ahead_ns} ns ahead");
            assert_eq!(split.sum_ns(), 10_000);
            assert!(split.adds_up_to(10_000) && split.adds_up_to(10_200) && split.adds_up_to(9_810));
            assert!(!split.adds_up_to(10_300) && !split.adds_up_to(9_700));
        }
    }

    #[test]
    fn without_a_trace_the_wake_up_is_within_the_arrival() {
        let unknown = RoundTrip { client_wake: Wakes::Unknown, ..exchange(0, 0) };
        let split = Split::of(&unknown).unwrap();
        assert_eq!((split.ns(Part::ClientSocket), split.ns(Part::ClientWake)), (2_000, 0));
        assert_eq!(split.sum_ns(), 10_000);
        // A wake-up for the first packet of a message of several.
        let early = RoundTrip { client_wake: Wakes::At(3), ..exchange(0, 0) };
        let split = Split::of(&early).unwrap();
        assert_eq!((split.ns(Part::ClientSocket), split.ns(Part::ClientWake)), (0, 2_000));
    }

    #[test]
    fn stamps_of_both_nics_split_the_way_between_the_drivers() {
        // Clocks of NICs start anywhere; each NIC holds the packet for 150 ns on each way.
        let by_nics = |at_ns: u64| {
            let mut exchange = exchange(at_ns, 99);
            (exchange.client.sent_by_nic_ns, exchange.client.arrived_at_nic_ns) =
                (Some(50 + 150), Some(50 + 6_850));
            (exchange.server.arrived_at_nic_ns, exchange.server.sent_by_nic_ns) =
                (Some(9_000_000 - 150), Some(9_000_000 + 3_150));
            exchange
        };
        let split = Split::of(&by_nics(0)).unwrap();
        assert_eq!((split.ns(Part::Wire), split.ns(Part::Nics), split.sum_ns()), (3_400, 600, 10_000));
        let mut tally = Tally::new([true, true]);
        tally.add(by_nics(0));
        tally.add(exchange(1, 99));
        let figures = tally.figures();
        assert_eq!((figures.missing, figures.parts.len()), (1, PARTS.len()), "a NIC may lose a stamp");
        let mut backward = by_nics(0);
        backward.server.sent_by_nic_ns = Some(0);
        assert_eq!(Split::of(&backward), Err(Flaw::Disordered));
        // One end alone does not split anything.
        let mut tally = Tally::new([true, true]);
        let mut one_end = by_nics(0);
        one_end.server.sent_by_nic_ns = None;
        tally.add(one_end);
        tally.add(by_nics(1));
        let parts = tally.figures().parts;
        assert!(tally.is_by_nics() == Some(false) && parts.iter().all(|part| part.part != Part::Nics));
        assert_eq!(parts.iter().find(|part| part.part == Part::Wire).map(|part| part.total_ns), Some(8_000));
    }

    #[test]
    fn missing_late_and_disordered_stamps_are_counted_not_hidden() {
        let mut tally = Tally::new([true, true]);
        for at in 0..1_000 {
            tally.add(exchange(at, 99));
        }
        let broken = |change: fn(&mut RoundTrip)| {
            let mut exchange = exchange(0, 99);
            change(&mut exchange);
            exchange
        };
        tally.add(broken(|e| e.server.sent_ns = None));
        tally.add(broken(|e| e.client.queued_ns = None));
        tally.add(broken(|e| e.client.arrived_ns = Some(0)));
        // The server claims to have been busy for longer than its answer took.
        tally.add(broken(|e| e.server.sent_ns = Some(u64::MAX)));
        tally.add(broken(|e| (e.client.arrived_ns, e.client.received_ns) = (Some(0), Some(u64::MAX))));
        tally.add(broken(|e| e.measured_ns = 20_000));
        tally.add(broken(|e| e.server_wake = Wakes::Unknown));
        let figures = tally.figures();
        assert_eq!((figures.messages, figures.missing, figures.disordered), (1_007, 2, 3));
        assert_eq!((figures.adding_up, figures.untraced), (1_001, 1));
        let medians: Vec<u64> = figures.parts.iter().map(|part| part.median_ns).collect();
        for (median, expected) in medians.iter().zip(EXPECTED.into_iter().filter(|ns| *ns > 0)) {
            assert!(median.abs_diff(expected) * 1_000 <= expected, "{medians:?}");
        }
        let shares: f64 = figures.parts.iter().map(|part| figures.share_of(part)).sum();
        assert!((shares - 1.0).abs() < 1e-9 && (figures.share_adding_up() - 1_001.0 / 1_007.0).abs() < 1e-9);
    }

    #[test]
    fn wake_ups_that_nobody_traced_have_no_row() {
        let mut tally = Tally::new([true, false]);
        tally.add(RoundTrip { server_wake: Wakes::Unknown, ..exchange(0, 0) });
        let parts: Vec<Part> = tally.figures().parts.iter().map(|part| part.part).collect();
        assert!(parts.contains(&Part::ClientWake) && !parts.contains(&Part::ServerWake));
        assert_eq!(tally.figures().parts.iter().find_map(|part| part.p99_ns), None, "one message has no p99");
    }

    #[test]
    fn the_slowest_are_kept_and_their_long_part_is_named() {
        let mut tally = Tally::new([true, true]);
        for at in 0..5_000 {
            tally.add(exchange(at, 0));
        }
        let mut slow = exchange(7_000, 0);
        slow.measured_ns += 50_000;
        slow.client.received_ns = slow.client.received_ns.map(|ns| ns + 50_000);
        tally.add(slow);
        let slowest = tally.slowest();
        assert_eq!(
            (slowest.len(), slowest[0].exchange.at_ns, slowest[1].exchange.at_ns),
            (SLOWEST_MAX, 7_000, 0)
        );
        let (part, usual_ns) = tally.longest_part(&slowest[0].split);
        assert_eq!((part, usual_ns.abs_diff(1_500) < 2), (Part::ClientWake, true));
    }

    /// Stamps near each other, so that many are in order, and any others.
    fn stamp() -> impl proptest::strategy::Strategy<Value = Option<u64>> {
        use proptest::prelude::*;
        proptest::option::weighted(0.95, prop_oneof![3 => 0_u64..9, 1 => any::<u64>()])
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_peer_claims_parts_add_up_or_are_counted(
            rows in proptest::collection::vec(proptest::array::uniform10(stamp()), 1..60)
        ) {
            let mut tally = Tally::new([true, false]);
            for row in &rows {
                let [c0, c1, c2, c3, c4, s0, s1, s2, s3, s4] = *row;
                let stamps = |[a, b, c, d, e]: [Option<u64>; 5]| Stamps {
                    sending_ns: a, queued_ns: b, sent_ns: c, arrived_ns: d, received_ns: e,
                    sent_by_nic_ns: b, arrived_at_nic_ns: d,
                };
                let exchange = RoundTrip {
                    at_ns: 0,
                    measured_ns: c4.unwrap_or(0).wrapping_sub(c0.unwrap_or(0)),
                    client: stamps([c0, c1, c2, c3, c4]),
                    server: stamps([s2, s3, s4, s0, s1]),
                    client_wake: Wakes::At(c2.unwrap_or(7)),
                    server_wake: Wakes::Unknown,
                };
                if let Ok(split) = Split::of(&exchange) {
                    proptest::prop_assert_eq!(split.sum_ns(), exchange.measured_ns);
                }
                tally.add(exchange);
            }
            let figures = tally.figures();
            proptest::prop_assert_eq!(figures.messages, rows.len() as u64);
            proptest::prop_assert_eq!(figures.missing + figures.disordered + figures.adding_up, figures.messages);
        }
    }
}
