//! The next request to a server: its changes, the changes already pending, and the number of later requests.

use super::{
    BiosError, BiosExport, BiosFacts, Request,
    error::parse,
    export::LeftOutRow,
    facts::{Attributes, Server},
    meaning::{same_value, shown},
    restore::Restore,
    secrets::is_secret,
    shape::Place,
};
use serde::Serialize;
use serde_json::Value;

/// One attribute that a request changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttributeChange {
    pub attribute: String,
    /// Its value after the next restart without the request; `None` if the server does not have it.
    pub before: Option<Value>,
    pub after: Value,
}

/// A setting that is already pending, from an earlier change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    pub attribute: String,
    pub active: Value,
    pub pending: Value,
}

/// The next request. Each request needs a restart before the following one, so there is only one at a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BiosChange {
    pub server: Server,
    /// The request; `None` if nothing differs.
    pub request: Option<Request>,
    /// Its changes, without attributes that it only repeats.
    pub changes: Vec<AttributeChange>,
    /// Later requests, as far as known now.
    pub later_requests: usize,
    /// Settings that are already pending and take effect with this change.
    pub waiting: Vec<Waiting>,
    /// Settings that differ but are not sent.
    pub left_out: Vec<LeftOutRow>,
    pub warnings: Vec<String>,
}

impl BiosChange {
    /// The first request of an export.
    pub fn of(facts: &BiosFacts, export: &BiosExport) -> Self {
        Self {
            left_out: export.left_out.clone(),
            warnings: export.warnings.clone(),
            ..Self::next(facts, &export.steps)
        }
    }

    /// The next request to restore the settings that a saved export (`file`) contains. What no request can restore is
    /// left out, each with the reason.
    pub fn restoring(facts: &BiosFacts, file: &str, bytes: &[u8]) -> Result<Self, BiosError> {
        let mut target = saved_settings(facts, file, bytes)?;
        let missing: Vec<String> =
            target.keys().filter(|name| !facts.active.contains_key(*name)).cloned().collect();
        target.retain(|name, _| facts.active.contains_key(name));
        let Restore { steps, lost: mut left_out, computed } =
            Restore::plan(facts, &facts.after_restart(), &target);
        left_out.extend(missing.into_iter().map(|attribute| LeftOutRow {
            id: String::new(),
            attribute,
            why: "this BIOS has no such attribute".into(),
        }));
        let mut warnings = facts.warnings.clone();
        warnings
            .extend(computed.iter().map(|row| format!("{} is not restored: {}.", row.attribute, row.why)));
        Ok(Self { left_out, warnings, ..Self::next(facts, &steps) })
    }

    fn next(facts: &BiosFacts, steps: &[Request]) -> Self {
        let request = steps.first().cloned();
        Self {
            server: facts.server.clone(),
            changes: request.as_ref().map(|request| changes(facts, request)).unwrap_or_default(),
            request,
            later_requests: steps.len().saturating_sub(1),
            waiting: waiting(facts),
            left_out: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// True if two values mean the same.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    same_value(&shown(a), &shown(b))
}

fn changes(facts: &BiosFacts, request: &Request) -> Vec<AttributeChange> {
    let now = facts.after_restart();
    let sent = request.body.get("Attributes").and_then(Value::as_object).into_iter().flatten();
    sent.filter(|(name, value)| !now.get(*name).is_some_and(|now| is_same(now, value)))
        .map(|(name, value)| AttributeChange {
            attribute: name.clone(),
            before: now.get(name).cloned(),
            after: value.clone(),
        })
        .collect()
}

fn waiting(facts: &BiosFacts) -> Vec<Waiting> {
    let pair = |(name, pending): (&String, &Value)| {
        let active = facts.active.get(name).filter(|active| !is_same(active, pending))?;
        let value = |value: &Value| if is_secret(name) { Value::from("***") } else { value.clone() };
        Some(Waiting { attribute: name.clone(), active: value(active), pending: value(pending) })
    };
    facts.pending.iter().flatten().filter_map(pair).collect()
}

/// The settings in a saved export of this server.
fn saved_settings(facts: &BiosFacts, file: &str, bytes: &[u8]) -> Result<Attributes, BiosError> {
    let value = parse(file, bytes)?;
    let place = Place { file, path: "$".into(), value: &value };
    let document = place.required("document", "the text \"lowlat-bios-requests\"")?;
    if document.value != BiosExport::DOCUMENT {
        return Err(document.wrong("the text \"lowlat-bios-requests\""));
    }
    let version = place.required("schema_version", "a version that this lowlat supports")?;
    if version.value != BiosExport::SCHEMA_VERSION {
        return Err(
            version.wrong(&format!("version {}, which this lowlat supports", BiosExport::SCHEMA_VERSION))
        );
    }
    is_of_this_server(facts, &place)?;
    let snapshot = place.required("snapshot", "an object of attributes")?;
    let read = |(name, value): (&String, &Value)| {
        snapshot.child(name, value).scalar().map(|value| (name.clone(), value.clone()))
    };
    snapshot.object("an object of attributes")?.iter().map(read).collect()
}

/// The serial number is a BIOS setting on many servers, so a restore file with another one belongs to another
/// server.
fn is_of_this_server(facts: &BiosFacts, place: &Place<'_>) -> Result<(), BiosError> {
    let snapshot = place.required("snapshot", "an object of attributes")?;
    snapshot.object("an object of attributes")?;
    let model = place.value.pointer("/server/model").and_then(Value::as_str);
    if let (Some(theirs), Some(ours)) = (model, &facts.server.model)
        && theirs != ours
    {
        return Err(BiosError::other_server(place.file, &format!("the model is {theirs}")));
    }
    for name in ["SerialNumber", "SystemServiceTag"] {
        let theirs = snapshot.text_member(name)?.unwrap_or_default();
        let ours = facts.active.get(name).and_then(Value::as_str).unwrap_or(theirs);
        if theirs != ours {
            return Err(BiosError::other_server(place.file, &format!("{name} differs")));
        }
    }
    Ok(())
}
