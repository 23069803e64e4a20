//! Interrupts: the CPUs on which they actually fire, not the requested ones.

use super::{
    Row, Standing, culprit,
    judge::{Scene, UnjudgedTarget, unreadable},
};
use lowlat_host::{CpuId, CpuSet, Reading, snapshot::Irq};
use lowlat_settings::change::{Change, Target};

/// An interrupt compared with its wanted CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Where {
    /// Its actual and requested CPUs are wanted ones.
    Inside,
    /// The move was requested and happens when it next fires.
    Moves,
    /// The move was requested but does not happen, with the reason.
    Stays(String),
    AskedElsewhere(CpuSet),
    /// Its affinity could not be read.
    Unread,
}

/// The latest reading of the interrupt.
pub(super) fn latest<'a>(scene: &Scene<'a>, irq: &'a Irq) -> &'a Irq {
    let later = scene.evidence.interrupts_later.as_ref();
    let found = later.and_then(|later| later.irqs.iter().find(|other| other.number == irq.number));
    found.filter(|other| other.actions == irq.actions).unwrap_or(irq)
}

/// Compares an interrupt with `wanted`.
pub(super) fn stands(scene: &Scene<'_>, irq: &Irq, wanted: &CpuSet) -> Where {
    let now = latest(scene, irq);
    let is_inside = |cpus: &CpuSet| within(scene, cpus, wanted);
    match (&now.affinity, &now.effective_affinity) {
        (Reading::Known(asked), Reading::Known(goes)) if is_inside(asked) && is_inside(goes) => Where::Inside,
        (Reading::Known(asked), Reading::Known(goes)) if is_inside(asked) => {
            // A controller that cannot be reprogrammed between interrupts moves with the next one.
            match fired_elsewhere(scene, irq, wanted) {
                Some((count, cpu)) if irq.affinity.known().is_some_and(is_inside) => Where::Stays(format!(
                    "the move was requested, but it has since fired {count} times on CPU {cpu} and still goes to \
                     {goes:#}"
                )),
                _ => Where::Moves,
            }
        }
        (Reading::Known(asked), Reading::Known(_)) => Where::AskedElsewhere(asked.clone()),
        // Without CONFIG_GENERIC_IRQ_EFFECTIVE_AFF_MASK the requested CPUs are the actual ones.
        (Reading::Known(asked), _) if is_inside(asked) => Where::Inside,
        (Reading::Known(asked), _) => Where::AskedElsewhere(asked.clone()),
        _ => Where::Unread,
    }
}

/// True if an interrupt goes to `wanted` only, whatever was requested.
pub(super) fn goes_inside(scene: &Scene<'_>, irq: &Irq, wanted: &CpuSet) -> bool {
    irq.effective_affinity.known().is_some_and(|cpus| within(scene, cpus, wanted))
}

/// Removes offline CPUs, which are no targets.
fn within(scene: &Scene<'_>, cpus: &CpuSet, wanted: &CpuSet) -> bool {
    let online = &scene.host.topology.online;
    let cpus = if online.is_empty() { cpus.clone() } else { cpus.intersection(online) };
    cpus.is_subset(wanted)
}

/// The CPU outside of `wanted` on which the interrupt fired most between the two readings, after the number of times.
fn fired_elsewhere(scene: &Scene<'_>, first: &Irq, wanted: &CpuSet) -> Option<(u64, CpuId)> {
    scene.evidence.interrupts_later.as_ref()?;
    let now = latest(scene, first);
    let moved = now.count_by_cpu.iter().filter(|(cpu, _)| !wanted.contains(**cpu)).map(|(cpu, count)| {
        let before = first.count_by_cpu.get(cpu).copied().unwrap_or(0);
        (count.saturating_sub(before), *cpu)
    });
    moved.filter(|(count, _)| *count > 0).max()
}

/// The present interrupt of a change. Numbers change with each boot, names of handlers do not; of several
/// with the same names the change's index among them decides.
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
        let look = UnjudgedTarget::of(at, change, what, Reading::Absent);
        if scene.host.interrupts.irqs.is_empty() {
            return look.row(Standing::Unreadable, "/proc/interrupts contains no interrupts");
        }
        return look.row(Standing::Gone, "no interrupt has this name now");
    };
    let wanted = CpuSet::parse_list(&change.after).unwrap_or_default();
    let now = latest(scene, irq);
    let look = |cpus: &Reading<CpuSet>, is_planned: bool| {
        let observed = cpus.clone().map(|cpus| cpus.to_list());
        let claims = culprit::of_irq(scene, cpus.known());
        let look = UnjudgedTarget::of(at, change, format!("IRQ {}", irq.label()), observed);
        UnjudgedTarget { is_planned, claims, ..look }
    };
    let goes = now.goes_to();
    match stands(scene, irq, &wanted) {
        Where::Inside => look(&goes, true).judge(scene),
        Where::Moves => look(&goes, false).row(
            Standing::MovesLater,
            format!("requested {wanted:#}; it moves at its next interrupt"),
        ),
        _ if now.counts_as_managed() => look(&goes, false).row(
            Standing::Ineffective,
            "the kernel manages this interrupt and rejects moving it with EIO; isolcpus=managed_irq keeps it off",
        ),
        Where::Stays(why) => look(&goes, false).row(Standing::Ineffective, why),
        Where::AskedElsewhere(asked) => look(&Reading::Known(asked), false).judge(scene),
        Where::Unread => {
            let note = unreadable(&now.affinity);
            look(&now.affinity, false).row(Standing::Unreadable, note)
        }
    }
}

/// One row for the CPUs on which the state is disabled as planned, one for the others.
pub(super) fn rows(scene: &Scene<'_>, at: usize, change: &Change, name: &str, cpus: &CpuSet) -> Vec<Row> {
    let look = |cpus: &CpuSet, observed: &str, is_planned: bool| {
        let (what, observed) =
            (format!("idle state {name} on {cpus:#}"), Reading::Known(observed.to_owned()));
        let claims = culprit::idle_states(scene.evidence);
        UnjudgedTarget { is_planned, claims, ..UnjudgedTarget::of(at, change, what, observed) }
    };
    let state = scene.host.cpu.idle_states.iter().find(|state| state.name == name);
    let Some(state) = state else {
        let row = look(cpus, "disabled", true);
        return vec![row.row(Standing::Held, "no CPU has this state any more, so none can enter it")];
    };
    let wants_off = change.after != "enabled";
    let enabled = cpus.intersection(&state.cpus_enabled);
    let (off, on) = ((cpus.difference(&enabled), "disabled"), (enabled, "enabled"));
    let (good, bad) = if wants_off { (off, on) } else { (on, off) };
    let parts = [(good, true), (bad, false)].into_iter().filter(|((cpus, _), _)| !cpus.is_empty());
    parts.map(|((cpus, word), is_planned)| look(&cpus, word, is_planned).judge(scene)).collect()
}
