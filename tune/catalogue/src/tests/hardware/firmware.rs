use super::{CATALOGUE, Case, Fixture, Makers, Profile, Reading, Verdict, check, cpus, good_host, known};
use Verdict::{Good, NotApplicable, Unknown, Wrong};
use lowlat_host::{
    snapshot::IdleState,
    topology::{Cache, Group, Node},
};

#[test]
fn risky_values_of_the_guide_have_a_hazard_and_are_not_the_default() {
    for id in ["memory_patrol_scrubbing", "iommu", "amd_fmax_boost_limit", "memory_interleaving_mode"] {
        let setting = CATALOGUE.find(&format!("firmware.{id}")).unwrap();
        assert!(!setting.hazard.is_empty(), "{id}");
        let [trading, guide] = Profile::ALL.map(|profile| format!("{:?}", setting.want(profile)));
        assert!(trading != guide, "{id}");
    }
    let mut fixture = good_host();
    fixture.guide();
    assert!(fixture.finding("firmware.workload_profile").hazard.contains("Low Latency first, then Custom"));
}

#[test]
fn what_the_os_cannot_see_is_unknown() {
    check(
        "firmware.determinism_control",
        &[
            ("AMD", |_| {}, Unknown),
            ("another vendor", |f| f.host.cpu.vendor = known("GenuineIntel"), NotApplicable),
            ("virtual", Fixture::virtual_machine, Unknown),
        ],
    );
    assert!(good_host().finding("firmware.thermal_shutdown").because.contains("Redfish"));
    let arm: Case = ("aarch64", |f| f.host.kernel.machine = known("aarch64"), NotApplicable);
    check("firmware.l1_stream_hw_prefetcher", &[("any", |_| {}, Unknown), arm]);
    check(
        "firmware.xgmi_max_link_width",
        &[
            ("two processors", |_| {}, Unknown),
            ("one", |f| f.host.topology.packages.truncate(1), NotApplicable),
        ],
    );
    check(
        "firmware.boot_order_policy",
        &[("default", |_| {}, NotApplicable), ("guide", Fixture::guide, Unknown)],
    );
    check("firmware.power_regulator", &[("any", |_| {}, Unknown)]);
    let cores = good_host().finding("firmware.enabled_cores_per_processor");
    assert_eq!((cores.verdict, cores.observed.as_str()), (Unknown, "cores per processor: 8, 8"));
}

fn smt_topology(f: &mut Fixture) {
    f.host.cpu.smt_control = known("on");
    f.host.topology.cores =
        (0..8).map(|cpu| Group { id: i64::from(cpu), cpus: [cpu, cpu + 8].into_iter().collect() }).collect();
}

#[test]
fn smt_shows_in_the_kernels_control_and_in_the_cores() {
    check(
        "firmware.smt",
        &[
            ("off in the firmware", |_| {}, Good),
            ("off by the kernel", |f| f.host.cpu.smt_control = known("forceoff"), Good),
            ("on", smt_topology, Wrong),
            ("on, but single threads", |f| f.host.cpu.smt_control = known("on"), Good),
            ("no control file", |f| f.host.cpu.smt_control = Reading::Absent, Good),
            ("denied", |f| f.host.cpu.smt_control = Reading::Denied, Unknown),
            (
                "nothing known",
                |f| {
                    f.host.cpu.smt_control = Reading::Absent;
                    f.host.topology.cores.clear();
                },
                Unknown,
            ),
        ],
    );
}

/// AMD's rows are judged on AMD's processors, Intel's on Intel's, and concepts of both on all.
#[test]
fn rows_of_a_maker_need_its_processor() {
    let others: [(&str, Option<&str>); 4] = [
        ("x86_64", Some("GenuineIntel")),
        ("s390x", Some("IBM/S390")),
        ("ppc64le", None),
        ("aarch64", Some("Arm")),
    ];
    for (machine, vendor) in others {
        let mut f = good_host();
        smt_topology(&mut f);
        f.guide();
        f.host.kernel.machine = known(machine);
        f.host.cpu.vendor = vendor.map_or(Reading::Absent, known);
        for setting in CATALOGUE.settings().filter(|setting| setting.needs.makers == Makers::Amd) {
            assert_eq!(f.finding(setting.id).verdict, NotApplicable, "{} on {machine}", setting.id);
        }
        let is_server = machine == "x86_64" || machine == "aarch64";
        let theirs = if is_server { Wrong } else { NotApplicable };
        assert_eq!(f.finding("firmware.smt").verdict, theirs, "{machine}");
        let mut of_intel = good_host();
        of_intel.host.kernel.machine = known(machine);
        of_intel.host.cpu.vendor = vendor.map_or(Reading::Absent, known);
        let is_intel = vendor == Some("GenuineIntel");
        assert_eq!(of_intel.finding("firmware.c1e").verdict == NotApplicable, !is_intel, "{machine}");
        assert_eq!(f.host.kernel.unsupported().is_some(), !is_server, "{machine}");
        for row in
            CATALOGUE.settings().filter(|row| !is_server && row.layer == lowlat_settings::Layer::Firmware)
        {
            assert_eq!(f.finding(row.id).verdict, NotApplicable, "{} on {machine}", row.id);
        }
    }
    let mut f = good_host();
    smt_topology(&mut f);
    assert_eq!(f.finding("firmware.c1e").verdict, NotApplicable, "an Intel row on AMD's processor");
    f.host.cpu.vendor = Reading::Denied;
    assert_eq!(f.finding("firmware.c1e").verdict, Unknown, "not known to be another maker's");
    assert_eq!(f.finding("firmware.smt").verdict, Wrong, "seen whoever made it");
}

fn nodes_of(f: &mut Fixture, lists: &[&str]) {
    f.host.topology.nodes =
        (0u32..).zip(lists).map(|(id, list)| Node { id, cpus: cpus(list), ..Node::default() }).collect();
}

fn llcs_of(f: &mut Fixture, lists: &[&str]) {
    f.host.topology.caches =
        lists.iter().map(|list| Cache { level: 3, cpus: cpus(list), ..Cache::default() }).collect();
}

#[test]
fn memory_domains_are_nodes_per_package() {
    check(
        "firmware.numa_memory_domains_per_socket",
        &[
            ("one", |_| {}, Good),
            ("two", |f| nodes_of(f, &["0-3", "4-7", "8-11", "12-15"]), Wrong),
            ("none: both sockets in one", |f| nodes_of(f, &["0-15"]), Wrong),
            ("Intel", |f| f.host.cpu.vendor = known("GenuineIntel"), Unknown),
            ("Arm", |f| f.host.cpu.vendor = known("Arm"), NotApplicable),
            ("AMD before Zen", |f| f.host.cpu.family = known(16u32), NotApplicable),
            ("vendor denied", |f| f.host.cpu.vendor = Reading::Denied, Unknown),
            (
                "a node is offline",
                |f| {
                    nodes_of(f, &["0-15"]);
                    f.file("/sys/devices/system/node/possible", known("0-1"));
                    f.file("/sys/devices/system/node/online", known("1"));
                },
                Unknown,
            ),
            (
                "all nodes are online",
                |f| {
                    f.file("/sys/devices/system/node/possible", known("0-1"));
                    f.file("/sys/devices/system/node/online", known("0-1"));
                },
                Good,
            ),
            ("three of two sockets", |f| nodes_of(f, &["0-3", "4-7", "8-15"]), Unknown),
            (
                "caches as nodes",
                |f| {
                    nodes_of(f, &["0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12-13", "14-15"]);
                    llcs_of(f, &["0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12-13", "14-15"]);
                },
                Unknown,
            ),
        ],
    );
    check(
        "firmware.llc_as_numa_node",
        &[
            ("one node, eight caches", |_| {}, Good),
            ("one cache a package", |f| llcs_of(f, &["0-7", "8-15"]), NotApplicable),
            (
                "each of eight caches a node",
                |f| {
                    let lists: Vec<String> = (0..16).map(|cpu: u32| cpu.to_string()).collect();
                    nodes_of(f, &lists.iter().map(String::as_str).collect::<Vec<_>>());
                },
                Wrong,
            ),
            (
                "four a package: could be memory domains",
                |f| {
                    nodes_of(f, &["0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12-13", "14-15"]);
                    llcs_of(f, &["0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12-13", "14-15"]);
                },
                Unknown,
            ),
        ],
    );
}

fn without_flag(f: &mut Fixture, flag: &str) {
    if let Reading::Known(flags) = &mut f.host.cpu.flags {
        flags.remove(flag);
    }
}

fn with_flag(f: &mut Fixture, flag: &str) {
    if let Reading::Known(flags) = &mut f.host.cpu.flags {
        flags.insert(flag.into());
    }
}

#[test]
fn flags_show_virtualization_encryption_and_x2apic() {
    check(
        "firmware.virtualization",
        &[
            ("default profile", |_| {}, NotApplicable),
            ("on", Fixture::guide, Wrong),
            (
                "off",
                |f| {
                    f.guide();
                    without_flag(f, "svm");
                },
                Good,
            ),
            (
                "an old kernel keeps the flag",
                |f| {
                    f.guide();
                    f.host.kernel.version =
                        Reading::Known(lowlat_host::kernel_version::KernelVersion::new(4, 18));
                },
                Unknown,
            ),
        ],
    );
    check(
        "firmware.amd_secure_memory_encryption",
        &[
            ("off", |_| {}, Good),
            ("on", |f| with_flag(f, "sme"), Wrong),
            ("Intel", |f| f.host.cpu.vendor = known("GenuineIntel"), NotApplicable),
            ("denied", |f| f.host.cpu.flags = Reading::Denied, Unknown),
        ],
    );
    check(
        "firmware.processor_x2apic_support",
        &[
            ("present", |_| {}, Good),
            ("missing", |f| without_flag(f, "x2apic"), Unknown),
            (
                "ARM",
                |f| {
                    without_flag(f, "x2apic");
                    f.host.kernel.machine = known("aarch64");
                },
                NotApplicable,
            ),
        ],
    );
}

#[test]
fn the_profiles_disagree_on_the_iommu() {
    check(
        "firmware.iommu",
        &[
            ("on", |_| {}, Good),
            ("on, guide", Fixture::guide, Wrong),
            ("off", |f| f.host.firmware.iommu_count = known(0u32), Wrong),
            (
                "off in a virtual machine",
                |f| {
                    f.host.firmware.iommu_count = known(0u32);
                    f.virtual_machine();
                },
                Unknown,
            ),
            (
                "off by the kernel",
                |f| {
                    f.host.firmware.iommu_count = known(0u32);
                    f.command_line("amd_iommu=off");
                },
                Unknown,
            ),
            (
                "of Intel, which the kernel may leave off",
                |f| {
                    f.host.firmware.iommu_count = known(0u32);
                    f.host.cpu.vendor = known("GenuineIntel");
                },
                Unknown,
            ),
            (
                "of Intel",
                |f| {
                    f.host.firmware.iommu_count = known(0u32);
                    f.host.cpu.vendor = known("GenuineIntel");
                    f.command_line("intel_iommu=on");
                },
                Wrong,
            ),
            ("denied", |f| f.host.firmware.iommu_count = Reading::Denied, Unknown),
            ("aarch64", |f| f.host.kernel.machine = known("aarch64"), NotApplicable),
        ],
    );
}

#[test]
fn boot_mode_and_bios_version_are_judged() {
    check(
        "firmware.boot_mode",
        &[
            ("UEFI", |_| {}, Good),
            ("legacy", |f| f.host.firmware.is_uefi = known(false), Wrong),
            ("denied", |f| f.host.firmware.is_uefi = Reading::Denied, Unknown),
            (
                "aarch64 by a device tree",
                |f| {
                    f.host.kernel.machine = known("aarch64");
                    f.host.firmware.is_uefi = known(false);
                },
                NotApplicable,
            ),
        ],
    );
    check(
        "firmware.bios_version",
        &[
            ("known", |_| {}, Good),
            ("denied", |f| f.host.firmware.bios_version = Reading::Denied, Unknown),
            ("no SMBIOS", |f| f.host.firmware.bios_version = Reading::Absent, NotApplicable),
        ],
    );
    assert_eq!(good_host().finding("firmware.bios_version").observed, "HPE A42 04/29/2020");
}

#[test]
fn the_hpet_is_found_among_the_clock_sources() {
    check(
        "firmware.hpet_acpi_support",
        &[
            ("listed", |_| {}, Good),
            ("not listed", |f| f.host.cpu.clocksources_available = Reading::Known(vec!["tsc".into()]), Wrong),
            (
                "hidden by the kernel",
                |f| {
                    f.host.cpu.clocksources_available = Reading::Known(vec!["tsc".into()]);
                    f.command_line("hpet=disable");
                },
                Unknown,
            ),
            ("ARM", |f| f.host.kernel.machine = known("aarch64"), NotApplicable),
        ],
    );
}

fn modules_at(f: &mut Fixture, configured: u32) {
    if let Reading::Known(modules) = &mut f.host.memory.modules {
        for module in modules {
            module.configured_mts = Some(configured);
        }
    }
}

#[test]
fn memory_on_epyc_7002_runs_in_step_with_the_fabric() {
    check(
        "firmware.maximum_memory_bus_frequency",
        &[
            ("2933", |_| {}, Good),
            ("3200", |f| modules_at(f, 3_200), Wrong),
            ("2666", |f| modules_at(f, 2_666), Wrong),
            (
                "3200 as the guide's table has it",
                |f| {
                    f.guide();
                    modules_at(f, 3_200);
                },
                Good,
            ),
            ("2933 in the guide's profile", Fixture::guide, Unknown),
            (
                "3200 on a later processor",
                |f| {
                    f.host.cpu.family = known(25u32);
                    modules_at(f, 3_200);
                },
                Good,
            ),
            ("denied", |f| f.host.memory.modules = Reading::Denied, Unknown),
        ],
    );
    assert_eq!(good_host().finding("firmware.maximum_memory_bus_frequency").wanted, "2933 MT/s");
}

#[test]
fn distances_and_device_nodes_show_the_firmwares_tables() {
    check(
        "firmware.acpi_slit",
        &[
            ("10 and 32", |_| {}, Good),
            (
                "the kernel's default values",
                |f| {
                    f.host.topology.nodes[0].distances = Reading::Known(vec![10, 20]);
                    f.host.topology.nodes[1].distances = Reading::Known(vec![20, 10]);
                },
                Unknown,
            ),
            ("one node", |f| f.host.topology.nodes.truncate(1), NotApplicable),
            ("denied", |f| f.host.topology.nodes[0].distances = Reading::Denied, Unknown),
        ],
    );
    check(
        "firmware.memory_proximity_reporting_for_io",
        &[
            ("reported", |_| {}, Good),
            ("not reported", |f| f.nic().node = Reading::Known(-1), Wrong),
            ("no device", |f| f.host.nics.clear(), Unknown),
            ("one node", |f| f.host.topology.nodes.truncate(1), NotApplicable),
        ],
    );
}

#[test]
fn idle_states_and_boost_show_in_sysfs() {
    check(
        "firmware.core_c_states",
        &[
            ("C1", |_| {}, Good),
            ("C1, guide", Fixture::guide, Wrong),
            (
                "none, guide",
                |f| {
                    f.guide();
                    f.host.cpu.idle_states.clear();
                },
                Good,
            ),
            (
                "C2",
                |f| f.host.cpu.idle_states.push(IdleState { name: "C2".into(), ..IdleState::default() }),
                Wrong,
            ),
            (
                "haltpoll in a virtual machine",
                |f| {
                    f.host.cpu.idle_driver = known("haltpoll");
                    f.host.cpu.idle_states[1].name = "haltpoll".into();
                    f.virtual_machine();
                },
                Unknown,
            ),
            ("the kernel rules", |f| f.command_line("idle=poll"), Unknown),
            ("intel_idle", |f| f.host.cpu.idle_driver = known("intel_idle"), Unknown),
        ],
    );
    check(
        "firmware.boost",
        &[
            ("default profile", |_| {}, NotApplicable),
            ("off", Fixture::guide, Good),
            (
                "on",
                |f| {
                    f.guide();
                    f.host.cpu.boost = known(true);
                },
                Wrong,
            ),
            (
                "no switch and no flag",
                |f| {
                    f.guide();
                    f.host.cpu.boost = Reading::Absent;
                    without_flag(f, "cpb");
                },
                Good,
            ),
            (
                "denied",
                |f| {
                    f.guide();
                    f.host.cpu.boost = Reading::Denied;
                },
                Unknown,
            ),
        ],
    );
    check(
        "firmware.collaborative_power_control",
        &[
            ("another driver", |_| {}, Unknown),
            ("pcc-cpufreq", |f| f.host.cpu.frequency[0].driver = known("pcc-cpufreq"), Wrong),
        ],
    );
}

#[test]
fn hazards_show_in_the_guides_profile_only() {
    let mut fixture = good_host();
    assert_eq!(fixture.finding("firmware.memory_patrol_scrubbing").hazard, "");
    fixture.profile = Profile::Guide57037;
    assert!(!fixture.finding("firmware.memory_patrol_scrubbing").hazard.is_empty());
}
