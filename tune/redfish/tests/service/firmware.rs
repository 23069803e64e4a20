//! A BIOS that behaves as its attribute registry says: locks, forced and computed values. It is written from the
//! schema (`AttributeRegistry`) and shares no code with lowlat's reader, so that a misreading there shows.
#![allow(dead_code, reason = "each test binary uses a part")]

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

type Settings = Map<String, Value>;

/// In which order a controller accepts changes, and when forced values return.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// Locks are those after the change. A profile forces values when it is chosen.
    Hpe,
    /// Locks are those in force, which the registry shows. A profile forces values at every start.
    Dell,
}

#[derive(Clone)]
pub struct Firmware {
    pub maker: Maker,
    registry: Value,
    /// Attributes that the controller refuses although the registry has no reason for that.
    pub refuses: Vec<String>,
    /// Every attribute is read-only.
    pub is_locked_down: bool,
}

impl Firmware {
    pub fn new(maker: Maker, registry: Value) -> Self {
        Self { maker, registry, refuses: Vec::new(), is_locked_down: false }
    }

    fn dependencies(&self) -> impl Iterator<Item = &Value> {
        let list = self.registry["RegistryEntries"]["Dependencies"].as_array();
        list.into_iter().flatten().map(|entry| &entry["Dependency"])
    }

    fn entries(&self) -> &Vec<Value> {
        self.registry["RegistryEntries"]["Attributes"].as_array().expect("a registry")
    }

    /// The properties of attributes that dependencies set for these settings.
    fn properties(&self, settings: &Settings) -> BTreeMap<(String, String), Value> {
        let mut set = BTreeMap::new();
        for map in self.dependencies().filter(|map| holds(map, settings)) {
            let part = |name: &str| map[name].as_str().expect("a text").to_owned();
            set.insert((part("MapToAttribute"), part("MapToProperty")), map["MapToValue"].clone());
        }
        set
    }

    fn is_locked(&self, settings: &Settings, name: &str) -> bool {
        let set = self.properties(settings);
        let property = |property: &str| set.get(&(name.to_owned(), property.to_owned()));
        let is_on = |value: &Value| *value == true || *value == "true" || *value == "True";
        let controls = |map: &Value| map["MapToAttribute"] == name && map["MapToProperty"] == "ReadOnly";
        let is_computed = || {
            let entry = self.entries().iter().find(|entry| entry["AttributeName"] == name);
            entry.is_some_and(|entry| is_on(&entry["ReadOnly"])) && !self.dependencies().any(controls)
        };
        ["ReadOnly", "GrayOut", "Hidden"].iter().filter_map(|of| property(of)).any(is_on) || is_computed()
    }

    /// The attributes of a change that the controller refuses.
    pub fn refused(&self, active: &Settings, pending: &Settings, change: &Settings) -> Vec<String> {
        let mut then = if self.maker == Maker::Dell { active.clone() } else { pending.clone() };
        if self.maker == Maker::Hpe {
            then.extend(change.clone());
        }
        let is_refused = |name: &&String| self.refuses.contains(name) || self.is_locked(&then, name);
        change.keys().filter(is_refused).cloned().collect()
    }

    /// The settings in force after a start with these pending ones.
    pub fn start(&self, active: &Settings, pending: &Settings) -> Settings {
        let mut settings = active.clone();
        settings.extend(pending.clone());
        for _ in 0..8 {
            let before = settings.clone();
            for map in self.dependencies().filter(|map| map["MapToProperty"] == "CurrentValue") {
                let is_chosen = self.maker == Maker::Dell || !holds(map, active);
                if is_chosen && holds(map, &settings) {
                    let name = map["MapToAttribute"].as_str().expect("a text");
                    settings.insert(name.to_owned(), map["MapToValue"].clone());
                }
            }
            if settings == before {
                break;
            }
        }
        settings
    }

    /// The registry as the service shows it: Dell's has the locks in force.
    pub fn registry(&self, active: &Settings) -> Value {
        let mut registry = self.registry.clone();
        if self.maker == Maker::Dell {
            for entry in registry["RegistryEntries"]["Attributes"].as_array_mut().expect("a registry") {
                let name = entry["AttributeName"].as_str().expect("a name").to_owned();
                entry["ReadOnly"] = (self.is_locked_down || self.is_locked(active, &name)).into();
            }
        }
        registry
    }
}

/// True if the comparisons of a dependency hold. Dell's have no words between them: they are alternatives, unless each
/// excludes a value of one attribute.
fn holds(map: &Value, settings: &Settings) -> bool {
    let terms = map["MapFrom"].as_array().expect("comparisons");
    let truth = |term: &Value| {
        let Some(value) = settings.get(term["MapFromAttribute"].as_str().expect("a name")) else {
            return false;
        };
        let (is, of) = (plain(value), plain(&term["MapFromValue"]));
        let figures = || Some((is.parse::<f64>().ok()?, of.parse::<f64>().ok()?));
        match term["MapFromCondition"].as_str().expect("a condition") {
            "EQU" => is == of,
            "NEQ" => is != of,
            "GTR" => figures().is_some_and(|(is, of)| is > of),
            "LSS" => figures().is_some_and(|(is, of)| is < of),
            other => panic!("the fixtures have no condition {other}"),
        }
    };
    let words: Vec<&str> = terms.iter().filter_map(|term| term["MapTerms"].as_str()).collect();
    let excludes = |term: &Value| term["MapFromCondition"] == "NEQ";
    match words.first() {
        Some(&"AND") => terms.iter().all(truth),
        None if terms.iter().all(excludes) => terms.iter().all(truth),
        _ => terms.iter().any(truth),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The error of a controller that refuses attributes.
pub fn refusal(names: &[String]) -> Value {
    let message = |name: &String| {
        json!({ "MessageId": "Base.1.12.PropertyNotWritable", "MessageArgs": [name],
            "Message": format!("The property {name} is a read only property."), "RelatedProperties": [format!("#/Attributes/{name}")] })
    };
    let info: Vec<Value> = names.iter().map(message).collect();
    json!({ "error": { "code": "Base.1.12.GeneralError", "@Message.ExtendedInfo": info } })
}
