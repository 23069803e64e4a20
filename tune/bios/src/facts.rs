//! A service's facts about one server's BIOS settings.

use super::{
    meaning::folded,
    registry::{Effects, Registry, RegistryEntry},
    table::Vendor,
    window::{ApplyTimes, MaintenanceWindow},
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Attributes by name; values are scalars.
pub type Attributes = BTreeMap<String, Value>;

/// The server according to its ComputerSystem resource; all empty if that was not among the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Server {
    pub manufacturer: Option<String>,
    pub model: Option<String>,
    pub bios_version: Option<String>,
    pub processor: Option<String>,
}

impl Server {
    /// Maker and model, as far as they are known: "HPE ProLiant DL385 Gen10 Plus".
    pub fn name(&self) -> Option<String> {
        let is_in_model =
            |maker: &&String| self.model.as_deref().is_some_and(|model| model.starts_with(maker.as_str()));
        let maker = self.manufacturer.as_ref().filter(|maker| !is_in_model(maker));
        let parts = [maker, self.model.as_ref()].into_iter().flatten().map(String::as_str);
        Some(parts.collect::<Vec<_>>().join(" ")).filter(|name| !name.is_empty())
    }
}

/// The settings of one server.
#[derive(Debug, Clone)]
pub struct BiosFacts {
    pub server: Server,
    /// The vendor of the firmware; `None` if unknown.
    pub vendor: Option<Vendor>,
    /// Address of the active settings.
    pub uri: Option<String>,
    /// Address for changes; `None` if the resource does not contain it.
    pub settings_uri: Option<String>,
    /// When the service can apply changes.
    pub apply_times: ApplyTimes,
    /// The maintenance window for which the pending settings wait, if the service names one.
    pub window: Option<MaintenanceWindow>,
    pub active: Attributes,
    /// Settings after the next restart, as far as the settings resource contains them; `None` if it was not
    /// read.
    pub pending: Option<Attributes>,
    /// The registry that the Bios resource names.
    pub registry_name: Option<String>,
    pub registry: Option<Registry>,
    /// Attributes that the service rejected when changes were last applied, with its message ID.
    pub refused: BTreeMap<String, String>,
    /// Attributes by the letters and digits of their labels: the names in the registry's menus, and names that
    /// follow such a label.
    pub labels: BTreeMap<String, String>,
    /// Attributes whose value is no scalar, each with what was found instead.
    pub unreadable: BTreeMap<String, String>,
    pub warnings: Vec<String>,
}

impl BiosFacts {
    /// Every setting after the next restart.
    pub fn after_restart(&self) -> Attributes {
        let mut after = self.active.clone();
        for (name, value) in self.pending.iter().flatten().filter(|(name, _)| self.active.contains_key(*name))
        {
            after.insert(name.clone(), value.clone());
        }
        after
    }

    /// The attributes by their labels. If several have one label, the first that can be changed counts.
    pub(super) fn label(&mut self) {
        let registry = self.registry.as_ref().map(|registry| &registry.entries);
        let mut shown: Vec<(&String, &RegistryEntry)> =
            registry.into_iter().flatten().filter(|(name, _)| self.active.contains_key(*name)).collect();
        shown.sort_by_key(|(_, entry)| entry.is_read_only);
        let displayed =
            shown.into_iter().filter_map(|(name, entry)| Some((entry.display_name.as_deref()?, name)));
        let named = self.active.keys().flat_map(|name| label_parts(name).map(move |part| (part, name)));
        let mut labels = BTreeMap::new();
        for (label, name) in displayed.chain(named) {
            labels.entry(folded(label)).or_insert_with(|| name.clone());
        }
        labels.remove("");
        self.labels = labels;
    }

    /// The effects of the registry's dependencies on these settings; none without a registry.
    pub fn effects(&self, settings: &Attributes) -> Effects {
        self.registry.as_ref().map(|registry| registry.effects(settings)).unwrap_or_default()
    }
}

/// A name without Supermicro's tag of four hexadecimal digits, if it has one.
pub(super) fn untagged(name: &str) -> Option<&str> {
    let is_tag = |tag: &str| tag.len() == 4 && tag.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.rsplit_once('_').filter(|(_, tag)| is_tag(tag)).map(|(label, _)| label)
}

/// The parts of a name that can be a label: `SMTControl` of `SMTControl_00CB` (Supermicro), `SMTMode` of
/// `Processors_SMTMode` (Lenovo), and the whole.
pub(super) fn label_parts(name: &str) -> impl Iterator<Item = &str> {
    let after_menu = name.split_once('_').map(|(_, label)| label);
    untagged(name).or(after_menu).into_iter().chain([name])
}

/// What a user should know about the facts: what is missing or does not fit together.
pub(super) fn warnings(facts: &BiosFacts) -> Vec<String> {
    let mut warnings = Vec::new();
    let ids = facts
        .registry
        .as_ref()
        .and_then(|registry| registry.id.as_deref())
        .zip(facts.registry_name.as_deref());
    if let Some((read, named)) =
        ids.filter(|(read, named)| !read.starts_with(named) && !named.starts_with(read))
    {
        warnings.push(format!(
            "The registry read is {read}, but the Bios resource names {named}: values and dependencies may \
             be those of another BIOS."
        ));
    }
    let language = facts.registry.as_ref().and_then(|registry| registry.language.as_deref());
    if let Some(language) = language.filter(|language| !language.to_ascii_lowercase().starts_with("en")) {
        warnings.push(format!(
            "The names in the registry's menus are in language {language}: attributes were found only by their own names."
        ));
    }
    if facts.registry.is_none() {
        warnings.push(
            "No attribute registry was read: accepted values are not checked, and dependencies only if the \
             vendor documents them."
                .into(),
        );
    }
    if facts.pending.is_none() {
        warnings.push("No settings resource was read: pending changes are unknown.".into());
    }
    if !facts.unreadable.is_empty() {
        let named = facts.unreadable.iter().take(12).map(|(name, found)| format!("{name} ({found})"));
        let more = if facts.unreadable.len() > 12 { ", ..." } else { "" };
        let named = named.collect::<Vec<_>>().join(", ");
        warnings.push(format!("Attributes whose value could not be read: {named}{more}."));
    }
    if let (None, Some(maker)) = (facts.vendor, &facts.server.manufacturer) {
        warnings.push(format!(
            "No attribute names of {maker} are known: attributes were found by the names of other makers and by \
             their names in menus."
        ));
    }
    let strange =
        facts.pending.iter().flatten().filter(|(name, _)| !facts.active.contains_key(*name)).count();
    if strange > 0 {
        warnings.push(format!(
            "{strange} pending attributes are not among the active ones: the two resources may be of different servers."
        ));
    }
    warnings
}
