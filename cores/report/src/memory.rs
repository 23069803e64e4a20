//! Latency and bandwidth of memory.

use lowlat_cache::memory::{
    ByChains, ByPause, MemoryMeasurement, MemoryPath, MemoryRecord, MemoryRound, NodePlan, Pages,
    differs_from_one, median,
};
use lowlat_host::{Reading, memory::MemoryKind, statistics::MedianInterval};
use lowlat_text::article::Article;
use lowlat_text::columns::Table;
use lowlat_text::units::{duration, duration_fine, plural, size};

/// Share of waiting above which figures are those of a busy host.
const WAITED_SHARE_MAX: f64 = 0.02;

/// A measurement of memory, or what would be measured.
pub fn memory_article(record: &MemoryRecord) -> Article {
    let sizes = sizes(record);
    let mut doubts: Vec<String> =
        record.waited_share.filter(|share| *share > WAITED_SHARE_MAX).map(busy).into_iter().collect();
    doubts.extend(record.plan.doubts());
    Article::new(MemoryMeasurement::KIND, "Latency and bandwidth of memory", headline(record))
        .detail(set_up(record))
        .table("Memory of each node", paths(record))
        .titled_table("A load by the size of what is chased", by_size(record, &sizes))
        .titled_table("A load while the other CPUs read with pauses", by_pause(record))
        .titled_table("Several chases at once on one CPU", by_chains(record))
        .doubts("Doubts", doubts)
        .sentences("Buffers", buffers(record))
        .sentences("Memory of this host", facts(record))
        .sentences("Not measured", record.left_out.clone())
}

fn busy(share: f64) -> String {
    format!(
        "Other programs used these CPUs: the measuring threads waited for {:.0} % of their time. Bandwidth is too low, and \
         latency holds what others left in the caches. Measure again on an idle host.",
        share * 100.0
    )
}

/// "A load from memory takes 92.1 ns, and 1.70 times as long from node 0 to node 1."
fn headline(record: &MemoryRecord) -> String {
    let own = record.paths.iter().find(|path| path.from == path.to).or(record.paths.first());
    let Some(idle) = own.and_then(|path| median(path.rounds.iter().map(|round| round.idle.ns))) else {
        return "Nothing was measured.".to_owned();
    };
    let mut text = format!("A load from memory takes {}", duration_fine(idle.median));
    if let Some((path, ratio)) = record.farthest() {
        text += &if differs_from_one(&ratio) {
            format!(", and {:.2} times as long from node {} to node {}", ratio.median, path.from, path.to)
        } else {
            "; no difference between nodes shown".to_owned()
        };
    }
    let compared = |(bytes, ratio): &(u64, MedianInterval)| {
        let over = size(*bytes);
        if differs_from_one(ratio) {
            format!("{:.2} times as long over {over}", ratio.median)
        } else {
            format!("no other time shown over {over}")
        }
    };
    let huge: Vec<String> = record.huge_against_small().iter().map(compared).collect();
    if !huge.is_empty() {
        text += &format!(". In huge pages: {}", huge.join(", "));
    }
    text + "."
}

fn set_up(record: &MemoryRecord) -> String {
    let sizes =
        format!("{} are chased, {} are read", size(record.plan.chased_bytes), size(record.plan.read_bytes));
    match record.paths.iter().map(|path| path.rounds.len()).max() {
        None => format!("In each buffer {sizes}."),
        Some(rounds) => format!(
            "In each buffer {sizes}. Medians of {} over all paths in turn, and p99 of blocks of 20 us. Loaded: while the \
             other CPUs of the node read. A copy counts what is read and what is written.",
            plural(rounds, "round")
        ),
    }
}

fn buffers(record: &MemoryRecord) -> Vec<String> {
    let of = |node: &NodePlan| {
        let caches = match &node.llc_bytes {
            Reading::Known(bytes) if node.llc_count == 1 => {
                format!("its last-level cache has {}", size(*bytes))
            }
            Reading::Known(bytes) => {
                format!("its {} last-level caches have {} together", node.llc_count, size(*bytes))
            }
            unknown => format!("the size of its last-level caches is {unknown}"),
        };
        format!("Node {}: {:#} read {} each; {caches}.", node.node, node.cpus, size(node.bytes_per_cpu))
    };
    record.plan.nodes.iter().map(of).collect()
}

/// The median of what each round has; "-" if none has it.
fn middle<T>(rounds: &[T], of: impl Fn(&T) -> Option<f64>) -> Option<f64> {
    median(rounds.iter().filter_map(of)).map(|of| of.median)
}

fn gb_per_s(bytes: f64) -> String {
    format!("{:.1}", bytes / 1e9)
}

fn paths(record: &MemoryRecord) -> Table<'_, MemoryPath> {
    let time = |of_round: fn(&MemoryRound) -> Option<f64>| {
        move |path: &MemoryPath| middle(&path.rounds, of_round).map(duration_fine)
    };
    let bandwidth = |of_round: fn(&MemoryRound) -> f64| {
        move |path: &MemoryPath| middle(&path.rounds, |round| Some(of_round(round))).map(gb_per_s)
    };
    let interval = |path: &MemoryPath| {
        let interval = median(path.rounds.iter().map(|round| round.idle.ns));
        interval.filter(MedianInterval::is_interval).map(|of| format!("{:.1}-{:.1}", of.low, of.high))
    };
    Table::of(&record.paths)
        .words("from", 0, |path| format!("node {}", path.from))
        .words("to", 0, |path| format!("node {}{}", path.to, kind(record, path.to)))
        .words("pages", 0, |path| pages(path.pages).to_owned())
        .figures("idle", 0, time(|round| Some(round.idle.ns)))
        .figures("p99", 1, time(|round| round.idle.ns_p99))
        .figures("95 % interval", 4, interval)
        .figures("loaded", 0, time(|round| Some(round.loaded?.ns)))
        .figures("p99", 3, time(|round| round.loaded?.ns_p99))
        .figures("GB/s read", 0, bandwidth(|round| round.read_bytes_per_s))
        .figures("write", 1, bandwidth(|round| round.write_bytes_per_s))
        .figures("copy", 1, bandwidth(|round| round.copy_bytes_per_s))
}

fn pages(pages: Pages) -> &'static str {
    match pages {
        Pages::Small => "small",
        Pages::Huge => "huge",
    }
}

fn sizes(record: &MemoryRecord) -> Vec<u64> {
    let mut sizes: Vec<u64> = record.by_size.iter().map(|point| point.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 { Vec::new() } else { sizes }
}

fn by_size<'a>(record: &MemoryRecord, sizes: &'a [u64]) -> Table<'a, u64> {
    let time = |pages: Pages| {
        move |bytes: &u64| {
            let point = record.by_size.iter().find(|point| (point.bytes, point.pages) == (*bytes, pages))?;
            middle(&point.ns, |ns| Some(*ns)).map(duration_fine)
        }
    };
    Table::of(sizes)
        .figures("size", 0, |bytes| size(*bytes))
        .figures("small pages", 0, time(Pages::Small))
        .figures("huge pages", 0, time(Pages::Huge))
}

fn by_pause(record: &MemoryRecord) -> Table<'_, ByPause> {
    Table::of(&record.by_pause)
        .figures("pause per 4 KiB", 0, |point| duration(point.pause_ns))
        .figures("they read", 0, |point| middle(&point.bytes_per_s, |of| Some(*of)).map(gb_per_s))
        .figures("load", 0, |point| middle(&point.times, |of| Some(of.ns)).map(duration_fine))
        .figures("p99", 0, |point| middle(&point.times, |of| of.ns_p99).map(duration_fine))
}

fn by_chains(record: &MemoryRecord) -> Table<'_, ByChains> {
    let points = &record.by_chains;
    let time = |ns: &[f64]| middle(ns, |ns| Some(*ns));
    let one = points.first().and_then(|point| time(&point.ns));
    Table::of(points)
        .figures("chases", 0, |point| point.chains.to_string())
        .figures("time per load", 0, |point| time(&point.ns).map(duration_fine))
        .figures("loads in the time of one", 0, |point| Some(format!("{:.1}", one? / time(&point.ns)?)))
}

/// ", CXL"; nothing for the memory of a node with CPUs.
fn kind(record: &MemoryRecord, node: u32) -> String {
    let kind = record.memory.nodes.iter().find(|of| of.node == node).map(|of| of.kind);
    kind.filter(|kind| *kind != MemoryKind::Main).map(|kind| format!(", {kind}")).unwrap_or_default()
}

/// Returns the kernel's facts about memory, sentence by sentence.
fn facts(record: &MemoryRecord) -> Vec<String> {
    let node = |of: &lowlat_host::memory::NodeMemory| {
        let total = of.total_bytes.as_ref().map(|bytes| size(*bytes));
        let tier = of.tier.known().map_or_else(String::new, |tier| format!(", memory tier {tier}"));
        format!("Node {}: {total} of {} memory{tier}.", of.node, of.kind)
    };
    let device = |of: &lowlat_host::memory::CxlDevice| {
        let bytes = of.volatile_bytes.as_ref().map(|bytes| size(*bytes));
        format!(
            "CXL memory device {}: {bytes}. It is memory of a node once its region was made and added.",
            of.name
        )
    };
    let demotion = match &record.memory.is_demotion_enabled {
        Reading::Known(true) => Some("The kernel moves cold pages to slower tiers (demotion is on)."),
        Reading::Known(false) if record.memory.nodes.iter().any(|of| of.kind != MemoryKind::Main) => {
            Some("The kernel does not move cold pages to slower tiers (demotion is off).")
        }
        _ => None,
    };
    let nodes = record.memory.nodes.iter().map(node);
    nodes.chain(record.memory.cxl_devices.iter().map(device)).chain(demotion.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_cache::memory::{ByChains, BySize, LoadTime, MemoryPlan};
    use lowlat_host::{
        CpuSet,
        memory::{CxlDevice, MemoryNodes, NodeMemory},
    };

    const ROUNDS: [f64; 6] = [1.0, 1.1, 0.95, 1.0, 1.0, 1.0];

    fn path(to: u32, pages: Pages, idle_ns: f64) -> MemoryPath {
        let time = |ns: f64| LoadTime { ns, ns_p99: Some(ns * 1.5) };
        let round = |factor: f64| MemoryRound {
            idle: time(idle_ns * factor),
            loaded: (to == 0).then(|| time(idle_ns * 2.0)),
            read_bytes_per_s: 2.5e10,
            write_bytes_per_s: 1.1e10,
            copy_bytes_per_s: 1.9e10,
        };
        MemoryPath {
            from: 0,
            cpus: CpuSet::first(4),
            to,
            pages,
            huge_share: 0.0,
            rounds: ROUNDS.map(round).to_vec(),
        }
    }

    fn record() -> MemoryRecord {
        let node = |node, kind| NodeMemory {
            node,
            kind,
            total_bytes: Reading::Known(8 << 30),
            tier: Reading::Known(if node == 0 { 4 } else { 22 }),
            ..NodeMemory::default()
        };
        let plan = NodePlan {
            cpus: CpuSet::first(4),
            llc_count: 2,
            llc_bytes: Reading::Known(16 << 20),
            bytes_per_cpu: 16 << 20,
            bytes_per_cpu_min: 8 << 20,
            ..NodePlan::default()
        };
        let by_size =
            |pages, bytes, ns: f64| BySize { bytes, pages, ns: ROUNDS.map(|round| round * ns).to_vec() };
        MemoryRecord {
            memory: MemoryNodes {
                nodes: vec![node(0, MemoryKind::Main), node(1, MemoryKind::Cxl)],
                cxl_devices: vec![CxlDevice { name: "mem0".into(), volatile_bytes: Reading::Known(8 << 30) }],
                is_demotion_enabled: Reading::Known(false),
            },
            plan: MemoryPlan { chased_bytes: 64 << 20, read_bytes: 64 << 20, nodes: vec![plan] },
            paths: vec![
                path(0, Pages::Small, 90.0),
                path(0, Pages::Huge, 72.0),
                path(1, Pages::Small, 270.0),
            ],
            by_size: vec![
                by_size(Pages::Small, 16 << 10, 1.3),
                by_size(Pages::Small, 1 << 30, 150.0),
                by_size(Pages::Huge, 1 << 30, 90.0),
            ],
            by_pause: vec![ByPause {
                pause_ns: 1_000,
                times: vec![LoadTime { ns: 99.0, ns_p99: Some(123.0) }],
                bytes_per_s: vec![3.3e9],
            }],
            by_chains: [(1, 90.0), (8, 15.0)].map(|(chains, ns)| ByChains { chains, ns: vec![ns] }).to_vec(),
            waited_share: Some(0.31),
            left_out: vec!["Node 1, huge pages: not measured: no room.".into()],
        }
    }

    fn flat(record: &MemoryRecord) -> String {
        let text = anstream::adapter::strip_str(&memory_article(record).to_text(80)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn all_that_was_measured_is_shown() {
        let text = flat(&record());
        for wanted in [
            "A load from memory takes 90.0 ns, and 3.00 times as long from node 0 to node 1",
            "In huge pages: 0.80 times as long over 64 MiB, 0.60 times as long over 1 GiB",
            "node 1, CXL",
            "from to pages idle p99 loaded GB/s read write copy",
            "node 0 small 90.0 ns 135 ns 180 ns 25.0 11.0 19.0",
            "16 KiB 1.3 ns -",
            "1 GiB 150 ns 90.0 ns",
            "1.00 us 3.3 99.0 ns 123 ns",
            "8 15.0 ns 6.0",
            "waited for 31 % of their time",
            "CPUs 0-3 read 16 MiB each; its 2 last-level caches have 16 MiB together",
            "Node 1: 8 GiB of CXL memory, memory tier 22.",
            "demotion is off",
            "no room",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }

    #[test]
    fn one_round_shows_no_difference_and_none_shows_the_plan() {
        let mut record = record();
        for path in &mut record.paths {
            path.rounds.truncate(1);
        }
        record.by_size.clear();
        let text = flat(&record);
        assert!(
            text.contains(
                "no difference between nodes shown. In huge pages: no other time shown over 64 MiB"
            ),
            "{text}"
        );
        let plan = flat(&MemoryRecord { paths: Vec::new(), waited_share: None, ..record });
        assert!(
            plan.starts_with("Nothing was measured. In each buffer 64 MiB are chased, 64 MiB are read."),
            "{plan}"
        );
    }
}
