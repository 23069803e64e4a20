//! HTML page of a result document.

mod first;
mod header;

use super::measurements::{all_warnings, is_own_run, views};
use lowlat_host_report::html::{allocation, environment, topology};
use lowlat_host_report::line::title_and_cpus;
use lowlat_results::ResultDocument;
use lowlat_text::page::{Section, page, section as page_section};
use lowlat_text::units::clean;
use lowlat_text::view::View;
use lowlat_tune_report::audit;
use maud::{Markup, html};

/// Builds the page of a result document.
pub fn html(document: &ResultDocument) -> String {
    let (title, _) = title_and_cpus(&document.snapshot);
    let views = views(document);
    page(&title, &sections(document, &views), &footer(document, &views))
}

/// Returns the sections of a document's page.
pub fn document_sections(document: &ResultDocument) -> Vec<Section> {
    sections(document, &views(document))
}

/// Returns the sections in order. The page of a subcommand of a measurement starts with that measurement, any other
/// with the host.
fn sections(document: &ResultDocument, views: &[Box<dyn View + '_>]) -> Vec<Section> {
    let own = views.iter().find(|view| is_own_run(document, view.kind())).map(|view| &**view);
    // The page of one measurement does not say that others are missing.
    let measured = match own {
        Some(own) => own.sections(),
        None => views.iter().flat_map(|view| view.sections()).collect(),
    };
    let host = vec![
        Section::new("topology", "Topology", topology::section(&document.snapshot, &document.allocation)),
        Section::new(
            "allocation",
            "Allocation",
            allocation::section(&document.allocation, &document.snapshot.topology),
        ),
    ];
    let findings = vec![Section::new("findings", "Findings", audit::html::section(&document.audit))];
    let mut sections = vec![Section::new("summary", "Summary", header::section(document, views, own))];
    if own.is_none() {
        sections.extend(first::section(document).map(|body| Section::new("first", "First", body)));
    }
    let parts = if own.is_some() { [measured, findings, host] } else { [host, findings, measured] };
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
fn footer(document: &ResultDocument, views: &[Box<dyn View + '_>]) -> Markup {
    html! {
        footer {
            h2 { "How to reproduce" }
            p {
                "Run " code { "lowlat " (clean(&document.command)) } " on the host with profile "
                code { (document.audit.profile.name()) } ". It changes nothing. The raw data behind this page, with every histogram, is in the result "
                "document of the same run (schema version " (document.schema_version) "). "
                code { "lowlat audit --explain ID" } " explains one setting in full."
            }
            @for view in views { @if let Some(how) = view.parameters() { p { (how) } } }
            p class="small" {
                "lowlat " (clean(&document.lowlat_version)) ", started " (clean(&document.started_at)) ", took "
                (format!("{:.0}", document.elapsed_s)) " s. This page loads no external resources."
            }
        }
    }
}
