//! The attribute registry: the values that an attribute accepts, and dependencies between attributes.
//!
//! Redfish schema `AttributeRegistry`: `RegistryEntries.Attributes` and `RegistryEntries.Dependencies`.

use super::{
    BiosError,
    facts::Attributes,
    meaning::{number, shown},
    shape::Place,
};
use serde_json::Value;
use std::{cmp::Ordering, collections::BTreeMap};

/// The registry's entry for one attribute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryEntry {
    pub display_name: Option<String>,
    /// The attribute can never be changed.
    pub is_read_only: bool,
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
            match (dependency.property.as_str(), &dependency.value) {
                ("ReadOnly" | "GrayOut", Value::Bool(true)) => {
                    effects.locked.insert(target, by);
                }
                ("ReadOnly" | "GrayOut", _) => {
                    effects.locked.remove(&target);
                }
                ("CurrentValue", value) => {
                    effects.forced.insert(target, (value.clone(), by));
                }
                _ => {}
            }
        }
        effects
    }
}

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

pub(super) fn read(resource: &Place<'_>) -> Result<Registry, BiosError> {
    let entries = resource.required("RegistryEntries", "an object with Attributes")?;
    let attributes = entries.required("Attributes", "an array of attributes")?;
    let mut registry = Registry { id: resource.text_member("Id")?.map(str::to_owned), ..Registry::default() };
    attributes.check_count(attributes.array("an array of attributes")?.len(), "attributes")?;
    for place in attributes.items("an array of attributes")? {
        let name = place.required("AttributeName", "the attribute's name")?.text("the attribute's name")?;
        registry.entries.insert(name.to_owned(), entry(&place)?);
    }
    if let Some(dependencies) = entries.member("Dependencies") {
        dependencies.check_count(dependencies.array("an array of dependencies")?.len(), "dependencies")?;
        for place in dependencies.items("an array of dependencies")? {
            registry.dependencies.extend(dependency(&place)?);
        }
    }
    Ok(registry)
}

fn entry(place: &Place<'_>) -> Result<RegistryEntry, BiosError> {
    let mut values = Vec::new();
    if let Some(list) = place.member("Value") {
        for value in list.items("an array of values")? {
            let name = value.required("ValueName", "the value's name")?.text("the value's name")?;
            let display = value.text_member("ValueDisplayName")?.unwrap_or(name);
            values.push((name.to_owned(), display.to_owned()));
        }
    }
    let kind = place.text_member("Type")?;
    let is_read_only = place.member("ReadOnly").map(|flag| boolean(&flag)).transpose()?.unwrap_or(false);
    let bound = |name| place.member(name).map(|bound| whole(&bound)).transpose();
    Ok(RegistryEntry {
        display_name: place.text_member("DisplayName")?.map(str::to_owned),
        is_read_only,
        values,
        is_integer: kind.is_some_and(|kind| kind.eq_ignore_ascii_case("Integer")),
        lower_bound: bound("LowerBound")?.flatten(),
        upper_bound: bound("UpperBound")?.flatten(),
        default_value: place.member("DefaultValue").map(|value| value.scalar().map(shown)).transpose()?,
    })
}

/// Parses a dependency of type "Map". Other types, and comparisons of anything but current values, are
/// ignored.
fn dependency(place: &Place<'_>) -> Result<Option<Dependency>, BiosError> {
    place.object("a dependency")?;
    if place.text_member("Type")?.is_some_and(|kind| kind != "Map") {
        return Ok(None);
    }
    let map = place.required("Dependency", "an object with MapFrom and MapToAttribute")?;
    map.object("an object with MapFrom and MapToAttribute")?;
    let Some(from) = map.member("MapFrom") else { return Ok(None) };
    let mut terms = Vec::new();
    for place in from.items("an array of comparisons")? {
        let Some(term) = term(&place)? else { return Ok(None) };
        terms.push(term);
    }
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

fn term(place: &Place<'_>) -> Result<Option<Term>, BiosError> {
    place.object("a comparison with MapFromAttribute")?;
    let attribute = place.required("MapFromAttribute", "an attribute's name")?.text("an attribute's name")?;
    if place.text_member("MapFromProperty")?.is_some_and(|property| property != "CurrentValue") {
        return Ok(None);
    }
    let condition = place.required("MapFromCondition", "EQU, NEQ, GTR, GEQ, LSS or LEQ")?;
    let value = place.value.get("MapFromValue").cloned().unwrap_or(Value::Null);
    place.child("MapFromValue", &value).scalar()?;
    Ok(Some(Term {
        attribute: attribute.to_owned(),
        condition: match condition.text("a condition")? {
            "EQU" => Condition::Alike(true),
            "NEQ" => Condition::Alike(false),
            "GTR" => Condition::Ordered(Ordering::is_gt),
            "GEQ" => Condition::Ordered(Ordering::is_ge),
            "LSS" => Condition::Ordered(Ordering::is_lt),
            "LEQ" => Condition::Ordered(Ordering::is_le),
            _ => return Err(condition.wrong("EQU, NEQ, GTR, GEQ, LSS or LEQ")),
        },
        value,
        is_alternative: place.text_member("MapTerms")? == Some("OR"),
    }))
}

fn boolean(place: &Place<'_>) -> Result<bool, BiosError> {
    place.value.as_bool().ok_or_else(|| place.wrong("true or false"))
}

/// A limit. Some services write 2^64-1 and fractions; a fraction limits nothing here.
fn whole(place: &Place<'_>) -> Result<Option<i128>, BiosError> {
    match place.value {
        Value::Number(_) => Ok(number(&shown(place.value))),
        _ => Err(place.wrong("a number")),
    }
}
