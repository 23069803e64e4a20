//! Names of hosts, titles and notes in documents and pages.

use crate::output;
use clap::Args;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::Labels;
use lowlat_host_run::Root;
use lowlat_pipeline::{ExchangeDocument, MatrixDocument, PipelineDocument, size::SizeDocument};
use lowlat_plan::proof::PlanProof;
use lowlat_results::ResultDocument;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Stands for the name of a host.
const ANONYMOUS: &str = "host";
/// A shorter name is too likely to be part of other words.
const NAME_CHARS_MIN: usize = 3;

/// What names a document and its page for people.
#[derive(Debug, Clone, Default, Args)]
pub struct LabelArgs {
    /// Put this title into the document and on the page
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Put this note into the document and on the page
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Leave the host's name out of the document and the page
    #[arg(long)]
    pub anonymous: bool,
}

/// A document that has labels.
pub trait Labelled: Serialize + DeserializeOwned {
    /// Its kind and the version of its format.
    const KIND: (&'static str, u32);

    fn labels(&mut self) -> &mut Labels;

    /// Leaves out paths that the user named, which often contain the name of a host.
    fn leave_out_paths(&mut self) {}
}

impl Labelled for ResultDocument {
    const KIND: (&'static str, u32) = (Self::DOCUMENT, Self::SCHEMA_VERSION);

    fn labels(&mut self) -> &mut Labels {
        &mut self.labels
    }

    fn leave_out_paths(&mut self) {
        let origin = &mut self.snapshot.origin;
        if origin.label != "/" {
            let path = std::mem::replace(&mut origin.label, ANONYMOUS.to_owned());
            for warning in &mut self.warnings {
                *warning = warning.replace(&path, ANONYMOUS);
            }
        }
    }
}

macro_rules! labelled {
    ($($document:ty),*) => {$(
        impl Labelled for $document {
            const KIND: (&'static str, u32) = (Self::DOCUMENT, Self::SCHEMA_VERSION);

            fn labels(&mut self) -> &mut Labels {
                &mut self.labels
            }
        }
    )*};
}
labelled!(ExchangeDocument, MatrixDocument, PipelineDocument, PlanProof, SizeDocument);

/// A result of several documents, with labels.
#[derive(Serialize)]
pub struct WithLabels<'a, T> {
    #[serde(flatten)]
    pub labels: &'a Labels,
    #[serde(flatten)]
    pub result: &'a T,
}

/// Returns the name of a host; `None` if it is unknown or was overwritten in a capture.
pub fn host_name(root: &Root, is_redacted: bool) -> Option<String> {
    let name = root.read("/proc/sys/kernel/hostname").into_known()?.trim().to_owned();
    (!is_redacted && !name.is_empty() && name != "(none)").then_some(name)
}

impl LabelArgs {
    /// Labels a new document of a host of this name.
    pub fn label_new<D: Labelled>(&self, mut document: D, host_name: Option<String>) -> D {
        document.labels().host_name = host_name;
        self.label(document)
    }

    /// Puts title and note into a document, and leaves out the host's name if requested.
    pub fn label<D: Labelled>(&self, mut document: D) -> D {
        let labels = document.labels();
        labels.title = self.title.clone().or(labels.title.take());
        labels.note = self.note.clone().or(labels.note.take());
        if self.anonymous { without_host_name(document) } else { document }
    }

    /// Returns the labels of a page of several documents.
    pub fn of_all<'a>(&self, documents: impl Iterator<Item = &'a Labels>) -> Labels {
        let mut names: Vec<&str> = Vec::new();
        for name in documents.filter_map(|labels| labels.host_name.as_deref()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let host_name = (!names.is_empty() && !self.anonymous).then(|| names.join(", "));
        Labels { host_name, title: self.title.clone(), note: self.note.clone() }
    }
}

/// Returns the document with `ANONYMOUS` in place of the host's name, wherever that is a whole word.
fn without_host_name<D: Labelled>(mut document: D) -> D {
    document.leave_out_paths();
    let Some(name) = document.labels().host_name.take() else { return document };
    let short = name.split('.').next().unwrap_or_default();
    let replaced = || {
        // By way of the text, for which there is code already.
        let mut value = serde_json::to_string(&document).and_then(|text| serde_json::from_str(&text)).ok()?;
        for name in [name.as_str(), short].into_iter().filter(|name| is_unmistakable(name)) {
            leave_out(&mut value, name);
        }
        serde_json::from_slice(value.to_string().as_bytes()).ok()
    };
    match replaced() {
        Some(document) if is_unmistakable(short) => document,
        other => {
            output::talk(
                "warning: the host's name is also an ordinary word, so it may remain in other fields",
            );
            other.unwrap_or(document)
        }
    }
}

/// True if a name cannot be mistaken for a number or for one of lowlat's own words.
fn is_unmistakable(name: &str) -> bool {
    let is_part = |id: &str| id.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
    name.len() >= NAME_CHARS_MIN
        && name != "localhost"
        && !name.bytes().all(|byte| byte.is_ascii_digit())
        && !CATALOGUE.ids().any(is_part)
}

fn leave_out(value: &mut Value, name: &str) {
    match value {
        Value::String(text) => *text = without(text, name),
        Value::Array(items) => items.iter_mut().for_each(|item| leave_out(item, name)),
        Value::Object(fields) => {
            let left = std::mem::take(fields).into_iter().map(|(key, mut value)| {
                leave_out(&mut value, name);
                (without(&key, name), value)
            });
            *fields = left.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the text with `ANONYMOUS` in place of `name`, wherever that is a whole word.
fn without(text: &str, name: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, found) = rest.split_at(at);
        let after = &found[name.len()..];
        out.push_str(before);
        let is_word = !out.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        out.push_str(if is_word { ANONYMOUS } else { name });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_where_they_are_words() {
        assert_eq!(
            without("root@desk7: desk7-vg, desk77, xdesk7 desk7", "desk7"),
            "root@host: host-vg, desk77, xdesk7 host"
        );
        assert!(is_unmistakable("desk7") && is_unmistakable("db1.lab.example"));
        for name in ["net", "kernel", "db", "1234", "localhost"] {
            assert!(!is_unmistakable(name), "{name}");
        }
    }

    #[test]
    fn every_command_that_writes_a_document_or_a_page_has_labels() {
        let mut commands = vec![crate::commands::cli()];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let has = |id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
            if ["lang", "result", "html", "report"].into_iter().any(has) {
                for id in ["title", "note", "anonymous"] {
                    assert!(has(id), "{} has no --{id}", command.get_name());
                }
            }
        }
    }

    #[test]
    fn fields_and_keys_lose_the_name() {
        let mut value = serde_json::json!({"a": ["on desk7", 7], "desk7": {"b": "desk7.lab"}});
        leave_out(&mut value, "desk7");
        assert_eq!(value, serde_json::json!({"a": ["on host", 7], "host": {"b": "host.lab"}}));
    }
}
