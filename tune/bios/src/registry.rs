//! The attribute registry: the values that an attribute accepts, and dependencies between attributes.
//!
//! Redfish schema `AttributeRegistry`: `RegistryEntries.Attributes` and `RegistryEntries.Dependencies`.

use super::{
    BiosError,
    facts::Attributes,
    meaning::{number, shown, switch},
    shape::Place,
};
use serde_json::Value;
use std::{cmp::Ordering, collections::BTreeMap};

/// The registry's entry for one attribute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryEntry {
    pub display_name: Option<String>,
    /// The attribute cannot be changed: never, or while another has its present value (Dell's registries show
    /// the present state).
    pub is_read_only: bool,
    /// Its menu in the setup: the menu's name, or its path ("./SystemBIOS/ProcessorOptions") if the registry lists no
    /// menus; `None` if the registry does not name it.
    pub menu: Option<String>,
    /// Values with their names in menus; empty if it is not an enumeration.
    pub values: Vec<(String, String)>,
    /// The values are integers.
    pub is_integer: bool,
    pub lower_bound: Option<i128>,
    pub upper_bound: Option<i128>,
    pub default_value: Option<String>,
}

/// One comparison of a dependency.
#[derive(Debug, Clone)]
struct Term {
    attribute: String,
    condition: Condition,
    value: Value,
    /// The term is joined to the previous ones by "or" instead of "and".
    is_alternative: bool,
}

impl Condition {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "EQU" => Self::Alike(true),
            "NEQ" => Self::Alike(false),
            "GTR" => Self::Ordered(Ordering::is_gt),
            "GEQ" => Self::Ordered(Ordering::is_ge),
            "LSS" => Self::Ordered(Ordering::is_lt),
            "LEQ" => Self::Ordered(Ordering::is_le),
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Condition {
    /// The values are spelled alike, or not.
    Alike(bool),
    /// The values are numbers in this order.
    Ordered(fn(Ordering) -> bool),
}

/// One dependency: if its terms hold, a property of another attribute has a value.
#[derive(Debug, Clone)]
pub struct Dependency {
    terms: Vec<Term>,
    attribute: String,
    property: String,
    value: Value,
}

/// A registry of one family of BIOS versions.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    pub id: Option<String>,
    /// The language of the names in menus, such as "en"; `None` if it does not say.
    pub language: Option<String>,
    /// The entry of each attribute.
    pub entries: BTreeMap<String, RegistryEntry>,
    /// Dependencies in the order of evaluation.
    pub dependencies: Vec<Dependency>,
}

/// The effects of dependencies on a set of settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Attributes that cannot be changed, each with the attribute that locks it.
    pub locked: BTreeMap<String, String>,
    /// Attributes whose value follows another attribute: the value, and that attribute.
    pub forced: BTreeMap<String, (Value, String)>,
}

impl Registry {
    /// The effects of the dependencies on these settings, evaluated in order: later ones take precedence.
    pub fn effects(&self, settings: &Attributes) -> Effects {
        let mut effects = Effects::default();
        for dependency in self.dependencies.iter().filter(|dependency| dependency.holds(settings)) {
            let target = dependency.attribute.clone();
            let by = dependency.terms.first().map(|term| term.attribute.clone()).unwrap_or_default();
            match dependency.property.as_str() {
                property if LOCKS.contains(&property) && flag(&dependency.value) == Some(true) => {
                    effects.locked.insert(target, by);
                }
                property if LOCKS.contains(&property) => {
                    effects.locked.remove(&target);
                }
                "CurrentValue" => {
                    effects.forced.insert(target, (dependency.value.clone(), by));
                }
                _ => {}
            }
        }
        effects
    }

    /// True if an attribute is read-only whatever the others are: the registry marks it so, and no dependency
    /// controls that.
    pub fn is_always_read_only(&self, attribute: &str) -> bool {
        let controls = |dependency: &Dependency| {
            dependency.attribute == attribute && LOCKS.contains(&dependency.property.as_str())
        };
        self.entries.get(attribute).is_some_and(|entry| entry.is_read_only)
            && !self.dependencies.iter().any(controls)
    }
}

/// Properties that keep an attribute from being changed.
const LOCKS: [&str; 3] = ["ReadOnly", "GrayOut", "Hidden"];

impl Dependency {
    /// Terms are combined from left to right, as in the schema.
    fn holds(&self, settings: &Attributes) -> bool {
        let mut terms = self.terms.iter();
        let Some(first) = terms.next() else { return false };
        terms.fold(first.holds(settings), |so_far, term| {
            if term.is_alternative { so_far || term.holds(settings) } else { so_far && term.holds(settings) }
        })
    }
}

impl Term {
    fn holds(&self, settings: &Attributes) -> bool {
        let Some(value) = settings.get(&self.attribute) else { return false };
        let order = || Some(number(&shown(value))?.cmp(&number(&shown(&self.value))?));
        match self.condition {
            Condition::Alike(is_alike) => (shown(value) == shown(&self.value)) == is_alike,
            Condition::Ordered(is_meant) => order().is_some_and(is_meant),
        }
    }
}

/// Reads a registry; `None` if it has no attributes. What has an unknown shape is left out, with a warning.
pub(super) fn read(resource: &Place<'_>, warnings: &mut Vec<String>) -> Result<Option<Registry>, BiosError> {
    let list = |name: &str| {
        let entries = resource.member("RegistryEntries").and_then(|entries| entries.member(name));
        entries.and_then(|place| Some((place.value.as_array()?.len(), place)))
    };
    let Some((count, attributes)) = list("Attributes").filter(|(count, _)| *count > 0) else {
        warnings.push(format!("The attribute registry {} contains no attributes.", resource.file));
        return Ok(None);
    };
    attributes.check_count(count, "attributes")?;
    let text = |name: &str| resource.value.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut registry = Registry { id: text("Id"), language: text("Language"), ..Registry::default() };
    let mut strange = Vec::new();
    for read in attributes.items("an array of attributes")?.map(|place| entry(&place)) {
        match read {
            Ok((name, entry)) => drop(registry.entries.insert(name, entry)),
            Err(error) => strange.push(error),
        }
    }
    warn(warnings, "attributes", &strange);
    strange.clear();
    let menus = list("Menus").and_then(|(_, menus)| menus.value.as_array()).into_iter().flatten();
    let text = |menu: &Value, name: &str| menu.get(name).and_then(Value::as_str).map(str::to_owned);
    let named: BTreeMap<String, String> =
        menus.filter_map(|menu| Some((text(menu, "MenuPath")?, text(menu, "DisplayName")?))).collect();
    for menu in registry.entries.values_mut().filter_map(|entry| entry.menu.as_mut()) {
        if let Some(name) = named.get(menu) {
            menu.clone_from(name);
        }
    }
    if let Some((count, dependencies)) = list("Dependencies") {
        dependencies.check_count(count, "dependencies")?;
        for read in dependencies.items("an array of dependencies")?.map(|place| dependency(&place)) {
            match read {
                Ok(dependency) => registry.dependencies.extend(dependency),
                Err(error) => strange.push(error),
            }
        }
    }
    warn(warnings, "dependencies", &strange);
    Ok(Some(registry))
}

fn warn(warnings: &mut Vec<String>, what: &str, strange: &[BiosError]) {
    if let Some(first) = strange.first() {
        let count = strange.len();
        warnings.push(format!(
            "Left out of the registry's {what}, because of an unknown shape: {count}. First: {first}."
        ));
    }
}

fn entry(place: &Place<'_>) -> Result<(String, RegistryEntry), BiosError> {
    let text = |name: &str| place.value.get(name).and_then(Value::as_str).map(str::to_owned);
    let name = place.required("AttributeName", "the attribute's name")?.text("the attribute's name")?;
    let mut values = Vec::new();
    if let Some(list) = place.member("Value") {
        for value in list.items("an array of values")? {
            let name = if value.value.is_object() {
                value.required("ValueName", "the value's name")?
            } else {
                value.clone()
            };
            let name = shown(name.scalar()?);
            let display = value.value.get("ValueDisplayName").and_then(Value::as_str).unwrap_or(&name);
            values.push((name.clone(), display.to_owned()));
        }
    }
    // Some services write 2^64-1 and fractions; a fraction limits nothing here.
    let bound = |name: &str| place.value.get(name).and_then(|bound| number(&shown(bound)));
    let entry = RegistryEntry {
        display_name: text("DisplayName"),
        is_read_only: place.value.get("ReadOnly").and_then(flag).unwrap_or(false),
        menu: text("MenuPath"),
        values,
        is_integer: text("Type").is_some_and(|kind| kind.eq_ignore_ascii_case("Integer")),
        lower_bound: bound("LowerBound"),
        upper_bound: bound("UpperBound"),
        default_value: place.value.get("DefaultValue").filter(|value| !value.is_null()).map(shown),
    };
    Ok((name.to_owned(), entry))
}

/// Parses a dependency of type "Map". Other types, and comparisons of anything but current values, are
/// ignored.
fn dependency(place: &Place<'_>) -> Result<Option<Dependency>, BiosError> {
    if place.value.get("Type").and_then(Value::as_str).is_some_and(|kind| kind != "Map") {
        return Ok(None);
    }
    let map = place.required("Dependency", "an object with MapFrom and MapToAttribute")?;
    let Some(from) = map.member("MapFrom") else { return Ok(None) };
    let mut terms = Vec::new();
    let mut words = Vec::new();
    for place in from.items("an array of comparisons")? {
        let Some((term, word)) = term(&place)? else { return Ok(None) };
        terms.push(term);
        words.push(word);
    }
    join(&mut terms, &words);
    let text = |name| map.required(name, "a text").and_then(|place| place.text("a text").map(str::to_owned));
    let value = map.value.get("MapToValue").cloned().unwrap_or(Value::Null);
    map.child("MapToValue", &value).scalar()?;
    Ok(Some(Dependency {
        terms,
        attribute: text("MapToAttribute")?,
        property: text("MapToProperty")?,
        value,
    }))
}

/// Sets how each term is joined to those before it. The word is with the later term, as in the schema, or with
/// the first one. Without words the terms are alternatives (Dell), except inequalities with one attribute, which
/// would then always hold.
fn join(terms: &mut [Term], words: &[Option<String>]) {
    let later = words.get(1..).unwrap_or_default();
    let first = words.first().cloned().flatten().filter(|_| later.iter().all(Option::is_none));
    let excludes = |term: &Term| matches!(term.condition, Condition::Alike(false));
    let name = terms.first().map(|term| term.attribute.clone()).unwrap_or_default();
    let is_range = terms.iter().all(|term| excludes(term) && term.attribute == name);
    for (term, word) in terms.iter_mut().zip(words) {
        term.is_alternative = match word.as_ref().or(first.as_ref()) {
            Some(word) => word.eq_ignore_ascii_case("OR"),
            None => !is_range,
        };
    }
}

/// A comparison, and the word that joins it; `None` if it compares anything but a current value.
fn term(place: &Place<'_>) -> Result<Option<(Term, Option<String>)>, BiosError> {
    let attribute = place.required("MapFromAttribute", "an attribute's name")?.text("an attribute's name")?;
    let text = |name: &str| place.value.get(name).and_then(Value::as_str);
    if text("MapFromProperty").is_some_and(|property| property != "CurrentValue") {
        return Ok(None);
    }
    let expected = "EQU, NEQ, GTR, GEQ, LSS or LEQ";
    let word = place.required("MapFromCondition", expected)?;
    let condition = Condition::of(word.text("a condition")?).ok_or_else(|| word.wrong(expected))?;
    let value = place.value.get("MapFromValue").cloned().unwrap_or(Value::Null);
    place.child("MapFromValue", &value).scalar()?;
    let term = Term { attribute: attribute.to_owned(), condition, value, is_alternative: false };
    Ok(Some((term, text("MapTerms").map(str::to_owned))))
}

/// True or false, as a service spells it.
fn flag(value: &Value) -> Option<bool> {
    switch(&shown(value))
}
