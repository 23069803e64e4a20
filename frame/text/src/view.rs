//! Interface between reports and the kinds of measurement.

use crate::page::{Section, micro};
use crate::units::clean;
use maud::{Markup, html};

/// Adds to a summary, for a terminal of a width.
type AddSummary<'a> = dyn Fn(&mut String, usize) + 'a;

/// Kind of measurement as the summary and the page show it. A document without this measurement also has a view, which
/// says that it was not measured.
pub struct View<'a> {
    /// The kind of measurement, which is also its subcommand.
    pub kind: &'static str,
    /// One sentence for the verdict on a whole run, or `None` if it was not measured.
    pub sentence: Option<String>,
    /// What makes its figures doubtful, one sentence each: the caveats that its text shows.
    pub doubts: Vec<String>,
    /// Adds its part of the summary of a whole run, for a terminal of this width.
    pub add_summary: Box<AddSummary<'a>>,
    pub page: Box<dyn Fn() -> ViewPage + 'a>,
}

/// What pages show of a measurement.
pub struct ViewPage {
    /// Title of its own subcommand's page: "Interruptions of user threads".
    pub title: &'static str,
    /// The result of its own subcommand's page: sentences, then tiles.
    pub verdict: Markup,
    /// Tiles for the head of the page of a whole run.
    pub tiles: Markup,
    pub sections: Vec<Section>,
    /// The parameters of the measurement, for the page's footer.
    pub parameters: Option<Markup>,
}

/// Builds a page's result: a sentence without its full stop, whether the run was interrupted, more sentences, tiles.
pub fn verdict(headline: &str, is_interrupted: bool, sentences: &[String], tiles: &Markup) -> Markup {
    html! {
        p class="verdict" { (micro(&clean(headline))) "." }
        @if is_interrupted {
            p class="note" { "The run was interrupted; this page shows its results up to then." }
        }
        @for sentence in sentences { p { (micro(&clean(sentence))) } }
        div class="tiles" { (tiles) }
    }
}
