//! Latencies between cores as text.

use crate::html as page;
use anstyle::Style;
use lowlat_cache::c2c::{C2cMeasurement, C2cRecord, Level, differences, partitions};
use lowlat_host::{CpuId, CpuSet, HostSnapshot, topology::Topology};
use lowlat_text::{
    columns::{self, Column, NONE, Table},
    page::{micro, tile},
    text::{BLUE, DIM, GREEN, RED, YELLOW, add_detail, add_result, add_sentences, paint, usable},
    units::{count, duration_fine, percent, plural},
    view::{View, ViewPage, verdict},
};
use maud::html;

/// Most rows and columns of the map.
const PARTS_MAX: usize = 16;
/// Styles from near to far.
const HEAT: [Style; 5] = [GREEN, BLUE, Style::new(), YELLOW, RED];
/// Ratio of the control's times from which figures of one survey are not comparable.
const DRIFT_MAX: f64 = 1.5;
/// Share of right predictions below which they are doubtful.
const RIGHT_SHARE_MIN: f64 = 0.95;
/// Width of a list of groups.
const GROUPS_CHARS_MAX: usize = 24;

/// Formats a survey: the map, the levels, and what differs from the kernel's topology.
pub fn c2c_text(record: &C2cRecord, topology: &Topology, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_result(&mut out, &headline(record), width);
    add_detail(&mut out, &set_up(record), width);
    if !record.levels.is_empty() {
        out.push('\n');
        out.push_str(&map(record, topology));
        out.push('\n');
        out.push_str(&columns::table(levels(record, topology), width));
    }
    for (head, sentences) in notes(record, topology) {
        add_sentences(&mut out, (YELLOW, head), &sentences, width);
    }
    out
}

/// "Latency between 16 cores: 4 levels, 7.9 to 230 ns".
pub(super) fn headline(record: &C2cRecord) -> String {
    let what = format!("Latency between {}", plural(record.cpus.len(), "CPU"));
    match (record.levels.first(), record.levels.last()) {
        (Some(near), Some(_)) if record.levels.len() == 1 => {
            format!("{what}: one level, {}", duration_fine(near.median_ns))
        }
        (Some(near), Some(far)) => format!(
            "{what}: {} levels, from {} to {}",
            record.levels.len(),
            duration_fine(near.median_ns),
            duration_fine(far.median_ns)
        ),
        _ => format!("{what}: nothing was measured"),
    }
}

/// Describes what was measured, and how much of it.
pub(super) fn set_up(record: &C2cRecord) -> String {
    let (done, all) = (record.pairs.len() as u64, record.pair_count());
    let measured = if done >= all {
        if all == 1 {
            "The only pair was measured".to_owned()
        } else {
            format!("All {} pairs were measured", count(all))
        }
    } else {
        let share = percent(100.0 * done as f64 / all.max(1) as f64);
        format!(
            "{} of {} pairs were measured ({share}), the others follow from them",
            count(done),
            count(all)
        )
    };
    let check = record.check.map_or_else(String::new, |check| {
        format!(" Of {} random pairs, {} were as predicted.", count(check.pairs), count(check.right))
    });
    format!("Medians of {} ({}). {measured}.{check}", record.method.figure(), record.method)
}

/// The CPUs in the kernel's order of packages, nodes, caches, clusters and cores.
pub(super) fn order(record: &C2cRecord, topology: &Topology) -> Vec<CpuId> {
    let levels = partitions(topology);
    let mut cpus: Vec<CpuId> = record.cpus.iter().collect();
    cpus.sort_by_cached_key(|cpu| {
        let place = |groups: &[&CpuSet]| groups.iter().position(|group| group.contains(*cpu));
        (levels.iter().rev().map(|(_, groups)| place(groups)).collect::<Vec<_>>(), *cpu)
    });
    cpus
}

/// A table of the times between CPUs, or between groups of neighbours where there are many.
fn map(record: &C2cRecord, topology: &Topology) -> String {
    let cpus = order(record, topology);
    let prediction = record.prediction();
    let per_part = cpus.len().div_ceil(PARTS_MAX);
    let parts: Vec<&[CpuId]> = cpus.chunks(per_part.max(1)).collect();
    let first = |part: &[CpuId]| part.first().map_or_else(String::new, ToString::to_string);
    let mean = |a: &[CpuId], b: &[CpuId]| {
        let pairs = a.iter().flat_map(|a| b.iter().filter(move |b| a != *b).map(move |b| (*a, *b)));
        let times: Vec<f64> = pairs.filter_map(|(a, b)| Some(prediction.time(a, b)?.0)).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    };
    let times: Vec<Vec<Option<f64>>> =
        parts.iter().map(|a| parts.iter().map(|b| mean(a, b)).collect()).collect();
    let shown = |ns: &Option<f64>| ns.map_or_else(|| ".".to_owned(), short);
    let cells = times.iter().flatten().map(|ns| shown(ns).len());
    let width = cells.chain(parts.iter().map(|part| first(part).len())).max().unwrap_or(1) + 1;
    let head: String = parts.iter().map(|part| format!("{:>width$}", first(part))).collect();
    let mut out = paint(DIM, &format!("  {:>6}{head}", "ns")) + "\n";
    for (part, times) in parts.iter().zip(&times) {
        out.push_str(&paint(DIM, &format!("  {:>6}", first(part))));
        for ns in times {
            let cell = format!("{:>width$}", shown(ns));
            out.push_str(&ns.map_or_else(|| cell.clone(), |ns| paint(heat(record, ns), &cell)));
        }
        out.push('\n');
    }
    if per_part > 1 {
        let text = format!(
            "Means of groups of {per_part} CPUs, named by their first; the HTML report has every pair."
        );
        out.push_str(&format!("  {}\n", paint(DIM, &text)));
    }
    out
}

fn short(ns: f64) -> String {
    if ns < 10.0 { format!("{ns:.1}") } else { format!("{ns:.0}") }
}

/// The style of a time.
fn heat(record: &C2cRecord, ns: f64) -> Style {
    HEAT.get(darkness(record, ns, HEAT.len())).copied().unwrap_or_default()
}

/// One of some shades, by the nearest level: the first for the fastest.
pub(super) fn darkness(record: &C2cRecord, ns: f64, shades: usize) -> usize {
    let off = |level: &Level| (level.median_ns.max(0.1) / ns.max(0.1)).ln().abs();
    let levels = record.levels.iter().enumerate();
    let nearest = levels.min_by(|(_, a), (_, b)| off(a).total_cmp(&off(b))).map_or(0, |(place, _)| place);
    let last = record.levels.len().saturating_sub(1).max(1);
    nearest * shades.saturating_sub(1) / last
}

pub(super) fn levels(record: &C2cRecord, topology: &Topology) -> Vec<Column> {
    let levels: Vec<(usize, &Level)> = record.levels.iter().enumerate().collect();
    Table::of(&levels)
        .words("level", 0, |(place, _)| name(record, topology, *place))
        .figures("median", 0, |(_, level)| duration_fine(level.median_ns))
        .strong()
        .figures("range", 2, |(_, level)| format!("{}-{}", short(level.min_ns), short(level.max_ns)))
        .figures("spread", 2, |(_, level)| spread(level))
        .figures("pairs", 3, |(_, level)| count(level.pairs))
        .words("groups", 1, |(_, level)| groups(level))
        .into_columns()
}

/// Half the distance between the quartiles of one pair: "+-4 %"; nothing where they are not known apart.
pub(super) fn spread(level: &Level) -> String {
    if level.quartile_ratio <= 1.0 {
        return NONE.to_owned();
    }
    format!("+-{}", percent(50.0 * (level.quartile_ratio - 1.0).max(0.0)))
}

/// Returns "same core", "across packages".
pub(super) fn name(record: &C2cRecord, topology: &Topology, level: usize) -> String {
    if let Some(kind) = record.kind_of(level, topology) {
        return format!("same {}", kind.one);
    }
    let is_last = level + 1 == record.levels.len();
    let below = level.checked_sub(1).and_then(|level| record.kind_of(level, topology));
    match below {
        Some(kind) if is_last => format!("across {}", kind.many),
        _ if is_last => "all others".to_owned(),
        _ if topology.online.is_empty() => format!("level {}", level + 1),
        _ => "unknown to the kernel".to_owned(),
    }
}

/// "0-3 | 4-7 | 8-11, 16 in all".
pub(super) fn groups(level: &Level) -> String {
    let several: Vec<String> =
        level.groups.iter().filter(|group| group.len() > 1).map(ToString::to_string).collect();
    let mut shown = String::new();
    for group in &several {
        let next = if shown.is_empty() { group.clone() } else { format!("{shown} | {group}") };
        if next.len() > GROUPS_CHARS_MAX && !shown.is_empty() {
            return format!("{shown} | ... {} in all", several.len());
        }
        shown = next;
    }
    lowlat_text::text::cut(&shown, GROUPS_CHARS_MAX + 8)
}

/// Returns the reasons why the figures are doubtful.
pub(super) fn doubts(record: &C2cRecord) -> Vec<String> {
    let mut doubts = record.warnings.clone();
    if let Some(drift) = record.drift.filter(|drift| *drift > DRIFT_MAX) {
        doubts.push(format!(
            "One pair, measured throughout, took up to {drift:.1} times as long as at its fastest: something moved the CPUs, as \
             hypervisors do. Measure again."
        ));
    }
    let is_poor =
        |check: &lowlat_cache::c2c::SpotCheck| (check.right as f64) < RIGHT_SHARE_MIN * check.pairs as f64;
    if record.check.as_ref().is_some_and(is_poor) {
        doubts.push("Too many predictions were wrong. Measure every pair with --all.".to_owned());
    }
    doubts
}

/// Returns the differences from the kernel's topology and the doubts about the figures, each under its head.
pub(super) fn notes(record: &C2cRecord, topology: &Topology) -> [(&'static str, Vec<String>); 2] {
    [("Not as the kernel says", differences(record, topology)), ("Caveats", doubts(record))]
}

/// Returns the view of a matrix of latencies.
pub fn view<'a>(record: &'a C2cRecord, host: &'a HostSnapshot) -> View<'a> {
    let topology = &host.topology;
    View {
        kind: C2cMeasurement::KIND,
        sentence: Some(format!("{}.", headline(record))),
        doubts: doubts(record),
        add_summary: Box::new(|out, width| out.push_str(&c2c_text(record, topology, width))),
        page: Box::new(|| {
            let tiles = html! {
                @for (place, level) in record.levels.iter().enumerate() {
                    (tile(&name(record, topology, place), &micro(&duration_fine(level.median_ns)),
                        &format!("{} pairs measured", count(level.pairs))))
                }
            };
            ViewPage {
                title: "Latency between cores",
                verdict: verdict(&headline(record), false, &[set_up(record)], &tiles),
                tiles,
                sections: vec![page::section(record, topology)],
                parameters: Some(
                    html! { "Cores: CPUs " (record.cpus) ", method " code { (record.method) } "." },
                ),
            }
        }),
    }
}
