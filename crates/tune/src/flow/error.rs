//! Why a flow was refused, or failed.

use crate::StateError;
use lowlat_plan::HostMark;
use lowlat_sys::undo::{HostError, UndoError};
use std::io;
use thiserror::Error;

/// Why a flow was refused, or failed.
#[derive(Debug, Error)]
pub enum FlowError {
    /// lowlat's own files.
    #[error(transparent)]
    State(#[from] StateError),
    /// The undo log.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// Records of the undo log are missing, damaged or different. Nothing was changed.
    #[error(
        "cannot rely on the undo log: {0}\nhint: `lowlat tune rollback --dry-run` shows what can still be restored"
    )]
    Log(String),
    /// Something stands against it. Nothing was changed.
    #[error("nothing was changed:\n{}", list(.0))]
    Refused(Vec<String>),
    /// The plan was made for another host.
    #[error(
        "this plan is for another host, or this one has changed underneath; nothing was changed:\n{}\nmake a new plan here with `lowlat tune plan`",
        list(.0)
    )]
    OtherHost(Vec<String>),
    /// The plan asks for what planning this host does not give.
    #[error(
        "cannot apply this plan: lowlat would not plan this here:\n{}\nhint: make a new plan with `lowlat tune plan --out FILE`",
        list(.0)
    )]
    Foreign(Vec<String>),
    /// Values are no longer what the plan found.
    #[error(
        "the host has changed since the plan was made; nothing was changed:\n{}\nmake a new plan with `lowlat tune plan`",
        list(.0)
    )]
    Drift(Vec<String>),
    /// Another plan was begun and is neither finished nor taken back.
    #[error(
        "plan {plan} was begun and is not finished; nothing was changed now. Finish it with `lowlat tune apply --plan {path}`, or take it back with `lowlat tune rollback`"
    )]
    Unfinished {
        /// That plan.
        plan: String,
        /// Where it is kept.
        path: String,
    },
    /// A part failed, and what was done before was taken back.
    #[error("{reason}\n{taken_back}")]
    Failed {
        /// What failed.
        reason: String,
        /// What became of what was done.
        taken_back: String,
    },
    /// The service manager refused.
    #[error("cannot {doing}: {source}")]
    Manager {
        /// What was asked of it.
        doing: String,
        /// What it said.
        source: io::Error,
    },
}

impl From<HostError> for FlowError {
    fn from(error: HostError) -> Self {
        Self::Undo(error.into())
    }
}

fn list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// The marks in which two hosts differ, in words; none when they are one.
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
