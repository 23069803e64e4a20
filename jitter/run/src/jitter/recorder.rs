//! Keeps the interruptions of one CPU: exact sums, a histogram, the worst, the first, a series.
//!
//! Everything is allocated and touched at the start; recording allocates nothing in any case.

use super::{
    ring::Producer,
    series::{Series, SeriesPlan},
};
use crate::clock::{TickScale, ticks_between};
use hdrhistogram::Histogram;
use lowlat_host::histogram;
use lowlat_jitter::{Interruption, JitterCpu};
use std::{cmp::Reverse, collections::BinaryHeap, hint::black_box};

/// The longest length with a separate cell of the histogram: an hour. Longer ones are counted in its last cell;
/// sum and maximum stay exact.
const HISTOGRAM_NS_MAX: u64 = 3_600_000_000_000;
/// Three digits: a cell is at most 0.1 % of its value wide.
const HISTOGRAM_DIGITS: u8 = 3;

/// The recorder of one CPU. Its input is in ticks.
#[derive(Debug)]
pub struct CpuRecorder {
    scale: TickScale,
    epoch: u64,
    pub count: u64,
    pub ticks_total: u64,
    /// `u64::MAX` while there is none.
    ticks_min: u64,
    pub ticks_max: u64,
    lengths: Histogram<u64>,
    /// The shortest of the worst on top, to be replaced first. (length, at), in ticks since the epoch.
    worst: BinaryHeap<Reverse<(u64, Reverse<u64>)>>,
    worst_count: usize,
    first: Vec<(u64, u64)>,
    first_count: usize,
    series: Series,
    ring: Option<Producer>,
}

impl CpuRecorder {
    /// A recorder with all its memory allocated and touched by the calling thread, so on that thread's node.
    pub fn new(scale: TickScale, series: SeriesPlan, worst_count: usize, first_count: usize) -> Self {
        let lengths = Histogram::new_with_bounds(1, HISTOGRAM_NS_MAX, HISTOGRAM_DIGITS)
            .expect("the bounds are constants that the histogram accepts");
        let mut recorder = Self {
            scale,
            epoch: 0,
            count: 0,
            ticks_total: 0,
            ticks_min: u64::MAX,
            ticks_max: 0,
            lengths,
            worst: BinaryHeap::with_capacity(worst_count),
            worst_count,
            first: Vec::with_capacity(first_count),
            first_count,
            series: Series::new(series, scale),
            ring: None,
        };
        recorder.touch();
        recorder
    }

    /// Passes on each interruption from now on.
    #[must_use]
    pub fn with_ring(self, ring: Option<Producer>) -> Self {
        Self { ring, ..self }
    }

    /// Writes to all memory once: a page fault during the run would be an interruption of our own making.
    fn touch(&mut self) {
        self.first.resize(self.first_count, (1, 1));
        self.worst.extend((0..self.worst_count as u64).map(|n| Reverse((n, Reverse(n)))));
        // Clearing writes each cell.
        self.lengths.clear();
        self.series.touch();
        black_box(&mut *self);
        self.clear();
    }

    /// Times count from `epoch` on.
    pub fn begin(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// Clears everything recorded, except what was passed on.
    pub fn clear(&mut self) {
        (self.count, self.ticks_total, self.ticks_min, self.ticks_max) = (0, 0, u64::MAX, 0);
        self.lengths.clear();
        self.worst.clear();
        self.first.clear();
        self.series.clear();
    }

    /// Records an interruption between two readings.
    pub fn record(&mut self, before: u64, now: u64) {
        if let Some(ring) = &mut self.ring {
            ring.push(before, now);
        }
        let length = now.wrapping_sub(before);
        let at = self.since_epoch(before);
        self.count += 1;
        self.ticks_total = self.ticks_total.saturating_add(length);
        self.ticks_min = self.ticks_min.min(length);
        self.ticks_max = self.ticks_max.max(length);
        self.lengths.saturating_record(self.scale.ns(length).max(1));
        if self.first.len() < self.first_count {
            self.first.push((length, at));
        }
        self.record_worst((length, Reverse(at)));
        self.series.record(self.since_epoch(now), length);
    }

    /// Counters of different CPUs may differ slightly; times before the epoch are set to it.
    fn since_epoch(&self, ticks: u64) -> u64 {
        ticks_between(self.epoch, ticks).unwrap_or(0)
    }

    /// Keeps the longest; among equals the earlier.
    fn record_worst(&mut self, interruption: (u64, Reverse<u64>)) {
        if self.worst.len() < self.worst_count {
            self.worst.push(Reverse(interruption));
        } else if let Some(mut shortest) = self.worst.peek_mut()
            && interruption > shortest.0
        {
            *shortest = Reverse(interruption);
        }
    }

    /// The recorded part of a CPU's record; `last` is its last reading.
    pub fn into_record(self, last: u64) -> JitterCpu {
        let scale = self.scale;
        let run_ticks = self.since_epoch(last);
        let interruption = |length, at| Interruption { at_ns: scale.ns(at), length_ns: scale.ns(length) };
        let mut worst: Vec<(u64, Reverse<u64>)> = self.worst.into_iter().map(|Reverse(one)| one).collect();
        worst.sort_unstable_by_key(|one| Reverse(*one));
        JitterCpu {
            interruption_count: self.count,
            interruption_ns_total: scale.ns(self.ticks_total),
            interruption_ns_min: if self.count > 0 { scale.ns(self.ticks_min) } else { 0 },
            interruption_ns_max: scale.ns(self.ticks_max),
            histogram: histogram::encode(&self.lengths),
            worst: worst.into_iter().map(|(length, Reverse(at))| interruption(length, at)).collect(),
            first: self.first.into_iter().map(|(length, at)| interruption(length, at)).collect(),
            seconds: self.series.into_seconds(run_ticks),
            ..JitterCpu::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::ring;
    use lowlat_host::histogram::decode;
    use proptest::prelude::*;
    use std::time::Duration;

    /// One tick is one nanosecond.
    fn recorder(worst: usize, first: usize) -> CpuRecorder {
        let scale = TickScale::new(1_000_000_000);
        let mut recorder = CpuRecorder::new(scale, SeriesPlan::of(Duration::from_secs(3), 1), worst, first);
        recorder.begin(1_000);
        recorder
    }

    fn pairs(interruptions: &[Interruption]) -> Vec<(u64, u64)> {
        interruptions.iter().map(|one| (one.at_ns, one.length_ns)).collect()
    }

    #[test]
    fn the_worst_are_replaced_and_the_first_stay() {
        let mut recorder = recorder(2, 3);
        for (at, length) in [(10, 100), (200, 50), (300, 400), (800, 400), (2_000, 70), (3_000, 100)] {
            recorder.record(1_000 + at, 1_000 + at + length);
        }
        let record = recorder.into_record(5_000);
        assert_eq!(pairs(&record.worst), [(300, 400), (800, 400)], "longest first, of equals the earlier");
        assert_eq!(pairs(&record.first), [(10, 100), (200, 50), (300, 400)]);
        assert_eq!((record.interruption_count, record.interruption_ns_total), (6, 1_120));
        assert_eq!((record.interruption_ns_min, record.interruption_ns_max), (50, 400));
    }

    #[test]
    fn interruptions_are_counted_even_if_none_is_kept() {
        let mut recorder = recorder(0, 0);
        recorder.record(1_000, 1_500);
        let record = recorder.into_record(2_000);
        assert!(record.worst.is_empty() && record.first.is_empty());
        assert_eq!((record.interruption_count, record.interruption_ns_total), (1, 500));
    }

    #[test]
    fn a_length_beyond_the_histogram_keeps_sum_and_maximum_exact() {
        let mut recorder = recorder(1, 1);
        let day = 86_400_000_000_000;
        recorder.record(1_000, 1_000 + day);
        let record = recorder.into_record(1_000 + day);
        assert_eq!((record.interruption_ns_total, record.interruption_ns_max), (day, day));
        assert_eq!(decode(&record.histogram).unwrap().len(), 1);
    }

    #[test]
    fn recordings_from_before_the_run_are_cleared() {
        let mut recorder = recorder(4, 4);
        recorder.record(1_000, 7_777);
        recorder.clear();
        let record = recorder.into_record(1_001);
        let empty = JitterCpu { histogram: record.histogram.clone(), ..JitterCpu::default() };
        assert_eq!(JitterCpu { seconds: Vec::new(), ..record.clone() }, empty);
        assert_eq!(decode(&record.histogram).unwrap().len(), 0);
    }

    #[test]
    fn each_interruption_is_passed_on_unchanged() {
        let (producer, mut consumer) = ring(2);
        let mut recorder = recorder(1, 1).with_ring(Some(producer));
        for (before, now) in [(1_000, 1_200), (2_000, 2_300), (3_000, 3_400)] {
            recorder.record(before, now);
        }
        let mut got = Vec::new();
        consumer.drain(|before, now| got.push((before, now)));
        assert_eq!((got, consumer.lost_count()), (vec![(1_000, 1_200), (2_000, 2_300)], 1));
        assert_eq!(recorder.into_record(4_000).interruption_count, 3, "the totals do not depend on the ring");
    }

    proptest! {
        #[test]
        fn all_books_agree(events in proptest::collection::vec((0_u64..1 << 20, 1_u64..1 << 44), 0..200)) {
            let mut recorder = recorder(8, 5);
            let allocated = (recorder.worst.capacity(), recorder.first.capacity());
            let mut now = 1_000;
            for (quiet, length) in &events {
                recorder.record(now + quiet, now + quiet + length);
                now += quiet + length;
            }
            prop_assert_eq!((recorder.worst.capacity(), recorder.first.capacity()), allocated);
            let record = recorder.into_record(now);
            let count = events.len() as u64;
            let mut lengths: Vec<u64> = events.iter().map(|(_, length)| *length).collect();
            prop_assert_eq!(record.interruption_count, count);
            prop_assert_eq!(record.interruption_ns_total, lengths.iter().sum::<u64>());
            prop_assert_eq!(record.interruption_ns_min, lengths.iter().copied().min().unwrap_or(0));
            prop_assert_eq!(decode(&record.histogram).unwrap().len(), count);
            prop_assert_eq!(record.seconds.iter().map(|second| second.count).sum::<u64>(), count);
            lengths.sort_unstable_by_key(|length| Reverse(*length));
            lengths.truncate(8);
            let worst: Vec<u64> = record.worst.iter().map(|one| one.length_ns).collect();
            prop_assert_eq!(worst, lengths);
        }
    }
}
