//! One request at a time: changes, and restoring them.

use super::*;
use serde_json::json;

const PLAIN: [&str; 2] = ["hpe-ilo5-bios.json", "hpe-ilo5-registry.json"];

#[test]
fn applied_and_restored_one_request_per_restart() {
    for accept in [false, true] {
        let risks: Vec<String> = table::rows().filter(|_| accept).map(|row| row.id.to_owned()).collect();
        let mut server = Simulated::hpe(&facts(&PLAIN).active);
        let before = server.active.clone();
        let mut saved = Vec::new();
        for later in [1, 0] {
            let facts = server.facts();
            let export = BiosExport::of(&facts, Profile::Guide57037, &risks);
            let change = BiosChange::of(&facts, &export);
            assert_eq!(change.later_requests, later);
            assert!(change.waiting.is_empty() && !change.changes.is_empty());
            if saved.is_empty() {
                assert_eq!(change.changes[0].attribute, "WorkloadProfile");
                assert_eq!(change.changes[0].after, "LowLatency");
                saved = serde_json::to_vec(&export).unwrap();
            }
            server.send(&change.request.unwrap());
        }
        let export = BiosExport::of(&server.facts(), Profile::Guide57037, &risks);
        assert_eq!(BiosChange::of(&server.facts(), &export).request, None);
        assert_ne!(server.active, before);
        assert_eq!((server.restore(&saved).left_out, server.active), (Vec::new(), before));
    }
}

#[test]
fn what_waits_already_is_reported() {
    let mut facts = facts(&STOCK);
    let change = BiosChange::of(&facts, &BiosExport::of(&facts, Profile::Guide57037, &[]));
    let names: Vec<&str> = change.waiting.iter().map(|waiting| waiting.attribute.as_str()).collect();
    assert_eq!(names, ["AcpiSlit", "DeterminismControl", "MinProcIdlePower", "ProcSMT"]);
    assert_eq!(
        (&change.waiting[3].active, &change.waiting[3].pending),
        (&"Enabled".into(), &"Disabled".into())
    );
    // A pending new password is reported but not shown.
    facts.active.insert("SysPassword".into(), Value::Null);
    facts.pending.as_mut().unwrap().insert("SysPassword".into(), "hunter2".into());
    let change = BiosChange::of(&facts, &BiosExport::of(&facts, Profile::Guide57037, &[]));
    assert!(change.waiting.iter().any(|waiting| waiting.attribute == "SysPassword"));
    assert!(!format!("{change:?}").contains("hunter2"));
}

#[test]
fn a_way_back_of_another_kind_or_server_is_refused() {
    let mut facts = facts(&PLAIN);
    facts.server.model = Some("ProLiant DL385 Gen10 Plus".into());
    let export = serde_json::to_value(BiosExport::of(&facts, Profile::Guide57037, &[])).unwrap();
    let refused = |edit: &dyn Fn(&mut Value), part: &str| {
        let mut export = export.clone();
        edit(&mut export);
        let said = BiosChange::restoring(&facts, "before.json", export.to_string().as_bytes())
            .unwrap_err()
            .to_string();
        assert!(said.contains("before.json") && said.contains(part), "{said}");
    };
    refused(&|export| export["document"] = json!("lowlat-plan"), "lowlat-bios-requests");
    refused(&|export| export["schema_version"] = json!(2), "version 1");
    refused(&|export| export["snapshot"] = json!(7), "an object of attributes");
    refused(&|export| export["snapshot"]["ProcSMT"] = json!([]), "an attribute's value");
    refused(
        &|export| export["server"]["model"] = json!("ProLiant DL380 Gen11"),
        "the model is ProLiant DL380",
    );
    refused(&|export| export["snapshot"]["SerialNumber"] = json!("CZ1"), "SerialNumber differs");
    refused(&|export| *export = json!([]), "document");
    let whole = serde_json::to_vec(&export).unwrap();
    for end in (0..whole.len()).step_by(97) {
        let said = BiosChange::restoring(&facts, "x", &whole[..end]).unwrap_err().to_string();
        assert!(said.contains("as JSON"), "{said}");
    }
}

#[test]
fn a_request_waits_for_a_maintenance_window_only_where_that_is_offered() {
    let window = MaintenanceWindow { start: "2030-01-31T02:00:00Z".into(), seconds: 1800 };
    let deferred = |facts: &BiosFacts| {
        let mut request = BiosExport::of(facts, Profile::Trading, &[]).steps.remove(0);
        request.defer(facts, &window).map(|()| request)
    };
    let request = deferred(&facts(&["standard-bios.json", "standard-settings.json"])).unwrap();
    let times = json!({"MaintenanceWindowStartTime": "2030-01-31T02:00:00Z", "MaintenanceWindowDurationInSeconds": 1800});
    let mut apply = times.clone();
    apply["ApplyTime"] = json!("AtMaintenanceWindowStart");
    assert_eq!(request.body["@Redfish.SettingsApplyTime"], apply);
    assert!(request.then.contains("window"), "{}", request.then);
    // Only for operations, and only on the settings resource.
    let read = |support: Value, more: Value| {
        let mut settings: Value = json!({"Attributes": {"ProcSMT": "Disabled"}, "Id": "SD", "@Redfish.OperationApplyTimeSupport": support});
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut reader = BiosReader::default();
        reader
            .add("a", br#"{"Attributes": {"ProcSMT": "Enabled", "AcpiSlit": "Disabled"}, "Id": "Bios"}"#)
            .unwrap();
        reader.add("b", settings.to_string().as_bytes()).unwrap();
        reader.finish().unwrap()
    };
    let offers = json!({"SupportedValues": ["OnReset", "AtMaintenanceWindowStart"]});
    let body = deferred(&read(offers, json!({}))).unwrap().body;
    assert_eq!(body["@Redfish.OperationApplyTime"], "AtMaintenanceWindowStart");
    assert_eq!(
        (&body["@Redfish.MaintenanceWindow"], &body["@Redfish.SettingsApplyTime"]),
        (&times, &Value::Null)
    );
    let only_reset =
        read(json!({"SupportedValues": ["OnReset", 7]}), json!({"@Redfish.SettingsApplyTime": apply}));
    let said = deferred(&only_reset).unwrap_err().to_string();
    assert!(said.contains("it offers: OnReset)\nhint: omit --window-start"), "{said}");
    assert!(deferred(&facts(&PLAIN)).unwrap_err().to_string().contains("offers: none"));
    // The audit names the window for which a change waits.
    let audit = BiosAudit::of(&only_reset, Profile::Trading);
    let expected = "until the maintenance window of 2030-01-31T02:00:00Z for 30 min";
    assert_eq!(verdict(&audit, "firmware.smt"), (BiosVerdict::Pending, expected.to_owned()));
}
