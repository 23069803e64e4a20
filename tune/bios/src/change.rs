//! The next request to a server: its changes, the changes already pending, and the number of later requests.

use super::{
    BiosError, BiosExport, BiosFacts, Request,
    error::parse,
    export::{LeftOutRow, RESTART, id_of, is_secret},
    facts::Server,
    meaning::{same_value, shown},
    shape::Place,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum number of requests in a saved export.
const STEPS_MAX: usize = 16;

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

    /// The next request to restore a saved export (`file`). Requests whose settings are already in place, or
    /// now controlled by others, are skipped.
    pub fn restoring(facts: &BiosFacts, file: &str, bytes: &[u8]) -> Result<Self, BiosError> {
        let steps = saved_restore(facts, file, bytes)?;
        let now = facts.after_restart();
        let locked = facts.effects(&now).locked;
        let is_open = |step: &Request| {
            changes(facts, step).iter().any(|change| !locked.contains_key(&change.attribute))
        };
        let left_out = if steps.iter().any(is_open) {
            Vec::new()
        } else {
            steps
                .iter()
                .flat_map(|step| changes(facts, step))
                .map(|change| held(facts, change, &locked))
                .collect()
        };
        let open: Vec<Request> = steps.into_iter().filter(is_open).collect();
        Ok(Self { left_out, warnings: facts.warnings.clone(), ..Self::next(facts, &open) })
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

/// A setting to restore that another one controls.
fn held(facts: &BiosFacts, change: AttributeChange, locked: &BTreeMap<String, String>) -> LeftOutRow {
    let before = change.before.as_ref().map_or_else(|| "nothing".into(), shown);
    let holder = locked.get(&change.attribute).map_or("another setting", String::as_str);
    LeftOutRow {
        id: id_of(facts, &change.attribute).unwrap_or_default().into(),
        why: format!("it was {}, is {before}, and {holder} controls it", shown(&change.after)),
        attribute: change.attribute,
    }
}

fn is_same(a: &Value, b: &Value) -> bool {
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

/// The restore requests of a saved export; they are sent to this server's address for changes.
fn saved_restore(facts: &BiosFacts, file: &str, bytes: &[u8]) -> Result<Vec<Request>, BiosError> {
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
    let wanted = "an array of requests";
    let restore = place.required("restore", wanted)?;
    if restore.array(wanted)?.len() > STEPS_MAX {
        return Err(restore.wrong(&format!("at most {STEPS_MAX} requests")));
    }
    let read = |step: Place<'_>| {
        let body = step.required("body", "the body of a request")?;
        let attributes = body.required("Attributes", "an object of attributes")?;
        for (name, value) in attributes.object("an object of attributes")? {
            let attribute = attributes.child(name, value);
            attribute.scalar()?;
            if !facts.active.contains_key(name) {
                let why = format!("this one has no attribute {name:?}");
                return Err(BiosError::other_server(file, &why));
            }
        }
        let uri = facts.settings_uri.clone();
        Ok(Request { method: "PATCH", uri, body: body.value.clone(), then: RESTART })
    };
    restore.items(wanted)?.map(read).collect()
}

/// The serial number is a BIOS setting on many servers, so a restore file with another one belongs to another
/// server.
fn is_of_this_server(facts: &BiosFacts, place: &Place<'_>) -> Result<(), BiosError> {
    let snapshot = place.required("snapshot", "an object of attributes")?;
    snapshot.object("an object of attributes")?;
    for name in ["SerialNumber", "SystemServiceTag"] {
        let theirs = snapshot.text_member(name)?.unwrap_or_default();
        let ours = facts.active.get(name).and_then(Value::as_str).unwrap_or(theirs);
        if theirs != ours {
            return Err(BiosError::other_server(place.file, &format!("{name} differs")));
        }
    }
    Ok(())
}
