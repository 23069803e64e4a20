//! State shared by the samplers of a run: the gate at which they start together and the barrier at the end.

use super::{
    calibrate::Calibration, error::JitterError, progress::Live, recorder::CpuRecorder, ring::Consumer,
    sampler::Outcome,
};
use lowlat_host::CpuId;
use std::{
    hint::spin_loop,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::Sender,
    },
    thread,
    time::{Duration, Instant},
};

/// Time that a finished sampler waits for the others without yielding its CPU.
const LINE_UP_SPIN: Duration = Duration::from_millis(20);
/// Interval of polls after that.
const LINE_UP_NAP: Duration = Duration::from_millis(1);

/// Messages of a sampler to the main thread.
pub enum Message {
    /// It is pinned, has its memory and has calibrated.
    Ready(Box<Ready>),
    /// It cannot run as required.
    Failed(JitterError),
    Died(CpuId),
    Done(Box<Done>),
}

/// A sampler that waits at the gate.
pub struct Ready {
    pub cpu: CpuId,
    pub thread_id: i32,
    pub calibration: Calibration,
    pub live: Arc<Live>,
    /// Its interruptions, if they have a reader.
    pub ring: Option<Consumer>,
}

pub struct Done {
    pub cpu: CpuId,
    pub calibration: Calibration,
    pub outcome: Outcome,
    pub recorder: CpuRecorder,
}

#[derive(Debug, Clone, Copy)]
enum SamplerGate {
    Closed,
    /// With the threshold of the run.
    Open(u64),
    Abandoned,
}

/// Shared by the samplers of one run. None of it is accessed while they sample.
#[derive(Debug)]
pub struct Team {
    gate: Mutex<SamplerGate>,
    opened: Condvar,
    size: usize,
    arrived: AtomicUsize,
    finished: AtomicUsize,
    epoch: AtomicU64,
    abandoned: AtomicBool,
}

impl Team {
    /// A team of this many samplers.
    pub fn new(size: usize) -> Self {
        Self {
            gate: Mutex::new(SamplerGate::Closed),
            opened: Condvar::new(),
            size,
            arrived: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            epoch: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
        }
    }

    /// Opens the gate: all samplers start with this threshold.
    pub fn open(&self, threshold_ticks: u64) {
        self.set(SamplerGate::Open(threshold_ticks));
    }

    /// Dismisses all samplers that have not started yet.
    pub fn abandon(&self) {
        // Relaxed: a lone flag for samplers that already spin; the others see the gate.
        self.abandoned.store(true, Ordering::Relaxed);
        self.set(SamplerGate::Abandoned);
    }

    fn set(&self, gate: SamplerGate) {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = gate;
        self.opened.notify_all();
    }

    /// Sleeps until the gate opens, and returns the threshold; `None` if the run was abandoned.
    pub fn wait_at_gate(&self) -> Option<u64> {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *gate {
                SamplerGate::Closed => {
                    gate = self.opened.wait(gate).unwrap_or_else(PoisonError::into_inner);
                }
                SamplerGate::Open(threshold_ticks) => return Some(threshold_ticks),
                SamplerGate::Abandoned => return None,
            }
        }
    }

    /// Spins until all samplers have passed the gate, then returns the common epoch: the reading of the first
    /// one to leave. `None` if the run was abandoned meanwhile.
    pub fn begin_together(&self, now: impl Fn() -> u64) -> Option<u64> {
        // AcqRel: pairs with the Acquire load below, so everything any sampler did before is complete.
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire) < self.size {
            // Relaxed: the flag orders nothing.
            if self.abandoned.load(Ordering::Relaxed) {
                return None;
            }
            spin_loop();
        }
        // Zero means that there is no epoch yet, so a counter value of zero is stored as one.
        let mine = now().max(1);
        // Relaxed: only the value itself matters.
        match self.epoch.compare_exchange(0, mine, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Some(mine),
            Err(first) => Some(first),
        }
    }

    /// The epoch of the samplers; `None` if none has started.
    pub fn epoch(&self) -> Option<u64> {
        // Relaxed: only the value itself matters.
        Some(self.epoch.load(Ordering::Relaxed)).filter(|epoch| *epoch > 0)
    }

    /// Counts down the running samplers.
    fn finish(&self) {
        // Relaxed: only the count matters; results go through the channel.
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until all samplers are done: a thread that ends frees its stack, and removing that from the
    /// address space interrupts the cores of running samplers.
    pub fn line_up(&self) {
        let since = Instant::now();
        // Relaxed: only the count and the flag matter.
        while self.finished.load(Ordering::Relaxed) < self.size && !self.abandoned.load(Ordering::Relaxed) {
            if since.elapsed() < LINE_UP_SPIN {
                spin_loop();
            } else {
                thread::sleep(LINE_UP_NAP);
            }
        }
    }
}

/// A sampler's place in its team: released when it is done or panics, so that the others do not wait for it.
pub struct Place<'a> {
    pub team: &'a Team,
    pub cpu: CpuId,
    pub sender: Sender<Message>,
}

impl Place<'_> {
    /// Sends a message to the main thread; does nothing if that has ended.
    pub fn tell(&self, message: Message) {
        let _ = self.sender.send(message);
    }

    /// Leaves the running samplers and waits for the others.
    pub fn finish_and_line_up(&self) {
        self.team.finish();
        self.team.line_up();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.team.finish();
            self.tell(Message::Died(self.cpu));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn all_start_at_the_same_moment() {
        let team = Team::new(3);
        let epochs: Vec<Option<u64>> = thread::scope(|scope| {
            let workers: Vec<_> = (1..=3)
                .map(|n| {
                    let team = &team;
                    scope.spawn(move || {
                        team.wait_at_gate()?;
                        team.begin_together(|| n)
                    })
                })
                .collect();
            team.open(1);
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        assert!(epochs[0].is_some_and(|epoch| (1..=3).contains(&epoch)));
        assert!(epochs.iter().all(|epoch| *epoch == team.epoch()));
    }

    #[test]
    fn an_abandoned_run_dismisses_all_samplers() {
        let team = Team::new(3);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| team.wait_at_gate().is_none());
            let spinning = scope.spawn(|| team.begin_together(|| 5).is_none());
            thread::sleep(Duration::from_millis(5));
            team.abandon();
            assert!(waiting.join().unwrap() && spinning.join().unwrap());
        });
        assert_eq!(team.epoch(), None);
    }

    #[test]
    fn nobody_waits_for_a_dead_sampler() {
        let team = Team::new(2);
        let (sender, messages) = mpsc::channel();
        thread::scope(|scope| {
            let place = Place { team: &team, cpu: 7, sender: sender.clone() };
            let dying = scope.spawn(move || {
                let _place = place;
                panic!("on purpose");
            });
            Place { team: &team, cpu: 8, sender: sender.clone() }.finish_and_line_up();
            assert!(dying.join().is_err());
        });
        assert!(matches!(messages.try_recv(), Ok(Message::Died(7))));
    }
}
