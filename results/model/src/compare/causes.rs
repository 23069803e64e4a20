//! Causes before and after: which ones disappeared and which ones appeared.

use super::dispersion::{self, Windowed};
use super::harm::MARGIN;
use super::ratio::{RateRatio, RateVerdict, Tally};
use super::side::Side;
use lowlat_host::{CpuId, statistics::RateInterval};
use lowlat_jitter::{Cause, CauseKind, CauseSource, JitterRecord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Common name of functions with unknown names: their addresses change with every boot.
const NAMELESS: &str = "(not named)";

/// One cause before and after.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CauseComparison {
    /// The cause, without number and priority, which differ between runs. The workers of one queue are one
    /// cause ("kworker/3", "kworker/u16"), and so are functions with unknown names.
    pub cause: Cause,
    pub before: CauseFigures,
    pub after: CauseFigures,
    /// The rate after relative to the rate before, with the dispersion of this cause; with that of all interruptions if
    /// the runs did not count it by windows.
    pub rate: RateRatio,
    pub verdict: CauseVerdict,
    /// Reason why it shows less than it seems to; empty if there is none.
    pub caveat: String,
    /// IDs of changed settings that remove this cause; empty if bare records are compared.
    pub changed_settings: Vec<String>,
}

/// A cause on one side.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CauseFigures {
    /// Interruptions that contained it, or increases of the kernel's counter if causes come from counters.
    pub count: u64,
    /// Time it took; 0 if causes come from counters, which have no times.
    pub ns_total: u64,
    /// The same per core-second; `None` if causes come from counters, or if nothing was sampled.
    pub lost_ns_per_s: Option<f64>,
    /// Events per core-second, with the interval of independent events; `None` if nothing was sampled.
    pub rate: Option<RateInterval>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseVerdict {
    /// It occurred before and not after, and more often before than chance allows.
    Vanished,
    /// It occurred after and not before, and more often after than chance allows.
    Appeared,
    Fewer,
    More,
    /// Less often, and more time in all.
    FewerLonger,
    /// More often, and less time in all.
    MoreShorter,
    /// The interval of the rate contains 1.
    #[default]
    NoDifferenceShown,
}

impl CauseVerdict {
    /// True if it takes more time after than before; `None` if no difference is shown.
    pub fn is_more(self) -> Option<bool> {
        match self {
            Self::Appeared | Self::More | Self::FewerLonger => Some(true),
            Self::Vanished | Self::Fewer | Self::MoreShorter => Some(false),
            Self::NoDifferenceShown => None,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Vanished => "vanished",
            Self::Appeared => "appeared",
            Self::Fewer => "fewer",
            Self::More => "more",
            Self::FewerLonger => "fewer, longer",
            Self::MoreShorter => "more, shorter",
            Self::NoDifferenceShown => "no difference shown",
        }
    }
}

/// The common source of causes in all runs of a side; `None` if they differ or have none.
pub(super) fn source_of(side: &Side) -> Option<CauseSource> {
    let mut sources = side.runs.iter().map(|run| run.causes.as_ref().map(|causes| causes.source));
    let first = sources.next()??;
    (first != CauseSource::Off && sources.all(|source| source == Some(first))).then_some(first)
}

/// Compares every cause of either side, if both have the same source.
pub(super) fn compare(a: &Side, b: &Side, dispersion: Option<f64>) -> Vec<CauseComparison> {
    let (Some(source), Some(other)) = (source_of(a), source_of(b)) else { return Vec::new() };
    if source != other {
        return Vec::new();
    }
    let mut sides: BTreeMap<Cause, [(u64, u64); 2]> = BTreeMap::new();
    for (at, side) in [a, b].into_iter().enumerate() {
        for (_, cause, count, ns) in side.runs.iter().flat_map(by_cpu) {
            if let Some(sum) = sides.entry(same_in_every_run(cause)).or_default().get_mut(at) {
                *sum = (sum.0.saturating_add(count), sum.1.saturating_add(ns));
            }
        }
    }
    let exposures = [a.core_seconds(), b.core_seconds()];
    let [mut before, mut after] = [a, b].map(by_windows);
    let mut found: Vec<CauseComparison> = sides
        .into_iter()
        .map(|(cause, sums)| {
            let own = |windows: &mut BTreeMap<Cause, Vec<Vec<Windowed>>>| {
                dispersion::of_cause(&windows.remove(&cause).unwrap_or_default())
            };
            let own = dispersion::greater(own(&mut before), own(&mut after));
            one(cause, source, sums, exposures, own.or(dispersion))
        })
        .collect();
    let weight = |cause: &CauseComparison| {
        let [before, after] = [cause.before, cause.after];
        let most = |of: fn(&CauseFigures) -> f64| of(&before).max(of(&after));
        (most(|of| of.lost_ns_per_s.unwrap_or(0.0)), most(|of| of.rate.map_or(0.0, |rate| rate.per_s)))
    };
    doubt_classes(&mut found, exposures, dispersion);
    found.sort_by(|x, y| {
        let (x, y) = (weight(x), weight(y));
        y.0.total_cmp(&x.0).then(y.1.total_cmp(&x.1))
    });
    found
}

/// Withdraws opposite verdicts on unexplained time and on firmware or hypervisor if their sum does not differ. A gap is
/// one or the other by a counter of its second (steal time, SMI count), so the class may change and the gaps not.
fn doubt_classes(found: &mut [CauseComparison], exposures: [f64; 2], dispersion: Option<f64>) {
    let place = |kind| found.iter().position(|of| of.cause.kind == kind);
    let places = [CauseKind::Unexplained, CauseKind::FirmwareOrHypervisor].map(place);
    let [Some(one), Some(other)] = places.map(|at| at.and_then(|at| found.get(at))) else { return };
    let pair = [one, other];
    let is_opposite = pair.iter().any(|of| of.rate.verdict == RateVerdict::Fewer)
        && pair.iter().any(|of| of.rate.verdict == RateVerdict::More);
    let sum = |of: fn(&CauseComparison) -> u64| pair.iter().map(|one| of(one)).fold(0, u64::saturating_add);
    let tally = |count, exposure_s| Tally { count, exposure_s };
    let own = pair.iter().fold(dispersion, |all, of| dispersion::greater(all, of.rate.dispersion));
    let [before_s, after_s] = exposures;
    let before = tally(sum(|of| of.before.count), before_s);
    let together = RateRatio::of(before, tally(sum(|of| of.after.count), after_s), own);
    if !is_opposite {
        return;
    }
    for at in places.into_iter().flatten() {
        let Some(of) = found.get_mut(at).filter(|of| of.rate.verdict != together.verdict) else { continue };
        of.verdict = CauseVerdict::NoDifferenceShown;
        "the other of \"unexplained\" and \"firmware or hypervisor\" changed the opposite way: gaps may only be classed \
         differently"
            .clone_into(&mut of.caveat);
    }
}

/// Returns the counts of each cause in the windows of each CPU, by run.
fn by_windows(side: &Side) -> BTreeMap<Cause, Vec<Vec<Windowed>>> {
    let mut found: BTreeMap<Cause, Vec<Vec<Windowed>>> = BTreeMap::new();
    for (at, causes) in side.runs.iter().map(|run| run.causes.as_ref()).enumerate() {
        for cpu in causes.iter().flat_map(|causes| &causes.cpus) {
            for of in &cpu.totals {
                let runs = found.entry(same_in_every_run(&of.cause)).or_default();
                runs.resize_with(side.runs.len(), Vec::new);
                if let Some(run) = runs.get_mut(at) {
                    run.push(Windowed::of(cpu.window_count, of.windowed_count, of.windowed_square_sum));
                }
            }
        }
    }
    found
}

/// CPU, cause, count and time of each row of a run.
pub(super) fn by_cpu(run: &JitterRecord) -> Vec<(CpuId, &Cause, u64, u64)> {
    let Some(causes) = &run.causes else { return Vec::new() };
    let cpus = causes.cpus.iter();
    match causes.source {
        CauseSource::Trace => cpus
            .flat_map(|cpu| cpu.totals.iter().map(move |of| (cpu.cpu, &of.cause, of.count, of.ns_total)))
            .collect(),
        CauseSource::Counters => cpus
            .flat_map(|cpu| cpu.counters.iter().map(move |of| (cpu.cpu, &of.cause, of.count, 0)))
            .collect(),
        CauseSource::Off => Vec::new(),
    }
}

/// The cause under a name that is the same in every run.
pub(super) fn same_in_every_run(cause: &Cause) -> Cause {
    let name = match cause.name.as_str() {
        _ if cause.is_own && cause.kind == CauseKind::Thread => "lowlat",
        _ if cause.is_nameless() => NAMELESS,
        // Workers start and end: "kworker/3:1H" is one of several with the same work.
        name if name.starts_with("kworker/") => name.split(':').next().unwrap_or(name),
        name => name,
    };
    Cause { kind: cause.kind, name: name.to_owned(), is_own: cause.is_own, ..Cause::default() }
}

fn one(
    cause: Cause,
    source: CauseSource,
    [before, after]: [(u64, u64); 2],
    [before_s, after_s]: [f64; 2],
    dispersion: Option<f64>,
) -> CauseComparison {
    let tally = |count, exposure_s| Tally { count, exposure_s };
    let rate = RateRatio::of(tally(before.0, before_s), tally(after.0, after_s), dispersion);
    let figures = |(count, ns_total), exposure_s| CauseFigures {
        count,
        ns_total,
        lost_ns_per_s: (source == CauseSource::Trace && exposure_s > 0.0)
            .then(|| ns_total as f64 / exposure_s),
        rate: RateInterval::of(count, exposure_s),
    };
    let lost = [before.1 as f64 / before_s, after.1 as f64 / after_s];
    let has_grown = |from: f64, to: f64| to > from * (1.0 + MARGIN);
    let verdict = match (rate.verdict, before.0, after.0) {
        (RateVerdict::Fewer, _, 0) => CauseVerdict::Vanished,
        (RateVerdict::Fewer, ..) if has_grown(lost[0], lost[1]) => CauseVerdict::FewerLonger,
        (RateVerdict::Fewer, ..) => CauseVerdict::Fewer,
        (RateVerdict::More, 0, _) => CauseVerdict::Appeared,
        (RateVerdict::More, ..) if has_grown(lost[1], lost[0]) => CauseVerdict::MoreShorter,
        (RateVerdict::More, ..) => CauseVerdict::More,
        (RateVerdict::NoDifferenceShown, ..) => CauseVerdict::NoDifferenceShown,
    };
    let once = |seen: u64, on: &str, not_on: &str| {
        let times = if seen == 1 { "once".to_owned() } else { format!("{seen} times") };
        format!(
            "seen {times} {on} and never {not_on}, which can happen by chance at this rate: measure longer"
        )
    };
    let caveat = match (verdict, before.0, after.0) {
        (CauseVerdict::NoDifferenceShown, seen @ 1.., 0) => once(seen, "before", "after"),
        (CauseVerdict::NoDifferenceShown, 0, seen @ 1..) => once(seen, "after", "before"),
        _ => String::new(),
    };
    CauseComparison {
        cause,
        before: figures(before, before_s),
        after: figures(after, after_s),
        rate,
        verdict,
        caveat,
        changed_settings: Vec::new(),
    }
}
