//! Why a text is not in sysjitter's format.

/// Maximum number of characters of a raw line in an error.
const SHOWN_CHARS_MAX: usize = 120;

/// A line that is not in sysjitter's format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: found \"{raw}\", expected {expected}; check that the file is complete and was written by \
     sysjitter or lowlat"
)]
pub struct SysjitterError {
    /// Its number, counted from 1; one beyond the last if the text ends too early.
    pub line: usize,
    /// The line, truncated if long; "end of file" if there is none.
    pub raw: String,
    /// What was expected.
    pub expected: String,
}

impl SysjitterError {
    pub(super) fn at(line: usize, raw: &str, expected: impl Into<String>) -> Self {
        let shown: String = raw.chars().take(SHOWN_CHARS_MAX).collect();
        let cut = if shown.len() < raw.len() { "..." } else { "" };
        Self { line, raw: format!("{shown}{cut}"), expected: expected.into() }
    }

    pub(super) fn at_end(line: usize, expected: impl Into<String>) -> Self {
        Self::at(line, "end of file", expected)
    }
}
