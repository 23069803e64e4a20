//! Page of documents side by side.

use super::{comparisons, facts, letter, limit_sentence, rows};
use crate::compare::comparison::{harm_word, headline, interval, ratio};
use crate::compare::html::{compared, footer, interval_picture, scale, sections};
use lowlat_jitter_report::html::STYLE;
use lowlat_results::compare::{Comparison, LimitVerdict, SideBySide};
use lowlat_text::page::svg::LogScale;
use lowlat_text::page::{Section, micro, page, section as page_section, table_below};
use maud::{Markup, html};

/// Builds the page of documents side by side.
pub fn side_by_side_html(of: &SideBySide) -> String {
    let documents = Section::new("documents", "Documents", overview(of)).with_style(STYLE);
    if let [comparison] = of.comparisons.as_slice() {
        let mut parts = sections(comparison);
        let place = parts.len().min(1);
        parts.insert(place, documents);
        return page("before and after", &parts, &footer());
    }
    let mut parts = vec![documents];
    for (at, title, comparison, _) in comparisons(of) {
        let prefix = format!("c{}", at + 1);
        parts.push(Section::group(&prefix, &letter(at), &title, &sections(comparison), at == 1));
    }
    page("side by side", &parts, &footer())
}

fn overview(of: &SideBySide) -> Markup {
    let lead = html! { "Score of the settings, and interruptions per second and CPU. The ratio is to the runs marked “compared with”." };
    // One scale for all ratios.
    let widest = of.comparisons.iter().map(scale).max_by_key(|scale| scale.high);
    let heads =
        compared(&["<Document", "Score", "Faults", "Rate (95 %)", "Time lost", "Longest"], widest.as_ref());
    let body = html! {
        div class="card flush" {
            (table_below("Documents side by side", "numbers compare", &heads, &html! {
                @for (at, (row, document)) in rows(of).iter().zip(&of.documents).enumerate() {
                    tr {
                        th scope="row" class="left shows" {
                            (row.letter) ": " span translate="no" { (row.name) } span class="why" { (micro(&facts(document))) }
                        }
                        td { (row.score) } td { (row.faults) }
                        td { (row.rate) span class="why" { (row.interval) } }
                        td { (micro(&row.lost)) } td { (micro(&row.longest)) }
                        @match (comparison_of(of, at), &widest) {
                            (Some(comparison), Some(scale)) => (result(comparison, scale)),
                            _ => { td {} td class="left" { "compared with" } },
                        }
                    }
                }
            }))
        }
        @for (at, _, _, limit) in comparisons(of) {
            @if let Some(limit) = limit {
                p class={ "note r-" (limit_class(limit.verdict)) } { b { (letter(at)) ": " } (micro(&limit_sentence(limit).replace(" -> ", " → "))) }
            }
        }
    };
    page_section("documents", "Documents", &lead, &body)
}

/// The comparison in which a document comes after: with the first one, or with the other one of its pair.
fn comparison_of(of: &SideBySide, at: usize) -> Option<&Comparison> {
    match of.comparisons.as_slice() {
        [pooled] => (at % 2 == 1).then_some(pooled),
        each => each.get(at.checked_sub(1)?),
    }
}

fn result(comparison: &Comparison, scale: &LogScale) -> Markup {
    let rate = &comparison.all.rate;
    let (word, class) = harm_word(comparison.harm.verdict);
    if !comparison.has_rates() {
        let has_workloads = comparison.workloads.is_some();
        let what = if has_workloads { "workloads are compared below" } else { "only settings are compared" };
        return html! { td {} td class="left shows" { (what) } };
    }
    html! {
        td class="left" title=(headline(comparison)) { (interval_picture(rate, class, scale)) }
        td class="left shows" {
            b class={ "r-" (class) } { (word) }
            span class="why" { "ratio of rates " (ratio(rate).replace('-', "–")) ", 95 % interval " (interval(rate)) }
        }
    }
}

fn limit_class(verdict: LimitVerdict) -> &'static str {
    match verdict {
        LimitVerdict::Worse => "more",
        LimitVerdict::Held => "fewer",
        LimitVerdict::NotShown | LimitVerdict::SurroundingsDiffered | LimitVerdict::TooShort => "same",
    }
}
