//! From the changes of a plan to steps of the undo log: which path, which number, what is there now.

use lowlat_model::{HostSnapshot, tune::Plan};
use lowlat_sys::undo::{Step, UndoError, UndoLog};

/// Which changes are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What takes effect at once: values of the kernel, threads, interrupts, interfaces, services' run state.
    RunTime,
    /// Files and services' enablement, which keep it for later boots. The boot loader's are not among them.
    Files,
}

/// One change, or a part of one, as a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The change's place in [`Plan::changes`].
    pub change: usize,
    /// The step.
    pub step: Step,
}

/// A change that cannot be prepared on this host now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPrepared {
    /// The change's place in [`Plan::changes`].
    pub change: usize,
    /// Why: "interrupt nvme0q0 is no longer there".
    pub reason: String,
}

/// The steps of a part of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preparation {
    /// In the order in which they are to be applied.
    pub steps: Vec<Prepared>,
    /// What is left.
    pub left: Vec<NotPrepared>,
}

/// Makes steps of a part of `plan` for the host as it is now. Interrupts and threads are found by name, since their
/// numbers change with each boot. The old state of each step is what `log` reads now.
pub fn prepare(
    _plan: &Plan,
    _host: &HostSnapshot,
    _log: &UndoLog,
    _part: Part,
) -> Result<Preparation, UndoError> {
    Ok(Preparation::default())
}
