//! Why a text is not what sysjitter writes.

/// Characters of a raw line that an error repeats.
const SHOWN_CHARS_MAX: usize = 120;

/// A line that is not what sysjitter writes there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: \"{raw}\" where {expected} was expected; is the file whole, and from sysjitter or lowlat?"
)]
pub struct SysjitterError {
    /// Its number, from 1; one beyond the last when the text ends too early.
    pub line: usize,
    /// The line, cut when long; "end of file" when there is none.
    pub raw: String,
    /// What should stand there.
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
