//! Injects crashes and failing system calls at chosen points, so that tests can reach each of them.

use super::HostError;
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

/// Counts every operation that changes the host or the log, and can make a chosen one fail. Outside of tests
/// it is [`Faults::none`], which costs one addition per operation.
#[derive(Debug, Clone)]
pub struct Faults {
    plan: Plan,
    count: Arc<AtomicU64>,
    /// Operations so far, if they are traced.
    trace: Option<Arc<Mutex<Vec<String>>>>,
}

/// Error text that stands for a dead process.
const CRASH: &str = "crash injected by a test";

impl Faults {
    pub fn none() -> Self {
        Self { plan: Plan::None, count: Arc::default(), trace: None }
    }

    /// The process dies at operation `at`, counted from 0: it and all later ones fail and change nothing,
    /// except that half the bytes of a write are stored.
    pub fn crash_at(at: u64) -> Self {
        Self { plan: Plan::CrashAt(at), ..Self::none() }
    }

    /// Operation `at` fails with the error number `errno`; the others succeed.
    pub fn error_at(at: u64, errno: i32) -> Self {
        Self { plan: Plan::ErrorAt(at, errno), ..Self::none() }
    }

    /// The disk is full from operation `at` on.
    pub fn full_from(at: u64) -> Self {
        Self { plan: Plan::FullFrom(at), ..Self::none() }
    }

    /// No faults, but [`Faults::trace`] returns the operations in order.
    pub fn traced() -> Self {
        Self { trace: Some(Arc::default()), ..Self::none() }
    }

    /// Returns the number of operations so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The operations so far as "what path", if created by [`Faults::traced`].
    pub fn trace(&self) -> Vec<String> {
        let lines = self.trace.as_ref().map(|t| t.lock().unwrap_or_else(PoisonError::into_inner).clone());
        lines.unwrap_or_default()
    }

    /// Called before an operation that needs no disk space.
    pub(super) fn step(&self, what: &str, path: &str) -> io::Result<()> {
        let at = self.next(what, path);
        match self.plan {
            Plan::CrashAt(crash) if at >= crash => Err(io::Error::other(CRASH)),
            Plan::ErrorAt(error, errno) if at == error => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    /// Runs one operation that needs no disk space.
    pub(super) fn run<T, E: Into<io::Error>>(
        &self,
        doing: &'static str,
        path: &str,
        run: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, HostError> {
        self.step(doing, path).map_err(|e| HostError::io(doing, path, e))?;
        run().map_err(|e| HostError::io(doing, path, e))
    }

    /// Called before an operation that needs disk space.
    pub(super) fn space(&self, what: &str, path: &str) -> io::Result<()> {
        let at = self.count();
        self.step(what, path)?;
        match self.plan {
            Plan::FullFrom(full) if at >= full => {
                Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()))
            }
            _ => Ok(()),
        }
    }

    /// Writes `bytes` with `write`, or the half of them that a crash or a full disk stores.
    pub(super) fn write(
        &self,
        path: &str,
        bytes: &[u8],
        write: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let at = self.count();
        let fault = self.space("write", path);
        let torn = match self.plan {
            Plan::CrashAt(fault) => at == fault,
            Plan::FullFrom(full) => at >= full,
            _ => false,
        };
        match fault {
            Ok(()) => write(bytes),
            Err(error) => {
                if torn {
                    write(bytes.get(..bytes.len() / 2).unwrap_or_default())?;
                }
                Err(error)
            }
        }
    }

    fn next(&self, what: &str, path: &str) -> u64 {
        if let Some(trace) = &self.trace {
            trace.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{what} {path}"));
        }
        self.count.fetch_add(1, Ordering::Relaxed)
    }
}
