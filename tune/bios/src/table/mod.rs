//! The vendors' attributes for the settings of the catalogue.
//!
//! The wanted values stay in the catalogue. A row here names the attributes, and a vendor's spellings for the
//! values that the catalogue names as HPE displays them. Sources of names and spellings:
//! * HPE: the Bios resource definitions of iLO 5 and iLO 6 (servermanagementportal.ext.hpe.com) for Gen10 Plus and
//!   Gen11, and published listings of a ProLiant DL385 Gen10 (ROM A41) and a DL325 Gen10 Plus (weka/tools, defaults-db.yml);
//! * Dell (PowerEdge R6615), Lenovo (ThinkSystem SR635 V3) and Supermicro (AS-1115CS-TNR): weka/tools, defaults-db.yml;
//!   Dell's `DlwmForcedWidth` and `FixedSocPstate` from published host guides for PowerEdge with EPYC.
//!
//! A registry of the server itself takes precedence over the spellings here: names differ between ROM
//! families.

mod memory;
mod platform;
mod power;
mod processor;

use memory::{MEMORY, PROTECTION};
use platform::{ADVANCED, BOOT, BOOT_TIME, DEBUG, DIAGNOSTICS, FANS, POWER_SUPPLIES, RBSU};
use power::{FABRIC, POWER};
use processor::{IO, PREFETCHERS, PROCESSOR, VIRTUALIZATION};
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Vendor {
    Hpe,
    Dell,
    Lenovo,
    Supermicro,
}

impl Vendor {
    /// Every vendor, in the order in which their names are tried on a service with an unknown vendor.
    pub const ALL: [Self; 4] = [Self::Hpe, Self::Dell, Self::Lenovo, Self::Supermicro];

    pub fn word(self) -> &'static str {
        match self {
            Self::Hpe => "HPE",
            Self::Dell => "Dell",
            Self::Lenovo => "Lenovo",
            Self::Supermicro => "Supermicro",
        }
    }
}

/// One attribute of one vendor.
#[derive(Debug, Clone, Copy)]
pub(super) struct VendorAttribute {
    pub vendor: Vendor,
    /// Its spelling in the Bios resource; Supermicro's without the four hexadecimal digits at the end, which
    /// differ between boards.
    pub attribute: &'static str,
    /// Values with a meaning that their text does not show, each with the catalogue's word for it. A value
    /// that stands for itself marks the list as complete: the attribute accepts no other value.
    pub spellings: &'static [(&'static str, &'static str)],
    /// According to the vendor, it can be changed only while the workload profile is Custom.
    pub needs_custom: bool,
}

/// One setting of the catalogue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub id: &'static str,
    pub names: &'static [VendorAttribute],
    /// Wanted values that do the harm that the catalogue names as the risk of the setting.
    pub weakens: &'static [&'static str],
}

impl VendorAttribute {
    const fn spelled(self, spellings: &'static [(&'static str, &'static str)]) -> Self {
        Self { spellings, ..self }
    }

    const fn with_custom_only(self) -> Self {
        Self { needs_custom: true, ..self }
    }
}

const fn name(vendor: Vendor, attribute: &'static str) -> VendorAttribute {
    VendorAttribute { vendor, attribute, spellings: &[], needs_custom: false }
}

const fn hpe(attribute: &'static str) -> VendorAttribute {
    name(Vendor::Hpe, attribute)
}

const fn dell(attribute: &'static str) -> VendorAttribute {
    name(Vendor::Dell, attribute)
}

const fn lenovo(attribute: &'static str) -> VendorAttribute {
    name(Vendor::Lenovo, attribute)
}

const fn supermicro(attribute: &'static str) -> VendorAttribute {
    name(Vendor::Supermicro, attribute)
}

const fn row(id: &'static str) -> Row {
    Row { id, names: &[], weakens: &[] }
}

impl Row {
    const fn of(self, names: &'static [VendorAttribute]) -> Self {
        Self { names, ..self }
    }

    const fn weakened_by(self, weakens: &'static [&'static str]) -> Self {
        Self { weakens, ..self }
    }
}

/// Every row. Audits and exports list them in this order.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    let platform = [RBSU, BOOT_TIME, DIAGNOSTICS, BOOT, ADVANCED, POWER_SUPPLIES, FANS, DEBUG];
    let others = [PROCESSOR, VIRTUALIZATION, PREFETCHERS, IO, MEMORY, PROTECTION, POWER, FABRIC];
    platform.into_iter().chain(others).flatten()
}

/// Menus of HPE's BIOS/Platform Configuration (RBSU) in guide 57037's order, with the rows of each.
pub(super) const MENUS: [(&str, &[&[Row]]); 14] = [
    ("BIOS/Platform Configuration (RBSU)", &[RBSU]),
    ("Boot Time Optimizations", &[BOOT_TIME]),
    ("Diagnostics Options", &[DIAGNOSTICS]),
    ("Processor Options", &[PROCESSOR]),
    ("Memory Options", &[PROTECTION, MEMORY]),
    ("Virtualization Options", &[VIRTUALIZATION]),
    ("Boot Options", &[BOOT]),
    ("Power and Performance Options", &[POWER]),
    ("Processor Prefetcher Options", &[PREFETCHERS]),
    ("I/O Options", &[IO]),
    ("Advanced Options", &[ADVANCED]),
    ("Advanced Power Options", &[POWER_SUPPLIES, FABRIC]),
    ("Fan and Thermal Options", &[FANS]),
    ("Advanced Debug Options", &[DEBUG]),
];

/// The ID of the setting that unlocks others.
pub(super) const WORKLOAD_PROFILE: &str = "firmware.workload_profile";

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_catalogue::CATALOGUE;
    use lowlat_host::Profile;
    use lowlat_settings::{Layer, Risk, Want};

    /// One is read from the service's ComputerSystem resource; the other's attributes are in the row with AMD's name.
    const NO_ATTRIBUTE: [&str; 2] = ["firmware.bios_version", "firmware.hyper_threading"];

    #[test]
    fn every_firmware_row_of_the_catalogue_has_its_attributes_and_the_reverse() {
        let mut expected: Vec<&str> = CATALOGUE
            .settings()
            .filter(|setting| setting.layer == Layer::Firmware && !NO_ATTRIBUTE.contains(&setting.id))
            .map(|setting| setting.id)
            .collect();
        let mut there: Vec<&str> = rows().map(|row| row.id).collect();
        expected.sort_unstable();
        there.sort_unstable();
        assert_eq!(there, expected);
        assert!(there.len() >= 50, "the guide has 50-odd rows");
    }

    #[test]
    fn every_row_has_a_name_of_hpe_and_no_name_twice() {
        let mut names: Vec<(&str, &str)> =
            rows().flat_map(|row| row.names).map(|name| (name.vendor.word(), name.attribute)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for row in rows() {
            assert!(row.names.iter().any(|name| name.vendor == Vendor::Hpe), "{}", row.id);
        }
    }

    #[test]
    fn what_the_guide_weakens_is_known_to_be_risky() {
        for row in rows() {
            let setting = CATALOGUE.find(row.id).expect("checked above");
            let carries = matches!(setting.risk, Risk::Security | Risk::Ras);
            assert!(row.weakens.is_empty() || carries, "{}: the catalogue names no risk", row.id);
            if let (true, Want::Value("Disabled")) = (carries, setting.want(Profile::Guide57037)) {
                assert!(row.weakens.contains(&"Disabled"), "{} is a protection switched off", row.id);
            }
        }
    }
}
