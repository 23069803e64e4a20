//! Interrupts: where each really goes, not where it was asked to.

use super::judge::{Look, Scene, unreadable};
use super::{Row, Standing, culprit};
use lowlat_host::{CpuId, CpuSet, Reading, snapshot::Irq};
use lowlat_settings::change::{Change, Target};

/// How an interrupt stands against the CPUs that it may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Where {
    /// It goes where it may, and is asked to.
    Inside,
    /// It was asked to move, and does when it fires the next time.
    Moves,
    /// It was asked to move, and does not; why.
    Stays(String),
    /// It is asked to go elsewhere.
    AskedElsewhere(CpuSet),
    /// Its affinity could not be read.
    Unread,
}

/// The interrupt as it was read last.
pub(super) fn latest<'a>(scene: &Scene<'a>, irq: &'a Irq) -> &'a Irq {
    let later = scene.evidence.interrupts_later.as_ref();
    let found = later.and_then(|later| later.irqs.iter().find(|other| other.number == irq.number));
    found.filter(|other| other.actions == irq.actions).unwrap_or(irq)
}

/// Where an interrupt goes, against `wanted`.
pub(super) fn stands(scene: &Scene<'_>, irq: &Irq, wanted: &CpuSet) -> Where {
    let now = latest(scene, irq);
    let is_inside = |cpus: &CpuSet| within(scene, cpus, wanted);
    match (&now.affinity, &now.effective_affinity) {
        (Reading::Known(asked), Reading::Known(goes)) if is_inside(asked) && is_inside(goes) => Where::Inside,
        (Reading::Known(asked), Reading::Known(goes)) if is_inside(asked) => {
            // A controller that cannot be told between interrupts moves with the next one.
            match fired_elsewhere(scene, irq, wanted) {
                Some((count, cpu)) if is_inside_before(irq, &is_inside) => Where::Stays(format!(
                    "it was asked to move and fired {count} times on CPU {cpu} since, and still goes to {goes:#}"
                )),
                _ => Where::Moves,
            }
        }
        (Reading::Known(asked), Reading::Known(_)) => Where::AskedElsewhere(asked.clone()),
        // Kernels without CONFIG_GENERIC_IRQ_EFFECTIVE_AFF_MASK go where they are asked to.
        (Reading::Known(asked), _) if is_inside(asked) => Where::Inside,
        (Reading::Known(asked), _) => Where::AskedElsewhere(asked.clone()),
        _ => Where::Unread,
    }
}

fn is_inside_before(irq: &Irq, is_inside: &impl Fn(&CpuSet) -> bool) -> bool {
    irq.affinity.known().is_some_and(is_inside)
}

/// Whether an interrupt goes to `wanted` only, whatever it was asked for.
pub(super) fn goes_inside(scene: &Scene<'_>, irq: &Irq, wanted: &CpuSet) -> bool {
    irq.effective_affinity.known().is_some_and(|cpus| within(scene, cpus, wanted))
}

/// CPUs that do not run are nobody's target.
fn within(scene: &Scene<'_>, cpus: &CpuSet, wanted: &CpuSet) -> bool {
    let online = &scene.host.topology.online;
    let cpus = if online.is_empty() { cpus.clone() } else { cpus.intersection(online) };
    cpus.is_subset(wanted)
}

/// How often it fired outside of `wanted` between the two looks, and on which CPU most.
fn fired_elsewhere(scene: &Scene<'_>, first: &Irq, wanted: &CpuSet) -> Option<(u64, CpuId)> {
    scene.evidence.interrupts_later.as_ref()?;
    let now = latest(scene, first);
    let moved = now.count_by_cpu.iter().filter(|(cpu, _)| !wanted.contains(**cpu)).map(|(cpu, count)| {
        let before = first.count_by_cpu.get(cpu).copied().unwrap_or(0);
        (count.saturating_sub(before), *cpu)
    });
    moved.filter(|(count, _)| *count > 0).max()
}

/// The interrupt that a change means now. Numbers change with each boot, handlers' names do not; of several with the
/// same names the change's place among its like decides.
fn find<'a>(scene: &Scene<'a>, at: usize, number: u32, actions: &[String]) -> Option<&'a Irq> {
    let irqs = || scene.host.interrupts.irqs.iter().filter(|irq| irq.actions == actions);
    if let Some(irq) = irqs().find(|irq| irq.number == number) {
        return Some(irq);
    }
    let is_like = |change: &&Change| matches!(&change.target, Target::IrqAffinity { actions: other, .. } if other == actions);
    let place = scene.plan.changes.iter().take(at).filter(is_like).count();
    irqs().nth(place)
}

pub(super) fn row(scene: &Scene<'_>, at: usize, change: &Change, number: u32, actions: &[String]) -> Row {
    let Some(irq) = find(scene, at, number, actions) else {
        let what = format!("IRQ {}", actions.join("+"));
        let look =
            Look { at, change, what, observed: Reading::Absent, is_planned: false, claims: Vec::new() };
        if scene.host.interrupts.irqs.is_empty() {
            return look.row(Standing::Unreadable, "no interrupt is to be seen in /proc/interrupts at all");
        }
        return look.row(Standing::Gone, "no interrupt of this name is set up now");
    };
    let wanted = CpuSet::parse_list(&change.after).unwrap_or_default();
    let now = latest(scene, irq);
    let look = |observed: &Reading<CpuSet>, is_planned: bool| Look {
        at,
        change,
        what: format!("IRQ {}", irq.label()),
        observed: observed.clone().map(|cpus| cpus.to_list()),
        is_planned,
        claims: culprit::of_irq(scene, observed.known()),
    };
    let goes = now.goes_to();
    match stands(scene, irq, &wanted) {
        Where::Inside => look(&goes, true).judge(scene),
        Where::Moves => look(&goes, false).row(
            Standing::MovesLater,
            format!("asked for {wanted:#}: it moves at its next interrupt"),
        ),
        _ if now.counts_as_managed() => look(&goes, false).row(
            Standing::Ineffective,
            "the kernel manages this interrupt and refuses to move it with EIO; isolcpus=managed_irq keeps it off",
        ),
        Where::Stays(why) => look(&goes, false).row(Standing::Ineffective, why),
        Where::AskedElsewhere(asked) => look(&Reading::Known(asked), false).judge(scene),
        Where::Unread => {
            let note = unreadable(&now.affinity);
            look(&now.affinity, false).row(Standing::Unreadable, note)
        }
    }
}
