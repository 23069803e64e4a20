//! Number of strategies that a host carries, as text.

use crate::pipeline::terminal::{range, size_answer, trimmed, whole};
use lowlat_host::CpuSet;
use lowlat_pipeline::{
    ProcessRole,
    matrix::SpeedVerdict,
    size::{CheckedPoint, Costs, HugePages, SizeDocument},
};
use lowlat_text::article::Article;
use lowlat_text::columns::Table;
use lowlat_text::page::written_by;
use lowlat_text::units::{count, duration, size};

/// The answer, the measured costs and runs, the model's error, and the proposed CPUs.
fn article(document: &SizeDocument) -> Article {
    let SizeDocument { placement, huge_pages: tried, .. } = document;
    let mut article =
        Article::new("size", "Strategies that this host carries", size_answer::headline(document))
            .detail(document.host.clone());
    for note in size_answer::notes(document) {
        article = article.detail(note);
    }
    if document.is_interrupted {
        article = article.detail("The sizing was interrupted; the answer rests on the results so far.");
    }
    article = article
        .heading("Costs of one strategy")
        .facts(costs(&document.costs, document.strategy_cost_ns))
        .heading("Prediction compared with runs")
        .table("Prediction and runs by number of strategies", checked(&document.checked))
        .text(if document.checked.is_empty() { "No run was checked.".to_owned() } else { fit(document) })
        .sentences("Huge pages", tried.as_ref().map(huge_pages).unwrap_or_default())
        .heading("Placement");
    let cpus = |role: &ProcessRole| {
        let set: CpuSet = placement.pins.get(role)?.iter().copied().collect();
        Some((role.name(), format!("{set:#}")))
    };
    article = article.facts(ORDER.iter().filter_map(cpus).collect());
    for step in &placement.steps {
        article = article.text(step.clone());
    }
    if placement.pins.contains_key(&ProcessRole::Md) {
        article = article
            .text("To use it, write it with --write-pins FILE and run lowlat pipeline run --pins FILE.");
    }
    article.doubts("Caveats", [placement.warnings.as_slice(), &document.warnings].concat())
}

/// The sizing for a terminal.
pub fn size_text(document: &SizeDocument, width: usize) -> String {
    article(document).to_text(width)
}

/// The page of a sizing.
pub fn size_html(document: &SizeDocument) -> String {
    article(document).page(&written_by(&document.lowlat_version, "pipeline size", &document.started_at))
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

fn checked(points: &[CheckedPoint]) -> Table<'_, CheckedPoint> {
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
