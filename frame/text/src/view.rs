//! Interface between reports and the kinds of measurement.

use crate::page::Section;
use maud::Markup;

/// Kind of measurement as the summary and the page show it. A document without this measurement also has a view, which
/// says that it was not measured.
pub trait View {
    /// Returns the kind of measurement, which is also its subcommand.
    fn kind(&self) -> &'static str;

    /// Returns one sentence for the verdict on a whole run, or `None` if it was not measured.
    fn sentence(&self) -> Option<String>;

    /// Returns what makes its figures doubtful, one sentence each: the caveats that its text shows.
    fn doubts(&self) -> Vec<String>;

    /// Adds its part of the summary of a whole run.
    fn add_summary(&self, out: &mut String, width: usize);

    /// Returns its tiles for the head of the page of a whole run.
    fn tiles(&self) -> Markup;

    /// Returns its sections of the page.
    fn sections(&self) -> Vec<Section>;

    /// Returns the head of its own subcommand's page.
    fn head(&self) -> PageHead;

    /// Returns the parameters of the measurement, for the page's footer.
    fn parameters(&self) -> Option<Markup> {
        None
    }
}

#[derive(Debug)]
pub struct PageHead {
    /// Title: "Interruptions of user threads".
    pub title: &'static str,
    /// The page's result: sentences, then tiles.
    pub verdict: Markup,
}
