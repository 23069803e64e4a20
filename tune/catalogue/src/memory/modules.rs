//! Memory modules, their balance over nodes, and far memory.

use crate::firmware::is_epyc_7002;
use lowlat_host::{Reading, snapshot::MemoryModule, topology::Node};
use lowlat_settings::{
    Context, Impact, Judgement, Layer, Needs, Setting, Want,
    change::WhyLeftOut,
    judge::{each::list, files, missing},
};
use std::collections::BTreeMap;

const SMBIOS: &str = "SMBIOS type 17";
const SPEC: &str = "SMBIOS specification (DMTF DSP0134) type 17";
/// The kernel reserves a share of each node, so equal nodes never show equal sizes.
const NODE_DIFFERENCE_PERCENT_MAX: u64 = 10;

const ROW: Setting = Setting { layer: Layer::Memory, needs_reboot: true, ..Setting::BLANK };

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "memory.module_speed",
        not_planned: "memory modules, their slots, or the firmware's memory settings",
        why_not: WhyLeftOut::Hardware,
        name: "Configured Memory Speed",
        reason: "Memory that runs below its rating has higher latency and less bandwidth. Causes are mixed \
                 modules, two modules on a channel, a processor that supports less, or a limit in the BIOS.",
        effective: "dmidecode -t17: Configured Memory Speed equals Speed.",
        both: Want::State("every module at its rated speed, or 2933 MT/s on EPYC 7002"),
        judge: module_speed,
        sources: &["guide 57037 chapter 2", "guide 57037 section 3.3.3", SPEC],
        ..ROW
    },
    Setting {
        id: "memory.module_uniform",
        not_planned: "memory modules must be replaced",
        why_not: WhyLeftOut::Hardware,
        name: "Memory Device",
        reason: "Modules of different size, rank or speed prevent even interleaving over the channels. Part \
                 of the memory is then behind fewer channels, and the slowest module sets the speed of all.",
        effective: "dmidecode -t17 shows one size, rank and part number.",
        both: Want::State("modules of one kind"),
        judge: module_uniform,
        sources: &["guide 57037 chapter 2", SPEC],
        ..ROW
    },
    Setting {
        id: "memory.population_balance",
        not_planned: "memory modules must be moved or added",
        why_not: WhyLeftOut::Hardware,
        name: "memory per NUMA node",
        reason: "A node with less memory than the others fills up first, and its threads then get remote \
                 memory. A node without memory uses remote memory from the start. The guide asks for even \
                 memory over the nodes.",
        impact: Impact::High,
        effective: "numactl -H: the nodes have the same size.",
        both: Want::State("the same on every node with CPUs"),
        judge: population_balance,
        sources: &["guide 57037 chapter 2", "kernel Documentation/mm/numa.rst"],
        ..ROW
    },
    Setting {
        id: "memory.far_node_demotion",
        acts_when: "memory is short",
        name: "numa/demotion_enabled",
        reason: "Nodes without CPUs are far memory, such as CXL expanders, which is slower than local DRAM. \
                 With demotion the kernel moves cold pages there, including rarely used pages of a trading \
                 process.",
        cost: "Local memory fills up instead.",
        needs_reboot: false,
        needs: Needs::since(5, 15),
        effective: "pgdemote_kswapd and pgdemote_direct in /proc/vmstat do not increase.",
        reads: &["/sys/kernel/mm/numa/demotion_enabled"],
        trading: Want::OneOf(&["false", "0"]),
        judge: far_node_demotion,
        sources: &[
            "kernel Documentation/ABI/testing/sysfs-kernel-mm-numa",
            "KeyarchOS on Intel Xeon 6: CXL tiered memory (Inspur, 2025)",
        ],
        ..ROW
    },
];

/// The modules; none if the host does not report them.
fn modules<'a>(context: &Context<'a>) -> Option<&'a Vec<MemoryModule>> {
    context.host.memory.modules.known().filter(|modules| !modules.is_empty())
}

fn no_modules(context: &Context<'_>) -> Judgement {
    match &context.host.memory.modules {
        Reading::Known(_) => Judgement::unknown("the firmware lists no memory modules"),
        Reading::Absent => Judgement::unknown("this host has no SMBIOS tables"),
        other => missing(other, SMBIOS),
    }
    .at(SMBIOS)
}

fn module_speed(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(modules) = modules(context) else { return no_modules(context) };
    let told: Vec<(&str, u32, u32)> =
        modules.iter().filter_map(|m| Some((m.locator.as_str(), m.configured_mts?, m.speed_mts?))).collect();
    if told.is_empty() {
        return Judgement::unknown("the modules do not report their speed").at(SMBIOS);
    }
    // SMBIOS rounds: 2933 and 2934 mean the same speed.
    let is_in_step = |speed: u32| is_epyc_7002(context) && (2_932..=2_934).contains(&speed);
    let slow: Vec<String> = told
        .iter()
        .filter(|(_, runs, rated)| runs < rated && !is_in_step(*runs))
        .map(|(locator, runs, rated)| format!("{locator}: {runs} of {rated} MT/s"))
        .collect();
    if slow.is_empty() {
        let slowest = told.iter().map(|(_, runs, _)| *runs).min().unwrap_or(0);
        return Judgement::good(format!("{slowest} MT/s")).at(SMBIOS);
    }
    Judgement::wrong(list(&slow), "").at(SMBIOS)
}

fn module_uniform(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(modules) = modules(context) else { return no_modules(context) };
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for module in modules {
        let ranks = module.ranks.map_or(String::new(), |ranks| format!(", {ranks} ranks"));
        let speed = module.speed_mts.map_or(String::new(), |speed| format!(", {speed} MT/s"));
        let kind = format!("{} GiB {}{ranks}{speed}", module.size_bytes >> 30, module.kind);
        *kinds.entry(kind).or_default() += 1;
    }
    let seen: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
    if seen.len() == 1 {
        return Judgement::good(list(&seen)).at(SMBIOS);
    }
    Judgement::wrong(list(&seen), "").at(SMBIOS)
}

fn population_balance(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/node/node*/meminfo";
    let nodes: Vec<&Node> = context.host.topology.nodes.iter().filter(|node| !node.cpus.is_empty()).collect();
    if nodes.len() < 2 {
        return Judgement::not_applicable("fewer than two NUMA nodes with CPUs");
    }
    if let Some(node) = nodes.iter().find(|node| !node.memory_bytes.is_known()) {
        return missing(&node.memory_bytes, PATH);
    }
    let sizes: Vec<u64> = nodes.iter().filter_map(|node| node.memory_bytes.known().copied()).collect();
    let words: Vec<String> = nodes
        .iter()
        .zip(&sizes)
        .map(|(node, bytes)| format!("node {}: {} MiB", node.id, bytes >> 20))
        .collect();
    let (smallest, largest) =
        (sizes.iter().min().copied().unwrap_or(0), sizes.iter().max().copied().unwrap_or(0));
    let observed = list(&words);
    if smallest == 0 {
        return Judgement::wrong(observed, "a node without memory: every access of its CPUs is remote")
            .at(PATH);
    }
    let is_even =
        u128::from(largest - smallest) * 100 <= u128::from(largest) * u128::from(NODE_DIFFERENCE_PERCENT_MAX);
    if is_even { Judgement::good(observed).at(PATH) } else { Judgement::wrong(observed, "").at(PATH) }
}

fn far_node_demotion(context: &Context<'_>, setting: &Setting) -> Judgement {
    let is_far =
        |node: &&Node| node.cpus.is_empty() && node.memory_bytes.known().is_none_or(|bytes| *bytes > 0);
    let far: Vec<u32> = context.host.topology.nodes.iter().filter(is_far).map(|node| node.id).collect();
    if far.is_empty() {
        return Judgement::not_applicable("every node with memory has CPUs");
    }
    let judgement = files(context, setting);
    let ids: Vec<String> = far.iter().map(u32::to_string).collect();
    Judgement { observed: format!("{} (far nodes: {})", judgement.observed, ids.join(", ")), ..judgement }
}
