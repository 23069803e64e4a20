//! A companion, which runs beside the samplers and receives each interruption as it happens, and the thread that drives
//! it.

use super::{error::JitterError, ring::Consumer, team::Team};
use crate::clock::{CounterKind, TickScale};
use lowlat_host::CpuId;
use lowlat_jitter::Warning;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, Scope, ScopedJoinHandle},
    time::Duration,
};

/// Interval of polls of the rings.
pub const COLLECT_EVERY: Duration = Duration::from_millis(25);
/// The interval if each poll interrupts a measured CPU.
pub const COLLECT_EVERY_SHARED: Duration = Duration::from_millis(500);

/// A run that is about to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    pub counter: CounterKind,
    /// Conversion of its ticks to nanoseconds.
    pub scale: TickScale,
    /// A gap of at least this long is an interruption.
    pub threshold_ns: u64,
    /// Intended duration of the run.
    pub duration: Duration,
    /// Interval of calls of [`Companion::collect`].
    pub every: Duration,
    /// True if the companion must run on a measured CPU because no other is left: then its work counts as interruptions
    /// there.
    pub is_on_measured_cpu: bool,
}

/// One sampler as a companion sees it.
#[derive(Debug)]
pub struct Lane {
    /// The CPU to which it is pinned.
    pub cpu: CpuId,
    /// Its thread id, as in traces.
    pub thread_id: i32,
    /// Its interruptions: readings of the counter before and after each.
    pub ring: Consumer,
}

/// Takes interruptions from the samplers' rings during a run.
///
/// All calls come from one thread of ordinary priority, "lowlat-collect", on the CPUs that are not measured, if
/// any. Between [`Companion::start`] and [`Companion::finish`] no memory may be returned to the kernel (munmap,
/// mremap, madvise), because that interrupts every CPU with a sampler. The C library's allocator is configured
/// accordingly where possible; explicit mappings must be kept until `finish`.
pub trait Companion: Send {
    /// Called once before the samplers start, which wait for it. Lanes are in order of CPU, here and later.
    fn start(&mut self, started: &Started, lanes: &[Lane]);

    /// Called every [`Started::every`], and once more when all samplers are done; never if none started.
    /// `epoch` is the counter at their start.
    fn collect(&mut self, epoch: u64, lanes: &mut [Lane]);

    /// Called once after all samplers are done; the rings' counts of losses are then exact.
    fn finish(&mut self, lanes: &[Lane]);
}

pub struct Collector<'scope> {
    is_over: Arc<AtomicBool>,
    thread: ScopedJoinHandle<'scope, ()>,
}

impl<'scope> Collector<'scope> {
    /// Starts it on the CPUs that the calling thread may use, and waits until the companion is ready.
    ///
    /// # Errors
    /// [`JitterError::Collector`] if the thread cannot be started.
    pub fn start(
        scope: &'scope Scope<'scope, '_>,
        team: &'scope Team,
        companion: &'scope mut (dyn Companion + 'scope),
        started: Started,
        mut lanes: Vec<Lane>,
    ) -> Result<Self, JitterError> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::channel();
        let over = Arc::clone(&is_over);
        let thread = thread::Builder::new()
            .name("lowlat-collect".into())
            .spawn_scoped(scope, move || {
                companion.start(&started, &lanes);
                let _ = ready.send(());
                loop {
                    // Acquire: pairs with the Release store in `finish`, so the last poll sees everything
                    // before it.
                    let was_over = over.load(Ordering::Acquire);
                    if let Some(epoch) = team.epoch() {
                        companion.collect(epoch, &mut lanes);
                    }
                    if was_over {
                        break;
                    }
                    thread::park_timeout(started.every);
                }
                companion.finish(&lanes);
            })
            .map_err(|source| JitterError::Collector { source })?;
        // `finish` reports that it died; the samplers' results are kept.
        let _ = is_ready.recv();
        Ok(Self { is_over, thread })
    }

    /// Ends it once all samplers are done: they were polled a last time and the companion has finished.
    ///
    /// # Errors
    /// [`Warning::CollectorDied`].
    pub fn finish(self) -> Result<(), Warning> {
        // Release: pairs with the Acquire load of the thread.
        self.is_over.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread.join().map_err(|_| Warning::CollectorDied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::ring;

    const STARTED: Started = Started {
        counter: CounterKind::Tsc,
        scale: TickScale::NANOSECONDS,
        threshold_ns: 100,
        duration: Duration::from_secs(1),
        every: Duration::from_millis(1),
        is_on_measured_cpu: false,
    };

    #[derive(Default)]
    struct Recorded {
        started: usize,
        polls: usize,
        got: Vec<u64>,
        epoch: u64,
        finished_with: Option<u64>,
        dies: bool,
    }

    impl Companion for Recorded {
        fn start(&mut self, _: &Started, lanes: &[Lane]) {
            self.started += lanes.len();
        }

        fn collect(&mut self, epoch: u64, lanes: &mut [Lane]) {
            assert!(!self.dies, "on purpose");
            self.polls += 1;
            self.epoch = epoch;
            for lane in lanes {
                lane.ring.drain(|before, _| self.got.push(before));
            }
        }

        fn finish(&mut self, lanes: &[Lane]) {
            self.finished_with = Some(lanes.iter().map(|lane| lane.ring.lost_count()).sum());
        }
    }

    fn collect(team: &Team, seen: &mut Recorded, push: u64) -> Result<(), Warning> {
        let (mut producer, ring) = ring(4);
        thread::scope(|scope| {
            let lanes = vec![Lane { cpu: 3, thread_id: 1, ring }];
            let collector = Collector::start(scope, team, seen, STARTED, lanes).unwrap();
            for n in 0..push {
                producer.push(n, n + 1);
            }
            collector.finish()
        })
    }

    #[test]
    fn the_rings_are_read_once_more_after_the_end() {
        let team = Team::new(1);
        team.open(1);
        assert_eq!(team.begin_together(|| 77), Some(77));
        let mut seen = Recorded::default();
        assert_eq!(collect(&team, &mut seen, 3), Ok(()));
        assert_eq!((seen.started, seen.got, seen.epoch), (1, vec![0, 1, 2], 77));
        assert_eq!(seen.finished_with, Some(0));
    }

    #[test]
    fn nothing_is_collected_from_a_run_that_never_started() {
        let mut seen = Recorded::default();
        assert_eq!(collect(&Team::new(1), &mut seen, 0), Ok(()));
        assert_eq!((seen.started, seen.polls, seen.finished_with), (1, 0, Some(0)));
    }

    #[test]
    fn a_dead_collector_is_reported() {
        let team = Team::new(1);
        team.begin_together(|| 5);
        let told = collect(&team, &mut Recorded { dies: true, ..Recorded::default() }, 1).unwrap_err();
        assert_eq!(told, Warning::CollectorDied);
    }
}
