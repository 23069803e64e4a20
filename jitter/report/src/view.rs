//! Parts of jitter in the summary and the page of a run.

use super::causes::words::longest_sentence;
use super::figures::Jitter;
use super::html;
use super::terminal::summary;
use crate::figures::JitterRun;
use lowlat_jitter::JitterMeasurement;
use lowlat_text::page::Section;
use lowlat_text::view::{PageHead, View};
use maud::Markup;

struct JitterView<'a> {
    run: JitterRun<'a>,
    jitter: Option<Jitter<'a>>,
}

/// View of a run's jitter measurement.
pub fn view<'a>(run: JitterRun<'a>) -> Box<dyn View + 'a> {
    Box::new(JitterView { jitter: Jitter::of(&run), run })
}

impl View for JitterView<'_> {
    fn kind(&self) -> &'static str {
        JitterMeasurement::KIND
    }

    fn sentence(&self) -> Option<String> {
        self.jitter.as_ref().map(|jitter| longest_sentence(jitter.record, self.run.context.allocation))
    }

    fn doubts(&self) -> Vec<String> {
        self.jitter.as_ref().map(|jitter| jitter.record.warnings.clone()).unwrap_or_default()
    }

    fn add_summary(&self, out: &mut String, width: usize) {
        if let Some(jitter) = &self.jitter {
            summary::add(out, &self.run, jitter, width);
        }
    }

    fn tiles(&self) -> Markup {
        html::head::run_tiles(&self.run)
    }

    fn sections(&self) -> Vec<Section> {
        html::sections(&self.run, self.jitter.as_ref())
    }

    fn head(&self) -> PageHead {
        html::head::head(&self.run, self.jitter.as_ref())
    }

    fn parameters(&self) -> Option<Markup> {
        self.jitter.as_ref().map(|jitter| html::parameters(jitter.record))
    }
}
