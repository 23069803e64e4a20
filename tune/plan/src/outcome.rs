//! Documents: results of apply and rollback, and the status.

use super::{Plan, verify::Refusal};
use lowlat_host::{Reading, Role};
use serde::{Deserialize, Serialize};

/// The result of applying a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyOutcome {
    /// Name of the document: [`ApplyOutcome::DOCUMENT`].
    pub document: String,
    /// Version of the document's format: [`ApplyOutcome::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// [`Plan::id`] of the plan now in force, or of the one that has no change.
    pub plan_id: String,
    pub is_changed: bool,
    /// The result of each change, in the plan's order.
    pub changes: Vec<ChangeOutcome>,
    /// The boot loader whose configuration contains the command line; none if the plan does not change it.
    pub boot_loader: Option<String>,
    /// Files of the systemd units that keep the plan in force.
    pub units: Vec<String>,
    /// Seconds after the next boot within which the plan must be confirmed.
    pub confirm_within_s: Option<u64>,
    /// A reboot is needed to complete the plan.
    pub needs_reboot: bool,
    /// Other notes for the user, one or two sentences each.
    pub notes: Vec<String>,
}

impl ApplyOutcome {
    pub const DOCUMENT: &str = "lowlat-apply";
    pub const SCHEMA_VERSION: u32 = 1;

    /// The result of a plan without changes, for which nothing is written.
    pub fn of_nothing(plan: &Plan) -> Self {
        Self {
            document: Self::DOCUMENT.to_owned(),
            schema_version: Self::SCHEMA_VERSION,
            plan_id: plan.id(),
            ..Self::default()
        }
    }

    /// Number of changes with a fate.
    pub fn count(&self, fate: Fate) -> usize {
        self.changes.iter().filter(|change| change.fate == fate).count()
    }
}

/// The result of one change of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeOutcome {
    /// The change's index in [`Plan::changes`].
    pub change: usize,
    pub fate: Fate,
    /// Reasons for the refusal, one for each part; empty if nothing was refused.
    pub reasons: Vec<String>,
}

/// The result of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// The value was already in effect.
    Unchanged,
    Done,
    /// A part of the change was not applied.
    Refused,
}

/// The result of a rollback, or its preview.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackOutcome {
    /// Name of the document: [`RollbackOutcome::DOCUMENT`].
    pub document: String,
    /// Version of the document's format: [`RollbackOutcome::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Nothing was changed: this is a preview.
    pub is_preview: bool,
    /// Restored targets, the last change first.
    pub restored: Vec<Restored>,
    /// Number of targets that already had their old state.
    pub unchanged_count: usize,
    /// Number of kernel values that a reboot has already reset.
    pub expired_count: usize,
    /// Targets that another tool has changed since; they were not changed.
    pub conflicts: Vec<ThreeWay>,
    /// Targets that could not be restored.
    pub failures: Vec<NotRestored>,
    /// Targets that were skipped on purpose, with the reason.
    pub given_up: Vec<NotRestored>,
    /// Directories that lowlat created and that now contain other files.
    pub directories_left: Vec<String>,
    /// The reason why the undo log is unreliable, as a clause; lost steps are not restored.
    pub damage: Option<String>,
    /// Lasting changes by lowlat whose undo records are lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<NotRestored>,
    /// The plan in force after the rollback.
    pub in_force: Option<String>,
    /// A reboot is needed to complete the rollback.
    pub needs_reboot: bool,
    /// Other notes for the user.
    pub notes: Vec<String>,
}

impl RollbackOutcome {
    pub const DOCUMENT: &str = "lowlat-rollback";
    pub const SCHEMA_VERSION: u32 = 1;

    /// True if there is nothing to restore and nothing to report.
    pub fn is_of_nothing(&self) -> bool {
        let touched = [self.conflicts.len(), self.failures.len(), self.given_up.len(), self.remaining.len()];
        self.restored.len() + self.unchanged_count + self.expired_count + touched.iter().sum::<usize>() == 0
            && self.damage.is_none()
    }

    /// True if everything was restored, according to the log.
    pub fn is_complete(&self) -> bool {
        self.conflicts.is_empty()
            && self.failures.is_empty()
            && self.directories_left.is_empty()
            && self.damage.is_none()
            && self.remaining.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The plan of the undo log: "9f86d081884c7d65/files".
    pub plan: String,
    /// The kind of target: "file", "value", "service".
    pub kind: String,
    /// Its name; a path for files and values.
    pub name: String,
}

/// A target that was not restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRestored {
    pub name: String,
    pub reason: String,
}

/// A target with neither its old state nor the one that lowlat wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreeWay {
    /// Its name; a path for files and values.
    pub name: String,
    /// The plan of the undo log.
    pub plan: String,
    /// State before lowlat changed it.
    pub before: StateText,
    pub by_lowlat: StateText,
    pub now: StateText,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StateText {
    /// The target does not exist.
    Absent,
    /// A value of the kernel, of a service, of a thread.
    Value {
        text: String,
    },
    /// - `text`: its text, or the start of a long one.
    /// - `attributes`: owner, group, mode: "0:0 0644".
    File {
        text: String,
        is_cut: bool,
        attributes: String,
    },
    /// - `digest`: first 16 digits of its SHA-256.
    /// - `attributes`: owner, group, mode.
    Binary {
        bytes: u64,
        digest: String,
        attributes: String,
    },
    Link {
        to: String,
    },
}

/// The status of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneStatus {
    /// Name of the document: [`TuneStatus::DOCUMENT`].
    pub document: String,
    /// Version of the document's format: [`TuneStatus::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The plan in force; absent if there is none, denied if only root can read it.
    pub in_force: Reading<PlanInForce>,
    /// systemd units that keep the plan in force.
    pub units: Vec<UnitStatus>,
    /// Number of steps of the undo log that are in force.
    pub steps: Reading<Vec<StepCount>>,
    /// Plans that were started, and neither completed nor rolled back.
    pub unfinished: Vec<String>,
    /// The reason why the end of the undo log is missing after a crash, which is harmless.
    pub torn: Option<String>,
    /// Damage of the undo log, as text.
    pub damage: Option<String>,
    /// State of the plan's command line.
    pub reboot: RebootStatus,
}

impl TuneStatus {
    pub const DOCUMENT: &str = "lowlat-status";
    pub const SCHEMA_VERSION: u32 = 1;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanInForce {
    pub plan_id: String,
    pub profile: String,
    /// The role that the host is judged by while it is in force.
    pub role: Role,
    /// Number of changes of the plan.
    pub change_count: usize,
    /// When it was applied, milliseconds since 1970.
    pub applied_unix_ms: u64,
    /// Age of the plan in seconds, by the host's clock; none if the clock was set back since.
    pub age_s: Option<u64>,
    /// The plan was applied in the running boot.
    pub is_of_this_boot: bool,
    /// The plan was made for another host, and this host is a copy of that one.
    pub is_of_other_host: bool,
    /// Every step was applied.
    pub is_complete: bool,
    pub confirmation: Confirmation,
    /// Earlier plans for `rollback --to`, the latest first.
    pub earlier: Vec<String>,
    /// Changes that were refused: lasting ones when it was applied, others in this boot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
}

/// Confirmation state of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Confirmation {
    /// The plan needs none, or is confirmed.
    NotNeeded,
    /// The plan is rolled back unless it is confirmed.
    /// - `within_s`: seconds after each boot within which it must be confirmed.
    /// - `left_s`: seconds left in this boot; none if the timer is not running or cannot be read.
    Waiting { within_s: u64, left_s: Option<u64> },
}

/// A systemd unit that lowlat wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitStatus {
    pub name: String,
    pub is_there: Reading<bool>,
    /// The unit, or the timer that starts it, is started at boot.
    pub is_enabled: bool,
}

/// Steps of one part of a plan and one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCount {
    /// The plan of the undo log: "9f86d081884c7d65/files".
    pub plan: String,
    pub kind: String,
    pub count: usize,
}

/// State of a plan's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RebootStatus {
    /// The plan needs no reboot.
    NotNeeded,
    Pending,
    /// No plan is in force any more, but the kernel keeps the rolled-back parameters until the reboot.
    PendingRollback,
    /// After the reboot: the kernel has the parameters.
    Done,
    /// After the reboot: the kernel lacks parameters.
    Ineffective,
    /// The line was not written, or not completely: [`PlanInForce::refused`] has the reason.
    Refused,
    Unknown,
}

/// Returns the state of the plan's command line. `is_of_this_boot` is true if the plan was applied in the running boot.
pub fn reboot_status(
    plan: &Plan,
    line: &lowlat_host::cmdline::CommandLine,
    is_of_this_boot: bool,
) -> RebootStatus {
    let Some(tokens) = plan.boot_tokens() else { return RebootStatus::NotNeeded };
    match (tokens.iter().all(|token| super::stands(line, token)), is_of_this_boot) {
        (true, _) => RebootStatus::Done,
        (false, true) => RebootStatus::Pending,
        (false, false) => RebootStatus::Ineffective,
    }
}
