use super::{Fixture, Reading, Verdict, check, good_host, known};
use crate::CATALOGUE;
use Verdict::{Good, NotApplicable, Unknown, Wrong};

#[test]
fn clock_rows() {
    check(
        "sysfs.clocksource",
        &[
            ("tsc", |_| {}, Good),
            ("hpet", |f| f.host.cpu.clocksource = known("hpet"), Wrong),
            (
                "ARM",
                |f| {
                    f.host.kernel.machine = known("aarch64");
                    f.host.cpu.clocksource = known("arch_sys_counter");
                },
                Good,
            ),
            ("denied", |f| f.host.cpu.clocksource = Reading::Denied, Unknown),
            ("an unknown machine", |f| f.host.kernel.machine = known("riscv64"), NotApplicable),
        ],
    );
    let mut fixture = good_host();
    fixture.host.cpu.clocksource = known("hpet");
    fixture.host.cpu.clocksources_available = Reading::Known(vec!["hpet".into()]);
    assert!(fixture.finding("sysfs.clocksource").because.contains("does not offer tsc"));
    check(
        "sysfs.tsc_flags",
        &[
            ("both", |_| {}, Good),
            ("neither", |f| f.host.cpu.flags = known([]), Wrong),
            ("denied", |f| f.host.cpu.flags = Reading::Denied, Unknown),
            ("ARM", |f| f.host.kernel.machine = known("aarch64"), NotApplicable),
        ],
    );
}

const POLICY: &str = "/sys/module/pcie_aspm/parameters/policy";
const INTERVAL: &str = "/sys/devices/system/machinecheck/machinecheck0/check_interval";

#[test]
fn aspm_microcode_and_machine_checks() {
    check(
        "sysfs.pcie_aspm.policy",
        &[
            ("performance", |_| {}, Good),
            ("default", |f| f.file(POLICY, known("[default] performance powersave powersupersave")), Wrong),
            ("pcie_aspm=off", |f| f.command_line("pcie_aspm=off"), NotApplicable),
            ("in a guest", |f| f.host.virtualization.is_virtual = known(true), NotApplicable),
            ("denied", |f| f.file(POLICY, Reading::Denied), Unknown),
            ("absent", |f| f.file(POLICY, Reading::Absent), NotApplicable),
        ],
    );
    check(
        "sysfs.microcode_uniform",
        &[
            ("one", |_| {}, Good),
            ("two", |f| f.host.cpu.microcode_uniform = known(false), Wrong),
            ("denied", |f| f.host.cpu.microcode_uniform = Reading::Denied, Unknown),
            ("none", |f| f.host.cpu.microcode_uniform = Reading::Absent, NotApplicable),
        ],
    );
    check(
        "sysfs.machinecheck.check_interval",
        &[
            ("the kernel's", |_| {}, Good),
            ("off", |f| f.file(INTERVAL, known("0")), Wrong),
            (
                "off and accepted",
                |f| {
                    f.file(INTERVAL, known("0"));
                    f.role.accepted_risks.push("sysfs.machinecheck.check_interval".into());
                },
                Good,
            ),
            (
                "accepted, yet on",
                |f| f.role.accepted_risks.push("sysfs.machinecheck.check_interval".into()),
                Wrong,
            ),
            ("guide, on", Fixture::guide, Wrong),
            (
                "guide, mce=ignore_ce",
                |f| {
                    f.guide();
                    f.command_line("mce=ignore_ce");
                },
                Good,
            ),
            ("junk", |f| f.file(INTERVAL, known("five minutes")), Unknown),
            ("denied", |f| f.file(INTERVAL, Reading::Denied), Unknown),
            ("absent", |f| f.file(INTERVAL, Reading::Absent), NotApplicable),
        ],
    );
    assert_eq!(good_host().finding("sysfs.machinecheck.check_interval").observed, "every 300 s");
}

#[test]
fn mitigations_are_never_advised_off() {
    check(
        "sysfs.vulnerabilities",
        &[
            ("mitigated", |_| {}, Good),
            ("open", open, Wrong),
            (
                "open and accepted",
                |f| {
                    open(f);
                    f.role.accepted_risks.push("sysfs.vulnerabilities".into());
                },
                Good,
            ),
            (
                "denied",
                |f| {
                    f.host.cpu.vulnerabilities.insert("spectre_v2".into(), Reading::Denied);
                },
                Unknown,
            ),
            ("one denied of two", |f| flaw(f, "mds", Reading::Denied), Unknown),
            ("open without KVM", |f| flaw(f, "itlb_multihit", known("Processor vulnerable")), Wrong),
            ("open for guests", |f| flaw(f, "itlb_multihit", known("KVM: Vulnerable")), Wrong),
            ("closed for guests", |f| flaw(f, "l1tf", known("KVM: Mitigation: VMX disabled")), Good),
            (
                "up to the hypervisor",
                |f| flaw(f, "srbds", known("Unknown: Dependent on hypervisor status")),
                Unknown,
            ),
            ("none reported", |f| f.host.cpu.vulnerabilities.clear(), Unknown),
            ("guide", Fixture::guide, NotApplicable),
        ],
    );
    let mut fixture = good_host();
    flaw(&mut fixture, "mds", known("Mitigation: Clear CPU buffers; SMT vulnerable"));
    let finding = fixture.finding("sysfs.vulnerabilities");
    assert_eq!(finding.verdict, Good);
    assert!(finding.observed.ends_with("open: 0, partly mitigated: mds"), "{}", finding.observed);
    let setting = CATALOGUE.find("sysfs.vulnerabilities").unwrap();
    assert!(setting.reason.contains("never advises to switch them off"));
}

fn open(f: &mut Fixture) {
    flaw(f, "mds", known("Vulnerable: Clear CPU buffers attempted, no microcode"));
}

fn flaw(f: &mut Fixture, name: &str, state: Reading<String>) {
    f.host.cpu.vulnerabilities.insert(name.into(), state);
}

#[test]
fn hypervisors_and_steal_time_are_reported() {
    check(
        "readiness.virtual_machine",
        &[
            ("physical", |_| {}, Good),
            ("virtual", Fixture::virtual_machine, Wrong),
            ("denied", |f| f.host.virtualization.is_virtual = Reading::Denied, Unknown),
            ("not reported", |f| f.host.virtualization.is_virtual = Reading::Absent, Unknown),
        ],
    );
    check(
        "readiness.steal",
        &[
            ("physical", |_| {}, NotApplicable),
            ("not reported", Fixture::virtual_machine, Unknown),
            ("none", |f| steal(f, 3, 0), Good),
            ("from an isolated CPU", |f| steal(f, 3, 7), Wrong),
            ("from housekeeping", |f| steal(f, 0, 7), Good),
            (
                "no CPU isolated: every CPU counts",
                |f| {
                    steal(f, 0, 7);
                    f.no_isolated();
                },
                Wrong,
            ),
        ],
    );
}

#[test]
fn an_unknown_hypervisor_is_not_a_missing_file() {
    let mut fixture = good_host();
    fixture.host.virtualization.is_virtual = Reading::Absent;
    for id in ["readiness.virtual_machine", "readiness.steal"] {
        let because = fixture.finding(id).because;
        assert!(because.contains("whether this host is virtual"), "{because}");
    }
}

fn steal(f: &mut Fixture, cpu: u32, ticks: u64) {
    f.virtual_machine();
    f.host.virtualization.steal_ticks = (0..16).map(|number| (number, 0)).collect();
    f.host.virtualization.steal_ticks.insert(cpu, ticks);
}
