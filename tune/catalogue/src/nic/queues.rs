//! Queues, packet steering and offloads of NICs.

use super::{NIC, each_nic, each_of, judged_nics, parameter};
use lowlat_host::{
    CpuSet, Reading,
    snapshot::{Channels, Nic, QueueMask},
};
use lowlat_settings::{
    Context, Impact, Judgement, Setting, Want,
    change::{
        Proposal, Target,
        nic::{self, NicKind},
    },
    judge::each::{One, isolated, list, none_isolated},
};

const SCALING: &str = "kernel Documentation/networking/scaling.rst";

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "nic.queue_count",
        change: fewer_queues,
        name: "channels",
        reason: "Each receive queue has an interrupt, and each interrupt needs a CPU. More queues than \
                 housekeeping CPUs bring no gain, only more interrupts to keep off the isolated ones.",
        cost: "Fewer CPUs share the kernel's network stack.",
        effective: "ethtool -l IF; one interrupt per queue in /proc/interrupts.",
        trading: Want::Derived(queues_max),
        judge: queue_count,
        sources: &[SCALING, "Xilinx-CNS/onload issue 50: RSS ignores isolated cores"],
        ..NIC
    },
    Setting {
        id: "nic.rps",
        change: |context, _| RPS.change(context),
        name: "rps_cpus",
        reason: "Receive packet steering sends packets to other CPUs through inter-processor interrupts and \
                 runs the network stack there. Isolated CPUs in the mask get both.",
        impact: Impact::High,
        effective: "the NET_RX row of /proc/softirqs does not increase on isolated CPUs.",
        trading: Want::State("no isolated CPU in any mask"),
        judge: |context, _| RPS.judge(context),
        sources: &[SCALING],
        ..NIC
    },
    Setting {
        id: "nic.xps",
        change: |context, _| XPS.change(context),
        name: "xps_cpus",
        reason: "Transmit packet steering sets which CPUs send on which queue. An isolated CPU that shares a \
                 queue with housekeeping CPUs waits for its lock while they send.",
        cost: "One queue is reserved for the senders.",
        impact: Impact::Low,
        effective: "cat /sys/class/net/IF/queues/tx-*/xps_cpus.",
        trading: Want::State("no queue serves isolated and housekeeping CPUs"),
        judge: |context, _| XPS.judge(context),
        sources: &[SCALING],
        ..NIC
    },
    Setting {
        id: "nic.lro",
        change: |context, setting| parameter::change(context, setting, &nic::FEATURE),
        name: "rx-lro, rx-gro-hw",
        reason: "The NIC or its driver merges packets of one flow before they reach the stack. The first \
                 packet waits for the next, and their arrival times are lost.",
        cost: "The stack handles more packets under bulk traffic.",
        effective: "ethtool -k IF: large-receive-offload and rx-gro-hw are off.",
        trading: Want::Value("off"),
        judge: is_feature,
        sources: &[
            "kernel Documentation/networking/segmentation-offloads.rst",
            "kernel Documentation/networking/netdev-features.rst",
        ],
        ..NIC
    },
];

fn is_feature(context: &Context<'_>, setting: &Setting) -> Judgement {
    parameter::judge(context, setting, &nic::FEATURE, |nic| {
        if nic.offloads.is_absent() { "the driver has no offloads" } else { "the driver has no such feature" }
    })
    .at("ethtool -k")
}

fn queues_max(context: &Context<'_>) -> Option<String> {
    match context.allocation.housekeeping.len() {
        0 => None,
        1 => Some("1 receive queue".into()),
        count => Some(format!("at most {count} receive queues")),
    }
}

/// The number of receive queues, and true if it exceeds the number of housekeeping CPUs.
fn receive_queues(context: &Context<'_>, channels: &Channels) -> (u32, bool) {
    let queues = channels.rx.saturating_add(channels.combined);
    let is_more =
        usize::try_from(queues).map_or(true, |queues| queues > context.allocation.housekeeping.len());
    (queues, is_more)
}

fn queue_count(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(_) = isolated(context) else { return none_isolated() };
    let house = &context.allocation.housekeeping;
    let judge = |channels: &Channels| match receive_queues(context, channels) {
        (queues, false) => One::Good(queues.to_string()),
        (queues, true) => One::Wrong(
            format!("{queues} receive queues"),
            format!("there are {} housekeeping CPUs: {:#}", house.len(), house),
        ),
    };
    each_nic(context, |nic| One::of(&nic.channels, "the driver does not report its queues", judge))
        .at("ethtool -l")
}

/// No more receive queues than housekeeping CPUs.
fn fewer_queues(context: &Context<'_>, _: &Setting) -> Proposal {
    let house = u32::try_from(context.allocation.housekeeping.len()).unwrap_or(u32::MAX);
    let mut proposal = Proposal::default();
    for nic in judged_nics(context) {
        let Some(now) = nic.channels.known().filter(|now| receive_queues(context, now).1) else { continue };
        let (name, count, others) =
            if now.combined > 0 { ("combined", now.combined, now.rx) } else { ("rx", now.rx, 0) };
        let wanted = house.saturating_sub(others).max(1);
        let target = nic::CHANNELS.of(&nic.name, name);
        proposal = proposal.step(target, Reading::Known(count.to_string()), wanted.to_string());
    }
    proposal
}

/// Packet steering of one direction, with the condition for a wrong mask.
struct Steering {
    kind: &'static NicKind,
    queues: fn(&Nic) -> &[QueueMask],
    is_fault: fn(&Context<'_>, &CpuSet) -> bool,
    /// Masks of interfaces that are not judged otherwise, such as veth or a bridge, are equally harmful.
    is_of_any_interface: bool,
    seen_at: &'static str,
}

/// No isolated CPU receives for others.
const RPS: Steering = Steering {
    kind: &nic::RPS,
    queues: |nic| &nic.rps,
    is_fault: |context, cpus| !cpus.is_disjoint(&context.allocation.isolated),
    is_of_any_interface: true,
    seen_at: "/sys/class/net/*/queues/rx-*/rps_cpus",
};

/// No queue serves both sides.
const XPS: Steering = Steering {
    kind: &nic::XPS,
    queues: |nic| &nic.xps,
    is_fault: |context, cpus| {
        let allocation = &context.allocation;
        !cpus.is_disjoint(&allocation.isolated) && !cpus.is_disjoint(&allocation.housekeeping)
    },
    is_of_any_interface: false,
    seen_at: "/sys/class/net/*/queues/tx-*/xps_cpus",
};

impl Steering {
    fn judge(&self, context: &Context<'_>) -> Judgement {
        let Some(_) = isolated(context) else { return none_isolated() };
        each_of(context, self.nics(context), |nic| match self.faulty(context, nic) {
            Ok(faulty) if faulty.is_empty() => One::Good("none".into()),
            Ok(faulty) => One::Wrong(list(&faulty), String::new()),
            Err(one) => one,
        })
        .at(self.seen_at)
    }

    /// The judged interfaces, and those that are not and have a faulty mask.
    fn nics<'a>(&self, context: &Context<'a>) -> Vec<&'a Nic> {
        let mut nics = judged_nics(context);
        let is_faulty = |nic: &Nic| self.faulty(context, nic).is_ok_and(|faulty| !faulty.is_empty());
        let others = context.host.nics.iter().filter(|_| self.is_of_any_interface);
        let others = others.filter(|nic| nics.iter().all(|known| known.name != nic.name) && is_faulty(nic));
        nics.extend(others.collect::<Vec<_>>());
        nics
    }

    /// Queues with a wrong mask, or the reason why the masks are unknown.
    fn faulty(&self, context: &Context<'_>, nic: &Nic) -> Result<Vec<String>, One> {
        let queues = (self.queues)(nic);
        let listed = context.host.listed("/sys/class/net/*/queues", ());
        if let (true, Some(missing)) = (queues.is_empty(), listed.missing_in_words()) {
            return Err(One::Unknown(missing));
        }
        if queues.is_empty() {
            return Err(One::Skip("the interface has no queues to steer".into()));
        }
        let mut faulty = Vec::new();
        for queue in queues {
            match &queue.cpus {
                Reading::Known(cpus) if (self.is_fault)(context, cpus) => {
                    faulty.push(format!("{} on {cpus}", queue.queue));
                }
                Reading::Known(_) | Reading::Absent => {}
                other => return Err(One::missing(other)),
            }
        }
        Ok(faulty)
    }

    /// Removes the isolated CPUs from each faulty mask.
    fn change(&self, context: &Context<'_>) -> Proposal {
        let mut proposal = Proposal::default();
        for nic in self.nics(context) {
            for queue in (self.queues)(nic) {
                let Some(cpus) = queue.cpus.known().filter(|cpus| (self.is_fault)(context, cpus)) else {
                    continue;
                };
                let rest = cpus.difference(&context.allocation.isolated).to_list();
                let target: Target = self.kind.of(&nic.name, &queue.queue);
                proposal = proposal.step(target, Reading::Known(cpus.to_list()), rest);
            }
        }
        proposal
    }
}
