//! Lets operations fail at chosen points, so that tests can reach each of them.

use super::HostError;
use std::{fmt, io, sync::Arc};

/// Decides which operations fail; only tests have one.
pub trait FaultPlan: fmt::Debug + Send + Sync {
    /// Called before every operation that changes the host or the log.
    ///
    /// # Errors
    /// The fault with which the operation is to fail.
    fn before(&self, what: &str, path: &str, needs_space: bool) -> Result<(), Fault>;

    /// The operations so far: their number, and each as "what path" if they are traced.
    fn seen(&self) -> (u64, Vec<String>);
}

/// What an operation fails with.
#[derive(Debug)]
pub struct Fault {
    pub error: io::Error,
    /// A write stores half of its bytes.
    pub is_torn: bool,
}

/// Makes chosen operations fail; the default, outside of tests, none.
#[derive(Debug, Clone, Default)]
pub struct Faults(pub(super) Option<Arc<dyn FaultPlan>>);

impl Faults {
    fn before(&self, what: &str, path: &str, needs_space: bool) -> Result<(), Fault> {
        self.0.as_ref().map_or(Ok(()), |plan| plan.before(what, path, needs_space))
    }

    /// Called before an operation that needs no disk space.
    pub(super) fn step(&self, what: &str, path: &str) -> io::Result<()> {
        self.before(what, path, false).map_err(|fault| fault.error)
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
        self.before(what, path, true).map_err(|fault| fault.error)
    }

    /// Writes `bytes` with `write`, or the half of them that a crash or a full disk stores.
    pub(super) fn write(
        &self,
        path: &str,
        bytes: &[u8],
        write: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let Err(Fault { error, is_torn }) = self.before("write", path, true) else { return write(bytes) };
        if is_torn {
            write(bytes.get(..bytes.len() / 2).unwrap_or_default())?;
        }
        Err(error)
    }
}
