//! Threads that keep CPUs busy, one each.

use lowlat_host::CpuSet;
use lowlat_host_run::affinity;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

/// Largest number of refused CPUs that are named.
const NAMED_MAX: usize = 4;

/// Spinning threads. They end when they are stopped or dropped.
#[derive(Debug)]
pub(super) struct Spinners {
    /// CPUs on which a thread spins.
    pub(super) cpus: CpuSet,
    /// Reasons why other CPUs have none, one sentence each.
    pub(super) refused: Vec<String>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Spinners {
    /// Starts one on each of `cpus`, and waits until each runs there.
    pub(super) fn start(cpus: &CpuSet) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut spinners = Self { cpus: CpuSet::new(), refused: Vec::new(), is_over, threads: Vec::new() };
        for cpu in cpus.iter() {
            let (started, is_started) = std::sync::mpsc::sync_channel(1);
            let is_over = Arc::clone(&spinners.is_over);
            let thread = thread::Builder::new().name(format!("lowlat-spin/{cpu}")).spawn(move || {
                let pinned = affinity::pin_to(&CpuSet::of(cpu)).map_err(|error| error.to_string());
                let spins = pinned.is_ok();
                // The starter waits for this, so it exists.
                let _ = started.send(pinned);
                while spins && !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            match thread {
                Ok(thread) => spinners.threads.push(thread),
                Err(error) => {
                    spinners.refuse(&format!("cannot start a thread for CPU {cpu}: {error}"));
                    continue;
                }
            }
            match is_started.recv() {
                Ok(Ok(())) => {
                    spinners.cpus.insert(cpu);
                }
                Ok(Err(why)) => spinners.refuse(&why),
                Err(_) => spinners.refuse(&format!("the thread for CPU {cpu} died")),
            }
        }
        spinners
    }

    fn refuse(&mut self, why: &str) {
        if self.refused.len() < NAMED_MAX {
            self.refused.push(format!("No thread spins there, so its ticks prove less: {why}."));
        }
    }

    /// Ends them; returns the CPUs on which they spun.
    pub(super) fn stop(mut self) -> CpuSet {
        std::mem::take(&mut self.cpus)
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}
