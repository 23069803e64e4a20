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

mod file_key;
mod gathering;
mod huge_pages;
mod idle;
mod irq;
mod kthread;
mod mask;
mod nic;
mod owned_file;
mod service;
#[cfg(test)]
mod tests;
mod tuned;
mod value;

use gathering::Gathering;
use lowlat_host::HostSnapshot;
use lowlat_plan::Plan;
use lowlat_settings::change::{Moment, Target};
use lowlat_sys::undo::{Step, UndoError, UndoLog};

/// Which changes are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The profile that TuneD runs. It comes behind [`Part::Files`], which has the profile's own file, and before
    /// everything that is read from the kernel: TuneD takes its old profile back before it applies the new one.
    Tuned,
    /// Where new interrupts go, then the number of queues of interfaces. It comes before [`Part::RunTime`], and the
    /// host is read again between: a driver that changes it takes interrupts away and brings others, with other
    /// numbers.
    Queues,
    /// What takes effect at once: values of the kernel, threads, interrupts, interfaces, services. A service's
    /// enablement goes along with its run state, since both are one thing to the log; [`Part::Files`] has none.
    ///
    /// This part is prepared and applied again at each boot, for changes of the moments [`Moment::NowAndAtBoot`] and
    /// [`Moment::Now`].
    RunTime,
    /// Files that keep it for later boots. The boot loader's are not among them, nor services' enablement.
    Files,
}

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
        } else if part == Part::RunTime && matches!(planned.target, Target::NicChannels { .. }) {
            nic::queues_must_be_set(&mut gathering, change, planned);
        }
    }
    Ok(gathering.finish())
}

/// Whether a change is one of the part. Where queues change, the mask for new interrupts is set before them as well as
/// with the rest, which then finds it as wanted.
fn is_in(target: &Target, part: Part, plan: &Plan) -> bool {
    let is_queue = |target: &Target| part_of(target) == Some(Part::Queues);
    part_of(target) == Some(part)
        || part == Part::Queues
            && *target == Target::DefaultIrqAffinity
            && plan.changes.iter().any(|change| is_queue(&change.target))
}

/// Where a change belongs; the command line is the boot loader's.
fn part_of(target: &Target) -> Option<Part> {
    match target {
        Target::CommandLine { .. } => None,
        Target::TunedProfile => Some(Part::Tuned),
        Target::NicChannels { .. } => Some(Part::Queues),
        Target::FileKey { .. } | Target::OwnedFile { .. } => Some(Part::Files),
        _ => Some(Part::RunTime),
    }
}

fn one(gathering: &mut Gathering<'_>, plan: &Plan, change: usize) -> Result<(), UndoError> {
    let Some(planned) = plan.changes.get(change) else { return Ok(()) };
    let after = planned.after.as_str();
    match &planned.target {
        Target::CommandLine { .. } => Ok(()),
        Target::Sysctl { key } => value::sysctl(gathering, change, key, after),
        Target::File { path } => value::file(gathering, change, path, after),
        Target::IdleState { name, cpus } => idle::prepare(gathering, change, name, cpus, after),
        Target::HugePages { node, size_bytes } => {
            huge_pages::prepare(gathering, change, *node, *size_bytes, after)
        }
        Target::IrqAffinity { actions, .. } => irq::prepare(gathering, plan, change, actions),
        Target::DefaultIrqAffinity => mask::default_affinity(gathering, change, after),
        Target::KernelThreadAffinity { comm, .. } | Target::KernelThreadScheduling { comm, .. } => {
            kthread::prepare(gathering, plan, change, comm)
        }
        Target::WorkqueueCpus { name } => mask::workqueue(gathering, change, name.as_deref(), after),
        Target::Service { unit } => service::prepare(gathering, change, unit, after),
        Target::TunedProfile => tuned::profile(gathering, change, after),
        Target::NicChannels { nic, field } => nic::channels(gathering, change, nic, field, after),
        Target::NicCoalescing { nic, field } => nic::coalescing(gathering, change, nic, field, after),
        Target::NicFeature { nic, feature } => nic::feature(gathering, change, nic, feature, after),
        Target::NicRps { nic, queue } => mask::rps(gathering, change, nic, queue, after),
        Target::NicXps { nic, queue } => mask::xps(gathering, change, nic, queue, after),
        Target::FileKey { path, .. } => file_key::prepare(gathering, plan, change, path),
        Target::OwnedFile { path } => owned_file::prepare(gathering, change, path, after),
    }
}
