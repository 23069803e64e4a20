//! Network interfaces: coalescing, queues, steering, features.

use super::{Proposal, Target};
use crate::{Context, Setting};
use lowlat_host::{
    CpuSet, Reading,
    snapshot::{Nic, QueueMask},
};

fn each<'a>(context: &Context<'a>, propose: impl Fn(Proposal, &'a Nic) -> Proposal) -> Proposal {
    let nics: Vec<&Nic> = context.role.trading_nics(context.host).collect();
    nics.into_iter().fold(Proposal::default(), propose)
}

fn on_off(is_on: bool) -> String {
    if is_on { "on".to_owned() } else { "off".to_owned() }
}

fn coalescing(nic: &Nic, field: &str) -> Target {
    Target::NicCoalescing { nic: nic.name.clone(), field: field.to_owned() }
}

/// No wait before a receive interrupt.
pub fn rx_usecs(context: &Context<'_>, _: &Setting) -> Proposal {
    each(context, |proposal, nic| match nic.coalescing.known().and_then(|now| now.rx_usecs) {
        Some(usecs) if usecs > 0 => {
            proposal.step(coalescing(nic, "rx-usecs"), Reading::Known(usecs.to_string()), "0")
        }
        _ => proposal,
    })
}

/// The driver no longer changes the wait by itself.
pub fn adaptive_rx(context: &Context<'_>, _: &Setting) -> Proposal {
    each(context, |proposal, nic| match nic.coalescing.known().and_then(|now| now.adaptive_rx) {
        Some(true) => {
            proposal.step(coalescing(nic, "adaptive-rx"), Reading::Known(on_off(true)), on_off(false))
        }
        _ => proposal,
    })
}

/// No more receive queues than housekeeping CPUs.
pub fn queue_count(context: &Context<'_>, _: &Setting) -> Proposal {
    let house = u32::try_from(context.allocation.housekeeping.len()).unwrap_or(u32::MAX);
    each(context, |proposal, nic| {
        let Some(now) = nic.channels.known() else { return proposal };
        if now.rx.saturating_add(now.combined) <= house {
            return proposal;
        }
        let (field, count, others) =
            if now.combined > 0 { ("combined", now.combined, now.rx) } else { ("rx", now.rx, 0) };
        let wanted = house.saturating_sub(others).max(1);
        let target = Target::NicChannels { nic: nic.name.clone(), field: field.to_owned() };
        proposal.step(target, Reading::Known(count.to_string()), wanted.to_string())
    })
}

/// Masks that are at fault, each with what is left of it.
fn masks(
    mut proposal: Proposal,
    queues: &[QueueMask],
    target: impl Fn(String) -> Target,
    is_fault: impl Fn(&CpuSet) -> bool,
    rest: impl Fn(&CpuSet) -> CpuSet,
) -> Proposal {
    for queue in queues {
        if let Reading::Known(cpus) = &queue.cpus
            && is_fault(cpus)
        {
            let before = Reading::Known(cpus.to_list());
            proposal = proposal.step(target(queue.queue.clone()), before, rest(cpus).to_list());
        }
    }
    proposal
}

/// No isolated CPU receives for others.
pub fn rps(context: &Context<'_>, _: &Setting) -> Proposal {
    let isolated = &context.allocation.isolated;
    each(context, |proposal, nic| {
        let target = |queue| Target::NicRps { nic: nic.name.clone(), queue };
        masks(
            proposal,
            &nic.rps,
            target,
            |cpus| !cpus.is_disjoint(isolated),
            |cpus| cpus.difference(isolated),
        )
    })
}

/// Queues that served both sides are left to housekeeping.
pub fn xps(context: &Context<'_>, _: &Setting) -> Proposal {
    let (house, isolated) = (&context.allocation.housekeeping, &context.allocation.isolated);
    let is_shared = |cpus: &CpuSet| !cpus.is_disjoint(isolated) && !cpus.is_disjoint(house);
    each(context, |proposal, nic| {
        let target = |queue| Target::NicXps { nic: nic.name.clone(), queue };
        masks(proposal, &nic.xps, target, is_shared, |cpus| cpus.difference(isolated))
    })
}

/// Packets are not merged by the card or its driver.
pub fn lro(context: &Context<'_>, _: &Setting) -> Proposal {
    each(context, |proposal, nic| {
        let on = ["rx-lro", "rx-gro-hw"]
            .into_iter()
            .filter(|name| nic.offloads.known().is_some_and(|features| features.get(*name) == Some(&true)));
        on.fold(proposal, |proposal, feature| {
            let target = Target::NicFeature { nic: nic.name.clone(), feature: feature.to_owned() };
            proposal.step(target, Reading::Known(on_off(true)), on_off(false))
        })
    })
}

/// A file of the interface that is to hold 0, named as the row is.
pub fn file_zero(context: &Context<'_>, setting: &Setting) -> Proposal {
    each(context, |proposal, nic| {
        let path = format!("/sys/class/net/{}/{}", nic.name, setting.name);
        match context.host.file(&path) {
            before @ Reading::Known(_) if before.text().trim() != "0" => {
                proposal.step(Target::File { path }, before, "0")
            }
            _ => proposal,
        }
    })
}
