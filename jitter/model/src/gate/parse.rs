//! The grammar of gates.

use super::{
    Gate, READY, ReadyGate,
    key::{Comparison, GateClause, GateKey, GateUnit, KEYS},
};
use std::ops::Range;

/// Maximum length of a gate in bytes.
const TEXT_BYTES_MAX: usize = 4_096;
/// Maximum number of characters that an error quotes.
const SHOWN_CHARS_MAX: usize = 60;
/// The largest limit; in seconds, thirty million years.
const NUMBER_MAX: f64 = 1e15;

const COMPARISONS: [Comparison; 4] =
    [Comparison::AtMost, Comparison::AtLeast, Comparison::Below, Comparison::Above];

/// Error in the text of a gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse gate \"{text}\": found {found} at column {}, expected {expected}", self.column())]
pub struct GateError {
    /// The user's text, truncated if too long.
    pub text: String,
    /// Position of the error, in bytes.
    pub span: Range<usize>,
    pub found: String,
    pub expected: String,
}

impl GateError {
    /// Start of the error in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.text.get(..self.span.start).map_or(0, |before| before.chars().count()) + 1
    }

    /// A line for display below the text, with `^` under the error.
    pub fn pointer(&self) -> String {
        let width = self.text.get(self.span.clone()).map_or(0, |text| text.chars().count()).max(1);
        format!("{}{}", " ".repeat(self.column() - 1), "^".repeat(width))
    }
}

impl Gate {
    /// Parses a gate.
    ///
    /// # Errors
    /// [`GateError`] with the position and what was expected there.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        if text.len() > TEXT_BYTES_MAX {
            let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
            return Err(GateError {
                span: 0..shown.len(),
                text: shown,
                found: format!("a text of {} bytes", text.len()),
                expected: format!("at most {TEXT_BYTES_MAX}"),
            });
        }
        let mut reader = Reader { text, at: 0 };
        let mut clauses = Vec::new();
        loop {
            match reader.ready() {
                Some(ready) => clauses.extend(Self::parse(ready.clauses)?.clauses),
                None => clauses.push(reader.clause()?),
            }
            if reader.skip_space().is_empty() {
                return Ok(Self { clauses });
            }
            if !reader.take(",") {
                return Err(reader.wrong(reader.word_length(), "a comma or the end"));
            }
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips white space and returns the remaining text.
    fn skip_space(&mut self) -> &'a str {
        let rest = self.rest();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// Consumes this text if it comes next.
    fn take(&mut self, wanted: &str) -> bool {
        let is_here = self.skip_space().starts_with(wanted);
        if is_here {
            self.at += wanted.len();
        }
        is_here
    }

    /// Length of the text that an error should mark: up to white space, a comma or a comparison, but at least
    /// one character.
    fn word_length(&self) -> usize {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | '<' | '>' | '='));
        end.unwrap_or(rest.len()).max(rest.chars().next().map_or(0, char::len_utf8))
    }

    /// Creates the error that something else was expected in place of the next `length` bytes.
    fn wrong(&self, length: usize, expected: impl Into<String>) -> GateError {
        let span = self.at..self.at + length;
        let raw = self.text.get(span.clone()).unwrap_or_default();
        let shown: String = raw.chars().take(SHOWN_CHARS_MAX).collect();
        let found = if shown.is_empty() { "the end".to_owned() } else { format!("\"{shown}\"") };
        GateError { text: self.text.to_owned(), span, found, expected: expected.into() }
    }

    /// Consumes the name of a ready gate if one comes next.
    fn ready(&mut self) -> Option<ReadyGate> {
        self.skip_space();
        let word = self.rest().get(..self.word_length())?;
        let ready = READY.into_iter().find(|ready| ready.name == word)?;
        self.at += word.len();
        Some(ready)
    }

    fn clause(&mut self) -> Result<GateClause, GateError> {
        let key = self.key()?;
        self.skip_space();
        let comparison = COMPARISONS.into_iter().find(|comparison| self.take(comparison.text()));
        let Some(comparison) = comparison else {
            return Err(self.wrong(self.word_length(), "<, <=, > or >="));
        };
        let number = self.number()?;
        Ok(GateClause { key, comparison, number, unit: self.unit(key)? })
    }

    fn key(&mut self) -> Result<GateKey, GateError> {
        self.skip_space();
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default().replace('-', "_");
        let Some((_, key, _)) = KEYS.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<&str> = KEYS.iter().map(|(name, ..)| *name).collect();
            let length = if end > 0 { end } else { self.word_length() };
            let ready = READY.map(|ready| ready.name).join(", ");
            let expected = format!("one of the keys {}, or the built-in gate {ready}", known.join(", "));
            return Err(self.wrong(length, expected));
        };
        self.at += end;
        Ok(*key)
    }

    fn number(&mut self) -> Result<f64, GateError> {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number =
            rest.get(..end).and_then(|text| text.parse().ok()).filter(|number: &f64| *number < NUMBER_MAX);
        let Some(number) = number else {
            let length = if end > 0 { end } else { self.word_length() };
            return Err(self.wrong(length, "a number such as 10 or 0.01"));
        };
        self.at += end;
        Ok(number)
    }

    fn unit(&mut self, key: GateKey) -> Result<GateUnit, GateError> {
        self.skip_space();
        // Up to white space or a comma.
        let rest = self.rest();
        let length = rest.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(rest.len());
        let text = rest.get(..length).unwrap_or_default();
        let text = if matches!(text, "µs" | "μs") { "us" } else { text };
        let Some(unit) = key.units().iter().find(|unit| unit.text() == text) else {
            let units: Vec<&str> = key.units().iter().map(|unit| unit.text()).collect();
            let expected = match units.as_slice() {
                [""] => format!("no unit ({} is a plain number)", key.name()),
                [one] => format!("the unit {one} ({} has no other)", key.name()),
                _ => format!("a unit of {} ({})", key.name(), units.join(", ")),
            };
            return Err(self.wrong(length, expected));
        };
        self.at += length;
        Ok(*unit)
    }
}
