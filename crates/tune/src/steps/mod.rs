//! From the changes of a plan to steps of the undo log: which path, which number, what is there now. One file per kind
//! of thing that is changed.
//!
//! A plan names things as they keep their names over a reboot: an interrupt by its handlers, a thread by its name, an idle
//! state by the driver's word. Preparing finds them on the host as it is now, so that the same plan serves at each
//! later boot as well. What is as wanted already becomes a step all the same; the log changes and records nothing for
//! it.
//!
//! Two changes of one place are merged into one step when both want the same, and refused
//! ([`UndoError::Twice`]) when they do not. Lines of one file are one step.

mod ethtool;
mod file_key;
mod gathering;
mod idle;
mod irq;
mod kthread;
mod mask;
mod owned_file;
mod service;
#[cfg(test)]
mod tests;
mod tuned;
mod value;

use gathering::Gathering;
use lowlat_host::HostSnapshot;
use lowlat_plan::Plan;
pub use lowlat_settings::change::Part;
use lowlat_settings::change::{Mechanism, Moment, Target};
use lowlat_sys::undo::{Step, UndoError, UndoLog};

/// One step, for one change or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The change's place in [`Plan::changes`].
    pub change: usize,
    /// Places of further changes that the same step carries out: other lines of the same file, or the same value once
    /// more.
    pub also: Vec<usize>,
    /// The step.
    pub step: Step,
}

/// A change that cannot be prepared on this host now, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPrepared {
    /// The change's place in [`Plan::changes`].
    pub change: usize,
    /// Why: "interrupt nvme0q0 is no longer there".
    pub reason: String,
}

/// Something to know of a change that was prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The change's place in [`Plan::changes`].
    pub change: usize,
    /// What: "3 interrupts are called ens2; 41 was taken for 25, by their order".
    pub text: String,
}

/// The steps of a part of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preparation {
    /// In the order in which they are to be applied.
    pub steps: Vec<Prepared>,
    /// What is left. A change can stand here and among the steps: one CPU of several is offline.
    pub left: Vec<NotPrepared>,
    /// What was decided where the plan does not tell.
    pub notes: Vec<Note>,
}

/// Makes steps of a part of `plan` for the host as it is now. Interrupts and threads are found by name, since their
/// numbers change with each boot. The old state of each step is what `log` reads now.
///
/// # Errors
/// [`UndoError::Twice`] when two changes want different things of one place. What the host does not have, or does not
/// let be read, is no error: it is left, with the reason.
pub fn prepare(
    plan: &Plan,
    host: &HostSnapshot,
    log: &UndoLog,
    part: Part,
) -> Result<Preparation, UndoError> {
    let mut gathering = Gathering::new(host, log);
    for (change, planned) in plan.changes.iter().enumerate() {
        // Interrupts, threads and lines of files of one name are dealt with together, where the first of them stands.
        let is_here =
            is_in(&planned.target, part, plan) && (part == Part::Files || planned.moment != Moment::AtBoot);
        if is_here {
            one(&mut gathering, plan, change)?;
        } else if part == Part::RunTime && planned.target.kind().part() == Part::Queues {
            ethtool::must_be_set(&mut gathering, change, planned);
        }
    }
    Ok(gathering.finish())
}

/// Whether a change is one of the part. Where queues change, the mask for new interrupts is set before them as well as
/// with the rest, which then finds it as wanted.
fn is_in(target: &Target, part: Part, plan: &Plan) -> bool {
    let is_queue = |target: &Target| target.kind().part() == Part::Queues;
    target.kind().part() == part
        || part == Part::Queues
            && *target == Target::DefaultIrqAffinity
            && plan.changes.iter().any(|change| is_queue(&change.target))
}

fn one(gathering: &mut Gathering<'_>, plan: &Plan, change: usize) -> Result<(), UndoError> {
    let Some(planned) = plan.changes.get(change) else { return Ok(()) };
    let after = planned.after.as_str();
    let kind = planned.target.kind();
    // A plan may come from anywhere: names and values are checked as when it was made.
    if let Some(why) = kind.misfit(after) {
        gathering.leave(change, format!("this plan is wrong, make a new one: {why}"));
        return Ok(());
    }
    match kind.mechanism() {
        Mechanism::BootLoader { .. } => Ok(()),
        Mechanism::Value { path } => value::prepare(gathering, change, &path, after),
        Mechanism::Mask { path } => mask::prepare(gathering, change, &path, after),
        Mechanism::Ethtool { nic, group, name } => {
            ethtool::prepare(gathering, change, (nic, group, name), after)
        }
        Mechanism::IdleState { name, cpus } => idle::prepare(gathering, change, name, cpus, after),
        Mechanism::Interrupt { actions, .. } => irq::prepare(gathering, plan, change, actions),
        Mechanism::ThreadAffinity { comm, .. } | Mechanism::ThreadScheduling { comm, .. } => {
            kthread::prepare(gathering, plan, change, comm)
        }
        Mechanism::Unit { name } => service::prepare(gathering, change, name, after),
        Mechanism::TunedProfile => tuned::profile(gathering, change, after),
        Mechanism::FileKey { path, .. } => file_key::prepare(gathering, plan, change, path),
        Mechanism::OwnedFile { path } => owned_file::prepare(gathering, change, path, after),
    }
}
