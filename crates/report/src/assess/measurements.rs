//! The measurements that reports show, in their order.

use crate::jitter;
use crate::shared::view::View;
use lowlat_result::ResultDocument;

/// Makes the view of a document's measurement of one kind.
type MakeView = for<'a> fn(&'a ResultDocument) -> Box<dyn View + 'a>;

/// A new kind of measurement adds its line here.
const VIEWS: &[MakeView] = &[jitter::view::view];

/// The views of a document.
pub fn views(document: &ResultDocument) -> Vec<Box<dyn View + '_>> {
    VIEWS.iter().map(|view| view(document)).collect()
}
