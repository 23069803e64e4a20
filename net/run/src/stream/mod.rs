//! Streams of messages in one direction, at rates that rise.

mod client;
mod send;

pub use client::{StreamClientOptions, run};

use crate::link::{Ended, Link};
use hdrhistogram::Histogram;
use lowlat_host::histogram;
use lowlat_jitter_run::clock::{ArchCounter, MonotonicCounter, TickScale};
use lowlat_net::stream::{FLAG_ECHO, FLAG_END, Header, Received};
use std::time::{Duration, Instant};

/// Longest latency that a histogram records, in nanoseconds: a minute. Longer ones count as a minute.
const NS_MAX: u64 = 60_000_000_000;
const DIGITS: u8 = 3;

/// An empty histogram of times.
fn times() -> Histogram<u64> {
    let bounded = Histogram::new_with_bounds(1, NS_MAX, DIGITS);
    // The bounds are constants that the histogram accepts.
    bounded.unwrap_or_else(|_| Histogram::new(1).unwrap_or_else(|_| unreachable!("one digit is accepted")))
}

/// Longest text of a histogram that is sent to the client; a control frame holds 64 KiB.
const HISTOGRAM_CHARS_MAX: usize = 48 << 10;
/// Messages in each word of the list of those seen.
const BITS: u64 = 64;

/// A round as announced by the client.
#[derive(Debug, Clone, Copy)]
pub struct RoundPlan {
    pub round: u32,
    /// Size of each message in bytes.
    pub bytes: usize,
    /// Maximum number of messages sent.
    pub count: u64,
    /// Scale of the counter that both ends share, if they do.
    pub scale: Option<TickScale>,
}

struct RoundCounters {
    /// A bit for each message that arrived.
    seen: Vec<u64>,
    /// The number after the highest that arrived.
    next: u64,
    latency: Histogram<u64>,
    received: Received,
}

/// Receives the messages of a round until one says that no other follows.
///
/// # Errors
/// [`Ended`] if the data path ends before.
pub fn receive_round(link: &mut Link, plan: &RoundPlan) -> Result<Received, Ended> {
    let words = usize::try_from(plan.count.div_ceil(BITS)).unwrap_or(usize::MAX);
    // Ones first, so that every page is present before the first message.
    let mut seen = vec![1; words];
    seen.fill(0);
    let mut counters = RoundCounters { seen, next: 0, latency: times(), received: Received::default() };
    let dropped_before = link.dropped();
    let mut arrivals: Option<[Instant; 2]> = None;
    loop {
        link.receive(plan.bytes)?;
        let now = ArchCounter.now();
        let header = Header::of(link.message()).filter(|header| header.round == plan.round);
        let Some(header) = header else { continue };
        if header.flags & FLAG_END != 0 {
            break;
        }
        if !counters.count(&header) {
            continue;
        }
        let at = Instant::now();
        arrivals = Some([arrivals.map_or(at, |[first, _]| first), at]);
        if let Some(scale) = plan.scale {
            counters.latency.saturating_record(scale.ns(now.saturating_sub(header.due_ticks)).max(1));
        }
        if header.flags & FLAG_ECHO != 0 {
            link.send(plan.bytes)?;
        }
    }
    let RoundCounters { mut received, latency, .. } = counters;
    let elapsed = arrivals.map_or(Duration::ZERO, |[first, last]| last - first);
    received.elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
    let dropped = link.dropped().zip(dropped_before);
    // The kernel's counter has 32 bits and wraps.
    received.dropped = dropped.map(|(now, before)| now.wrapping_sub(before).into());
    received.histogram = (!latency.is_empty()).then(|| text(&latency));
    Ok(received)
}

impl RoundCounters {
    /// Counts a message; `false` if it has arrived before, or does not belong to this round.
    fn count(&mut self, header: &Header) -> bool {
        let sequence = header.sequence;
        let place = usize::try_from(sequence / BITS).unwrap_or(usize::MAX);
        let Some(word) = self.seen.get_mut(place) else { return false };
        let bit = 1 << (sequence % BITS);
        if *word & bit != 0 {
            self.received.duplicates += 1;
            return false;
        }
        *word |= bit;
        self.received.messages += 1;
        if sequence < self.next {
            self.received.reordered += 1;
        } else {
            self.received.gaps += u64::from(sequence > self.next);
            self.next = sequence + 1;
        }
        true
    }
}

/// The histogram as text; with two digits if three make it too long for a frame.
fn text(times: &Histogram<u64>) -> String {
    let text = histogram::encode(times);
    if text.len() <= HISTOGRAM_CHARS_MAX {
        return text;
    }
    let Ok(mut coarse) = Histogram::new_with_bounds(1, NS_MAX, 2) else { return text };
    for value in times.iter_recorded() {
        coarse.saturating_record_n(value.value_iterated_to(), value.count_at_value());
    }
    histogram::encode(&coarse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_duplicates_and_disorder_are_counted() {
        let mut counters =
            RoundCounters { seen: vec![0; 2], next: 0, latency: times(), received: Received::default() };
        // Message 1 comes late, 3 twice, 4 and 5 never; those beyond the round are ignored.
        for sequence in [0, 2, 3, 1, 3, 6, 128, u64::MAX] {
            counters.count(&Header { sequence, ..Header::default() });
        }
        let Received { messages, duplicates, reordered, gaps, .. } = counters.received;
        assert_eq!((messages, duplicates, reordered, gaps), (5, 1, 1, 2));
    }

    #[test]
    fn every_histogram_fits_into_a_frame() {
        let mut latency = times();
        let mut ns = 1_u64;
        while ns < NS_MAX {
            latency.saturating_record_n(ns, ns % 977);
            ns += ns / 4_000 + 1;
        }
        assert!(histogram::encode(&latency).len() > HISTOGRAM_CHARS_MAX, "the test has a long one");
        let short = histogram::decode(&text(&latency)).unwrap();
        assert!(text(&latency).len() <= HISTOGRAM_CHARS_MAX);
        assert_eq!(short.len(), latency.len());
    }
}
