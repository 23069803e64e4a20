use super::{Fixture, Reading, Verdict, check, cpus, good_host, known};
use Verdict::{Conflicting, Good, Ineffective, NotApplicable, Unknown, Wrong};
use lowlat_host::{
    snapshot::{CpusetPartition, IdleState},
    topology::{Cache, CoreType, Group},
};

fn with_c2(f: &mut Fixture, enabled: &str) {
    f.host.cpu.idle_states.push(IdleState {
        name: "C2".into(),
        cpus: cpus("0-15"),
        cpus_enabled: cpus(enabled),
        ..IdleState::default()
    });
}

#[test]
fn deep_idle_states_are_judged_on_isolated_cpus_only() {
    check(
        "sysfs.cpuidle.deep_states",
        &[
            ("C1 only", |_| {}, Good),
            ("C2 for housekeeping", |f| with_c2(f, "0,8"), Good),
            ("C2 for all", |f| with_c2(f, "0-15"), Wrong),
            (
                "idle=poll",
                |f| {
                    with_c2(f, "0-15");
                    f.command_line("idle=poll");
                },
                Good,
            ),
            (
                "names of old kernels",
                |f| {
                    f.host.cpu.idle_states[0].name = "C0".into();
                    f.host.cpu.idle_states[1].name = "NHM-C1".into();
                },
                Good,
            ),
            ("C1E", |f| f.host.cpu.idle_states[1].name = "C1E".into(), Wrong),
            ("haltpoll", |f| f.host.cpu.idle_states[1].name = "haltpoll".into(), Good),
            ("none isolated", Fixture::no_isolated, NotApplicable),
            (
                "driver denied",
                |f| {
                    f.host.cpu.idle_states.clear();
                    f.host.cpu.idle_driver = Reading::Denied;
                },
                Unknown,
            ),
            (
                "no idle states in the kernel",
                |f| {
                    f.host.cpu.idle_states.clear();
                    f.host.cpu.idle_driver = Reading::Absent;
                },
                NotApplicable,
            ),
        ],
    );
    let mut fixture = good_host();
    with_c2(&mut fixture, "0-3");
    assert_eq!(fixture.finding("sysfs.cpuidle.deep_states").observed, "C2 on CPUs 1-3");
    check(
        "sysfs.cpu_dma_latency",
        &[("nothing to hold back", |_| {}, NotApplicable), ("C2", |f| with_c2(f, "0"), Unknown)],
    );
}

#[test]
fn frequency_rows() {
    check(
        "sysfs.cpufreq.driver",
        &[
            ("acpi-cpufreq", |_| {}, Good),
            ("pcc-cpufreq", |f| f.host.cpu.frequency[3].driver = known("pcc-cpufreq"), Wrong),
            ("none", |f| f.host.cpu.frequency.clear(), Unknown),
            (
                "none in a virtual machine",
                |f| {
                    f.host.cpu.frequency.clear();
                    f.virtual_machine();
                },
                NotApplicable,
            ),
        ],
    );
    check(
        "sysfs.cpufreq.scaling_min",
        &[
            ("performance", |_| {}, Good),
            ("schedutil on housekeeping", |f| f.host.cpu.frequency[0].governor = known("schedutil"), Good),
            ("schedutil", |f| f.host.cpu.frequency[1].governor = known("schedutil"), Wrong),
            (
                "schedutil, raised",
                |f| {
                    for policy in &mut f.host.cpu.frequency {
                        policy.governor = known("schedutil");
                        policy.scaling_min_khz = policy.scaling_max_khz.clone();
                    }
                },
                Good,
            ),
            (
                "denied",
                |f| {
                    for policy in &mut f.host.cpu.frequency {
                        policy.governor = Reading::Denied;
                        policy.scaling_min_khz = Reading::Denied;
                    }
                },
                Unknown,
            ),
            ("no policies", |f| f.host.cpu.frequency.clear(), NotApplicable),
        ],
    );
    check(
        "sysfs.cpufreq.energy_performance_preference",
        &[
            ("no hint", |_| {}, NotApplicable),
            (
                "balanced",
                |f| f.host.cpu.frequency[1].energy_performance_preference = known("balance_performance"),
                Wrong,
            ),
            (
                "performance",
                |f| f.host.cpu.frequency[1].energy_performance_preference = known("performance"),
                Good,
            ),
            ("denied", |f| f.host.cpu.frequency[1].energy_performance_preference = Reading::Denied, Unknown),
        ],
    );
}

fn policy_boost(f: &mut Fixture, cpu: u32, value: Reading<String>) {
    f.file(&format!("/sys/devices/system/cpu/cpufreq/policy{cpu}/boost"), value);
}

#[test]
fn boost_must_not_differ_between_isolated_cpus() {
    check(
        "sysfs.cpufreq.boost_uniform",
        &[
            ("one switch", |_| {}, Good),
            (
                "two policies alike",
                |f| {
                    policy_boost(f, 1, known("1"));
                    policy_boost(f, 2, known("1"));
                },
                Good,
            ),
            (
                "two policies apart",
                |f| {
                    policy_boost(f, 1, known("1"));
                    policy_boost(f, 2, known("0"));
                },
                Conflicting,
            ),
            (
                "apart on housekeeping",
                |f| {
                    policy_boost(f, 0, known("0"));
                    policy_boost(f, 2, known("1"));
                },
                Good,
            ),
            ("denied", |f| policy_boost(f, 1, Reading::Denied), Unknown),
            (
                "no switch",
                |f| f.file("/sys/devices/system/cpu/cpufreq/boost", Reading::Absent),
                NotApplicable,
            ),
        ],
    );
}

fn smt_pairs(f: &mut Fixture) {
    f.host.topology.cores =
        (0..8).map(|cpu| Group { id: i64::from(cpu), cpus: [cpu, cpu + 8].into_iter().collect() }).collect();
}

#[test]
fn cores_clusters_and_caches_belong_to_one_side() {
    check(
        "sysfs.smt.siblings_split",
        &[
            ("single threads", |_| {}, NotApplicable),
            ("0 and 8 are one core", smt_pairs, Good),
            (
                "8 is isolated",
                |f| {
                    smt_pairs(f);
                    f.allocation.isolated = cpus("1-15");
                    f.allocation.housekeeping = cpus("0");
                },
                Wrong,
            ),
            ("cores unknown", |f| f.host.topology.cores.clear(), Unknown),
            ("none isolated", Fixture::no_isolated, NotApplicable),
        ],
    );
    check(
        "sysfs.topology.cluster_shared",
        &[
            ("no clusters", |_| {}, NotApplicable),
            ("0-3 is one", |f| f.host.topology.clusters = vec![Group { id: 0, cpus: cpus("0-3") }], Wrong),
            ("1-3 is one", |f| f.host.topology.clusters = vec![Group { id: 0, cpus: cpus("1-3") }], Good),
        ],
    );
    check(
        "sysfs.topology.llc_shared",
        &[
            ("one a core", |_| {}, Good),
            ("four cores", |f| caches(f, &["0-3", "4-7", "8-11", "12-15"]), Wrong),
            ("one a package", |f| caches(f, &["0-7", "8-15"]), NotApplicable),
            ("unknown", |f| f.host.topology.caches.clear(), Unknown),
            ("none isolated", Fixture::no_isolated, NotApplicable),
        ],
    );
}

#[test]
fn ways_of_a_shared_cache_are_judged() {
    const WHOLE: [(&str, &str); 2] = [("schemata", "L3:0=ffff;1=ffff"), ("info/L3/cbm_mask", "ffff")];
    const OWN: [(&str, &str); 4] = [
        ("schemata", "L3:0=f000;1=f000"),
        ("info/L3/cbm_mask", "ffff"),
        ("lowlat/schemata", "L3:0=fff;1=fff"),
        ("lowlat/cpus_list", "1-7,9-15"),
    ];
    check(
        "sysfs.resctrl.ways",
        &[
            ("no cache on both sides", |_| {}, NotApplicable),
            ("no allocation", |f| resctrl(f, "fpu", &[]), NotApplicable),
            ("not mounted", |f| resctrl(f, "cat_l3", &[]), Wrong),
            ("one group", |f| resctrl(f, "cat_l3", &WHOLE), Wrong),
            ("own ways", |f| resctrl(f, "cat_l3", &OWN), Good),
            ("none isolated", Fixture::no_isolated, NotApplicable),
        ],
    );
}

/// Adds a cache for each package, a CPU flag, and files of resctrl.
fn resctrl(f: &mut Fixture, flag: &str, files: &[(&str, &str)]) {
    caches(f, &["0-7", "8-15"]);
    f.host.cpu.flags = known(std::collections::BTreeSet::from([flag.to_owned()]));
    for cpu in 0..16 {
        f.file(&format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3/id"), known((cpu / 8).to_string()));
    }
    for (path, text) in files {
        f.file(&format!("/sys/fs/resctrl/{path}"), known((*text).to_owned()));
    }
}

fn caches(f: &mut Fixture, lists: &[&str]) {
    f.host.topology.caches =
        lists.iter().map(|list| Cache { level: 3, cpus: cpus(list), ..Cache::default() }).collect();
}

/// Sets two core types, the fast one first.
fn core_types(f: &mut Fixture, fast: &str, small: &str) {
    let kind = |list, is_small| CoreType { name: "kind".into(), cpus: cpus(list), is_small };
    f.host.topology.core_types = vec![kind(fast, false), kind(small, true)];
}

#[test]
fn efficiency_cores_are_not_for_trading() {
    check(
        "sysfs.topology.efficiency_cores",
        &[
            ("one kind", |_| {}, NotApplicable),
            ("small ones isolated", |f| core_types(f, "0-7", "8-15"), Wrong),
            ("small ones for housekeeping", |f| core_types(f, "1-7,9-15", "0,8"), Good),
        ],
    );
}

#[test]
fn partitions_isolate_at_boot_or_at_run_time() {
    check(
        "sysfs.cpuset.partition",
        &[
            ("isolcpus", |_| {}, Good),
            ("nothing", |f| f.host.topology.isolated = known(cpus("")), Wrong),
            (
                "a partition",
                |f| {
                    f.host.topology.isolated = known(cpus(""));
                    f.host.services.cpuset_partitions = vec![partition("isolated", "1-7,9-15")];
                },
                Good,
            ),
            (
                "half a partition",
                |f| {
                    f.host.topology.isolated = known(cpus(""));
                    f.host.services.cpuset_partitions = vec![partition("isolated", "1-7")];
                },
                Wrong,
            ),
            (
                "an invalid partition",
                |f| {
                    f.host.topology.isolated = known(cpus(""));
                    f.host.services.cpuset_partitions =
                        vec![partition("isolated invalid (Cpu list in cpuset.cpus not exclusive)", "1-7")];
                },
                Ineffective,
            ),
            ("denied", |f| f.host.topology.isolated = Reading::Denied, Unknown),
            ("guide", Fixture::guide, NotApplicable),
        ],
    );
    check(
        "sysfs.cgroup_v2",
        &[
            ("2", |_| {}, Good),
            ("1", |f| f.host.services.cgroup_version = known(1u32), Wrong),
            ("mixed", |f| f.host.services.cgroup_version = known(0u32), Wrong),
            ("denied", |f| f.host.services.cgroup_version = Reading::Denied, Unknown),
            ("none", |f| f.host.services.cgroup_version = Reading::Absent, NotApplicable),
        ],
    );
}

fn partition(state: &str, list: &str) -> CpusetPartition {
    CpusetPartition { group: "/trading.slice".into(), state: state.into(), cpus: known(cpus(list)) }
}
