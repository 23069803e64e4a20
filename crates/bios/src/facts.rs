//! A service's facts about one server's BIOS settings.

use super::{
    registry::{Effects, Registry},
    table::Vendor,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Attributes by name; values are scalars.
pub type Attributes = BTreeMap<String, Value>;

/// The server according to its ComputerSystem resource; all empty if that was not among the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Server {
    /// Vendor.
    pub manufacturer: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Version of the BIOS.
    pub bios_version: Option<String>,
    /// Model of the processors.
    pub processor: Option<String>,
}

/// The settings of one server.
#[derive(Debug, Clone)]
pub struct BiosFacts {
    /// The server.
    pub server: Server,
    /// The vendor of the firmware; `None` if unknown.
    pub vendor: Option<Vendor>,
    /// Address of the active settings.
    pub uri: Option<String>,
    /// Address for changes; `None` if the resource does not contain it.
    pub settings_uri: Option<String>,
    /// Whether the service supports applying changes at the next reset.
    pub takes_apply_time: bool,
    /// Current settings.
    pub active: Attributes,
    /// Settings after the next restart, as far as the settings resource contains them; `None` if it was not
    /// read.
    pub pending: Option<Attributes>,
    /// The registry that the Bios resource names.
    pub registry_name: Option<String>,
    /// The registry, if read.
    pub registry: Option<Registry>,
    /// Attributes that the service rejected when changes were last applied, with its message ID.
    pub refused: BTreeMap<String, String>,
    /// What the reader should know.
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

    /// The effects of the registry's dependencies on these settings; none without a registry.
    pub fn effects(&self, settings: &Attributes) -> Effects {
        self.registry.as_ref().map(|registry| registry.effects(settings)).unwrap_or_default()
    }
}
