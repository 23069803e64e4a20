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
    pub manufacturer: Option<String>,
    pub model: Option<String>,
    pub bios_version: Option<String>,
    pub processor: Option<String>,
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
    /// The service supports applying changes at the next reset.
    pub takes_apply_time: bool,
    pub active: Attributes,
    /// Settings after the next restart, as far as the settings resource contains them; `None` if it was not
    /// read.
    pub pending: Option<Attributes>,
    /// The registry that the Bios resource names.
    pub registry_name: Option<String>,
    pub registry: Option<Registry>,
    /// Attributes that the service rejected when changes were last applied, with its message ID.
    pub refused: BTreeMap<String, String>,
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
