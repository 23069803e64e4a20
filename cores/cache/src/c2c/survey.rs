//! The survey: which pairs to measure until the groups are known.
//!
//! A few CPUs are measured against all others, which shows the levels of latency. Then each CPU is placed in the tree
//! of groups by a few comparisons. The kernel's topology only decides which CPU is asked first, so a false one costs
//! time, not truth.

use super::{
    differences::partitions,
    levels::Bounds,
    record::{C2cRecord, Level, PairTime, Places, SpotCheck, are_together, places},
    tree::Tree,
};
use crate::quantile;
use fastrand::Rng;
use lowlat_host::{CpuId, CpuSet, topology::Topology};
use std::{collections::BTreeMap, rc::Rc};

/// CPUs that are measured against all others.
const ROWS: usize = 3;
/// Random pairs of each distance that the kernel knows.
const PAIRS_PER_DISTANCE: usize = 20;
/// Tries of a pair; an interruption only ever adds time, so the fastest counts.
const TRIES: u32 = 3;
/// Tries of a pair that is farther apart than expected, or than almost all others.
const TRIES_OF_DOUBTFUL: u32 = 8;
/// A level with a smaller share of the measured pairs is doubtful.
const SHARE_DOUBTFUL: f64 = 0.05;
/// Most parts that are compared pair by pair.
const BLOCKS_MAX: usize = 36;
/// Pairs measured between two parts.
const PAIRS_PER_BLOCKS: usize = 2;
/// Share of the budget that the check of the predictions gets.
const CHECK_SHARE: f64 = 0.08;
/// Times that the levels are determined again from what was measured.
const PASSES_MAX: usize = 3;
/// Pairs between two measurements of the control.
const CONTROL_EVERY: usize = 200;

/// Median and quartiles of one measurement of a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub median_ns: f64,
    pub low_ns: f64,
    pub high_ns: f64,
}

/// Reason why a pair has no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// Nothing can run on this CPU any more.
    Cpu(CpuId),
    /// The two did not answer each other.
    Pair,
    /// The survey is to end.
    Stop,
}

/// Limits on the number of measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SurveyLimits {
    /// Up to this number of CPUs every pair is measured.
    pub cpus_max_of_all_pairs: usize,
    /// Above it: largest share of the pairs that is measured, but never fewer than `pairs_min`.
    pub share_max: f64,
    /// Number of pairs that may always be measured.
    pub pairs_min: usize,
    /// Seed of the random choices.
    pub seed: u64,
}

impl Default for SurveyLimits {
    fn default() -> Self {
        Self { cpus_max_of_all_pairs: 32, share_max: 0.05, pairs_min: 1_500, seed: 1 }
    }
}

/// Measures pairs of `cpus` until the groups are known. A CPU on which nothing can run is left out.
pub fn survey(
    cpus: &CpuSet,
    topology: &Topology,
    limits: SurveyLimits,
    measure: &mut dyn FnMut(CpuId, CpuId) -> Result<Sample, Missed>,
) -> C2cRecord {
    let all: Vec<CpuId> = cpus.iter().collect();
    let pairs = all.len() * all.len().saturating_sub(1) / 2;
    let is_all = all.len() <= limits.cpus_max_of_all_pairs;
    let budget = share(pairs, limits.share_max).max(limits.pairs_min).min(pairs);
    let budget = if is_all { pairs } else { budget };
    let survey = Survey {
        distances: Rc::new(Distances::of(topology, &all)),
        cpus: all,
        measure,
        times: BTreeMap::new(),
        order: Vec::new(),
        budget,
        rng: Rng::with_seed(limits.seed),
        control: ControlPair::default(),
        gone: CpuSet::new(),
        is_stopped: false,
    };
    if is_all { survey.all_pairs() } else { survey.sample() }
}

fn share(count: usize, share: f64) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count fits")]
    let part = (count as f64 * share) as usize;
    part
}

/// A pair with the lower number first.
fn pair(a: CpuId, b: CpuId) -> (CpuId, CpuId) {
    (a.min(b), a.max(b))
}

fn one_of_each(rng: &mut Rng, own: &[CpuId], other: &[CpuId]) -> Option<(CpuId, CpuId)> {
    Some((*rng.choice(own)?, *rng.choice(other)?))
}

/// Distances between CPUs by the kernel's topology: the first level, from the finest, that two CPUs share.
struct Distances {
    levels: Vec<Places>,
}

impl Distances {
    fn of(topology: &Topology, cpus: &[CpuId]) -> Self {
        let levels = partitions(topology)
            .into_iter()
            .map(|(_, groups)| places(groups))
            .filter(|of: &Places| cpus.iter().any(|cpu| of.contains_key(cpu)))
            .collect();
        Self { levels }
    }

    fn between(&self, a: CpuId, b: CpuId) -> usize {
        self.levels.iter().position(|of| are_together(of, a, b)).unwrap_or(self.levels.len())
    }

    /// Sorts candidates: by distance, then by number.
    fn rank(&self, a: CpuId, b: CpuId) -> u64 {
        (self.between(a, b) as u64) << 32 | u64::from(a.abs_diff(b))
    }
}

/// One pair that is measured again and again, because a virtual machine's CPUs move.
#[derive(Debug, Default)]
struct ControlPair {
    pair: Option<(CpuId, CpuId)>,
    times: Vec<f64>,
}

struct Survey<'a> {
    cpus: Vec<CpuId>,
    distances: Rc<Distances>,
    measure: &'a mut dyn FnMut(CpuId, CpuId) -> Result<Sample, Missed>,
    times: BTreeMap<(CpuId, CpuId), PairTime>,
    order: Vec<(CpuId, CpuId)>,
    budget: usize,
    rng: Rng,
    control: ControlPair,
    /// CPUs on which nothing runs any more.
    gone: CpuSet,
    is_stopped: bool,
}

impl Survey<'_> {
    fn all_pairs(mut self) -> C2cRecord {
        let cpus = self.cpus.clone();
        let mut pairs: Vec<_> = cpus
            .iter()
            .enumerate()
            .flat_map(|(n, a)| cpus.iter().skip(n + 1).map(|b| pair(*a, *b)))
            .collect();
        // A drift of the host's speed must not look like a property of some pairs.
        self.rng.shuffle(&mut pairs);
        for (a, b) in pairs {
            self.time(a, b, TRIES);
        }
        self.doubtful_again();
        let bounds = self.bounds();
        let tree = self.tree(&bounds);
        self.record(&bounds, &tree, Vec::new(), None)
    }

    /// Measures a sample of the pairs.
    fn sample(mut self) -> C2cRecord {
        let kept = share(self.budget, CHECK_SHARE).max(1);
        self.budget -= kept;
        self.rows();
        self.each_distance();
        let (mut bounds, mut tree) = (Bounds::default(), Tree::Cpu(0));
        for _ in 0..PASSES_MAX {
            self.doubtful_again();
            bounds = self.bounds();
            tree = self.tree(&bounds);
            self.doubtful_again();
            if self.bounds() == bounds {
                break;
            }
        }
        let blocks = self.blocks(&bounds, &tree);
        self.budget += kept;
        let record = self.record(&bounds, &tree, blocks.clone(), None);
        let check = self.spot_check(&record, kept);
        // The pairs of the check are measured ones from now on.
        self.record(&bounds, &tree, blocks, Some(check))
    }

    /// Time of a pair after at least this many tries; `None` if the budget is spent or the survey is stopped.
    fn time(&mut self, a: CpuId, b: CpuId, tries: u32) -> Option<f64> {
        let key = pair(a, b);
        if !self.times.contains_key(&key) && self.order.len() >= self.budget {
            return None;
        }
        if self.gone.contains(a) || self.gone.contains(b) {
            return None;
        }
        self.measure_control();
        while !self.is_stopped && self.times.get(&key).is_none_or(|time| time.tries < tries) {
            let Some(sample) = self.try_once(key) else { break };
            self.keep(key, sample);
        }
        self.times.get(&key).map(|time| time.median_ns)
    }

    fn try_once(&mut self, (a, b): (CpuId, CpuId)) -> Option<Sample> {
        match (self.measure)(a, b) {
            Ok(sample) => return Some(sample),
            Err(Missed::Cpu(cpu)) => drop(self.gone.insert(cpu)),
            Err(Missed::Pair) => {}
            Err(Missed::Stop) => self.is_stopped = true,
        }
        None
    }

    fn keep(&mut self, key: (CpuId, CpuId), sample: Sample) {
        let time = self.times.entry(key).or_insert_with(|| {
            self.order.push(key);
            PairTime { a: key.0, b: key.1, median_ns: f64::INFINITY, ..PairTime::default() }
        });
        time.tries += 1;
        if sample.median_ns < time.median_ns {
            let Sample { median_ns, low_ns, high_ns } = sample;
            (time.median_ns, time.low_ns, time.high_ns) = (median_ns, low_ns, high_ns);
        }
    }

    fn measure_control(&mut self) {
        if !self.order.len().is_multiple_of(CONTROL_EVERY) || self.is_stopped {
            return;
        }
        let first = self.cpus.first().copied().zip(self.cpus.get(1).copied());
        let Some((a, b)) = self.control.pair.or(first) else { return };
        self.control.pair = Some((a, b));
        let tries: Vec<f64> =
            (0..TRIES).filter_map(|_| self.try_once((a, b))).map(|sample| sample.median_ns).collect();
        self.control.times.extend(tries.into_iter().min_by(f64::total_cmp));
    }

    /// A few CPUs against all others.
    fn rows(&mut self) {
        let cpus = self.cpus.clone();
        for row in 0..ROWS {
            let Some(own) = cpus.get(row * cpus.len() / ROWS).copied() else { continue };
            for other in cpus.iter().filter(|other| **other != own) {
                self.time(own, *other, TRIES);
            }
        }
    }

    /// Some pairs of each distance, as the kernel has it and by number.
    fn each_distance(&mut self) {
        let cpus = self.cpus.clone();
        for distance in 0..=self.distances.levels.len() {
            for _ in 0..PAIRS_PER_DISTANCE {
                let Some(own) = self.rng.choice(&cpus).copied() else { return };
                let others: Vec<CpuId> = cpus
                    .iter()
                    .copied()
                    .filter(|other| *other != own && self.distances.between(own, *other) == distance)
                    .collect();
                if let Some(other) = self.rng.choice(&others).copied() {
                    self.time(own, other, TRIES);
                }
            }
        }
        let mut gap = 1;
        while gap < cpus.len() {
            for _ in 0..PAIRS_PER_DISTANCE / 4 {
                let place = self.rng.usize(0..cpus.len() - gap);
                if let (Some(a), Some(b)) = (cpus.get(place).copied(), cpus.get(place + gap).copied()) {
                    self.time(a, b, TRIES);
                }
            }
            gap *= 2;
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds::of(&self.times.values().map(|time| time.median_ns).collect::<Vec<_>>())
    }

    /// Tries pairs again that were perhaps interrupted: slower than most of their distance, or of a level with few
    /// pairs.
    fn doubtful_again(&mut self) {
        let bounds = self.bounds();
        let usual = self.usual(&bounds);
        let mut counts = vec![0_usize; bounds.count()];
        for time in self.times.values() {
            counts.iter_mut().skip(bounds.level(time.median_ns)).take(1).for_each(|count| *count += 1);
        }
        let few = share(self.times.len(), SHARE_DOUBTFUL);
        let is_doubtful = |(a, b): &(CpuId, CpuId), time: &PairTime| {
            let level = bounds.level(time.median_ns);
            let is_rare = counts.get(level).is_some_and(|count| *count <= few);
            is_rare || usual.get(&self.distances.between(*a, *b)).is_some_and(|usual| level > *usual)
        };
        let doubtful: Vec<_> =
            self.times.iter().filter(|(key, time)| is_doubtful(key, time)).map(|(key, _)| *key).collect();
        for (a, b) in doubtful {
            self.time(a, b, TRIES_OF_DOUBTFUL);
        }
    }

    /// The level of most pairs at each distance.
    fn usual(&self, bounds: &Bounds) -> BTreeMap<usize, usize> {
        let mut levels: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for ((a, b), time) in &self.times {
            let distance = self.distances.between(*a, *b);
            levels.entry(distance).or_default().push(bounds.level(time.median_ns));
        }
        let middle = |mut levels: Vec<usize>| {
            levels.sort_unstable();
            levels.get(levels.len() / 2).copied()
        };
        levels.into_iter().filter_map(|(distance, levels)| Some((distance, middle(levels)?))).collect()
    }

    /// Places every CPU in the tree.
    fn tree(&mut self, bounds: &Bounds) -> Tree {
        let usual = self.usual(bounds);
        let mut waiting: Vec<CpuId> =
            self.cpus.iter().copied().filter(|cpu| !self.gone.contains(*cpu)).collect();
        // CPUs that the kernel groups arrive one after the other.
        waiting.sort_by_key(|cpu| {
            let path = self.distances.levels.iter().rev().map(|of| of.get(cpu).copied());
            (path.collect::<Vec<_>>(), *cpu)
        });
        let mut waiting = waiting.into_iter();
        let mut placed = vec![waiting.next().unwrap_or(0)];
        let mut tree = Tree::Cpu(placed.first().copied().unwrap_or(0));
        for cpu in waiting {
            let Some(near) = self.nearest(cpu, &placed, &usual, bounds) else { break };
            let distances = Rc::clone(&self.distances);
            let rank = |other: CpuId| distances.rank(cpu, other);
            let mut ask = |other: CpuId| {
                let ns = self.time(cpu, other, TRIES)?;
                Some(bounds.level(ns))
            };
            tree = tree.insert(cpu, near, &mut ask, &rank);
            placed.push(cpu);
        }
        tree
    }

    /// The nearest known CPU, with its level: the likeliest one, or one that a measurement shows to be nearer.
    fn nearest(
        &mut self,
        cpu: CpuId,
        placed: &[CpuId],
        usual: &BTreeMap<usize, usize>,
        bounds: &Bounds,
    ) -> Option<(CpuId, usize)> {
        let likeliest = placed.iter().copied().min_by_key(|other| self.distances.rank(cpu, *other))?;
        let known = |of: &Self| {
            let times = placed.iter().filter_map(|other| Some((*other, of.times.get(&pair(cpu, *other))?)));
            times.map(|(other, time)| (bounds.level(time.median_ns), other)).min()
        };
        let distance = self.distances.between(cpu, likeliest);
        if let Some(ns) = self.time(cpu, likeliest, TRIES)
            && usual.get(&distance).is_some_and(|usual| bounds.level(ns) > *usual)
        {
            self.time(cpu, likeliest, TRIES_OF_DOUBTFUL);
        }
        match known(self) {
            Some((level, other)) => Some((other, level)),
            // The budget is spent: as far away as anything, or as the kernel says.
            None => Some((likeliest, usual.get(&distance).copied().unwrap_or(bounds.count() - 1))),
        }
    }

    /// Compares the parts of the tree with each other. Returns them.
    fn blocks(&mut self, bounds: &Bounds, tree: &Tree) -> Vec<CpuSet> {
        let blocks = (0..bounds.count()).map(|level| tree.cut(level)).find(|cut| cut.len() <= BLOCKS_MAX);
        let blocks = blocks.unwrap_or_default();
        let members: Vec<Vec<CpuId>> = blocks.iter().map(|block| block.iter().collect()).collect();
        for (place, own) in members.iter().enumerate() {
            for other in members.iter().skip(place + 1) {
                for _ in 0..PAIRS_PER_BLOCKS {
                    if let Some((a, b)) = one_of_each(&mut self.rng, own, other) {
                        self.time(a, b, TRIES);
                    }
                }
            }
        }
        blocks
    }

    /// Measures pairs at random and compares them with what was predicted.
    fn spot_check(&mut self, record: &C2cRecord, pairs_max: usize) -> SpotCheck {
        let prediction = record.prediction();
        let mut check = SpotCheck::default();
        for _ in 0..pairs_max * 2 {
            let Some((a, b)) = one_of_each(&mut self.rng, &self.cpus, &self.cpus) else { break };
            let is_new = a != b && !self.times.contains_key(&pair(a, b));
            let Some(expected) = prediction.predicted(a, b).filter(|_| is_new) else { continue };
            let Some(mut ns) = self.time(a, b, TRIES) else { break };
            if prediction.level(ns) != prediction.level(expected) {
                ns = self.time(a, b, TRIES_OF_DOUBTFUL).unwrap_or(ns);
            }
            check.pairs += 1;
            check.right += u64::from(prediction.level(ns) == prediction.level(expected));
        }
        check
    }

    /// Median, over the pairs of a level, of the ratio of the quartiles of each pair.
    fn spread(&self, bounds: &Bounds, level: usize) -> f64 {
        let pairs =
            self.times.values().filter(|time| bounds.level(time.median_ns) == level && time.low_ns > 0.0);
        quantile(pairs.map(|time| time.high_ns / time.low_ns).collect(), 0.5).unwrap_or(1.0)
    }

    fn record(
        &self,
        bounds: &Bounds,
        tree: &Tree,
        blocks: Vec<CpuSet>,
        check: Option<SpotCheck>,
    ) -> C2cRecord {
        let mut by_level: Vec<Vec<f64>> = vec![Vec::new(); bounds.count()];
        for time in self.times.values() {
            if let Some(level) = by_level.get_mut(bounds.level(time.median_ns)) {
                level.push(time.median_ns);
            }
        }
        let mut levels: Vec<Level> = Vec::new();
        for (at, mut times) in by_level.into_iter().enumerate() {
            times.sort_by(f64::total_cmp);
            let (Some(min_ns), Some(max_ns)) = (times.first().copied(), times.last().copied()) else {
                continue;
            };
            let mut groups: Vec<CpuSet> =
                tree.cut(at).iter().map(|group| group.difference(&self.gone)).collect();
            groups.retain(|group| !group.is_empty());
            groups.sort_by_key(CpuSet::lowest);
            // Times between two levels that no group explains.
            if levels.last().is_some_and(|finer| finer.groups == groups) {
                continue;
            }
            let pairs = times.len() as u64;
            let median_ns = quantile(times, 0.5).unwrap_or(min_ns);
            levels.push(Level {
                median_ns,
                min_ns,
                max_ns,
                quartile_ratio: self.spread(bounds, at),
                pairs,
                groups,
            });
        }
        let ratio = |times: &[f64]| {
            let (low, high) =
                (times.iter().copied().reduce(f64::min)?, times.iter().copied().reduce(f64::max)?);
            (times.len() > 1 && low > 0.0).then(|| high / low)
        };
        C2cRecord {
            cpus: self.cpus.iter().copied().filter(|cpu| !self.gone.contains(*cpu)).collect(),
            pairs: self.order.iter().filter_map(|key| self.times.get(key).cloned()).collect(),
            levels,
            blocks,
            check,
            drift: ratio(&self.control.times),
            ..C2cRecord::default()
        }
    }
}
