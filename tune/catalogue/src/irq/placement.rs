//! Limits on interrupts beyond their current affinity: the default, irqbalance, managed interrupts, NIC queues.

use crate::nic::{each_nic, nic_irqs};
use lowlat_host::{CpuSet, Reading, snapshot::Irq};
use lowlat_settings::{
    Context, Impact, Judgement, Layer, Setting, Want, change,
    judge::{
        each::{One, isolated, judge_each, list, none_isolated},
        known, missing,
    },
};

const DOC: &str = "kernel Documentation/core-api/irq/irq-affinity.rst";

const ROW: Setting = Setting { layer: Layer::Irq, impact: Impact::High, ..Setting::BLANK };

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "irq.default_affinity",
        change: change::irq::default_affinity,
        name: "default_smp_affinity",
        reason: "An interrupt that is set up later (a driver reloaded, a device plugged in) starts with this \
                 mask. If the mask contains isolated CPUs, the interrupt may reach one.",
        effective: "irqaffinity= on the command line sets it from boot; new interrupts show it in \
                    smp_affinity_list.",
        both: Want::Derived(housekeeping),
        hazard: "The guide moves the interrupts that exist and leaves the default, so those of drivers loaded later go \
                 to isolated CPUs.",
        judge: default_affinity,
        sources: &[DOC, "kernel Documentation/admin-guide/kernel-parameters.txt: irqaffinity="],
        ..ROW
    },
    Setting {
        id: "irq.irqbalance_banned",
        change: change::irq::irqbalance_banned,
        name: "IRQBALANCE_BANNED_CPULIST",
        reason: "irqbalance moves interrupts repeatedly. Unless it is configured to exclude them, isolated \
                 CPUs get some, regardless of any manual affinity.",
        effective: "irqbalance --debug prints the banned CPUs; interrupts stay in place.",
        both: Want::State("irqbalance stopped, or every isolated CPU banned"),
        hazard: "The guide neither stops nor configures irqbalance, which moves the interrupts back.",
        judge: irqbalance_banned,
        sources: &["irqbalance(1): IRQBALANCE_BANNED_CPULIST, IRQBALANCE_BANNED_CPUS", DOC],
        ..ROW
    },
    Setting {
        id: "irq.managed",
        change: change::irq::managed,
        impact: Impact::Low,
        name: "managed interrupts",
        reason: "Drivers such as nvme let the kernel spread one interrupt per queue over all CPUs. Writing \
                 their affinity fails. Only isolcpus=managed_irq (Linux 5.6), or fewer queues, keeps them \
                 off isolated CPUs.",
        cost: "Housekeeping CPUs serve the queues of the isolated ones.",
        needs_reboot: true,
        effective: "/proc/irq/N/effective_affinity_list of managed interrupts contains no isolated CPU.",
        trading: Want::State("no managed interrupt reaches an isolated CPU"),
        judge: managed,
        sources: &[
            "kernel Documentation/admin-guide/kernel-parameters.txt: isolcpus=managed_irq",
            "kernel Documentation/core-api/irq/irq-domain.rst: debugfs",
        ],
        ..ROW
    },
    Setting {
        id: "irq.spread_nic_queues",
        acts_when: "packets arrive",
        change: change::irq::spread_nic_queues,
        name: "NIC queue interrupts",
        reason: "The interrupt of a queue runs the network stack for its packets. It belongs on a \
                 housekeeping CPU of the NIC's node. If there are several, spread the queues over them.",
        cost: "Housekeeping CPUs run the network stack.",
        effective: "/proc/irq/N/effective_affinity_list for each of the NIC's interrupts.",
        trading: Want::State("on housekeeping CPUs of the NIC's node, spread over them"),
        judge: spread_nic_queues,
        sources: &["kernel Documentation/networking/scaling.rst: RSS IRQ configuration", DOC],
        ..ROW
    },
];

fn housekeeping(context: &Context<'_>) -> Option<String> {
    let cpus = &context.allocation.housekeeping;
    (!cpus.is_empty()).then(|| cpus.to_list())
}

fn default_affinity(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/proc/irq/default_smp_affinity";
    let Some(isolated) = isolated(context) else { return none_isolated() };
    known(&context.host.interrupts.default_affinity, PATH, |cpus| {
        // The file may keep bits of CPUs that are offline or never existed. Only isolated ones do harm.
        if cpus.is_disjoint(isolated) {
            return Judgement::good(cpus.to_list());
        }
        let hit = format!("{:#}", &cpus.intersection(isolated));
        Judgement::wrong(cpus.to_list(), format!("contains isolated {hit}"))
    })
}

fn irqbalance_banned(context: &Context<'_>, _: &Setting) -> Judgement {
    const UNIT: &str = "irqbalance.service";
    let Some(isolated) = isolated(context) else { return none_isolated() };
    let services = &context.host.services;
    let Some(unit) = services.units.get(UNIT) else {
        if let Some(judgement) = crate::service::unknown_services(context) {
            return judgement;
        }
        return Judgement::not_applicable("irqbalance is not installed");
    };
    match &unit.active {
        Reading::Known(state) if state == "active" || state == "activating" => {}
        Reading::Known(_) => return Judgement::not_applicable("irqbalance is not running"),
        Reading::Absent if matches!(unit.enablement.text(), "disabled" | "masked") => {
            return Judgement::not_applicable("irqbalance is not enabled");
        }
        Reading::Absent => {}
        other => return missing(other, UNIT),
    }
    let facts = &services.irqbalance;
    let path = facts
        .banned_by
        .known()
        .or(facts.config_path.known())
        .map_or("/etc/default/irqbalance", String::as_str);
    let topology = &context.host.topology;
    let of_kernel = |cpus: &Reading<CpuSet>| cpus.known().cloned().unwrap_or_default();
    let (banned, how) = match &facts.banned_cpus {
        Reading::Known(cpus) => (cpus.clone(), "banned"),
        // Without a list irqbalance excludes CPUs that the kernel isolated at boot.
        Reading::Absent => (
            of_kernel(&topology.isolated).union(&of_kernel(&topology.nohz_full)),
            "excluded as isolated at boot",
        ),
        // Then it bans nothing, and does not exclude isolated CPUs either.
        Reading::Unparsable(why) if !matches!(facts.args, Reading::Unparsable(_)) => {
            let because = format!("irqbalance cannot read its ban list and uses all CPUs: {why}");
            return Judgement::wrong(format!("may use isolated {isolated:#}"), because).at(path);
        }
        other => return missing(other, path),
    };
    let open = isolated.difference(&banned);
    if banned.is_empty() && facts.banned_cpus.is_known() {
        let because = "its ban list is empty, and some versions then do not exclude isolated CPUs themselves";
        return Judgement::wrong(format!("may use isolated {:#}", &open), because).at(path);
    }
    if open.is_empty() {
        return Judgement::good(format!("{isolated:#} {how}")).at(path);
    }
    Judgement::wrong(format!("may use isolated {:#}", &open), "").at(path)
}

fn managed(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/sys/kernel/debug/irq/irqs";
    let Some(isolated) = isolated(context) else { return none_isolated() };
    let irqs = &context.host.interrupts.irqs;
    if irqs.is_empty() {
        return Judgement::unknown("the interrupts of this host are not known").at("/proc/interrupts");
    }
    if !irqs.iter().any(|irq| irq.is_managed.is_known()) {
        let denied = irqs.iter().find(|irq| !irq.is_managed.is_absent());
        return denied.map_or_else(
            || Judgement::unknown("only debugfs shows which interrupts are managed, and this kernel has no irq directory there").at(PATH),
            |irq| missing(&irq.is_managed, PATH),
        );
    }
    let managed: Vec<&Irq> = irqs.iter().filter(|irq| irq.is_managed == Reading::Known(true)).collect();
    if managed.is_empty() {
        return Judgement::not_applicable("no interrupt is managed by the kernel");
    }
    let judge = |irq: &&Irq| (format!("IRQ {}", irq.label()), lands_on(irq, isolated));
    let judgement = judge_each(managed.iter().map(judge), "no interrupt is managed by the kernel");
    let observed = if judgement.verdict == lowlat_settings::Verdict::Good {
        format!("managed interrupts off isolated CPUs: {}", managed.len())
    } else {
        judgement.observed.clone()
    };
    Judgement { observed, ..judgement }.at(PATH)
}

/// Judges the CPUs of a managed interrupt. Only the effective affinity counts; the requested one names every CPU of the
/// queue.
fn lands_on(irq: &Irq, isolated: &CpuSet) -> One {
    match &irq.effective_affinity {
        Reading::Known(cpus) if cpus.is_disjoint(isolated) => One::Good(cpus.to_list()),
        Reading::Known(cpus) => {
            let hit = format!("{:#}", &cpus.intersection(isolated));
            One::Wrong(
                format!("on isolated {hit}"),
                "its affinity cannot be written; use isolcpus=managed_irq".into(),
            )
        }
        other => One::missing(other),
    }
}

fn spread_nic_queues(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(isolated) = isolated(context) else { return none_isolated() };
    let topology = &context.host.topology;
    let house = &context.allocation.housekeeping;
    each_nic(context, |nic| {
        let irqs = nic_irqs(context.host, nic);
        if irqs.is_empty() {
            const PLACE: &str = "/sys/class/net/*/device/msi_irqs";
            if let Some(why) = context.host.listed(PLACE, ()).missing_in_words() {
                return One::Unknown(format!("{PLACE}: {why}"));
            }
            return One::Skip("the interface has no separate interrupts".into());
        }
        let goes: Vec<(String, CpuSet)> =
            irqs.iter().filter_map(|irq| Some((irq.label(), irq.goes_to().into_known()?))).collect();
        if goes.is_empty() {
            return One::Unknown("permission denied for the affinity of its interrupts".into());
        }
        let node =
            nic.node.known().and_then(|id| topology.nodes.iter().find(|n| i64::from(n.id) == i64::from(*id)));
        let local = node.map(|node| node.cpus.intersection(house)).filter(|cpus| !cpus.is_empty());
        let on_isolated: Vec<String> = named(&goes, |cpus| !cpus.is_disjoint(isolated));
        if !on_isolated.is_empty() {
            return One::Wrong(format!("on isolated CPUs: {}", list(&on_isolated)), String::new());
        }
        if let Some(local) = &local {
            let remote = named(&goes, |cpus| !cpus.is_subset(local));
            if !remote.is_empty() {
                let why = format!("on the node of the interface: housekeeping {local:#}");
                return One::Wrong(format!("not on its node: {}", list(&remote)), why);
            }
        }
        let used = goes.iter().fold(CpuSet::new(), |all, (_, cpus)| all.union(cpus));
        let may_use = local.as_ref().unwrap_or(house);
        if goes.len() > 1 && may_use.len() > 1 && used.len() == 1 {
            let why = format!("{may_use:#} could share the load");
            return One::Wrong(format!("all {} interrupts on {:#}", goes.len(), &used), why);
        }
        One::Good(format!("{} interrupts on {:#}", goes.len(), &used))
    })
    .at("/proc/irq/*/effective_affinity_list")
}

fn named(goes: &[(String, CpuSet)], is_meant: impl Fn(&CpuSet) -> bool) -> Vec<String> {
    goes.iter().filter(|(_, cpus)| is_meant(cpus)).map(|(label, cpus)| format!("{label} on {cpus}")).collect()
}
