//! The page of a result document.

mod footer;
mod header;
mod warnings;

use crate::audit;
use crate::host::html::{allocation, environment, topology};
use crate::host::line::title_and_cpus;
use crate::jitter;
use crate::jitter::figures::Jitter;
use crate::shared::document::is_of_jitter;
use crate::shared::page::{Section, page};
use lowlat_result::ResultDocument;

/// The page of a result document.
pub fn html(document: &ResultDocument) -> String {
    let (title, _) = title_and_cpus(&document.snapshot);
    page(&title, &sections(document), &footer::footer(document))
}

/// The sections in their order. A page of `lowlat jitter` leads with what was measured, any other with the host.
fn sections(document: &ResultDocument) -> Vec<Section> {
    let jitter = Jitter::of(document);
    let jitter = jitter.as_ref();
    let measured = jitter::html::sections(document, jitter);
    let host = vec![
        Section::new("topology", "Topology", topology::section(document)),
        Section::new("allocation", "Allocation", allocation::section(document)),
    ];
    let findings = vec![Section::new("findings", "Findings", audit::html::section(document))];
    let mut sections = vec![Section::new("summary", "Summary", header::section(document, jitter))];
    let parts = if is_of_jitter(document) { [measured, findings, host] } else { [host, findings, measured] };
    sections.extend(parts.into_iter().flatten());
    sections.push(Section::new("environment", "Environment", environment::section(document)));
    sections.push(Section::new("warnings", "Warnings", warnings::section(document)));
    sections
}
