//! Record of a survey of the latencies between cores.

use super::levels::Bounds;
use crate::quantile;
use lowlat_host::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Method by which a cache line is passed between two CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Each CPU writes its own line and reads the other's.
    #[default]
    Store,
    /// Both CPUs change one line by compare-exchange.
    CompareExchange,
    /// One CPU reads lines that the other has just written.
    Read,
    /// One CPU writes lines that the other has just read.
    Invalidate,
}

impl Method {
    pub const ALL: [Self; 4] = [Self::Store, Self::CompareExchange, Self::Read, Self::Invalidate];

    /// Returns the word used in arguments.
    pub fn word(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::CompareExchange => "cas",
            Self::Read => "read",
            Self::Invalidate => "invalidate",
        }
    }

    /// Describes what one figure measures.
    pub fn figure(self) -> &'static str {
        match self {
            Self::Store => "one way of a line that one CPU stores and the other loads",
            Self::CompareExchange => "half of two compare-exchanges on one line, one by each CPU",
            Self::Read => "one load of a line that the other CPU has modified",
            Self::Invalidate => "one store to a line that the other CPU has read",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

lowlat_host::measurement! {
    /// A survey with its results.
    C2cMeasurement { record: C2cRecord, kind: "c2c", command: "cache c2c" }
}

/// The raw facts of a survey, and the groups found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct C2cRecord {
    pub method: Method,
    /// CPUs of the survey, ascending.
    pub cpus: CpuSet,
    /// The pairs that were measured, in the order of measurement.
    pub pairs: Vec<PairTime>,
    /// Levels of latency, fastest first.
    pub levels: Vec<Level>,
    /// Parts that were compared with each other pair by pair; empty if every pair was measured.
    pub blocks: Vec<CpuSet>,
    /// Check of the predicted times; `None` if every pair was measured.
    pub check: Option<SpotCheck>,
    /// Ratio of the slowest to the fastest time of one pair that was measured throughout; `None` with one time.
    pub drift: Option<f64>,
    /// Reasons why the figures are doubtful. One sentence each.
    pub warnings: Vec<String>,
}

/// Times of one pair of CPUs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PairTime {
    /// The CPU with the lower number. It writes where only one does.
    pub a: CpuId,
    /// The CPU with the higher number.
    pub b: CpuId,
    /// Median, of the fastest try.
    pub median_ns: f64,
    /// Lower quartile of that try.
    pub low_ns: f64,
    /// Upper quartile of that try.
    pub high_ns: f64,
    pub tries: u32,
}

/// A level of latency, with its groups.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Level {
    /// Median of the measured pairs.
    pub median_ns: f64,
    /// Time of the fastest measured pair.
    pub min_ns: f64,
    /// Time of the slowest measured pair.
    pub max_ns: f64,
    /// Upper by lower quartile of one pair's samples, of the middle pair: how steady a pair is.
    pub quartile_ratio: f64,
    /// Number of its measured pairs.
    pub pairs: u64,
    /// Groups whose members are at most this level apart, single CPUs included.
    pub groups: Vec<CpuSet>,
}

/// Check of the predictions by pairs that were measured afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SpotCheck {
    pub pairs: u64,
    /// Number of pairs of the predicted level.
    pub right: u64,
}

/// The place of each CPU's group.
pub type Places = BTreeMap<CpuId, usize>;

/// Places of the CPUs of some groups.
pub fn places<'a>(groups: impl IntoIterator<Item = &'a CpuSet>) -> Places {
    let groups = groups.into_iter().enumerate();
    groups.flat_map(|(place, group)| group.iter().map(move |cpu| (cpu, place))).collect()
}

/// True if two CPUs are in one group.
pub fn are_together(places: &Places, a: CpuId, b: CpuId) -> bool {
    places.get(&a).is_some_and(|place| places.get(&b) == Some(place))
}

/// Index of a record, for fast predictions.
#[derive(Debug)]
pub struct LatencyPredictor<'a> {
    record: &'a C2cRecord,
    measured: BTreeMap<(CpuId, CpuId), f64>,
    /// Places of the CPUs among the blocks, and among the groups of each level.
    blocks: Places,
    groups: Vec<Places>,
    /// Medians between two blocks, by their places.
    between: BTreeMap<(usize, usize), f64>,
    bounds: Bounds,
}

impl C2cRecord {
    /// Number of pairs that the CPUs have.
    pub fn pair_count(&self) -> u64 {
        let cpus = self.cpus.len() as u64;
        cpus * cpus.saturating_sub(1) / 2
    }

    /// Builds the index that predicts the times of all pairs.
    pub fn prediction(&self) -> LatencyPredictor<'_> {
        let measured = self.pairs.iter().map(|pair| ((pair.a, pair.b), pair.median_ns)).collect();
        let blocks = places(&self.blocks);
        let place = |cpu: CpuId| blocks.get(&cpu).copied();
        let mut between: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for pair in &self.pairs {
            if let (Some(a), Some(b)) = (place(pair.a), place(pair.b))
                && a != b
            {
                between.entry((a.min(b), a.max(b))).or_default().push(pair.median_ns);
            }
        }
        let between =
            between.into_iter().filter_map(|(pair, times)| Some((pair, quantile(times, 0.5)?))).collect();
        let times: Vec<f64> = self.pairs.iter().map(|pair| pair.median_ns).collect();
        let groups = self.levels.iter().map(|level| places(&level.groups)).collect();
        LatencyPredictor { record: self, measured, blocks, groups, between, bounds: Bounds::of(&times) }
    }
}

impl LatencyPredictor<'_> {
    /// Latency between two CPUs in nanoseconds, and whether it was measured.
    pub fn time(&self, a: CpuId, b: CpuId) -> Option<(f64, bool)> {
        if let Some(ns) = self.measured.get(&(a.min(b), a.max(b))) {
            return Some((*ns, true));
        }
        self.predicted(a, b).map(|ns| (ns, false))
    }

    /// Latency that the other pairs suggest.
    pub fn predicted(&self, a: CpuId, b: CpuId) -> Option<f64> {
        let place = |cpu: CpuId| self.blocks.get(&cpu).copied();
        let blocks = place(a).zip(place(b)).filter(|(a, b)| a != b);
        let across = blocks.and_then(|(a, b)| self.between.get(&(a.min(b), a.max(b))));
        across.copied().or_else(|| {
            let level = self.groups.iter().position(|of| are_together(of, a, b))?;
            self.record.levels.get(level).map(|level| level.median_ns)
        })
    }

    pub fn level(&self, ns: f64) -> usize {
        self.bounds.level(ns)
    }
}
