//! What a service told of one server's BIOS settings.

use super::{
    registry::{Effects, Registry},
    table::Vendor,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Attributes by name; values are scalars.
pub type Attributes = BTreeMap<String, Value>;

/// The server as its ComputerSystem resource names it; all empty when that was not among the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Server {
    /// Maker.
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
    /// Whose firmware it is; none when nothing tells.
    pub vendor: Option<Vendor>,
    /// Where active settings are read.
    pub uri: Option<String>,
    /// Where changes are sent; none when the resource does not tell.
    pub settings_uri: Option<String>,
    /// Whether the service takes the wish to apply changes at the next reset.
    pub takes_apply_time: bool,
    /// Settings in force.
    pub active: Attributes,
    /// Settings after the next restart, as far as the settings resource holds them; none when it was not read.
    pub pending: Option<Attributes>,
    /// The registry that the Bios resource names.
    pub registry_name: Option<String>,
    /// The registry, when read.
    pub registry: Option<Registry>,
    /// Attributes that the service refused when changes were last applied, with its message id.
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

    /// What the registry's dependencies make of these settings; nothing without a registry.
    pub fn effects(&self, settings: &Attributes) -> Effects {
        self.registry.as_ref().map(|registry| registry.effects(settings)).unwrap_or_default()
    }
}
