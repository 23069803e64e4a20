//! Interrupts: each movable one, the default, and irqbalance.

use super::{Moment, Proposal, Target, WhyLeftOut};
use crate::{Context, Setting};
use lowlat_host::{CpuSet, Reading, snapshot::Irq};

const IRQBALANCE_DROP_IN: &str = "/etc/systemd/system/irqbalance.service.d/60-lowlat.conf";

/// Every interrupt with a handler that may reach an isolated CPU.
pub fn off_isolated(context: &Context<'_>, _: &Setting) -> Proposal {
    let isolated = &context.allocation.isolated;
    move_each(context, |irq| irq.goes_to().known().is_some_and(|cpus| !cpus.is_disjoint(isolated)))
}

/// The interrupts of trading interfaces, spread over the housekeeping CPUs of their node.
pub fn spread_nic_queues(context: &Context<'_>, _: &Setting) -> Proposal {
    let of_nics: Vec<u32> =
        context.role.trading_nics(context.host).flat_map(|nic| nic.irqs.iter().copied()).collect();
    move_each(context, |irq| of_nics.contains(&irq.number))
}

/// Moves the selected interrupts to their CPUs; managed ones cannot be moved and are left out.
fn move_each(context: &Context<'_>, is_meant: impl Fn(&Irq) -> bool) -> Proposal {
    let (mut proposal, mut managed, mut asked) = (Proposal::default(), Vec::new(), Vec::new());
    let irqs = context.host.interrupts.irqs.iter().filter(|irq| !irq.actions.is_empty() && is_meant(irq));
    for irq in irqs {
        let wanted = belongs(context, irq);
        let is_there = |cpus: &Reading<CpuSet>| cpus.known().is_some_and(|cpus| cpus.is_subset(&wanted));
        if wanted.is_empty() || is_there(&irq.goes_to()) {
            continue;
        }
        if irq.counts_as_managed() {
            managed.push(irq.label());
        } else if is_there(&irq.affinity) {
            asked.push(irq.label());
        } else {
            let target = Target::IrqAffinity { irq: irq.number, actions: irq.actions.clone() };
            let before = irq.affinity.clone().map(|cpus| cpus.to_list());
            proposal = proposal.step(target, before, wanted.to_list());
        }
    }
    if !managed.is_empty() {
        let text = format!(
            "managed by the kernel, which rejects moving them with EIO: {}; isolcpus=managed_irq on the command \
             line keeps them off isolated CPUs",
            managed.join(", ")
        );
        proposal = proposal.but_not(WhyLeftOut::ByAnother, text);
    }
    if !asked.is_empty() {
        let text = format!("already requested; they move when they next fire: {}", asked.join(", "));
        proposal = proposal.but_not(WhyLeftOut::StateOfTheMoment, text);
    }
    proposal
}

/// The CPUs of an interrupt: the housekeeping CPUs of its device's node, or all of them if it has none. Each
/// interrupt of a trading interface gets one CPU.
fn belongs(context: &Context<'_>, irq: &Irq) -> CpuSet {
    let nic = context.role.trading_nics(context.host).find(|nic| nic.irqs.contains(&irq.number));
    let node = nic.map_or(&irq.node, |nic| &nic.node).known();
    let local = house_near(context, node.and_then(|node| u32::try_from(*node).ok()));
    let Some(nic) = nic else { return local };
    let place = nic.irqs.iter().position(|number| *number == irq.number).unwrap_or(0);
    let cpu = local.iter().nth(place % local.len().max(1));
    cpu.map_or(local, CpuSet::of)
}

/// The housekeeping CPUs of a node, or all of them if it has none.
pub(super) fn house_near(context: &Context<'_>, node: Option<u32>) -> CpuSet {
    let house = &context.allocation.housekeeping;
    node.and_then(|id| context.host.topology.nodes.iter().find(|node| node.id == id))
        .map(|node| node.cpus.intersection(house))
        .filter(|cpus| !cpus.is_empty())
        .unwrap_or_else(|| house.clone())
}

/// The default affinity of new interrupts.
pub fn default_affinity(context: &Context<'_>, _: &Setting) -> Proposal {
    let before = context.host.interrupts.default_affinity.clone().map(|cpus| cpus.to_list());
    Proposal::default().step(Target::DefaultIrqAffinity, before, context.allocation.housekeeping.to_list())
}

/// Bans irqbalance from isolated CPUs with a drop-in of its unit. Its configuration file would override the
/// drop-in, so a list there must be changed by the user.
pub fn irqbalance_banned(context: &Context<'_>, _: &Setting) -> Proposal {
    let facts = &context.host.services.irqbalance;
    let is_ours = facts.banned_by.text() == IRQBALANCE_DROP_IN;
    if !facts.banned_cpus.is_absent() && !is_ours {
        let by = facts
            .banned_by
            .known()
            .or(facts.config_path.known())
            .map_or("its configuration file", String::as_str);
        return Proposal::not(
            WhyLeftOut::YourChoice,
            format!(
                "{by} already sets a ban list; set IRQBALANCE_BANNED_CPULIST={} there, or stop irqbalance",
                context.allocation.isolated
            ),
        );
    }
    let text = format!(
        "# Written by lowlat; changes are lost when it applies a plan.\n[Service]\n\
         Environment=IRQBALANCE_BANNED_CPULIST={}\n",
        context.allocation.isolated
    );
    let target = Target::OwnedFile { path: IRQBALANCE_DROP_IN.to_owned() };
    let before = if is_ours { facts.banned_cpus.clone().map(|cpus| cpus.to_list()) } else { Reading::Absent };
    Proposal::default().step_at(Moment::NowAndAtBoot, target, before, text)
}

/// Managed interrupts can be moved only by the command line.
pub fn managed(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::ByAnother,
        "the kernel does not allow moving managed interrupts; isolcpus=managed_irq on the command line keeps them \
         off (boot.isolcpus)",
    )
}
