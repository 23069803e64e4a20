//! Interruptions of several CPUs at once.

use crate::causes::words;
use crate::causes::words::{cpu_list, group_facts, moment};
use crate::html::causes::cause;
use lowlat_jitter::{Group, JitterGroups};
use lowlat_text::page::{data_table, micro};
use lowlat_text::units::{count, duration, plural};
use maud::{Markup, html};

/// Highest number of groups listed.
const GROUPS_MAX: usize = 10;
/// Highest number of members listed per group.
const MEMBERS_MAX: usize = 64;
/// Highest number of sizes with a row.
const SIZES_MAX: usize = 24;

/// Builds the card: the number of groups by size, and the longest ones.
pub fn card(groups: &JitterGroups) -> Markup {
    let most = groups.sizes.iter().map(|size| size.count).max().unwrap_or(0).max(1);
    html! {
        div class="card flush worst" {
            div class="table-head" {
                h3 { "Several CPUs at once" }
                p { (micro(&words::groups(groups))) " Kernel broadcasts and system-management interrupts appear here." }
            }
            @if !groups.sizes.is_empty() {
                table class="numbers sizes" {
                    thead { tr { th scope="col" { "CPUs" } th scope="col" { "Times" } th scope="col" class="left" { span class="vh" { "As a bar" } } } }
                    tbody {
                        @for size in groups.sizes.iter().take(SIZES_MAX) {
                            tr {
                                td { (size.cpu_count) }
                                td { (count(size.count)) }
                                td class="left" {
                                    svg class="mini-bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true" {
                                        rect class="mini-fill" x="0" y="0" width=(format!("{:.2}", size.count as f64 * 100.0 / most as f64)) height="1" {}
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @for group in groups.worst.iter().take(GROUPS_MAX) { (entry(group)) }
        }
    }
}

fn entry(group: &Group) -> Markup {
    let Some((cpus, longest)) = group_facts(group) else { return html! {} };
    let total = group.members.iter().fold(0u64, |sum, of| sum.saturating_add(of.interruption.length_ns));
    let first = group.members.iter().map(|of| of.interruption.at_ns).min().unwrap_or(0);
    html! {
        details class="hit" {
            summary class="hit-row group" {
                b { (plural(cpus.len(), "CPU")) }
                span { (micro(&duration(total))) " together" }
                span class="muted" { (micro(&moment(first))) }
                span { (cpu_list(&cpus, 40)) }
                span class="hit-cause" { (cause(&longest.cause)) }
            }
            div class="hit-body" {
                (data_table("", "numbers", &["CPU", "After the first", "Length", "<Longest part"], &html! {
                    @for member in group.members.iter().take(MEMBERS_MAX) {
                        tr {
                            th scope="row" { (member.cpu) }
                            td { (micro(&duration(member.interruption.at_ns.saturating_sub(first)))) }
                            td { (micro(&duration(member.interruption.length_ns))) }
                            td class="left" { (cause(&member.cause)) }
                        }
                    }
                }))
                @if group.members.len() > MEMBERS_MAX {
                    p class="muted" { (count((group.members.len() - MEMBERS_MAX) as u64)) " more are in the result document." }
                }
            }
        }
    }
}
