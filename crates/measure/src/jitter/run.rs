//! A run: the samplers started together, watched, and their records put together.

use super::{
    calibrate::{Calibration, calibrate, default_threshold_ns},
    live::Live,
    memory::Locked,
    options::{JitterError, JitterOptions, KEPT_MAX},
    progress::JitterProgress,
    record::{Before, assemble},
    recorder::Recorder,
    sampler::{Plan, sample},
    series::SeriesPlan,
    team::{Done, Message, Place, Start, Team},
};
use crate::{
    affinity,
    clock::{self, ArchCounter, Counter, MonotonicRaw, TickScale},
};
use lowlat_model::{CpuId, CpuSet, jitter::JitterRecord};
use lowlat_sys::Root;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::{self, Scope},
    time::{Duration, Instant},
};

/// Between two calls of the progress function when the main thread has a CPU that is not measured.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// The same when it must wake up on a measured CPU.
const PROGRESS_EVERY_SHARED: Duration = Duration::from_secs(1);
/// Stack of a sampler: it calls little, and locked memory is dear.
const STACK_BYTES: usize = 512 << 10;
/// Interruptions of a recording shorter than this can't be told from a recording with cold caches.
const RECORDING_SLACK_NS: u64 = 1_000;

/// Measures the time that is taken from user threads on each of the CPUs.
///
/// Raising `stop` ends the run within a tenth of a second with what was measured until then. The samplers read the
/// flag itself, so nothing that is written during the run should lie in its cache line. `progress` is called from
/// this thread, which runs beside the measured CPUs when its affinity leaves it one.
///
/// # Errors
/// [`JitterError`] when the run can't be made; nothing was measured then.
pub fn run(
    root: &Root,
    options: &JitterOptions,
    stop: &AtomicBool,
    progress: &(dyn Fn(&JitterProgress) + Sync),
) -> Result<JitterRecord, JitterError> {
    options.check(root)?;
    let (kind, doubts) = clock::choose(root);
    let frequency = clock::frequency_of(kind, root)?;
    let run = Run { root, options, stop, progress, scale: TickScale::new(frequency.hz) };
    let before = Before::read(root, kind, frequency, doubts);
    // On x86-64 and aarch64 the two differ; elsewhere the counter of the processor is the kernel's clock.
    if kind == ArchCounter::KIND { run.with(ArchCounter, before) } else { run.with(MonotonicRaw, before) }
}

struct Run<'a> {
    root: &'a Root,
    options: &'a JitterOptions,
    stop: &'a AtomicBool,
    progress: &'a (dyn Fn(&JitterProgress) + Sync),
    scale: TickScale,
}

/// The samplers that are ready, by CPU.
type Ready = BTreeMap<CpuId, (Calibration, Arc<Live>)>;

impl Run<'_> {
    fn with<C: Counter + Copy + Send>(
        &self,
        counter: C,
        mut before: Before,
    ) -> Result<JitterRecord, JitterError> {
        let aside = Aside::step(&self.options.cpus);
        if aside.is_none() {
            before.warnings.push(
                "Every CPU that this process may use was measured, so its own main thread ran on one of them once \
                 a second; that counts as an interruption there."
                    .to_owned(),
            );
        }
        let team = Team::new(self.options.cpus.len());
        let (sender, messages) = mpsc::channel();
        let every = if aside.is_some() { PROGRESS_EVERY } else { PROGRESS_EVERY_SHARED };
        thread::scope(|scope| {
            let ready = self.start_all(scope, &team, counter, &sender, &messages);
            drop(sender);
            let ready = ready.inspect_err(|_| team.abandon())?;
            let calibrations: Vec<Calibration> =
                ready.values().map(|(calibration, _)| *calibration).collect();
            let threshold_ns =
                self.options.threshold_ns.unwrap_or_else(|| default_threshold_ns(&calibrations));
            let locked = Locked::new().map_err(|warning| before.warnings.push(warning));
            team.open(Start { threshold_ticks: self.scale.ticks(threshold_ns) });
            let done = self.watch(&messages, &ready, every, &team);
            drop(locked);
            Ok(assemble(self.root, self.options, threshold_ns, team.epoch(), before, done))
        })
    }

    /// Starts one sampler per CPU and waits until all have calibrated.
    fn start_all<'scope, C: Counter + Copy + Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        team: &'scope Team,
        counter: C,
        sender: &mpsc::Sender<Message>,
        messages: &Receiver<Message>,
    ) -> Result<Ready, JitterError> {
        for cpu in self.options.cpus.iter() {
            let place = Place { team, cpu, sender: sender.clone() };
            thread::Builder::new()
                .name(format!("lowlat/{cpu}"))
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || self.sampler(&place, &counter))
                .map_err(|source| JitterError::Thread { cpu, source })?;
        }
        let mut ready = Ready::new();
        while ready.len() < self.options.cpus.len() {
            match messages.recv() {
                Ok(Message::Ready(cpu, calibration, live)) => {
                    ready.insert(cpu, (calibration, live));
                }
                Ok(Message::Failed(cpu, source)) => return Err(JitterError::Pin { cpu, source }),
                Ok(Message::Died(cpu)) => return Err(JitterError::Died { cpu }),
                // Neither can be: no gate is open yet, and `sender` is still held.
                Ok(Message::Done(_)) | Err(_) => break,
            }
        }
        Ok(ready)
    }

    /// The life of one sampler.
    fn sampler<C: Counter>(&self, place: &Place<'_>, counter: &C) {
        let cpu = place.cpu;
        if let Err(error) = affinity::pin_to(&CpuSet::of(cpu)) {
            place.tell(Message::Failed(cpu, error));
            return;
        }
        // Allocated and touched from here on, so on this CPU's node.
        let live = Arc::new(Live::default());
        let series = SeriesPlan::of(self.options.duration);
        let (worst, first) = (self.options.worst_count.min(KEPT_MAX), self.options.first_count.min(KEPT_MAX));
        let mut recorder = Recorder::new(self.scale, series, worst, first);
        let calibration = calibrate(counter, &mut recorder, self.scale);
        place.tell(Message::Ready(cpu, calibration, Arc::clone(&live)));

        let Some(start) = place.team.wait_at_gate() else { return };
        let Some(epoch) = place.team.begin_together(|| counter.now()) else { return };
        recorder.begin(epoch);
        let plan = Plan {
            cpu,
            threshold_ticks: start.threshold_ticks,
            duration_ticks: self
                .scale
                .ticks(u64::try_from(self.options.duration.as_nanos()).unwrap_or(u64::MAX)),
            recording_ticks: calibration.recording_ticks,
            slack_ticks: self.scale.ticks(RECORDING_SLACK_NS).max(start.threshold_ticks),
        };
        let outcome = sample(counter, &plan, &mut recorder, &live, self.stop);
        place.finish_and_line_up();
        place.tell(Message::Done(Box::new(Done { cpu, calibration, outcome, recorder })));
    }

    /// Sleeps until all samplers are done, showing the progress meanwhile.
    fn watch(&self, messages: &Receiver<Message>, ready: &Ready, every: Duration, team: &Team) -> Vec<Done> {
        let lines: Vec<(CpuId, Arc<Live>)> =
            ready.iter().map(|(cpu, (_, live))| (*cpu, Arc::clone(live))).collect();
        let mut shown = JitterProgress::of(&lines, self.options.duration);
        let mut done = Vec::with_capacity(lines.len());
        let began = Instant::now();
        let mut left = lines.len();
        while left > 0 {
            match messages.recv_timeout(every) {
                Ok(Message::Done(one)) => {
                    done.push(*one);
                    left -= 1;
                }
                Ok(Message::Died(_)) => {
                    // Those that still wait for it at the line would do so for ever.
                    team.abandon();
                    left -= 1;
                }
                Ok(Message::Ready(..) | Message::Failed(..)) => {}
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

/// The calling thread kept off the measured CPUs while this lives.
struct Aside {
    was: CpuSet,
}

impl Aside {
    /// `None` when there is no other CPU to step on, or the kernel does not let it.
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
