//! Section of a comparison: the settings that explain the difference.

use crate::compare::comparison::{change_of, change_text, class, explained_text, unexplained_text};
use lowlat_jitter_report::causes::words::cpu_list;
use lowlat_jitter_report::html::causes::cause;
use lowlat_results::compare::{Comparison, Explanation};
use lowlat_text::page::{data_table, micro, section as page_section};
use lowlat_text::units::{clean, plural};
use maud::{Markup, html};

/// Rows of the table, and causes of a row.
const ROWS_MAX: usize = 30;
const CAUSES_MAX: usize = 6;

/// Builds the section; `None` if interruptions were not compared.
pub fn section(comparison: &Comparison) -> Option<Markup> {
    let lead = html! {
        "Settings that differ, and the causes that each removes or brings, by the time that they took. "
        "A setting counts only on the CPUs where its causes differ."
    };
    if let Some(sentence) = unexplained_text(comparison) {
        return Some(page_section(
            "explained",
            "Explanation",
            &lead,
            &html! { p class="empty" { (sentence) } },
        ));
    }
    let all: Vec<&Explanation> = comparison.explanations.iter().filter(|of| of.explains()).collect();
    if all.is_empty() {
        return None;
    }
    let body = html! {
        div class="card flush" {
            (data_table("Settings that explain the difference", "numbers compare explained", &["Rank", "<Setting", "<Explains", "<Causes", "<CPUs"], &html! {
                @for (at, of) in all.iter().take(ROWS_MAX).enumerate() { (row(comparison, at + 1, of)) }
            }))
            @if all.len() > ROWS_MAX { p class="empty" { (plural(all.len() - ROWS_MAX, "smaller one")) " left out." } }
        }
    };
    Some(page_section("explained", "Explanation", &lead, &body))
}

fn row(comparison: &Comparison, rank: usize, of: &Explanation) -> Markup {
    let class = class(of.is_more);
    let rest = of.causes.len().saturating_sub(CAUSES_MAX);
    html! {
        tr {
            td { (rank) }
            th scope="row" class="left shows" {
                code { (clean(&of.id)) }
                @if let Some(change) = change_of(comparison, &of.id) { span class="why" { (micro(&change_text(change))) } }
                @if !of.follows.is_empty() { span class="why" { "follows from " code { (clean(&of.follows)) } } }
            }
            td class="left shows" {
                b class={ "r-" (class) } { (micro(&explained_text(of))) }
                @if let Some(share) = of.share { (bar(share, class)) }
            }
            td class="left shows" {
                @for of in of.causes.iter().take(CAUSES_MAX) { div { (cause(of)) } }
                @if rest > 0 { span class="why" { "and " (rest) " more" } }
            }
            td class="left" { (cpu_list(&of.cpus, 24)) }
        }
    }
}

/// Draws the share of the time that a setting explains.
fn bar(share: f64, class: &str) -> Markup {
    let width = format!("{:.1}", share.clamp(0.0, 1.0) * 100.0);
    html! {
        svg class={ "part r-" (class) } viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
            rect class="whole" width="100" height="6" {}
            rect width=(width) height="6" {}
        }
    }
}
