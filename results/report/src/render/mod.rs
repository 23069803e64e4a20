//! One or several documents as terminal text, Markdown or one page.

pub mod html;
pub mod markdown;

use crate::assess::{
    measurements::{is_own_run, jitter_text, views},
    summary::summary,
};
use lowlat_jitter::JitterMeasurement;
use lowlat_jitter_report::JitterTextOptions;
use lowlat_results::ResultDocument;
use lowlat_text::text::{BOLD, paint, usable};
use lowlat_text::units::clean;
use lowlat_tune_report::audit::grouping::Tally;

/// A document with its name, usually that of its file.
pub type Named<'a> = (String, &'a ResultDocument);

/// Returns the verdict on a document in sentences: its settings, then each measurement.
fn sentences(document: &ResultDocument) -> Vec<String> {
    let settings = Tally::of(&document.audit).sentence(&document.audit);
    let views = views(document);
    let measured = views.iter().filter_map(|view| view.sentence());
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
        match views.iter().find(|view| is_own_run(document, view.kind())) {
            Some(jitter) if jitter.kind() == JitterMeasurement::KIND => {
                out.push_str(&jitter_text(document, JitterTextOptions { show_all: false, width }));
            }
            Some(own) => own.add_summary(&mut out, width),
            None => out.push_str(&summary(document, width)),
        }
    }
    out
}
