//! How reports show a measurement.

use super::page::Section;
use maud::Markup;

/// One kind of measurement of a document as its summary and its page show it. A document without it has a view as
/// well, which says that it was not measured.
pub trait View {
    /// The kind of measurement, and the subcommand that makes it.
    fn kind(&self) -> &'static str;

    /// One sentence for the verdict on a whole run; `None` when it was not measured.
    fn sentence(&self) -> Option<String>;

    /// Adds its part of the summary of a whole run.
    fn add_summary(&self, out: &mut String, width: usize);

    /// Its tiles in the head of the page of a whole run.
    fn tiles(&self) -> Markup;

    /// Its sections of the page.
    fn sections(&self) -> Vec<Section>;

    /// The head of the page of its own subcommand.
    fn head(&self) -> Head;

    /// How it was measured, for the page's footer.
    fn parameters(&self) -> Option<Markup>;

    /// Settings that would have saved time in this run, with the nanoseconds.
    fn savings(&self) -> Vec<(&str, u64)>;
}

/// The head of a page.
#[derive(Debug)]
pub struct Head {
    /// What was done: "Interruptions of user threads".
    pub title: &'static str,
    /// What came of it: sentences, then tiles.
    pub verdict: Markup,
}
