//! Latency and bandwidth of memory, from the CPUs of each node to the memory of each.

mod plan;

pub use plan::{MemoryPlan, NodePlan};

use lowlat_host::{CpuSet, memory::MemoryNodes, statistics::MedianInterval};
use serde::{Deserialize, Serialize};

/// Size of the pages of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pages {
    /// The smallest of the processor, 4 KiB on x86-64.
    Small,
    /// Transparent huge pages, 2 MiB on x86-64.
    Huge,
}

lowlat_host::measurement! {
    /// Memory of a host.
    MemoryMeasurement { record: MemoryRecord, kind: "memory", command: "cache memory" }
}

/// Results of a measurement of memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryRecord {
    /// Memory of the host's nodes.
    pub memory: MemoryNodes,
    /// Sizes to chase and to read, and the CPUs that do it.
    pub plan: MemoryPlan,
    /// Every pair of nodes and size of pages that was measured.
    pub paths: Vec<MemoryPath>,
    /// Time of a load by size of what is chased, on the first node; the largest size only unless curves are measured.
    pub by_size: Vec<BySize>,
    /// Time of a load while the other CPUs of the node read with pauses, on the first node in small pages.
    pub by_pause: Vec<ByPause>,
    /// Time of a load while several chases run at once, on the first node in small pages.
    pub by_chains: Vec<ByChains>,
    /// Share of its time that a measuring thread waited for its CPU, the median over rounds. Absent if the kernel does
    /// not count.
    pub waited_share: Option<f64>,
    /// Parts that were not measured, and the reasons: sentences.
    pub left_out: Vec<String>,
}

/// Memory of one node, as the CPUs of one node reach it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryPath {
    /// Node of the measuring CPUs.
    pub from: u32,
    /// CPUs that read. The first one chases.
    pub cpus: CpuSet,
    /// Node of the measured memory.
    pub to: u32,
    pub pages: Pages,
    /// Share of the buffer in huge pages.
    pub huge_share: f64,
    /// Rounds, in the order of measurement. All paths are measured once before the next round begins.
    pub rounds: Vec<MemoryRound>,
}

/// One round. Times are of a load that depends on the load before, the median of short blocks of loads, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryRound {
    /// Other CPUs of the node idle.
    pub idle: LoadTime,
    /// While the other CPUs of the node read as fast as they can; `None` if it has no other.
    pub loaded: Option<LoadTime>,
    /// Bytes that all CPUs of the node read together, per second.
    pub read_bytes_per_s: f64,
    /// Bytes that they write together, per second.
    pub write_bytes_per_s: f64,
    /// Bytes that they read and write together while they copy, per second.
    pub copy_bytes_per_s: f64,
}

/// Time of a load over the blocks of a round.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LoadTime {
    /// Median over the blocks, in nanoseconds.
    pub ns: f64,
    /// 99th percentile, in nanoseconds; `None` if the blocks are too few for it.
    pub ns_p99: Option<f64>,
}

/// Time of a load by size of what is chased.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BySize {
    /// Number of bytes that are chased.
    pub bytes: u64,
    pub pages: Pages,
    /// Median of each round, in nanoseconds.
    pub ns: Vec<f64>,
}

/// Time of a load under a part of the load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ByPause {
    /// Pause of a reader after each 4 KiB, in nanoseconds.
    pub pause_ns: u64,
    /// Time of a load in each round.
    pub times: Vec<LoadTime>,
    /// Bytes that the other CPUs read together in each round, per second.
    pub bytes_per_s: Vec<f64>,
}

/// Time of a load where one CPU follows several chains at once.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ByChains {
    /// Number of chains followed at once.
    pub chains: u32,
    /// Time divided by the loads of all chains, of each round, in nanoseconds.
    pub ns: Vec<f64>,
}

/// True if rounds show that the median of their ratio is above 1, or below (exact 95 % interval of the median).
pub fn differs_from_one(ratio: &MedianInterval) -> bool {
    ratio.is_interval() && (ratio.low > 1.0 || ratio.high < 1.0)
}

/// The median of values, with its interval.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<MedianInterval> {
    MedianInterval::of(&values.into_iter().collect::<Vec<f64>>())
}

fn ratio(pairs: impl Iterator<Item = (f64, f64)>) -> Option<MedianInterval> {
    median(pairs.filter(|(_, under)| *under > 0.0).map(|(over, under)| over / under))
}

impl MemoryPath {
    /// Returns how many times as long a load takes as on another path, round by round.
    pub fn idle_ratio(&self, other: &Self) -> Option<MedianInterval> {
        ratio(self.rounds.iter().zip(&other.rounds).map(|(own, other)| (own.idle.ns, other.idle.ns)))
    }
}

impl MemoryRecord {
    /// The path between two nodes with pages of this size.
    pub fn path(&self, from: u32, to: u32, pages: Pages) -> Option<&MemoryPath> {
        self.paths.iter().find(|path| (path.from, path.to, path.pages) == (from, to, pages))
    }

    /// The path that takes longest, compared with the memory of the CPUs' own node, in pages of the same size.
    pub fn farthest(&self) -> Option<(&MemoryPath, MedianInterval)> {
        let ratio = |path: &MemoryPath| path.idle_ratio(self.path(path.from, path.from, path.pages)?);
        let others = self.paths.iter().filter(|path| path.from != path.to);
        let ratios = others.filter_map(|path| Some((path, ratio(path)?)));
        ratios.max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))
    }

    /// A load in huge pages against one in small pages, by bytes that are chased: on the first path that has both, and
    /// for the largest size.
    pub fn huge_against_small(&self) -> Vec<(u64, MedianInterval)> {
        let mut huge = self.paths.iter().filter(|path| path.pages == Pages::Huge);
        let of_path = huge.find_map(|path| path.idle_ratio(self.path(path.from, path.to, Pages::Small)?));
        let largest =
            |pages| self.by_size.iter().filter(move |of| of.pages == pages).max_by_key(|of| of.bytes);
        let of_size = largest(Pages::Huge).zip(largest(Pages::Small)).and_then(|(huge, small)| {
            let pairs = huge.ns.iter().copied().zip(small.ns.iter().copied());
            ratio(pairs).filter(|_| huge.bytes == small.bytes).map(|ratio| (huge.bytes, ratio))
        });
        let of_path = of_path.map(|ratio| (self.plan.chased_bytes, ratio));
        of_path.into_iter().chain(of_size).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(to: u32, pages: Pages, idle_ns: &[f64]) -> MemoryPath {
        let round =
            |ns: &f64| MemoryRound { idle: LoadTime { ns: *ns, ns_p99: None }, ..MemoryRound::default() };
        let rounds = idle_ns.iter().map(round).collect();
        MemoryPath { from: 0, cpus: CpuSet::first(2), to, pages, huge_share: 0.0, rounds }
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // The host is twice as slow in the third round.
        let times = |factor: f64| [1.0, 1.0, 2.0, 1.0, 1.0, 1.0].map(|round| round * factor);
        let of_size = |bytes, pages, ns: &[f64]| BySize { bytes, pages, ns: ns.to_vec() };
        let record = MemoryRecord {
            plan: MemoryPlan { chased_bytes: 1 << 25, ..MemoryPlan::default() },
            paths: vec![
                path(0, Pages::Small, &times(100.0)),
                path(0, Pages::Huge, &times(80.0)),
                path(1, Pages::Small, &times(180.0)),
                path(2, Pages::Small, &times(300.0)),
            ],
            by_size: vec![
                of_size(1 << 12, Pages::Small, &times(1.0)),
                of_size(1 << 30, Pages::Small, &times(200.0)),
                of_size(1 << 30, Pages::Huge, &times(120.0)),
            ],
            ..MemoryRecord::default()
        };
        let (farthest, ratio) = record.farthest().unwrap();
        assert_eq!(farthest.to, 2);
        assert!((ratio.median - 3.0).abs() < 1e-9 && differs_from_one(&ratio), "{ratio:?}");
        let huge = record.huge_against_small();
        let sizes: Vec<u64> = huge.iter().map(|(bytes, _)| *bytes).collect();
        assert_eq!(sizes, [1 << 25, 1 << 30]);
        assert!((huge[0].1.high - 0.8).abs() < 1e-9 && (huge[1].1.high - 0.6).abs() < 1e-9, "{huge:?}");
        assert_eq!(MemoryRecord::default().farthest(), None);
    }

    #[test]
    fn few_rounds_and_rounds_that_disagree_show_no_difference() {
        let ratio = |of: &[f64]| median(of.iter().copied()).unwrap();
        assert!(!differs_from_one(&ratio(&[3.0])));
        assert!(!differs_from_one(&ratio(&[1.2; 5])));
        assert!(differs_from_one(&ratio(&[1.2; 6])));
        // Quartiles are above 1, but so would those of equal paths be in one of five runs of nine rounds.
        let rounds = [0.97, 0.98, 1.01, 1.02, 1.03, 1.03, 1.04, 1.04, 1.05];
        assert!(!differs_from_one(&ratio(&rounds)));
    }
}
