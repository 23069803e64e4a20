//! Servers of many makers, by their published attributes: `fixtures/redfish/makers.json`.

use super::*;
use serde_json::json;

/// The facts about a server of the fixture.
fn facts_of(server: &Value) -> BiosFacts {
    let entry = |(name, menu): (&String, &Value)| {
        let values = menu[1].as_array().unwrap().iter().map(|value| match value.as_array() {
            Some(pair) => json!({"ValueName": pair[0], "ValueDisplayName": pair[1]}),
            None => json!({"ValueName": value}),
        });
        json!({"AttributeName": name, "DisplayName": menu[0], "Value": values.collect::<Vec<_>>()})
    };
    let entries: Vec<Value> = server["menus"].as_object().into_iter().flatten().map(entry).collect();
    let mut documents = vec![
        json!({"@odata.type": "#Bios.v1_1_0.Bios", "@odata.id": "/redfish/v1/Systems/1/Bios", "Attributes": server["attributes"]}),
        json!({"@odata.type": "#ComputerSystem.v1_0_0.ComputerSystem", "Manufacturer": server["maker"], "Model": server["model"], "ProcessorSummary": {"Model": server["processor"]}}),
    ];
    if !entries.is_empty() {
        documents.push(json!({"RegistryEntries": {"Attributes": entries}}));
    }
    read(&documents)
}

fn read(documents: &[Value]) -> BiosFacts {
    let mut reader = BiosReader::default();
    for document in documents {
        reader.add("server.json", document.to_string().as_bytes()).unwrap();
    }
    reader.finish().unwrap()
}

fn servers() -> Vec<Value> {
    serde_json::from_slice(&fixture("makers.json")).unwrap()
}

/// A registry with these attributes, each with its values, and dependencies as (attribute, values of it, target,
/// property, value).
fn registry(attributes: &[(&str, &[&str])], dependencies: &[(&str, &[&str], &str, &str, Value)]) -> Value {
    let entry = |(name, values): &(&str, &[&str])| {
        let values: Vec<Value> = values.iter().map(|value| json!({"ValueName": value})).collect();
        json!({"AttributeName": name, "Value": values})
    };
    let map = |(from, values, to, property, value): &(&str, &[&str], &str, &str, Value)| {
        let term = |is: &&str| json!({"MapFromAttribute": from, "MapFromProperty": "CurrentValue", "MapFromCondition": "EQU", "MapFromValue": is});
        let terms: Vec<Value> = values.iter().map(term).collect();
        json!({"Type": "Map", "Dependency": {"MapFrom": terms, "MapToAttribute": to, "MapToProperty": property, "MapToValue": value}})
    };
    let (attributes, dependencies): (Vec<Value>, Vec<Value>) =
        (attributes.iter().map(entry).collect(), dependencies.iter().map(map).collect());
    json!({"RegistryEntries": {"Attributes": attributes, "Dependencies": dependencies}})
}

fn server(maker: &str, processor: &str) -> Value {
    json!({"@odata.type": "#ComputerSystem.v1_0_0.ComputerSystem", "Manufacturer": maker, "ProcessorSummary": {"Model": processor}})
}

fn bios(attributes: &Value) -> Value {
    json!({"@odata.id": "/redfish/v1/Systems/1/Bios", "Attributes": attributes})
}

fn pending(attributes: &Value) -> Value {
    json!({"@odata.id": "/redfish/v1/Systems/1/Bios/Settings", "Attributes": attributes})
}

/// The table of docs/firmware.md.
#[test]
fn the_table_of_makers_is_that_of_the_handbook() {
    let mut table = String::from(
        "| maker | model | processor | source | found | judged | unknown here |\n|---|---|---|---|---|---|---|\n",
    );
    for server in servers() {
        let facts = facts_of(&server);
        let audit = BiosAudit::of(&facts, Profile::Trading);
        let found = audit.findings.iter().filter(|finding| finding.attribute.is_some()).count();
        let text = |name: &str| server[name].as_str().unwrap().to_owned();
        let (judged, unknown) = (audit.counts.judged, audit.counts.unknown);
        assert!(found * 3 > facts.active.len(), "{}: {found} of {}", text("model"), facts.active.len());
        table += &format!(
            "| {} | {} | {} | {} | {found} | {judged} | {unknown} |\n",
            text("maker"),
            text("model"),
            text("processor"),
            text("source")
        );
    }
    let path = format!("{}/../../docs/firmware.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(&path).unwrap();
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        let (before, rest) = page.split_once("| maker |").unwrap();
        let after = rest.split_once("\n\n").unwrap().1;
        std::fs::write(&path, format!("{before}{table}\n{after}")).unwrap();
    } else {
        assert!(page.contains(&table), "INSTA_UPDATE=always writes it into {path}:\n{table}");
    }
}

/// No row speaks of another maker or of another maker's processors, and no wanted value looks like the present one.
#[test]
fn every_maker_is_judged_in_its_own_words() {
    for server in servers() {
        let facts = facts_of(&server);
        let maker = server["maker"].as_str().unwrap();
        let named = facts.vendor.map_or("", Vendor::word);
        assert!(maker.to_lowercase().starts_with(&named.to_lowercase()), "{maker} {named}");
        for profile in Profile::ALL {
            let audit = BiosAudit::of(&facts, profile);
            let is_intel = server["processor"].as_str().unwrap().contains("Intel");
            for finding in &audit.findings {
                let is_of_amd = ["amd_", "xgmi", "infinity", "data_fabric", "sev"]
                    .iter()
                    .any(|part| finding.id.contains(part));
                assert!(!(is_intel && is_of_amd && finding.attribute.is_none()), "{maker}: {}", finding.id);
                let active = finding.active.as_ref().map(shown).unwrap_or_default();
                let is_bad = finding.verdict == BiosVerdict::Differs;
                assert!(
                    !(is_bad && finding.wanted_here.contains(&active)),
                    "{maker}: {} {active}",
                    finding.id
                );
                let values = facts.registry.as_ref().and_then(|r| r.entries.get(finding.attribute.as_ref()?));
                let offered = |value: &String| {
                    values.is_none_or(|entry| {
                        entry.values.is_empty()
                            || entry.values.iter().any(|(name, display)| name == value || display == value)
                    })
                };
                assert!(finding.wanted_here.iter().all(offered), "{maker}: {finding:?}");
            }
        }
    }
}

/// What is left out of the findings is named, so that "N of M rows" can be understood.
#[test]
fn rows_that_only_other_makers_have_are_named() {
    for server in servers() {
        let audit = BiosAudit::of(&facts_of(&server), Profile::Trading);
        let counted =
            audit.findings.iter().filter(|finding| finding.verdict != BiosVerdict::NoOpinion).count();
        let with_preference = |(_, setting): &(&table::Row, &lowlat_settings::Setting)| {
            judge::wanted_values(setting, Profile::Trading, Some("AMD"))
                .is_none_or(|wanted| !wanted.is_empty())
        };
        assert_eq!(counted + audit.not_here.len(), table::settings().filter(with_preference).count());
        let has = |id: &str| audit.not_here.iter().any(|row| row == id);
        let is_amd = server["processor"].as_str().unwrap().contains("AMD");
        assert!(has(if is_amd { "firmware.c1e" } else { "firmware.determinism_control" }), "{server}");
    }
}

#[test]
fn numbered_values_are_written_as_their_menus_show_them() {
    let facts = facts_of(
        servers()
            .iter()
            .find(|server| server["maker"] == "Supermicro" && server["menus"].is_object())
            .unwrap(),
    );
    let audit = BiosAudit::of(&facts, Profile::Trading);
    let here =
        |id: &str| audit.findings.iter().find(|finding| finding.id == id).unwrap().wanted_here.join(",");
    assert_eq!(here("firmware.package_c_state"), "C0/C1 state");
    assert_eq!(here("firmware.core_c_states"), "Disable");
    let cray = servers().into_iter().find(|server| server["model"] == "HPE Cray EX4252").unwrap();
    let export = BiosExport::of(&facts_of(&cray), Profile::Trading, &[]);
    assert_eq!(body(&export.steps[0])["CbsDfCmnDramNps"], "CbsDfCmnDramNpsNPS1");
    assert_eq!(body(&export.steps[0])["CbsCmnDeterminismEnable"], "CbsCmnDeterminismEnablePerformance");
}

const PROFILES: &[&str] = &["PerfPerWattOptimizedOs", "PerfOptimized", "DenseCfgOptimized", "Custom"];
const SWITCH: &[&str] = &["Enabled", "Disabled"];

fn dell(active: &Value, waiting: &Value) -> BiosFacts {
    let mut registry = registry(
        &[("SysProfile", PROFILES), ("ProcC1E", SWITCH), ("ProcTurboMode", SWITCH), ("LogicalProc", SWITCH)],
        &[
            ("SysProfile", &PROFILES[..1], "ProcC1E", "CurrentValue", json!("Enabled")),
            ("SysProfile", &PROFILES[1..3], "ProcC1E", "CurrentValue", json!("Disabled")),
            ("SysProfile", &PROFILES[..3], "ProcC1E", "ReadOnly", json!(true)),
            ("SysProfile", &PROFILES[..3], "ProcTurboMode", "GrayOut", json!("true")),
        ],
    );
    // The registry of the server shows the present state.
    registry["RegistryEntries"]["Attributes"][1]["ReadOnly"] = json!(true);
    read(&[server("Dell Inc.", "Intel(R) Xeon(R) Gold 6354"), bios(active), pending(waiting), registry])
}

#[test]
fn comparisons_without_a_word_are_alternatives_and_the_profile_comes_first() {
    let stock = json!({"SysProfile": "PerfOptimized", "ProcC1E": "Disabled", "ProcTurboMode": "Enabled", "LogicalProc": "Enabled"});
    let facts = dell(&stock, &json!({"SysProfile": "PerfPerWattOptimizedOs"}));
    let audit = BiosAudit::of(&facts, Profile::Trading);
    assert_eq!(verdict(&audit, "firmware.c1e").0, BiosVerdict::Lost, "the pending profile makes it Enabled");
    let facts = dell(
        &json!({"SysProfile": "PerfPerWattOptimizedOs", "ProcC1E": "Enabled", "LogicalProc": "Enabled"}),
        &json!({}),
    );
    let export = BiosExport::of(&facts, Profile::Trading, &[]);
    let steps: Vec<&Value> = export.steps.iter().map(body).collect();
    assert_eq!(
        steps,
        [&json!({"LogicalProc": "Disabled", "SysProfile": "Custom"}), &json!({"ProcC1E": "Disabled"})]
    );
    // What is in force under a profile is not lost, whatever the registry computes.
    let odd = json!({"SysProfile": "PerfPerWattOptimizedOs", "ProcC1E": "Disabled"});
    assert_eq!(
        verdict(&BiosAudit::of(&dell(&odd, &json!({})), Profile::Trading), "firmware.c1e").0,
        BiosVerdict::Good
    );
}

#[test]
fn what_a_wanted_value_leaves_without_effect_is_no_difference() {
    let registry = registry(
        &[("ProcAMDBoost", SWITCH), ("ProcAMDBoostControl", &["AmdFmaxBoostAuto", "AmdFmaxBoostManual"])],
        &[("ProcAMDBoost", &["Disabled"], "ProcAMDBoostControl", "Hidden", json!(true))],
    );
    let with = |boost: &str| {
        let active = json!({"ProcAMDBoost": boost, "ProcAMDBoostControl": "AmdFmaxBoostAuto"});
        let facts = read(&[server("HPE", "AMD EPYC 7F32"), bios(&active), registry.clone()]);
        verdict(&BiosAudit::of(&facts, Profile::Guide57037), "firmware.amd_fmax_boost_limit_control").0
    };
    assert_eq!(with("Disabled"), BiosVerdict::NoEffect);
    assert_eq!(with("Enabled"), BiosVerdict::Differs);
}

fn hpe_intel(active: &Value) -> Simulated {
    let profiles: &[&str] = &["GeneralPowerEfficientCompute", "LowLatency", "Custom"];
    let low: &[&str] = &["LowLatency"];
    let registry = registry(
        &[
            ("WorkloadProfile", profiles),
            ("IntelProcVtd", SWITCH),
            ("Sriov", SWITCH),
            ("ProcX2Apic", &["Auto", "ForceEnabled"]),
        ],
        &[
            ("WorkloadProfile", low, "IntelProcVtd", "CurrentValue", json!("Disabled")),
            ("WorkloadProfile", low, "Sriov", "CurrentValue", json!("Disabled")),
            ("WorkloadProfile", low, "ProcX2Apic", "CurrentValue", json!("Auto")),
            ("WorkloadProfile", &profiles[..2], "ProcX2Apic", "ReadOnly", json!(true)),
        ],
    );
    Simulated::of(Maker::Hpe, server("HPE", "Intel(R) Xeon(R) Gold 6430"), registry, active)
}

#[test]
fn a_profile_that_costs_security_is_not_chosen_without_consent() {
    let facts = hpe_intel(
        &json!({"WorkloadProfile": "GeneralPowerEfficientCompute", "IntelProcVtd": "Enabled", "Sriov": "Enabled", "ProcX2Apic": "ForceEnabled"}),
    )
    .facts();
    let export = BiosExport::of(&facts, Profile::Trading, &[]);
    assert_eq!(body(&export.steps[0])["WorkloadProfile"], "Custom");
    let why = &export.left_out[0].why;
    assert!(
        why.contains("IntelProcVtd to Disabled") && why.contains("--accept-risk firmware.iommu"),
        "{why}"
    );
    let export = BiosExport::of(&facts, Profile::Trading, &["firmware.iommu".to_owned()]);
    let follows: Vec<(&str, String)> = export.steps[0]
        .follows
        .iter()
        .map(|effect| (effect.attribute.as_str(), shown(&effect.after)))
        .collect();
    let expected = [("IntelProcVtd", "Disabled"), ("ProcX2Apic", "Auto"), ("Sriov", "Disabled")];
    assert_eq!(follows, expected.map(|(name, value)| (name, value.to_owned())));
    assert_eq!(body(&export.steps[1])["IntelProcVtd"], "Enabled", "the profile trading wants it on");
    let order = BiosAudit::of(&facts, Profile::Trading).order.join(" ");
    assert!(order.contains("ProcX2Apic = Auto, Sriov = Disabled"), "{order}");
}

/// A value that the old profile locks is restored before that profile, or named.
#[test]
fn a_restore_is_whole_or_names_what_it_cannot_restore() {
    let before = json!({"WorkloadProfile": "GeneralPowerEfficientCompute", "IntelProcVtd": "Enabled", "Sriov": "Enabled", "ProcX2Apic": "ForceEnabled"});
    let first = hpe_intel(&before);
    let risks = ["firmware.iommu".to_owned()];
    let export = BiosExport::of(&first.facts(), Profile::Trading, &risks);
    let saved = serde_json::to_vec(&export).unwrap();
    // From each state that an apply passes through.
    let mut server = first.clone();
    for step in &export.steps {
        server.send(step);
        assert_eq!(server.active["ProcX2Apic"], "Auto");
        let mut back = server.clone();
        assert_eq!((back.restore(&saved).left_out, back.active), (Vec::new(), first.active.clone()));
    }
    // Somebody chose the old profile by hand: what it locks cannot be changed any more.
    let mut lost = before;
    lost["ProcX2Apic"] = json!("Auto");
    let change = BiosChange::restoring(&hpe_intel(&lost).facts(), "before.json", &saved).unwrap();
    assert_eq!(change.request, None);
    assert_eq!(change.left_out[0].attribute, "ProcX2Apic");
    let why = "it was ForceEnabled, stays Auto, and WorkloadProfile = GeneralPowerEfficientCompute locks it";
    assert_eq!(change.left_out[0].why, why);
}

#[test]
fn a_settings_resource_without_attributes_has_nothing_pending() {
    let named = json!({"@odata.id": "/redfish/v1/Systems/1/Bios", "Attributes": {"ProcC1E": "Enabled"}, "@Redfish.Settings": {"SettingsObject": {"@odata.id": "/redfish/v1/Systems/1/Bios/Later"}}});
    for settings in [json!({}), json!({"Attributes": null}), json!({"Attributes": {}})] {
        let mut settings = settings;
        settings["@odata.type"] = json!("#Bios.v1_2_0.Bios");
        settings["@odata.id"] = json!("/redfish/v1/Systems/1/Bios/Later");
        let facts = read(&[named.clone(), settings]);
        assert_eq!(
            (facts.pending, facts.settings_uri.as_deref()),
            (Some(Attributes::new()), Some("/redfish/v1/Systems/1/Bios/Later"))
        );
    }
}

#[test]
fn secrets_are_neither_saved_nor_sent() {
    let saved =
        bios(&json!({"SHA256SetupPasswordSalt": "a1", "AdminPwd": "hunter2", "LogicalProc": "Enabled"}))
            .to_string();
    let kept = String::from_utf8(without_secrets(saved.as_bytes()).into_owned()).unwrap();
    assert!(!kept.contains("a1") && !kept.contains("hunter2") && kept.contains("LogicalProc"), "{kept}");
    let secrets = [
        "HttpBootTlsPrivateKey",
        "TpmOwnerAuth",
        "IscsiChapPw",
        "SnmpCommunity",
        "SetupPwHash",
        "KmsPasscode",
    ];
    let hidden = json!(
        secrets.map(|name| (name, "hunter2")).into_iter().collect::<std::collections::BTreeMap<_, _>>()
    );
    assert!(
        !String::from_utf8_lossy(&without_secrets(bios(&hidden).to_string().as_bytes())).contains("hunter2")
    );
    let plain = bios(&json!({"LogicalProc": "Enabled", "BootHotKey": "F2"})).to_string();
    assert_eq!(without_secrets(plain.as_bytes()), plain.as_bytes());
    assert_eq!(&*without_secrets(b"<html>"), b"<html>");
}

#[test]
fn the_sheet_of_a_server_has_its_menus_names_and_present_values() {
    let mut registry =
        registry(&[("MemPatrolScrub", &["Extended", "Standard"]), ("LogicalProc", SWITCH)], &[]);
    let entries = &mut registry["RegistryEntries"];
    entries["Menus"] = json!([{"MenuPath": "./ProcSettingsRef", "DisplayName": "Processor Settings"}]);
    entries["Attributes"][1]["MenuPath"] = json!("./ProcSettingsRef");
    entries["Attributes"][1]["DisplayName"] = json!("Logical Processor");
    entries["Attributes"][0]["MenuPath"] = json!("./System/Memory");
    let active = bios(&json!({"MemPatrolScrub": "Standard", "LogicalProc": "Enabled"}));
    let sheet =
        BiosSheet::of_server(&read(&[server("Dell Inc.", "Intel Xeon"), active, registry]), Profile::Trading);
    let rows: Vec<String> = sheet
        .menus
        .iter()
        .flat_map(|menu| menu.rows.iter().map(move |row| (menu, row)))
        .map(|(menu, row)| {
            format!("{}: {} = {}, was {}", menu.title, row.name, row.value(), row.present.as_deref().unwrap())
        })
        .collect();
    assert_eq!(
        rows,
        [
            "Processor Settings: Logical Processor = Disabled, was Enabled",
            "System > Memory: MemPatrolScrub = Standard, was Standard"
        ]
    );
    assert!(sheet.saves_with.starts_with("Finish"));
}
