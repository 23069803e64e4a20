//! How many strategies a host carries.

use super::super::{YELLOW, add_field, add_heading, jitter::columns, paint, usable};
use super::{add_dim, add_headline, add_warnings, size_answer, trimmed, whole};
use crate::units::{clean, count, duration};
use columns::{Column, NONE};
use lowlat_model::{
    CpuId, CpuSet,
    pipeline::size::{CheckedPoint, Costs, SizeDocument},
};
use std::collections::BTreeMap;

const LABEL_WIDTH: usize = 12;

/// The answer, the costs and runs behind it, the model's error, and the proposed CPUs.
pub fn size_text(document: &SizeDocument, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_headline(&mut out, &size_answer::headline(document), width);
    add_dim(&mut out, &clean(&document.host), width);
    for note in size_answer::notes(document) {
        add_dim(&mut out, &note, width);
    }
    if document.is_interrupted {
        out.push_str(&paint(YELLOW, "It was cut short; what was measured until then is used."));
        out.push('\n');
    }
    add_heading(&mut out, "Costs of one strategy");
    for (label, text) in costs(&document.costs, document.strategy_extra_ns) {
        add_field(&mut out, label, &text, LABEL_WIDTH, width);
    }
    add_heading(&mut out, "Prediction compared with runs");
    if document.checked.is_empty() {
        add_dim(&mut out, "no run was checked", width);
    } else {
        out.push_str(&columns::table(checked(&document.checked), width));
        add_dim(&mut out, &fit(document), width);
    }
    add_heading(&mut out, "Placement");
    for (role, cpus) in in_order(&document.placement.pins) {
        let set: CpuSet = cpus.iter().copied().collect();
        add_field(&mut out, role, &format!("{set:#}"), LABEL_WIDTH, width);
    }
    for step in &document.placement.steps {
        add_dim(&mut out, step, width);
    }
    if document.placement.pins.contains_key("md") {
        add_dim(
            &mut out,
            "lowlat pipeline run --pins FILE takes it from the file that --placement FILE writes.",
            width,
        );
    }
    let mut warnings = document.placement.warnings.clone();
    warnings.extend(document.warnings.iter().cloned());
    add_warnings(&mut out, &warnings, width);
    out
}

/// The roles from the quote to its order, then those beside.
const ORDER: [&str; 7] = ["md", "td", "platform", "strategies", "master", "cached", "recorder"];

fn in_order(pins: &BTreeMap<String, Vec<CpuId>>) -> Vec<(&String, &Vec<CpuId>)> {
    let mut pins: Vec<_> = pins.iter().collect();
    pins.sort_by_key(|(role, _)| ORDER.iter().position(|of| of == role).unwrap_or(ORDER.len()));
    pins
}

fn costs(costs: &Costs, extra_ns: f64) -> Vec<(&'static str, String)> {
    let ns = |ns: f64| duration(whole(ns));
    let wake = if costs.transfer_ns > 0.0 {
        format!(
            "{} from process to process, {} more when the reader sleeps",
            ns(costs.transfer_ns),
            ns(costs.wake_ns)
        )
    } else {
        format!("{} from process to sleeping process; the transfer alone was not measured", ns(costs.wake_ns))
    };
    let extra = if extra_ns > 0.0 { format!(", {} of it as said", ns(extra_ns)) } else { String::new() };
    vec![
        ("hop", wake),
        ("decision", format!("{}{extra}", ns(costs.decide_ns))),
        ("tail", tail(costs)),
        (
            "CPU a tick",
            format!(
                "md {}, strategy {}, td {}",
                ns(costs.md_cpu_ns),
                ns(costs.strategy_cpu_ns),
                ns(costs.td_cpu_ns)
            ),
        ),
    ]
}

fn tail(costs: &Costs) -> String {
    let above = duration(whole(costs.tail_ns));
    if costs.is_tail_from_max {
        format!("the longest lies {above} above p50; too few orders for a p99")
    } else {
        format!("p99 lies {above} above p50")
    }
}

fn checked(points: &[CheckedPoint]) -> Vec<Column> {
    let cells = |of: &dyn Fn(&CheckedPoint) -> Option<String>| -> Vec<String> {
        points.iter().map(|point| of(point).unwrap_or_else(|| NONE.to_owned())).collect()
    };
    let t2o = |point: &CheckedPoint| point.measured.stages.t2o.clone();
    let factor =
        |which: usize| move |point: &CheckedPoint| point.ratios()[which].map(|of| format!("x {of:.2}"));
    vec![
        Column::figures("strategies", 0, cells(&|point| Some(count(u64::from(point.load.strategies))))),
        Column::figures("rate/s", 0, cells(&|point| Some(trimmed(point.load.rate_per_s)))),
        Column::figures("p50 said", 1, cells(&|point| point.predicted.map(|of| duration(whole(of.p50_ns))))),
        Column::figures("seen", 1, cells(&|point| t2o(point).p50_ns.map(duration))),
        Column::figures("off by", 2, cells(&factor(0))),
        Column::figures("p99 said", 0, cells(&|point| point.predicted.map(|of| duration(whole(of.p99_ns))))),
        Column::figures("seen", 0, cells(&|point| t2o(point).p99_ns.map(duration))),
        Column::figures("off by", 0, cells(&factor(1))),
    ]
}

/// How far the prediction was off, and what was made of that.
fn fit(document: &SizeDocument) -> String {
    let fit = &document.fit;
    let corrected = format!("the answer is corrected by {:.2} at p50", fit.p50_factor);
    match (fit.points, fit.error_factor) {
        (0, _) => format!(
            "Off by: seen by said. No run had ticks enough for a p99, so {corrected}, and not at all at p99: measure longer \
             (--duration), or at more strategies (--check)."
        ),
        (_, None) => format!(
            "Off by: seen by said; {corrected} and {:.2} at p99. With one point at p99 nothing tells how far others are off.",
            fit.p99_factor
        ),
        (_, Some(factor)) => format!(
            "Off by: seen by said; {corrected} and {:.2} at p99. The farthest point is then still off by a factor of \
             {factor:.2} at p99.",
            fit.p99_factor
        ),
    }
}
