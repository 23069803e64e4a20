//! HTML page of a result document.

mod first;
mod footer;
mod header;
mod warnings;

use super::measurements;
use crate::audit;
use crate::host::html::{allocation, environment, topology};
use crate::host::line::title_and_cpus;
use crate::shared::document::is_own_run;
use lowlat_result::ResultDocument;
use lowlat_text::page::{Section, page};
use lowlat_text::view::View;

/// Builds the page of a result document.
pub fn html(document: &ResultDocument) -> String {
    let (title, _) = title_and_cpus(&document.snapshot);
    let views = measurements::views(document);
    page(&title, &sections(document, &views), &footer::footer(document, &views))
}

/// Returns the sections of a document's page.
pub fn document_sections(document: &ResultDocument) -> Vec<Section> {
    sections(document, &measurements::views(document))
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
        Section::new("topology", "Topology", topology::section(document)),
        Section::new("allocation", "Allocation", allocation::section(document)),
    ];
    let findings = vec![Section::new("findings", "Findings", audit::html::section(document))];
    let mut sections = vec![Section::new("summary", "Summary", header::section(document, views, own))];
    if own.is_none() {
        sections.extend(first::section(document).map(|body| Section::new("first", "First", body)));
    }
    let parts = if own.is_some() { [measured, findings, host] } else { [host, findings, measured] };
    sections.extend(parts.into_iter().flatten());
    sections.push(Section::new("environment", "Environment", environment::section(document)));
    sections.push(Section::new("warnings", "Warnings", warnings::section(document)));
    sections
}
