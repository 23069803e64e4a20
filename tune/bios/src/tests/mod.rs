//! Saved resources of an HPE iLO 5 and of a standard service: complete, truncated and hostile.

mod change;
mod hostile;
mod makers;
mod restore;

use super::*;
use lowlat_host::Profile;
use restore::{Maker, Simulated};
use serde_json::Value;

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../../fixtures/redfish/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn facts(names: &[&str]) -> BiosFacts {
    let mut reader = BiosReader::default();
    for name in names {
        reader.add(name, &fixture(name)).unwrap();
    }
    reader.finish().unwrap()
}

const STOCK: [&str; 3] = ["hpe-ilo5-bios.json", "hpe-ilo5-settings.json", "hpe-ilo5-registry.json"];

fn verdict(audit: &BiosAudit, id: &str) -> (BiosVerdict, String) {
    let finding = audit.findings.iter().find(|finding| finding.id == id).unwrap();
    (finding.verdict, finding.because.clone())
}

fn body(request: &Request) -> &Value {
    &request.body["Attributes"]
}

#[test]
fn a_stock_server_differs_and_says_how() {
    let audit = BiosAudit::of(&facts(&STOCK), Profile::Guide57037);
    let is = |id: &str, expected: BiosVerdict, because: &str| {
        let (verdict, said) = verdict(&audit, id);
        assert_eq!(verdict, expected, "{id}: {said}");
        assert!(said.contains(because), "{id}: {said}");
    };
    is("firmware.workload_profile", BiosVerdict::Differs, "");
    is("firmware.smt", BiosVerdict::Pending, "");
    is("firmware.acpi_slit", BiosVerdict::Lost, "");
    is("firmware.hpet_acpi_support", BiosVerdict::Good, "");
    is("firmware.power_regulator", BiosVerdict::Overridden, "WorkloadProfile = GeneralPowerEfficientCompute");
    is("firmware.amd_fmax_boost_limit", BiosVerdict::Overridden, "ProcAMDBoostControl = AmdFmaxBoostAuto");
    is("firmware.infinity_fabric_performance_state", BiosVerdict::NotOffered, "P0, P1, P2, P3, Auto");
    // A pending change that the profile will drop.
    is("firmware.core_c_states", BiosVerdict::Overridden, "makes it C6");
    assert_eq!(audit.order.len(), 2);
    assert!(audit.order[0].contains("LowLatency") && audit.order[1].contains("Custom"));
}

#[test]
fn a_server_as_the_guide_has_it_is_as_wanted() {
    let names = ["hpe-ilo5-as-guide.json", "hpe-ilo5-registry.json"];
    let audit = BiosAudit::of(&facts(&names), Profile::Guide57037);
    assert_eq!(
        audit.counts.differences,
        0,
        "{:?}",
        audit.findings.iter().find(|f| f.verdict.is_difference())
    );
    assert!(audit.counts.judged >= 60 && audit.counts.unknown == 0, "{:?}", audit.counts);
    assert_eq!(audit.server.model.as_deref(), Some("ProLiant DL385 Gen10 Plus"));
    assert_eq!(audit.order, Vec::<String>::new());
    let export = BiosExport::of(&facts(&names), Profile::Guide57037, &[]);
    assert_eq!(export.steps, []);
    // The default profile wants memory in step with this processor's fabric.
    let trading = BiosAudit::of(&facts(&names), Profile::Trading);
    assert_eq!(verdict(&trading, "firmware.maximum_memory_bus_frequency").0, BiosVerdict::Differs);
    assert_eq!(verdict(&trading, "firmware.boost").0, BiosVerdict::NoOpinion);
}

#[test]
fn staying_with_low_latency_is_an_outcome_of_the_guide() {
    let says = |names: &[&str], profile| {
        let audit = BiosAudit::of(&facts(names), profile);
        audit.warnings.into_iter().find(|warning| warning.contains("3.2.1")).unwrap_or_default()
    };
    let low_latency = ["hpe-ilo5-low-latency.json", "hpe-ilo5-registry.json"];
    assert!(says(&low_latency, Profile::Guide57037).contains("has workload profile Low Latency"));
    assert!(says(&STOCK, Profile::Guide57037).contains("Choose workload profile Low Latency first"));
    assert_eq!(says(&["hpe-ilo5-as-guide.json", "hpe-ilo5-registry.json"], Profile::Guide57037), "");
    assert_eq!(says(&STOCK, Profile::Trading), "");
}

#[test]
fn without_a_registry_what_hpe_documents_is_still_held_by_the_profile() {
    let audit = BiosAudit::of(&facts(&STOCK[..2]), Profile::Guide57037);
    assert_eq!(verdict(&audit, "firmware.power_regulator").0, BiosVerdict::Overridden);
    let (verdict, because) = verdict(&audit, "firmware.core_c_states");
    assert_eq!(verdict, BiosVerdict::Overridden);
    assert!(because.contains("the pending change will be dropped"), "{because}");
    assert!(audit.warnings.iter().any(|warning| warning.contains("registry")));
}

#[test]
fn a_standard_service_is_read_with_booleans_and_only_what_waits() {
    let names = ["standard-bios.json", "standard-settings.json"];
    let audit = BiosAudit::of(&facts(&names), Profile::Trading);
    assert_eq!(verdict(&audit, "firmware.smt").0, BiosVerdict::Pending);
    assert_eq!(verdict(&audit, "firmware.acpi_slit").0, BiosVerdict::Good);
    assert_eq!(verdict(&audit, "firmware.data_fabric_cstate_enable").0, BiosVerdict::Good);
    let (is, because) = verdict(&audit, "firmware.memory_interleaving_mode");
    assert_eq!((is, because.contains("PropertyNotWritable")), (BiosVerdict::Differs, true), "{because}");
    let export = BiosExport::of(&facts(&names), Profile::Trading, &[]);
    let step = &export.steps[0];
    assert_eq!(step.uri.as_deref(), Some("/redfish/v1/Systems/437XR1138R2/Bios/SD"));
    assert_eq!(step.body["@Redfish.SettingsApplyTime"]["ApplyTime"], "OnReset");
    assert_eq!(body(step)["AmdMemoryInterleaving"], "Enabled");
    assert!(body(step).get("ProcSMT").is_none(), "it waits already");
}

#[test]
fn the_profile_changes_first_and_takes_no_protection_away() {
    let export = BiosExport::of(&facts(&STOCK), Profile::Guide57037, &[]);
    assert_eq!(export.steps.len(), 2);
    assert_eq!(body(&export.steps[0]), &serde_json::json!({"WorkloadProfile": "LowLatency"}));
    let second = body(&export.steps[1]);
    assert_eq!(second["WorkloadProfile"], "Custom");
    // Low Latency switches patrol scrubbing off, and that risk was not accepted.
    assert_eq!(second["MemPatrolScrubbing"], "Enabled");
    // Low Latency sets these as wanted, so there is nothing left to change.
    assert!(second.get("PowerRegulator").is_none() && second.get("MinProcIdlePower").is_none());
    assert!(second.get("ProcAmdIoVt").is_none());
    assert_eq!(second["ProcAmdFmax"], 3700);
    assert_eq!(second["AcpiSlit"], "Enabled", "a wrong change that waits is taken back");
    let ids: Vec<&str> = export.left_out.iter().map(|row| row.id.as_str()).collect();
    for id in
        ["firmware.iommu", "firmware.memory_patrol_scrubbing", "firmware.infinity_fabric_performance_state"]
    {
        assert!(ids.contains(&id), "{id} is not among {ids:?}");
    }
}

#[test]
fn an_accepted_risk_is_exported_alone() {
    let risks = ["firmware.iommu".to_owned()];
    let export = BiosExport::of(&facts(&STOCK), Profile::Guide57037, &risks);
    assert_eq!(body(&export.steps[1])["ProcAmdIoVt"], "Disabled");
    assert_eq!(body(&export.steps[1])["MemPatrolScrubbing"], "Enabled");
    assert_eq!(needs_accepted_risk("firmware.smt"), Some(false));
    assert_eq!(needs_accepted_risk("firmware.iommu"), Some(true));
    assert_eq!(needs_accepted_risk("sysctl.vm.swappiness"), None);
}

#[test]
fn from_low_latency_one_step_is_enough() {
    let names = ["hpe-ilo5-low-latency.json", "hpe-ilo5-registry.json"];
    let export = BiosExport::of(&facts(&names), Profile::Guide57037, &[]);
    assert_eq!(export.steps.len(), 1);
    assert_eq!(body(&export.steps[0])["WorkloadProfile"], "Custom");
}

#[test]
fn the_steps_make_the_server_as_wanted_and_the_restore_brings_it_back() {
    for profile in Profile::ALL {
        for start in [&STOCK[..], &["hpe-ilo5-low-latency.json", "hpe-ilo5-registry.json"]] {
            let facts = facts(start);
            let before = facts.active.clone();
            let mut server = Simulated::hpe(&facts.after_restart());
            let risks: Vec<String> = table::rows().map(|row| row.id.to_owned()).collect();
            let export = BiosExport::of(&facts, profile, &risks);
            export.steps.iter().for_each(|step| server.send(step));
            let facts = server.facts();
            let audit = BiosAudit::of(&facts, profile);
            let wrong: Vec<&str> = audit
                .findings
                .iter()
                .filter(|finding| finding.verdict.is_difference())
                .map(|finding| finding.id.as_str())
                .collect();
            assert_eq!(wrong, Vec::<&str>::new(), "{profile} from {start:?}");
            assert_eq!(
                BiosExport::of(&facts, profile, &risks).steps,
                [],
                "a second export has nothing to do"
            );
            export.restore.iter().for_each(|step| server.send(step));
            let differing: Vec<&String> =
                before.keys().filter(|name| server.active.get(*name) != before.get(*name)).collect();
            assert!(differing.is_empty(), "{profile} from {start:?}: {differing:?}");
        }
    }
}

#[test]
fn other_vendors_names_and_spellings_are_known() {
    let read = |attributes: Value| {
        let resource = serde_json::json!({"@odata.type": "#Bios.v1_0_0.Bios", "Attributes": attributes});
        let mut reader = BiosReader::default();
        reader.add("other.json", resource.to_string().as_bytes()).unwrap();
        reader.finish().unwrap()
    };
    let dell = read(serde_json::json!({
        "SysProfile": "PerfOptimized", "LogicalProc": "Disabled", "ProcCStates": "Disabled",
        "NumaNodesPerSocket": "1", "ApbDis": "Enabled", "MemPatrolScrub": "Extended",
        "DeterminismSlider": "PowerDeterminism", "SysPassword": null,
    }));
    assert_eq!(dell.vendor, Some(Vendor::Dell));
    let audit = BiosAudit::of(&dell, Profile::Trading);
    for id in [
        "firmware.smt",
        "firmware.core_c_states",
        "firmware.numa_memory_domains_per_socket",
        "firmware.infinity_fabric_power_management",
        "firmware.memory_patrol_scrubbing",
    ] {
        assert_eq!(verdict(&audit, id).0, BiosVerdict::Good, "{id}");
    }
    assert_eq!(verdict(&audit, "firmware.performance_determinism").0, BiosVerdict::Differs);
    // Dell has nothing like it, so the row is not Dell's.
    assert!(!audit.findings.iter().any(|finding| finding.id == "firmware.thermal_configuration"));
    let export = BiosExport::of(&dell, Profile::Trading, &[]);
    assert_eq!(body(&export.steps[0])["DeterminismSlider"], "PerfDeterminism");
    assert!(!export.snapshot.contains_key("SysPassword"), "no password in a file");
    let supermicro = read(serde_json::json!({
        "SMTControl_00CB": "Disabled", "NUMANodesPerSocket_703E": "NPS4", "DFCstates_7103": "Disabled",
    }));
    assert_eq!(supermicro.vendor, Some(Vendor::Supermicro));
    let audit = BiosAudit::of(&supermicro, Profile::Trading);
    assert_eq!(verdict(&audit, "firmware.smt").0, BiosVerdict::Good);
    assert_eq!(verdict(&audit, "firmware.numa_memory_domains_per_socket").0, BiosVerdict::Differs);
}
