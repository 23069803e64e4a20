//! How to get this page again.

use crate::shared::units::clean;
use crate::shared::view::View;
use lowlat_result::ResultDocument;
use maud::{Markup, html};

/// Commands and parameters.
pub fn footer(document: &ResultDocument, views: &[Box<dyn View + '_>]) -> Markup {
    html! {
        footer {
            h2 { "How to reproduce" }
            p {
                "Run " code { "lowlat " (clean(&document.command)) } " on the host with profile "
                code { (document.audit.profile.name()) } ". It changes nothing. The raw record behind this page, with every histogram, is the result "
                "document of the same run (schema version " (document.schema_version) "). "
                code { "lowlat audit --explain ID" } " tells the whole story of one setting."
            }
            @for view in views { @if let Some(how) = view.parameters() { p { (how) } } }
            p class="small" {
                "lowlat " (clean(&document.lowlat_version)) ", begun " (clean(&document.started_at)) ", took "
                (format!("{:.0}", document.elapsed_s)) " s. This page loads nothing from anywhere."
            }
        }
    }
}
