//! A unit's state as the undo log stores it.

use super::links::Link;
use std::{fmt, str::FromStr};

/// Words of ActiveState.
const ACTIVE: [&str; 8] =
    ["active", "activating", "reloading", "refreshing", "inactive", "failed", "deactivating", "maintenance"];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ServiceState {
    /// ActiveState.
    pub(super) active: String,
    /// UnitFileState; empty if the unit has none.
    pub(super) enablement: String,
    /// The unit's real name, if an alias was requested.
    pub(super) unit: Option<String>,
    pub(super) links: Vec<Link>,
    pub(super) stops_with_it: Vec<String>,
}

impl ServiceState {
    pub(super) fn is_up(&self) -> bool {
        matches!(self.active.as_str(), "active" | "activating" | "reloading" | "refreshing")
    }
}

impl fmt::Display for ServiceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.active)?;
        if !self.enablement.is_empty() {
            write!(f, ", {}", self.enablement)?;
        }
        if let Some(unit) = &self.unit {
            write!(f, "\nunit {unit}")?;
        }
        for link in &self.links {
            write!(f, "\nlink {link}")?;
        }
        if !self.stops_with_it.is_empty() {
            write!(f, "\nstops with it: {}", self.stops_with_it.join(" "))?;
        }
        Ok(())
    }
}

impl FromStr for ServiceState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |line: &str, expected: &str| {
            format!("found {line:?}, expected {expected}; another version of lowlat wrote this plan or log")
        };
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let (active, enablement) = first.split_once(',').unwrap_or((first, ""));
        let (active, enablement) = (active.trim().to_owned(), enablement.trim().to_owned());
        if !ACTIVE.contains(&active.as_str()) {
            return Err(wrong(first, "a state such as \"inactive, disabled\""));
        }
        let mut state = Self { active, enablement, ..Self::default() };
        for line in lines {
            if let Some(unit) = line.strip_prefix("unit ").filter(|unit| super::is_unit_name(unit)) {
                state.unit = Some(unit.to_owned());
            } else if let Some(link) = line.strip_prefix("link ").and_then(Link::parse) {
                state.links.push(link);
            } else if let Some(units) = line.strip_prefix("stops with it: ") {
                state.stops_with_it = units.split_whitespace().map(str::to_owned).collect();
            } else {
                return Err(wrong(
                    line,
                    "a line \"unit NAME\", \"link PATH -> TARGET (...)\" or \"stops with it: ...\"",
                ));
            }
        }
        Ok(state)
    }
}
