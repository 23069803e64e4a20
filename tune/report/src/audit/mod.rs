//! Judged settings: tables, the full explanation of one, a section of the page.

pub mod explain;
pub mod grouping;
pub mod html;
pub mod terminal;

use anstyle::Style;
use lowlat_settings::Verdict;
use lowlat_text::text::{DIM, GREEN, RED, YELLOW};

/// Returns the style of a verdict.
pub fn verdict_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Wrong | Verdict::Conflicting => RED,
        Verdict::Ineffective | Verdict::Shadowed => YELLOW.bold(),
        Verdict::Unknown => YELLOW,
        Verdict::Good => GREEN,
        Verdict::NotApplicable => DIM,
    }
}

/// Returns the CSS class of a verdict.
pub fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NotApplicable => "na",
        other => other.word(),
    }
}
