use super::{Fixture, Reading, Verdict, check, cpus, good_host, known};
use Verdict::{Good, NotApplicable, Unknown, Wrong};
use lowlat_host::snapshot::{Irq, Service, ServiceSource};

#[test]
fn new_interrupts_start_on_housekeeping_cpus() {
    check(
        "irq.default_affinity",
        &[
            ("housekeeping", |_| {}, Good),
            ("all", |f| f.host.interrupts.default_affinity = known(cpus("0-15")), Wrong),
            (
                "with CPUs that never existed",
                |f| f.host.interrupts.default_affinity = known(cpus("0,8,64-127")),
                Good,
            ),
            ("denied", |f| f.host.interrupts.default_affinity = Reading::Denied, Unknown),
            ("none isolated", Fixture::no_isolated, NotApplicable),
            ("guide", Fixture::guide, Good),
        ],
    );
    assert_eq!(good_host().finding("irq.default_affinity").wanted, "0,8");
}

fn other_service(f: &mut Fixture) {
    f.host.services.source = ServiceSource::UnitFiles;
    f.host.services.units.insert("ssh.service".into(), Service::default());
}

fn irqbalance(f: &mut Fixture, active: &str) {
    let unit = Service { active: known(active), ..Service::default() };
    f.host.services.units.insert("irqbalance.service".into(), unit);
}

#[test]
fn irqbalance_must_exclude_isolated_cpus() {
    check(
        "irq.irqbalance_banned",
        &[
            ("no service manager", |_| {}, Unknown),
            ("not installed", other_service, NotApplicable),
            ("stopped", |f| irqbalance(f, "inactive"), NotApplicable),
            ("no list: it leaves out what is isolated at boot", |f| irqbalance(f, "active"), Good),
            (
                "no list and nothing isolated at boot",
                |f| {
                    irqbalance(f, "active");
                    f.host.topology.isolated = known(cpus(""));
                    f.host.topology.nohz_full = known(cpus(""));
                },
                Wrong,
            ),
            (
                "a short list wins over the kernel's",
                |f| {
                    irqbalance(f, "active");
                    f.host.services.irqbalance.banned_cpus = known(cpus("1-7"));
                },
                Wrong,
            ),
            (
                "a full list",
                |f| {
                    irqbalance(f, "active");
                    f.host.services.irqbalance.banned_cpus = known(cpus("1-15"));
                },
                Good,
            ),
            (
                "an empty list also switches irqbalance's own detection off",
                |f| {
                    irqbalance(f, "active");
                    f.host.services.irqbalance.banned_cpus = known(cpus(""));
                },
                Wrong,
            ),
            (
                "a list that irqbalance cannot read bans nothing",
                |f| {
                    irqbalance(f, "active");
                    f.host.services.irqbalance.banned_cpus = Reading::unparsable("/x", "0xfefe", "a mask");
                },
                Wrong,
            ),
            (
                "list denied",
                |f| {
                    irqbalance(f, "active");
                    f.host.services.irqbalance.banned_cpus = Reading::Denied;
                },
                Unknown,
            ),
        ],
    );
}

fn managed(f: &mut Fixture, change: impl Fn(&mut Irq)) {
    f.host.interrupts.irqs.iter_mut().for_each(change);
}

#[test]
fn managed_interrupts_are_judged_by_their_effective_affinity() {
    check(
        "irq.managed",
        &[
            ("on housekeeping", |_| {}, Good),
            ("on isolated", |f| managed(f, |irq| irq.effective_affinity = known(cpus("9"))), Wrong),
            ("none managed", |f| managed(f, |irq| irq.is_managed = known(false)), NotApplicable),
            ("debugfs denied", |f| managed(f, |irq| irq.is_managed = Reading::Denied), Unknown),
            ("debugfs absent", |f| managed(f, |irq| irq.is_managed = Reading::Absent), Unknown),
            ("effective denied", |f| managed(f, |irq| irq.effective_affinity = Reading::Denied), Unknown),
            ("no interrupts", |f| f.host.interrupts.irqs.clear(), Unknown),
            ("none isolated", Fixture::no_isolated, NotApplicable),
        ],
    );
}

fn queues(f: &mut Fixture, on: &[&str]) {
    f.host.interrupts.irqs = (100..)
        .zip(on)
        .map(|(number, list)| Irq { number, effective_affinity: known(cpus(list)), ..Irq::default() })
        .collect();
    f.nic().irqs = (100..100 + u32::try_from(on.len()).unwrap()).collect();
}

#[test]
fn nic_queue_interrupts_are_near_and_spread() {
    check(
        "irq.spread_nic_queues",
        &[
            ("one on its node", |_| {}, Good),
            ("on isolated", |f| queues(f, &["8", "9"]), Wrong),
            ("on the other node", |f| queues(f, &["0"]), Wrong),
            (
                "its node keeps no house",
                |f| {
                    f.allocation.housekeeping = cpus("0,1");
                    f.allocation.isolated = cpus("2-15");
                    queues(f, &["0", "1"]);
                },
                Good,
            ),
            (
                "all on one of two",
                |f| {
                    f.allocation.housekeeping = cpus("0,8,9");
                    f.allocation.isolated = cpus("1-7,10-15");
                    queues(f, &["8", "8"]);
                },
                Wrong,
            ),
            (
                "denied",
                |f| {
                    for irq in &mut f.host.interrupts.irqs {
                        irq.affinity = Reading::Denied;
                        irq.effective_affinity = Reading::Denied;
                    }
                },
                Unknown,
            ),
            ("no interrupts", |f| f.nic().irqs.clear(), NotApplicable),
            ("no NIC", |f| f.host.nics.clear(), NotApplicable),
        ],
    );
}
