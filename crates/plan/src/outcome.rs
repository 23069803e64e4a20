//! What came of applying a plan, of taking it back, and what is in force: as documents.

use super::Plan;
use lowlat_host::Reading;
use serde::{Deserialize, Serialize};

/// What applying a plan has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyOutcome {
    /// What the document is: [`ApplyOutcome::DOCUMENT`].
    pub document: String,
    /// Version of the document's shape: [`ApplyOutcome::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// [`Plan::id`] of the plan now in force.
    pub plan_id: String,
    /// Whether anything was written.
    pub is_changed: bool,
    /// What became of each change, in the plan's order.
    pub changes: Vec<ChangeOutcome>,
    /// The boot loader whose configuration holds the command line; none when the plan has none for it.
    pub boot_loader: Option<String>,
    /// Units of systemd that keep the plan in force: their files.
    pub units: Vec<String>,
    /// Within how many seconds of the next boot the plan must be confirmed.
    pub confirm_within_s: Option<u64>,
    /// Whether a reboot completes it.
    pub needs_reboot: bool,
    /// Other things that the user should know, a sentence or two each.
    pub notes: Vec<String>,
}

impl ApplyOutcome {
    /// What the document calls itself.
    pub const DOCUMENT: &str = "lowlat-apply";
    /// The present version of the shape.
    pub const SCHEMA_VERSION: u32 = 1;

    /// Changes of one fate.
    pub fn count(&self, fate: Fate) -> usize {
        self.changes.iter().filter(|change| change.fate == fate).count()
    }
}

/// What became of one change of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeOutcome {
    /// The change's place in [`Plan::changes`].
    pub change: usize,
    /// What became of it.
    pub fate: Fate,
    /// Why it was refused, one reason for each part that was; empty otherwise.
    pub reasons: Vec<String>,
}

/// What became of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was so already.
    Unchanged,
    /// It was done now.
    Done,
    /// A part of it was not done.
    Refused,
}

/// What taking plans back has done, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackOutcome {
    /// What the document is: [`RollbackOutcome::DOCUMENT`].
    pub document: String,
    /// Version of the document's shape: [`RollbackOutcome::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Whether it only looks: nothing was changed.
    pub is_preview: bool,
    /// What got its old state back, the last change first.
    pub restored: Vec<Restored>,
    /// How many were as before already.
    pub unchanged_count: usize,
    /// How many went with an earlier boot: values of the kernel.
    pub expired_count: usize,
    /// What somebody else has changed since; it was left.
    pub conflicts: Vec<ThreeWay>,
    /// What could not be restored.
    pub failures: Vec<NotRestored>,
    /// What is left to somebody else on purpose, with the reason.
    pub given_up: Vec<NotRestored>,
    /// Directories that lowlat made and that hold other files by now.
    pub directories_left: Vec<String>,
    /// Why the undo log cannot be relied on, as a clause: steps that it has lost are not restored.
    pub damage: Option<String>,
    /// Lasting changes by lowlat that no record can undo any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<NotRestored>,
    /// The plan in force after it.
    pub in_force: Option<String>,
    /// Whether a reboot completes it.
    pub needs_reboot: bool,
    /// Other things that the user should know.
    pub notes: Vec<String>,
}

impl RollbackOutcome {
    /// What the document calls itself.
    pub const DOCUMENT: &str = "lowlat-rollback";
    /// The present version of the shape.
    pub const SCHEMA_VERSION: u32 = 1;

    /// Whether everything is as before, as far as the log tells.
    pub fn is_complete(&self) -> bool {
        self.conflicts.is_empty()
            && self.failures.is_empty()
            && self.directories_left.is_empty()
            && self.damage.is_none()
            && self.remaining.is_empty()
    }
}

/// One thing that got its old state back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The plan of the undo log: "9f86d081884c7d65/files".
    pub plan: String,
    /// The kind of target: "file", "value", "service".
    pub kind: String,
    /// Which one; a path for files and values.
    pub name: String,
}

/// One thing that did not get its old state back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRestored {
    /// Which one.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Something that is neither as lowlat found it nor as lowlat left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreeWay {
    /// Which one; a path for files and values.
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

/// A state for people to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StateText {
    /// Nothing is there.
    Absent,
    /// A value of the kernel, of a service, of a thread.
    Value {
        /// It.
        text: String,
    },
    /// A text file.
    File {
        /// Its text, of a long one the beginning.
        text: String,
        /// Whether that is not all.
        is_cut: bool,
        /// Owner, group, mode: "0:0 0644".
        attributes: String,
    },
    /// A file that is no text.
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
        /// Where to.
        to: String,
    },
}

/// What is in force on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneStatus {
    /// What the document is: [`TuneStatus::DOCUMENT`].
    pub document: String,
    /// Version of the document's shape: [`TuneStatus::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The plan in force; absent when nothing is, denied when only root may read it.
    pub in_force: Reading<PlanInForce>,
    /// Units of systemd that keep it in force.
    pub units: Vec<UnitStatus>,
    /// Steps of the undo log that are in force, counted.
    pub steps: Reading<Vec<StepCount>>,
    /// A plan that was begun and neither finished nor taken back.
    pub unfinished: Vec<String>,
    /// The end of the undo log that a crash cut off, in words: harmless.
    pub torn: Option<String>,
    /// Damage of the undo log, in words.
    pub damage: Option<String>,
    /// Whether the command line is in effect.
    pub reboot: RebootStatus,
}

impl TuneStatus {
    /// What the document calls itself.
    pub const DOCUMENT: &str = "lowlat-status";
    /// The present version of the shape.
    pub const SCHEMA_VERSION: u32 = 1;
}

/// The plan in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanInForce {
    /// [`Plan::id`].
    pub plan_id: String,
    /// The profile, as a word.
    pub profile: String,
    /// How many changes the plan has.
    pub change_count: usize,
    /// When it was applied, milliseconds since 1970.
    pub applied_unix_ms: u64,
    /// How long ago, seconds by the host's clock; none when the clock was set back since.
    pub age_s: Option<u64>,
    /// Whether it was applied in the running boot.
    pub is_of_this_boot: bool,
    /// Whether every step was applied.
    pub is_complete: bool,
    /// Whether it waits for its confirmation.
    pub confirmation: Confirmation,
    /// Plans below it to which `rollback --to` can go back, the latest first.
    pub earlier: Vec<String>,
}

/// Whether a plan waits for its confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Confirmation {
    /// None was asked for, or it was given.
    NotNeeded,
    /// It must be confirmed, or it is taken back.
    Waiting {
        /// Within how many seconds of each boot.
        within_s: u64,
        /// Seconds left in this boot; none when the timer does not run or cannot be asked.
        left_s: Option<u64>,
    },
}

/// A unit of systemd that lowlat wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitStatus {
    /// Its name.
    pub name: String,
    /// Whether its file is there.
    pub is_there: Reading<bool>,
    /// Whether it starts at boot; of a service that a timer starts, whether the timer does.
    pub is_enabled: bool,
}

/// Steps of one part of a plan and one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCount {
    /// The plan of the undo log: "9f86d081884c7d65/files".
    pub plan: String,
    /// The kind of target.
    pub kind: String,
    /// How many.
    pub count: usize,
}

/// Whether the plan's command line is in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RebootStatus {
    /// Nothing of the plan needs it.
    NotNeeded,
    /// It is to come.
    Pending,
    /// Nothing is in force any more, and until the reboot the kernel has the parameters that were taken back.
    PendingRollback,
    /// It came, and the kernel has the parameters.
    Done,
    /// It came, and the kernel lacks parameters.
    Ineffective,
    /// It cannot be told.
    Unknown,
}

/// Whether the command line of the plan is in effect, told by the line of the running kernel and by whether the plan was
/// applied in the running boot.
pub fn reboot_status(
    plan: &Plan,
    line: &lowlat_host::cmdline::CommandLine,
    is_of_this_boot: bool,
) -> RebootStatus {
    let tokens = plan.changes.iter().find_map(|change| match &change.target {
        lowlat_settings::change::Target::CommandLine { tokens } => Some(tokens),
        _ => None,
    });
    let Some(tokens) = tokens else { return RebootStatus::NotNeeded };
    match (tokens.iter().all(|token| super::stands(line, token)), is_of_this_boot) {
        (true, _) => RebootStatus::Done,
        (false, true) => RebootStatus::Pending,
        (false, false) => RebootStatus::Ineffective,
    }
}
