//! One or several documents as terminal text, Markdown or one page.

pub mod markdown;

use crate::assess::{
    self,
    measurements::{is_own_run, jitter_text, views},
    summary::summary,
};
use lowlat_host_report::fields::title_and_cpus;
use lowlat_jitter::JitterMeasurement;
use lowlat_jitter_report::JitterTextOptions;
use lowlat_results::ResultDocument;
use lowlat_text::{
    page::{Section, data_table, micro, page, section as page_section},
    text::{BOLD, paint, usable},
    units::{clean, duration, percent, rate},
};
use lowlat_tune_report::audit::grouping::Tally;
use maud::{Markup, html};

/// A document with its name, usually that of its file.
pub type Named<'a> = (String, &'a ResultDocument);

/// Returns the verdict on a document in sentences: its settings, then each measurement.
fn sentences(document: &ResultDocument) -> Vec<String> {
    let settings = Tally::of(&document.audit).sentence(&document.audit);
    let views = views(document);
    let measured = views.iter().filter_map(|view| view.sentence.clone());
    let warnings = document.audit.warnings.iter().cloned();
    warnings.chain([settings]).chain(measured).filter(|sentence| !sentence.is_empty()).collect()
}

/// Formats documents for a terminal of this width, each as the command that measured it prints it.
pub fn documents_text(documents: &[Named<'_>], width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    for (at, (name, document)) in documents.iter().enumerate() {
        if documents.len() > 1 {
            let gap = if at > 0 { "\n\n" } else { "" };
            out.push_str(&format!("{gap}{}\n\n", paint(BOLD, &format!("== {}", clean(name)))));
        }
        let views = views(document);
        match views.iter().find(|view| is_own_run(document, view.kind)) {
            Some(jitter) if jitter.kind == JitterMeasurement::KIND => {
                out.push_str(&jitter_text(document, JitterTextOptions { show_all: false, width }));
            }
            Some(own) => (own.add_summary)(&mut out, width),
            None => out.push_str(&summary(document, width)),
        }
    }
    out
}

/// Builds one page of several documents: a table, then each document with the sections of its own page.
pub fn documents_html(documents: &[Named<'_>]) -> String {
    if let [(_, document)] = documents {
        return assess::html::html(document);
    }
    let mut parts = vec![Section::new("documents", "Documents", overview(documents))];
    for (at, (name, document)) in documents.iter().enumerate() {
        let prefix = format!("d{}", at + 1);
        let sections = assess::html::document_sections(document);
        parts.push(Section::group(&prefix, &clean(name), &clean(name), &sections, at == 0));
    }
    let footer = html! {
        footer { p class="small" { "Written by " code { "lowlat report render" } ". This page loads no external resources." } }
    };
    page("documents", &parts, &footer)
}

fn overview(documents: &[Named<'_>]) -> Markup {
    let lead = html! { "Each document with its verdict. Follow a name to its full report." };
    let body = html! {
        div class="card flush" {
            (data_table("Table of documents", "numbers", &["<Document", "<Host", "Score", "To change", "Interruptions per second and CPU", "Time lost", "Longest"], &html! {
                @for (at, of) in documents.iter().enumerate() { (row(at, of)) }
            }))
        }
        @for (at, (name, document)) in documents.iter().enumerate() {
            p class="note" { b { a href={ "#d" (at + 1) } { (clean(name)) } ": " } (micro(&sentences(document).join(" "))) }
        }
    };
    page_section("documents", "Documents", &lead, &body)
}

fn row(at: usize, (name, document): &Named<'_>) -> Markup {
    let study = document.jitter().and_then(|jitter| jitter.study.as_ref()).map(|study| &study.all);
    let dash = || "–".to_owned();
    html! {
        tr {
            th scope="row" class="left" { a href={ "#d" (at + 1) } { (clean(name)) } }
            td class="left" { (clean(&title_and_cpus(&document.snapshot).0)) }
            td { (document.audit.score.percent.map_or_else(dash, |percent| percent.to_string())) }
            td { (document.audit.faults().count()) }
            td { (study.and_then(|all| all.rate).map_or_else(dash, |of| rate(of.per_s))) }
            td { (study.and_then(|all| all.lost_share).map_or_else(dash, |share| micro(&percent(share * 100.0)))) }
            td { (study.and_then(|all| all.length_ns_max).map_or_else(dash, |ns| micro(&duration(ns)))) }
        }
    }
}
