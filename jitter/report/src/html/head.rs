//! Head of the page of `lowlat jitter`, and the tiles of every page.

use super::causes::shares_bar;
use crate::{
    causes::{
        label, traced,
        words::{self, interval},
    },
    figures::{Jitter, JitterRun, Longest, Side},
};
use lowlat_jitter::{
    CauseSource,
    gate::{GateOutcome, GateRow, Verdict},
};
use lowlat_text::{
    page::{data_table, micro, section as page_section, tile},
    units::{clean, duration, percent, plural, rate, span},
};
use lowlat_tune_report::audit::grouping::Tally;
use maud::{Markup, html};

/// Builds the head of the page of `lowlat jitter`.
pub fn head(run: &JitterRun<'_>, jitter: Option<&Jitter<'_>>) -> Markup {
    html! {
        @if let Some(jitter) = jitter {
            (verdict(run, jitter))
            (tiles(run, jitter))
        }
    }
}

/// Builds the tiles for the page of a whole run.
pub fn run_tiles(run: &JitterRun<'_>) -> Markup {
    html! {
        (longest_tile(run))
        (rate_tile(run))
    }
}

/// Builds the verdict of a jitter run: the measurement, its causes, and the host's readiness.
fn verdict(run: &JitterRun<'_>, jitter: &Jitter<'_>) -> Markup {
    let causes = traced(jitter.record.causes.as_ref()).filter(|_| jitter.study.all.count > 0);
    let (open, stop) = (words::not_ready(run.readiness), words::stop(jitter.record));
    html! {
        p class="verdict" {
            (micro(&words::headline(jitter.record, run.context.allocation)))
            @if !run.audit.findings.is_empty() {
                " " a href="#findings" { (Tally::of(run.audit).sentence(run.audit)) }
            }
        }
        @if run.is_interrupted {
            p class="note" { "The run was interrupted; this page shows its results up to then." }
        }
        @if !stop.is_empty() {
            div class="note" { ul class="sentences" { @for sentence in stop { li { (micro(&sentence)) } } } }
        }
        @if !open.is_empty() {
            div class="note" {
                p { b { (words::readiness_title(run.readiness)) } }
                ul class="sentences" { @for sentence in open { li { (clean(&sentence)) } } }
            }
        }
        @if let Some(causes) = causes {
            div class="verdicts" { (shares_bar(causes)) }
        }
    }
}

/// Builds five tiles with the figures of the run.
fn tiles(run: &JitterRun<'_>, jitter: &Jitter<'_>) -> Markup {
    let record = jitter.record;
    let none_looked = match record.causes.as_ref().map(|causes| causes.source) {
        Some(CauseSource::Counters) => "counts only; no interruption has its own cause",
        _ => "causes were not traced",
    };
    let (named, named_note) = match &jitter.study.shares {
        Some(_) if jitter.study.all.count == 0 => ("–".to_owned(), "no interruptions".to_owned()),
        Some(shares) => (
            micro(&percent(shares.named * 100.0)),
            format!(
                "of the interruption time; {} unexplained, {} firmware or hypervisor",
                percent(shares.unexplained * 100.0),
                percent(shares.firmware_or_hypervisor * 100.0)
            ),
        ),
        None => ("–".to_owned(), none_looked.to_owned()),
    };
    let (most, most_note) = match jitter.study.causes.first() {
        Some(first) => (
            micro(&percent(first.share * 100.0)),
            match &first.remedy {
                Some(remedy) if !remedy.setting.is_empty() => {
                    format!("{}; see {}", label(&first.cause), remedy.setting)
                }
                _ => label(&first.cause),
            },
        ),
        None => ("–".to_owned(), none_looked.to_owned()),
    };
    let measured =
        format!("for {}, {}, counter {}", span(record.ran_ns()), words::what(record), clean(&record.counter));
    html! {
        div class="tiles" {
            (run_tiles(run))
            (tile("Explained", &named, &named_note))
            (tile("Largest cause", &most, &clean(&most_note)))
            (tile("Measured", &plural(record.cpus.len(), "CPU"), &measured))
        }
    }
}

fn longest_tile(run: &JitterRun<'_>) -> Markup {
    let Some(jitter) = run.measurement.map(|jitter| &jitter.record) else {
        return tile("Longest interruption", "–", "jitter was not measured");
    };
    let length = span(jitter.ran_ns());
    match Longest::of(jitter, run.context.allocation) {
        Some(Longest { length_ns: Some(ns), cpu, is_isolated }) => {
            let place = if is_isolated { "the CPUs chosen for isolation" } else { "all measured CPUs" };
            let note = format!("on CPU {cpu}, of {place}, in {length}");
            tile("Longest interruption", &micro(&duration(ns)), &note)
        }
        Some(_) => tile("Longest interruption", "none", &format!("in {length}")),
        None => tile("Longest interruption", "–", "no CPU was measured"),
    }
}

/// Builds a tile with the interruptions per second on each CPU for trading.
fn rate_tile(run: &JitterRun<'_>) -> Markup {
    let label = "Interruptions per second";
    let Some(side) = run.measurement.and_then(|jitter| Side::of(&jitter.record, run.context.allocation))
    else {
        return tile(label, "–", "jitter was not measured");
    };
    let cpus = match side.cpu_count {
        1 => "on one CPU".to_owned(),
        cpus => format!("on each of {cpus} CPUs"),
    };
    let (interval, lost) = (interval(&side), percent(side.lost_percent));
    tile(label, &rate(side.rate.per_s), &format!("{cpus}{interval}; {lost} of the time"))
}

/// Highest number of rows on the page; exceeded limits come first.
const ROWS_MAX: usize = 200;

/// Builds the outcome of the gate, or returns `None` if none was given.
pub fn section(run: &JitterRun<'_>) -> Option<Markup> {
    let outcome = run.measurement?.gate.as_ref()?;
    let failed = outcome.failed().count();
    let lead = html! {
        code { (clean(&outcome.gate)) } ": "
        @if outcome.is_held() { b { "held" } } @else { b class="long" { "not held" } }
        ", " (plural(outcome.rows.len(), "row")) ", " (failed) " not met."
    };
    Some(page_section("gate", "Gate", &lead, &table(outcome)))
}

fn table(outcome: &GateOutcome) -> Markup {
    let held = outcome.rows.iter().filter(|row| row.verdict == Verdict::Held);
    let rows: Vec<&GateRow> = outcome.failed().chain(held).collect();
    html! {
        div class="card flush" {
            (data_table("", "numbers", &["CPU", "<Limit", "Value", "<Verdict", "<Note"], &html! {
                @for row in rows.iter().take(ROWS_MAX) {
                    tr {
                        th scope="row" { (row.cpu.map_or_else(|| "all".to_owned(), |cpu| cpu.to_string())) }
                        td class="left" { (clean(&row.key)) " " (micro(&clean(&row.limit_text))) }
                        td { (micro(&clean(&row.value_text))) }
                        td class={ "left strong" @if row.verdict != Verdict::Held { " long" } } { (row.verdict.word()) }
                        td class="left" { (micro(&clean(&row.note))) }
                    }
                }
            }))
            @if rows.len() > ROWS_MAX {
                p class="note" { (rows.len() - ROWS_MAX) " more rows are in the result document." }
            }
        }
    }
}
