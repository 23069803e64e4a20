//! The makers' attributes for the settings of the catalogue.
//!
//! The wanted values stay in the catalogue. A row here is a concept: it names the attributes, and a maker's
//! spellings for the values that the catalogue names. HPE, Dell and Cisco name their attributes. Others show the
//! menus of AMD's and Intel's reference setup, so a *label* names what a menu shows. It is compared with the
//! registry's display names, with Supermicro's attributes (`SMTControl_00CB`) and with Lenovo's
//! (`Processors_SMTMode`) by letters and digits. Sources of names and spellings:
//! * HPE: the Bios resource definitions of iLO 5 and iLO 6 (servermanagementportal.ext.hpe.com), published
//!   listings of a ProLiant DL385 Gen10 (ROM A41), DL385 Gen10 Plus (A42), DL325 Gen10 Plus and of a Gen11 with
//!   Intel's processors (U58);
//! * Dell: listings of PowerEdge R6615 and R750 with their registries; host guides for PowerEdge with EPYC for
//!   `DlwmForcedWidth` and `FixedSocPstate`;
//! * Lenovo: listings of ThinkSystem SR635 V3, SR650 V2 and SR670 V2;
//! * Supermicro: listings of AS-1115CS-TNR and SYS-821GE with its registry;
//! * Cisco: BIOS tokens of UCS C-series servers M5 and M6 (Cisco UCS Manager and CIMC references);
//! * AMI's names: registries of Gigabyte H262 and of NVIDIA's DGX.
//!
//! A registry of the server itself takes precedence over the spellings here: names differ between ROM
//! families.

mod memory;
mod platform;
mod power;
mod processor;

use lowlat_catalogue::CATALOGUE;
use lowlat_settings::Setting;
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
    Cisco,
}

impl Vendor {
    /// Every vendor, in the order in which their names are tried on a service with an unknown vendor.
    pub const ALL: [Self; 5] = [Self::Hpe, Self::Dell, Self::Lenovo, Self::Supermicro, Self::Cisco];

    pub fn word(self) -> &'static str {
        match self {
            Self::Hpe => "HPE",
            Self::Dell => "Dell",
            Self::Lenovo => "Lenovo",
            Self::Supermicro => "Supermicro",
            Self::Cisco => "Cisco",
        }
    }

    /// True if its attributes have names of its own, and do not follow the labels of the reference setup.
    pub(super) fn has_own_names(self) -> bool {
        matches!(self, Self::Hpe | Self::Dell | Self::Cisco)
    }
}

/// Names for the attribute of one setting, with the meaning of their values.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttributeNames {
    /// The vendor whose attributes have these names; `None` for labels of menus.
    pub vendor: Option<Vendor>,
    pub names: &'static [&'static str],
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
    pub names: &'static [AttributeNames],
    /// Wanted values that do the harm that the catalogue names as the risk of the setting.
    pub weakens: &'static [&'static str],
    /// Its name in HPE's menus, if the catalogue has a name for all makers.
    pub menu_name: Option<&'static str>,
}

impl AttributeNames {
    const fn spelled(self, spellings: &'static [(&'static str, &'static str)]) -> Self {
        Self { spellings, ..self }
    }

    const fn with_custom_only(self) -> Self {
        Self { needs_custom: true, ..self }
    }
}

const fn names(vendor: Option<Vendor>, names: &'static [&'static str]) -> AttributeNames {
    AttributeNames { vendor, names, spellings: &[], needs_custom: false }
}

const fn hpe(attributes: &'static [&'static str]) -> AttributeNames {
    names(Some(Vendor::Hpe), attributes)
}

const fn dell(attributes: &'static [&'static str]) -> AttributeNames {
    names(Some(Vendor::Dell), attributes)
}

const fn lenovo(attributes: &'static [&'static str]) -> AttributeNames {
    names(Some(Vendor::Lenovo), attributes)
}

const fn cisco(attributes: &'static [&'static str]) -> AttributeNames {
    names(Some(Vendor::Cisco), attributes)
}

/// Names as menus show them.
const fn label(labels: &'static [&'static str]) -> AttributeNames {
    names(None, labels)
}

const fn row(id: &'static str) -> Row {
    Row { id, names: &[], weakens: &[], menu_name: None }
}

impl Row {
    const fn of(self, names: &'static [AttributeNames]) -> Self {
        Self { names, ..self }
    }

    const fn weakened_by(self, weakens: &'static [&'static str]) -> Self {
        Self { weakens, ..self }
    }

    const fn in_hpe_menus(self, name: &'static str) -> Self {
        Self { menu_name: Some(name), ..self }
    }
}

/// Every row. Audits and exports list them in this order.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    let platform = [RBSU, BOOT_TIME, DIAGNOSTICS, BOOT, ADVANCED, POWER_SUPPLIES, FANS, DEBUG];
    let others = [PROCESSOR, VIRTUALIZATION, PREFETCHERS, IO, MEMORY, PROTECTION, POWER, FABRIC];
    platform.into_iter().chain(others).flatten()
}

/// Every row with its setting of the catalogue.
pub(super) fn settings() -> impl Iterator<Item = (&'static Row, &'static Setting)> {
    rows().filter_map(|row| Some((row, CATALOGUE.find(row.id)?)))
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
    use lowlat_host::Profile;
    use lowlat_settings::{Layer, Risk, Want};

    /// Read from the service's ComputerSystem resource.
    const NO_ATTRIBUTE: [&str; 1] = ["firmware.bios_version"];

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
    fn every_row_of_the_guide_has_a_name_of_hpe_and_no_name_is_in_two_rows() {
        let named = |row: &'static Row| {
            row.names.iter().flat_map(|names| names.names.iter().map(|n| (names.vendor, *n)))
        };
        let mut all: Vec<String> = rows()
            .flat_map(named)
            .map(|(vendor, name)| format!("{vendor:?} {}", crate::meaning::folded(name)))
            .collect();
        all.sort_unstable();
        let twice: Vec<&[String]> = all.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
        for row in rows() {
            let setting = CATALOGUE.find(row.id).expect("checked above");
            let is_of_guide = !matches!(setting.want(Profile::Guide57037), Want::Nothing);
            let is_of_hpe = row.names.iter().any(|names| names.vendor == Some(Vendor::Hpe));
            assert!(is_of_hpe || !is_of_guide, "{}", row.id);
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
