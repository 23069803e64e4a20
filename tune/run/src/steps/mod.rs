//! Turns the changes of a plan into steps of the undo log with paths, numbers and present states of this host. One file
//! per kind of target.
//!
//! A plan uses names that survive a reboot: an interrupt's handlers, a thread's name, an idle state's name.
//! Preparing finds them on the present host, so the same plan works after each later boot. A value that is
//! already correct becomes a step too, for which the log changes and records nothing.
//!
//! Two changes of one place become one step if they have the same value, and are rejected otherwise
//! ([`UndoError::twice`]). Lines of one file are one step.

mod ethtool;
mod file_key;
mod gathering;
mod idle;
mod irq;
mod kthread;
mod mask;
mod owned_file;
#[cfg(test)]
mod tests;
mod value;

use crate::targets::{
    cpuset::Partitions, kthread::KernelThreads, resctrl::CacheGroups, service::Services,
    tuned_profile::TunedProfile, user_processes::UserProcesses,
};
use gathering::{Gathering, cpu_list};
use lowlat_host::HostSnapshot;
use lowlat_plan::Plan;
pub use lowlat_settings::change::Part;
use lowlat_settings::change::{Change, Mechanism, Moment, Target, servers};
use lowlat_undo::{State, TargetSpec, UndoError, UndoLog, UndoStep};

/// One step, for one change or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The change's index in [`Plan::changes`].
    pub change: usize,
    /// Indexes of further changes that the same step applies: other lines of the same file, or the same
    /// value again.
    pub also: Vec<usize>,
    pub step: UndoStep,
}

impl Prepared {
    /// The indexes of its changes.
    pub fn changes(&self) -> impl Iterator<Item = usize> {
        self.also.iter().copied().chain([self.change])
    }
}

/// A change that cannot be prepared on this host now, or only in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPrepared {
    /// The change's index in [`Plan::changes`].
    pub change: usize,
    /// Reason, such as "interrupt nvme0q0 no longer exists".
    pub reason: String,
}

/// A note on a prepared change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The change's index in [`Plan::changes`].
    pub change: usize,
    /// Text, such as "3 interrupts are named ens2; 41 is used for 25, by their order".
    pub text: String,
}

/// The steps of a part of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preparation {
    /// The steps, in the order in which they are applied.
    pub steps: Vec<Prepared>,
    /// Skipped changes. A change can be here and among the steps, for example if one of several CPUs is
    /// offline.
    pub left: Vec<NotPrepared>,
    /// Decisions that the plan leaves open.
    pub notes: Vec<Note>,
}

/// Turns a part of `plan` into steps for the present host. Interrupts and threads are found by name, because
/// their numbers change with each boot. The old state of each step is what `log` reads now.
///
/// # Errors
/// [`UndoError::twice`] if two changes set one place to different values. Missing and unreadable targets are
/// no errors: they are skipped, with the reason.
pub fn prepare(
    plan: &Plan,
    host: &HostSnapshot,
    log: &UndoLog,
    part: Part,
) -> Result<Preparation, UndoError> {
    let mut gathering = Gathering::new(plan, host, log);
    for (change, planned) in in_order(plan) {
        // Interrupts, threads and lines of one name are prepared together, at the first of them.
        let is_here =
            is_in(&planned.target, part, plan) && (part == Part::Files || planned.moment != Moment::AtBoot);
        if is_here {
            one(&mut gathering, change, planned)?;
        } else if part == Part::RunTime && planned.target.kind().facts().part == Part::Queues {
            ethtool::must_be_set(&mut gathering, change, planned);
        }
    }
    Ok(gathering.finish())
}

/// The changes in the order of applying. The limit on what deadline servers may reserve comes first, because kernels
/// refuse to change the servers below it; a rollback restores it last. Partitions come last. Those of caches need their
/// mount. A rollback starts with those of CPUs: while one exists, the kernel keeps its CPUs out of other masks, whose
/// old values could not be restored.
fn in_order(plan: &Plan) -> Vec<(usize, &Change)> {
    let place = |change: &Change| match &change.target {
        Target::Sysctl { key } if key == servers::LIMIT => 0,
        Target::CpusetPartition { .. } | Target::CacheGroup { .. } => 2,
        _ => 1,
    };
    let mut all: Vec<_> = plan.changes.iter().enumerate().collect();
    all.sort_by_key(|(_, change)| place(change));
    all
}

/// True if a change belongs to the part. If queues change, the default affinity of interrupts is set before them too;
/// the later part then finds it set.
fn is_in(target: &Target, part: Part, plan: &Plan) -> bool {
    let is_queue = |target: &Target| target.kind().facts().part == Part::Queues;
    target.kind().facts().part == part
        || part == Part::Queues
            && *target == Target::DefaultIrqAffinity
            && plan.changes.iter().any(|change| is_queue(&change.target))
}

fn one(gathering: &mut Gathering<'_>, change: usize, planned: &Change) -> Result<(), UndoError> {
    let after = planned.after.as_str();
    let kind = planned.target.kind();
    // A plan may come from any source: names and values are checked again.
    if let Some(why) = kind.misfit(after) {
        gathering.leave(change, format!("this plan is wrong, make a new one: {why}"));
        return Ok(());
    }
    match kind.facts().mechanism {
        Mechanism::BootLoader { .. } => Ok(()),
        Mechanism::Value { path } => value::prepare(gathering, change, &path),
        Mechanism::Mask { path } => mask::prepare(gathering, change, &path),
        Mechanism::Ethtool { nic, group, name } => ethtool::prepare(gathering, change, (nic, group, name)),
        Mechanism::IdleState { name, cpus } => idle::prepare(gathering, change, name, cpus),
        Mechanism::Interrupt { actions, .. } => irq::prepare(gathering, change, actions),
        Mechanism::ThreadAffinity { comm, .. } => kthread::prepare(gathering, KernelThreads::Affinity, comm),
        Mechanism::ThreadScheduling { comm, .. } => {
            kthread::prepare(gathering, KernelThreads::Scheduling, comm)
        }
        Mechanism::CpusetPartition { slice } => match cpu_list(gathering, change) {
            Some(_) => formed(gathering, change, Partitions::spec(slice)),
            None => Ok(()),
        },
        Mechanism::CacheGroup { group } => formed(gathering, change, CacheGroups::spec(group)),
        // Run state and enablement are one value ("inactive, disabled") of the run-time part. After a later boot the unit
        // is disabled and not running, so the step changes nothing.
        Mechanism::Unit { name } => gathering.value(change, Services::spec(name), after),
        Mechanism::UserProcesses => match cpu_list(gathering, change) {
            Some(_) => gathering.value(change, UserProcesses::spec(), after),
            None => Ok(()),
        },
        // Profile and mode are one value: "lowlat manual".
        Mechanism::TunedProfile => gathering.value(change, TunedProfile::spec(), after),
        Mechanism::FileKey { path, .. } => file_key::prepare(gathering, change, path),
        Mechanism::OwnedFile { path } => owned_file::prepare(gathering, change, path),
    }
}

/// Prepares a value whose target does not exist before it is formed.
fn formed(gathering: &mut Gathering<'_>, change: usize, spec: TargetSpec) -> Result<(), UndoError> {
    let Some(old) = gathering.present(change, &spec)? else { return Ok(()) };
    gathering.step(change, spec, old, State::Value(gathering.after(change).to_owned()))
}
