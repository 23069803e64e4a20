//! Several servers: the audits of many, and the settings in which two differ.

use super::{
    audit::BiosAudit,
    change::is_same,
    facts::{BiosFacts, Server},
    judge::{self, RowAttribute},
    secrets::is_secret,
    table::settings,
};
use lowlat_host::Profile;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The audits of many servers.
#[derive(Debug, Clone, Serialize)]
pub struct BiosFleet {
    pub document: &'static str,
    /// Version of this document's format.
    pub schema_version: u32,
    pub profile: Profile,
    /// In the order in which they were named.
    pub servers: Vec<FleetServer>,
    /// Settings that differ from the profile, each with its number of servers, most first.
    pub differences: Vec<(String, usize)>,
}

/// One server of a fleet: its audit, or the reason why there is none.
#[derive(Debug, Clone, Serialize)]
pub struct FleetServer {
    /// The address of its management controller, as named.
    pub address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<BiosAudit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl BiosFleet {
    pub fn of(profile: Profile, servers: Vec<FleetServer>) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let audits = servers.iter().filter_map(|server| server.audit.as_ref());
        for finding in audits.flat_map(|audit| &audit.findings).filter(|found| found.verdict.is_difference())
        {
            *counts.entry(&finding.id).or_default() += 1;
        }
        let mut differences: Vec<(String, usize)> =
            counts.into_iter().map(|(id, count)| (id.to_owned(), count)).collect();
        differences.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Self { document: "lowlat bios audit of hosts", schema_version: 1, profile, servers, differences }
    }
}

/// What differs between the settings in force on two servers.
#[derive(Debug, Clone, Serialize)]
pub struct BiosDiff {
    pub document: &'static str,
    /// Version of this document's format.
    pub schema_version: u32,
    pub servers: [Server; 2],
    /// Settings of the catalogue first, then other attributes that both servers have.
    pub differences: Vec<BiosDifference>,
    /// Number of settings and attributes that were compared.
    pub compared: usize,
    /// Number of attributes that only one server has, and that no setting of the catalogue names.
    pub only: [usize; 2],
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BiosDifference {
    /// The setting of the catalogue; `None` for other attributes.
    pub id: Option<&'static str>,
    /// Its attribute and value on both; `None` where it is missing.
    pub values: [Option<(String, Value)>; 2],
}

impl BiosDiff {
    /// Compares settings of the catalogue by meaning, because makers name and spell them differently, and other
    /// attributes by name. Secrets are left out.
    pub fn of(left: &BiosFacts, right: &BiosFacts) -> Self {
        let mut diff = Self {
            document: "lowlat bios diff",
            schema_version: 1,
            servers: [left.server.clone(), right.server.clone()],
            differences: Vec::new(),
            compared: 0,
            only: [0, 0],
        };
        let mut named = [Vec::new(), Vec::new()];
        for (row, setting) in settings() {
            let found = [left, right].map(|facts| judge::carrier(facts, row, setting));
            if found.iter().all(Option::is_none) {
                continue;
            }
            diff.compared += 1;
            for (names, found) in named.iter_mut().zip(&found) {
                names.extend(found.as_ref().map(|found| found.attribute.to_owned()));
            }
            let is_equal = matches!(&found, [Some(left), Some(right)] if means_same(left, right));
            if !is_equal {
                let values =
                    found.map(|found| Some((found.as_ref()?.attribute.to_owned(), found?.active.clone())));
                diff.differences.push(BiosDifference { id: Some(row.id), values });
            }
        }
        diff.add_others(left, right, &named);
        diff
    }

    fn add_others(&mut self, left: &BiosFacts, right: &BiosFacts, named: &[Vec<String>; 2]) {
        let is_other = |side: usize, name: &String| !is_secret(name) && !named[side].contains(name);
        self.only[1] =
            right.active.keys().filter(|name| is_other(1, name) && !left.active.contains_key(*name)).count();
        for (name, value) in left.active.iter().filter(|(name, _)| is_other(0, name)) {
            match right.active.get(name) {
                None => self.only[0] += 1,
                Some(other) => {
                    self.compared += 1;
                    if !is_same(value, other) {
                        let values = [value, other].map(|value| Some((name.clone(), value.clone())));
                        self.differences.push(BiosDifference { id: None, values });
                    }
                }
            }
        }
    }
}

/// True if two servers' values of a setting mean the same.
fn means_same(left: &RowAttribute<'_>, right: &RowAttribute<'_>) -> bool {
    is_same(left.active, right.active) || left.meets(left.active, &right.meanings(right.active))
}
