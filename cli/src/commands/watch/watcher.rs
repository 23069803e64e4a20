//! Reads the host at each interval, and drives the threads that compare settings and sample CPUs.

use crate::{
    commands::{pipeline::beside::other_runs, tune::verify},
    exit::Interrupted,
    output,
};
use lowlat_host_run::Root;
use lowlat_jitter::watch::Sampled;
use lowlat_jitter_report::watch::{Settings, Step, Subject, Watch};
use lowlat_jitter_run::jitter::{
    DURATION_MAX, JitterError, JitterOptions,
    watch::{HostWatch, Live, sample},
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver},
    },
    thread::{self, Scope, ScopedJoinHandle},
    time::{Duration, Instant},
};

/// Shortest interval between comparisons of the settings with the plan in force: one reads the whole host.
const SETTINGS_EVERY: Duration = Duration::from_secs(30);
/// Longest time until a raised stop flag is noticed.
const NAP: Duration = Duration::from_millis(100);

pub struct Watcher<'scope, 'env> {
    /// State after the latest interval.
    pub watch: Watch,
    root: &'env Root,
    host: HostWatch<'env>,
    every: Duration,
    due: Instant,
    /// The latest comparison of the settings, until an interval takes it.
    settings: Arc<Mutex<Option<Settings>>>,
    sampler: Option<Sampler<'scope>>,
}

/// The thread that samples CPUs, and what it reports.
struct Sampler<'scope> {
    live: Receiver<Live>,
    thread: ScopedJoinHandle<'scope, Result<Vec<String>, JitterError>>,
}

impl<'scope, 'env: 'scope> Watcher<'scope, 'env> {
    /// Starts the threads, and the first interval.
    pub fn start(
        scope: &'scope Scope<'scope, 'env>,
        root: &'env Root,
        subject: Subject,
        stop: &'env Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        let every = Duration::from_nanos(subject.every_ns);
        let latest = Arc::new(Mutex::new(Some(settings(root))));
        let (mut sampler, mut no_causes) = (None, None);
        if subject.is_sampling {
            // A comparison would return memory to the kernel, which interrupts every sampled CPU.
            let options = JitterOptions {
                worst_count: 1,
                first_count: 1,
                ..JitterOptions::new(subject.cpus.clone(), DURATION_MAX)
            };
            options.check(root)?;
            let (out, live) = mpsc::channel();
            let thread = thread::Builder::new()
                .name("lowlat-sample".to_owned())
                .spawn_scoped(scope, move || sample(root, &options, stop, &out))?;
            // The first interval starts with the samplers.
            match live.recv() {
                Ok(Live::Started(reason)) => no_causes = reason,
                Ok(Live::Interruptions(_)) => {}
                // The user ended the watch before the samplers ran.
                Err(_) => {
                    ended(Sampler { live, thread })?;
                    return Err(Interrupted("starting the samplers".to_owned()).into());
                }
            }
            sampler = Some(Sampler { live, thread });
        } else {
            let latest = Arc::clone(&latest);
            thread::Builder::new().name("lowlat-verify".to_owned()).spawn_scoped(scope, move || {
                // A long interval gets one comparison, shortly before it ends.
                let mut due = Instant::now() + every.saturating_sub(SETTINGS_EVERY).max(SETTINGS_EVERY);
                while nap(due, stop) {
                    let compared = settings(root);
                    *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(compared);
                    due = (due + every.max(SETTINGS_EVERY)).max(Instant::now());
                }
            })?;
        }
        let host = HostWatch::start(root, &subject.cpus, &subject.quiet);
        let mut watch = Watch::new(subject);
        watch.no_causes = no_causes;
        Ok(Self { root, host, watch, every, due: Instant::now() + every, settings: latest, sampler })
    }

    /// Time until the interval ends.
    pub fn left(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Ends the interval, and adds its samples to the watch.
    pub fn step(&mut self) -> anyhow::Result<()> {
        let sampled = self.sampled()?;
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner).take();
        let step = Step {
            at_unix_ms: u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0),
            interval: self.host.interval(),
            sampled,
            settings,
            pipelines: other_runs(self.root),
        };
        self.watch.take(step);
        // A step that comes late does not shorten the next interval.
        self.due = Instant::now() + self.every;
        Ok(())
    }

    /// Interruptions since the last interval; an error if the sampler has ended with one.
    fn sampled(&mut self) -> anyhow::Result<Option<Sampled>> {
        let Some(sampler) = &self.sampler else { return Ok(None) };
        let is_over = sampler.thread.is_finished();
        let mut found = Sampled::default();
        for live in sampler.live.try_iter() {
            if let Live::Interruptions(more) = live {
                found.add(more);
            }
        }
        if is_over && let Some(sampler) = self.sampler.take() {
            ended(sampler)?;
        }
        Ok(Some(found))
    }

    /// Waits for the end of the interval, and takes it. Returns false if the user ended the watch before.
    pub fn wait(&mut self, stop: &AtomicBool) -> anyhow::Result<bool> {
        if !nap(self.due, stop) {
            return Ok(false);
        }
        self.step()?;
        Ok(true)
    }

    /// Ends the sampler, and prints its warnings.
    pub fn finish(mut self, stop: &AtomicBool) -> anyhow::Result<()> {
        // Relaxed: the flag orders nothing; the sampler's results arrive through its join.
        stop.store(true, Ordering::Relaxed);
        self.sampler.take().map_or(Ok(()), ended)
    }
}

fn ended(sampler: Sampler<'_>) -> anyhow::Result<()> {
    match sampler.thread.join() {
        Ok(Ok(warnings)) => {
            for warning in warnings {
                output::talk(&format!("warning: {warning}"));
            }
            Ok(())
        }
        Ok(Err(error)) => Err(error.into()),
        Err(_) => anyhow::bail!("the sampling thread died\nhint: report this as a bug in lowlat"),
    }
}

/// Sleeps until a moment. Returns false if the user ended the watch before.
fn nap(until: Instant, stop: &AtomicBool) -> bool {
    loop {
        // Relaxed: the flag orders nothing.
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(NAP));
    }
}

/// The settings compared with the plan in force.
fn settings(root: &Root) -> Settings {
    match verify::in_force(root) {
        Ok(None) => Settings::NoPlan,
        Ok(Some(verification)) => Settings::Compared(Box::new(verification)),
        Err(error) => {
            let words = format!("{error:#}");
            Settings::Unreadable(words.lines().next().unwrap_or_default().to_owned())
        }
    }
}
