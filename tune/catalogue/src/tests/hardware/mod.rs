//! Judges of hardware, power, memory, interrupt and NIC settings on artificial hosts.

mod firmware;
mod guide_rows;
mod irq;
mod memory;
mod nic;
mod platform;
mod sysfs;

use crate::CATALOGUE;
use lowlat_host::{
    Allocation, CpuSet, HostSnapshot, Profile, Reading, Role,
    cmdline::CommandLine,
    snapshot::{
        Channels, Coalescing, CpuFreq, IdleState, Irq, MemoryModule, Nic, PcieLink, QueueMask, Timestamping,
    },
    topology::{Cache, Group, Node},
};
use lowlat_settings::change::Proposal;
use lowlat_settings::{Context, Finding, Makers, Verdict, judge_one};

pub(super) const GIB: u64 = 1 << 30;

/// A host with everything that a judge reads.
pub(super) struct Fixture {
    pub host: HostSnapshot,
    pub role: Role,
    pub allocation: Allocation,
    pub profile: Profile,
}

pub(super) fn known<T>(value: impl Into<T>) -> Reading<T> {
    Reading::Known(value.into())
}

pub(super) fn cpus(list: &str) -> CpuSet {
    CpuSet::parse_list(list).expect("a list in a test")
}

impl Fixture {
    pub fn finding(&self, id: &str) -> Finding {
        judge_one(&self.context(), CATALOGUE.find(id).unwrap_or_else(|| panic!("no setting {id}")))
    }

    pub fn proposal(&self, id: &str) -> Proposal {
        CATALOGUE.find(id).unwrap_or_else(|| panic!("no setting {id}")).proposal(&self.context())
    }

    fn context(&self) -> Context<'_> {
        Context {
            host: &self.host,
            role: &self.role,
            allocation: &self.allocation,
            profile: self.profile,
            catalogue: CATALOGUE,
        }
    }

    pub fn file(&mut self, path: &str, value: Reading<String>) {
        self.host.files.insert(path.into(), value);
    }

    pub fn command_line(&mut self, text: &str) {
        self.host.kernel.command_line = Reading::Known(CommandLine::parse(text));
    }

    pub fn nic(&mut self) -> &mut Nic {
        &mut self.host.nics[0]
    }

    pub fn guide(&mut self) {
        self.profile = Profile::Guide57037;
    }

    pub fn no_isolated(&mut self) {
        self.allocation.isolated = CpuSet::new();
    }

    pub fn virtual_machine(&mut self) {
        self.host.virtualization.is_virtual = Reading::Known(true);
    }
}

/// One case: a change to the good host, and the expected verdict.
pub(super) type Case = (&'static str, fn(&mut Fixture), Verdict);

/// Judges a setting on the good host with the change of each case.
pub(super) fn check(id: &str, cases: &[Case]) {
    for (label, change, verdict) in cases {
        let mut fixture = good_host();
        change(&mut fixture);
        let finding = fixture.finding(id);
        assert_eq!(
            finding.verdict, *verdict,
            "{id}, {label}: observed \"{}\", because \"{}\"",
            finding.observed, finding.because
        );
        if matches!(verdict, Verdict::Unknown | Verdict::NotApplicable) {
            assert!(!finding.because.is_empty(), "{id}, {label}: says why");
        }
        if verdict.is_fault() {
            assert!(
                !finding.observed.is_empty() && !finding.wanted.is_empty(),
                "{id}, {label}: seen and wanted"
            );
        }
    }
}

fn group(id: i64, list: &str) -> Group {
    Group { id, cpus: cpus(list) }
}

/// The guide's own server, 2x EPYC 7F32 with an L3 for each core, tuned for profile `trading`.
pub(super) fn good_host() -> Fixture {
    let mut host = HostSnapshot::default();
    topology(&mut host);
    processor(&mut host);
    memory(&mut host);
    host.kernel.machine = known("x86_64");
    host.kernel.version = Reading::Known(lowlat_host::kernel_version::KernelVersion::new(6, 12));
    host.kernel.command_line = Reading::Known(CommandLine::parse("ro isolcpus=managed_irq,domain,1-7,9-15"));
    host.firmware.bios_vendor = known("HPE");
    host.firmware.bios_version = known("A42");
    host.firmware.bios_date = known("04/29/2020");
    host.firmware.is_uefi = known(true);
    host.firmware.iommu_count = known(8u32);
    host.virtualization.is_virtual = known(false);
    host.services.cgroup_version = known(2u32);
    host.interrupts.default_affinity = Reading::Known(cpus("0,8"));
    host.interrupts.irqs = [(40, "eth0-0"), (41, "nvme0q1")]
        .into_iter()
        .map(|(number, name)| Irq {
            number,
            actions: vec![name.into()],
            affinity: Reading::Known(cpus("8")),
            effective_affinity: Reading::Known(cpus("8")),
            is_managed: Reading::Known(name.starts_with("nvme")),
            ..Irq::default()
        })
        .collect();
    host.nics = vec![nic()];
    for (path, value) in [
        ("/sys/module/pcie_aspm/parameters/policy", "default [performance] powersave powersupersave"),
        ("/sys/devices/system/machinecheck/machinecheck0/check_interval", "12c"),
        ("/sys/class/net/eth0/gro_flush_timeout", "0"),
        ("/sys/class/net/eth0/napi_defer_hard_irqs", "0"),
        ("/sys/module/onload/version", "8.1.3.40"),
        ("/sys/devices/system/cpu/cpufreq/boost", "1"),
    ] {
        host.files.insert(path.into(), known(value));
    }
    let allocation =
        Allocation { housekeeping: cpus("0,8"), isolated: cpus("1-7,9-15"), ..Allocation::default() };
    Fixture { host, role: Role::default(), allocation, profile: Profile::Trading }
}

fn topology(host: &mut HostSnapshot) {
    let topology = &mut host.topology;
    topology.online = cpus("0-15");
    topology.isolated = Reading::Known(cpus("1-7,9-15"));
    topology.nohz_full = Reading::Known(cpus("1-7,9-15"));
    topology.packages = vec![group(0, "0-7"), group(1, "8-15")];
    topology.cores = (0..16).map(|cpu| Group { id: i64::from(cpu), cpus: CpuSet::of(cpu) }).collect();
    topology.caches =
        (0..16).map(|cpu| Cache { level: 3, cpus: CpuSet::of(cpu), ..Cache::default() }).collect();
    topology.nodes = [(0, "0-7", 257_464), (1, "8-15", 258_018)]
        .into_iter()
        .map(|(id, list, mib): (u32, &str, u64)| Node {
            id,
            cpus: cpus(list),
            memory_bytes: Reading::Known(mib << 20),
            distances: Reading::Known(if id == 0 { vec![10, 32] } else { vec![32, 10] }),
            ..Node::default()
        })
        .collect();
}

fn processor(host: &mut HostSnapshot) {
    let cpu = &mut host.cpu;
    cpu.vendor = known("AuthenticAMD");
    cpu.family = known(23u32);
    cpu.model = known(49u32);
    cpu.microcode = known("0x830107c");
    cpu.microcode_uniform = known(true);
    cpu.flags = Reading::Known(
        ["constant_tsc", "nonstop_tsc", "x2apic", "cpb", "svm"].into_iter().map(str::to_owned).collect(),
    );
    cpu.clocksource = known("tsc");
    cpu.clocksources_available = Reading::Known(vec!["tsc".into(), "hpet".into(), "acpi_pm".into()]);
    cpu.smt_control = known("notsupported");
    cpu.boost = known(false);
    cpu.idle_driver = known("acpi_idle");
    cpu.idle_states = vec![
        IdleState {
            name: "POLL".into(),
            cpus: cpus("0-15"),
            cpus_enabled: cpus("0-15"),
            ..IdleState::default()
        },
        IdleState {
            name: "C1".into(),
            cpus: cpus("0-15"),
            cpus_enabled: cpus("0-15"),
            ..IdleState::default()
        },
    ];
    cpu.vulnerabilities.insert("spectre_v2".into(), known("Mitigation: Retpolines"));
    cpu.frequency = (0..16)
        .map(|number| CpuFreq {
            cpus: CpuSet::of(number),
            driver: known("acpi-cpufreq"),
            governor: known("performance"),
            scaling_min_khz: known(1_500_000u64),
            scaling_max_khz: known(3_700_000u64),
            ..CpuFreq::default()
        })
        .collect();
}

fn memory(host: &mut HostSnapshot) {
    let memory = &mut host.memory;
    memory.thp_enabled = known("madvise");
    memory.thp_defrag = known("madvise");
    memory.ksm_run = known(0u32);
    memory.swaps = Reading::Known(vec![]);
    memory.huge_pages = [0, 1]
        .into_iter()
        .map(|node| lowlat_host::snapshot::HugePages {
            node: Some(node),
            size_bytes: 2 << 20,
            total: known(3_000u64),
            free: known(3_000u64),
        })
        .collect();
    memory.modules = Reading::Known(
        (1..=16)
            .map(|slot| MemoryModule {
                locator: format!("PROC {} DIMM {slot}", 1 + slot / 9),
                size_bytes: 32 * GIB,
                kind: "DDR4".into(),
                speed_mts: Some(3_200),
                configured_mts: Some(2_933),
                ranks: Some(2),
                ..MemoryModule::default()
            })
            .collect(),
    );
    host.files.insert("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag".into(), known("0"));
}

fn nic() -> Nic {
    Nic {
        name: "eth0".into(),
        is_physical: true,
        operstate: known("up"),
        speed_mbps: known(10_000u32),
        driver: known("sfc"),
        firmware: known("8.0.2.1000 rx1 tx1"),
        node: Reading::Known(1),
        link: Reading::Known(PcieLink {
            width: known(8u32),
            width_max: known(8u32),
            speed: known("8.0 GT/s PCIe"),
            speed_max: known("8.0 GT/s PCIe"),
            aspm: known(false),
        }),
        channels: Reading::Known(Channels { combined: 2, combined_max: 16, ..Channels::default() }),
        coalescing: Reading::Known(Coalescing {
            rx_usecs: Some(0),
            adaptive_rx: Some(false),
            ..Coalescing::default()
        }),
        offloads: Reading::Known([("rx-lro".to_owned(), false)].into()),
        timestamping: Reading::Known(Timestamping {
            hardware_rx: true,
            hardware_tx: true,
            phc_index: Some(0),
        }),
        irqs: vec![40],
        rps: vec![QueueMask { queue: "rx-0".into(), cpus: Reading::Known(CpuSet::new()) }],
        xps: vec![QueueMask { queue: "tx-0".into(), cpus: Reading::Known(cpus("0,8")) }],
        ..Nic::default()
    }
}

/// The layers and ids of the families under test.
fn ids() -> impl Iterator<Item = &'static lowlat_settings::Setting> {
    let ours = ["firmware.", "sysfs.", "memory.", "nic.", "readiness.virtual_machine", "readiness.steal"];
    let irqs = ["irq.default_affinity", "irq.irqbalance_banned", "irq.managed", "irq.spread_nic_queues"];
    CATALOGUE
        .settings()
        .filter(move |s| ours.iter().any(|start| s.id.starts_with(start)) || irqs.contains(&s.id))
}

#[test]
fn an_unknown_host_has_no_good_rows_and_no_faults() {
    for profile in Profile::ALL {
        let fixture = Fixture {
            host: HostSnapshot::default(),
            role: Role::default(),
            allocation: Allocation::default(),
            profile,
        };
        for setting in ids() {
            let finding = fixture.finding(setting.id);
            assert!(
                matches!(finding.verdict, Verdict::Unknown | Verdict::NotApplicable),
                "{}: {:?} on an empty host: {}",
                setting.id,
                finding.verdict,
                finding.observed
            );
            assert!(!finding.because.is_empty(), "{}", setting.id);
        }
    }
}

#[test]
fn the_good_host_has_no_fault_in_these_families() {
    for setting in ids() {
        let finding = good_host().finding(setting.id);
        assert!(
            !finding.verdict.is_fault(),
            "{}: {:?} {} {}",
            setting.id,
            finding.verdict,
            finding.observed,
            finding.because
        );
    }
}
