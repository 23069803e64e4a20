//! Documents: results of apply and rollback, and the status.

use super::{Plan, verify::Refusal};
use lowlat_host::{Reading, Role};
use serde::{Deserialize, Serialize};

/// The result of applying a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyOutcome {
    /// Name of the document: [`ApplyOutcome::DOCUMENT`].
    pub document: String,
    /// Version of the document's format: [`ApplyOutcome::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// [`Plan::id`] of the plan now in force, or of the one that has no change.
    pub plan_id: String,
    /// Whether anything was written.
    pub is_changed: bool,
    /// The result of each change, in the plan's order.
    pub changes: Vec<ChangeOutcome>,
    /// The boot loader whose configuration contains the command line; none if the plan does not change it.
    pub boot_loader: Option<String>,
    /// Files of the systemd units that keep the plan in force.
    pub units: Vec<String>,
    /// Seconds after the next boot within which the plan must be confirmed.
    pub confirm_within_s: Option<u64>,
    /// Whether a reboot completes it.
    pub needs_reboot: bool,
    /// Other notes for the user, one or two sentences each.
    pub notes: Vec<String>,
}

impl ApplyOutcome {
    /// The document's name.
    pub const DOCUMENT: &str = "lowlat-apply";
    /// The present version of the format.
    pub const SCHEMA_VERSION: u32 = 1;

    /// The result of a plan without changes, for which nothing is written.
    pub fn of_nothing(plan: &Plan) -> Self {
        Self {
            document: Self::DOCUMENT.to_owned(),
            schema_version: Self::SCHEMA_VERSION,
            plan_id: plan.id(),
            is_changed: false,
            changes: Vec::new(),
            boot_loader: None,
            units: Vec::new(),
            confirm_within_s: None,
            needs_reboot: false,
            notes: Vec::new(),
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
    /// Its result.
    pub fate: Fate,
    /// Why it was rejected, one reason for each part; empty otherwise.
    pub reasons: Vec<String>,
}

/// The result of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was already in effect.
    Unchanged,
    /// It was applied.
    Done,
    /// A part of it was not applied.
    Refused,
}

/// The result of a rollback, or its preview.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackOutcome {
    /// Name of the document: [`RollbackOutcome::DOCUMENT`].
    pub document: String,
    /// Version of the document's format: [`RollbackOutcome::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Whether this is a preview: nothing was changed.
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
    /// Why the undo log cannot be relied on, as a clause: lost steps are not restored.
    pub damage: Option<String>,
    /// Lasting changes by lowlat whose undo records are lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<NotRestored>,
    /// The plan in force after it.
    pub in_force: Option<String>,
    /// Whether a reboot completes it.
    pub needs_reboot: bool,
    /// Other notes for the user.
    pub notes: Vec<String>,
}

impl RollbackOutcome {
    /// The document's name.
    pub const DOCUMENT: &str = "lowlat-rollback";
    /// The present version of the format.
    pub const SCHEMA_VERSION: u32 = 1;

    /// Whether there is nothing that a rollback could restore, and nothing that it would have to say.
    pub fn is_of_nothing(&self) -> bool {
        let touched = [self.conflicts.len(), self.failures.len(), self.given_up.len(), self.remaining.len()];
        self.restored.len() + self.unchanged_count + self.expired_count + touched.iter().sum::<usize>() == 0
            && self.damage.is_none()
    }

    /// Whether everything was restored, according to the log.
    pub fn is_complete(&self) -> bool {
        self.conflicts.is_empty()
            && self.failures.is_empty()
            && self.directories_left.is_empty()
            && self.damage.is_none()
            && self.remaining.is_empty()
    }
}

/// A restored target.
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
    /// Its name.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// A target with neither its old state nor the one that lowlat wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreeWay {
    /// Its name; a path for files and values.
    pub name: String,
    /// The plan of the undo log.
    pub plan: String,
    /// Before lowlat.
    pub before: StateText,
    /// By lowlat.
    pub by_lowlat: StateText,
    /// Now.
    pub now: StateText,
}

/// A state as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StateText {
    /// The target does not exist.
    Absent,
    /// A value of the kernel, of a service, of a thread.
    Value {
        /// The value.
        text: String,
    },
    /// A text file.
    File {
        /// Its text, or the start of a long one.
        text: String,
        /// Whether the text was truncated.
        is_cut: bool,
        /// Owner, group, mode: "0:0 0644".
        attributes: String,
    },
    /// A binary file.
    Binary {
        /// Its length.
        bytes: u64,
        /// First 16 digits of its SHA-256.
        digest: String,
        /// Owner, group, mode.
        attributes: String,
    },
    /// A symbolic link.
    Link {
        /// Its destination.
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
    /// systemd units that keep it in force.
    pub units: Vec<UnitStatus>,
    /// Number of steps of the undo log that are in force.
    pub steps: Reading<Vec<StepCount>>,
    /// Plans that were started, and neither completed nor rolled back.
    pub unfinished: Vec<String>,
    /// Why the end of the undo log was truncated by a crash, which is harmless.
    pub torn: Option<String>,
    /// Damage of the undo log, as text.
    pub damage: Option<String>,
    /// Whether the command line is in effect.
    pub reboot: RebootStatus,
}

impl TuneStatus {
    /// The document's name.
    pub const DOCUMENT: &str = "lowlat-status";
    /// The present version of the format.
    pub const SCHEMA_VERSION: u32 = 1;
}

/// The plan in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanInForce {
    /// [`Plan::id`].
    pub plan_id: String,
    /// The profile's name.
    pub profile: String,
    /// The role that the host is judged by while it is in force.
    pub role: Role,
    /// Number of changes of the plan.
    pub change_count: usize,
    /// When it was applied, milliseconds since 1970.
    pub applied_unix_ms: u64,
    /// Its age in seconds of the host's clock; none if the clock was set back since.
    pub age_s: Option<u64>,
    /// Whether it was applied in the running boot.
    pub is_of_this_boot: bool,
    /// Whether it was made for another host, whose copy this one is.
    pub is_of_other_host: bool,
    /// Whether every step was applied.
    pub is_complete: bool,
    /// Whether it waits for confirmation.
    pub confirmation: Confirmation,
    /// Earlier plans for `rollback --to`, the latest first.
    pub earlier: Vec<String>,
    /// Changes that were refused: lasting ones when it was applied, others in this boot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
}

/// Whether a plan waits for confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Confirmation {
    /// It needs none, or is confirmed.
    NotNeeded,
    /// It must be confirmed, or it is rolled back.
    Waiting {
        /// Seconds after each boot within which it must be confirmed.
        within_s: u64,
        /// Seconds left in this boot; none if the timer is not running or cannot be read.
        left_s: Option<u64>,
    },
}

/// A systemd unit that lowlat wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitStatus {
    /// Its name.
    pub name: String,
    /// Whether its file exists.
    pub is_there: Reading<bool>,
    /// Whether it, or the timer that starts it, starts at boot.
    pub is_enabled: bool,
}

/// Steps of one part of a plan and one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCount {
    /// The plan of the undo log: "9f86d081884c7d65/files".
    pub plan: String,
    /// The kind of target.
    pub kind: String,
    /// Their number.
    pub count: usize,
}

/// Whether the plan's command line is in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RebootStatus {
    /// The plan needs no reboot.
    NotNeeded,
    /// A reboot is needed.
    Pending,
    /// No plan is in force any more, but the kernel keeps the rolled-back parameters until the reboot.
    PendingRollback,
    /// After the reboot: the kernel has the parameters.
    Done,
    /// After the reboot: the kernel lacks parameters.
    Ineffective,
    /// It was not written, or not completely: [`PlanInForce::refused`] has the reason.
    Refused,
    /// Unknown.
    Unknown,
}

/// Whether the plan's command line is in effect, from the running kernel's line and whether the plan was
/// applied in this boot.
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
