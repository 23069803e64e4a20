//! Ranking of the settings that differ, by how well they explain the measured difference.
//!
//! A cause is explained by its remedy on the side where it took more time, the setting that would remove it there.
//! If that setting differs between the sides, in a direction that fits, the time by which the cause differs counts for
//! it, on the CPUs where the cause differs. If another setting decides its state ([`lowlat_jitter::origins`]) and
//! differs too, the time counts for that one as well, which is then ranked first. Settings that explain nothing are
//! ranked by their direction and by the catalogue's impact.

use super::{Comparison, SettingChange, causes, side};
use crate::ResultDocument;
use lowlat_host::{CpuId, CpuSet};
use lowlat_jitter::{Cause, JitterRecord, origins, remedy};
use lowlat_settings::{Impact, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A setting that differs, with the part of the measured difference that it explains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    pub id: String,
    pub direction: Direction,
    /// The catalogue's impact of a wrong value.
    pub impact: Impact,
    /// True if its causes take more time after than before; `None` if it explains nothing, or some more and some less.
    pub is_more: Option<bool>,
    /// Time by which its causes differ, in nanoseconds per second and compared CPU. 0 if it explains nothing, or if
    /// causes come from counters.
    pub ns_per_s: f64,
    /// The same as a number of events per second and compared CPU.
    pub count_per_s: f64,
    /// Part of the time of all causes that differ in the same direction, 0 to 1; `None` if there is no time, or if it
    /// explains some more and some less.
    pub share: Option<f64>,
    /// Its causes, those that differ most first.
    pub causes: Vec<Cause>,
    /// The CPUs where they differ.
    pub cpus: CpuSet,
    /// The setting, also different, that decides its state; empty if there is none.
    pub follows: String,
}

/// Change of a setting's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From a fault to good.
    Better,
    /// From good to a fault.
    Worse,
    /// The value changed and the verdict not, or one of the verdicts is unknown.
    #[default]
    Unclear,
}

impl Direction {
    fn of(change: &SettingChange) -> Self {
        match (change.verdict_before, change.verdict_after) {
            (Verdict::Good, after) if after.is_fault() => Self::Worse,
            (before, Verdict::Good) if before.is_fault() => Self::Better,
            _ => Self::Unclear,
        }
    }

    /// True if a change in this direction can be the reason why a cause takes more or less time.
    fn fits(self, is_more: bool) -> bool {
        match self {
            Self::Better => !is_more,
            Self::Worse => is_more,
            Self::Unclear => true,
        }
    }
}

impl Explanation {
    /// True if it explains a measured difference.
    pub fn explains(&self) -> bool {
        !self.causes.is_empty()
    }
}

/// A cause on one CPU, before and after, per second: time, count.
type Rates = [(f64, f64); 2];

/// Ranks the settings that differ, the best explanation first.
pub(super) fn ranked(
    comparison: &Comparison,
    [before, after]: [&ResultDocument; 2],
    [a, b]: [&[&JitterRecord]; 2],
) -> Vec<Explanation> {
    let changes = &comparison.setting_changes;
    let impact = |id: &str| {
        let found = after.audit.findings.iter().find(|finding| finding.id == id);
        found.map_or(Impact::Low, |finding| finding.impact)
    };
    let mut found: Vec<Explanation> = changes
        .iter()
        .map(|change| Explanation {
            id: change.id.clone(),
            direction: Direction::of(change),
            impact: impact(&change.id),
            is_more: None,
            ns_per_s: 0.0,
            count_per_s: 0.0,
            share: None,
            causes: Vec::new(),
            cpus: CpuSet::new(),
            follows: follows(&change.id, changes),
        })
        .collect();
    let rates = rates(a, b, &comparison.cpus);
    let mut all = BTreeMap::from([(false, 0.0), (true, 0.0)]);
    let mut parts: Vec<(usize, bool, f64, f64, Cause, CpuSet)> = Vec::new();
    for cause in &comparison.causes {
        let Some(is_more) = cause.verdict.is_more() else { continue };
        let Some(per_cpu) = rates.get(&cause.cause) else { continue };
        let document = if is_more { after } else { before };
        // On housekeeping CPUs it is no fault, whatever is set.
        let housekeeping = &document.allocation.housekeeping;
        let per_cpu = per_cpu.iter().filter(|(cpu, _)| !housekeeping.contains(**cpu));
        let per_cpu = per_cpu.map(|(cpu, rates)| (*cpu, *rates)).collect();
        let (ns, count, cpus) = difference(&per_cpu, is_more, comparison.cpus.len());
        if cpus.is_empty() {
            continue;
        }
        *all.entry(is_more).or_insert(0.0) += ns;
        for at in explained_by(&found, &cause.cause, &cpus, document, is_more) {
            parts.push((at, is_more, ns, count, cause.cause.clone(), cpus.clone()));
        }
    }
    parts.sort_by(|x, y| y.2.total_cmp(&x.2).then(y.3.total_cmp(&x.3)));
    for (at, is_more, ns, count, cause, cpus) in parts {
        let Some(of) = found.get_mut(at) else { continue };
        of.is_more = (of.causes.is_empty() || of.is_more == Some(is_more)).then_some(is_more);
        of.ns_per_s += ns;
        of.count_per_s += count;
        of.cpus = of.cpus.union(&cpus);
        of.causes.push(cause);
        let whole = all.get(&is_more).copied().unwrap_or(0.0);
        if whole > 0.0 {
            of.share = Some((of.share.unwrap_or(0.0) + ns / whole).min(1.0));
        }
    }
    for of in found.iter_mut().filter(|of| of.is_more.is_none()) {
        of.share = None;
    }
    let is_worse = all.get(&true) >= all.get(&false);
    found.sort_by(|x, y| {
        let fits = |of: &Explanation| match of.direction {
            Direction::Unclear => 1,
            direction if direction.fits(is_worse) => 2,
            _ => 0,
        };
        (y.ns_per_s.total_cmp(&x.ns_per_s))
            .then(y.count_per_s.total_cmp(&x.count_per_s))
            .then(x.follows.is_empty().cmp(&y.follows.is_empty()).reverse())
            .then(fits(y).cmp(&fits(x)))
            .then(y.impact.cmp(&x.impact))
            .then_with(|| x.id.cmp(&y.id))
    });
    found
}

/// The setting that differs and decides the state of this one; empty if there is none.
fn follows(id: &str, changes: &[SettingChange]) -> String {
    let own = changes.iter().find(|change| change.id == id).map(Direction::of);
    let is_alike = |change: &&SettingChange| {
        let of = Direction::of(change);
        own == Some(of) || of == Direction::Unclear || own == Some(Direction::Unclear)
    };
    let found = origins(id).iter().find_map(|origin| {
        changes.iter().filter(is_alike).find(|change| change.id == *origin).map(|change| change.id.clone())
    });
    found.unwrap_or_default()
}

/// Places of the settings that explain a cause.
fn explained_by(
    found: &[Explanation],
    cause: &Cause,
    cpus: &CpuSet,
    document: &ResultDocument,
    is_more: bool,
) -> Vec<usize> {
    let Some(remedy) = remedy(cause, cpus, &document.remedy_context(), &super::study_of(document)) else {
        return Vec::new();
    };
    let ids: Vec<&str> =
        [remedy.setting.as_str()].into_iter().chain(origins(&remedy.setting).iter().copied()).collect();
    let place = |id: &&str| found.iter().position(|of| of.id == *id && of.direction.fits(is_more));
    ids.iter().filter_map(place).collect()
}

/// The difference of a cause over the CPUs where it differs in this direction, per second and compared CPU.
fn difference(per_cpu: &BTreeMap<CpuId, Rates>, is_more: bool, cpu_count: usize) -> (f64, f64, CpuSet) {
    let sign = if is_more { 1.0 } else { -1.0 };
    let (mut ns, mut count, mut cpus) = (0.0, 0.0, CpuSet::new());
    for (cpu, [before, after]) in per_cpu {
        let (more_ns, more_count) = (sign * (after.0 - before.0), sign * (after.1 - before.1));
        if more_ns > 0.0 || (more_ns == 0.0 && more_count > 0.0) {
            ns += more_ns;
            count += more_count.max(0.0);
            cpus.insert(*cpu);
        }
    }
    let divisor = cpu_count.max(per_cpu.len()).max(1) as f64;
    (ns / divisor, count / divisor, cpus)
}

/// Every cause by CPU, under the name that the comparison uses.
fn rates(a: &[&JitterRecord], b: &[&JitterRecord], cpus: &CpuSet) -> BTreeMap<Cause, BTreeMap<CpuId, Rates>> {
    let mut found: BTreeMap<Cause, BTreeMap<CpuId, Rates>> = BTreeMap::new();
    for (at, runs) in [a, b].into_iter().enumerate() {
        let seconds = seconds(runs);
        for (cpu, cause, count, ns) in runs.iter().flat_map(|run| causes::by_cpu(run)) {
            if !side::is_compared(cpu, cpus) {
                continue;
            }
            let Some(seconds) = seconds.get(&cpu).filter(|seconds| **seconds > 0.0) else { continue };
            let rates = found.entry(causes::same_in_every_run(cause)).or_default().entry(cpu).or_default();
            if let Some(rate) = rates.get_mut(at) {
                rate.0 += ns as f64 / seconds;
                rate.1 += count as f64 / seconds;
            }
        }
    }
    found
}

/// Sampled time of each CPU over the runs of a side, in seconds.
fn seconds(runs: &[&JitterRecord]) -> BTreeMap<CpuId, f64> {
    let mut seconds = BTreeMap::new();
    for cpu in runs.iter().flat_map(|run| &run.cpus) {
        *seconds.entry(cpu.cpu).or_insert(0.0) += cpu.runtime_ns as f64 / 1e9;
    }
    seconds
}
