//! Warnings: reasons to doubt the document.

use lowlat_result::ResultDocument;
use lowlat_text::page::section as page_section;
use lowlat_text::units::clean;
use maud::{Markup, html};

/// Builds a list with each warning once.
pub fn section(document: &ResultDocument) -> Markup {
    let warnings = crate::shared::document::all_warnings(document);
    let lead = html! { "Reasons why this page may be inaccurate or incomplete." };
    let body = html! {
        @if warnings.is_empty() {
            p class="empty" { "None." }
        } @else {
            ul class="warnings" { @for warning in &warnings { li { (clean(warning)) } } }
        }
    };
    page_section("warnings", "Warnings", &lead, &body)
}
