//! BIOS settings from a Redfish service, compared with the catalogue's firmware rows.
//!
//! [`BiosReader`] takes saved JSON: a `Bios` resource, its settings (pending) resource, and the attribute
//! registry, separately or bundled. [`BiosAudit`] compares meanings, not strings. [`BiosExport`] writes the
//! requests for a service, and those that restore the current state. Formats are those of the DMTF's Redfish
//! specification (DSP0266) and schemas (`Bios`, `Settings`, `AttributeRegistry`), which HPE's iLO 5 and 6
//! follow.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod audit;
mod change;
mod error;
mod export;
mod facts;
mod judge;
mod meaning;
mod reader;
mod registry;
mod restore;
mod secrets;
mod servers;
mod shape;
mod sheet;
mod table;
mod window;

#[cfg(test)]
mod tests;

pub use audit::{BiosAudit, BiosCounts, BiosFinding, BiosVerdict};
pub use change::{AttributeChange, BiosChange, Waiting};
pub use error::{BiosError, unpacked};
pub use export::{BiosExport, LeftOutRow, Request, SideEffect};
pub use facts::{Attributes, BiosFacts, Server};
pub use meaning::{same_value, shown};
pub use reader::{BYTES_MAX, BiosReader};
pub use registry::{Dependency, Effects, Registry, RegistryEntry};
pub use secrets::without_secrets;
pub use servers::{BiosDiff, BiosDifference, BiosFleet, FleetServer};
pub use sheet::{BiosSheet, SheetMenu, SheetRow};
pub use table::Vendor;
pub use window::{ApplyTimes, MaintenanceWindow};

/// True if a value of this setting weakens security or the handling of memory errors: a profile, or the workload
/// profile that is chosen first, sets it only if its risk is accepted. `None` if no BIOS setting has this ID.
pub fn needs_accepted_risk(id: &str) -> Option<bool> {
    table::rows().find(|row| row.id == id).map(|row| !row.weakens.is_empty())
}
