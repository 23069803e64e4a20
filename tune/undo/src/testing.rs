//! Crashes and failing system calls at chosen operations, for tests.

use super::target::{Fault, FaultPlan, Faults};
use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Fault to inject, and at which operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    None,
    /// From this operation on, everything fails, as if the process had died. A write stores half of its
    /// bytes.
    CrashAt(u64),
    /// Only this operation fails, with this error.
    ErrorAt(u64, i32),
    /// From this operation on, everything that needs space fails with ENOSPC; removing still works.
    FullFrom(u64),
}

/// A plan, and the operations so far.
#[derive(Debug)]
struct Injected {
    plan: Plan,
    count: AtomicU64,
    trace: Option<Mutex<Vec<String>>>,
}

/// Error text that stands for a dead process.
const CRASH: &str = "crash injected by a test";

impl FaultPlan for Injected {
    fn before(&self, what: &str, path: &str, needs_space: bool) -> Result<(), Fault> {
        if let Some(trace) = &self.trace {
            trace.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{what} {path}"));
        }
        let at = self.count.fetch_add(1, Ordering::Relaxed);
        match self.plan {
            Plan::CrashAt(crash) if at >= crash => {
                Err(Fault { error: io::Error::other(CRASH), is_torn: at == crash })
            }
            Plan::ErrorAt(error, errno) if at == error => {
                Err(Fault { error: io::Error::from_raw_os_error(errno), is_torn: false })
            }
            Plan::FullFrom(full) if at >= full && needs_space => {
                let full = rustix::io::Errno::NOSPC.raw_os_error();
                Err(Fault { error: io::Error::from_raw_os_error(full), is_torn: true })
            }
            _ => Ok(()),
        }
    }

    fn seen(&self) -> (u64, Vec<String>) {
        let trace = self.trace.as_ref().map(|t| t.lock().unwrap_or_else(PoisonError::into_inner).clone());
        (self.count.load(Ordering::Relaxed), trace.unwrap_or_default())
    }
}

impl Faults {
    pub fn none() -> Self {
        Self::default()
    }

    fn of(plan: Plan, trace: Option<Mutex<Vec<String>>>) -> Self {
        Self(Some(Arc::new(Injected { plan, count: AtomicU64::new(0), trace })))
    }

    /// The process dies at operation `at`, counted from 0: it and all later ones fail and change nothing,
    /// except that half the bytes of a write are stored.
    pub fn crash_at(at: u64) -> Self {
        Self::of(Plan::CrashAt(at), None)
    }

    /// Operation `at` fails with the error number `errno`; the others succeed.
    pub fn error_at(at: u64, errno: i32) -> Self {
        Self::of(Plan::ErrorAt(at, errno), None)
    }

    /// The disk is full from operation `at` on.
    pub fn full_from(at: u64) -> Self {
        Self::of(Plan::FullFrom(at), None)
    }

    /// No faults, but [`Faults::trace`] returns the operations in order.
    pub fn traced() -> Self {
        Self::of(Plan::None, Some(Mutex::default()))
    }

    /// The number of operations so far; none are counted without faults.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |plan| plan.seen().0)
    }

    /// The operations so far as "what path", if created by [`Faults::traced`].
    pub fn trace(&self) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |plan| plan.seen().1)
    }
}
