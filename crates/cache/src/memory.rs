//! Latency and bandwidth of memory, from the CPUs of each node to the memory of each.

use crate::quantile;
use lowlat_host::{CpuSet, memory::MemoryNodes};
use serde::{Deserialize, Serialize};

/// Size of the pages of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pages {
    /// The smallest of the processor, 4 KiB on x86-64.
    Small,
    /// Transparent huge pages, 2 MiB on x86-64.
    Huge,
}

/// Everything that was measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryRecord {
    /// What memory the host has.
    pub memory: MemoryNodes,
    /// Size of each buffer: one half is chased, the other is read.
    pub buffer_bytes: u64,
    /// Size of the largest cache of a CPU.
    pub llc_bytes: u64,
    /// Every pair of nodes and size of pages that was measured.
    pub paths: Vec<MemoryPath>,
    /// What was not measured, and why: sentences.
    pub left_out: Vec<String>,
}

/// Memory of one node, as the CPUs of one node reach it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryPath {
    /// Node of the CPUs.
    pub from: u32,
    /// CPUs that read. The first one chases.
    pub cpus: CpuSet,
    /// Node of the memory.
    pub to: u32,
    /// Size of its pages.
    pub pages: Pages,
    /// Share of the buffer in huge pages.
    pub huge_share: f64,
    /// Rounds, in the order of measurement. All paths are measured once before the next round begins.
    pub rounds: Vec<MemoryRound>,
}

/// One round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryRound {
    /// Time of a load that depends on the load before, other CPUs of the node idle, in nanoseconds.
    pub idle_ns: f64,
    /// The same while the other CPUs of the node read as fast as they can; `None` if it has no other.
    pub loaded_ns: Option<f64>,
    /// What all CPUs of the node read together, in bytes per second.
    pub bytes_per_s: f64,
}

/// Median and quartiles over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// First quartile.
    pub low: f64,
    /// Third quartile.
    pub high: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        let at = |share| quantile(values.clone(), share);
        Some(Self { median: at(0.5)?, low: at(0.25)?, high: at(0.75)? })
    }

    /// Whether interleaved rounds agree that a ratio is above 1, or below.
    pub fn differs_from_one(self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

impl MemoryPath {
    /// Time of a load without load from others.
    pub fn idle_ns(&self) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(|round| round.idle_ns))
    }

    /// Time of a load while others read.
    pub fn loaded_ns(&self) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(|round| round.loaded_ns))
    }

    /// What all CPUs of the node read together.
    pub fn bytes_per_s(&self) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(|round| round.bytes_per_s))
    }

    /// How many times as long a load takes as on another path, round by round.
    pub fn idle_ratio(&self, other: &Self) -> Option<Spread> {
        let pairs = self.rounds.iter().zip(&other.rounds).filter(|(_, other)| other.idle_ns > 0.0);
        Spread::of(pairs.map(|(own, other)| own.idle_ns / other.idle_ns))
    }
}

impl MemoryRecord {
    /// The path between two nodes with pages of this size.
    pub fn path(&self, from: u32, to: u32, pages: Pages) -> Option<&MemoryPath> {
        self.paths.iter().find(|path| (path.from, path.to, path.pages) == (from, to, pages))
    }

    /// The path that takes longest, compared with the memory of the CPUs' own node, in pages of the same size.
    pub fn farthest(&self) -> Option<(&MemoryPath, Spread)> {
        let ratio = |path: &MemoryPath| path.idle_ratio(self.path(path.from, path.from, path.pages)?);
        let others = self.paths.iter().filter(|path| path.from != path.to);
        let ratios = others.filter_map(|path| Some((path, ratio(path)?)));
        ratios.max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))
    }

    /// A load in huge pages against one in small pages, on the first path that has both.
    pub fn huge_against_small(&self) -> Option<Spread> {
        let mut huge = self.paths.iter().filter(|path| path.pages == Pages::Huge);
        huge.find_map(|path| path.idle_ratio(self.path(path.from, path.to, Pages::Small)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(from: u32, to: u32, pages: Pages, idle_ns: [f64; 4]) -> MemoryPath {
        let round = |idle_ns| MemoryRound { idle_ns, loaded_ns: None, bytes_per_s: 1e9 };
        let rounds = idle_ns.into_iter().map(round).collect();
        MemoryPath { from, cpus: CpuSet::first(2), to, pages, huge_share: 0.0, rounds }
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // The host is twice as slow in the third round.
        let record = MemoryRecord {
            paths: vec![
                path(0, 0, Pages::Small, [100.0, 100.0, 200.0, 100.0]),
                path(0, 0, Pages::Huge, [80.0, 80.0, 160.0, 80.0]),
                path(0, 1, Pages::Small, [180.0, 180.0, 360.0, 180.0]),
                path(0, 2, Pages::Small, [300.0, 300.0, 600.0, 300.0]),
            ],
            ..MemoryRecord::default()
        };
        let (farthest, ratio) = record.farthest().unwrap();
        assert_eq!(farthest.to, 2);
        assert!((ratio.median - 3.0).abs() < 1e-9 && ratio.differs_from_one(), "{ratio:?}");
        let huge = record.huge_against_small().unwrap();
        assert!((huge.high - 0.8).abs() < 1e-9 && huge.differs_from_one(), "{huge:?}");
        assert_eq!(record.paths[0].loaded_ns(), None);
        assert_eq!(MemoryRecord::default().farthest(), None);
    }
}
