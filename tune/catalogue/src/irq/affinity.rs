//! Targets of device interrupts.

use crate::HAZARDS;
use lowlat_host::{CpuSet, Profile, Reading, snapshot::Irq};
use lowlat_settings::{Context, Impact, Judgement, Layer, Setting, Verdict, Want, change, judge};

const PROC_IRQ: &str = "/proc/irq";
const LABELS_SHOWN_MAX: usize = 8;

pub(crate) const SETTINGS: &[Setting] = &[Setting {
    id: "irq.affinity",
    change: change::irq::off_isolated,
    layer: Layer::Irq,
    name: "/proc/irq/N/smp_affinity_list",
    reason: "An interrupt that reaches an isolated CPU stops the thread there, and its softirq work follows. \
             Every device interrupt belongs on a housekeeping CPU. Only isolcpus=managed_irq can move \
             interrupts that the kernel manages, such as those of NVMe queues.",
    cost: "The housekeeping CPUs handle all interrupts.",
    impact: Impact::High,
    effective: "/proc/irq/N/effective_affinity_list names no isolated CPU, and the rows of /proc/interrupts \
                do not increase on isolated CPUs.",
    both: Want::Derived(judge::kept_off_isolated),
    hazard: "The guide's loop hides every error. Writing the affinity of managed interrupts fails with EIO, \
             and IO-APIC interrupts move only when they next fire. Drivers loaded later use their old CPUs \
             again. irqbalance, which the guide does not stop, moves everything back.",
    sources: &[
        "guide 57037 section 4.3.3.1.2 step 7",
        HAZARDS,
        "kernel Documentation/core-api/irq/irq-affinity.rst",
    ],
    judge: affinity,
    ..Setting::BLANK
}];

fn affinity(context: &Context<'_>, _: &Setting) -> Judgement {
    let isolated = &context.allocation.isolated;
    let in_use: Vec<&Irq> =
        context.host.interrupts.irqs.iter().filter(|irq| is_judged(context, irq)).collect();
    let (mut bad, mut known, mut unread) = (Vec::new(), 0usize, None);
    for irq in &in_use {
        match irq.goes_to() {
            Reading::Known(cpus) => {
                known += 1;
                if !cpus.is_disjoint(isolated) && !is_harmless(context, irq) {
                    bad.push((*irq, cpus.intersection(isolated)));
                }
            }
            other => unread = unread.or(Some(other)),
        }
    }
    if !bad.is_empty() {
        return fault(context, &bad, known);
    }
    match unread {
        Some(reading) => judge::missing(&reading, &format!("{PROC_IRQ}/*/effective_affinity_list")),
        None if in_use.is_empty() => Judgement::unknown("no interrupt with a handler was found").at(PROC_IRQ),
        None => Judgement::good(format!("{known} interrupts avoid isolated CPUs")).at(PROC_IRQ),
    }
}

/// Interrupts with a handler. Those of NICs that the role names are judged by the NIC rows.
fn is_judged(context: &Context<'_>, irq: &Irq) -> bool {
    let is_placed = context.profile == Profile::Trading
        && !context.role.nics.is_empty()
        && context.role.trading_nics(context.host).any(|nic| nic.irqs.contains(&irq.number));
    !irq.actions.is_empty() && !is_placed
}

/// A managed queue that serves isolated CPUs only. With isolcpus=managed_irq it fires only when such a CPU
/// submitted work.
fn is_harmless(context: &Context<'_>, irq: &Irq) -> bool {
    irq.counts_as_managed()
        && context.host.kernel.tokens().isolation().contains(&"managed_irq")
        && irq.affinity.known().is_some_and(|cpus| cpus.is_subset(&context.allocation.isolated))
}

fn fault(context: &Context<'_>, bad: &[(&Irq, CpuSet)], known: usize) -> Judgement {
    let labels: Vec<String> = bad.iter().map(|(irq, cpus)| format!("{} on {cpus:#}", irq.label())).collect();
    let managed = bad.iter().filter(|(irq, _)| irq.counts_as_managed()).count();
    let observed = format!(
        "{} of {known} interrupts reach isolated CPUs: {}",
        bad.len(),
        judge::some_of(&labels, LABELS_SHOWN_MAX)
    );
    let is_balanced = context
        .host
        .services
        .units
        .get("irqbalance.service")
        .is_some_and(|unit| unit.active.text() == "active");
    let mut why = Vec::new();
    if managed > 0 {
        let are = if managed == 1 { "is" } else { "are" };
        why.push(format!(
            "{managed} {are} managed by the kernel and cannot be moved; isolcpus=managed_irq keeps them off \
             isolated CPUs"
        ));
    }
    if is_balanced && managed < bad.len() {
        why.push("irqbalance is running and moves interrupts again".to_owned());
    }
    let verdict = if managed == bad.len() && context.profile == Profile::Guide57037 {
        Verdict::Ineffective
    } else {
        Verdict::Wrong
    };
    let place =
        format!("{PROC_IRQ}/{}/effective_affinity_list", bad.first().map_or(0, |(irq, _)| irq.number));
    Judgement::new(verdict, observed, why.join("; ")).at(place)
}
