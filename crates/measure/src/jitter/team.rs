//! What the samplers of a run share: the gate that lets them begin together and the line-up at its end.

use super::{
    calibrate::Calibration, error::JitterError, live::Live, recorder::Recorder, ring::Consumer,
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

/// How long a sampler that is done waits for the others without giving up its CPU.
const LINE_UP_SPIN: Duration = Duration::from_millis(20);
/// Between two looks after that.
const LINE_UP_NAP: Duration = Duration::from_millis(1);

/// What a sampler tells the main thread.
pub enum Message {
    /// It is pinned, has its memory and has calibrated.
    Ready(Box<Ready>),
    /// It can't run as it should.
    Failed(JitterError),
    /// It ended by a panic.
    Died(CpuId),
    /// It is done.
    Done(Box<Done>),
}

/// A sampler that waits at the gate.
pub struct Ready {
    /// Its CPU.
    pub cpu: CpuId,
    /// Its thread id.
    pub thread_id: i32,
    /// Its calibration.
    pub calibration: Calibration,
    /// What it shows of itself.
    pub live: Arc<Live>,
    /// Where its interruptions can be read, when somebody wants them.
    pub ring: Option<Consumer>,
}

/// What a sampler hands over.
pub struct Done {
    /// Its CPU.
    pub cpu: CpuId,
    /// Its calibration.
    pub calibration: Calibration,
    /// How it ended.
    pub outcome: Outcome,
    /// What it recorded.
    pub recorder: Recorder,
}

/// What all samplers are told when they begin.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// The threshold of the run.
    pub threshold_ticks: u64,
}

#[derive(Debug, Clone, Copy)]
enum Gate {
    Closed,
    Open(Start),
    Abandoned,
}

/// Shared by the samplers of one run. Nothing here is touched while they sample.
#[derive(Debug)]
pub struct Team {
    gate: Mutex<Gate>,
    opened: Condvar,
    size: usize,
    arrived: AtomicUsize,
    finished: AtomicUsize,
    epoch: AtomicU64,
    abandoned: AtomicBool,
}

impl Team {
    /// A team of so many samplers.
    pub fn new(size: usize) -> Self {
        Self {
            gate: Mutex::new(Gate::Closed),
            opened: Condvar::new(),
            size,
            arrived: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            epoch: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
        }
    }

    /// Lets all samplers begin.
    pub fn open(&self, start: Start) {
        self.set(Gate::Open(start));
    }

    /// Sends all samplers home that have not begun yet.
    pub fn abandon(&self) {
        // Relaxed: a lone flag for those that already spin; the others see the gate.
        self.abandoned.store(true, Ordering::Relaxed);
        self.set(Gate::Abandoned);
    }

    fn set(&self, gate: Gate) {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = gate;
        self.opened.notify_all();
    }

    /// Sleeps until the gate opens; `None` when the run was abandoned.
    pub fn wait_at_gate(&self) -> Option<Start> {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *gate {
                Gate::Closed => {
                    gate = self.opened.wait(gate).unwrap_or_else(PoisonError::into_inner);
                }
                Gate::Open(start) => return Some(start),
                Gate::Abandoned => return None,
            }
        }
    }

    /// Spins until all samplers have come through the gate, then gives the moment from which all of them count: the
    /// reading of the one that left first. `None` when the run was abandoned meanwhile.
    pub fn begin_together(&self, now: impl Fn() -> u64) -> Option<u64> {
        // AcqRel: pairs with the Acquire load below, so what any sampler did before it came is done.
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire) < self.size {
            if self.abandoned.load(Ordering::Relaxed) {
                return None;
            }
            spin_loop();
        }
        // Zero stands for "nobody yet", so a counter that reads zero is taken as one.
        let mine = now().max(1);
        // Relaxed: the value itself is all that is agreed on.
        match self.epoch.compare_exchange(0, mine, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Some(mine),
            Err(first) => Some(first),
        }
    }

    /// The moment from which the samplers count; `None` when none has begun.
    pub fn epoch(&self) -> Option<u64> {
        Some(self.epoch.load(Ordering::Relaxed)).filter(|epoch| *epoch > 0)
    }

    /// One sampler fewer at work.
    fn finish(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until all samplers are done: a thread that ends gives its stack back, and taking that out of the
    /// address space interrupts the cores of those still at work.
    pub fn line_up(&self) {
        let since = Instant::now();
        while self.finished.load(Ordering::Relaxed) < self.size {
            if since.elapsed() < LINE_UP_SPIN {
                spin_loop();
            } else {
                thread::sleep(LINE_UP_NAP);
            }
        }
    }
}

/// A sampler's place in its team: given up when it is done or panics, so that nobody waits for it in vain.
pub struct Place<'a> {
    /// The team.
    pub team: &'a Team,
    /// The sampler's CPU.
    pub cpu: CpuId,
    /// Where it tells.
    pub sender: Sender<Message>,
}

impl Place<'_> {
    /// Tells the main thread. That it has gone is no matter: nobody is left to be told.
    pub fn tell(&self, message: Message) {
        let _ = self.sender.send(message);
    }

    /// Gives up the place at work and waits for the others.
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
    fn all_begin_at_the_same_moment() {
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
            team.open(Start { threshold_ticks: 1 });
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        assert!(epochs[0].is_some_and(|epoch| (1..=3).contains(&epoch)));
        assert!(epochs.iter().all(|epoch| *epoch == team.epoch()));
    }

    #[test]
    fn an_abandoned_run_sends_everybody_home() {
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
    fn nobody_waits_for_one_that_died() {
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
