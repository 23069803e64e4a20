//! Runs of the trading pipeline, for terminals.

mod live;
mod matrix;
mod nodes;
mod plan;
mod run;
mod size;
mod size_answer;
mod wire;

pub use live::pipeline_live_lines;
pub use matrix::matrix_text;
pub use nodes::nodes_text;
pub use plan::{matrix_not_run_text, matrix_plan_text};
pub use run::{balance, pipeline_text, run_counts, run_headline};
pub use size::{size_html, size_text};
pub use wire::{exchange_html, exchange_text, feed_line, gateway_line, wire_stages};

use crate::pipeline::{MeasuredRow, not_run};
use lowlat_pipeline::{PipelineParameters, PipelineRecord, StageFigures, Stages};
use lowlat_text::columns::{NONE, Table};
use lowlat_text::text::{BOLD, add_heading, add_painted, add_sentences, add_wrapped};
use lowlat_text::units::{clean, count, duration, rate};

/// The stages with their names, in the order of a tick's path.
pub fn stages(stages: &Stages) -> [(&'static str, &StageFigures); 4] {
    [
        ("market data: written to read", &stages.md),
        ("order: written to read", &stages.order),
        ("tick to order, from the write", &stages.t2o),
        ("tick to order, from the due time", &stages.t2o_scheduled),
    ]
}

/// A table of named figures.
fn figures_table<'a>(all: &'a [(&'a str, &'a StageFigures)]) -> Table<'a, (&'a str, &'a StageFigures)> {
    Table::of(all)
        .words("stage", 0, |(name, _)| (*name).to_owned())
        .figures("mean", 1, |(_, figures)| figures.mean_ns.map(whole).map(duration))
        .figures("p50", 0, |(_, figures)| figures.p50_ns.map(duration))
        .figures("p99", 0, |(_, figures)| figures.p99_ns.map(duration))
        .figures("p99.9", 0, |(_, figures)| figures.p99_9_ns.map(duration))
        .figures("max", 0, |(_, figures)| figures.max_ns.map(duration))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, as intended")]
pub fn whole(ns: f64) -> u64 {
    ns.round() as u64
}

/// A load such as "80 strategies, 800 quotes/s, parked".
pub fn load_words(parameters: &PipelineParameters) -> String {
    load(parameters, "")
}

/// The load of a run, with the rate that it reached if that is another one.
pub fn record_load_words(record: &PipelineRecord) -> String {
    let is_less = record.has_missed_schedule();
    let reached =
        if is_less { format!(" ({} reached)", rate(record.reached_per_s())) } else { String::new() };
    load(&record.parameters, &reached)
}

fn load(parameters: &PipelineParameters, reached: &str) -> String {
    let strategies = strategies_words(parameters.strategies);
    let host = if parameters.host_core.is_some() { " in one host" } else { "" };
    let threads = if parameters.has_md_threads { ", md with a thread for each instrument" } else { "" };
    let cost = match parameters.strategy_cost_ns {
        0 => String::new(),
        cost_ns => format!(", {} of work a quote", duration(cost_ns)),
    };
    let (asked, mode) = (trimmed(parameters.rate_per_s), parameters.mode.word());
    format!("{strategies}{host}, {asked} quotes/s{reached}, {mode}{threads}{cost}")
}

fn strategies_words(strategies: u32) -> String {
    match strategies {
        0 => "no built-in strategies".to_owned(),
        1 => "1 strategy".to_owned(),
        n => format!("{} strategies", count(u64::from(n))),
    }
}

/// A rate without superfluous digits: "0.333", "80", "8,000".
pub fn trimmed(rate: f64) -> String {
    if rate >= 1.0 && (rate - rate.round()).abs() < 1e-9 {
        return count(whole(rate));
    }
    let text = format!("{rate:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An expected duration: "59 s", "10 min", "2 h 5 min".
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, as intended")]
pub fn seconds(s: f64) -> String {
    let whole = s.max(0.0).round() as u64;
    let (hours, minutes, rest) = (whole / 3_600, whole / 60 % 60, whole % 60);
    let parts = [(hours, "h"), (minutes, "min"), (rest, "s")];
    let from = parts.iter().position(|(number, _)| *number > 0).unwrap_or(2);
    // The two largest units are enough.
    let said: Vec<String> = parts[from..]
        .iter()
        .take(2)
        .filter(|(number, unit)| *number > 0 || (whole == 0 && *unit == "s"))
        .map(|(number, unit)| format!("{number} {unit}"))
        .collect();
    said.join(" ")
}

/// A range such as "38.1-44.0 us", or "-".
pub fn range(of: Option<(f64, f64)>) -> String {
    let Some((low, high)) = of else { return NONE.to_owned() };
    let (low, high) = (duration(whole(low)), duration(whole(high)));
    match (low.split_once(' '), high.split_once(' ')) {
        _ if low == high => low,
        (Some((from, unit)), Some((to, same))) if unit == same => format!("{from}-{to} {unit}"),
        _ => format!("{low}-{high}"),
    }
}

fn add_headline(out: &mut String, text: &str, width: usize) {
    add_painted(out, BOLD, text, 0, width);
}

/// Rows that did not or will not run, and why; nothing if all ran.
fn add_not_run(out: &mut String, rows: &[MeasuredRow<'_>], width: usize) {
    let reasons = not_run(rows);
    if reasons.is_empty() {
        return;
    }
    add_heading(out, "Not run");
    for (ids, why) in reasons {
        add_wrapped(out, &format!("{ids}: {}.", clean(&why)), 2, width);
    }
}

/// Adds doubts about the figures under a heading; nothing if there are none.
fn add_warnings(out: &mut String, warnings: &[String], width: usize) {
    add_sentences(out, (BOLD, "Caveats"), warnings, width);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_rates_read_well() {
        assert_eq!(range(Some((38_120.0, 43_990.0))), "38.1-44.0 us");
        assert_eq!(range(Some((938_000.0, 1_200_000.0))), "938 us-1.20 ms");
        assert_eq!(range(Some((5_000.0, 5_001.0))), "5.00 us");
        assert_eq!(range(None), "-");
        let said = [0.2, 59.0, 600.0, 797.0, 7_510.0, 36_000.0].map(seconds);
        assert_eq!(said, ["0 s", "59 s", "10 min", "13 min 17 s", "2 h 5 min", "10 h"]);
        assert_eq!([0.2, 1.0 / 3.0, 80.0, 8000.0].map(trimmed), ["0.2", "0.333", "80", "8,000"]);
    }
}
