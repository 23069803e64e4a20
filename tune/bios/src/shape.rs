//! A place in a JSON document, and checks of its content.

use super::{BiosError, meaning::shown, reader::ATTRIBUTES_MAX};
use serde_json::{Map, Value};

/// Maximum number of characters of hostile text in an error.
const REPEATED_CHARS_MAX: usize = 60;

/// A value with its file and JSON path, so that every error can name them.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub file: &'a str,
    pub path: String,
    pub value: &'a Value,
}

impl<'a> Place<'a> {
    pub fn wrong(&self, expected: &str) -> BiosError {
        self.shape("", &described(self.value), expected)
    }

    fn shape(&self, below: &str, found: &str, expected: &str) -> BiosError {
        let Self { file, path, .. } = self;
        BiosError(format!("cannot parse {file}: found {found} at {path}{below}, expected {expected}"))
    }

    pub fn object(&self, expected: &str) -> Result<&'a Map<String, Value>, BiosError> {
        self.value.as_object().ok_or_else(|| self.wrong(expected))
    }

    pub fn array(&self, expected: &str) -> Result<&'a Vec<Value>, BiosError> {
        self.value.as_array().ok_or_else(|| self.wrong(expected))
    }

    /// The items of an array.
    pub fn items(&self, expected: &str) -> Result<impl Iterator<Item = Place<'a>>, BiosError> {
        Ok(self.array(expected)?.iter().enumerate().map(|(index, value)| self.item(index, value)))
    }

    /// An error if a resource has more parts of a kind than any server.
    pub fn check_count(&self, count: usize, what: &str) -> Result<(), BiosError> {
        if count <= ATTRIBUTES_MAX {
            return Ok(());
        }
        Err(BiosError::too_many(self.file, &self.path, what, ATTRIBUTES_MAX))
    }

    pub fn text(&self, expected: &str) -> Result<&'a str, BiosError> {
        self.value.as_str().ok_or_else(|| self.wrong(expected))
    }

    /// A value of one attribute.
    pub fn scalar(&self) -> Result<&'a Value, BiosError> {
        match self.value {
            Value::Array(_) | Value::Object(_) => {
                Err(self.wrong("an attribute's value: a text, a number, true, false or null"))
            }
            scalar => Ok(scalar),
        }
    }

    /// A member of an object; `None` if absent or null.
    pub fn member(&self, name: &str) -> Option<Place<'a>> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(Place { file: self.file, path: format!("{}{}", self.path, key(name)), value })
    }

    /// A member of an object; an error if it is absent or null.
    pub fn required(&self, name: &str, expected: &str) -> Result<Place<'a>, BiosError> {
        self.member(name).ok_or_else(|| self.shape(&key(name), "nothing", expected))
    }

    pub fn item(&self, index: usize, value: &'a Value) -> Place<'a> {
        Place { file: self.file, path: format!("{}[{index}]", self.path), value }
    }

    pub fn child(&self, name: &str, value: &'a Value) -> Place<'a> {
        Place { file: self.file, path: format!("{}{}", self.path, key(name)), value }
    }

    /// A text member; `None` if absent.
    pub fn text_member(&self, name: &str) -> Result<Option<&'a str>, BiosError> {
        self.member(name).map(|place| place.text("a text")).transpose()
    }
}

/// A step of a JSON path: `.Name`, or `["@odata.id"]` if the name is not a word.
fn key(name: &str) -> String {
    let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_word { format!(".{name}") } else { format!("[{:?}]", cut(name)) }
}

fn cut(text: &str) -> String {
    let kept: String = text.chars().take(REPEATED_CHARS_MAX).collect();
    if kept.len() < text.len() { format!("{kept}...") } else { kept }
}

pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(members) => format!("an object of {} members", members.len()),
        Value::String(text) => format!("the text {:?}", cut(text)),
        Value::Bool(_) | Value::Number(_) => shown(value),
    }
}
