//! Errors of the flows.

use crate::{StateError, boot_loader::BootLoaderError};
use lowlat_plan::HostMark;
use lowlat_undo::{HostError, UndoError};
use std::{fmt, io};
use thiserror::Error;

/// Reason why a flow was rejected or failed.
#[derive(Debug, Error)]
pub enum FlowError {
    /// Access to lowlat's state files failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// An operation of the undo log failed.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// Nothing was changed, or what was changed was rolled back.
    #[error("{0}")]
    Refused(String),
}

impl FlowError {
    pub(super) fn obstacles(lines: &[String]) -> Self {
        Self::Refused(format!("cannot continue, and nothing was changed:\n{}", list(lines)))
    }

    pub(super) fn obstacle(line: impl fmt::Display) -> Self {
        Self::obstacles(&[line.to_string()])
    }

    /// The plan in force was interrupted.
    pub(super) fn partly_applied(plan: &str) -> Self {
        Self::obstacle(format!(
            "plan {plan} was applied only in part; complete it with `lowlat tune apply`, or roll it back with `lowlat \
             tune rollback`"
        ))
    }

    /// The plan does not fit this host.
    pub(super) fn unfit_plan(why: &str, lines: &[String]) -> Self {
        Self::Refused(format!(
            "cannot apply this plan: {why}:\n{}\nhint: make a new plan with `lowlat tune plan --out FILE`",
            list(lines)
        ))
    }

    /// The service manager reported an error.
    pub(super) fn manager(doing: &str, error: &io::Error) -> Self {
        Self::Refused(format!("cannot {doing}: {error}"))
    }
}

impl From<BootLoaderError> for FlowError {
    fn from(error: BootLoaderError) -> Self {
        Self::obstacle(error)
    }
}

impl From<HostError> for FlowError {
    fn from(error: HostError) -> Self {
        Self::Undo(error.into())
    }
}

/// Lines of a list in a message.
pub(super) fn list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// The marks in which two hosts differ, as text; empty if they are the same host.
pub(super) fn differing_marks(plan: &HostMark, host: &HostMark) -> Vec<String> {
    let mut lines = Vec::new();
    let mut compare = |what: &str, plan: &str, host: &str| {
        if plan != host {
            lines.push(format!("{what}: {plan} in the plan, {host} here"));
        }
    };
    compare("machine id (digest)", &plan.machine_id_digest.to_string(), &host.machine_id_digest.to_string());
    compare("system", &plan.system.to_string(), &host.system.to_string());
    compare("kernel", &plan.kernel_release.to_string(), &host.kernel_release.to_string());
    compare("CPUs and memory nodes (digest)", &plan.topology_digest, &host.topology_digest);
    lines
}
