//! Kinds of targets that steps change.

use super::{HostError, State, TargetSpec, Writer, state};
use std::{fmt, io, sync::Arc};

/// A kind of target that can be changed and rolled back. The log calls it for every step of its kind.
///
/// An implementation without files returns its states as [`State::Value`] or [`State::Absent`].
pub trait Target: fmt::Debug + Send {
    /// Its name in the log. Never change it: old logs contain it.
    fn kind(&self) -> &'static str;

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError>;

    /// Changes the state to `to`, durably and atomically. Repeating it must do no harm.
    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError>;

    /// True if its changes survive a restart of the host. Others may be expired by
    /// [`UndoLog::expire`](super::UndoLog::expire) in the next boot.
    fn outlives_boot(&self, _spec: &TargetSpec) -> bool {
        true
    }

    /// True if its name means the same thing in each boot, so that a value that a file (sysctl.d, udev, the command
    /// line) set again in this boot is lowlat's change too.
    fn keeps_its_name(&self, spec: &TargetSpec) -> bool {
        self.outlives_boot(spec)
    }

    /// A name that is the same for all spellings of a target.
    fn identity(&self, _writer: &Writer, spec: &TargetSpec) -> Result<String, HostError> {
        Ok(spec.name.clone())
    }

    /// Removes what an interrupted `write` may have left behind.
    fn clear(&self, _writer: &Writer, _spec: &TargetSpec) -> Result<(), HostError> {
        Ok(())
    }

    /// Removes what an interrupted `write` may have left behind, and makes the present state durable.
    fn settle(&self, _writer: &Writer, _spec: &TargetSpec) -> Result<(), HostError> {
        Ok(())
    }

    /// Directories that writing something new will create, outermost first. The log removes them again.
    fn missing_directories(&self, _writer: &Writer, _spec: &TargetSpec) -> Result<Vec<String>, HostError> {
        Ok(Vec::new())
    }
}

/// Directories whose entries have other numbers or names in each boot: interrupts and interfaces.
const NUMBERED: [&str; 2] = ["/proc/irq/", "/sys/class/net/"];

/// What has a path on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostFiles {
    /// Attributes of the kernel; links to them are followed.
    Values,
    /// Regular files, links, and their absence.
    Files,
}

impl Target for HostFiles {
    fn kind(&self) -> &'static str {
        match self {
            Self::Values => "value",
            Self::Files => "file",
        }
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        match self {
            Self::Values => writer.read_value(&spec.name),
            Self::Files => writer.read_file(&spec.name),
        }
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        if *self == Self::Files {
            return writer.write_file(&spec.name, to);
        }
        let text = spec.wanted_value(to)?;
        if spec.comparison == super::Comparison::Choice {
            writer.write_choice(&spec.name, state::chosen(text))
        } else {
            writer.write_value(&spec.name, text)
        }
    }

    fn outlives_boot(&self, _spec: &TargetSpec) -> bool {
        *self == Self::Files
    }

    fn keeps_its_name(&self, spec: &TargetSpec) -> bool {
        *self == Self::Files || !NUMBERED.iter().any(|folder| spec.name.starts_with(folder))
    }

    fn identity(&self, writer: &Writer, spec: &TargetSpec) -> Result<String, HostError> {
        Ok(writer.find(&spec.name, *self == Self::Values)?.real)
    }

    fn clear(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        writer.clear(&spec.name, *self == Self::Values)
    }

    fn settle(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        match self {
            Self::Values => self.clear(writer, spec),
            Self::Files => writer.settle(&spec.name),
        }
    }

    fn missing_directories(&self, writer: &Writer, spec: &TargetSpec) -> Result<Vec<String>, HostError> {
        match self {
            Self::Values => Ok(Vec::new()),
            Self::Files => writer.missing_directories(&spec.name),
        }
    }
}

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
