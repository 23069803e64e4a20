//! Every setting by layer, worst first; each row opens to its full explanation.

use crate::audit::grouping::{LayerGroup, by_layer, layer_title, listed};
use crate::audit::story;
use crate::audit::verdict_class;
use lowlat_settings::{Finding, Verdict, audit::Audit};
use lowlat_text::page::section as page_section;
use lowlat_text::units::{clean, plural};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Builds the filter, the head and the rows.
pub fn section(audit: &Audit) -> Markup {
    let findings = &audit.findings;
    let groups = by_layer(findings.iter());
    let lead = html! {
        @if findings.is_empty() { "Settings compared with the profile." } @else {
            (plural(findings.len(), "setting")) " of profile " (audit.profile.name())
            ", by layer, worst first. Open a row for its reason, cost, risk and sources."
        }
    };
    let body = html! {
        @if findings.is_empty() {
            p class="empty" { "No setting was judged in this run." }
        } @else {
            (filters(audit, &groups))
            div class="findings" {
                div class="frow fhead" aria-hidden="true" {
                    span { "Verdict" } span { "Setting" } span { "Observed" } span { "Wanted" } span { "Impact" }
                }
                @for (at, group) in groups.iter().enumerate() { (layer(group, at)) }
            }
            p id="no-match" class="empty" hidden { "No setting matches the filter." }
        }
    };
    page_section("findings", "Findings", &lead, &body)
}

/// Returns the anchor of each setting on the page, by its id.
pub fn anchors(audit: &Audit) -> BTreeMap<&str, String> {
    let groups = by_layer(audit.findings.iter());
    let mut anchors = BTreeMap::new();
    for (at, group) in groups.iter().enumerate() {
        for (part, Part { findings, .. }) in parted(group).iter().enumerate() {
            for (place, finding) in findings.iter().enumerate() {
                anchors.insert(finding.id.as_str(), anchor(at, part, place));
            }
        }
    }
    anchors
}

/// Rows of a layer that are shown together.
struct Part<'a> {
    /// The line that they are folded under; `None` if they are shown.
    fold: Option<String>,
    findings: Vec<&'a Finding>,
}

/// Number of settings from which those that are unknown for one reason are folded: a virtual machine shows none of its
/// host's firmware.
const SAME_REASON_MIN: usize = 4;

/// Splits a layer's rows into shown ones, those that are unknown for the same reason, and those with nothing to do.
fn parted<'a>(group: &LayerGroup<'a>) -> Vec<Part<'a>> {
    let is_done = |finding: &&Finding| !finding.verdict.is_fault() && finding.verdict != Verdict::Unknown;
    let (done, open): (Vec<_>, Vec<_>) = group.findings.iter().copied().partition(is_done);
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in open.iter().filter(|finding| finding.verdict == Verdict::Unknown) {
        *reasons.entry(&finding.because).or_default() += 1;
    }
    reasons.retain(|_, count| *count >= SAME_REASON_MIN);
    let (folded, shown): (Vec<_>, Vec<_>) = open.into_iter().partition(|finding| {
        finding.verdict == Verdict::Unknown && reasons.contains_key(finding.because.as_str())
    });
    let of_reason = |(reason, count): (&&str, &usize)| Part {
        fold: Some(format!("{count} unknown: {}", clean(reason))),
        findings: folded.iter().copied().filter(|finding| finding.because == **reason).collect(),
    };
    let mut parts = vec![Part { fold: None, findings: shown }];
    parts.extend(reasons.iter().map(of_reason));
    parts.push(Part { fold: Some(rest_text(group)), findings: done });
    parts.retain(|part| !part.findings.is_empty());
    parts
}

fn anchor(layer: usize, part: usize, place: usize) -> String {
    format!("f-{layer}-{part}-{place}")
}

/// Builds the filters. The script shows them, because they do nothing without it.
fn filters(audit: &Audit, groups: &[LayerGroup<'_>]) -> Markup {
    let score = &audit.score;
    html! {
        div class="filters" id="filters" hidden {
            div class="chips" role="group" aria-label="Show verdicts" {
                button type="button" class="chip" data-verdict="" aria-pressed="true" {
                    "All " span class="n" { (audit.findings.len()) }
                }
                @for verdict in Verdict::WORST_FIRST {
                    @if score.count(verdict) > 0 {
                        button type="button" class="chip" data-verdict=(verdict_class(verdict)) aria-pressed="false" {
                            span class={ "dot v-" (verdict_class(verdict)) } {} (verdict.word()) " " span class="n" { (score.count(verdict)) }
                        }
                    }
                }
            }
            div class="fields" {
                label { "Layer " select id="filter-layer" {
                    option value="" { "every layer" }
                    @for group in groups { option value=(group.layer.word()) { (layer_title(group.layer.word())) } }
                } }
                label { "Search " input id="filter-text" type="search" placeholder="id, value, reason" autocomplete="off"; }
                button type="button" class="quiet" id="open-all" aria-pressed="false" data-say-open="Open all" data-say-close="Close all" { "Open all" }
                p id="filter-status" role="status" data-say-all="{all} settings" data-say-some="{shown} of {all} settings" { (plural(audit.findings.len(), "setting")) }
            }
        }
    }
}

fn layer(group: &LayerGroup<'_>, at: usize) -> Markup {
    let title_id = format!("layer-{at}");
    let parts = parted(group);
    html! {
        section class="layer" data-layer=(group.layer.word()) aria-labelledby=(title_id) {
            h3 id=(title_id) { (layer_title(group.layer.word())) span class="count" { (counts(group)) } }
            @for (part, Part { fold, findings }) in parts.iter().enumerate() {
                @let rows = html! { @for (place, finding) in findings.iter().enumerate() { (row(finding, &anchor(at, part, place))) } };
                @match fold {
                    Some(fold) => details class="rest" { summary { (fold) } (rows) },
                    None => (rows),
                }
            }
        }
    }
}

/// Returns "3 to change, 2 unknown".
fn counts(group: &LayerGroup<'_>) -> String {
    let unknown = group.count(|verdict| verdict == Verdict::Unknown);
    let counts = listed([(group.count(Verdict::is_fault), "to change"), (unknown, "unknown")]);
    if counts.is_empty() { "nothing to change".to_owned() } else { counts }
}

/// Returns "3 good, 1 not applicable".
fn rest_text(group: &LayerGroup<'_>) -> String {
    let count = |verdict: Verdict| (group.count(|other| other == verdict), verdict.word());
    listed([Verdict::Good, Verdict::NotApplicable].map(count))
}

fn row(finding: &Finding, id: &str) -> Markup {
    let or_dash = |text: &str| if text.is_empty() { "–".to_owned() } else { clean(text) };
    html! {
        details class="finding" id=(id) data-verdict=(verdict_class(finding.verdict)) {
            summary class="frow" {
                span class={ "badge b-" (verdict_class(finding.verdict)) } { (finding.verdict.word()) }
                span class="setting" { b { (clean(&finding.name)) } code { (clean(&finding.id)) } }
                span class="value" { span class="vh" { "observed " }
                    (or_dash(if finding.observed.is_empty() { &finding.because } else { &finding.observed }))
                    @if !finding.observed.is_empty() && !finding.because.is_empty() { span class="why" { (clean(&finding.because)) } }
                }
                span class="value" { span class="vh" { "wanted " } (or_dash(&finding.wanted)) }
                span class={ "impact i-" (finding.impact.word()) } { span class="vh" { "impact " } (finding.impact.word()) }
            }
            div class="story" {
                dl {
                    @for (label, text) in story(finding) {
                        @if !text.is_empty() {
                            dt { (label) }
                            dd class=[(label == "Hazard").then_some("hazard")] { (clean(&text)) }
                        }
                    }
                    @if !finding.sources.is_empty() {
                        dt { "Sources" }
                        dd translate="no" { ul { @for source in &finding.sources { li { (clean(source)) } } } }
                    }
                    dt { "Id" }
                    dd { code { (clean(&finding.id)) } }
                }
            }
        }
    }
}
