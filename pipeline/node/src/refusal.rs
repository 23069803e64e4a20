//! Errors as sentences for people.

use std::fmt::Display;
use thiserror::Error;

/// An error in words for people: a sentence, usually with a hint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{words}")]
pub struct Refusal {
    words: String,
    about: About,
}

/// Subject of the error, for callers that can continue after some errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    AbsentPath,
    OtherPath,
    Else,
}

impl Refusal {
    pub fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), about: About::Else }
    }

    /// The words of an error.
    pub fn of(error: impl Display) -> Self {
        Self::new(error.to_string())
    }

    /// Creates the error for a path that is not used.
    pub fn path(words: String, is_absent: bool) -> Self {
        Self { words, about: if is_absent { About::AbsentPath } else { About::OtherPath } }
    }

    /// True if the error is about a path that does not exist.
    pub fn is_absent(&self) -> bool {
        self.about == About::AbsentPath
    }

    /// True if the error is about a path that is absent, unusable or used by another process.
    pub fn is_of_path(&self) -> bool {
        self.about != About::Else
    }
}
