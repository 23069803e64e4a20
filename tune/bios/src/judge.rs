//! One row: its attribute, the meaning of the value, and a comparison with the wanted one.

use super::{
    facts::{Attributes, BiosFacts},
    meaning::{number, same_value, shown, switch},
    registry::RegistryEntry,
    table::{Row, VendorAttribute},
};
use lowlat_host::Profile;
use lowlat_settings::{Setting, Want};
use serde_json::Value;

/// The attribute with this name, as the service spells it. Supermicro ends names in `_` and four hexadecimal
/// digits.
pub(super) fn find<'a>(attributes: &'a Attributes, name: &VendorAttribute) -> Option<(&'a str, &'a Value)> {
    if let Some((attribute, value)) = attributes.get_key_value(name.attribute) {
        return Some((attribute, value));
    }
    if name.vendor != super::Vendor::Supermicro {
        return None;
    }
    let prefix = format!("{}_", name.attribute);
    let is_tag = |rest: &str| rest.len() == 4 && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut candidates = attributes.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
    let found = candidates.find(|(key, _)| key.strip_prefix(&prefix).is_some_and(is_tag))?;
    Some((found.0.as_str(), found.1))
}

/// The attribute of a row on this server.
pub(super) struct RowAttribute<'a> {
    pub attribute: &'a str,
    pub active: &'a Value,
    /// The name in the table; `None` if it was found only through the registry's menu name.
    pub name: Option<&'static VendorAttribute>,
    pub entry: Option<&'a RegistryEntry>,
}

/// The names to search for on this server.
pub(super) fn names(facts: &BiosFacts, row: &Row) -> Vec<&'static VendorAttribute> {
    let is_of = |name: &&VendorAttribute| facts.vendor.is_none_or(|vendor| vendor == name.vendor);
    row.names.iter().filter(is_of).collect()
}

/// Finds the attribute: by the vendor's names, otherwise by the name in the registry's menus.
pub(super) fn carrier<'a>(facts: &'a BiosFacts, row: &Row, setting: &Setting) -> Option<RowAttribute<'a>> {
    let entry_of =
        |attribute: &str| facts.registry.as_ref().and_then(|registry| registry.entries.get(attribute));
    for name in names(facts, row) {
        if let Some((attribute, active)) = find(&facts.active, name) {
            return Some(RowAttribute { attribute, active, name: Some(name), entry: entry_of(attribute) });
        }
    }
    let registry = facts.registry.as_ref()?;
    let is_shown_so = |entry: &RegistryEntry| {
        entry.display_name.as_deref().is_some_and(|display| same_value(display, setting.name))
    };
    let (attribute, entry) = registry.entries.iter().find(|(_, entry)| is_shown_so(entry))?;
    let (attribute, active) = facts.active.get_key_value(attribute)?;
    Some(RowAttribute { attribute, active, name: None, entry: Some(entry) })
}

impl RowAttribute<'_> {
    /// The meanings of a value: the catalogue's word for it if the table has one, because a vendor's
    /// "Enabled" can mean off; otherwise its own text and its name in menus.
    fn meanings(&self, value: &Value) -> Vec<String> {
        let raw = shown(value);
        let spelled = self.name.into_iter().flat_map(|name| name.spellings);
        let words: Vec<String> =
            spelled.filter(|(spelling, _)| *spelling == raw).map(|(_, word)| (*word).to_owned()).collect();
        if !words.is_empty() {
            return words;
        }
        let menu = self.entry.into_iter().flat_map(|entry| &entry.values);
        let mut meanings: Vec<String> =
            menu.filter(|(name, _)| *name == raw).map(|(_, display)| display.clone()).collect();
        meanings.push(raw);
        meanings
    }

    /// True if a value means one of the wanted ones.
    pub fn meets(&self, value: &Value, wanted: &[String]) -> bool {
        let meanings = self.meanings(value);
        wanted.iter().any(|wanted| meanings.iter().any(|meaning| same_value(meaning, wanted)))
    }

    /// The values that this firmware offers, if known and none of them is wanted.
    pub fn offers_others(&self, wanted: &[String]) -> Option<Vec<String>> {
        let listed = self.entry.into_iter().flat_map(|entry| &entry.values).map(|(name, _)| name.clone());
        let spellings = self.name.map(|name| name.spellings).unwrap_or_default();
        let whole = spellings.iter().any(|(spelling, word)| spelling == word);
        let spelled = spellings.iter().filter(|_| whole).map(|(spelling, _)| (*spelling).to_owned());
        let mut offered: Vec<String> = listed.collect();
        if offered.is_empty() {
            offered.extend(spelled);
        }
        let is_wanted = |offered: &String| self.meets(&Value::String(offered.clone()), wanted);
        (!offered.is_empty() && !self.meets(self.active, wanted) && !offered.iter().any(is_wanted))
            .then_some(offered)
    }

    /// The value to write for a wanted one, or the reason why there is none.
    pub fn to_write(&self, wanted: &[String]) -> Result<Value, String> {
        let listed = self.entry.map(|entry| entry.values.as_slice()).unwrap_or_default();
        for wanted in wanted {
            let candidate = |name: &&(String, String)| {
                self.meets(&Value::String(name.0.clone()), std::slice::from_ref(wanted))
            };
            if let Some((name, _)) = listed.iter().find(candidate) {
                return Ok(Value::String(name.clone()));
            }
            if listed.is_empty()
                && let Some(value) = self.unlisted(wanted)
            {
                return self.in_bounds(value);
            }
        }
        let wanted = wanted.join(" or ");
        Err(if listed.is_empty() {
            format!("this firmware's spelling of \"{wanted}\" is unknown; name its registry with --registry")
        } else {
            let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).take(12).collect();
            format!("\"{wanted}\" is not among the registry's values: {}", names.join(", "))
        })
    }

    /// A spelling if no list of values is known: of the same kind as the current value.
    fn unlisted(&self, wanted: &str) -> Option<Value> {
        match self.active {
            Value::Bool(_) => return switch(wanted).map(Value::Bool),
            Value::Number(_) => {
                return number(wanted).and_then(|number| i64::try_from(number).ok()).map(Value::from);
            }
            _ => {}
        }
        let spellings = self.name.map(|name| name.spellings).unwrap_or_default();
        let spelled = spellings.iter().find(|(_, word)| same_value(word, wanted));
        // Other words are used unchanged if they can be values and the table does not mark its list as
        // complete.
        let is_whole = spellings.iter().any(|(spelling, word)| spelling == word);
        let is_plain =
            !is_whole && !wanted.contains(' ') && spellings.iter().all(|(spelling, _)| *spelling != wanted);
        spelled.map(|(spelling, _)| Value::from(*spelling)).or_else(|| is_plain.then(|| Value::from(wanted)))
    }

    fn in_bounds(&self, value: Value) -> Result<Value, String> {
        let (Some(entry), Some(figure)) = (self.entry, number(&shown(&value))) else { return Ok(value) };
        let too_low = entry.lower_bound.filter(|bound| figure < *bound);
        let too_high = entry.upper_bound.filter(|bound| figure > *bound);
        match (entry.is_integer, too_low.or(too_high)) {
            (true, Some(bound)) => Err(format!("{figure} is outside the registry's limit {bound}")),
            _ => Ok(value),
        }
    }
}

/// The values that a profile wants; empty if it has no preference, `None` if that depends on an unknown
/// processor.
pub(super) fn wanted_values(
    setting: &Setting,
    profile: Profile,
    processor: Option<&str>,
) -> Option<Vec<String>> {
    match setting.want(profile) {
        Want::Nothing | Want::State(_) => Some(Vec::new()),
        Want::Value(value) => Some(vec![value.to_owned()]),
        Want::OneOf(values) => Some(values.iter().map(|value| (*value).to_owned()).collect()),
        // The only derived BIOS value: memory in step with the fabric of EPYC 7002.
        Want::Derived(_) => processor
            .map(|model| vec![if is_epyc_7002(model) { "2933 MT/s".to_owned() } else { "Auto".to_owned() }]),
    }
}

/// "AMD EPYC 7F32 8-Core Processor": four characters that start with 7 and end with 2.
pub(super) fn is_epyc_7002(model: &str) -> bool {
    let is_number = |word: &str| word.len() == 4 && word.starts_with('7') && word.ends_with('2');
    model.contains("EPYC") && model.split_whitespace().any(is_number)
}

/// True if a wanted value does the harm that the catalogue names.
pub(super) fn is_weakening(row: &Row, wanted: &[String]) -> bool {
    wanted.iter().any(|wanted| row.weakens.iter().any(|weak| same_value(weak, wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_catalogue::CATALOGUE;

    #[test]
    fn the_speed_of_the_memory_follows_the_processor() {
        let setting = CATALOGUE.find("firmware.maximum_memory_bus_frequency").unwrap();
        let wanted = |model| wanted_values(setting, Profile::Trading, model);
        assert_eq!(wanted(Some("AMD EPYC 7F32 8-Core Processor")), Some(vec!["2933 MT/s".to_owned()]));
        assert_eq!(wanted(Some("AMD EPYC 7763 64-Core Processor")), Some(vec!["Auto".to_owned()]));
        assert_eq!(wanted(None), None);
        assert_eq!(wanted_values(setting, Profile::Guide57037, None), Some(vec!["Auto".to_owned()]));
    }

    #[test]
    fn one_derived_want_is_known_here() {
        let derived: Vec<&str> = super::super::table::rows()
            .filter_map(|row| CATALOGUE.find(row.id))
            .filter(|setting| {
                Profile::ALL.into_iter().any(|profile| matches!(setting.want(profile), Want::Derived(_)))
            })
            .map(|setting| setting.id)
            .collect();
        assert_eq!(derived, ["firmware.maximum_memory_bus_frequency"]);
    }
}
