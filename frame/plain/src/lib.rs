//! Text from outside, made safe to print, and the labels of documents. Pure: no I/O, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod printable;

use serde::{Deserialize, Serialize};

/// Name, title and note of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Labels {
    /// Name of the host; none if it is unknown or was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// Title that the user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Note that the user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Labels {
    /// Returns title, host name and note, as far as they are known.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        [&self.title, &self.host_name, &self.note].into_iter().flatten().map(String::as_str)
    }
}
