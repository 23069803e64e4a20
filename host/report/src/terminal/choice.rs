//! Explanation of the choice of CPUs.

use lowlat_host::Allocation;
use lowlat_text::text::{usable, wrap};
use lowlat_text::units::clean;

/// Columns before a step's text.
const INDENT: usize = 4;

/// Formats the numbered steps of the choice, then its warnings.
pub fn choice_text(allocation: &Allocation, width: usize) -> String {
    let steps = allocation.steps.iter().enumerate().map(|(at, step)| (format!("{:>2}.", at + 1), step));
    let warnings = allocation.warnings.iter().map(|warning| ("  !".to_owned(), warning));
    let mut out = String::new();
    for (label, text) in steps.chain(warnings) {
        for (at, line) in wrap(&clean(text), usable(width).saturating_sub(INDENT)).iter().enumerate() {
            let label = if at == 0 { label.as_str() } else { "" };
            out.push_str(&format!("{label:INDENT$}{line}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_warnings_are_wrapped_below_their_label() {
        let allocation = Allocation {
            steps: vec!["Online: CPUs 0-7, 8 in all, and a sentence that is longer than a line.".into()],
            warnings: vec!["Isolated CPUs share a cache.".into()],
            ..Allocation::default()
        };
        assert_eq!(
            choice_text(&allocation, 40),
            " 1. Online: CPUs 0-7, 8 in all, and a\n    sentence that is longer than a line.\n  ! Isolated CPUs share a cache.\n"
        );
    }
}
