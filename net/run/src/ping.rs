//! The client's side of a run: times round trips.

mod stamped;

use super::{
    control::{Control, ControlError, unexpected},
    link::{Ended, Link, Side, Strays},
    parts::{PartsRun, Thread},
    pong::{Batch, CpuTimer},
};
use lowlat_host_run::{Root, control_group::Throttled};
use lowlat_jitter_run::clock::{ArchCounter, MonotonicCounter, TickScale};
use lowlat_net::{
    pingpong::{CpuUse, Figures, IrqSuspend, Scenario, SizeRecord, protocol::Message},
    whole,
};
use std::{
    hint,
    time::{Duration, Instant},
};
use thiserror::Error;

/// Longest wait for the server between batches. A refused message on its way takes no longer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Round trips of a batch of the warm-up.
const WARM_UP_BATCH: u64 = 200;
/// Messages of one size that may be lost.
pub const LOSSES_MAX: u64 = 20;
/// Sizes after the first are warmed up for this part of the time.
const WARM_UP_PART: u64 = 10;
/// Turns per second of the loop that waits until a message is due, at least: a turn takes no longer than 20 us.
const TURNS_PER_S_MIN: u64 = 50_000;
const NS_PER_MS: u64 = 1_000_000;

/// Error that ended a run early.
#[derive(Debug, Error)]
pub enum PingError {
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Data(#[from] Ended),
    #[error("more than {LOSSES_MAX} messages were lost")]
    Losses,
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
    /// Records keep the samples in the order of sending.
    pub keeps_samples: bool,
    /// The server's queue, as it last reported.
    server_napi_id: Option<u32>,
    /// Suspension of the interrupts of that queue, as the server last reported.
    pub server_irq_suspend: Option<IrqSuspend>,
    /// CPU time that this thread used in the batches of the current size.
    client_cpu: CpuUse,
    /// CPU time that the server's thread used, if it reports that.
    server_cpu: Option<CpuUse>,
    /// Messages of the current size that were lost.
    lost: u64,
    /// Messages of the current size that came late or again, at either end.
    strays: Strays,
    /// Time for which the server was throttled in the current size.
    server_throttled_ns: u64,
    /// Ticks in which the current batch has spun until messages were due.
    paced: u64,
    /// Ticks of the longest turn of that loop on a CPU.
    turn_max: u64,
    /// The server's thread, as it last reported.
    server: Thread,
    /// Splits round trips into parts, if the scenario asks for it.
    pub parts: Option<PartsRun<'a>>,
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
        Self {
            control,
            link,
            scenario,
            scale,
            percentile,
            batch,
            samples,
            from_send,
            keeps_samples: false,
            server_napi_id: None,
            server_irq_suspend: None,
            client_cpu: CpuUse::default(),
            server_cpu: None,
            lost: 0,
            strays: Strays::default(),
            server_throttled_ns: 0,
            paced: 0,
            turn_max: scale.hz() / TURNS_PER_S_MIN,
            server: Thread::default(),
            parts: None,
        }
    }

    /// Ids of the queues that delivered messages: the client's, the server's.
    pub fn napi_ids(&self) -> [Option<u32>; 2] {
        [self.link.napi_id(), self.server_napi_id]
    }

    /// Measures a size. A run that ends early returns what it measured, with the error.
    pub fn measure(
        &mut self,
        size_bytes: u32,
        is_first: bool,
    ) -> (Option<SizeRecord>, Result<(), PingError>) {
        self.samples.clear();
        self.from_send.clear();
        (self.lost, self.strays, self.server_throttled_ns) = (0, Strays::default(), 0);
        let throttled = Throttled::read(&Root::live());
        let start = Instant::now();
        let result = self.warm_up(size_bytes, is_first).and_then(|()| {
            self.samples.clear();
            self.from_send.clear();
            (self.client_cpu, self.server_cpu) = (CpuUse::default(), None);
            self.begin_parts();
            self.batches(size_bytes)
        });
        let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let parts = self.parts.as_mut().map(PartsRun::end_size);
        let mut record = self.record(size_bytes, elapsed_ns);
        if let Some(record) = &mut record {
            self.strays.add(self.link.take_strays());
            record.lost_count = self.lost;
            (record.late_count, record.duplicate_count) = (self.strays.late, self.strays.repeated);
            record.throttled_ns =
                [throttled.elapsed_ns(&Root::live()).into_known().unwrap_or(0), self.server_throttled_ns];
        }
        if let Some((record, mut parts)) = record.as_mut().zip(parts) {
            let figures = record.from_send.as_ref().unwrap_or(&record.figures);
            parts.plain_median_ns = figures.median_ns.saturating_mul(2);
            record.parts = Some(parts);
        }
        (record, result)
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
        // The time that losses take does not count.
        let (lost_before, lost_ns) = (self.lost, self.scenario.timeout_ms.saturating_mul(NS_PER_MS));
        // Rounds with time stamps alternate with rounds without, so that whatever happens to the host happens to both.
        let stamped = self.parts.as_ref().map(|_| PartsRun::batch_count(self.scenario.rate_per_s));
        let mut next = iterations_min.min(iterations_max).min(stamped.unwrap_or(u64::MAX));
        loop {
            self.run_batch(size_bytes, next)?;
            if stamped.is_some() {
                self.run_stamped_batch(size_bytes, next)?;
            }
            let done = self.samples.len() as u64;
            let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let elapsed_ns = elapsed_ns.saturating_sub((self.lost - lost_before) * lost_ns);
            let left = iterations_max.saturating_sub(done);
            if left == 0 || (elapsed_ns >= time_ns && done >= iterations_min) {
                return Ok(());
            }
            if let Some(stamped) = stamped {
                next = stamped.min(left);
                continue;
            }
            // As many as fit into the time at the pace so far, but no more than there are already: a pause of the host
            // in an early batch must not decide the length of the last.
            let per_round_trip_ns = (elapsed_ns / done.max(1)).max(1);
            let fitting = time_ns.saturating_sub(elapsed_ns) / per_round_trip_ns;
            next = fitting.clamp(1, done.max(1)).min(left);
        }
    }

    /// Announces a batch, runs it, and waits until the server has finished it. One round trip more than counted goes
    /// first: both ends have slept until then.
    fn run_batch(&mut self, size_bytes: u32, count: u64) -> Result<(), PingError> {
        self.announce(size_bytes, count, false)?;
        let bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let batch = self.batch;
        self.paced = 0;
        let clock = CpuTimer::start();
        let passed = batch.during(size_bytes, || {
            self.link.send(bytes)?;
            self.link.receive(bytes)?;
            match self.scenario.rate_per_s {
                None => self.closed_loop(bytes, count),
                Some(rate) => self.scheduled(bytes, count, rate),
            }
        });
        if self.has_lost(passed)? {
            return self.done_late();
        }
        let mut used = clock.used();
        used.cpu_ns = used.cpu_ns.saturating_sub(self.scale.ns(self.paced));
        self.client_cpu.add(used);
        self.done()
    }

    /// Counts a loss, which has ended a batch at both ends.
    fn has_lost(&mut self, passed: Result<(), Ended>) -> Result<bool, PingError> {
        match passed {
            Err(Ended::Lost) if self.lost >= LOSSES_MAX => Err(PingError::Losses),
            Err(Ended::Lost) => {
                self.lost += 1;
                self.link.note_given_up();
                Ok(true)
            }
            passed => Ok(passed.map(|()| false)?),
        }
    }

    /// Ends a batch with a loss, and discards messages that came too late.
    fn done_late(&mut self) -> Result<(), PingError> {
        self.done()?;
        self.link.drain();
        Ok(())
    }

    fn announce(&mut self, size_bytes: u32, count: u64, is_stamped: bool) -> Result<(), PingError> {
        let first = self.link.next_number();
        self.control.send(&Message::Batch { size_bytes, count: count + 1, first, is_stamped })?;
        match self.control.receive(ANSWER_TIME_MAX)? {
            Message::Ready { thread_id: id, incoming_cpu } => {
                self.server = Thread { id, incoming_cpu, ..Thread::default() };
                self.link.begin(Side::Client, first);
                Ok(())
            }
            other => Err(unexpected(&other).into()),
        }
    }

    fn done(&mut self) -> Result<(), PingError> {
        match self.control.receive(ANSWER_TIME_MAX)? {
            Message::Done { napi_id, irq_suspend, cpu, strays: [late, repeated], throttled_ns } => {
                self.strays.add(Strays { late, repeated });
                self.server_throttled_ns = self.server_throttled_ns.saturating_add(throttled_ns);
                (self.server_napi_id, self.server_irq_suspend) = (napi_id, irq_suspend);
                if let Some(cpu) = cpu {
                    self.server_cpu.get_or_insert_default().add(cpu);
                }
            }
            other => return Err(unexpected(&other).into()),
        }
        Ok(())
    }

    /// Sends each message as soon as the previous answer has arrived.
    fn closed_loop(&mut self, bytes: usize, count: u64) -> Result<(), Ended> {
        for _ in 0..count {
            self.link.clear(bytes);
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
            let due = first.wrapping_add(whole(interval * (place + 1) as f64));
            self.link.clear(bytes);
            let start = self.wait_until(due);
            self.link.send(bytes)?;
            self.link.receive(bytes)?;
            let end = ArchCounter.now();
            self.samples.push(end.saturating_sub(due));
            self.from_send.push(end.saturating_sub(start));
        }
        Ok(())
    }

    /// Spins until a message is due. Returns the time of its sending, and counts the spinning.
    fn wait_until(&mut self, due: u64) -> u64 {
        let mut now = ArchCounter.now();
        while now < due {
            hint::spin_loop();
            let next = ArchCounter.now();
            let turn = next.saturating_sub(now);
            // A longer turn: the thread was off its CPU, and used no CPU time.
            if turn < self.turn_max {
                self.paced += turn;
            }
            now = next;
        }
        now
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
        let samples_ns = if self.keeps_samples { samples.clone() } else { Vec::new() };
        let mut record = SizeRecord::of(size_bytes, samples, *percentile, elapsed_ns)?;
        record.samples_ns = samples_ns;
        record.from_send = Figures::of(from_send, *percentile);
        (record.client_cpu, record.server_cpu) = (Some(self.client_cpu), self.server_cpu);
        Some(record)
    }
}

/// Memory for so many samples whose pages are present.
fn touched(count: usize) -> Vec<u64> {
    let mut samples = vec![1; count];
    samples.clear();
    samples
}
