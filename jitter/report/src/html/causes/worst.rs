//! Longest interruptions; each opens to its timeline.

use crate::causes::ranked::Ranked;
use crate::causes::spans::{Span, spans};
use crate::causes::words::{cpu_list, group_facts, moment, sent_by};
use crate::causes::{CauseFamily, study_of};
use crate::figures::Jitter;
use crate::figures::JitterRun;
use crate::html::causes::table::remedy_text;
use crate::html::causes::{cause, flame};
use crate::html::per_cpu::sides;
use lowlat_jitter::{CausePart, CauseStudy, Explained, JitterCauses, TimelineChange};
use lowlat_text::page::{data_table, micro};
use lowlat_text::units::{count, duration, percent, plural};
use lowlat_tune_report::audit::html::anchors;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Highest number of interruptions listed for each side.
const WORST_MAX: usize = 12;
/// Highest indentation level of a table.
const DEPTH_MAX: usize = 8;

struct InterruptionContext<'a> {
    causes: &'a [CauseStudy],
    traced: Option<&'a JitterCauses>,
    anchors: BTreeMap<&'a str, String>,
}

/// Builds a card for each measured side; the first interruption is open.
pub fn cards(run: &JitterRun<'_>, jitter: &Jitter<'_>) -> Markup {
    let context = InterruptionContext {
        causes: &jitter.study.causes,
        traced: jitter.record.causes.as_ref(),
        anchors: anchors(run.audit),
    };
    let sides = sides(jitter, run.context.allocation, WORST_MAX);
    html! {
        @for (side, (title, worst)) in sides.iter().enumerate() {
            div class="card flush worst" {
                div class="table-head" {
                    h3 { (title) }
                    p { "Open an interruption to see its steps." }
                }
                @if worst.is_empty() { p class="empty" { "None was recorded." } }
                @for (place, of) in worst.iter().enumerate() {
                    (entry(of, &context, side == 0 && place == 0))
                }
            }
        }
    }
}

fn entry(of: &Ranked<'_>, context: &InterruptionContext<'_>, is_open: bool) -> Markup {
    let main = of.explained.and_then(|explained| explained.parts.first());
    html! {
        details class="hit" open[is_open] {
            summary class="hit-row" {
                b { (micro(&duration(of.interruption.length_ns))) }
                span { "CPU " (of.cpu) }
                span class="muted" { (micro(&moment(of.interruption.at_ns))) }
                @match of.explained {
                    Some(explained) => (parts_bar(explained)),
                    None => span {}
                }
                span class="hit-cause" {
                    @match main {
                        Some(part) => (cause(&part.cause)),
                        None => span class="muted" { "not compared with the trace" }
                    }
                }
            }
            @if let Some(explained) = of.explained { (story(of, explained, context)) }
            @else { p class="hit-body muted" { "The record has no timeline of it." } }
        }
    }
}

/// Draws the parts of one interruption as a bar.
fn parts_bar(explained: &Explained) -> Markup {
    let total = explained.interruption.length_ns.max(1) as f64;
    let mut start = 0.0;
    html! {
        svg class="mini-bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true" {
            @for part in &explained.parts {
                @let width = (part.ns as f64 * 100.0 / total).min(100.0 - start).max(0.0);
                @if width > 0.0 {
                    rect class={ "f-" (CauseFamily::of(&part.cause).class()) } x=(format!("{start:.2}")) y="0" width=(format!("{width:.2}")) height="1" {}
                }
                (advance(&mut start, width))
            }
        }
    }
}

/// Advances `start` and shows nothing.
fn advance(start: &mut f64, by: f64) -> Markup {
    *start += by;
    html! {}
}

fn story(of: &Ranked<'_>, explained: &Explained, context: &InterruptionContext<'_>) -> Markup {
    let spans = spans(explained);
    html! {
        div class="hit-body" {
            div class="scroll" tabindex="0" role="group" aria-label="What happened in this interruption" { (flame::draw(explained, &spans)) }
            div class="hit-columns" {
                (parts_table(&explained.parts, explained.interruption.length_ns))
                @if !spans.is_empty() { (steps_table(&spans, explained.timeline_cut_count, context.traced)) }
            }
            (notes(of, explained, context))
        }
    }
}

fn parts_table(parts: &[CausePart], length_ns: u64) -> Markup {
    html! {
        (data_table("", "numbers", &["<Part", "Took", "Share"], &html! {
            @for part in parts {
                tr {
                    th scope="row" class="left" { (cause(&part.cause)) }
                    td { (micro(&duration(part.ns))) }
                    td { (micro(&percent((part.ns as f64 * 100.0 / length_ns.max(1) as f64).min(100.0)))) }
                }
            }
        }))
    }
}

fn steps_table(spans: &[Span<'_>], cut: u64, causes: Option<&JitterCauses>) -> Markup {
    html! {
        (data_table("", "numbers", &["At", "<What ran", "Took", "Itself"], &html! {
            @for span in spans {
                tr {
                    td { (offset(span.offset_ns)) }
                    td class={ "left d" (span.depth.min(DEPTH_MAX)) } {
                        @match span.kind {
                            TimelineChange::Returns => "the measured thread runs again",
                            TimelineChange::Lost => "events are missing before this moment",
                            _ => (cause(span.cause))
                        }
                        @if let Some(text) = sent_by(causes, span.sender) { span class="muted" { " " (text) } }
                    }
                    td { @if span.kind == TimelineChange::Begins { @if span.is_open { "at least " } (micro(&duration(span.took_ns))) } }
                    td { @if span.kind == TimelineChange::Begins { (micro(&duration(span.own_ns))) } }
                }
            }
            @if cut > 0 { tr class="muted" { td {} td class="left" { (count(cut)) " more steps were not kept" } td {} td {} } }
        }))
    }
}

/// Formats an offset with its sign: "+1,204 ns".
fn offset(ns: i64) -> String {
    let sign = if ns < 0 { '-' } else { '+' };
    micro(&format!("{sign}{} ns", count(ns.unsigned_abs())))
}

/// Builds the list of other CPUs interrupted at the same time, and the remedies.
fn notes(of: &Ranked<'_>, explained: &Explained, context: &InterruptionContext<'_>) -> Markup {
    let mut remedies: Vec<&CauseStudy> = Vec::new();
    for study in explained.parts.iter().filter_map(|part| study_of(context.causes, &part.cause)) {
        let is_new = |remedy| !remedies.iter().any(|seen| seen.remedy.as_ref() == Some(remedy));
        if study.remedy.as_ref().is_some_and(is_new) {
            remedies.push(study);
        }
    }
    let group = of.group.and_then(group_facts).filter(|(cpus, _)| cpus.len() > 1);
    html! {
        @if group.is_some() || !remedies.is_empty() {
            dl class="notes" {
                @if let Some((cpus, _)) = group {
                    dt { "At the same time" }
                    dd { "on " (plural(cpus.len(), "CPU")) ": " (cpu_list(&cpus, 120)) }
                }
                @for study in remedies {
                    @if let Some(remedy) = &study.remedy {
                        dt { (crate::causes::label(&study.cause)) }
                        dd { (remedy_text(remedy, &context.anchors)) }
                    }
                }
            }
        }
    }
}
