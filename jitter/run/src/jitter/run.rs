//! A run: starts the samplers together, watches them, and combines their records.

use super::{
    calibrate::{Calibration, calibrate, default_threshold_ns},
    collector::{COLLECT_EVERY, COLLECT_EVERY_SHARED, Collector, Companion, Lane, Started},
    error::JitterError,
    memory::{self, Locked},
    options::{JitterOptions, KEPT_MAX},
    progress::{JitterProgress, Live},
    real_time::{self, TimeLimit},
    record::{Before, assemble},
    recorder::CpuRecorder,
    ring::{Consumer, Producer, capacity_for, ring},
    sampler::{Plan, sample},
    series::SeriesPlan,
    team::{Done, Message, Place, Ready, Team},
    wakes,
};
use crate::clock::{self, ArchCounter, CounterKind, MonotonicCounter, MonotonicRaw, TickScale};
use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::affinity;
use lowlat_host_run::{Root, scheduling::release_threads};
use lowlat_jitter::{JitterRecord, Warning};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::{self, Scope},
    time::{Duration, Instant},
};

/// Timeout of the samplers' start, which takes some milliseconds: if it expires, a CPU has no time for them.
const START_MAX: Duration = Duration::from_secs(10);
/// Longest time that the samplers may take to end after the end of the run.
const END_MAX: Duration = Duration::from_secs(3);
/// Interval of checks of the stop flag before the run.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Start of the names of the samplers' threads.
const NAME: &str = "lowlat/";
/// Interval of the progress function if the main thread has a CPU that is not measured.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// The interval if it must wake up on a measured CPU.
const PROGRESS_EVERY_SHARED: Duration = Duration::from_secs(1);
/// Stack of a sampler: it needs little, and locked memory is scarce.
const STACK_BYTES: usize = 512 << 10;
/// Shorter interruptions of a recording cannot be distinguished from a recording with cold caches.
const RECORDING_SLACK_NS: u64 = 1_000;

/// Measures the time taken from user threads on each of the CPUs. A companion receives each interruption.
///
/// Raising `stop` ends the run within a tenth of a second with the results so far. The samplers read the flag
/// itself, so nothing that is written during the run should share its cache line. `progress` is called from
/// this thread, which runs off the measured CPUs if its affinity permits.
///
/// # Errors
/// [`JitterError`] if the run is impossible; nothing was measured then. The companion may have been started and finished
/// by then, without having collected anything.
pub fn run<'a>(
    root: &'a Root,
    options: &'a JitterOptions,
    stop: &'a AtomicBool,
    progress: &'a (dyn Fn(&JitterProgress) + Sync),
    companion: Option<&'a mut (dyn Companion + 'a)>,
) -> Result<JitterRecord, JitterError> {
    options.check(root)?;
    let (kind, mut warnings) = clock::choose(root);
    let frequency = clock::frequency_of(kind, root)?;
    if let Some(real_time) = options.real_time {
        warnings.extend(real_time.warnings(root, &options.cpus));
    }
    let ring_capacity = companion.as_ref().map(|_| capacity_for(options.cpus.len()));
    let run = Run { root, options, stop, progress, kind, scale: TickScale::new(frequency.hz), ring_capacity };
    let before = Before::read(root, kind, frequency, warnings);
    // On x86-64 and aarch64 the two differ; elsewhere the processor's counter is the kernel's clock.
    if kind == ArchCounter::KIND {
        run.with(ArchCounter, before, companion)
    } else {
        run.with(MonotonicRaw, before, companion)
    }
}

struct Run<'a> {
    root: &'a Root,
    options: &'a JitterOptions,
    stop: &'a AtomicBool,
    progress: &'a (dyn Fn(&JitterProgress) + Sync),
    kind: CounterKind,
    scale: TickScale,
    /// Entries of each sampler's ring; `None` without a reader.
    ring_capacity: Option<usize>,
}

impl<'a> Run<'a> {
    fn with<C: MonotonicCounter + Copy + Send>(
        &self,
        counter: C,
        mut before: Before,
        companion: Option<&'a mut (dyn Companion + 'a)>,
    ) -> Result<JitterRecord, JitterError> {
        let aside = Aside::step(&self.options.cpus);
        before.warnings.extend(self.shared_cpu(aside.as_ref())?);
        let limit = self.options.real_time.map(|_| TimeLimit::set(self.options.duration)).transpose()?;
        memory::map_large_blocks();
        let team = Team::new(self.options.cpus.len());
        let (sender, messages) = mpsc::channel();
        let every = if aside.is_some() { PROGRESS_EVERY } else { PROGRESS_EVERY_SHARED };
        thread::scope(|scope| {
            let ready = self.start_all(scope, &team, counter, &sender, &messages);
            drop(sender);
            let mut ready = ready.inspect_err(|_| {
                team.abandon();
                release_threads(NAME);
            })?;
            let calibrations: Vec<Calibration> = ready.iter().map(|one| one.calibration).collect();
            let threshold_ns =
                self.options.threshold_ns.unwrap_or_else(|| default_threshold_ns(&calibrations));
            let threshold_ns = threshold_ns.min(self.options.stop_on_ns.unwrap_or(u64::MAX));
            let is_spinning = self.options.wake_every.is_none();
            // Every wake-up counts.
            let threshold_ns = if is_spinning { threshold_ns } else { 1 };
            let mut periods = calibrations.iter().map(|one| one.period_ns).filter(|_| is_spinning);
            if let Some(period_ns) = periods.find(|ns| *ns >= threshold_ns as f64) {
                team.abandon();
                release_threads(NAME);
                let default_ns = default_threshold_ns(&calibrations);
                return Err(JitterError::ThresholdInLoop { threshold_ns, period_ns, default_ns });
            }
            memory::keep_memory();
            let collector = companion
                .map(|companion| {
                    let is_on_measured_cpu = aside.is_none();
                    let started = Started {
                        counter: self.kind,
                        scale: self.scale,
                        threshold_ns,
                        duration: self.options.duration,
                        every: if is_on_measured_cpu { COLLECT_EVERY_SHARED } else { COLLECT_EVERY },
                        is_on_measured_cpu,
                    };
                    Collector::start(scope, &team, companion, started, lanes(&mut ready))
                })
                .transpose()
                .inspect_err(|_| team.abandon())?;
            let locked = Locked::new().map_err(|warning| before.warnings.push(warning));
            team.open(self.scale.ticks(threshold_ns));
            let done = self.watch(&messages, &ready, every, &team);
            if let Some(Err(warning)) = collector.map(Collector::finish) {
                before.warnings.push(warning);
            }
            drop((locked, limit));
            Ok(assemble(self.root, self.options, threshold_ns, team.epoch(), before, done))
        })
    }

    /// Effects of having no unmeasured CPU for lowlat's other threads.
    fn shared_cpu(&self, aside: Option<&Aside>) -> Result<Option<Warning>, JitterError> {
        match (aside, self.options.real_time, self.ring_capacity) {
            (Some(_), ..) => Ok(None),
            // Already checked with the options, unless the affinity has changed since.
            (None, Some(_), _) => Err(JitterError::RealTimeEverywhere {
                cpus: self.options.cpus.clone(),
                allowed: affinity::current()?,
            }),
            (None, None, ring) => Ok(Some(Warning::NoCpuLeft { has_collector: ring.is_some() })),
        }
    }

    /// Starts one sampler per CPU and waits until all have calibrated. Returns them in order of CPU.
    fn start_all<'scope, C: MonotonicCounter + Copy + Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        team: &'scope Team,
        counter: C,
        sender: &mpsc::Sender<Message>,
        messages: &Receiver<Message>,
    ) -> Result<Vec<Ready>, JitterError> {
        for cpu in self.options.cpus.iter() {
            let place = Place { team, cpu, sender: sender.clone() };
            thread::Builder::new()
                .name(format!("{NAME}{cpu}"))
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || self.sampler(&place, &counter))
                .map_err(|source| JitterError::Thread { cpu, source })?;
        }
        let began = Instant::now();
        let mut ready = BTreeMap::new();
        while ready.len() < self.options.cpus.len() {
            match messages.recv_timeout(LOOK_EVERY) {
                Ok(Message::Ready(one)) => {
                    ready.insert(one.cpu, *one);
                }
                Ok(Message::Failed(error)) => return Err(error),
                Ok(Message::Died(cpu)) => return Err(JitterError::Died { cpu }),
                // Relaxed: the flag orders nothing.
                Err(RecvTimeoutError::Timeout)
                    if began.elapsed() > START_MAX || self.stop.load(Ordering::Relaxed) =>
                {
                    let cpus = self.options.cpus.iter().filter(|cpu| !ready.contains_key(cpu)).collect();
                    return Err(JitterError::Busy { cpus, within: began.elapsed() });
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Neither can happen: no gate is open yet, and `sender` is still held.
                Ok(Message::Done(_)) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(ready.into_values().collect())
    }

    /// The thread of one sampler.
    fn sampler<C: MonotonicCounter>(&self, place: &Place<'_>, counter: &C) {
        let cpu = place.cpu;
        if let Err(source) = affinity::pin_to(&CpuSet::of(cpu)) {
            place.tell(Message::Failed(JitterError::Pin { cpu, source }));
            return;
        }
        // Allocated and touched from here on, so on this CPU's node.
        let live = Arc::new(Live::default());
        let ticks = |time: Duration| self.scale.ticks(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let (mut recorder, mut events) = self.recorder();
        let calibration = calibrate(counter, &mut recorder, self.scale);
        if let Some(events) = &mut events {
            events.forget();
        }
        if let Some(real_time) = self.options.real_time
            && let Err(source) = real_time.take()
        {
            place.tell(Message::Failed(JitterError::RealTime { cpu, real_time, source }));
            return;
        }
        let thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let ready = Ready { cpu, thread_id, calibration, live: Arc::clone(&live), ring: events };
        place.tell(Message::Ready(Box::new(ready)));

        let Some(threshold_ticks) = place.team.wait_at_gate() else { return };
        let Some(epoch) = place.team.begin_together(|| counter.now()) else { return };
        recorder.begin(epoch);
        let plan = Plan {
            cpu,
            threshold_ticks,
            duration_ticks: ticks(self.options.duration),
            recording_ticks: calibration.recording_ticks,
            slack_ticks: self.scale.ticks(RECORDING_SLACK_NS).max(threshold_ticks),
        };
        let outcome = match self.options.wake_every {
            None => sample(counter, &plan, &mut recorder, &live, self.stop),
            Some(every) => {
                let plan = (&plan, ticks(every).max(1), self.scale);
                wakes::sample(counter, plan, &mut recorder, &live, self.stop)
            }
        };
        if self.options.real_time.is_some() {
            real_time::give_up();
        }
        place.finish_and_line_up();
        place.tell(Message::Done(Box::new(Done { cpu, calibration, outcome, recorder })));
    }

    /// The memory of one sampler, and the other end of its ring if it has a reader.
    fn recorder(&self) -> (CpuRecorder, Option<Consumer>) {
        let series = SeriesPlan::of(self.options.duration, self.options.cpus.len());
        let (worst, first) = (self.options.worst_count.min(KEPT_MAX), self.options.first_count.min(KEPT_MAX));
        let (producer, consumer): (Option<Producer>, Option<Consumer>) = self.ring_capacity.map(ring).unzip();
        (CpuRecorder::new(self.scale, series, worst, first).with_ring(producer), consumer)
    }

    /// Sleeps until all samplers are done, and reports the progress meanwhile.
    fn watch(
        &self,
        messages: &Receiver<Message>,
        ready: &[Ready],
        every: Duration,
        team: &Team,
    ) -> Vec<Done> {
        let lines: Vec<(CpuId, Arc<Live>)> =
            ready.iter().map(|one| (one.cpu, Arc::clone(&one.live))).collect();
        let mut shown = JitterProgress::of(&lines, self.options.duration);
        let mut done = Vec::with_capacity(lines.len());
        let began = Instant::now();
        let mut end = began + self.options.duration + END_MAX;
        let (mut is_stopped, mut is_over) = (false, false);
        let mut left = lines.len();
        while left > 0 {
            // Relaxed: the flag orders nothing.
            if !is_stopped && self.stop.load(Ordering::Relaxed) {
                (is_stopped, end) = (true, Instant::now() + END_MAX);
            }
            if !is_over && Instant::now() > end {
                // A CPU has no time for its sampler: the sampler is moved to another CPU, and the others do not wait
                // for it.
                is_over = true;
                team.abandon();
                release_threads(NAME);
            }
            match messages.recv_timeout(every) {
                Ok(Message::Done(one)) => {
                    done.push(*one);
                    left -= 1;
                }
                Ok(Message::Died(_)) => {
                    // Samplers that still wait for it at the end would wait forever.
                    team.abandon();
                    left -= 1;
                }
                Ok(Message::Ready(_) | Message::Failed(_)) => {}
                Err(RecvTimeoutError::Timeout) => {
                    shown.update(&lines, self.scale, began.elapsed());
                    (self.progress)(&shown);
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        shown.update(&lines, self.scale, began.elapsed());
        (self.progress)(&shown);
        done.sort_unstable_by_key(|one| one.cpu);
        done
    }
}

/// The samplers as seen by a companion.
fn lanes(ready: &mut [Ready]) -> Vec<Lane> {
    let lane =
        |one: &mut Ready| one.ring.take().map(|ring| Lane { cpu: one.cpu, thread_id: one.thread_id, ring });
    ready.iter_mut().filter_map(lane).collect()
}

/// Keeps the calling thread off the measured CPUs while this lives.
struct Aside {
    was: CpuSet,
}

impl Aside {
    /// `None` if there is no other CPU, or the kernel does not permit it.
    fn step(measured: &CpuSet) -> Option<Self> {
        let was = affinity::current().ok()?;
        let rest = was.difference(measured);
        if rest.is_empty() {
            return None;
        }
        affinity::pin_to(&rest).ok()?;
        Some(Self { was })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // Best effort: CPUs may have gone offline since.
        let _ = affinity::pin_to(&self.was);
    }
}
