//! Resources that isolated CPUs share with others: cores, clusters, caches, and the scheduler's partitions.

use super::SYSFS;
use lowlat_host::{
    CpuId, CpuSet, Reading,
    resctrl::{self, Resctrl},
};
use lowlat_settings::{
    Context, Impact, Judgement, Needs, Setting, Verdict, Want,
    change::{WhyLeftOut, cache},
    judge::{
        each::{isolated, list, none_isolated},
        missing,
    },
};
use std::collections::BTreeMap;

const CACHES: &str = "/sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list";
const CLUSTERS: &str = "/sys/devices/system/cpu/cpu*/topology/cluster_cpus_list";
const CGROUP_V2: &str = "kernel Documentation/admin-guide/cgroup-v2.rst";

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "sysfs.smt.siblings_split",
        not_planned: "the role chooses the isolated CPUs: name whole cores there",
        name: "topology/thread_siblings_list",
        reason: "The threads of a core share its execution units and its caches. If one thread is isolated \
                 and the other does housekeeping, every interrupt and service on the second slows the first.",
        cost: "Both threads of the core belong to one side, so one of them stays unused.",
        impact: Impact::High,
        effective: "lowlat cpus isolated --why; no core has CPUs on both sides.",
        trading: Want::State("whole cores on one side"),
        judge: siblings_split,
        sources: &[
            "kernel Documentation/admin-guide/cputopology.rst",
            "guide 57037 section 3.2.2: AMD SMT Option",
        ],
        ..SYSFS
    },
    Setting {
        id: "sysfs.topology.cluster_shared",
        not_planned: "the role chooses the isolated CPUs: name whole clusters if you can spare their cores",
        name: "topology/cluster_cpus_list",
        reason: "The cores of a cluster share an L2 cache or the path out of it. Housekeeping in the same \
                 cluster evicts the isolated CPUs' lines from the L2.",
        cost: "The other cores of a housekeeping cluster are unavailable to trading threads.",
        effective: "no cluster has housekeeping and isolated CPUs.",
        trading: Want::State("no cluster on both sides"),
        judge: cluster_shared,
        sources: &[
            "kernel Documentation/admin-guide/cputopology.rst: cluster_cpus_list",
            "KeyarchOS on Intel Xeon 6: cluster-aware scheduling (Inspur, 2025)",
        ],
        ..SYSFS
    },
    Setting {
        id: "sysfs.topology.llc_shared",
        not_planned: "the role chooses the isolated CPUs: name whole caches if you can spare their cores",
        name: "cache/index*/shared_cpu_list",
        reason: "Services and interrupts on housekeeping CPUs fill the last-level cache that they share with \
                 isolated ones, which evicts the data of trading threads.",
        cost: "The other cores of a housekeeping cache are unavailable to trading threads, or reserved for \
               those that tolerate it.",
        effective: "`lowlat host show` lists no last-level cache with housekeeping and isolated CPUs.",
        trading: Want::State("no last-level cache on both sides where the package has several"),
        judge: llc_shared,
        sources: &[
            "guide 57037 section 3.3.2 (each core of the EPYC 7F32 has a private L3)",
            "kernel Documentation/ABI/testing/sysfs-devices-system-cpu: cache/index*",
        ],
        ..SYSFS
    },
    Setting {
        id: "sysfs.topology.efficiency_cores",
        not_planned: "the role chooses the isolated CPUs: name performance cores there",
        name: "cpu_core, cpu_atom",
        reason: "Hybrid processors have two kinds of cores. Efficiency cores have lower clocks and share an \
                 L2. A trading thread is slower there than on a performance core.",
        effective: "the isolated CPUs are all in /sys/devices/cpu_core/cpus.",
        trading: Want::State("isolated CPUs are performance cores"),
        judge: efficiency_cores,
        sources: &[
            "kernel Documentation/ABI/testing/sysfs-devices-system-cpu",
            "kernel Documentation/scheduler/sched-capacity.rst",
        ],
        ..SYSFS
    },
    Setting {
        id: cache::SETTING,
        change: cache::partition,
        name: "resctrl schemata",
        reason: "Housekeeping fills the last-level cache that it shares with isolated CPUs, whose next reads then go \
                 to memory. Cache allocation (CAT) gives the isolated CPUs ways of their own.",
        cost: "Each side has fewer ways than the whole cache, and less bandwidth where it is limited.",
        effective: "The isolated CPUs' group has ways that /sys/fs/resctrl/schemata lacks.",
        reads: resctrl::READS,
        trading: Want::State("ways that housekeeping cannot fill"),
        judge: ways,
        sources: &["kernel Documentation/filesystems/resctrl.rst"],
        ..SYSFS
    },
    Setting {
        id: "sysfs.cpuset.partition",
        not_planned: "isolcpus= on the command line takes the CPUs out of load balancing (boot.isolcpus)",
        why_not: WhyLeftOut::ByAnother,
        name: "cpuset.cpus.partition",
        reason: "A CPU takes part in load balancing until isolcpus=domain (at boot) or an isolated cpuset \
                 partition (at run time) excludes it. Affinity alone does not: new tasks and unbound work \
                 still run there.",
        cost: "The scheduler moves no task off an overloaded isolated CPU, so every thread must be placed \
               manually.",
        effective: "cpuset.cpus.partition reads isolated without \"invalid\", or /sys/devices/system/cpu/isolated lists \
                    the CPUs.",
        reads: &["/sys/fs/cgroup/cpuset.cpus.isolated"],
        trading: Want::State("isolated at boot, or in an isolated partition"),
        judge: partition,
        sources: &[
            CGROUP_V2,
            "kernel Documentation/admin-guide/kernel-parameters.txt: isolcpus=",
            "kernel commit f28e22441f35 (6.1): isolated partitions",
        ],
        ..SYSFS
    },
    Setting {
        id: "sysfs.cgroup_v2",
        not_planned: "programs on the host may need the old hierarchy; systemd.unified_cgroup_hierarchy=1 switches it \
                      off",
        name: "cgroup2",
        reason: "Isolated partitions, and services that avoid isolated CPUs through AllowedCPUs=, need the \
                 unified control group hierarchy.",
        impact: Impact::Low,
        needs_reboot: true,
        needs: Needs::ANY.with_config(&["CGROUPS"]),
        effective: "/sys/fs/cgroup is of type cgroup2fs.",
        trading: Want::Value("2"),
        judge: cgroup_version,
        sources: &[CGROUP_V2, "systemd.resource-control(5): AllowedCPUs="],
        ..SYSFS
    },
];

/// Groups with both isolated and housekeeping CPUs, as text.
fn split<'a>(context: &Context<'_>, groups: impl Iterator<Item = &'a CpuSet>) -> Vec<String> {
    let (house, isolated) = (&context.allocation.housekeeping, &context.allocation.isolated);
    groups
        .filter(|group| !group.is_disjoint(house) && !group.is_disjoint(isolated))
        .map(|group| {
            let (ours, theirs) = (group.intersection(isolated), group.intersection(house));
            format!("{:#} with housekeeping {:#}", &ours, &theirs)
        })
        .collect()
}

/// Good if no group has CPUs of both sides.
fn on_one_side<'a>(
    context: &Context<'_>,
    groups: impl Iterator<Item = &'a CpuSet>,
    good: &str,
    because: &str,
) -> Judgement {
    let split = split(context, groups);
    if split.is_empty() { Judgement::good(good) } else { Judgement::wrong(list(&split), because) }
}

fn siblings_split(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/cpu/cpu*/topology/thread_siblings_list";
    let Some(_) = isolated(context) else { return none_isolated() };
    let topology = &context.host.topology;
    if topology.cores.is_empty() {
        return Judgement::unknown("the cores of this host are not known").at(PATH);
    }
    if !topology.has_smt() {
        return Judgement::not_applicable("each core runs one thread");
    }
    let cores = topology.cores.iter().map(|core| &core.cpus);
    let because = "assign both threads of a core to one side";
    on_one_side(context, cores, "every core is on one side", because).at(PATH)
}

fn cluster_shared(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(_) = isolated(context) else { return none_isolated() };
    let clusters = &context.host.topology.clusters;
    if clusters.is_empty() {
        return Judgement::not_applicable("this host has no clusters wider than a core");
    }
    let because = "keep the whole cluster for housekeeping, or use its other cores for work that tolerates cache misses";
    let clusters = clusters.iter().map(|cluster| &cluster.cpus);
    on_one_side(context, clusters, "every cluster is on one side", because).at(CLUSTERS)
}

fn llc_shared(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(_) = isolated(context) else { return none_isolated() };
    let topology = &context.host.topology;
    let llcs = topology.llcs();
    if llcs.is_empty() {
        return Judgement::unknown("the caches of this host are not known").at(CACHES);
    }
    // A package with one last-level cache leaves no choice: its housekeeping core must share it.
    let packages: BTreeMap<CpuId, usize> = (0..)
        .zip(&topology.packages)
        .flat_map(|(at, package)| package.cpus.iter().map(move |cpu| (cpu, at)))
        .collect();
    let has_choice = |cpus: &&CpuSet| {
        let first = cpus.iter().filter_map(|cpu| packages.get(&cpu)).min();
        let package = first.and_then(|at| topology.packages.get(*at));
        package.is_none_or(|package| !package.cpus.is_subset(cpus))
    };
    let avoidable: Vec<&CpuSet> = llcs.iter().map(|llc| &llc.cpus).filter(has_choice).collect();
    if avoidable.is_empty() {
        return Judgement::not_applicable("one last-level cache per package: housekeeping has to share it");
    }
    let because =
        "keep the whole cache for housekeeping, or use its other cores for work that tolerates cache misses";
    on_one_side(context, avoidable.into_iter(), "every last-level cache is on one side", because).at(CACHES)
}

fn ways(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(_) = isolated(context) else { return none_isolated() };
    let host = context.host;
    let shared = split(context, host.topology.llcs().into_iter().map(|llc| &llc.cpus));
    if shared.is_empty() {
        return Judgement::not_applicable("isolated CPUs share no last-level cache with housekeeping");
    }
    let shared = format!("one last-level cache for {}", list(&shared));
    if let Some(found) = Resctrl::of(host) {
        if cache::is_apart(context, &found) {
            return Judgement::good("the isolated CPUs have ways of their own").at(resctrl::MOUNT);
        }
        let because = cache::used_by_others(&found).unwrap_or_else(|| "cache allocation would help".into());
        return Judgement::wrong(shared, because).at(resctrl::MOUNT);
    }
    match &host.cpu.flags {
        Reading::Known(flags) if cache::FLAGS.iter().any(|flag| flags.contains(*flag)) => Judgement::wrong(
            shared,
            "cache allocation would help: the CPU has it, and resctrl is not mounted",
        ),
        Reading::Known(_) => {
            Judgement::not_applicable(format!("{shared}, but this CPU has no cache allocation"))
        }
        flags => missing(flags, "/proc/cpuinfo"),
    }
}

fn efficiency_cores(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/cpu_atom/cpus";
    let Some(isolated) = isolated(context) else { return none_isolated() };
    let small = context.host.topology.efficiency_cpus();
    if small.is_empty() {
        return Judgement::not_applicable("no core is known to be of a slower kind");
    }
    let hit = isolated.intersection(&small);
    if hit.is_empty() {
        return Judgement::good("performance cores only").at(PATH);
    }
    Judgement::wrong(format!("{:#} on efficiency cores", &hit), "").at(PATH)
}

fn partition(context: &Context<'_>, _: &Setting) -> Judgement {
    const BOOT: &str = "/sys/devices/system/cpu/isolated";
    const GROUPS: &str = "/sys/fs/cgroup/**/cpuset.cpus.partition";
    let Some(isolated) = isolated(context) else { return none_isolated() };
    let host = context.host;
    let at_boot = host.topology.isolated.known().cloned().unwrap_or_default();
    let mut covered = at_boot.clone();
    // The root's own list names the CPUs of all active partitions, if the kernel has it.
    if let Reading::Known(text) = host.file("/sys/fs/cgroup/cpuset.cpus.isolated") {
        covered = covered.union(&CpuSet::parse_list(text.trim()).unwrap_or_default());
    }
    let partitions = &host.services.cpuset_partitions;
    for partition in partitions.iter().filter(|partition| partition.is_isolated()) {
        covered = covered.union(partition.cpus.known().unwrap_or(&CpuSet::new()));
    }
    let rest = isolated.difference(&covered);
    if rest.is_empty() {
        let how = if isolated.is_subset(&at_boot) { "isolated at boot" } else { "in isolated partitions" };
        return Judgement::good(format!("{isolated:#} {how}")).at(BOOT);
    }
    if let Some(invalid) = partitions.iter().find(|partition| partition.state.starts_with("isolated invalid"))
    {
        return Judgement::new(
            Verdict::Ineffective,
            format!("{}: {}", invalid.group, invalid.state),
            format!("{:#} take part in load balancing", &rest),
        )
        .at(GROUPS);
    }
    match &host.topology.isolated {
        Reading::Known(_) => Judgement::wrong(
            format!("{:#} take part in load balancing", &rest),
            "neither isolcpus= nor an isolated partition contains them",
        )
        .at(BOOT)
        .at(GROUPS),
        other => missing(other, BOOT),
    }
}

fn cgroup_version(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/proc/self/mounts";
    match &context.host.services.cgroup_version {
        Reading::Known(2) => Judgement::good("2"),
        Reading::Known(0) => Judgement::wrong("1 and 2 mixed", "the cpuset controller is in version 1"),
        Reading::Known(version) => Judgement::wrong(version.to_string(), ""),
        Reading::Absent => Judgement::not_applicable("no control groups are mounted"),
        other => missing(other, PATH),
    }
    .at(PATH)
}
