//! Reasons for doubt about a comparison.

use super::{Comparison, RunSummary, causes::source_of, side::Side};
use lowlat_host::CpuSet;
use lowlat_jitter::{CauseSource, JitterRecord};

/// Dispersion above which bursts are reported.
const BURSTS_MIN: f64 = 1.5;
/// Number of comparisons above which chance results are mentioned.
const MANY: usize = 10;
/// Ratio of lengths above which runs count as different.
const DURATION_RATIO_MAX: f64 = 1.1;

/// The doubts that the records themselves raise, the most important first.
pub(super) fn of(comparison: &Comparison, a: &Side, b: &Side) -> Vec<String> {
    let runs = || comparison.before.iter().chain(&comparison.after);
    let mut doubts = Vec::new();
    cpus(comparison, &mut doubts);
    if runs().any(|run| run.threshold_ns != comparison.threshold_ns) {
        doubts.push(format!(
            "thresholds differ: only interruptions of at least {} ns are counted, from the histograms (three \
             significant digits); time lost, causes and shorter waits are not compared",
            comparison.threshold_ns
        ));
    }
    let priority = |run: &RunSummary| run.real_time.clone().unwrap_or_else(|| "ordinary threads".into());
    differ(runs().map(|run| run.counter.clone()), "the runs read different counters", &mut doubts);
    differ(runs().map(priority), "the samplers ran at different priorities", &mut doubts);
    durations(runs(), &mut doubts);
    sources(a, b, &mut doubts);
    lost(a, b, &mut doubts);
    warned(a, b, &mut doubts);
    bursts(comparison, &mut doubts);
    let count = comparison.by_cpu.len() + comparison.causes.len();
    if count >= MANY {
        doubts.push(format!(
            "{count} CPUs and causes are compared, each with an interval of 95 %: about one in twenty shows a \
             difference by chance alone"
        ));
    }
    if comparison.before.len().min(comparison.after.len()) < 2 {
        doubts.push(
            "the runs were at different times, so other changes on the machine in between also count; run \
             before, after, before, after to be sure"
                .into(),
        );
    }
    doubts
}

fn cpus(comparison: &Comparison, doubts: &mut Vec<String>) {
    let runs = || comparison.before.iter().chain(&comparison.after);
    if comparison.cpus.is_empty() {
        doubts.push(
            "no CPU was measured in every run: all CPUs of one side are compared with all of the other, per \
             core-second"
                .into(),
        );
        return;
    }
    let left_out = runs().fold(CpuSet::new(), |all, run| all.union(&run.cpus)).difference(&comparison.cpus);
    if !left_out.is_empty() {
        doubts.push(format!(
            "the runs measured different CPUs: only {:#} are compared, and {left_out:#} left out",
            comparison.cpus
        ));
    }
}

/// Reports how the runs differ, if they do.
pub(super) fn differ(values: impl Iterator<Item = String>, what: &str, doubts: &mut Vec<String>) {
    let mut values: Vec<String> = values.filter(|value| !value.is_empty()).collect();
    values.sort_unstable();
    values.dedup();
    if values.len() > 1 {
        doubts.push(format!("{what}: {}", values.join(", ")));
    }
}

fn durations<'r>(runs: impl Iterator<Item = &'r RunSummary>, doubts: &mut Vec<String>) {
    let lengths: Vec<u64> = runs.map(|run| run.duration_ns).collect();
    let (shortest, longest) = (lengths.iter().min().copied(), lengths.iter().max().copied());
    if let (Some(shortest), Some(longest)) = (shortest, longest)
        && longest as f64 > shortest as f64 * DURATION_RATIO_MAX
    {
        doubts.push(format!(
            "the runs last {} s to {} s: the longer one sees rarer and so longer interruptions, so the \
             longest of each are not comparable",
            shortest / 1_000_000_000,
            longest / 1_000_000_000
        ));
    }
}

fn sources(a: &Side, b: &Side, doubts: &mut Vec<String>) {
    let word = |source: Option<CauseSource>| match source {
        Some(CauseSource::Trace) => "from the kernel's trace",
        Some(CauseSource::Counters) => "from the kernel's counters",
        Some(CauseSource::Off) | None => "unknown",
    };
    let (before, after) = (source_of(a), source_of(b));
    if before != after {
        doubts.push(format!(
            "causes are {} before and {} after: they are not compared",
            word(before),
            word(after)
        ));
    } else if before == Some(CauseSource::Counters) {
        doubts.push(
            "causes are increases of the kernel's counters, not all of which interrupted a sampler".into(),
        );
    }
}

/// Interruptions that were not matched with the trace.
fn lost(a: &Side, b: &Side, doubts: &mut Vec<String>) {
    let count = |runs: &[JitterRecord]| -> u128 {
        let cpus = runs.iter().filter_map(|run| run.causes.as_ref()).flat_map(|causes| &causes.cpus);
        cpus.map(|cpu| u128::from(cpu.ring_lost_count) + u128::from(cpu.event_lost_count)).sum()
    };
    let (before, after) = (count(&a.runs), count(&b.runs));
    if before + after > 0 {
        doubts.push(format!(
            "{before} interruptions and trace events before and {after} after were lost, so the rates of \
             causes are too low"
        ));
    }
}

fn warned(a: &Side, b: &Side, doubts: &mut Vec<String>) {
    let count = |side: &Side| side.runs.iter().map(|run| run.warnings.len()).sum::<usize>();
    let (before, after) = (count(a), count(b));
    if before + after > 0 {
        doubts.push(format!("the documents contain warnings, {before} before and {after} after: read them"));
    }
}

fn bursts(comparison: &Comparison, doubts: &mut Vec<String>) {
    match comparison.all.rate.dispersion {
        Some(dispersion) if dispersion >= BURSTS_MIN => doubts.push(format!(
            "interruptions come in bursts: their number varies {dispersion:.1} times as much from second to \
             second as that of independent events, so the intervals are wider"
        )),
        Some(_) => {}
        None => doubts.push(
            "the runs are too short or too quiet to show whether interruptions come in bursts: the intervals \
             are those of independent events"
                .into(),
        ),
    }
}
