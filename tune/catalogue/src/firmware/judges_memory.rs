//! Memory, NUMA and proximity settings as far as the operating system sees them.

use super::{
    NODES,
    judges::{seen, switch, unseen},
};
use lowlat_host::{
    CpuSet, Reading, Topology,
    topology::{Cache, Node},
};
use lowlat_settings::{Context, Judgement, Setting, judge::missing};

/// True if the processor is an EPYC 7002 ("Rome"): family 23, model 49.
pub fn is_epyc_7002(context: &Context<'_>) -> bool {
    let cpu = &context.host.cpu;
    cpu.is_amd() && cpu.family == Reading::Known(23) && cpu.model == Reading::Known(49)
}

/// 2933 MT/s if that is in step with the fabric, otherwise the highest speed.
#[allow(clippy::unnecessary_wraps, reason = "the signature of a derived value")]
pub(super) fn wanted_memory_frequency(context: &Context<'_>) -> Option<String> {
    Some(if is_epyc_7002(context) { "2933 MT/s".into() } else { "Auto".into() })
}

pub(super) fn memory_frequency(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "SMBIOS type 17";
    let reading = &context.host.memory.modules;
    let Reading::Known(modules) = reading else { return missing(reading, PATH) };
    let speeds: Vec<(u32, u32)> =
        modules.iter().filter_map(|m| Some((m.configured_mts?, m.speed_mts.unwrap_or(0)))).collect();
    let (Some(slowest), Some(rated)) = (speeds.iter().map(|s| s.0).min(), speeds.iter().map(|s| s.1).max())
    else {
        return unseen(context, "the modules do not report their speed; check the BIOS setup or use Redfish");
    };
    let observed = format!("modules run at {slowest} MT/s");
    let wants_2933 = setting.want(context.profile).text(context).is_some_and(|text| text.starts_with("2933"));
    // SMBIOS rounds: 2933 and 2934 mean the same speed.
    let is_2933 = (2_932..=2_934).contains(&slowest);
    match (wants_2933, is_2933) {
        (true, true) => Judgement::good(observed),
        (true, false) if slowest < 2_932 => {
            Judgement::wrong(observed, "slower than the fabric; see memory.module_speed")
        }
        (true, false) => Judgement::wrong(observed, "out of step with the Infinity Fabric of EPYC 7002"),
        (false, _) if rated > 0 && slowest >= rated => Judgement::good(observed),
        (false, _) => Judgement {
            observed,
            ..Judgement::unknown(
                "below the modules' rating: because of this setting, the processor, or the number of modules \
                 per channel",
            )
        },
    }
    .at(PATH)
}

fn cpu_nodes(topology: &Topology) -> Vec<&Node> {
    topology.nodes.iter().filter(|node| !node.cpus.is_empty()).collect()
}

/// The judgement for a processor on which the number of nodes does not show the setting, if it is one. AMD's have it
/// since family 23.
fn has_no_memory_domains(context: &Context<'_>) -> Option<Judgement> {
    let cpu = &context.host.cpu;
    match (&cpu.vendor, &cpu.family) {
        (Reading::Known(_), _) if cpu.is_intel() => Some(Judgement::unknown(
            "on Intel processors sub-NUMA clustering decides it; check the BIOS setup or use Redfish",
        )),
        (Reading::Known(_), Reading::Known(family)) if cpu.is_amd() && *family < 23 => {
            Some(Judgement::not_applicable(format!(
                "AMD processors have it since family 23; this one is of family {family}"
            )))
        }
        (Reading::Known(_), Reading::Known(_)) if cpu.is_amd() => None,
        (Reading::Known(vendor), _) if !cpu.is_amd() => Some(Judgement::not_applicable(format!(
            "a setting of AMD and Intel processors only; this one is {vendor}"
        ))),
        (Reading::Known(_), unread) => Some(missing(unread, "/proc/cpuinfo")),
        (unread, _) => Some(missing(unread, "/proc/cpuinfo")),
    }
}

/// Nodes that are possible but not online. Their memory and CPUs are not among those that the kernel shows.
fn nodes_offline(context: &Context<'_>) -> Option<CpuSet> {
    // The kernel writes sets of nodes as it writes sets of CPUs.
    let set = |at: usize| CpuSet::parse_list(context.host.file(NODES[at]).known()?.trim()).ok();
    Some(set(0)?.difference(&set(1)?)).filter(|offline| !offline.is_empty())
}

/// True if each node with CPUs is exactly one last-level cache.
fn nodes_are_llcs(nodes: &[&Node], llcs: &[&Cache]) -> bool {
    nodes.len() == llcs.len() && nodes.iter().all(|node| llcs.iter().any(|llc| llc.cpus == node.cpus))
}

pub(super) fn numa_domains(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/node";
    if let Some(judgement) = has_no_memory_domains(context) {
        return judgement.at(PATH);
    }
    if let Some(offline) = nodes_offline(context) {
        return Judgement::unknown(format!("possible NUMA nodes that are not online: {offline}"))
            .at(NODES[1]);
    }
    let topology = &context.host.topology;
    let (nodes, packages) = (cpu_nodes(topology), topology.packages.len());
    if nodes.is_empty() || packages == 0 {
        return Judgement::unknown("the nodes or packages of this host are not known").at(PATH);
    }
    let llcs = topology.llcs();
    if llcs.len() > packages && nodes_are_llcs(&nodes, &llcs) {
        return Judgement::unknown("each node is one last-level cache, which hides the memory domains")
            .at(PATH);
    }
    let value = match (nodes.len(), nodes.len() % packages, nodes.len() / packages) {
        (count, _, _) if count < packages => "Zero memory domains per socket",
        (_, 0, 1) => "One memory domain per socket",
        (_, 0, 2) => "Two memory domains per socket",
        (_, 0, 4) => "Four memory domains per socket",
        (count, _, _) => {
            return Judgement::unknown(format!(
                "{count} nodes with CPUs on {packages} packages match no value of the setting"
            ))
            .at(PATH);
        }
    };
    let by = format!("nodes with CPUs: {}, packages: {packages}", nodes.len());
    seen(context, setting, value, &by).at(PATH)
}

pub(super) fn llc_as_node(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/node";
    let topology = &context.host.topology;
    let (nodes, llcs, packages) = (cpu_nodes(topology), topology.llcs(), topology.packages.len());
    if nodes.is_empty() || llcs.is_empty() || packages == 0 {
        return Judgement::unknown("the nodes or caches of this host are not known").at(PATH);
    }
    let by = format!("nodes with CPUs: {}, last-level caches: {}", nodes.len(), llcs.len());
    if llcs.len() <= packages {
        return Judgement::not_applicable(
            "one last-level cache per package: the setting would change nothing",
        )
        .at(PATH);
    }
    if !nodes_are_llcs(&nodes, &llcs) {
        return switch(context, setting, false, &by).at(PATH);
    }
    // Two or four nodes per package may also be memory domains that happen to contain one cache each.
    if matches!(llcs.len() / packages, 2 | 4) {
        return Judgement::unknown("each node is one last-level cache; memory domains would look the same")
            .at(PATH);
    }
    switch(context, setting, true, &by).at(PATH)
}

pub(super) fn slit(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/node/node*/distance";
    let nodes = &context.host.topology.nodes;
    if nodes.len() < 2 {
        return Judgement::not_applicable("fewer than two NUMA nodes");
    }
    if let Some(node) = nodes.iter().find(|node| !node.distances.is_known()) {
        return missing(&node.distances, PATH);
    }
    let mut distances: Vec<u32> =
        nodes.iter().filter_map(|n| n.distances.known()).flatten().copied().collect();
    distances.sort_unstable();
    distances.dedup();
    let words: Vec<String> = distances.iter().map(u32::to_string).collect();
    let observed = format!("distances {}", words.join(", "));
    // The kernel uses 10 and 20 if the firmware has no table.
    if distances.iter().all(|distance| [10, 20].contains(distance)) {
        return Judgement {
            observed,
            ..Judgement::unknown(
                "these are the kernel's default values; the firmware's table may have the same ones",
            )
        }
        .at(PATH);
    }
    switch(context, setting, true, &observed).at(PATH)
}

pub(super) fn io_proximity(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/bus/pci/devices/*/numa_node";
    let host = context.host;
    if cpu_nodes(&host.topology).len() < 2 {
        return Judgement::not_applicable("one NUMA node: every device is attached to it");
    }
    let nics = host.nics.iter().filter(|nic| nic.is_physical).map(|nic| &nic.node);
    let of_devices = nics.chain(host.disks.iter().map(|disk| &disk.node));
    let nodes: Vec<i32> = of_devices.clone().filter_map(|node| node.known().copied()).collect();
    let mut unread = of_devices.filter(|node| !node.is_known() && !node.is_absent());
    if nodes.is_empty() {
        return Judgement::unknown("no NIC or disk of this host reports its node").at(PATH);
    }
    if nodes.iter().any(|node| *node >= 0) {
        return switch(context, setting, true, "a device reports its node").at(PATH);
    }
    // One that was not read may report it.
    let listed = host.listed("/sys/class/net", ()).and_then(|()| host.listed("/sys/block", ()));
    match unread.next() {
        Some(node) => missing(node, PATH),
        None if !listed.is_known() => missing(&listed, "/sys/class/net and /sys/block"),
        None => switch(context, setting, false, "no device reports its node").at(PATH),
    }
}
