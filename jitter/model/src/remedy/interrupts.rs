//! Device interrupts, and the softirqs that follow them.

use super::{Advice, by_program, case::Case};
use crate::CauseKind;
use lowlat_host::snapshot::{Irq, component_matches};

/// Names of interrupts for which drivers usually let the kernel manage the affinity of each queue.
const OFTEN_MANAGED: &[&str] = &[
    "nvme*q*",
    // Disks: "req.N" (virtio-blk), "request" (virtio-scsi); file systems' "requests.N". The one queue of 9p,
    // "requests", is not managed.
    "virtio*-req.*",
    "virtio*-request",
    "virtio*-requests.*",
    "mpt3sas*-msix*",
    "mpi3mr*-msix*",
    "megasas*-msix*",
    "lpfc:*",
    "qla2xxx*",
    "hpsa*",
];
/// The first queue of an NVMe disk receives administrative commands; its interrupt is not managed.
const NEVER_MANAGED: &str = "nvme*q0";

pub(super) fn device(case: &Case<'_>) -> Advice {
    let irqs = irqs_of(case);
    let is_managed = irqs.iter().find_map(|irq| irq.is_managed.known().copied());
    let name = case.cause.name.to_ascii_lowercase();
    let looks_managed = OFTEN_MANAGED.iter().any(|pattern| component_matches(pattern, &name))
        && !component_matches(NEVER_MANAGED, &name);
    match is_managed {
        Some(true) => managed(case, "the kernel manages this interrupt"),
        None if looks_managed => managed(case, "the kernel probably manages this interrupt"),
        _ if is_of_trading_nic(case, &irqs) => Advice::Elsewhere("irq.spread_nic_queues", moved(case, &irqs)),
        _ => Advice::Act(moved(case, &irqs)),
    }
}

/// The snapshot's interrupts for the cause: by number, otherwise by name.
fn irqs_of<'a>(case: &'a Case<'_>) -> Vec<&'a Irq> {
    let is_meant = |irq: &&Irq| match case.cause.number {
        Some(number) => i64::from(irq.number) == number,
        None => irq.actions.contains(&case.cause.name),
    };
    case.context.host.interrupts.irqs.iter().filter(is_meant).collect()
}

fn is_of_trading_nic(case: &Case<'_>, irqs: &[&Irq]) -> bool {
    let context = case.context;
    context.role.trading_nics(context.host).any(|nic| irqs.iter().any(|irq| nic.irqs.contains(&irq.number)))
}

fn managed(case: &Case<'_>, how: &str) -> Advice {
    let action = if case.context.host.kernel.tokens().isolation().contains(&"managed_irq") {
        format!(
            "{how} and isolcpus=managed_irq is in force: it fires on {} only for requests submitted \
             there, so submit none there",
            case.on()
        )
    } else {
        format!("{how} and its affinity cannot be changed: boot with {}", case.isolcpus())
    };
    Advice::Elsewhere("irq.managed", action)
}

fn moved(case: &Case<'_>, irqs: &[&Irq]) -> String {
    let goes_to = irqs.iter().filter_map(|irq| irq.goes_to().into_known());
    let goes_to = goes_to.reduce(|all, cpus| all.union(&cpus));
    if let Some(goes_to) = goes_to.filter(|cpus| !cpus.is_empty() && cpus.is_disjoint(&case.cpus)) {
        return format!(
            "the affinity of {} is {goes_to:#}, but it reached {}: find what moves it, such as irqbalance or \
             its driver",
            case.label(),
            case.on()
        );
    }
    let (label, housekeeping) = (case.label(), case.housekeeping());
    let number = case.cause.number.or_else(|| match irqs {
        [irq] => Some(i64::from(irq.number)),
        _ => None,
    });
    let how = match (case.housekeeping_list(), number) {
        (Some(list), Some(number)) => format!(": echo {list} > /proc/irq/{number}/smp_affinity_list"),
        _ => " with /proc/irq/N/smp_affinity_list".to_owned(),
    };
    let balancer = if case.is_active("irqbalance.service") {
        ", and stop irqbalance or ban the isolated CPUs in its configuration"
    } else {
        ""
    };
    format!("move {label} to {housekeeping}{how}{balancer}")
}

/// Function that another CPU calls to have its packets received here.
const STEERED: &str = "rps_trigger_softirq";
/// Runs of the softirq for one interrupt of a NIC, which stays off while packets keep coming.
const SOFTIRQS_PER_IRQ_MAX: u64 = 10;

/// The network's receive softirq. Three things raise it: the interrupt of a NIC, another CPU that steers packets here,
/// and a thread here that sends to this host.
pub(super) fn net_rx(case: &Case<'_>) -> Advice {
    for nic in &case.context.host.nics {
        let steered = |queue: &&lowlat_host::snapshot::QueueMask| {
            queue.cpus.known().is_some_and(|cpus| !cpus.is_disjoint(&case.cpus))
        };
        if let Some(queue) = nic.rps.iter().find(steered) {
            let advice = format!(
                "packets of {} are steered here: write the mask of {} to /sys/class/net/{}/queues/{}/rps_cpus",
                nic.name,
                case.housekeeping(),
                nic.name,
                queue.queue
            );
            return Advice::Elsewhere("nic.rps", advice);
        }
    }
    if case.beside(CauseKind::CallFunction).any(|found| found.cause.name == STEERED) {
        return case.elsewhere(
            "nic.rps",
            "another CPU steers packets here: find the rps_cpus below /sys/class/net that contains {on}, and write \
             the mask of {housekeeping} there",
        );
    }
    let on = case.on();
    let irqs_of_nics: Vec<u32> = case.context.host.nics.iter().flat_map(|nic| nic.irqs.clone()).collect();
    let fired: Vec<(u32, u64)> = case
        .beside(CauseKind::Irq)
        .filter_map(|found| Some((u32::try_from(found.cause.number?).ok()?, found.count)))
        .filter(|(number, _)| irqs_of_nics.contains(number))
        .collect();
    let is_any_nics = irqs_of_nics.is_empty() && case.beside(CauseKind::Irq).next().is_some();
    let by_nics: u64 = fired.iter().map(|(_, count)| count).sum();
    if let Some(found) =
        case.found().filter(|found| !is_any_nics && by_nics < found.count / SOFTIRQS_PER_IRQ_MAX)
    {
        return by_program(format!(
            "{}, so a thread there sends to this host (loopback, a container, a virtual machine), which receives the \
             packets on the CPU of the sender: run that thread on {}",
            match by_nics {
                0 => format!("no NIC interrupts {on}"),
                _ => format!("NICs interrupt {on} {by_nics} times, and this runs {} times", found.count),
            },
            case.housekeeping()
        ));
    }
    match (fired.as_slice(), case.housekeeping_list()) {
        ([(only, _)], Some(list)) => Advice::Act(format!(
            "irq {only} of a NIC fires on {on}: echo {list} > /proc/irq/{only}/smp_affinity_list"
        )),
        ([(first, _), ..], Some(list)) => Advice::Act(format!(
            "{} interrupts of NICs fire on {on}: echo {list} > /proc/irq/{first}/smp_affinity_list, and the same \
             for each",
            fired.len()
        )),
        _ => case.say(
            "move the interrupts of NIC queues to {housekeeping}: the network stack runs where they fire; packets that a \
             thread sends to this host are also received here",
        ),
    }
}

/// The timer that NAPI arms when a NIC's interrupts are deferred.
pub(super) fn napi_timer(case: &Case<'_>) -> Advice {
    let armed = case.context.host.nics.iter().find(|nic| {
        case.knob(&format!("/sys/class/net/{}/gro_flush_timeout", nic.name))
            .is_some_and(|text| text.trim() != "0")
    });
    match armed {
        Some(nic) => Advice::Act(format!("echo 0 > /sys/class/net/{}/gro_flush_timeout", nic.name)),
        None => case.say("write 0 to gro_flush_timeout of the NIC whose queue is polled here"),
    }
}

/// The thread of a threaded interrupt handler.
pub(super) fn irq_thread(case: &Case<'_>) -> Advice {
    // "irq/47-nvme0q3": the kernel keeps the thread on the CPU of the interrupt.
    let name = case.cause.name.strip_prefix("irq/");
    let number = name.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    match (number, case.housekeeping_list()) {
        (Some(number), Some(list)) => Advice::Act(format!(
            "the thread follows its interrupt: echo {list} > /proc/irq/{number}/smp_affinity_list"
        )),
        _ => case.say("the thread follows its interrupt: move that to {housekeeping}"),
    }
}
