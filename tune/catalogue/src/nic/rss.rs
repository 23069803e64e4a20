//! The queues over which NICs spread received packets.

use super::{NIC, each_nic, judged_nics, nic_irqs};
use lowlat_host::{CpuSet, snapshot::Nic};
use lowlat_settings::{
    Context, Judgement, Setting, Want,
    change::{Proposal, WhyLeftOut, nic::RSS},
    judge::each::{One, isolated, none_isolated},
};

pub(crate) const SETTINGS: &[Setting] = &[Setting {
    id: "nic.rss_indirection",
    change: fewer,
    name: "equal",
    reason: "Receive side scaling spreads flows over queues, and each queue interrupts its own CPU. A queue whose \
             interrupt stays on an isolated CPU brings that CPU the packets of other programs.",
    cost: "Fewer CPUs share the kernel's network stack.",
    effective: "ethtool -x IF lists no queue whose interrupt reaches an isolated CPU.",
    trading: Want::State("no queue that interrupts an isolated CPU"),
    judge: indirection,
    sources: &[
        "kernel Documentation/networking/scaling.rst: RSS",
        "Xilinx-CNS/onload issue 50: RSS ignores isolated cores",
    ],
    ..NIC
}];

/// The queues of the table whose interrupts reach isolated CPUs; `None` if queues and interrupts are not linked.
fn reaching(context: &Context<'_>, nic: &Nic, isolated: &CpuSet, table: &[u32]) -> Option<Vec<u32>> {
    let napis = nic.napis.known()?;
    let irqs = nic_irqs(context.host, nic);
    let mut queues: Vec<u32> = table.to_vec();
    queues.sort_unstable();
    queues.dedup();
    let mut faulty = Vec::new();
    for queue in queues {
        let name = format!("rx-{queue}");
        let napi = napis.iter().find(|napi| napi.queues.contains(&name))?;
        let irq = irqs.iter().find(|irq| Some(irq.number) == napi.irq)?;
        let cpus = irq.goes_to().into_known()?;
        if !cpus.is_disjoint(isolated) {
            faulty.push(queue);
        }
    }
    Some(faulty)
}

fn indirection(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(isolated) = isolated(context) else { return none_isolated() };
    each_nic(context, |nic| {
        let judge = |table: &Vec<u32>| match reaching(context, nic, isolated, table) {
            Some(faulty) if faulty.is_empty() => One::Good("none".into()),
            Some(faulty) => {
                let queues: Vec<String> = faulty.iter().map(u32::to_string).collect();
                One::Wrong(format!("queues {}", queues.join(", ")), String::new())
            }
            None => One::Unknown("the kernel does not link queues and interrupts".into()),
        };
        One::of(&nic.rss_indirection, "the driver has no indirection table", judge)
    })
    .at("ethtool -x")
}

/// Spreads over the first queues, up to the first that reaches an isolated CPU and cannot be moved.
fn fewer(context: &Context<'_>, setting: &Setting) -> Proposal {
    let mut proposal = Proposal::default();
    let isolated = &context.allocation.isolated;
    for nic in judged_nics(context) {
        let Some(table) = nic.rss_indirection.known() else { continue };
        let faulty = reaching(context, nic, isolated, table).unwrap_or_default();
        let Some(first) = faulty.first().copied() else { continue };
        let managed = nic_irqs(context.host, nic).iter().any(|irq| irq.is_managed.known() == Some(&true));
        if !managed {
            let text = "irq.affinity moves the interrupts of these queues to housekeeping CPUs";
            proposal = proposal.but_not(WhyLeftOut::ByAnother, text);
        } else if first == 0 {
            let text = "the first queue cannot be moved: isolcpus=managed_irq keeps it off isolated CPUs";
            proposal = proposal.but_not(WhyLeftOut::ByAnother, text);
        } else {
            let target = RSS.of(&nic.name, setting.name);
            proposal = proposal.step(target, (RSS.get)(nic, setting.name), first.to_string());
        }
    }
    proposal
}
