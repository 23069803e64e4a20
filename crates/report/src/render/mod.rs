//! One or several documents as terminal text, Markdown or one page.

pub mod html;
pub mod markdown;
pub mod text;

use crate::assess::measurements;
use crate::audit::grouping::Tally;
use lowlat_result::ResultDocument;

/// A document with its name, usually that of its file.
pub type Named<'a> = (String, &'a ResultDocument);

/// Returns the verdict on a document in sentences: its settings, then each measurement.
fn sentences(document: &ResultDocument) -> Vec<String> {
    let settings = Tally::of(&document.audit).sentence(&document.audit);
    let views = measurements::views(document);
    let measured = views.iter().filter_map(|view| view.sentence());
    let warnings = document.audit.warnings.iter().cloned();
    warnings.chain([settings]).chain(measured).filter(|sentence| !sentence.is_empty()).collect()
}
