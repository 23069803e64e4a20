//! The part of a plan that prepares a host for the traffic of one interface.

use super::Plan;
use lowlat_host::{HostSnapshot, Profile, Role};
use lowlat_settings::{Context, Setting};

/// Settings that prepare a host for network traffic, by the start of their ids: interfaces and their interrupts,
/// network sysctls, services that interfere, and the run-time part of TuneD's network-latency. The command line belongs
/// to the full plan.
const PREPARING: [&str; 18] = [
    "nic.",
    "irq.",
    "sysctl.net.",
    "service.cpuspeed",
    "service.netfilter",
    "service.tuned.profile",
    "sysfs.cpu_dma_latency",
    "sysfs.cpuidle.deep_states",
    "sysfs.cpufreq.energy_performance_preference",
    "sysfs.cpufreq.governor",
    "sysfs.cpufreq.scaling_min",
    "sysfs.pcie_aspm.policy",
    "sysctl.kernel.nmi_watchdog",
    "sysctl.kernel.numa_balancing",
    "sysctl.kernel.timer_migration",
    "sysctl.vm.stat_interval",
    "memory.ksm",
    "memory.thp_enabled",
];

/// The packet filter's service. Profile `trading` keeps it, but this plan stops it if its risk is accepted by name.
const FILTER: &str = "service.firewalld";

impl Plan {
    /// Plans the preparation of a host for the traffic of one interface and of its lower interfaces. The result is a
    /// part of [`Plan::of`] that is applied, verified and rolled back like a full plan.
    pub fn for_interface(context: &Context<'_>, lowlat_version: &str, nic: &str) -> Self {
        let role = Role { nics: vec![nic.to_owned()], ..context.role.clone() };
        let host = with_interrupts_of(context.host, &role);
        let own = Context { role: &role, host: &host, ..*context };
        let mut plan = Self::of_some(&own, lowlat_version, prepares_network);
        let asked = Context { profile: Profile::Guide57037, ..own };
        let filter = Self::of_some(&asked, lowlat_version, |setting| setting.id == FILTER);
        plan.changes.extend(filter.changes);
        plan.left_out.extend(filter.left_out);
        plan
    }
}

/// The host without interrupts of other devices, so that these stay unchanged.
fn with_interrupts_of(host: &HostSnapshot, role: &Role) -> HostSnapshot {
    let own: Vec<u32> = role.trading_nics(host).flat_map(|nic| nic.irqs.clone()).collect();
    let mut host = host.clone();
    host.interrupts.irqs.retain(|irq| own.contains(&irq.number));
    host
}

fn prepares_network(setting: &Setting) -> bool {
    PREPARING.iter().any(|start| {
        let is_family = start.ends_with('.');
        if is_family { setting.id.starts_with(start) } else { setting.id == *start }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_catalogue::{CATALOGUE, testing::Bench};
    use lowlat_host::{
        CpuSet, Reading,
        snapshot::{Coalescing, Irq, Nic, Pause, Service},
    };
    use lowlat_settings::change::{Target, WhyLeftOut};

    fn nic(name: &str, irq: u32) -> Nic {
        Nic {
            name: name.into(),
            is_physical: true,
            operstate: Reading::Known("up".into()),
            irqs: vec![irq],
            coalescing: Reading::Known(Coalescing {
                rx_usecs: Some(0),
                rx_usecs_irq: Some(60),
                adaptive_rx: Some(true),
                ..Coalescing::default()
            }),
            pause: Reading::Known(Pause { autoneg: true, rx: true, tx: true }),
            ..Nic::default()
        }
    }

    fn bench() -> Bench {
        let mut bench = Bench::trading();
        let cpus = |list| Reading::Known(CpuSet::parse_list(list).unwrap());
        bench.host.nics = vec![nic("eth0", 40), nic("eth1", 41)];
        bench.host.interrupts.irqs = [40, 41]
            .map(|number| Irq {
                number,
                actions: vec![format!("eth-{number}")],
                affinity: cpus("0-15"),
                effective_affinity: cpus("3"),
                is_managed: Reading::Known(false),
                ..Irq::default()
            })
            .to_vec();
        bench.host.services.source = lowlat_host::snapshot::ServiceSource::SystemdBus;
        let running = Service { active: Reading::Known("active".into()), ..Service::default() };
        bench.host.services.units.insert("firewalld.service".into(), running);
        bench
    }

    fn plan(bench: &Bench) -> Plan {
        Plan::for_interface(&bench.context(), "1.0.0", "eth0")
    }

    #[test]
    fn the_articles_steps_are_planned_for_this_interface_alone() {
        let plan = plan(&bench());
        let names: Vec<String> =
            plan.changes.iter().map(|change| change.target.kind().facts().name).collect();
        for wanted in ["eth0 rx-usecs-irq", "eth0 adaptive-rx", "eth0 rx pause", "eth0 tx pause"] {
            assert!(names.iter().any(|name| name == wanted), "{wanted}: {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("eth1")), "{names:?}");
        let irqs: Vec<u32> = plan.changes.iter().filter_map(|change| irq_of(&change.target)).collect();
        assert_eq!(irqs, [40], "interrupts of other devices stay");
    }

    #[test]
    fn a_bond_and_a_vlan_are_prepared_by_what_they_stand_on() {
        let mut bench = bench();
        let on = |name: &str, lower: &[&str]| Nic {
            name: name.into(),
            lower: lower.iter().map(|&name| name.to_owned()).collect(),
            ..Nic::default()
        };
        bench.host.nics.extend([
            on("bond0", &["eth0", "eth1"]),
            on("bond0.7", &["bond0"]),
            on("loop0", &["loop0"]),
        ]);
        let all = Plan::for_interface(&bench.context(), "1.0.0", "bond0.7");
        let names: Vec<String> = all.changes.iter().map(|change| change.target.kind().facts().name).collect();
        for wanted in ["eth0 adaptive-rx", "eth1 adaptive-rx"] {
            assert!(names.iter().any(|name| name == wanted), "{wanted}: {names:?}");
        }
        let irqs: Vec<u32> = all.changes.iter().filter_map(|change| irq_of(&change.target)).collect();
        assert_eq!(irqs, [40, 41]);
        let round = Plan::for_interface(&bench.context(), "1.0.0", "loop0");
        assert!(round.changes.iter().all(|change| irq_of(&change.target).is_none()));
    }

    fn irq_of(target: &Target) -> Option<u32> {
        if let Target::IrqAffinity { irq, .. } = target { Some(*irq) } else { None }
    }

    #[test]
    fn the_packet_filter_goes_only_where_its_risk_is_accepted() {
        let mut bench = bench();
        let is_stopped = |plan: &Plan| {
            plan.changes.iter().any(
                |change| matches!(&change.target, Target::Service { unit } if unit == "firewalld.service"),
            )
        };
        let before = plan(&bench);
        assert!(!is_stopped(&before));
        let left = before.left_out.iter().find(|left| left.setting == FILTER).unwrap();
        assert!(matches!(left.why, WhyLeftOut::NotAccepted(_)), "{left:?}");
        bench.role.accepted_risks = vec![FILTER.into()];
        assert!(is_stopped(&plan(&bench)));
    }

    #[test]
    fn every_start_is_of_a_setting() {
        for start in PREPARING {
            let found = CATALOGUE.settings().filter(|setting| prepares_network(setting));
            assert!(found.map(|setting| setting.id).any(|id| id.starts_with(start)), "{start}");
        }
        let is_in = |id: &str| prepares_network(CATALOGUE.find(id).unwrap());
        assert!(is_in("nic.rx_usecs_irq") && is_in("sysctl.net.core.busy_read"));
        assert!(!is_in("sysctl.kernel.numa_balancing_scan_size_mb") && !is_in("boot.nohz_full"));
        assert!(CATALOGUE.find(FILTER).is_some() && !is_in(FILTER));
    }
}
