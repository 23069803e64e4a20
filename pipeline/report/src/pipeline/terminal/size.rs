//! Number of strategies that a host carries, as text.

use crate::pipeline::terminal::{add_headline, add_warnings, range, size_answer, trimmed, whole};
use lowlat_host::CpuSet;
use lowlat_pipeline::{
    ProcessRole,
    matrix::SpeedVerdict,
    size::{CheckedPoint, Costs, HugePages, SizeDocument},
};
use lowlat_text::columns::Table;
use lowlat_text::text::{YELLOW, add_detail, add_field, add_heading, add_wrapped, paint, usable};
use lowlat_text::units::{clean, count, duration, size};

const LABEL_WIDTH: usize = 12;

/// The answer, the measured costs and runs, the model's error, and the proposed CPUs.
pub fn size_text(document: &SizeDocument, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_headline(&mut out, &size_answer::headline(document), width);
    add_detail(&mut out, &document.host, width);
    for note in size_answer::notes(document) {
        add_detail(&mut out, &note, width);
    }
    if document.is_interrupted {
        out.push_str(&paint(YELLOW, "The sizing was interrupted; the answer rests on the results so far."));
        out.push('\n');
    }
    add_heading(&mut out, "Costs of one strategy");
    for (label, text) in costs(&document.costs, document.strategy_cost_ns) {
        add_field(&mut out, label, &text, LABEL_WIDTH, width);
    }
    add_heading(&mut out, "Prediction compared with runs");
    if document.checked.is_empty() {
        add_detail(&mut out, "no run was checked", width);
    } else {
        out.push_str(&checked(&document.checked, width));
        add_detail(&mut out, &fit(document), width);
    }
    if let Some(tried) = &document.huge_pages {
        add_heading(&mut out, "Huge pages");
        for line in huge_pages(tried) {
            add_wrapped(&mut out, &clean(&line), 2, width);
        }
    }
    add_heading(&mut out, "Placement");
    let pins = &document.placement.pins;
    for (role, cpus) in ORDER.iter().filter_map(|role| pins.get_key_value(role)) {
        let set: CpuSet = cpus.iter().copied().collect();
        add_field(&mut out, role.name(), &format!("{set:#}"), LABEL_WIDTH, width);
    }
    for step in &document.placement.steps {
        add_detail(&mut out, step, width);
    }
    if pins.contains_key(&ProcessRole::Md) {
        let use_it = "To use it, write it with --write-pins FILE and run lowlat pipeline run --pins FILE.";
        add_detail(&mut out, use_it, width);
    }
    let mut warnings = document.placement.warnings.clone();
    warnings.extend(document.warnings.iter().cloned());
    add_warnings(&mut out, &warnings, width);
    out
}

/// Describes the runs on huge pages, and why there are none or no more.
fn huge_pages(tried: &HugePages) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(why) = &tried.not_tried {
        said.push(format!("Not tried: {why}."));
    }
    if !tried.huge.is_empty() {
        let [huge, usual] = tried.ranges().map(|of| range(of.means_ns));
        let shown = match tried.compared() {
            Some(SpeedVerdict::Faster(factor)) => format!("4 KiB pages take {factor:.2} times as long"),
            Some(SpeedVerdict::Slower(factor)) => format!("huge pages take {factor:.2} times as long"),
            Some(SpeedVerdict::NoDifference) => "no difference shown, the means of runs overlap".to_owned(),
            None => "fewer than two runs of each, which compare nothing".to_owned(),
        };
        said.push(format!(
            "Mean of tick to order with {} strategies: {huge} on huge pages ({} of the pool), {usual} on 4 KiB pages: {shown}.",
            tried.strategies,
            size(tried.pooled_bytes())
        ));
    }
    said
}

/// The roles on the path from quote to order, then the others.
const ORDER: [ProcessRole; 7] = [
    ProcessRole::Md,
    ProcessRole::Td,
    ProcessRole::Platform,
    ProcessRole::Strategies,
    ProcessRole::Master,
    ProcessRole::Cached,
    ProcessRole::Recorder,
];

fn costs(costs: &Costs, work_ns: u64) -> Vec<(&'static str, String)> {
    let ns = |ns: f64| duration(whole(ns));
    let (transfer, wake) = (ns(costs.transfer_ns), ns(costs.wake_ns));
    let hop = if costs.transfer_ns > 0.0 {
        format!("{transfer} from process to process, {wake} more if the reader sleeps")
    } else {
        format!("{wake} to a sleeping process; the transfer alone was not measured")
    };
    let extra = match work_ns {
        0 => String::new(),
        work_ns => format!(", {} of it for --strategy-cost", duration(work_ns)),
    };
    let [md, strategy, td] = [costs.md_cpu_ns, costs.strategy_cpu_ns, costs.td_cpu_ns].map(ns);
    vec![
        ("hop", hop),
        ("decision", format!("{}{extra}", ns(costs.decide_ns))),
        ("tail", tail(costs)),
        ("CPU/tick", format!("md {md}, strategy {strategy}, td {td}")),
    ]
}

fn tail(costs: &Costs) -> String {
    let above = duration(whole(costs.tail_ns));
    if costs.is_tail_from_max {
        format!("the longest is {above} above p50; too few orders for a p99")
    } else {
        format!("p99 is {above} above p50")
    }
}

fn checked(points: &[CheckedPoint], width: usize) -> String {
    let factor = |point: &CheckedPoint, which: usize| point.ratios()[which].map(|of| format!("x {of:.2}"));
    Table::of(points)
        .figures("strategies", 0, |point| count(u64::from(point.load.strategies)))
        .figures("rate/s", 0, |point| trimmed(point.load.rate_per_s))
        .figures("p50 model", 1, |point| point.predicted.map(|of| duration(whole(of.p50_ns))))
        .figures("p50 run", 1, |point| point.measured.stages.t2o.p50_ns.map(duration))
        .figures("ratio", 2, |point| factor(point, 0))
        .figures("p99 model", 0, |point| point.predicted.map(|of| duration(whole(of.p99_ns))))
        .figures("p99 run", 0, |point| point.measured.stages.t2o.p99_ns.map(duration))
        .figures("ratio", 0, |point| factor(point, 1))
        .text(width)
}

/// The prediction's error, and how the answer is corrected for it.
fn fit(document: &SizeDocument) -> String {
    let fit = &document.fit;
    let of = if document.strategy_cost_ns > 0 { " of what exceeds --strategy-cost" } else { "" };
    let corrected = format!("the answer is corrected by {:.2} at p50", fit.p50_factor);
    match (fit.points, fit.error_factor) {
        (0, _) => format!(
            "Ratio: run / model{of}; {corrected}, but not at p99: no run had enough ticks. Measure longer \
             (--duration), or with more strategies (--check)."
        ),
        (_, None) => format!(
            "Ratio: run / model{of}; {corrected} and {:.2} at p99. A single point at p99 gives no error range.",
            fit.p99_factor
        ),
        (_, Some(factor)) => format!(
            "Ratio: run / model{of}; {corrected} and {:.2} at p99. The worst point then still differs by a factor of \
             {factor:.2} at p99.",
            fit.p99_factor
        ),
    }
}
