//! The side that harms a user thread more.
//!
//! Three quantities of each whole second are judged: the time lost, the number of long interruptions, and the longest
//! one. Seconds depend on each other where the load of the machine changes slowly, so the variance of a mean is that of
//! means of blocks of seconds, at the block length that makes it largest (batch means: Conway 1963; Law and Carson
//! 1979).
//!
//! - time lost: Welch's test of the means;
//! - long interruptions: the exact conditional test of two rates, with counts divided by the dispersion of blocks;
//! - the longest: Wilcoxon's rank test, as Welch's test of the mean ranks (Conover and Iman 1981), so that one huge
//!   second counts as one.
//!
//! Each asks for a difference beyond the margin. Holm's procedure (1979) keeps the chance of a false verdict on any of
//! them at 5 %.

use super::{
    causes::by_cpu,
    ratio::{beta_below, student_above},
    side::is_compared,
};
use lowlat_host::{CpuSet, statistics::bisected};
use lowlat_jitter::{Cause, CauseKind, CauseSource, JitterCpu, JitterRecord, LONG_NS};
use serde::{Deserialize, Serialize};

/// Margin of a verdict without a limit: smaller differences are of no consequence on any host.
pub const MARGIN: f64 = 0.1;
/// The quantities of a verdict.
pub(super) const WANTED: &[(Quantity, f64)] =
    &[(Quantity::Lost, MARGIN), (Quantity::Long, MARGIN), (Quantity::Longest, MARGIN)];
/// Whole seconds that each side needs.
pub const SECONDS_MIN: usize = 11;
/// The chance of a false verdict.
const CHANCE: f64 = 0.05;
/// Loads of the other CPUs that differ by less are alike.
const LOAD_MARGIN: f64 = 0.1;
/// Blocks that a variance needs.
const BLOCKS_MIN: usize = 5;
/// Differences of means below this mean nothing: time lost in nanoseconds per second, and a length.
const LOST_FLOOR_NS: f64 = 1_000.0;
const LENGTH_FLOOR_NS: f64 = 200.0;

/// Comparison of the harm to user threads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Harm {
    /// The verdict over all quantities.
    pub verdict: HarmVerdict,
    /// Whole seconds of both sides.
    pub seconds: [usize; 2],
    /// Share of the time in which the CPUs that were not measured ran something; `None` if a side does not know it.
    pub load: Option<[f64; 2]>,
    /// The quantities that both sides have.
    pub quantities: Vec<QuantityHarm>,
}

/// The verdict on a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HarmVerdict {
    /// Something got worse, nothing better.
    Worse,
    /// Something got better, nothing worse.
    Better,
    /// Something got better and something else worse.
    Traded,
    /// No difference beyond the margin is shown.
    NoDifferenceShown,
    /// There is a difference, and the surroundings of the measured CPUs made it: a hypervisor, or ordinary threads at
    /// another load of the host.
    SurroundingsDiffered,
    /// A side has fewer whole seconds than [`SECONDS_MIN`], or was not measured.
    #[default]
    TooShort,
}

/// A quantity by which harm is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Quantity {
    /// Time lost, in nanoseconds per second and CPU.
    #[serde(rename = "lost")]
    Lost,
    /// Interruptions of at least [`LONG_NS`], per second in which the thread ran: one that runs less is interrupted
    /// less.
    #[serde(rename = "count>10us")]
    Long,
    /// The longest interruption of a second, in nanoseconds.
    #[serde(rename = "max")]
    Longest,
    /// Time that a thread waits if it wants a CPU at a random moment, in nanoseconds, exceeded in one of 1,000 cases.
    /// Only limits ask for it.
    #[serde(rename = "p99.9")]
    Wait,
}

impl Quantity {
    pub const ALL: [Self; 4] = [Self::Lost, Self::Long, Self::Longest, Self::Wait];

    /// Returns the name used in limits.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Long => "count>10us",
            Self::Longest => "max",
            Self::Wait => "p99.9",
        }
    }
}

/// One quantity before and after.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QuantityHarm {
    pub quantity: Quantity,
    /// Smaller differences are not judged: 0.1 for 10 %.
    pub margin: f64,
    /// Before: the mean over seconds; for the longest the median.
    pub before: f64,
    pub after: f64,
    /// The 95 % interval of the difference of means; `None` for the longest, which are compared by rank.
    pub difference: Option<[f64; 2]>,
    /// The chance of such a difference if it were not above the margin: towards worse, towards better. `None` for the
    /// percentile over time, which is judged by its interval.
    pub chances: Option<[f64; 2]>,
    /// Change beyond the margin: worse, better, neither.
    pub verdict: HarmVerdict,
}

/// Whole seconds of one side.
#[derive(Debug, Default)]
struct SideSeconds {
    lost_ns: Vec<f64>,
    long: Option<Vec<f64>>,
    longest_ns: Vec<f64>,
    /// Core-seconds of each entry that were not lost.
    ran_s: Vec<f64>,
    entry_ns: Option<u64>,
    thresholds_ns: Vec<u64>,
}

impl Harm {
    /// Judges the runs of two sides by the compared CPUs, or all CPUs if `cpus` is empty: each quantity with its
    /// margin.
    pub(super) fn of(runs: [&[&JitterRecord]; 2], cpus: &CpuSet, wanted: &[(Quantity, f64)]) -> Self {
        let sides = runs.map(|runs| seconds_of(runs, cpus));
        let seconds = [sides[0].lost_ns.len(), sides[1].lost_ns.len()];
        let of = |(quantity, margin): &(Quantity, f64)| quantity_of(*quantity, *margin, &sides);
        let mut quantities: Vec<QuantityHarm> = wanted.iter().filter_map(of).collect();
        let is_short = seconds.iter().any(|count| *count < SECONDS_MIN);
        if !is_short {
            judge(&mut quantities);
        }
        let has = |verdict| quantities.iter().any(|of| of.verdict == verdict);
        let verdict = match (has(HarmVerdict::Worse), has(HarmVerdict::Better)) {
            _ if is_short => HarmVerdict::TooShort,
            (true, true) => HarmVerdict::Traded,
            (true, false) => HarmVerdict::Worse,
            (false, true) => HarmVerdict::Better,
            (false, false) => HarmVerdict::NoDifferenceShown,
        };
        let load = load_of(runs[0]).zip(load_of(runs[1])).map(|(before, after)| [before, after]);
        let has_load_differed = load.is_some_and(|[before, after]| (after - before).abs() > LOAD_MARGIN);
        let shows = matches!(verdict, HarmVerdict::Worse | HarmVerdict::Better | HarmVerdict::Traded);
        let is_surrounded = shows && is_by_surroundings(runs, cpus, has_load_differed);
        let verdict = if is_surrounded { HarmVerdict::SurroundingsDiffered } else { verdict };
        Self { verdict, seconds, load, quantities }
    }

    /// The outcome of a quantity; `None` if it is not compared.
    pub fn quantity(&self, quantity: Quantity) -> Option<&QuantityHarm> {
        self.quantities.iter().find(|of| of.quantity == quantity)
    }
}

/// The load beside the measured CPUs, over all runs of a side.
fn load_of(runs: &[&JitterRecord]) -> Option<f64> {
    let known: Option<Vec<f64>> = runs.iter().map(|run| run.others_busy_share.known().copied()).collect();
    known.filter(|of| !of.is_empty()).map(|of| of.iter().sum::<f64>() / of.len() as f64)
}

/// True if the surroundings of the measured CPUs made at least half of the difference: a hypervisor that takes time
/// from this host for others, or, if the load of the other CPUs differed, that and ordinary threads. Without a trace, a
/// load that differed is taken as the reason.
fn is_by_surroundings(runs: [&[&JitterRecord]; 2], cpus: &CpuSet, has_load_differed: bool) -> bool {
    let is_traced =
        |run: &&JitterRecord| run.causes.as_ref().is_some_and(|causes| causes.source == CauseSource::Trace);
    if !runs.iter().all(|side| side.iter().all(is_traced)) {
        return has_load_differed;
    }
    let measured = runs.map(|side| {
        let all = side.iter().flat_map(|run| &run.cpus);
        all.filter(|cpu| is_compared(cpu.cpu, cpus)).collect::<Vec<&JitterCpu>>()
    });
    let ran_ns = measured.each_ref().map(|of| of.iter().map(|cpu| cpu.runtime_ns as f64).sum::<f64>());
    let share = |at: usize, is_meant: &dyn Fn(&Cause) -> bool| {
        let rows = runs[at].iter().flat_map(|run| by_cpu(run));
        let rows = rows.filter(|of| is_compared(of.0, cpus) && is_meant(of.1));
        rows.map(|of| of.3 as f64).sum::<f64>() / ran_ns[at]
    };
    let difference = |is_meant: &dyn Fn(&Cause) -> bool| share(1, is_meant) - share(0, is_meant);
    let is_stolen_from = measured.iter().flatten().any(|cpu| cpu.steal_ns.known().is_some_and(|ns| *ns > 0));
    let is_stolen = |cause: &Cause| {
        is_stolen_from && matches!(cause.kind, CauseKind::FirmwareOrHypervisor | CauseKind::Unexplained)
    };
    // The limit of the samplers' own class is no harm that the host does.
    let all = difference(&|cause| cause.kind != CauseKind::Held || !cause.is_own);
    let is_most = |part: f64| part * all > 0.0 && part.abs() >= all.abs() / 2.0;
    is_most(difference(&is_stolen))
        || (has_load_differed && is_most(difference(&|cause| is_stolen(cause) || is_ordinary(cause))))
}

/// True for a thread that takes turns with others, of lowlat or not.
fn is_ordinary(cause: &Cause) -> bool {
    cause.kind == CauseKind::Thread
        && cause.priority.as_ref().is_none_or(|priority| priority.starts_with("nice"))
}

/// A quantity, not judged yet; `None` if the sides do not have it in the same way.
fn quantity_of(quantity: Quantity, margin: f64, [a, b]: &[SideSeconds; 2]) -> Option<QuantityHarm> {
    match quantity {
        Quantity::Lost => {
            let (x, y) = (Mean::of(&a.lost_ns), Mean::of(&b.lost_ns));
            let chances =
                [(x, y), (y, x)].map(|(x, y)| above_chance(x.scaled(1.0 + margin), y, LOST_FLOOR_NS));
            a.is_alike(b).then(|| QuantityHarm::of_means(quantity, margin, [x, y], chances))
        }
        Quantity::Long => {
            let (x, y) = a.long.as_ref().zip(b.long.as_ref())?;
            let (one, other) = (Tally::of(x, &a.ran_s), Tally::of(y, &b.ran_s));
            let chances = [[one, other], [other, one]].map(|of| rate_chance(of, margin));
            let is_same = a.is_alike(b) || a.counts_long() && b.counts_long();
            is_same.then(|| QuantityHarm::of_means(quantity, margin, [one.rate, other.rate], chances))
        }
        Quantity::Longest => {
            let (x, y) = (&a.longest_ns, &b.longest_ns);
            let chances = [rank_chance(x, y, margin), rank_chance(y, x, margin)];
            let [before, after] = [x, y].map(|of| median(of));
            (a.entry_ns.is_some() && a.entry_ns == b.entry_ns).then(|| QuantityHarm {
                before,
                after,
                chances: Some(chances),
                ..QuantityHarm::new(quantity, margin)
            })
        }
        Quantity::Wait => None,
    }
}

/// Holm's procedure over both directions of every quantity.
fn judge(quantities: &mut [QuantityHarm]) {
    let chance = |of: &QuantityHarm| of.chances.map_or(1.0, |[worse, better]| 2.0 * worse.min(better));
    let mut order: Vec<usize> = (0..quantities.len()).collect();
    order.sort_by(|x, y| chance(&quantities[*x]).total_cmp(&chance(&quantities[*y])));
    let mut is_open = true;
    for (rank, at) in order.iter().enumerate() {
        let of = &mut quantities[*at];
        is_open &= chance(of) * (order.len() - rank) as f64 <= CHANCE;
        of.verdict = match is_open {
            true if of.chances.is_some_and(|[worse, better]| worse < better) => HarmVerdict::Worse,
            true => HarmVerdict::Better,
            false => HarmVerdict::NoDifferenceShown,
        };
    }
}

impl SideSeconds {
    /// True if both sides count interruptions from the same length on.
    fn is_alike(&self, other: &Self) -> bool {
        let mut all = self.thresholds_ns.iter().chain(&other.thresholds_ns);
        all.next().is_none_or(|first| all.all(|of| of == first))
    }

    /// True if it counts every long interruption.
    fn counts_long(&self) -> bool {
        self.thresholds_ns.iter().all(|of| *of <= LONG_NS)
    }
}

fn seconds_of(runs: &[&JitterRecord], cpus: &CpuSet) -> SideSeconds {
    let mut all = SideSeconds { long: Some(Vec::new()), ..SideSeconds::default() };
    for run in runs {
        let width_s = run.second_ns.max(1) as f64 / 1e9;
        let whole = |cpu: &JitterCpu| {
            let reached = cpu.runtime_ns / run.second_ns.max(1);
            cpu.seconds.len().min(usize::try_from(reached).unwrap_or(usize::MAX))
        };
        let mut seen = CpuSet::new();
        let mut of: Vec<&JitterCpu> =
            run.cpus.iter().filter(|cpu| is_compared(cpu.cpu, cpus) && seen.insert(cpu.cpu)).collect();
        let most = of.iter().map(|cpu| whole(cpu)).max().unwrap_or(0);
        // A CPU whose sampler ended early does not shorten the others.
        of.retain(|cpu| whole(cpu) + 1 >= most);
        let count = of.iter().map(|cpu| whole(cpu)).min().unwrap_or(0);
        let per = width_s * of.len() as f64;
        for at in 0..count {
            let seconds = || of.iter().filter_map(|cpu| cpu.seconds.get(at));
            // Sums over all CPUs of a hostile document are sums of doubles.
            let lost_ns = seconds().map(|second| second.ns_total as f64).sum::<f64>();
            all.lost_ns.push(lost_ns / per);
            all.ran_s.push((per - lost_ns / 1e9).max(0.0));
            all.longest_ns.push(seconds().map(|second| second.ns_max).max().unwrap_or(0) as f64);
            let long: Option<Vec<f64>> =
                seconds().map(|second| second.long_count.map(|count| count as f64)).collect();
            all.long = all.long.zip(long).map(|(mut all, long)| {
                all.push(long.iter().sum::<f64>());
                all
            });
        }
        all.entry_ns = Some(run.second_ns).filter(|ns| all.entry_ns.is_none_or(|of| of == *ns));
        all.thresholds_ns.push(run.threshold_ns);
    }
    all
}

/// A mean with the variance of its estimate, and the degrees of freedom of that.
#[derive(Debug, Clone, Copy)]
struct Mean {
    middle: f64,
    variance: f64,
    freedom: f64,
}

impl Mean {
    fn of(values: &[f64]) -> Self {
        let average = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
        let mut found = Self { middle: average(values), variance: 0.0, freedom: 1.0 };
        let mut length = 1;
        while values.len() / length >= BLOCKS_MIN {
            let means: Vec<f64> = values.chunks_exact(length).map(average).collect();
            let (middle, freedom) = (average(&means), means.len() as f64 - 1.0);
            let variance =
                means.iter().map(|of| (of - middle).powi(2)).sum::<f64>() / freedom / means.len() as f64;
            if length == 1 || variance > found.variance {
                (found.variance, found.freedom) = (variance, freedom);
            }
            length *= 2;
        }
        found
    }

    fn scaled(self, factor: f64) -> Self {
        Self { middle: self.middle * factor, variance: self.variance * factor * factor, ..self }
    }
}

/// Standard error and degrees of freedom of a difference, by Welch.
fn welch(a: Mean, b: Mean) -> (f64, f64) {
    let variance = a.variance + b.variance;
    let parts = a.variance.powi(2) / a.freedom + b.variance.powi(2) / b.freedom;
    (variance.sqrt(), if parts > 0.0 { variance.powi(2) / parts } else { a.freedom + b.freedom })
}

/// The chance that the second mean is above the first by so much, if it were not above it at all.
fn above_chance(a: Mean, b: Mean, floor: f64) -> f64 {
    let distance = b.middle - a.middle - floor;
    let (error, freedom) = welch(a, b);
    if error > 0.0 {
        student_above(distance / error, freedom)
    } else if distance > 0.0 {
        0.0
    } else {
        1.0
    }
}

impl QuantityHarm {
    /// One that shows nothing yet.
    pub(super) fn new(quantity: Quantity, margin: f64) -> Self {
        let verdict = HarmVerdict::TooShort;
        Self { quantity, margin, before: 0.0, after: 0.0, difference: None, chances: None, verdict }
    }

    fn of_means(quantity: Quantity, margin: f64, [a, b]: [Mean; 2], chances: [f64; 2]) -> Self {
        let (error, freedom) = welch(a, b);
        let (middle, reach) = (b.middle - a.middle, error * student_reach(freedom));
        let difference = Some([middle - reach, middle + reach]);
        Self {
            before: a.middle,
            after: b.middle,
            difference,
            chances: Some(chances),
            ..Self::new(quantity, margin)
        }
    }
}

/// The distance that 2.5 % of Student's distribution exceed.
fn student_reach(freedom: f64) -> f64 {
    bisected((0.0, 1e3), 60, |middle| student_above(middle, freedom) > CHANCE / 2.0).0
}

#[derive(Debug, Clone, Copy)]
struct Tally {
    count: f64,
    exposure_s: f64,
    rate: Mean,
}

impl Tally {
    /// Builds the tally from the counts of each entry, and the core-seconds in which they could happen.
    fn of(counts: &[f64], ran_s: &[f64]) -> Self {
        let (count, exposure_s) = (counts.iter().sum::<f64>(), ran_s.iter().sum::<f64>());
        let middle = if exposure_s > 0.0 { count / exposure_s } else { 0.0 };
        let rests: Vec<f64> = counts.iter().zip(ran_s).map(|(count, s)| count - middle * s).collect();
        let rest = Mean::of(&rests);
        let entries_per_s = if exposure_s > 0.0 { counts.len() as f64 / exposure_s } else { 0.0 };
        Self { count, exposure_s, rate: Mean { middle, ..rest.scaled(entries_per_s) } }
    }

    /// The variance of the count over that of independent events, which is the count.
    fn dispersion(&self) -> f64 {
        let variance = self.rate.variance * self.exposure_s * self.exposure_s;
        if self.count > 0.0 { (variance / self.count).max(1.0) } else { 1.0 }
    }
}

/// The chance of so many events on the second side, if its rate were not above the first one's by more than the margin.
fn rate_chance([a, b]: [Tally; 2], margin: f64) -> f64 {
    let dispersion = a.dispersion().max(b.dispersion());
    let odds = (1.0 + margin) * b.exposure_s / a.exposure_s;
    let (first, second) = (a.count / dispersion, b.count / dispersion);
    if second > 0.0 && odds.is_finite() && odds > 0.0 {
        beta_below(second, first + 1.0, odds.ln())
    } else {
        1.0
    }
}

/// The chance that lengths of the second side rank above those of the first by so much.
fn rank_chance(before: &[f64], after: &[f64], margin: f64) -> f64 {
    let before = before.iter().map(|ns| ns * (1.0 + margin) + LENGTH_FLOOR_NS);
    let mut all: Vec<(f64, usize)> =
        before.chain(after.iter().copied()).enumerate().map(|(at, ns)| (ns, at)).collect();
    all.sort_by(|x, y| x.0.total_cmp(&y.0));
    let mut ranks = vec![0.0; all.len()];
    let mut rank = 0.0;
    for equal in all.chunk_by(|x, y| x.0.total_cmp(&y.0).is_eq()) {
        for (_, at) in equal {
            ranks[*at] = rank + f64::midpoint(equal.len() as f64, 1.0);
        }
        rank += equal.len() as f64;
    }
    let (a, b) = ranks.split_at(ranks.len() - after.len());
    above_chance(Mean::of(a), Mean::of(b), 0.0)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Comparison, Limit, LimitVerdict, tests::compare};
    use hdrhistogram::Histogram;
    use lowlat_host::{Reading, histogram};
    use lowlat_jitter::{CauseTotal, CpuCauses, JitterCauses, JitterSecond};

    /// A run of one CPU; `second` gives the interruptions of each second: number and length in nanoseconds.
    fn run(seconds: usize, mut second: impl FnMut(usize) -> Vec<(u64, u64)>) -> JitterRecord {
        let mut lengths = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).unwrap();
        let mut cpu =
            JitterCpu { cpu: 1, runtime_ns: seconds as u64 * 1_000_000_000, ..JitterCpu::default() };
        for at in 0..seconds {
            let mut found = JitterSecond { long_count: Some(0), ..JitterSecond::default() };
            for (count, ns) in second(at).into_iter().filter(|of| of.0 > 0) {
                lengths.record_n(ns, count).unwrap();
                found.count += count;
                found.ns_total += count * ns;
                found.ns_max = found.ns_max.max(ns);
                found.long_count = found.long_count.map(|long| long + if ns >= LONG_NS { count } else { 0 });
            }
            cpu.interruption_count += found.count;
            cpu.interruption_ns_total += found.ns_total;
            cpu.interruption_ns_max = cpu.interruption_ns_max.max(found.ns_max);
            cpu.seconds.push(found);
        }
        cpu.histogram = histogram::encode(&lengths);
        let duration_ns = cpu.runtime_ns;
        JitterRecord {
            threshold_ns: 200,
            second_ns: 1_000_000_000,
            duration_ns,
            cpus: vec![cpu],
            ..JitterRecord::default()
        }
    }

    fn verdicts(of: &Comparison) -> Vec<(&'static str, HarmVerdict)> {
        of.harm.quantities.iter().map(|of| (of.quantity.name(), of.verdict)).collect()
    }

    use CauseKind::{Thread, Unexplained};
    use HarmVerdict::{Better, NoDifferenceShown, SurroundingsDiffered, TooShort, Traded, Worse};

    /// A real-time thread that takes 150 ms of each second leaves less time for short interruptions: there are fewer.
    #[test]
    fn a_hog_is_worse_although_there_are_fewer_interruptions() {
        let quiet = run(20, |at| vec![(1_000 + at as u64 % 7, 900), (at as u64 % 2, 12_000)]);
        let hog = run(20, |at| vec![(850, 900), (1, 150_000_000 + at as u64 % 5)]);
        let found = compare(&quiet, &hog).unwrap();
        assert_eq!(found.harm.verdict, Worse, "{:#?}", found.harm);
        assert_eq!(verdicts(&found), [("lost", Worse), ("count>10us", NoDifferenceShown), ("max", Worse)]);
        // The rest of the time is interrupted as often as before.
        let starved = run(20, |at| vec![(150, 900), (15 + at as u64 % 3, 12_000), (1, 850_000_000)]);
        let found_starved =
            compare(&run(20, |at| vec![(1_000, 900), (100 + at as u64 % 7, 12_000)]), &starved).unwrap();
        let expected = [("lost", Worse), ("count>10us", NoDifferenceShown), ("max", Worse)];
        assert_eq!(verdicts(&found_starved), expected, "{:#?}", found_starved.harm);
        let back = compare(&hog, &quiet).unwrap();
        assert_eq!(verdicts(&back), [("lost", Better), ("count>10us", NoDifferenceShown), ("max", Better)]);
        let limit = |text: &str| found.limit(&[&quiet], &[&hog], &text.parse::<Limit>().unwrap()).verdict;
        assert_eq!(
            (limit("5%"), limit("max=50%"), limit("lost=5%")),
            (LimitVerdict::Worse, LimitVerdict::Worse, LimitVerdict::Worse)
        );
        assert_eq!(limit("count>10us=300%"), LimitVerdict::NotShown);
        assert_eq!(back.limit(&[&hog], &[&quiet], &"5%".parse().unwrap()).verdict, LimitVerdict::Held);
    }

    #[test]
    fn a_gain_and_a_loss_are_traded() {
        let many = run(30, |at| vec![(1_000 + at as u64 % 9, 8_000)]);
        let long = run(30, |at| vec![(3 + at as u64 % 2, 90_000)]);
        let found = compare(&many, &long).unwrap();
        assert_eq!(verdicts(&found), [("lost", Better), ("count>10us", Worse), ("max", Worse)]);
        assert_eq!(found.harm.verdict, Traded);
    }

    #[test]
    fn one_huge_second_is_one_second() {
        let plain = || run(60, |at| vec![(300 + at as u64 % 11, 2_000)]);
        let spike = run(60, |at| vec![(300 + at as u64 % 13, 2_000), (u64::from(at == 40), 50_000_000)]);
        assert_eq!(compare(&plain(), &spike).unwrap().harm.verdict, NoDifferenceShown);
        // Six long ones after none may be chance, ten are not.
        let of =
            |every| run(60, |at| vec![(300 + at as u64 % 11, 2_000), (u64::from(at % every == 3), 11_000)]);
        assert_eq!(compare(&plain(), &of(10)).unwrap().harm.verdict, NoDifferenceShown);
        let found = compare(&plain(), &of(6)).unwrap();
        assert_eq!(found.harm.quantity(Quantity::Long).unwrap().verdict, Worse, "{:#?}", found.harm);
    }

    #[test]
    fn short_and_empty_runs_have_no_verdict() {
        let of = |seconds| run(seconds, |_| vec![(10, 500_000_000 / 10)]);
        let found = compare(&of(60), &of(10)).unwrap();
        assert_eq!((found.harm.verdict, found.harm.seconds), (TooShort, [60, 10]));
        assert_eq!(
            found.limit(&[&of(60)], &[&of(10)], &"5%".parse().unwrap()).verdict,
            LimitVerdict::TooShort
        );
        let nothing = compare(&run(20, |_| Vec::new()), &run(20, |_| Vec::new())).unwrap();
        assert_eq!(nothing.harm.verdict, NoDifferenceShown);
        let ends = nothing.harm.quantities.iter().filter_map(|of| of.difference);
        assert!(ends.flatten().all(|end| end == 0.0), "{:#?}", nothing.harm);
        // Documents that did not count long interruptions by seconds are judged by the rest.
        let mut old = of(20);
        old.cpus[0].seconds.iter_mut().for_each(|second| second.long_count = None);
        assert_eq!(verdicts(&compare(&old, &of(20)).unwrap()).len(), 2);
    }

    /// A quiet host that differs by less than anybody notices.
    #[test]
    fn differences_below_the_margin_are_none() {
        let before = run(60, |at| vec![(100 + at as u64 % 3, 3_000), (1, 14_000)]);
        let after = run(60, |at| vec![(106 + at as u64 % 3, 3_000), (1, 14_500)]);
        assert_eq!(compare(&before, &after).unwrap().harm.verdict, NoDifferenceShown);
        let silent = run(60, |_| vec![(1, 400)]);
        assert_eq!(
            compare(&run(60, |_| Vec::new()), &silent).unwrap().harm.verdict,
            Worse,
            "200 ns are the floor"
        );
        let nearly = run(60, |_| vec![(2, 150)]);
        assert_eq!(compare(&run(60, |_| Vec::new()), &nearly).unwrap().harm.verdict, NoDifferenceShown);
    }

    /// A hypervisor that takes time for other guests, and a load that another thread brings, are no work of this host's
    /// settings. A real-time thread is.
    #[test]
    fn what_surrounds_the_measured_cpus_gets_no_verdict() {
        let of = |ns: u64, kind, priority: &str, load: f64, steal_ns| {
            let mut run = run(20, |at| vec![(100 + at as u64 % 7, 2_000), (1, ns)]);
            let cause = Cause { kind, name: "x".into(), priority: Some(priority.into()), ..Cause::default() };
            let total = CauseTotal { cause, count: 20, ns_total: 20 * ns, ..CauseTotal::default() };
            let causes = CpuCauses { cpu: 1, totals: vec![total], ..CpuCauses::default() };
            run.causes = Some(JitterCauses {
                source: CauseSource::Trace,
                cpus: vec![causes],
                ..JitterCauses::default()
            });
            run.others_busy_share = Reading::Known(load);
            run.cpus[0].steal_ns = Reading::Known(steal_ns);
            run
        };
        for (kind, priority, load, steal_ns, expected) in [
            (Thread, "nice 0", 0.6, 0, SurroundingsDiffered),
            (Thread, "nice 0", 0.1, 0, Worse),
            (Thread, "real-time 50", 0.6, 0, Worse),
            (Unexplained, "", 0.1, 10_000_000, SurroundingsDiffered),
            (Unexplained, "", 0.1, 0, Worse),
        ] {
            let [a, b] = [of(3_000, kind, priority, 0.05, 0), of(5_000_000, kind, priority, load, steal_ns)];
            assert_eq!(
                compare(&a, &b).unwrap().harm.verdict,
                expected,
                "{kind:?} {priority} {load} {steal_ns}"
            );
        }
    }

    /// The same machine twice, with loads that come and go, for seconds at a time.
    #[test]
    fn the_same_machine_seldom_differs_from_itself() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut machine = |seconds| {
            let (mut load, mut left) = (0, 0);
            let mut draw = fastrand::Rng::with_seed(random.u64(..));
            run(seconds, |_| {
                if left == 0 {
                    (load, left) = (draw.u64(0..4), draw.usize(1..5));
                }
                left -= 1;
                vec![
                    (200 + draw.u64(..100), 2_000),
                    (load * draw.u64(5..20), 30_000),
                    (u64::from(draw.u8(..) < 20), 4_000_000),
                ]
            })
        };
        for seconds in [12, 30, 120] {
            let differ = (0..200).filter(|_| {
                let sides = [machine(seconds), machine(seconds)];
                Harm::of([&[&sides[0]], &[&sides[1]]], &CpuSet::new(), WANTED).verdict != NoDifferenceShown
            });
            let count = differ.count();
            assert!(count <= 10, "{count} of 200 pairs of {seconds} s");
        }
    }
}
