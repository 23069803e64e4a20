//! The judged settings: tables, the whole story of one, a section of the page.

pub mod explain;
pub mod grouping;
pub mod html;
pub mod terminal;

use crate::shared::text::{DIM, GREEN, RED, YELLOW};
use anstyle::Style;
use lowlat_settings::Verdict;

/// The style of a verdict.
pub fn verdict_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Wrong | Verdict::Conflicting => RED,
        Verdict::Ineffective | Verdict::Shadowed => YELLOW.bold(),
        Verdict::Unknown => YELLOW,
        Verdict::Good => GREEN,
        Verdict::NotApplicable => DIM,
    }
}

/// The name of a verdict's colour.
pub fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NotApplicable => "na",
        other => other.word(),
    }
}
