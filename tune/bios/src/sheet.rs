//! The settings of a profile in the order of the BIOS menus, for people who set them manually.

use super::{
    judge::{is_epyc_7002, is_weakening, wanted_values},
    table::{MENUS, Row, WORKLOAD_PROFILE},
};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{HostSnapshot, Profile, Reading};
use lowlat_settings::Setting;
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct BiosSheet {
    pub document: &'static str,
    /// Version of this document's format.
    pub schema_version: u32,
    pub profile: Profile,
    /// The reason why the menus may not be those of the host; `None` if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// Menus with at least one setting.
    pub menus: Vec<SheetMenu>,
    /// Names of the settings that the profile does not change.
    pub left_open: Vec<&'static str>,
}

#[derive(Debug, Clone, Serialize)]
pub struct SheetMenu {
    pub title: &'static str,
    /// Its settings, from top to bottom.
    pub rows: Vec<SheetRow>,
}

#[derive(Debug, Clone, Serialize)]
pub struct SheetRow {
    pub id: &'static str,
    pub name: &'static str,
    /// Accepted values, the preferred one first.
    pub values: Vec<String>,
    /// Class of harm, if the value weakens security or the handling of memory errors.
    pub risk: Option<&'static str>,
    /// Cost of the value; empty if none.
    pub cost: &'static str,
    /// Problem with the guide's advice; empty for other profiles.
    pub hazard: &'static str,
}

impl SheetRow {
    /// The values as one text: "C1 State or No C-states".
    pub fn value(&self) -> String {
        self.values.join(" or ")
    }

    /// Risk, cost and hazard of the value, to consider before setting it; `None` if there is nothing to decide.
    pub fn caution(&self) -> Option<String> {
        let risk = self.risk.map(|risk| format!("Risk: {risk}."));
        let cost = Some(self.cost).filter(|_| self.risk.is_some());
        let parts = [risk.as_deref(), cost, Some(self.hazard)];
        let text = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        Some(text).filter(|text| !text.is_empty())
    }
}

impl BiosSheet {
    pub const DOCUMENT: &'static str = "lowlat bios sheet";
    pub const SCHEMA_VERSION: u32 = 1;

    /// Lists the settings of a profile. A value that depends on the processor needs its model name; without one, the
    /// value for other processors than EPYC 7002 is used.
    pub fn of(profile: Profile, processor: Option<&str>) -> Self {
        let mut left_open = Vec::new();
        let mut menus = Vec::new();
        for (title, parts) in MENUS {
            let rows: Vec<SheetRow> = parts
                .iter()
                .copied()
                .flatten()
                .filter_map(|row| Some((row, CATALOGUE.find(row.id)?)))
                .filter_map(|(row, setting)| {
                    let row = sheet_row(row, setting, profile, processor);
                    left_open.extend(row.is_none().then_some(setting.name));
                    row
                })
                .collect();
            menus.extend((!rows.is_empty()).then_some(SheetMenu { title, rows }));
        }
        Self {
            document: Self::DOCUMENT,
            schema_version: Self::SCHEMA_VERSION,
            profile,
            caution: None,
            menus,
            left_open,
        }
    }

    /// Lists the settings of a profile for a host, with a caution if its menus may be others.
    pub fn of_host(profile: Profile, host: &HostSnapshot) -> Self {
        let processor = host.cpu.model_name.known().map(String::as_str);
        Self { caution: caution(host), ..Self::of(profile, processor) }
    }

    /// Every setting, in the order of the menus.
    pub fn rows(&self) -> impl Iterator<Item = &SheetRow> {
        self.menus.iter().flat_map(|menu| &menu.rows)
    }
}

/// The reason why the menus may not be those of a host: they are those of the guide's kind of server.
fn caution(host: &HostSnapshot) -> Option<String> {
    const MENUS_OF: &str = "the menu names are those of HPE ProLiant servers with EPYC 7002 processors";
    if host.virtualization.is_virtual == Reading::Known(true) {
        return Some(format!(
            "This host is a virtual machine, and {MENUS_OF}. Only the operator of its host can set them."
        ));
    }
    let name = |reading: &Reading<String>| {
        reading.known().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let (vendor, product) = (name(&host.firmware.system_vendor), name(&host.firmware.system_product));
    let processor = name(&host.cpu.model_name);
    let is_hpe = matches!(vendor.as_deref(), Some("HPE" | "Hewlett Packard Enterprise"));
    let is_proliant = is_hpe && product.as_deref().is_some_and(|product| product.contains("ProLiant"));
    if is_proliant && processor.as_deref().is_some_and(is_epyc_7002) {
        return None;
    }
    let vendor =
        vendor.filter(|vendor| !product.as_deref().is_some_and(|product| product.starts_with(vendor)));
    let server = [product, vendor].into_iter().flatten().collect::<Vec<_>>().join(" by ");
    let found = [Some(server).filter(|server| !server.is_empty()), processor];
    let found = found.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let here = if found.is_empty() {
        "The hardware of this host is not known".to_owned()
    } else {
        format!("The hardware of this host is {found}")
    };
    Some(format!("{here}, and {MENUS_OF}. Its setup may have other names and values, or lack a setting."))
}

/// The row of a setting; `None` if the profile has no preference.
fn sheet_row(
    row: &Row,
    setting: &'static Setting,
    profile: Profile,
    processor: Option<&str>,
) -> Option<SheetRow> {
    let mut values = wanted_values(setting, profile, Some(processor.unwrap_or_default()))?;
    let risk = is_weakening(row, &values).then(|| setting.risk.word());
    if setting.id == WORKLOAD_PROFILE {
        // Custom alone sets nothing; it unlocks what the profile before it has set.
        values = vec!["Low Latency, then Custom".to_owned()];
    }
    let hazard = if profile == Profile::Guide57037 { setting.hazard } else { "" };
    (!values.is_empty()).then_some(SheetRow {
        id: setting.id,
        name: setting.name,
        values,
        risk,
        cost: setting.cost,
        hazard,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows;

    #[test]
    fn every_setting_is_in_one_menu() {
        let mut listed: Vec<&str> =
            MENUS.iter().flat_map(|(_, parts)| parts.iter().copied().flatten()).map(|row| row.id).collect();
        let mut expected: Vec<&str> = rows().map(|row| row.id).collect();
        listed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(listed, expected);
    }

    #[test]
    fn the_guides_sheet_has_a_value_for_every_row_of_its_screenshots() {
        let sheet = BiosSheet::of(Profile::Guide57037, Some("AMD EPYC 7F32 8-Core Processor"));
        let value = |name: &str| sheet.rows().find(|row| row.name == name).map(SheetRow::value);
        assert_eq!(value("Workload Profile").as_deref(), Some("Low Latency, then Custom"));
        assert_eq!(value("AMD Fmax Boost Limit").as_deref(), Some("3700"));
        assert_eq!(value("AMD SMT Option").as_deref(), Some("Disabled"));
        assert_eq!(value("Maximum Memory Bus Frequency").as_deref(), Some("Auto"));
        assert_eq!(value("Fan Failure Policy").as_deref(), Some("Shutdown/Halt on Critical Fan Failures"));
        assert_eq!(sheet.menus.len(), MENUS.len());
        let iommu = sheet.rows().find(|row| row.id == "firmware.amd_iommu").unwrap();
        assert_eq!(iommu.risk, Some("security"));
        assert!(iommu.caution().unwrap().starts_with("Risk: security. "));
        assert_eq!(sheet.rows().count() + sheet.left_open.len(), rows().count());
    }

    #[test]
    fn other_hosts_than_the_guide_s_get_a_caution() {
        let known = |text: &str| Reading::Known(text.to_owned());
        let caution_of = |vendor: &str, product: &str, model: &str| {
            let mut host = HostSnapshot::default();
            host.firmware.system_vendor = known(vendor);
            host.firmware.system_product = known(product);
            host.cpu.model_name = known(model);
            caution(&host)
        };
        let (rome, proliant) = ("AMD EPYC 7F32 8-Core Processor", "ProLiant DL385 Gen10 Plus");
        assert_eq!(caution_of("HPE", proliant, rome), None);
        let milan = caution_of("HPE", proliant, "AMD EPYC 7343 16-Core Processor").unwrap();
        assert!(milan.starts_with(
            "The hardware of this host is ProLiant DL385 Gen10 Plus by HPE, AMD EPYC 7343 16-Core Processor, and the menu"
        ));
        let dell = caution_of("Dell Inc.", "PowerEdge R630", "Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz");
        assert!(dell.unwrap().contains("is PowerEdge R630 by Dell Inc., Intel(R) Xeon(R)"));
        assert!(caution_of("HP", "HP EliteBook", "").unwrap().contains("is HP EliteBook, and"));
        let mut host = HostSnapshot::default();
        assert!(caution(&host).unwrap().starts_with("The hardware of this host is not known, and"));
        host.virtualization.is_virtual = Reading::Known(true);
        assert!(caution(&host).unwrap().starts_with("This host is a virtual machine, and"));
        assert_eq!(BiosSheet::of_host(Profile::Trading, &host).caution, caution(&host));
    }

    #[test]
    fn the_trading_profile_leaves_settings_open_and_weakens_nothing() {
        let of = |model| BiosSheet::of(Profile::Trading, model);
        let sheet = of(Some("AMD EPYC 7F32 8-Core Processor"));
        assert!(sheet.left_open.contains(&"AMD Core Performance Boost"));
        assert!(sheet.rows().all(|row| row.hazard.is_empty()));
        let memory = |sheet: &BiosSheet| {
            sheet.rows().find(|row| row.id == "firmware.maximum_memory_bus_frequency").map(SheetRow::value)
        };
        assert_eq!(memory(&sheet).as_deref(), Some("2933 MT/s"));
        assert_eq!(memory(&of(None)).as_deref(), Some("Auto"));
    }
}
