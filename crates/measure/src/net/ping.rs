//! The client's side of a run: times round trips.

use super::{
    control::{Control, ControlError, unexpected},
    link::{Ended, Link},
    pong::Batch,
};
use crate::clock::{ArchCounter, Counter, TickScale};
use lowlat_net::pingpong::{Figures, Scenario, SizeRecord, protocol::Message};
use std::{
    hint,
    time::{Duration, Instant},
};

/// Longest wait for the server between batches. A refused message on its way takes no longer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Round trips of a batch of the warm-up.
const WARM_UP_BATCH: u64 = 200;
/// Sizes after the first are warmed up for this part of the time.
const WARM_UP_PART: u64 = 10;
const NS_PER_MS: u64 = 1_000_000;

/// Why a run ended early.
#[derive(Debug)]
pub enum PingError {
    /// The control connection failed.
    Control(ControlError),
    /// The data path failed.
    Data(Ended),
}

impl From<ControlError> for PingError {
    fn from(error: ControlError) -> Self {
        Self::Control(error)
    }
}

impl From<Ended> for PingError {
    fn from(ended: Ended) -> Self {
        Self::Data(ended)
    }
}

/// Times round trips over a link.
#[derive(Debug)]
pub struct Pinger<'a> {
    control: &'a Control,
    link: Link,
    scenario: &'a Scenario,
    scale: TickScale,
    percentile: f64,
    batch: &'a Batch,
    /// Round trips of the current size in ticks; with a rate from the time when they were due.
    samples: Vec<u64>,
    /// With a rate: the same from the time of sending.
    from_send: Vec<u64>,
    /// The server's queue, as it last reported.
    server_napi_id: Option<u32>,
}

impl<'a> Pinger<'a> {
    /// Prepares the memory for every sample.
    pub fn new(
        control: &'a Control,
        link: Link,
        scenario: &'a Scenario,
        scale: TickScale,
        percentile: f64,
        batch: &'a Batch,
    ) -> Self {
        let count = usize::try_from(scenario.iterations_max).unwrap_or(usize::MAX);
        let samples = touched(count);
        let from_send = if scenario.rate_per_s.is_some() { touched(count) } else { Vec::new() };
        Self { control, link, scenario, scale, percentile, batch, samples, from_send, server_napi_id: None }
    }

    /// Ids of the queues that delivered messages: the client's, the server's.
    pub fn napi_ids(&self) -> [Option<u32>; 2] {
        [self.link.wires().napi_id(), self.server_napi_id]
    }

    /// Measures a size. A run that ends early returns what it measured, with the error.
    pub fn measure(
        &mut self,
        size_bytes: u32,
        is_first: bool,
    ) -> (Option<SizeRecord>, Result<(), PingError>) {
        self.samples.clear();
        self.from_send.clear();
        let start = Instant::now();
        let result = self.warm_up(size_bytes, is_first).and_then(|()| {
            self.samples.clear();
            self.from_send.clear();
            self.batches(size_bytes)
        });
        let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        (self.record(size_bytes, elapsed_ns), result)
    }

    /// Unmeasured round trips, by time.
    fn warm_up(&mut self, size_bytes: u32, is_first: bool) -> Result<(), PingError> {
        let ms = if is_first { self.scenario.warm_up_ms } else { self.scenario.warm_up_ms / WARM_UP_PART };
        let (start, time) = (Instant::now(), Duration::from_millis(ms));
        while start.elapsed() < time {
            self.samples.clear();
            self.from_send.clear();
            self.run_batch(size_bytes, WARM_UP_BATCH.min(self.scenario.iterations_max))?;
        }
        Ok(())
    }

    /// Batches that grow, until time or iterations are used up.
    fn batches(&mut self, size_bytes: u32) -> Result<(), PingError> {
        let Scenario { time_ms_max, iterations_min, iterations_max, .. } = *self.scenario;
        let (start, time_ns) = (Instant::now(), time_ms_max.saturating_mul(NS_PER_MS));
        let mut next = iterations_min.min(iterations_max);
        loop {
            self.run_batch(size_bytes, next)?;
            let done = self.samples.len() as u64;
            let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let left = iterations_max.saturating_sub(done);
            if left == 0 || elapsed_ns >= time_ns {
                return Ok(());
            }
            // As many as fit into the time at the pace so far, but no more than there are already: a pause of the host
            // in an early batch must not decide the length of the last.
            let per_round_trip_ns = (elapsed_ns / done.max(1)).max(1);
            let fitting = (time_ns - elapsed_ns) / per_round_trip_ns;
            next = fitting.clamp(1, done.max(1)).min(left);
        }
    }

    /// Announces a batch, runs it, and waits until the server has finished it. One round trip more than counted goes
    /// first: both ends have slept until then.
    fn run_batch(&mut self, size_bytes: u32, count: u64) -> Result<(), PingError> {
        self.control.send(&Message::Batch { size_bytes, count: count + 1 })?;
        match self.control.receive(ANSWER_TIME_MAX)? {
            Message::Ready => {}
            other => return Err(unexpected(&other).into()),
        }
        let bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let batch = self.batch;
        batch.during(|| {
            self.link.send(bytes)?;
            self.link.receive(bytes)?;
            match self.scenario.rate_per_s {
                None => self.closed_loop(bytes, count),
                Some(rate) => self.scheduled(bytes, count, rate),
            }
        })?;
        match self.control.receive(ANSWER_TIME_MAX)? {
            Message::Done { napi_id } => self.server_napi_id = napi_id,
            other => return Err(unexpected(&other).into()),
        }
        Ok(())
    }

    /// Sends each message as soon as the previous answer has arrived.
    fn closed_loop(&mut self, bytes: usize, count: u64) -> Result<(), Ended> {
        for _ in 0..count {
            let start = ArchCounter.now();
            self.link.send(bytes)?;
            self.link.receive(bytes)?;
            let end = ArchCounter.now();
            // Within the capacity, so nothing is allocated.
            self.samples.push(end.saturating_sub(start));
        }
        Ok(())
    }

    /// Sends each message when it is due, or at once if the previous answer came later than that. Latency counts from
    /// the due time, so that a pause of the server counts for every message that it delayed.
    fn scheduled(&mut self, bytes: usize, count: u64, rate_per_s: f64) -> Result<(), Ended> {
        let interval = self.scale.hz() as f64 / rate_per_s;
        let first = ArchCounter.now();
        for place in 0..count {
            let due = first.wrapping_add(ticks(interval * (place + 1) as f64));
            let mut start = ArchCounter.now();
            while start < due {
                hint::spin_loop();
                start = ArchCounter.now();
            }
            self.link.send(bytes)?;
            self.link.receive(bytes)?;
            let end = ArchCounter.now();
            self.samples.push(end.saturating_sub(due));
            self.from_send.push(end.saturating_sub(start));
        }
        Ok(())
    }

    /// The record of the samples, as half round trips. With a rate, the wait before sending counts whole.
    fn record(&mut self, size_bytes: u32, elapsed_ns: u64) -> Option<SizeRecord> {
        let scale = self.scale;
        let Self { samples, from_send, percentile, .. } = self;
        // An interrupted batch may lack the last of the two.
        samples.truncate(if from_send.is_empty() { samples.len() } else { from_send.len() });
        let half = |ticks: u64| scale.ns(ticks) / 2;
        for (place, sample) in samples.iter_mut().enumerate() {
            *sample = match from_send.get(place) {
                Some(sent) => scale.ns(sample.saturating_sub(*sent)).saturating_add(half(*sent)),
                None => half(*sample),
            };
        }
        for sample in from_send.iter_mut() {
            *sample = half(*sample);
        }
        let mut record = SizeRecord::of(size_bytes, samples, *percentile, elapsed_ns)?;
        record.from_send = Figures::of(from_send, *percentile);
        Some(record)
    }
}

/// Memory for so many samples whose pages are present.
fn touched(count: usize) -> Vec<u64> {
    let mut samples = vec![1; count];
    samples.clear();
    samples
}

/// The nearest whole number of ticks.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, as intended")]
fn ticks(value: f64) -> u64 {
    value.round() as u64
}
