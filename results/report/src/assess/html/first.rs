//! Settings to change first: the faults, those first that caused most of the interruptions in this run.

use crate::assess::brief::worth_most;
use lowlat_results::ResultDocument;
use lowlat_text::page::{data_table, micro, section as page_section};
use lowlat_text::units::{clean, duration, plural};
use lowlat_tune_report::audit::html::anchors;
use lowlat_tune_report::audit::verdict_class;
use maud::{Markup, html};

/// Highest number of settings shown.
const SETTINGS_MAX: usize = 10;

/// Builds the table; `None` if nothing is to be changed.
pub fn section(document: &ResultDocument) -> Option<Markup> {
    let changes = worth_most(document);
    let (shown, rest) = changes.split_at(changes.len().min(SETTINGS_MAX));
    if shown.is_empty() {
        return None;
    }
    let anchors = anchors(&document.audit);
    let is_measured = shown.iter().any(|(_, lost_ns)| *lost_ns > 0);
    let lead = html! {
        @if is_measured { "The settings that caused most of the interruptions in this run, then those with the largest impact." }
        @else { "The settings with the largest impact. They caused none of the measured interruptions." }
    };
    let last = if is_measured { ">Interruptions" } else { "" };
    let heads = ["Setting", "Now", "Wanted", "Takes effect", last];
    let body = html! {
        div class="card flush" {
            (data_table("Settings to change first", "first-table", &heads, &html! {
                @for (finding, lost_ns) in shown {
                    tr {
                        th scope="row" {
                            span class={ "dot v-" (verdict_class(finding.verdict)) } {} " "
                            @match anchors.get(finding.id.as_str()) {
                                Some(anchor) => a href={ "#" (anchor) } { code { (clean(&finding.id)) } },
                                None => code { (clean(&finding.id)) },
                            }
                        }
                        td data-label="Now" { (clean(if finding.observed.is_empty() { &finding.because } else { &finding.observed })) }
                        td data-label="Wanted" { (clean(&finding.wanted)) }
                        td data-label="Takes effect" { @if finding.needs_reboot { "after a reboot" } @else { "at once" } }
                        @if is_measured { td class="figure" data-label="Interruptions" { @if *lost_ns > 0 { (micro(&duration(*lost_ns))) } @else { "–" } } }
                    }
                }
            }))
            p class="empty" {
                @if !rest.is_empty() { "The findings below have " (plural(rest.len(), "more setting")) ". " }
                code { "sudo lowlat tune plan --out plan.json" } " shows the old and the new value of each change, and "
                code { "sudo lowlat tune apply --plan plan.json" } " makes the changes."
            }
        }
    };
    Some(page_section("first", "What to do first", &lead, &body))
}
