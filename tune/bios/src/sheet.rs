//! The settings of a profile in the order of the BIOS menus, for people who set them manually.

use super::{
    audit::{BiosAudit, BiosFinding},
    facts::BiosFacts,
    judge::{self, is_epyc_7002, is_weakening, wanted_values},
    meaning::shown,
    registry::RegistryEntry,
    table::{MENUS, Row, Vendor, WORKLOAD_PROFILE},
};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{HostSnapshot, Profile, Reading};
use lowlat_settings::{Makers, Setting};
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
    /// The order in which to choose profiles; empty if the server needs none, `None` without its settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<String>>,
    /// What saves the settings in the setup program.
    pub saves_with: &'static str,
    /// Menus with at least one setting.
    pub menus: Vec<SheetMenu>,
    /// Names of the settings that the profile does not change.
    pub left_open: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct SheetMenu {
    pub title: String,
    /// Its settings, from top to bottom.
    pub rows: Vec<SheetRow>,
}

#[derive(Debug, Clone, Serialize)]
pub struct SheetRow {
    pub id: String,
    pub name: String,
    /// Accepted values, the preferred one first.
    pub values: Vec<String>,
    /// The present value; `None` without the server's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<String>,
    /// Class of harm, if the value weakens security or the handling of memory errors.
    pub risk: Option<String>,
    /// Cost of the value; empty if none.
    pub cost: String,
    /// Problem with the guide's advice; empty for other profiles.
    pub hazard: String,
}

impl SheetRow {
    /// The values as one text: "C1 State or No C-states".
    pub fn value(&self) -> String {
        self.values.join(" or ")
    }

    /// Risk, cost and hazard of the value, to consider before setting it; `None` if there is nothing to decide.
    pub fn caution(&self) -> Option<String> {
        let risk = self.risk.as_ref().map(|risk| format!("Risk: {risk}."));
        let cost = Some(self.cost.as_str()).filter(|_| self.risk.is_some());
        let parts = [risk.as_deref(), cost, Some(&*self.hazard)];
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
                .filter(|(row, setting)| !is_of_others(row, setting))
                .filter(|(_, setting)| !judge::is_of_another_maker(setting, processor))
                .filter_map(|(row, setting)| {
                    let name = row.menu_name.unwrap_or(setting.name);
                    let row = sheet_row(row, setting, profile, processor);
                    left_open.extend(row.is_none().then(|| name.to_owned()));
                    row
                })
                .collect();
            menus.extend((!rows.is_empty()).then(|| SheetMenu { title: title.to_owned(), rows }));
        }
        Self {
            document: Self::DOCUMENT,
            schema_version: Self::SCHEMA_VERSION,
            profile,
            caution: None,
            order: None,
            saves_with: saves_with(Some(Vendor::Hpe)),
            menus,
            left_open,
        }
    }

    /// Lists the settings of a profile for a host, with a caution if its menus may be others.
    pub fn of_host(profile: Profile, host: &HostSnapshot) -> Self {
        let processor = host.cpu.model_name.known().map(String::as_str);
        Self { caution: caution(host), ..Self::of(profile, processor) }
    }

    /// Lists the settings of a profile for a server whose settings were read, with their present values: by the menus,
    /// names and values of its registry where that has them. Only what the server has is listed.
    pub fn of_server(facts: &BiosFacts, profile: Profile) -> Self {
        let audit = BiosAudit::of(facts, profile);
        let mut menus: Vec<SheetMenu> = Vec::new();
        let mut left_open = Vec::new();
        for finding in audit.findings {
            let Some(attribute) = &finding.attribute else { continue };
            let entry = facts.registry.as_ref().and_then(|registry| registry.entries.get(attribute));
            let name =
                entry.and_then(|entry| entry.display_name.clone()).unwrap_or_else(|| attribute.clone());
            if finding.wanted.is_empty() {
                left_open.push(name);
                continue;
            }
            let title = entry.and_then(|entry| entry.menu.as_deref()).map(menu_of_path);
            let title = title.unwrap_or_else(|| menu_of(&finding.id).to_owned());
            let row = server_row(finding, entry, name);
            match menus.iter_mut().find(|menu| menu.title == title) {
                Some(menu) => menu.rows.push(row),
                None => menus.push(SheetMenu { title, rows: vec![row] }),
            }
        }
        Self {
            document: Self::DOCUMENT,
            schema_version: Self::SCHEMA_VERSION,
            profile,
            caution: None,
            order: Some(audit.order),
            saves_with: saves_with(facts.vendor),
            menus,
            left_open,
        }
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

/// True if only other makers' setups are known to have a setting, whatever the processor.
fn is_of_others(row: &Row, setting: &Setting) -> bool {
    let is_of_hpe = row.names.iter().any(|names| names.vendor == Some(Vendor::Hpe));
    !is_of_hpe && setting.needs.makers == Makers::All
}

/// How a maker's setup program saves.
fn saves_with(vendor: Option<Vendor>) -> &'static str {
    match vendor {
        Some(Vendor::Hpe) => "F10, or F12 to restart as well",
        Some(Vendor::Dell) => "Finish, and Yes to the question whether to save",
        Some(Vendor::Lenovo) => "Save Settings on the first page",
        Some(Vendor::Supermicro) => "F4",
        Some(Vendor::Cisco) | None => "F10",
    }
}

/// "./SystemBIOS/ProcessorOptions" as "SystemBIOS > ProcessorOptions", and other names unchanged.
fn menu_of_path(path: &str) -> String {
    if !path.starts_with('.') {
        return path.to_owned();
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    parts.join(" > ")
}

/// The menu of a row in HPE's setup, whose names other makers' are close to.
fn menu_of(id: &str) -> &'static str {
    let has = |parts: &[&[Row]]| parts.iter().copied().flatten().any(|row| row.id == id);
    MENUS.iter().find(|(_, parts)| has(parts)).map_or("", |(title, _)| *title)
}

fn server_row(finding: BiosFinding, entry: Option<&RegistryEntry>, name: String) -> SheetRow {
    let displayed = |value: String| {
        let values = entry.map(|entry| entry.values.as_slice()).unwrap_or_default();
        values.iter().find(|(name, _)| *name == value).map_or(value, |(_, display)| display.clone())
    };
    let wanted = if finding.wanted_here.is_empty() { finding.wanted } else { finding.wanted_here };
    SheetRow {
        id: finding.id,
        name,
        values: wanted.into_iter().map(displayed).collect(),
        present: finding.active.as_ref().map(|value| displayed(shown(value))),
        risk: finding.risk,
        cost: finding.cost,
        hazard: finding.hazard,
    }
}

/// The row of a setting; `None` if the profile has no preference.
fn sheet_row(
    row: &Row,
    setting: &'static Setting,
    profile: Profile,
    processor: Option<&str>,
) -> Option<SheetRow> {
    let mut values = wanted_values(setting, profile, Some(processor.unwrap_or_default()))?;
    let risk = is_weakening(row, &values).then(|| setting.risk.word().to_owned());
    if setting.id == WORKLOAD_PROFILE {
        // Custom alone sets nothing; it unlocks what the profile before it has set.
        values = vec!["Low Latency, then Custom".to_owned()];
    }
    let hazard = if profile == Profile::Guide57037 { setting.hazard } else { "" };
    (!values.is_empty()).then_some(SheetRow {
        id: setting.id.into(),
        name: row.menu_name.unwrap_or(setting.name).into(),
        values,
        present: None,
        risk,
        cost: setting.cost.into(),
        hazard: hazard.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{rows, settings};

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
        let iommu = sheet.rows().find(|row| row.id == "firmware.iommu").unwrap();
        assert_eq!(iommu.risk.as_deref(), Some("security"));
        assert!(iommu.caution().unwrap().starts_with("Risk: security. "));
        let intel =
            rows().filter(|row| CATALOGUE.find(row.id).unwrap().needs.makers == Makers::Intel).count();
        let others = settings().filter(|(row, setting)| is_of_others(row, setting)).count();
        assert_eq!(sheet.rows().count() + sheet.left_open.len() + intel + others, rows().count());
        assert!(sheet.rows().all(|row| row.id != "firmware.cxl_memory"), "HPE has no name for it");
        assert!(intel >= 10, "rows of Intel's processors");
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
        assert!(sheet.left_open.iter().any(|name| name == "AMD Core Performance Boost"));
        assert!(sheet.rows().all(|row| row.hazard.is_empty()));
        let memory = |sheet: &BiosSheet| {
            sheet.rows().find(|row| row.id == "firmware.maximum_memory_bus_frequency").map(SheetRow::value)
        };
        assert_eq!(memory(&sheet).as_deref(), Some("2933 MT/s"));
        assert_eq!(memory(&of(None)).as_deref(), Some("Auto"));
    }
}
