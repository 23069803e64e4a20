//! Parts of jitter in the summary and the page of a run.

use super::causes::words::longest_sentence;
use super::figures::Jitter;
use super::html;
use super::terminal::summary;
use lowlat_jitter::{JitterMeasurement, RemedyContext, savings};
use lowlat_result::ResultDocument;
use lowlat_text::page::Section;
use lowlat_text::view::{Head, View};
use maud::Markup;
use std::collections::BTreeMap;

struct JitterView<'a> {
    document: &'a ResultDocument,
    jitter: Option<Jitter<'a>>,
    savings: BTreeMap<String, u64>,
}

/// View of a document's jitter measurement.
pub fn view<'a>(document: &'a ResultDocument) -> Box<dyn View + 'a> {
    let jitter = Jitter::of(document);
    let (host, allocation, role) = (&document.snapshot, &document.allocation, &document.role);
    let context = RemedyContext { host, allocation, role };
    let savings = jitter.as_ref().map(|jitter| savings(jitter.record, &jitter.study, &context));
    Box::new(JitterView { document, jitter, savings: savings.unwrap_or_default() })
}

impl View for JitterView<'_> {
    fn kind(&self) -> &'static str {
        JitterMeasurement::KIND
    }

    fn sentence(&self) -> Option<String> {
        self.jitter.as_ref().map(|jitter| longest_sentence(self.document, jitter.record))
    }

    fn doubts(&self) -> Vec<String> {
        self.jitter.as_ref().map(|jitter| jitter.record.warnings.clone()).unwrap_or_default()
    }

    fn add_summary(&self, out: &mut String, width: usize) {
        if let Some(jitter) = &self.jitter {
            summary::add(out, self.document, jitter, width);
        }
    }

    fn tiles(&self) -> Markup {
        html::head::run_tiles(self.document)
    }

    fn sections(&self) -> Vec<Section> {
        html::sections(self.document, self.jitter.as_ref())
    }

    fn head(&self) -> Head {
        html::head::head(self.document, self.jitter.as_ref())
    }

    fn parameters(&self) -> Option<Markup> {
        self.jitter.as_ref().map(|jitter| html::parameters(jitter.record))
    }

    fn savings(&self) -> Vec<(&str, u64)> {
        self.savings.iter().map(|(id, ns)| (id.as_str(), *ns)).collect()
    }
}
