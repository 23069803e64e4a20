//! One row: its attribute, the meaning of the value, and a comparison with the wanted one.

use super::{
    facts::{BiosFacts, label_parts},
    meaning::{folded, number, same_value, shown, switch},
    registry::RegistryEntry,
    table::{AttributeNames, Row, Vendor, settings},
};
use lowlat_host::Profile;
use lowlat_settings::{Makers, Setting, Want};
use serde_json::Value;

/// The attribute of a row on this server.
pub(super) struct RowAttribute<'a> {
    pub attribute: &'a str,
    pub active: &'a Value,
    /// The names in the table that it has; `None` if it was found only through the registry's menu name.
    pub names: Option<&'static AttributeNames>,
    pub entry: Option<&'a RegistryEntry>,
}

/// The names of a row that this server should have: its vendor's own, and labels unless the vendor has names of
/// its own for everything. Those of every vendor if it is unknown.
pub(super) fn names(facts: &BiosFacts, row: &Row) -> Vec<&'static AttributeNames> {
    let is_meant = |names: &&AttributeNames| match (facts.vendor, names.vendor) {
        (Some(vendor), None) => !vendor.has_own_names(),
        // The maker is known, and none of those with names in the table.
        (None, Some(_)) => facts.server.manufacturer.is_none(),
        (vendor, named) => vendor.is_none() || vendor == named,
    };
    row.names.iter().filter(is_meant).collect()
}

/// The names of a row as words, for messages.
pub(super) fn words(facts: &BiosFacts, row: &Row) -> Vec<&'static str> {
    names(facts, row).into_iter().flat_map(|names| names.names).copied().collect()
}

/// Finds the attribute: by the names that this server should have, otherwise by labels and the names of other
/// vendors, otherwise by the name in HPE's menus.
pub(super) fn carrier<'a>(facts: &'a BiosFacts, row: &Row, setting: &Setting) -> Option<RowAttribute<'a>> {
    let expected = names(facts, row);
    let is_other = |names: &&AttributeNames| !expected.iter().any(|one| std::ptr::eq(*one, *names));
    let (labels, vendors): (Vec<_>, Vec<_>) =
        row.names.iter().filter(is_other).partition(|names| names.vendor.is_none());
    let mut all = expected.iter().copied().chain(labels).chain(vendors);
    if let Some((names, (attribute, active))) = all.find_map(|names| Some((names, find(facts, names)?))) {
        return Some(RowAttribute { attribute, active, names: Some(names), entry: entry(facts, attribute) });
    }
    let name = row.menu_name.unwrap_or(setting.name);
    let (attribute, active) =
        labelled(facts, name).filter(|(attribute, _)| entry(facts, attribute).is_some())?;
    Some(RowAttribute { attribute, active, names: None, entry: entry(facts, attribute) })
}

/// The row, the setting and the names of an attribute.
pub(super) fn row_of<'a>(
    facts: &'a BiosFacts,
    attribute: &str,
) -> Option<(&'static Row, &'static Setting, RowAttribute<'a>)> {
    let mut found =
        settings().filter_map(|(row, setting)| Some((row, setting, carrier(facts, row, setting)?)));
    found.find(|(_, _, carrier)| carrier.attribute == attribute)
}

fn entry<'a>(facts: &'a BiosFacts, attribute: &str) -> Option<&'a RegistryEntry> {
    facts.registry.as_ref()?.entries.get(attribute)
}

/// The attribute with one of these names.
pub(super) fn find<'a>(facts: &'a BiosFacts, names: &AttributeNames) -> Option<(&'a str, &'a Value)> {
    let lookup = |name: &str| match names.vendor {
        // The case of tokens differs between generations.
        Some(Vendor::Cisco) | None => labelled(facts, name),
        Some(_) => facts.active.get_key_value(name).map(|(attribute, value)| (attribute.as_str(), value)),
    };
    names.names.iter().find_map(|name| lookup(name))
}

fn labelled<'a>(facts: &'a BiosFacts, label: &str) -> Option<(&'a str, &'a Value)> {
    let attribute = facts.labels.get(&folded(label))?;
    facts.active.get_key_value(attribute).map(|(attribute, value)| (attribute.as_str(), value))
}

impl RowAttribute<'_> {
    /// The meanings of a value: the catalogue's word for it if the table has one, because a vendor's
    /// "Enabled" can mean off; otherwise its own text and its name in menus.
    pub fn meanings(&self, value: &Value) -> Vec<String> {
        let raw = shown(value);
        let raw = self.without_prefix(&raw).to_owned();
        let menu = self.entry.into_iter().flat_map(|entry| &entry.values);
        let shown =
            menu.filter(|(name, _)| self.without_prefix(name) == raw).map(|(_, display)| display.clone());
        let texts: Vec<String> = [raw.clone()].into_iter().chain(shown).collect();
        let spelled = self.names.map(|names| names.spellings).unwrap_or_default();
        let word = |text: &String| spelled.iter().find(|(spelling, _)| is_spelling(spelling, text));
        match texts.iter().find_map(word) {
            Some((_, word)) => vec![(*word).to_owned()],
            None => texts,
        }
    }

    /// A value without the attribute's name, which some services put before each value.
    fn without_prefix<'v>(&self, value: &'v str) -> &'v str {
        let bare = |part: &str| value.strip_prefix(part).filter(|rest| !rest.is_empty());
        let rest = label_parts(self.attribute).find_map(bare);
        rest.map_or(value, |rest| rest.strip_prefix('_').unwrap_or(rest))
    }

    /// A value as this service writes it, with the prefix of the current one.
    fn with_prefix(&self, value: &str) -> String {
        let active = shown(self.active);
        let prefix = active.strip_suffix(self.without_prefix(&active)).unwrap_or_default();
        format!("{prefix}{value}")
    }

    /// True if a value means one of the wanted ones.
    pub fn meets(&self, value: &Value, wanted: &[String]) -> bool {
        let meanings = self.meanings(value);
        wanted.iter().any(|wanted| meanings.iter().any(|meaning| same_value(meaning, wanted)))
    }

    /// The values that this firmware offers, if known and none of them is wanted.
    pub fn offers_others(&self, wanted: &[String]) -> Option<Vec<String>> {
        let listed = self.entry.into_iter().flat_map(|entry| &entry.values);
        let shows_menu = self.shows_menu();
        let listed = listed.map(|(name, display)| if shows_menu { display.clone() } else { name.clone() });
        let spellings = self.names.map(|names| names.spellings).unwrap_or_default();
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

    /// True if values are the texts of menus, while the registry numbers them (Supermicro).
    fn shows_menu(&self) -> bool {
        let listed = self.entry.map(|entry| entry.values.as_slice()).unwrap_or_default();
        let active = shown(self.active);
        !listed.iter().any(|(name, _)| *name == active)
            && listed.iter().any(|(_, display)| *display == active)
    }

    /// The value to write for a wanted one, or the reason why there is none.
    pub fn to_write(&self, wanted: &[String]) -> Result<Value, String> {
        let listed = self.entry.map(|entry| entry.values.as_slice()).unwrap_or_default();
        let shows_menu = self.shows_menu();
        for wanted in wanted {
            let candidate = |name: &&(String, String)| {
                self.meets(&Value::String(name.0.clone()), std::slice::from_ref(wanted))
            };
            if let Some((name, display)) = listed.iter().find(candidate) {
                let listed = if shows_menu { display } else { name };
                return Ok(self.typed(listed).unwrap_or_else(|| Value::from(listed.as_str())));
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

    /// The wanted values as this firmware spells them, without those that it does not offer.
    pub fn spelled(&self, wanted: &[String]) -> Vec<String> {
        let mut spelled: Vec<String> = Vec::new();
        for one in wanted.iter().map(std::slice::from_ref) {
            let is_present = self.meets(self.active, one);
            let value = if is_present { Ok(self.active.clone()) } else { self.to_write(one) };
            let Ok(value) = value.map(|value| shown(&value)) else { continue };
            if !spelled.contains(&value) {
                spelled.push(value);
            }
        }
        spelled
    }

    /// A spelling if no list of values is known: of the same kind as the current value.
    fn unlisted(&self, wanted: &str) -> Option<Value> {
        if self.active.is_boolean() || self.active.is_number() {
            return self.typed(wanted);
        }
        let spellings = self.names.map(|names| names.spellings).unwrap_or_default();
        let spelled = spellings.iter().find(|(_, word)| same_value(word, wanted));
        // Other words are used unchanged if they can be values and the table does not mark its list as
        // complete.
        let is_whole = spellings.iter().any(|(spelling, word)| spelling == word);
        let is_plain =
            !is_whole && !wanted.contains(' ') && spellings.iter().all(|(spelling, _)| *spelling != wanted);
        let plain = || is_plain.then_some(wanted);
        let spelled = spelled.map(|(spelling, _)| *spelling).or_else(plain)?;
        Some(Value::from(self.with_prefix(spelled)))
    }

    /// A value in the type of the current one, if it can have that.
    fn typed(&self, text: &str) -> Option<Value> {
        match self.active {
            Value::Bool(_) => switch(text).map(Value::Bool),
            Value::Number(_) => number(text).and_then(|number| i64::try_from(number).ok()).map(Value::from),
            _ => Some(Value::from(text)),
        }
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

/// The processor's model, or its maker if only settings of that maker's processors were found.
pub(super) fn processor(facts: &BiosFacts) -> Option<&str> {
    let has = |makers: Makers| {
        let mut of_maker = settings().filter(|(_, setting)| setting.needs.makers == makers);
        of_maker.any(|(row, setting)| carrier(facts, row, setting).is_some())
    };
    facts.server.processor.as_deref().or_else(|| match (has(Makers::Amd), has(Makers::Intel)) {
        (true, false) => Some("AMD"),
        (false, true) => Some("Intel"),
        _ => None,
    })
}

/// True if only one maker's processors have a setting, and this processor is known to be another's.
pub(super) fn is_of_another_maker(setting: &Setting, processor: Option<&str>) -> bool {
    let is = |names: [&str; 2]| processor.is_some_and(|model| names.iter().any(|name| model.contains(name)));
    let (is_amd, is_intel) = (is(["AMD", "EPYC"]), is(["Intel", "Xeon"]));
    match setting.needs.makers {
        Makers::All => false,
        Makers::Amd => processor.is_some() && !is_amd,
        Makers::Intel => processor.is_some() && !is_intel,
        Makers::NotAmd => is_amd,
    }
}

/// "AMD EPYC 7F32 8-Core Processor": four characters that start with 7 and end with 2, and a P for one socket.
pub(super) fn is_epyc_7002(model: &str) -> bool {
    let is_number = |word: &str| {
        let number = word.strip_suffix('P').unwrap_or(word);
        number.len() == 4 && number.starts_with('7') && number.ends_with('2')
    };
    model.contains("EPYC") && model.split_whitespace().any(is_number)
}

/// True if a value is spelled so. A value of the registry's menu has the same letters and digits.
fn is_spelling(spelling: &str, value: &str) -> bool {
    spelling == value || folded(spelling) == folded(value)
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
        assert_eq!(wanted(Some("AMD EPYC 7302P 16-Core Processor")), Some(vec!["2933 MT/s".to_owned()]));
        assert_eq!(wanted(Some("AMD EPYC 7313P 16-Core Processor")), Some(vec!["Auto".to_owned()]));
        assert_eq!(wanted(Some("AMD EPYC 7763 64-Core Processor")), Some(vec!["Auto".to_owned()]));
        assert_eq!(wanted(None), None);
        assert_eq!(wanted_values(setting, Profile::Guide57037, None), Some(vec!["Auto".to_owned()]));
    }

    #[test]
    fn one_derived_want_is_known_here() {
        let derived: Vec<&str> = settings()
            .map(|(_, setting)| setting)
            .filter(|setting| {
                Profile::ALL.into_iter().any(|profile| matches!(setting.want(profile), Want::Derived(_)))
            })
            .map(|setting| setting.id)
            .collect();
        assert_eq!(derived, ["firmware.maximum_memory_bus_frequency"]);
    }
}
