//! What is not done, and why.

use std::fmt::Display;
use thiserror::Error;

/// Why something is not done, in words for people: a sentence, mostly with a hint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{words}")]
pub struct Refusal {
    words: String,
    about: About,
}

/// What it is about, where the caller may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    AbsentPath,
    OtherPath,
    Else,
}

impl Refusal {
    /// With these words.
    pub fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), about: About::Else }
    }

    /// The words of an error.
    pub fn of(error: impl Display) -> Self {
        Self::new(error.to_string())
    }

    /// A path that is not used.
    pub(crate) fn path(words: String, is_absent: bool) -> Self {
        Self { words, about: if is_absent { About::AbsentPath } else { About::OtherPath } }
    }

    /// Whether a path does not exist.
    pub fn is_absent(&self) -> bool {
        self.about == About::AbsentPath
    }

    /// Whether a path is not used, as it is absent, unusable or used by another process.
    pub(crate) fn is_of_path(&self) -> bool {
        self.about != About::Else
    }
}
