//! Builder for a text of sections and labelled facts.

use lowlat_host::Reading;
use lowlat_text::text::{add_detail, add_field, add_heading};
use lowlat_text::units::clean;
use std::fmt::Display;

/// Width of the label column.
pub const LABEL_WIDTH: usize = 18;

/// Text under construction, with its width.
pub struct Page {
    pub out: String,
    pub width: usize,
}

impl Page {
    /// Adds a labelled text; an empty one adds nothing.
    pub fn field(&mut self, label: &str, text: &str) {
        add_field(&mut self.out, label, &clean(text), LABEL_WIDTH, self.width);
    }

    /// Adds a labelled fact. An absent fact adds nothing; a denied or unparsable one is shown as such.
    pub fn fact<T: Display>(&mut self, label: &str, reading: &Reading<T>) {
        self.field(label, &fact(reading));
    }

    pub fn heading(&mut self, title: &str) {
        add_heading(&mut self.out, title);
    }

    pub fn note(&mut self, text: &str) {
        add_detail(&mut self.out, text, self.width);
    }
}

/// Returns the text of a fact, empty if it is absent.
pub fn fact<T: Display>(reading: &Reading<T>) -> String {
    if reading.is_absent() { String::new() } else { reading.to_string() }
}

/// Returns the text of a known fact, "unknown" for an absent one, and the reason for others.
pub fn or_unknown<T: Display>(reading: &Reading<T>) -> String {
    match reading {
        Reading::Known(value) => value.to_string(),
        Reading::Absent => "unknown".to_owned(),
        other => format!("unknown: {other}"),
    }
}

/// Returns the text "yes" or "no".
pub fn yes_no(reading: &Reading<bool>) -> Reading<&'static str> {
    reading.as_ref().map(|value| if *value { "yes" } else { "no" })
}
