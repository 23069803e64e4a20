//! JSON files that people write: read with an error that leads to the place.

use serde::de::DeserializeOwned;
use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};
use thiserror::Error;

/// Largest file that is read.
const JSON_BYTES_MAX: u64 = 1 << 30;

/// What is wrong with a file that somebody wrote.
#[derive(Debug, Error)]
pub enum InputError {
    /// It cannot be read.
    #[error("cannot read {}: {source}\nhint: check the path and its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something in it is not what it must be.
    #[error("cannot parse {}, line {line}, column {column}: found {found}, expected {expected}\nhint: {next_step}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// From 1; 0 when it is the file as a whole.
        line: u64,
        /// From 1; 0 when it is the line as a whole.
        column: u64,
        /// What stands there.
        found: String,
        /// What would be right.
        expected: String,
        /// What to do.
        next_step: String,
    },
}

/// A value of a file that is of the right type and still wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field's name as it stands in the file.
    pub field: &'static str,
    /// What it holds.
    pub found: String,
    /// What would be right.
    pub expected: String,
}

/// Reads a JSON file and checks it.
pub fn read_json<T: DeserializeOwned>(
    path: &Path,
    check: impl Fn(&T) -> Result<(), Fault>,
) -> Result<T, InputError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(JSON_BYTES_MAX + 1).read_to_string(&mut text));
    let read = read.and_then(|bytes| match bytes as u64 {
        0..=JSON_BYTES_MAX => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 GiB")),
    });
    read.map_err(|source| InputError::Read { path: path.to_owned(), source })?;
    parse_json(path, &text, check)
}

/// The same of a text; `path` only names it.
pub fn parse_json<T: DeserializeOwned>(
    path: &Path,
    text: &str,
    check: impl Fn(&T) -> Result<(), Fault>,
) -> Result<T, InputError> {
    let value: T = serde_json::from_str(text).map_err(|error| wrong_json(path, text, &error))?;
    check(&value).map_err(|fault| {
        let (line, column) = place_of(text, fault.field);
        InputError::Wrong {
            path: path.to_owned(),
            line,
            column,
            found: format!("{} {}", fault.field, fault.found),
            expected: fault.expected,
            next_step: "correct the value".to_owned(),
        }
    })?;
    Ok(value)
}

fn wrong_json(path: &Path, text: &str, error: &serde_json::Error) -> InputError {
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(before, _)| before);
    let (found, expected) = match message.split_once(", expected ") {
        Some((found, expected)) => (found.to_owned(), expected.to_owned()),
        None if error.is_eof() => {
            ("the end of the file".to_owned(), "the rest of the JSON object".to_owned())
        }
        None => {
            let line = error.line().checked_sub(1);
            let raw = line.and_then(|line| text.lines().nth(line)).unwrap_or_default().trim();
            (format!("{message} in '{raw}'"), "a JSON object with each field once".to_owned())
        }
    };
    let place = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    InputError::Wrong {
        path: path.to_owned(),
        line: place(error.line()),
        column: place(error.column()),
        found,
        expected,
        next_step: "correct the file there".to_owned(),
    }
}

/// Line and column of a field's name; zeros when the file leaves the field out.
fn place_of(text: &str, field: &str) -> (u64, u64) {
    let quoted = format!("\"{field}\"");
    (1..)
        .zip(text.lines())
        .find_map(|(line, content)| {
            let before = content.find(&quoted)?;
            let column = content.get(..before)?.chars().count() + 1;
            Some((line, u64::try_from(column).unwrap_or(u64::MAX)))
        })
        .unwrap_or((0, 0))
}
