//! Table of causes, by the remedy that would remove them.

use crate::causes::words::cpu_list;
use crate::causes::{advice, is_same_advice};
use crate::figures::Jitter;
use crate::figures::JitterRun;
use crate::html::causes::cause;
use crate::html::per_cpu::rate_cell;
use lowlat_jitter::{CauseStudy, Remedy};
use lowlat_text::page::svg::cut;
use lowlat_text::page::{heads, micro};
use lowlat_text::units::{clean, count, duration, percent, plural};
use lowlat_tune_report::audit::html::anchors;
use maud::{Markup, html};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Number of causes with a row, whatever their share.
const ROWS_MIN: usize = 12;
/// Share above which further causes have a row too.
const SHARE_MIN: f64 = 0.002;
/// Highest number of rows, including collapsed ones.
const ROWS_MAX: usize = 80;
/// Highest number of characters of a CPU list in its cell, and in its tooltip.
const CPUS_CHARS_MAX: usize = 22;
const CPUS_TITLE_CHARS_MAX: usize = 400;

/// Builds the card with the table.
pub fn card(run: &JitterRun<'_>, jitter: &Jitter<'_>) -> Markup {
    let causes = &jitter.study.causes;
    let anchors = anchors(run.audit);
    let shown = causes.iter().enumerate().filter(|(at, of)| *at < ROWS_MIN || of.share >= SHARE_MIN).count();
    let (shown, folded) = causes.split_at(shown.min(ROWS_MAX));
    html! {
        div class="card flush" {
            div class="table-head" {
                h3 { "Causes and remedies" }
                p {
                    "Time includes kernel entry and exit but not nested activities. Count and rate are of interruptions with this cause, "
                    "over all measured CPUs; the rate is per second and CPU."
                }
            }
            @if causes.is_empty() {
                p class="empty" { "No interruption has a known cause." }
            } @else {
                (rows("Causes and remedies", shown, &anchors))
                @if !folded.is_empty() {
                    details class="rest" {
                        summary { (rest_text(folded)) }
                        (rows("Smaller causes", folded.get(..ROWS_MAX).unwrap_or(folded), &anchors))
                    }
                }
            }
        }
    }
}

fn rows(title: &str, causes: &[CauseStudy], anchors: &BTreeMap<&str, String>) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(title) {
            table class="numbers causes" {
                thead { tr { (heads(&["<Cause", "<CPUs", "Count", "Per second", "Time", "<Share", "Longest"])) } }
                @for (remedy, causes) in by_remedy(causes) {
                    tbody {
                        tr class="remedy-row" {
                            th scope="rowgroup" colspan="7" class="left remedy" {
                                div class="in-sight" {
                                    @match remedy {
                                        Some(remedy) => (remedy_text(&shared(remedy, &causes), anchors)),
                                        None => span class="muted" { "No remedy known" },
                                    }
                                }
                                @if causes.len() > 1 { div class="sum in-sight" { (sum_text(&causes)) } }
                            }
                        }
                        @for of in causes { (row(of)) }
                    }
                }
            }
        }
    }
}

/// Returns the remedy of a group, without the reason if causes have different ones.
fn shared(remedy: &Remedy, causes: &[&CauseStudy]) -> Remedy {
    let is_same = causes.iter().all(|of| of.remedy.as_ref().is_some_and(|of| of.action == remedy.action));
    let action = if is_same { &remedy.action } else { advice(&remedy.action) };
    Remedy { action: action.to_owned(), ..remedy.clone() }
}

/// Groups causes by what their remedies advise, those that took most time first.
fn by_remedy(causes: &[CauseStudy]) -> Vec<(Option<&Remedy>, Vec<&CauseStudy>)> {
    let mut groups: Vec<(Option<&Remedy>, Vec<&CauseStudy>)> = Vec::new();
    for of in causes {
        let is_same = |remedy: Option<&Remedy>| match (remedy, of.remedy.as_ref()) {
            (Some(one), Some(other)) => is_same_advice(one, other),
            (one, other) => one == other,
        };
        match groups.iter_mut().find(|(remedy, _)| is_same(*remedy)) {
            Some((_, group)) => group.push(of),
            None => groups.push((of.remedy.as_ref(), vec![of])),
        }
    }
    groups.sort_by_key(|(_, group)| Reverse(ns_total(group)));
    groups
}

fn ns_total(causes: &[&CauseStudy]) -> u64 {
    causes.iter().fold(0, |sum, of| sum.saturating_add(of.ns_total))
}

/// Returns "3 causes, 4.2 ms, 12 %".
fn sum_text(causes: &[&CauseStudy]) -> String {
    let share: f64 = causes.iter().map(|of| of.share).sum();
    let (count, time) = (plural(causes.len(), "cause"), duration(ns_total(causes)));
    micro(&format!("{count}, {time}, {}", percent(share * 100.0)))
}

fn row(of: &CauseStudy) -> Markup {
    let share = (of.share * 100.0).clamp(0.0, 100.0);
    html! {
        tr {
            th scope="row" class="left" { (cause(&of.cause)) }
            td class="left" title=(cpu_list(&of.cpus, CPUS_TITLE_CHARS_MAX)) { (cpu_list(&of.cpus, CPUS_CHARS_MAX)) }
            td { (count(of.count)) }
            td { (rate_cell(of.rate, of.count)) }
            td { (micro(&duration(of.ns_total))) }
            td class="left share" {
                svg class="mini-bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true" {
                    rect class="mini-rest" x="0" y="0" width="100" height="1" {}
                    rect class={ "f-" (crate::causes::CauseFamily::of(&of.cause).class()) } x="0" y="0" width=(format!("{share:.2}")) height="1" {}
                }
                (micro(&percent(share)))
            }
            td class="strong" { (micro(&duration(of.ns_max))) }
        }
    }
}

/// Builds the action and the setting, which is a link if the page has its row.
pub fn remedy_text(remedy: &Remedy, anchors: &BTreeMap<&str, String>) -> Markup {
    let setting = clean(&remedy.setting);
    html! {
        (clean(&remedy.action)) " "
        @match anchors.get(remedy.setting.as_str()) {
            Some(anchor) => a href={ "#" (anchor) } { code { (setting) } },
            None if setting.is_empty() => "",
            None => code { (cut(&setting, 80)) },
        }
    }
}

/// Returns "23 smaller causes, together 0.031 %".
fn rest_text(causes: &[CauseStudy]) -> String {
    let share: f64 = causes.iter().map(|of| of.share).sum();
    let left = match causes.len().saturating_sub(ROWS_MAX) {
        0 => String::new(),
        left => format!("; {} of them in the result document only", count(left as u64)),
    };
    format!("{}, together {}{left}", plural(causes.len(), "smaller cause"), micro(&percent(share * 100.0)))
}
