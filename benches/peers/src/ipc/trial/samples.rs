//! Latencies as td takes them: four words an order, in memory that is there before the trial begins.

use super::memory::Part;
use hdrhistogram::Histogram;
use lowlat_ipc::region::Region;
use lowlat_pipeline::{StageFigures, Stages};
use std::sync::atomic::Ordering;

const SAMPLE_WORDS: usize = 4;

/// Bytes for the latencies of so many orders.
pub fn bytes(orders: u64) -> u64 {
    orders * (SAMPLE_WORDS as u64) * 8
}

/// Times of the steps of one order, in ns of the trial's clock.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The quote was due by the schedule.
    pub scheduled: u64,
    /// md was about to write the quote.
    pub quoted: u64,
    /// The strategy had read it.
    pub received: u64,
    /// The strategy was about to write the order.
    pub ordered: u64,
    /// td had read the order.
    pub taken: u64,
}

/// The latencies of a trial.
#[derive(Debug)]
pub struct Samples {
    part: Part,
    next: usize,
}

impl Samples {
    /// Latencies in memory of the trial.
    pub fn new(part: Part) -> Self {
        Self { part, next: 0 }
    }

    /// For td: stores the latencies of one order. Orders beyond the schedule are dropped; the count of orders shows
    /// them.
    #[inline]
    pub fn push(&mut self, times: &Times) {
        let latencies = [
            times.received.saturating_sub(times.quoted),
            times.taken.saturating_sub(times.ordered),
            times.taken.saturating_sub(times.quoted),
            times.taken.saturating_sub(times.scheduled),
        ];
        let words = self.part.words().get(self.next..).unwrap_or_default();
        if words.len() >= SAMPLE_WORDS {
            // The parent reads these after td has reported; that pairs them.
            words.iter().zip(latencies).for_each(|(word, latency)| word.store(latency, Ordering::Relaxed));
            self.next += SAMPLE_WORDS;
        }
    }

    /// For the parent: figures of the first `orders` of them.
    pub fn stages(&self, orders: u64) -> anyhow::Result<Stages> {
        let mut histograms = Vec::new();
        for _ in 0..SAMPLE_WORDS {
            histograms.push(Histogram::<u64>::new(3)?);
        }
        let orders = usize::try_from(orders)?;
        for sample in self.part.words().chunks_exact(SAMPLE_WORDS).take(orders) {
            for (histogram, word) in histograms.iter_mut().zip(sample) {
                histogram.record(word.load(Ordering::Relaxed))?;
            }
        }
        let mut figures = histograms.iter().map(StageFigures::of);
        let mut next = || figures.next().unwrap_or_default();
        Ok(Stages { md: next(), order: next(), t2o: next(), t2o_scheduled: next() })
    }
}
