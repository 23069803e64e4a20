//! A watch as metrics: in OpenMetrics, and in the older text format of Prometheus, which node_exporter reads.

use crate::watch::{
    cpu_row::State,
    totals::{CauseLabel, InterruptionTotal},
    watcher::{Settings, Watch},
};
use lowlat_host::{CpuId, printable};
use lowlat_plan::verify::Standing;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};
use std::{collections::BTreeMap, fmt};

type Labels = Vec<(&'static str, String)>;
type Samples = Vec<(Labels, f64)>;

/// A metric with its samples.
#[derive(Debug)]
struct MetricFamily {
    /// Its name, which ends in `_total` for a counter only in its samples.
    name: &'static str,
    help: &'static str,
    is_counter: bool,
    samples: Samples,
}

impl MetricFamily {
    fn write(&self, value: f64, sample: MetricEncoder<'_>) -> fmt::Result {
        if self.is_counter {
            ConstCounter::new(value).encode(sample)
        } else {
            ConstGauge::new(value).encode(sample)
        }
    }
}

/// Formats the watch as OpenMetrics.
pub fn open_metrics(watch: &Watch) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families(watch))));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

/// The watch in the text format of Prometheus, version 0.0.4: its counters are named like their samples.
pub fn classic(watch: &Watch) -> String {
    let families = families(watch);
    let is_counter = |name: &str| families.iter().any(|family| family.is_counter && family.name == name);
    let mut out = String::new();
    for line in open_metrics(watch).lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what @ ("HELP" | "TYPE")), Some(name), Some(rest)) if is_counter(name) => {
                out.push_str(&format!("# {what} {name}_total {rest}"));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

#[derive(Debug)]
struct Families(Vec<MetricFamily>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            let kind = if family.is_counter { MetricType::Counter } else { MetricType::Gauge };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            match &family.samples[..] {
                // Without labels, there are no braces either.
                [(labels, value)] if labels.is_empty() => family.write(*value, metric)?,
                samples => {
                    for (labels, value) in samples {
                        family.write(*value, metric.encode_family(labels)?)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn counter(name: &'static str, help: &'static str, samples: Samples) -> MetricFamily {
    MetricFamily { name, help, is_counter: true, samples }
}

fn gauge(name: &'static str, help: &'static str, samples: Samples) -> MetricFamily {
    MetricFamily { name, help, is_counter: false, samples }
}

fn families(watch: &Watch) -> Vec<MetricFamily> {
    let parts = [of_lowlat, of_cpus, of_plan, of_host, of_interruptions];
    parts.iter().flat_map(|part| part(watch)).collect()
}

fn of_lowlat(watch: &Watch) -> Vec<MetricFamily> {
    let version = ("version", watch.subject.version.clone());
    let own = seconds(watch.totals.own_cpu_ns);
    let last = (watch.interval_count > 0).then_some((vec![], watch.last.at_unix_ms as f64 / 1e3));
    vec![
        gauge("lowlat_build_info", "Version of lowlat", vec![(vec![version], 1.0)]),
        counter("lowlat_watch_seconds", "Time watched", vec![(vec![], seconds(watch.totals.elapsed_ns))]),
        counter("lowlat_watch_cpu_seconds", "CPU time that lowlat used", vec![(vec![], own)]),
        gauge("lowlat_watch_last_timestamp_seconds", "End of the last interval", last.into_iter().collect()),
    ]
}

fn of_cpus(watch: &Watch) -> Vec<MetricFamily> {
    let totals = &watch.totals;
    // A state set: every state has a series, so that none goes stale when it ends.
    let states = |row: &crate::watch::CpuRow| {
        let (of, now) = (row.cpu, row.state);
        State::WORST_FIRST.map(|state| {
            (vec![cpu(of), ("state", state.word().to_owned())], f64::from(u8::from(state == now)))
        })
    };
    let intruders = |id| {
        let count = watch.intruders().filter(|thread| thread.cpu == id).count();
        (vec![cpu(id)], count as f64)
    };
    let of_thread = |((id, thread), ns): (&(CpuId, String), &u64)| {
        (vec![cpu(*id), ("thread", safe(thread))], seconds(*ns))
    };
    vec![
        gauge(
            "lowlat_cpu_state",
            "1 for the verdict on a CPU in the last interval, 0 for the others: quiet, interrupted, ticking, intruder, unknown, or shared if it need not be quiet",
            watch.rows.iter().flat_map(states).collect(),
        ),
        counter(
            "lowlat_cpu_events",
            "Interrupts and softirqs by cause",
            totals.events.iter().map(|((id, cause), count)| (by_cause(*id, cause), *count as f64)).collect(),
        ),
        counter("lowlat_cpu_switches", "Switches between threads", each_cpu(&totals.switches, number)),
        counter(
            "lowlat_cpu_steal_seconds",
            "Time that the hypervisor took",
            each_cpu(&totals.steal_ns, seconds),
        ),
        gauge(
            "lowlat_intruders",
            "Threads in the last interval that ran on a quiet CPU and belong elsewhere",
            watch.subject.quiet.iter().map(intruders).collect(),
        ),
        counter(
            "lowlat_cpu_intruder_seconds",
            "Time that intruders ran for on a quiet CPU; unlike the series of a thread, it starts at 0",
            by_cpu(watch.subject.quiet.iter(), &totals.intruder_ns, |ns| *ns),
        ),
        counter(
            "lowlat_intruder_seconds",
            "Time that intruders ran for on quiet CPUs, by thread",
            totals.intruder_ns.iter().map(of_thread).collect(),
        ),
    ]
}

fn of_plan(watch: &Watch) -> Vec<MetricFamily> {
    let in_force = match watch.settings {
        Settings::Compared(_) => Some((vec![], 1.0)),
        Settings::NoPlan => Some((vec![], 0.0)),
        Settings::Unchecked | Settings::Unreadable(_) => None,
    };
    let compared = watch.settings.verification();
    let counts = compared.iter().flat_map(|verification| {
        Standing::WORST_FIRST.map(|standing| {
            (vec![("standing", standing.word().to_owned())], f64::from(verification.counts.count(standing)))
        })
    });
    let faults =
        compared.iter().flat_map(|verification| {
            verification.rows.iter().filter(|row| row.standing.is_fault()).map(|row| {
                (vec![("target", safe(&row.what)), ("standing", row.standing.word().to_owned())], 1.0)
            })
        });
    vec![
        gauge("lowlat_plan_in_force", "Whether a plan is in force", in_force.into_iter().collect()),
        gauge("lowlat_plan_settings", "Settings of the plan in force by standing", counts.collect()),
        gauge(
            "lowlat_plan_setting_fault",
            "Settings of the plan in force that are not held",
            once_each(faults),
        ),
    ]
}

/// Samples with different labels: two rows of a plan may have the same target.
fn once_each(samples: impl Iterator<Item = (Labels, f64)>) -> Samples {
    let mut kept: Samples = Vec::new();
    for sample in samples {
        if !kept.iter().any(|(labels, _)| *labels == sample.0) {
            kept.push(sample);
        }
    }
    kept
}

fn of_host(watch: &Watch) -> Vec<MetricFamily> {
    let lost = watch.last.interval.drops.iter().flat_map(|(nic, counters)| {
        counters
            .iter()
            .map(move |(name, count)| (vec![("nic", safe(nic)), ("counter", safe(name))], *count as f64))
    });
    let pipelines = watch.last.pipelines.known().map(|runs| (vec![], runs.len() as f64));
    vec![
        counter("lowlat_nic_lost_packets", "Packets lost since the driver was loaded", lost.collect()),
        gauge("lowlat_pipelines", "Running pipelines", pipelines.into_iter().collect()),
    ]
}

fn of_interruptions(watch: &Watch) -> Vec<MetricFamily> {
    let totals = &watch.totals;
    let of_cause = |value: fn(&InterruptionTotal) -> f64| {
        totals.interruptions.iter().map(|((id, cause), lost)| (by_cause(*id, cause), value(lost))).collect()
    };
    vec![
        counter(
            "lowlat_cpu_interruption_seconds",
            "Time that interruptions of a sampled CPU took; unlike the series of a cause, it starts at 0",
            by_cpu(totals.ns_max.keys().copied(), &totals.interruptions, |lost| lost.ns),
        ),
        counter(
            "lowlat_interruptions",
            "Interruptions of sampled CPUs by main cause",
            of_cause(|lost| lost.count as f64),
        ),
        counter(
            "lowlat_interruption_seconds",
            "Time that interruptions of sampled CPUs took, by main cause",
            of_cause(|lost| seconds(lost.ns)),
        ),
        gauge(
            "lowlat_interruption_longest_seconds",
            "Longest interruption of a sampled CPU since the start",
            each_cpu(&totals.ns_max, seconds),
        ),
        counter(
            "lowlat_interruptions_unread",
            "Interruptions of sampled CPUs that came faster than they were read",
            each_cpu(&totals.lost, number),
        ),
    ]
}

/// The sums of these CPUs' series; 0 where a CPU has none yet.
fn by_cpu<K, V>(
    cpus: impl Iterator<Item = CpuId>,
    series: &BTreeMap<(CpuId, K), V>,
    ns: impl Fn(&V) -> u64,
) -> Samples {
    let mut sums: BTreeMap<CpuId, u64> = cpus.map(|id| (id, 0)).collect();
    for ((id, _), value) in series {
        if let Some(sum) = sums.get_mut(id) {
            *sum = sum.saturating_add(ns(value));
        }
    }
    sums.into_iter().map(|(id, ns)| (vec![cpu(id)], seconds(ns))).collect()
}

fn each_cpu(values: &BTreeMap<CpuId, u64>, unit: fn(u64) -> f64) -> Samples {
    values.iter().map(|(id, value)| (vec![cpu(*id)], unit(*value))).collect()
}

fn cpu(id: CpuId) -> (&'static str, String) {
    ("cpu", id.to_string())
}

fn by_cause(id: CpuId, cause: &CauseLabel) -> Labels {
    vec![cpu(id), ("kind", cause.kind.to_owned()), ("cause", safe(&cause.name))]
}

fn number(count: u64) -> f64 {
    count as f64
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Names from outside, without control characters.
fn safe(name: &str) -> String {
    printable::line(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates see a first increase only of a series that was there before it.
    #[test]
    fn the_series_of_a_cpu_starts_at_0_and_adds_up() {
        let mut series = BTreeMap::from([((3, "md"), 7_000_000_000), ((9, "elsewhere"), 5)]);
        let of = |series: &BTreeMap<(CpuId, &str), u64>| by_cpu([2, 3].into_iter(), series, |ns| *ns);
        assert_eq!(of(&series), [(vec![cpu(2)], 0.0), (vec![cpu(3)], 7.0)]);
        series.insert((3, "rcu"), 500_000_000);
        assert_eq!(of(&series), [(vec![cpu(2)], 0.0), (vec![cpu(3)], 7.5)]);
    }
}
