//! Senders of interrupts to other CPUs.

use crate::causes::words::cpu_list;
use crate::figures::JitterRun;
use crate::html::causes::table::remedy_text;
use crate::html::per_cpu::rate_cell;
use lowlat_jitter::SenderStudy;
use lowlat_text::page::{data_table, micro};
use lowlat_text::units::{clean, count, duration, plural};
use lowlat_tune_report::audit::html::anchors;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Highest number of senders with a row.
const ROWS_MAX: usize = 60;
/// Highest number of characters of a CPU list.
const CPUS_CHARS_MAX: usize = 22;

/// Builds the card with the table.
pub fn card(run: &JitterRun<'_>, senders: &[SenderStudy]) -> Markup {
    let anchors = anchors(run.audit);
    let (shown, rest) = senders.split_at(senders.len().min(ROWS_MAX));
    html! {
        div class="card flush" {
            div class="table-head" {
                h3 { "Interrupts from other CPUs" }
                p {
                    "Who sent them, from which CPUs, and why. An interrupt that does not match exactly one sender has an unknown one."
                }
            }
            (data_table("Interrupts from other CPUs", "numbers causes", &["<Sender", "<Reason", "<From", "<CPUs", "Count", "Per second", "Time", "Longest", "<Remedy"], &html! {
                @for of in shown { (row(of, &anchors)) }
            }))
            @if !rest.is_empty() {
                p class="muted" { (plural(rest.len(), "more sender")) " are in the result document." }
            }
        }
    }
}

fn row(of: &SenderStudy, anchors: &BTreeMap<&str, String>) -> Markup {
    html! {
        tr {
            th scope="row" class="left" { (clean(&of.who)) @if of.is_own { ", lowlat's own" } }
            td class="left" { (clean(&of.what)) }
            td class="left" { (cpu_list(&of.from, CPUS_CHARS_MAX)) }
            td class="left" { (cpu_list(&of.cpus, CPUS_CHARS_MAX)) }
            td { (count(of.count)) }
            td { (rate_cell(of.rate, of.count)) }
            td { (micro(&duration(of.ns_total))) }
            td class="strong" { (micro(&duration(of.ns_max))) }
            td class="left remedy" {
                @match &of.remedy { Some(remedy) => (remedy_text(remedy, anchors)), None => span class="muted" { "–" } }
            }
        }
    }
}
