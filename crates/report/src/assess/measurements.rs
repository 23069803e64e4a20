//! Measurements that reports show, in order.

use crate::shared::view::View;
use crate::{jitter, net};
use lowlat_result::ResultDocument;

/// Constructor of the view of one kind of measurement.
type MakeView = for<'a> fn(&'a ResultDocument) -> Box<dyn View + 'a>;

/// Constructors of all views. A new kind of measurement adds its line here.
const VIEWS: &[MakeView] = &[jitter::view::view, net::view::view];

/// Returns the views of a document.
pub fn views(document: &ResultDocument) -> Vec<Box<dyn View + '_>> {
    VIEWS.iter().map(|view| view(document)).collect()
}
