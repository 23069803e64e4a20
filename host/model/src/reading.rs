//! One fact about a host, with the four possible results: known, absent, denied, unparsable.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One fact read from a host.
///
/// Zero is a value (`Known(0)`), never a placeholder for the other three results.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// The host returned a value, and it was understood.
    Known(T),
    /// The host does not have it: the file, attribute or bus does not exist.
    #[default]
    Absent,
    /// The host has it, but this user may not read it.
    Denied,
    /// The host returned something unexpected.
    Unparsable(Box<Unparsable>),
}

/// Unexpected content and its location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Unparsable {
    /// Its source: a path below the root, or the name of an interface.
    pub path: String,
    /// The raw text, truncated to [`Unparsable::RAW_CHARS_MAX`] characters, with control characters escaped.
    pub raw: String,
    /// Expected content, as a noun phrase ("a CPU list such as 0-3,8").
    pub expected: String,
}

impl Unparsable {
    /// Maximum number of characters kept of raw text, so that a hostile file cannot fill the report.
    pub const RAW_CHARS_MAX: usize = 160;

    /// Keeps the start of `raw`, with control characters made visible.
    pub fn new(path: impl Into<String>, raw: &str, expected: impl Into<String>) -> Self {
        let mut kept: String = raw.trim_end().chars().take(Self::RAW_CHARS_MAX).flat_map(visible).collect();
        if raw.trim_end().chars().nth(Self::RAW_CHARS_MAX).is_some() {
            kept.push('…');
        }
        Self { path: path.into(), raw: kept, expected: expected.into() }
    }
}

fn visible(c: char) -> Vec<char> {
    if c.is_control() && c != '\t' { c.escape_default().collect() } else { vec![c] }
}

impl fmt::Display for Unparsable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found \"{}\", expected {}", self.path, self.raw, self.expected)
    }
}

impl<T> Reading<T> {
    /// Creates an unparsable reading of `raw` found at `path`.
    pub fn unparsable(path: impl Into<String>, raw: &str, expected: impl Into<String>) -> Self {
        Self::Unparsable(Box::new(Unparsable::new(path, raw, expected)))
    }

    /// `Known` if what was found at `path` was understood, otherwise unparsable with its raw text.
    pub fn understood(
        value: Option<T>,
        path: impl Into<String>,
        raw: &str,
        expected: impl Into<String>,
    ) -> Self {
        value.map_or_else(|| Self::unparsable(path, raw, expected), Self::Known)
    }

    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            _ => None,
        }
    }

    /// The value, if known, consuming the reading.
    pub fn into_known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            _ => None,
        }
    }

    pub fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Converts the value, if known.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        self.and_then(|value| Reading::Known(f(value)))
    }

    /// Converts the value, if known, to another reading.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Self::Known(value) => f(value),
            Self::Absent => Reading::Absent,
            Self::Denied => Reading::Denied,
            Self::Unparsable(why) => Reading::Unparsable(why),
        }
    }

    /// A reading that borrows the value.
    pub fn as_ref(&self) -> Reading<&T> {
        match self {
            Self::Known(value) => Reading::Known(value),
            Self::Absent => Reading::Absent,
            Self::Denied => Reading::Denied,
            Self::Unparsable(why) => Reading::Unparsable(why.clone()),
        }
    }

    /// This reading if known, otherwise the other. If neither is known, the first that is not absent: a
    /// denied file must not look absent because its substitute is missing.
    #[must_use]
    pub fn or(self, other: impl FnOnce() -> Self) -> Self {
        if self.is_known() {
            return self;
        }
        let other = other();
        if other.is_known() || self.is_absent() { other } else { self }
    }

    /// `Known` if there is a value, otherwise `Absent`.
    pub fn from_option(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Known)
    }

    /// The result as text if there is no value: "absent", "denied", or what was found instead.
    pub fn missing_in_words(&self) -> Option<String> {
        match self {
            Self::Known(_) => None,
            Self::Absent => Some("absent".into()),
            Self::Denied => Some("denied (run as root to see it)".into()),
            Self::Unparsable(why) => Some(format!("unparsable: {why}")),
        }
    }
}

impl Reading<String> {
    /// Parses the text; invalid text becomes unparsable and keeps the raw text.
    pub fn parse<T>(self, path: &str, expected: &str, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
        self.and_then(|raw| Reading::understood(parse(raw.trim()), path, &raw, expected))
    }

    /// The known text, or the empty string.
    pub fn text(&self) -> &str {
        self.known().map_or("", String::as_str)
    }
}

impl<T: fmt::Display> fmt::Display for Reading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            other => f.write_str(&other.missing_in_words().unwrap_or_default()),
        }
    }
}

/// Number of readings that are true: "3", "at least 3" if others have no value, "an unknown number" if all have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    pub holds: usize,
    pub unread: usize,
    pub all: usize,
}

impl FromIterator<Reading<bool>> for Count {
    fn from_iter<I: IntoIterator<Item = Reading<bool>>>(readings: I) -> Self {
        readings.into_iter().fold(Self::default(), |count, reading| Self {
            holds: count.holds + usize::from(reading == Reading::Known(true)),
            unread: count.unread + usize::from(!reading.is_known()),
            all: count.all + 1,
        })
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { unread: 0, holds, .. } => holds.fmt(f),
            Self { unread, all, .. } if unread == all => f.write_str("an unknown number"),
            Self { holds, .. } => write!(f, "at least {holds}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_answers_differ_in_words_and_in_json() {
        let readings: [Reading<u32>; 4] = [
            Reading::Known(0),
            Reading::Absent,
            Reading::Denied,
            Reading::unparsable("/proc/x", "ju\0nk", "a number"),
        ];
        let words: Vec<String> = readings.iter().map(ToString::to_string).collect();
        assert_eq!(words[0], "0");
        assert_eq!(words[1], "absent");
        assert!(words[2].starts_with("denied"));
        assert_eq!(words[3], "unparsable: /proc/x: found \"ju\\u{0}nk\", expected a number");
        for reading in &readings {
            let json = serde_json::to_string(reading).unwrap();
            assert_eq!(&serde_json::from_str::<Reading<u32>>(&json).unwrap(), reading, "{json}");
        }
    }

    #[test]
    fn a_substitute_that_is_missing_hides_nothing() {
        use Reading::{Absent, Denied, Known};
        assert_eq!(Denied.or(|| Reading::<u32>::Absent), Denied);
        assert_eq!(Absent.or(|| Reading::<u32>::Denied), Denied);
        assert_eq!(Denied.or(|| Known(1)), Known(1));
        assert_eq!(Known(0).or(|| Known(1)), Known(0));
    }

    #[test]
    fn what_was_not_read_is_not_counted_as_false() {
        use Reading::{Absent, Denied, Known};
        let count = |readings: &[Reading<bool>]| readings.iter().cloned().collect::<Count>().to_string();
        assert_eq!(count(&[]), "0");
        assert_eq!(count(&[Known(false), Known(false)]), "0");
        assert_eq!(count(&[Known(true), Known(false)]), "1");
        assert_eq!(count(&[Known(false), Absent]), "at least 0");
        assert_eq!(count(&[Denied, Absent]), "an unknown number");
    }

    #[test]
    fn a_long_raw_text_is_cut() {
        let long = "x".repeat(5_000);
        let Reading::Unparsable(why) = Reading::<u32>::unparsable("/p", &long, "a number") else { panic!() };
        assert_eq!(why.raw.chars().count(), Unparsable::RAW_CHARS_MAX + 1);
    }
}
