//! HTML page of a result document.

mod header;

use super::measurements::{all_warnings, is_own_run, views};
use crate::assess::brief::worth_most;
use lowlat_host_report::{
    fields::title_and_cpus,
    html::{allocation, environment, topology},
};
use lowlat_results::ResultDocument;
use lowlat_text::{
    page::{Section, data_table, micro, page, section as page_section},
    units::{clean, duration, plural},
    view::{View, ViewPage},
};
use lowlat_tune_report::audit::{self, html::anchors, verdict_class};
use maud::{Markup, html};

/// Builds the page of a result document.
pub fn html(document: &ResultDocument) -> String {
    let (title, _) = title_and_cpus(&document.snapshot);
    let views = shown(document);
    let footer = footer(document, &views);
    page(&title, &sections(document, views), &footer)
}

/// Returns the sections of a document's page.
pub fn document_sections(document: &ResultDocument) -> Vec<Section> {
    sections(document, shown(document))
}

/// The views of a document with what pages show of them.
type Shown<'a> = Vec<(View<'a>, ViewPage)>;

fn shown(document: &ResultDocument) -> Shown<'_> {
    views(document).into_iter().map(|view| ((view.page)(), view)).map(|(page, view)| (view, page)).collect()
}

/// Returns the sections in order. The page of a subcommand of a measurement starts with that measurement, any other
/// with the host.
fn sections(document: &ResultDocument, mut views: Shown<'_>) -> Vec<Section> {
    // The page of one measurement does not say that others are missing.
    let own = views.iter().position(|(view, _)| is_own_run(document, view.kind));
    if let Some(place) = own {
        views = vec![views.swap_remove(place)];
    }
    let is_own = own.is_some();
    let host = vec![
        Section::new("topology", "Topology", topology::section(&document.snapshot, &document.allocation)),
        Section::new(
            "allocation",
            "Allocation",
            allocation::section(&document.allocation, &document.snapshot.topology),
        ),
    ];
    let findings = vec![Section::new("findings", "Findings", audit::html::section(&document.audit))];
    let mut sections = vec![Section::new("summary", "Summary", header::section(document, &views, is_own))];
    let measured = views.into_iter().flat_map(|(_, page)| page.sections).collect();
    if !is_own {
        sections.extend(first(document).map(|body| Section::new("first", "First", body)));
    }
    let parts = if is_own { [measured, findings, host] } else { [host, findings, measured] };
    sections.extend(parts.into_iter().flatten());
    sections.push(Section::new(
        "environment",
        "Environment",
        environment::section(&document.snapshot, stolen_ns(document)),
    ));
    sections.push(Section::new("warnings", "Warnings", warnings(document)));
    sections
}

/// Returns the time that the hypervisor took from the measured CPUs, in nanoseconds, if it is known of any.
fn stolen_ns(document: &ResultDocument) -> Option<u64> {
    let cpus = document.jitter().into_iter().flat_map(|jitter| &jitter.record.cpus);
    cpus.filter_map(|cpu| cpu.steal_ns.known().copied()).reduce(u64::saturating_add)
}

/// Builds a list with each warning once.
fn warnings(document: &ResultDocument) -> Markup {
    let warnings = all_warnings(document);
    let lead = html! { "Reasons why this page may be inaccurate or incomplete." };
    let body = html! {
        @if warnings.is_empty() {
            p class="empty" { "None." }
        } @else {
            ul class="warnings" { @for warning in &warnings { li { (clean(warning)) } } }
        }
    };
    page_section("warnings", "Warnings", &lead, &body)
}

/// Builds the footer: commands and parameters.
fn footer(document: &ResultDocument, views: &[(View<'_>, ViewPage)]) -> Markup {
    html! {
        footer {
            h2 { "How to reproduce" }
            p {
                "Run " code { "lowlat " (clean(&document.command)) } " on the host with profile "
                code { (document.audit.profile.name()) } ". It changes nothing. The raw data behind this page, with every histogram, is in the result "
                "document of the same run (schema version " (document.schema_version) "). "
                code { "lowlat audit --explain ID" } " explains one setting in full."
            }
            @for (_, page) in views { @if let Some(how) = &page.parameters { p { (how) } } }
            p class="small" {
                "lowlat " (clean(&document.lowlat_version)) ", started " (clean(&document.started_at)) ", took "
                (format!("{:.0}", document.elapsed_s)) " s. This page loads no external resources."
            }
        }
    }
}

/// Highest number of settings shown.
const SETTINGS_MAX: usize = 10;

/// Builds the table; `None` if nothing is to be changed.
fn first(document: &ResultDocument) -> Option<Markup> {
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
