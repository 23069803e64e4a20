//! Parts of jitter in the summary and the page of a run.

use super::causes::words::longest_sentence;
use super::figures::Jitter;
use super::html;
use super::terminal::summary;
use lowlat_jitter::JitterMeasurement;
use lowlat_results::ResultDocument;
use lowlat_text::page::Section;
use lowlat_text::view::{Head, View};
use maud::Markup;

struct JitterView<'a> {
    document: &'a ResultDocument,
    jitter: Option<Jitter<'a>>,
}

/// View of a document's jitter measurement.
pub fn view<'a>(document: &'a ResultDocument) -> Box<dyn View + 'a> {
    Box::new(JitterView { document, jitter: Jitter::of(document) })
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
}
