//! Errors of the flows.

use crate::StateError;
use lowlat_plan::HostMark;
use lowlat_sys::undo::{HostError, UndoError};
use std::io;
use thiserror::Error;

/// Why a flow was rejected, or failed.
#[derive(Debug, Error)]
pub enum FlowError {
    /// Access to lowlat's state files failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// An operation of the undo log failed.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// Records of the undo log are missing, damaged or different. Nothing was changed.
    #[error(
        "cannot rely on the undo log: {0}\nhint: `lowlat tune rollback --dry-run` shows what can still be restored"
    )]
    Log(String),
    /// Obstacles were found. Nothing was changed.
    #[error("cannot continue, and nothing was changed:\n{}", list(.0))]
    Refused(Vec<String>),
    /// The plan was made for another host.
    #[error(
        "cannot apply this plan: it was made for another host, or this host's hardware or kernel has \
         changed:\n{}\nhint: make a new plan here with `lowlat tune plan --out FILE`",
        list(.0)
    )]
    OtherHost(Vec<String>),
    /// The plan contains changes that lowlat would not plan on this host.
    #[error(
        "cannot apply this plan: lowlat would not plan this here:\n{}\nhint: make a new plan with `lowlat tune plan --out FILE`",
        list(.0)
    )]
    Foreign(Vec<String>),
    /// Values differ from those that the plan found.
    #[error(
        "cannot apply this plan: the host has changed since it was made:\n{}\nhint: make a new plan with `lowlat \
         tune plan --out FILE`",
        list(.0)
    )]
    Drift(Vec<String>),
    /// Another plan was started, and neither completed nor rolled back.
    #[error(
        "cannot continue, and nothing was changed: plan {plan} was applied only in part\nhint: complete it with \
         `lowlat tune apply --plan {path}`, or roll it back with `lowlat tune rollback`"
    )]
    Unfinished {
        /// That plan.
        plan: String,
        /// Its file.
        path: String,
    },
    /// A stage failed, and the earlier ones were rolled back.
    #[error("{reason}\n{rolled_back}")]
    Failed {
        /// What failed.
        reason: String,
        /// Result of the rollback.
        rolled_back: String,
    },
    /// The service manager reported an error.
    #[error("cannot {doing}: {source}")]
    Manager {
        /// The request.
        doing: String,
        /// Its error.
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
