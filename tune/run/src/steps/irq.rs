//! Interrupts, found by the names of their handlers: their numbers change with each boot.

use super::{
    Gathering,
    gathering::cpu_list,
    mask,
    value::{Paired, numbered, paired},
};
use lowlat_host::{Reading, snapshot::Irq};
use lowlat_plan::Plan;
use lowlat_settings::change::{Part, Target};
use lowlat_undo::{Comparison, State, TargetSpec, UndoError};

/// Prepares all interrupts of the plan with these handlers, at the first of them.
pub(super) fn prepare(
    gathering: &mut Gathering<'_>,
    change: usize,
    actions: &[String],
) -> Result<(), UndoError> {
    if actions.is_empty() {
        gathering.leave(change, "the interrupt has no handler, so it cannot be identified");
        return Ok(());
    }
    if !gathering.is_first_of("irq", &actions.join("\n")) {
        return Ok(());
    }
    let wanted = numbered(gathering.plan, |target| match target {
        Target::IrqAffinity { irq, actions: found } if found == actions => Some(*irq),
        _ => None,
    });
    let found: Vec<&Irq> =
        gathering.host.interrupts.irqs.iter().filter(|irq| irq.actions == actions).collect();
    let (all_found, name) = (found.len(), actions.join("+"));
    let is_ambiguous = wanted.len() > 1 || all_found > 1;
    // First those with unchanged numbers, then the others in the order of their numbers.
    let Paired { mut pairs, renumbered, mut others } = paired(&wanted, found, |irq| irq.number);
    for wanted in renumbered {
        let Some(irq) = others.next() else {
            match nic_of(gathering.plan, actions) {
                Some(nic) => gathering.note(
                    wanted.change,
                    format!(
                        "interrupt {} {name} was removed with queues of {nic}; its replacements start with the \
                         default affinity",
                        wanted.number
                    ),
                ),
                None => gathering
                    .leave(wanted.change, format!("interrupt {} {name} no longer exists", wanted.number)),
            }
            continue;
        };
        if is_ambiguous {
            let (old, new) = (wanted.number, irq.number);
            let text =
                format!("{all_found} interrupts are named {name}; {new} is used for {old}, by their order");
            gathering.note(wanted.change, text);
        }
        pairs.push((wanted, irq));
    }
    for (wanted, irq) in pairs {
        one(gathering, wanted.change, irq)?;
    }
    Ok(())
}

/// The interface of the handlers, if the plan changes its number of queues. Drivers name handlers after the
/// interface.
fn nic_of<'a>(plan: &'a Plan, actions: &[String]) -> Option<&'a str> {
    let mut nics = plan.changes.iter().filter_map(|change| match &change.target {
        Target::Nic(target) if target.kind.part == Part::Queues => Some(target.nic.as_str()),
        _ => None,
    });
    nics.find(|nic| actions.iter().any(|action| action.split(['-', '.', ':', '@']).any(|part| part == *nic)))
}

fn one(gathering: &mut Gathering<'_>, change: usize, irq: &Irq) -> Result<(), UndoError> {
    if irq.is_managed == Reading::Known(true) {
        let label = irq.label();
        gathering.leave(
            change,
            format!("interrupt {label} is now managed by the kernel, which does not allow moving it"),
        );
        return Ok(());
    }
    if cpu_list(gathering, change).is_none() {
        return Ok(());
    }
    let folder = format!("/proc/irq/{}", irq.number);
    let list = TargetSpec::value(format!("{folder}/smp_affinity_list"), Comparison::CpuList);
    match gathering.present(change, &list)? {
        // Kernels and captures without the list form have the mask.
        Some(State::Absent) => mask::prepare(gathering, change, &format!("{folder}/smp_affinity")),
        Some(_) => gathering.value(change, list, gathering.after(change)),
        None => Ok(()),
    }
}
