//! Variables and functions in the values of a profile.

use super::{Tree, functions};
use lowlat_host::HostSnapshot;
use regex_lite::Regex;
use std::collections::BTreeMap;

/// Longest value after expansion, in bytes.
const VALUE_BYTES_MAX: usize = 16 << 10;

/// Reason why a value has no expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The value is known only to TuneD on the host itself.
    Unknown(String),
    /// TuneD rejects the whole profile.
    Refused(String),
}

impl Stop {
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(why.into())
    }

    pub fn why(&self) -> &str {
        match self {
            Self::Unknown(why) | Self::Refused(why) => why,
        }
    }
}

/// Variables and host facts that values can refer to.
pub struct Scope<'a> {
    pub host: &'a HostSnapshot,
    pub tree: &'a dyn Tree,
    /// Each variable with its expanded value.
    pub variables: BTreeMap<String, Result<String, Stop>>,
    /// Reason why a variable that is missing here may still have a value.
    pub gap: Option<String>,
}

impl Scope<'_> {
    /// The value with its variables and functions replaced. Those that TuneD does not replace stay as written.
    pub fn expand(&self, value: &str) -> Result<String, Stop> {
        let with_variables = replace(value, |name| match (self.variables.get(name), &self.gap) {
            (Some(value), _) => Some(value.clone()),
            (None, Some(why)) if is_word(name) => Some(Err(Stop::unknown(why))),
            _ => None,
        })?;
        let text = self.call_all(&unescaped(r"\\(\$\{\w+\})", &with_variables))?;
        Ok(unescaped(r"\\(\$\{f:.*\})", &text))
    }

    /// Replaces functions from the inside out.
    fn call_all(&self, text: &str) -> Result<String, Stop> {
        let mut text: Vec<char> = text.chars().collect();
        let mut open: Vec<(usize, bool)> = Vec::new();
        let (mut at, mut is_escaped) = (0, false);
        while let Some(&char) = text.get(at) {
            if char == '}' {
                // TuneD stops at an unmatched bracket.
                let Some((from, was_escaped)) = open.pop() else { break };
                let inner: String = text[from..at].iter().collect();
                if let Some(call) = inner.strip_prefix("${f").filter(|_| !was_escaped)
                    && let Some(value) = self.call(call)?
                {
                    let value: Vec<char> = value.chars().collect();
                    let end = (from + value.len()).saturating_sub(1);
                    text.splice(from..=at, value);
                    at = end;
                    if text.len() > VALUE_BYTES_MAX {
                        return Err(Stop::unknown("its value is too long"));
                    }
                }
            } else if text[at..].starts_with(&['$', '{']) {
                open.push((at, is_escaped));
            }
            is_escaped = text.get(at) == Some(&'\\');
            at += 1;
        }
        Ok(text.into_iter().collect())
    }

    /// Calls `:NAME:ARGUMENT…`; none if TuneD leaves the call as written.
    fn call(&self, call: &str) -> Result<Option<String>, Stop> {
        // An escaped colon is part of an argument.
        let parts: Vec<String> =
            call.replace("\\:", "\0").split(':').map(|part| part.replace('\0', ":")).collect();
        match parts.as_slice() {
            [start, name, arguments @ ..] if start.is_empty() && is_word(name) => {
                functions::call(self, name, arguments)
            }
            _ => Ok(None),
        }
    }
}

pub fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|char| char.is_alphanumeric() || char == '_')
}

/// Replaces each `${name}` that has a value, unless a backslash precedes it. The new text is not searched again.
pub fn replace(text: &str, value: impl Fn(&str) -> Option<Result<String, Stop>>) -> Result<String, Stop> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        if text.len().max(out.len()) > VALUE_BYTES_MAX {
            return Err(Stop::unknown("its value is too long"));
        }
        out.push_str(before);
        let is_escaped = before.ends_with('\\');
        let named = after.split_once('}').filter(|_| !is_escaped);
        if let Some((value, tail)) = named.and_then(|(name, tail)| Some((value(name)?, tail))) {
            out.push_str(&value?);
            rest = tail;
        } else {
            out.push_str("${");
            rest = after;
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Removes the backslashes before what the pattern's group matches.
fn unescaped(pattern: &str, text: &str) -> String {
    Regex::new(pattern).map_or_else(|_| text.to_owned(), |regex| regex.replace_all(text, "$1").into_owned())
}
