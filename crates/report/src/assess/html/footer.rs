//! Instructions to reproduce the page.

use lowlat_result::ResultDocument;
use lowlat_text::units::clean;
use lowlat_text::view::View;
use maud::{Markup, html};

/// Builds the footer: commands and parameters.
pub fn footer(document: &ResultDocument, views: &[Box<dyn View + '_>]) -> Markup {
    html! {
        footer {
            h2 { "How to reproduce" }
            p {
                "Run " code { "lowlat " (clean(&document.command)) } " on the host with profile "
                code { (document.audit.profile.name()) } ". It changes nothing. The raw data behind this page, with every histogram, is in the result "
                "document of the same run (schema version " (document.schema_version) "). "
                code { "lowlat audit --explain ID" } " explains one setting in full."
            }
            @for view in views { @if let Some(how) = view.parameters() { p { (how) } } }
            p class="small" {
                "lowlat " (clean(&document.lowlat_version)) ", started " (clean(&document.started_at)) ", took "
                (format!("{:.0}", document.elapsed_s)) " s. This page loads no external resources."
            }
        }
    }
}
