//! Latencies of a run as histograms in shared memory, written by td and read by others meanwhile.
//!
//! ```text
//! words, for each stage
//!   1  longest latency + 1, or 0 if there is none
//!   2  sum of all latencies, wrapping
//!   8  cells: counts
//! ```
//!
//! A cell's width grows with its values, so that every latency up to [`LATENCY_NS_MAX`] keeps three significant
//! digits: one cell per ns below 2,048 ns, then 1,024 cells per doubling. HdrHistogram lays out its cells in
//! the same way, so a [`Histogram`] built from them equals one that recorded the latencies directly.

use hdrhistogram::Histogram;
use lowlat_ipc::region::Region;
use lowlat_pipeline::{StageFigures, Stages, WireStages};
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest latency with a cell, 18 minutes; longer ones are counted in the last cell.
pub const LATENCY_NS_MAX: u64 = 1 << 40;
/// Cells of the first, exact part; each further doubling takes half as many.
const EXACT: u32 = 2048;
const HALF: u32 = EXACT / 2;
const EXACT_BITS: u32 = EXACT.ilog2();
const DOUBLINGS: u32 = LATENCY_NS_MAX.ilog2() - EXACT_BITS + 1;
const CELLS: u32 = EXACT + DOUBLINGS * HALF;
const LONGEST: usize = 1;
const SUM: usize = 2;
/// The cells start on a separate cache line.
const FIRST_CELL: usize = 8;
const STAGE_WORDS: usize = FIRST_CELL + CELLS as usize;
/// Largest plausible count of a cell: no run exceeds it, and the sum over all cells does not overflow.
const COUNT_MAX: u64 = 1 << 47;
const _: () = assert!(COUNT_MAX.checked_mul(CELLS as u64).is_some() && FIRST_CELL * 8 == 64);

/// A stage of the path from a quote to its order, named like its field in [`Stages`] or [`WireStages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Md,
    Order,
    T2o,
    T2oScheduled,
    PacketToRead,
    ReadToPublished,
    PublishedToStrategy,
    Strategy,
    OrderToTd,
    TdToSend,
    SendToWire,
    TickToTrade,
}

impl Stage {
    /// The stages of every run, in the order of their words.
    pub const ALL: [Self; 4] = [Self::Md, Self::Order, Self::T2o, Self::T2oScheduled];
}

/// The histograms, in memory that one process writes. Readers may see a latency in one word before another.
#[derive(Debug)]
pub struct StageRecorder<R> {
    region: R,
}

impl<R: Region> StageRecorder<R> {
    /// Bytes of the histograms of [`Stage::ALL`].
    pub const BYTES: u64 = (Stage::ALL.len() * STAGE_WORDS * 8) as u64;
    /// Bytes with the stages of runs with a feed or a gateway, whose words follow: the parts of tick to trade, and the
    /// whole. In less memory, latencies of those are not counted.
    pub const WIRE_BYTES: u64 = ((Stage::TickToTrade as usize + 1) * STAGE_WORDS * 8) as u64;

    /// The histograms in zeroed memory, or in memory that another process writes; `None` if it is too small.
    pub fn new(region: R) -> Option<Self> {
        (region.words().len() >= Stage::ALL.len() * STAGE_WORDS).then_some(Self { region })
    }

    fn words(&self, stage: Stage) -> &[AtomicU64] {
        let start = stage as usize * STAGE_WORDS;
        self.region.words().get(start..start + STAGE_WORDS).unwrap_or_default()
    }

    /// Counts a latency. Only one thread of one process may do so.
    #[inline]
    pub fn record(&self, stage: Stage, latency_ns: u64) {
        let words = self.words(stage);
        let latency_ns = latency_ns.min(LATENCY_NS_MAX);
        add(words.get(FIRST_CELL + cell_of(latency_ns)), 1);
        add(words.get(SUM), latency_ns);
        let counted = latency_ns + 1;
        if let Some(longest) = words.get(LONGEST)
            && longest.load(Ordering::Relaxed) < counted
        {
            // Pairs with the load in `load`. Relaxed: one writer, and each word is independent.
            longest.store(counted, Ordering::Relaxed);
        }
    }

    fn cells(&self, stage: Stage) -> impl Iterator<Item = (u64, u64)> {
        let cells = self.words(stage).get(FIRST_CELL..).unwrap_or_default();
        (0..).zip(cells).map(|(cell, word)| (value_of(cell), load(word).min(COUNT_MAX)))
    }

    /// The latencies so far as a histogram of nanoseconds.
    pub fn histogram(&self, stage: Stage) -> Histogram<u64> {
        let mut histogram = empty();
        for (value, count) in self.cells(stage).filter(|(_, count)| *count > 0) {
            histogram.saturating_record_n(value, count);
        }
        histogram
    }

    /// Figures of a stage so far; mean and maximum are exact, percentiles have three digits.
    pub fn figures(&self, stage: Stage) -> StageFigures {
        let histogram = self.histogram(stage);
        let figures = StageFigures::of(&histogram);
        let word = |at| self.words(stage).get(at).map_or(0, load);
        let count = figures.count;
        let (sum, longest) = (word(SUM), word(LONGEST).checked_sub(1));
        // A reader may run between two stores of the writer, or the memory may be damaged: then the histogram
        // is used.
        let near = |ns: &u64| histogram.equivalent(*ns, histogram.max());
        let mean = sum as f64 / count.max(1) as f64;
        let is_near = figures.mean_ns.is_some_and(|of| (of - mean).abs() <= of / 1e3 + 1.0);
        StageFigures {
            mean_ns: if is_near { Some(mean) } else { figures.mean_ns },
            max_ns: longest.filter(near).or(figures.max_ns),
            ..figures
        }
    }

    /// Figures of all stages so far.
    pub fn stages(&self) -> Stages {
        let [md, order, t2o, t2o_scheduled] = Stage::ALL.map(|stage| self.figures(stage));
        Stages { md, order, t2o, t2o_scheduled }
    }

    /// Figures of tick to trade so far.
    pub fn wire_stages(&self) -> WireStages {
        WireStages {
            packet_to_read: self.figures(Stage::PacketToRead),
            read_to_published: self.figures(Stage::ReadToPublished),
            published_to_strategy: self.figures(Stage::PublishedToStrategy),
            strategy: self.figures(Stage::Strategy),
            order_to_td: self.figures(Stage::OrderToTd),
            td_to_send: self.figures(Stage::TdToSend),
            send_to_wire: self.figures(Stage::SendToWire),
            tick_to_trade: self.figures(Stage::TickToTrade),
        }
    }
}

/// A histogram without latencies, with the bounds of the stages.
pub(crate) fn empty() -> Histogram<u64> {
    // Bounds and digits are constants that the crate accepts, and so is the fallback.
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
        .or_else(|_| Histogram::new(3))
        .unwrap_or_else(|_| unreachable!("three digits are few enough"))
}

#[inline]
fn load(word: &AtomicU64) -> u64 {
    // Pairs with the stores in `record`.
    word.load(Ordering::Relaxed)
}

/// With a single writer a load and a store suffice, and cost less than a locked addition.
#[inline]
fn add(word: Option<&AtomicU64>, by: u64) {
    if let Some(word) = word {
        // Pairs with the load in `load`.
        word.store(word.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
    }
}

/// The cell of a latency up to [`LATENCY_NS_MAX`].
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "cells are few")]
fn cell_of(latency_ns: u64) -> usize {
    let doubling = (u64::BITS - (latency_ns | u64::from(EXACT - 1)).leading_zeros()) - EXACT_BITS;
    (doubling * HALF + (latency_ns >> doubling) as u32) as usize
}

/// The lowest latency of a cell.
fn value_of(cell: u32) -> u64 {
    let doubling = (cell / HALF).saturating_sub(1);
    u64::from(cell - doubling * HALF) << doubling
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_ipc::region::Heap;
    use proptest::prelude::*;

    fn recorder() -> StageRecorder<Heap> {
        StageRecorder::new(Heap::zeroed(StageRecorder::<Heap>::BYTES)).unwrap()
    }

    #[test]
    fn cells_are_contiguous() {
        for cell in 0..CELLS {
            assert_eq!(cell_of(value_of(cell)), cell as usize, "the first of cell {cell}");
            if let Some(before) = value_of(cell).checked_sub(1) {
                assert_eq!(cell_of(before), cell as usize - 1, "the last before cell {cell}");
            }
        }
        assert!(cell_of(LATENCY_NS_MAX) < CELLS as usize);
    }

    #[test]
    fn stages_are_separate_and_can_be_cleared() {
        let recorder = recorder();
        for (stage, latency_ns) in Stage::ALL.into_iter().zip([0, 5_000, 70_003, u64::MAX]) {
            recorder.record(stage, latency_ns);
        }
        let stages = recorder.stages();
        let of = |figures: &StageFigures| (figures.count, figures.mean_ns, figures.max_ns);
        assert_eq!(of(&stages.md), (1, Some(0.0), Some(0)));
        assert_eq!(of(&stages.order), (1, Some(5_000.0), Some(5_000)));
        assert_eq!(of(&stages.t2o), (1, Some(70_003.0), Some(70_003)), "exact, not the end of a cell");
        assert_eq!(stages.t2o_scheduled.max_ns, Some(LATENCY_NS_MAX), "counted in the last cell");
        recorder.region.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
        assert_eq!(recorder.stages(), self::recorder().stages());
    }

    #[test]
    fn memory_that_is_too_small_is_refused() {
        assert!(StageRecorder::new(Heap::zeroed(StageRecorder::<Heap>::BYTES - 8)).is_none());
        assert!(StageRecorder::new(Heap::zeroed(0)).is_none());
    }

    #[test]
    fn readers_see_consistent_counts_during_writes() {
        let recorder = recorder();
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| (0..20_000).for_each(|ns| recorder.record(Stage::T2o, ns)));
            let mut seen = 0;
            while !writing.is_finished() {
                let now = recorder.histogram(Stage::T2o).len();
                assert!(now >= seen, "counts only grow: {now} after {seen}");
                seen = now;
            }
        });
        assert_eq!(recorder.histogram(Stage::T2o).len(), 20_000);
    }

    proptest! {
        // Each case builds histograms of 32,768 cells.
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn it_is_the_histogram_of_what_was_recorded(
            latencies in proptest::collection::vec((any::<u64>(), 0_u32..64), 0..300),
        ) {
            let (recorder, mut expected) = (recorder(), empty());
            let (mut sum, mut longest) = (0_u64, None);
            for (bits, shift) in latencies {
                let latency_ns = bits >> shift;
                recorder.record(Stage::Order, latency_ns);
                expected.record(latency_ns.min(LATENCY_NS_MAX)).unwrap();
                sum = sum.wrapping_add(latency_ns.min(LATENCY_NS_MAX));
                longest = longest.max(Some(latency_ns.min(LATENCY_NS_MAX)));
            }
            let found = recorder.histogram(Stage::Order);
            for percentile in [0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
                prop_assert_eq!(found.value_at_percentile(percentile), expected.value_at_percentile(percentile));
            }
            prop_assert_eq!(&found, &expected);
            let figures = recorder.figures(Stage::Order);
            prop_assert_eq!(figures.count, expected.len());
            prop_assert_eq!(figures.max_ns, longest);
            if let Some(mean) = figures.mean_ns {
                let exact = sum as f64 / figures.count as f64;
                prop_assert!((mean - exact).abs() <= exact / 1e9, "{} {}", mean, exact);
            }
        }

        #[test]
        fn hostile_words_are_read_without_harm(
            words in proptest::collection::vec((0..Stage::ALL.len() * STAGE_WORDS, any::<u64>()), 0..64),
            all in proptest::option::of(any::<u64>()), latency_ns: u64,
        ) {
            let heap = Heap::zeroed(StageRecorder::<Heap>::BYTES);
            if let Some(all) = all {
                heap.words().iter().for_each(|word| word.store(all, Ordering::Relaxed));
            }
            for (at, word) in words {
                heap.words()[at].store(word, Ordering::Relaxed);
            }
            let recorder = StageRecorder::new(heap).unwrap();
            for stage in Stage::ALL {
                recorder.record(stage, latency_ns);
                let figures = recorder.figures(stage);
                prop_assert!(figures.mean_ns.is_none_or(f64::is_finite));
                prop_assert!(lowlat_host::histogram::decode(&figures.histogram).is_ok());
            }
        }
    }
}
