//! Hosts made by hand.

use lowlat_host::{
    CpuSet, HostSnapshot, Reading, Topology,
    cmdline::CommandLine,
    kernel_version::KernelVersion,
    snapshot::{
        Channels, Coalescing, Counter, CpuFreq, Disk, HugePages, IdleState, Irq, KernelThread, MemoryModule,
        Nic, Origin, PcieLink, Rings, SchedPolicy, Service, ServiceSource, Swap, Timestamping, Workqueue,
    },
    topology::{Cache, CacheKind, Counts, Group, Node},
};
use std::collections::BTreeMap;

/// Shape of a host. CPUs are numbered core by core; second threads follow all first ones.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub packages: u32,
    pub nodes_per_package: u32,
    pub cores_per_package: u32,
    pub threads: u32,
    pub cores_per_llc: u32,
    pub cores_per_cluster: u32,
}

impl Shape {
    pub const EPYC_7F32: Self = Self {
        packages: 2,
        nodes_per_package: 1,
        cores_per_package: 8,
        threads: 1,
        cores_per_llc: 1,
        cores_per_cluster: 0,
    };
    /// Two EPYC 9654-like parts with SMT cut to 64 cores, four nodes each: 256 CPUs.
    pub const WIDE: Self =
        Self { nodes_per_package: 4, cores_per_package: 64, threads: 2, cores_per_llc: 8, ..Self::EPYC_7F32 };
    /// A Xeon 6 of small cores: four-core clusters under one last-level cache.
    pub const CLUSTERS: Self = Self {
        packages: 1,
        cores_per_package: 64,
        cores_per_llc: 64,
        cores_per_cluster: 4,
        ..Self::EPYC_7F32
    };
}

fn known<T>(value: T) -> Reading<T> {
    Reading::Known(value)
}

fn text(value: &str) -> Reading<String> {
    Reading::Known(value.to_owned())
}

fn topology(shape: &Shape) -> Topology {
    let cores = shape.packages * shape.cores_per_package;
    let cpus_of = |first: u32, count: u32| -> CpuSet {
        (first..first + count).flat_map(|core| (0..shape.threads).map(move |t| core + t * cores)).collect()
    };
    let groups = |size: u32| -> Vec<Group> {
        let starts = (0..cores).step_by(size.max(1) as usize);
        starts.enumerate().map(|(id, first)| Group { id: id as i64, cpus: cpus_of(first, size) }).collect()
    };
    let caches = |level: u8, size: u32, bytes: u64| {
        groups(size).into_iter().map(move |group| Cache {
            level,
            kind: CacheKind::Unified,
            size_bytes: known(bytes),
            line_bytes: known(64),
            cpus: group.cpus,
        })
    };
    let per_node = shape.cores_per_package / shape.nodes_per_package;
    let node_groups = groups(per_node);
    let node_count = node_groups.len();
    let nodes = node_groups.into_iter().enumerate().map(|(id, group)| Node {
        id: id as u32,
        cpus: group.cpus,
        memory_bytes: known(257_464 << 20),
        distances: known((0..node_count).map(|other| if other == id { 10 } else { 32 }).collect()),
        memory_tier: Reading::Absent,
        side_cache_bytes: Reading::Absent,
    });
    let mut core_groups = groups(1);
    for (at, core) in core_groups.iter_mut().enumerate() {
        core.id = at as i64 % i64::from(shape.cores_per_package);
    }
    let online = CpuSet::first(cores * shape.threads);
    Topology {
        counts: Counts {
            packages: shape.packages as usize,
            numa_nodes: node_count,
            llcs: (cores / shape.cores_per_llc) as usize,
            l2_groups: cores as usize,
            cores: cores as usize,
            pus: online.len(),
        },
        possible: known(online.clone()),
        present: known(online.clone()),
        isolated: known(CpuSet::new()),
        nohz_full: known(CpuSet::new()),
        packages: groups(shape.cores_per_package),
        dies: groups(shape.cores_per_package),
        clusters: if shape.cores_per_cluster > 0 { groups(shape.cores_per_cluster) } else { Vec::new() },
        cores: core_groups,
        caches: caches(2, shape.cores_per_cluster.max(1), 512 << 10)
            .chain(caches(3, shape.cores_per_llc, 16 << 20))
            .collect(),
        nodes: nodes.collect(),
        online,
        ..Topology::default()
    }
}

/// A host of this shape, filled in as far as readers fill it on a live server.
pub fn host(shape: &Shape) -> HostSnapshot {
    let topology = topology(shape);
    let cpus = topology.online.clone();
    let mut host = HostSnapshot { schema_version: 1, topology, ..HostSnapshot::default() };
    host.origin = Origin { label: "/".into(), is_privileged: true, ..Origin::default() };
    fill_cpu(&mut host, &cpus);
    fill_kernel(&mut host);
    fill_memory(&mut host);
    fill_devices(&mut host);
    fill_services(&mut host);
    fill_tasks(&mut host, &cpus);
    host.virtualization.is_virtual = known(false);
    host
}

fn fill_cpu(host: &mut HostSnapshot, cpus: &CpuSet) {
    let cpu = &mut host.cpu;
    cpu.vendor = text("AuthenticAMD");
    cpu.model_name = text("AMD EPYC 7F32 8-Core Processor");
    (cpu.family, cpu.model, cpu.stepping) = (known(23), known(49), known(0));
    cpu.microcode = text("0x830107c");
    cpu.microcode_uniform = known(true);
    cpu.flags = known(["constant_tsc", "nonstop_tsc", "rdtscp", "svm"].map(str::to_owned).into());
    cpu.vulnerabilities.insert("meltdown".into(), text("Not affected"));
    cpu.vulnerabilities.insert("retbleed".into(), text("Mitigation: untrained return thunk; SMT disabled"));
    cpu.vulnerabilities
        .insert("spectre_v2".into(), text("Mitigation: Retpolines; IBPB: conditional; STIBP: disabled"));
    cpu.clocksource = text("tsc");
    cpu.clocksources_available = known(["tsc", "hpet", "acpi_pm"].map(str::to_owned).to_vec());
    cpu.frequency = cpus
        .iter()
        .map(|cpu| CpuFreq {
            cpus: CpuSet::of(cpu),
            driver: text("acpi-cpufreq"),
            governor: text("schedutil"),
            scaling_min_khz: known(2_500_000),
            scaling_max_khz: known(3_700_000),
            cpuinfo_max_khz: known(3_700_000),
            ..CpuFreq::default()
        })
        .collect();
    cpu.boost = known(false);
    cpu.smt_control = text("off");
    cpu.idle_driver = text("acpi_idle");
    cpu.idle_governor = text("menu");
    cpu.idle_states = [("POLL", 0), ("C1", 1), ("C2", 400)]
        .map(|(name, us)| IdleState {
            name: name.into(),
            exit_latency_us: known(us),
            cpus: cpus.clone(),
            cpus_enabled: cpus.clone(),
        })
        .to_vec();
    let firmware = &mut host.firmware;
    firmware.bios_vendor = text("HPE");
    firmware.bios_version = text("A42");
    firmware.bios_date = text("04/29/2020");
    firmware.system_vendor = text("HPE");
    firmware.system_product = text("ProLiant DL385 Gen10 Plus");
    firmware.smbios_version = text("3.2");
    (firmware.is_uefi, firmware.secure_boot, firmware.iommu_count) = (known(true), known(false), known(8));
}

fn fill_kernel(host: &mut HostSnapshot) {
    let kernel = &mut host.kernel;
    kernel.release = text("6.1.0-25-amd64");
    kernel.version = known(KernelVersion::new(6, 1));
    kernel.build = text("#1 SMP PREEMPT_DYNAMIC Debian 6.1.106-3 (2024-08-26)");
    kernel.machine = text("x86_64");
    kernel.command_line = known(CommandLine::parse(
        "BOOT_IMAGE=/boot/vmlinuz-6.1.0-25-amd64 root=/dev/mapper/vg0-root ro quiet audit=0 nmi_watchdog=0 tsc=reliable \
         transparent_hugepage=never",
    ));
    (kernel.tainted, kernel.lockdown) = (known(0), text("none"));
    kernel.load_average = known([0.02, 0.11, 0.09]);
    kernel.uptime_s = known(302_400.0);
    kernel.distribution = text("Debian GNU/Linux 12 (bookworm)");
}

fn fill_memory(host: &mut HostSnapshot) {
    let memory = &mut host.memory;
    (memory.total_bytes, memory.available_bytes) = (known(515_482 << 20), known(505_000 << 20));
    memory.huge_page_default_bytes = known(2 << 20);
    memory.huge_pages = (0..2)
        .map(|node| HugePages {
            node: Some(node),
            size_bytes: 2 << 20,
            total: known(3_000),
            free: known(3_000),
        })
        .collect();
    (memory.thp_enabled, memory.thp_defrag, memory.ksm_run) = (text("never"), text("madvise"), known(0));
    memory.swaps = known(vec![Swap { path: "/dev/dm-1".into(), size_bytes: 4 << 30, used_bytes: 12 << 20 }]);
    let module = MemoryModule {
        size_bytes: 32 << 30,
        kind: "DDR4".into(),
        speed_mts: Some(3200),
        configured_mts: Some(3200),
        manufacturer: "Samsung".into(),
        part_number: "M393A4G43AB3-CWE".into(),
        ranks: Some(2),
        ..MemoryModule::default()
    };
    memory.modules = known(vec![module; 16]);
    memory.module_slots = known(32);
}

fn fill_devices(host: &mut HostSnapshot) {
    let sfc = Nic {
        name: "ens3f0np0".into(),
        is_physical: true,
        operstate: text("up"),
        speed_mbps: known(25_000),
        mtu_bytes: known(1_500),
        mac: text("00:0f:53"),
        oui_vendor: text("Solarflare"),
        driver: text("sfc"),
        driver_version: text("5.3.16"),
        firmware: text("8.0.10.1001"),
        bus: text("0000:81:00.0"),
        node: known(1),
        link: known(PcieLink {
            width: known(8),
            width_max: known(16),
            speed: text("8.0 GT/s PCIe"),
            speed_max: text("8.0 GT/s PCIe"),
            aspm: known(false),
        }),
        channels: known(Channels { combined: 16, combined_max: 16, ..Channels::default() }),
        rings: known(Rings { rx: 1_024, tx: 1_024, rx_max: 4_096, tx_max: 2_048 }),
        coalescing: known(Coalescing {
            rx_usecs: Some(30),
            tx_usecs: Some(150),
            adaptive_rx: Some(true),
            ..Coalescing::default()
        }),
        timestamping: known(Timestamping { hardware_rx: true, hardware_tx: true, phc_index: Some(2) }),
        irqs: (120..136).collect(),
        ..Nic::default()
    };
    let board = Nic {
        name: "eno1".into(),
        speed_mbps: known(1_000),
        mac: text("14:02:ec"),
        oui_vendor: text("Hewlett Packard Enterprise"),
        driver: text("tg3"),
        driver_version: text("6.1.0-25-amd64"),
        firmware: text("5719-v1.46"),
        bus: text("0000:02:00.0"),
        node: known(0),
        link: Reading::Absent,
        channels: Reading::Denied,
        timestamping: known(Timestamping::default()),
        irqs: (80..85).collect(),
        ..sfc.clone()
    };
    let loopback = Nic { name: "lo".into(), ..Nic::default() };
    host.nics = vec![board, sfc, loopback];
    host.disks = vec![Disk {
        name: "nvme0n1".into(),
        model: text("SAMSUNG MZQLB960HAJR"),
        size_bytes: known(960_197_124_096),
        is_rotational: known(false),
        scheduler: text("none"),
        bus: text("0000:41:00.0"),
        node: known(0),
    }];
}

fn fill_services(host: &mut HostSnapshot) {
    let services = &mut host.services;
    services.source = ServiceSource::SystemdBus;
    for (name, active, sub, enablement) in [
        ("chrony.service", "active", "running", "enabled"),
        ("irqbalance.service", "active", "running", "enabled"),
        ("bluetooth.service", "inactive", "dead", "disabled"),
    ] {
        let unit = Service { active: text(active), sub: text(sub), enablement: text(enablement) };
        services.units.insert(name.into(), unit);
    }
    services.tuned.profile = text("network-latency");
    services.tuned.rollback = text("auto");
    services.cgroup_version = known(2);
}

fn fill_tasks(host: &mut HostSnapshot, cpus: &CpuSet) {
    let thread =
        |pid: u32, comm: String, allowed: CpuSet, policy: SchedPolicy, is_bound: bool| KernelThread {
            pid,
            comm,
            cpus_allowed: known(allowed),
            policy,
            rt_priority: if policy == SchedPolicy::Fifo { 99 } else { 0 },
            is_bound,
        };
    let tasks = &mut host.tasks;
    tasks.kernel_threads.push(thread(2, "kthreadd".into(), cpus.clone(), SchedPolicy::Other, false));
    tasks.kernel_threads.push(thread(15, "rcu_preempt".into(), cpus.clone(), SchedPolicy::Other, false));
    for cpu in cpus.iter() {
        let own = CpuSet::of(cpu);
        let number = 20 + cpu * 2;
        let bound = |pid, comm, policy| thread(pid, comm, own.clone(), policy, true);
        tasks.kernel_threads.push(bound(number, format!("migration/{cpu}"), SchedPolicy::Fifo));
        tasks.kernel_threads.push(bound(number + 1, format!("ksoftirqd/{cpu}"), SchedPolicy::Other));
    }
    tasks.workqueue_cpus = known(cpus.clone());
    tasks.workqueues = vec![Workqueue { name: "writeback".into(), cpus: known(CpuSet::of(0)) }];
    let interrupts = &mut host.interrupts;
    interrupts.default_affinity = known(cpus.clone());
    interrupts.irqs = (120..136)
        .map(|number| Irq {
            number,
            chip: "PCI-MSI 67633152-edge".into(),
            actions: vec![format!("ens3f0np0-{}", number - 120)],
            affinity: known(cpus.clone()),
            effective_affinity: known(CpuSet::of((number - 120) % cpus.len() as u32)),
            is_managed: known(false),
            node: known(1),
            count_by_cpu: BTreeMap::from([((number - 120) % cpus.len() as u32, u64::from(number) * 7_919)]),
        })
        .collect();
    interrupts.vectors = [("NMI", 12), ("LOC", 48_211_034), ("RES", 90_215), ("CAL", 4_410)]
        .map(|(name, total)| Counter {
            name: name.into(),
            count_by_cpu: BTreeMap::from([(0, total)]),
            ..Counter::default()
        })
        .to_vec();
}
