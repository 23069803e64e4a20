//! Errors between lowlat and a service. Each suggests a next step; none contains a password or token.

use std::fmt;

/// Error of reading or changing a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct RedfishError {
    /// The message, with its hint if there is one.
    text: String,
    pub(crate) kind: Kind,
    /// The change was sent, but its outcome is not known.
    is_outcome_unknown: bool,
}

/// Kinds of errors that callers distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The resource does not exist.
    NotFound,
    /// The service refused the request, or failed.
    Refused,
    /// A link leads to another service, or an answer lacks a required part.
    Unusable,
    /// The answer to one request took too long.
    TimedOut,
    /// No complete answer arrived, though the service may have got the request.
    NoAnswer,
    /// The change did not take effect.
    Failed,
    Interrupted,
    Other,
}

impl Kind {
    /// An error of this kind.
    pub(crate) fn error(self, text: impl Into<String>) -> RedfishError {
        RedfishError { text: text.into(), kind: self, is_outcome_unknown: false }
    }
}

impl RedfishError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Kind::Other.error(text)
    }

    pub(crate) fn interrupted() -> Self {
        Kind::Interrupted.error("interrupted")
    }

    /// A required part of an answer is missing.
    pub(crate) fn shape(path: &str, expected: &str) -> Self {
        Kind::Unusable.error(format!(
            "the answer of {path} has no {expected}\nhint: check that this is a Redfish service"
        ))
    }

    /// A file named on the command line with `option` cannot be used.
    pub(crate) fn file(option: &str, path: &std::path::Path, why: impl fmt::Display) -> Self {
        Self::new(format!("cannot use {option} {}: {why}", path.display()))
    }

    pub(crate) fn needs_credentials(service: &str) -> Self {
        Self::new(format!("{service} requires credentials\nhint: give --user or --credentials-file"))
    }

    /// The same after the change was sent: its outcome is unknown.
    pub(crate) fn with_unknown_outcome(self) -> Self {
        let text = format!(
            "{}; the change had been sent and may take effect at the next restart\nhint: run `lowlat bios audit` to \
             check",
            self.without_hint()
        );
        Self { text, kind: self.kind, is_outcome_unknown: true }
    }

    /// The text without its hint, for use inside another sentence.
    pub fn without_hint(&self) -> &str {
        self.text.split("\nhint: ").next().unwrap_or_default()
    }

    pub fn is_interrupted(&self) -> bool {
        self.kind == Kind::Interrupted
    }

    /// True if a change was sent and its outcome is unknown.
    pub fn is_outcome_unknown(&self) -> bool {
        self.is_outcome_unknown
    }
}
