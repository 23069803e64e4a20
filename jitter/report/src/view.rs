//! Parts of jitter in the summary and the page of a run.

use super::causes::words::longest_sentence;
use super::figures::Jitter;
use super::html;
use super::terminal::summary;
use crate::figures::JitterRun;
use lowlat_jitter::JitterMeasurement;
use lowlat_text::view::{View, ViewPage};
use std::rc::Rc;

/// Returns the view of a jitter run, which may say that it was not measured.
pub fn view(run: JitterRun<'_>) -> View<'_> {
    let page = Rc::new((Jitter::of(&run), run));
    let text = Rc::clone(&page);
    let (jitter, run) = &*page;
    View {
        kind: JitterMeasurement::KIND,
        sentence: jitter.as_ref().map(|jitter| longest_sentence(jitter.record, run.context.allocation)),
        doubts: jitter.as_ref().map(|jitter| jitter.record.warnings.clone()).unwrap_or_default(),
        add_summary: Box::new(move |out, width| {
            if let (Some(jitter), run) = &*text {
                summary::add(out, run, jitter, width);
            }
        }),
        page: Box::new(move || {
            let (jitter, run) = (page.0.as_ref(), &page.1);
            ViewPage {
                title: "Interruptions of user threads",
                verdict: html::head::head(run, jitter),
                tiles: html::head::run_tiles(run),
                sections: html::sections(run, jitter),
                parameters: jitter.map(|jitter| html::parameters(jitter.record)),
            }
        }),
    }
}
