//! `lowlat bios` as people and scripts use it.

use crate::common;
use serde_json::Value;
use std::fs;

fn fixture(name: &str) -> String {
    format!("{}/../fixtures/redfish/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = common::lowlat(arguments);
    (output.status.code().unwrap_or(-1), common::text(&output.stdout), common::text(&output.stderr))
}

#[test]
fn the_exit_code_tells_whether_the_server_is_as_wanted() {
    let (guide, stock) = (fixture("hpe-ilo5-as-guide.json"), fixture("hpe-ilo5-bios.json"));
    let registry = fixture("hpe-ilo5-registry.json");
    let rest = ["--registry", &registry, "--profile", "guide-57037"];
    let audit = |file: &str| run(&[&["bios", "audit", "--file", file][..], &rest].concat());
    let (code, said, _) = audit(&guide);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("all match profile guide-57037"), "{said}");
    assert_eq!(audit(&stock).0, 1);
    assert_eq!(audit(&registry).0, 2);
}

#[test]
fn the_audit_as_json_has_a_row_per_setting() {
    let (bios, registry) = (fixture("hpe-ilo5-bios.json"), fixture("hpe-ilo5-registry.json"));
    let (code, said, _) = run(&["bios", "audit", "--file", &bios, "--registry", &registry, "--json"]);
    assert_eq!(code, 1);
    let audit: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(audit["document"], "lowlat bios audit");
    let findings = audit["findings"].as_array().unwrap();
    assert!(findings.len() > 60);
    let smt = findings.iter().find(|finding| finding["id"] == "firmware.smt").unwrap();
    assert_eq!((&smt["attribute"], &smt["active"]), (&"ProcSMT".into(), &"Enabled".into()));
    assert_eq!((&smt["verdict"], &smt["wanted"][0]), (&"differs".into(), &"Disabled".into()));
}

#[test]
fn an_export_is_written_whole_and_says_what_it_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("change.json").display().to_string();
    let (bios, registry) = (fixture("hpe-ilo5-bios.json"), fixture("hpe-ilo5-registry.json"));
    let source = [
        "bios",
        "apply",
        "--dry-run",
        "--file",
        &bios,
        "--registry",
        &registry,
        "--profile",
        "guide-57037",
        "--out",
        &out,
    ];
    let (code, said, talk) = run(&source);
    assert_eq!((code, said.as_str()), (1, ""), "{talk}");
    assert!(talk.contains("left out: firmware.iommu (ProcAmdIoVt): it costs security"), "{talk}");
    let export: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    let attributes = &export["steps"][1]["body"]["Attributes"];
    assert_eq!((&attributes["ProcSMT"], &attributes["ProcAmdIoVt"]), (&"Disabled".into(), &Value::Null));
    assert_eq!(export["restore"][1]["body"]["Attributes"]["WorkloadProfile"], "GeneralPowerEfficientCompute");
    assert_eq!(export["snapshot"]["TpmState"], "NotPresent");
    let accepted = [&source[..], &["--accept-risk", "firmware.iommu"]].concat();
    let (_, _, talk) = run(&accepted);
    assert!(!talk.contains("firmware.iommu"), "{talk}");
    let export: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    assert_eq!(export["steps"][1]["body"]["Attributes"]["ProcAmdIoVt"], "Disabled");
}

#[test]
fn wrong_arguments_and_files_are_refused_with_the_next_step() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("junk"), [0xffu8; 100]).unwrap();
    fs::write(at("shape"), r#"{"Attributes": {"ProcSMT": []}}"#).unwrap();
    let bios = fixture("hpe-ilo5-bios.json");
    let directory = dir.path().display().to_string();
    for (arguments, parts) in [
        (vec!["bios", "audit", "--file", &at("none")], &["none", "No such file", "saved Redfish JSON"][..]),
        (vec!["bios", "audit", "--file", &directory], &["not a regular file"]),
        (vec!["bios", "audit", "--file", "/dev/zero"], &["/dev/zero", "not a regular file"]),
        (vec!["bios", "audit", "--file", &at("junk")], &["junk", "as JSON"]),
        (vec!["bios", "audit", "--file", &at("shape")], &["shape", "$.Attributes", "at least one attribute"]),
        (vec!["bios", "audit", "--file", &bios, "--profile", "quiet"], &["unknown profile \"quiet\""]),
        (
            vec!["bios", "apply", "--dry-run", "--file", &bios, "--accept-risk", "firmware.amd_iomu"],
            &["did you mean \"firmware.iommu\""],
        ),
        (
            vec!["bios", "apply", "--dry-run", "--file", &bios, "--accept-risk", "firmware.smt"],
            &["no value of this setting needs it"],
        ),
        (
            vec!["bios", "apply", "--dry-run", "--file", &bios, "--out", "/nowhere/x.json"],
            &["/nowhere/x.json", "--out"],
        ),
    ] {
        let (code, _, said) = run(&arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{arguments:?} does not say {part:?}: {said}");
        }
    }
}

#[test]
fn a_sheet_is_printed_and_written_for_paper() {
    let host = common::capture("epyc-7f32-stock");
    let host = host.display().to_string();
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("sheet.html").display().to_string();
    let sheet = ["bios", "sheet", "--root", &host];
    let (code, said, talk) = run(&[&sheet[..], &["--profile", "guide-57037", "--report", &page]].concat());
    assert_eq!(code, 0, "{talk}");
    assert!(said.contains("\n  AMD SMT Option = Disabled\n"), "{said}");
    assert!(talk.contains("wrote "), "{talk}");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("AMD SMT Option") && html.contains("ProLiant DL385"));
    let (code, said, _) = run(&[&sheet[..], &["--json"]].concat());
    let sheet: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &sheet["profile"]), (0, &"trading".into()));
    // Derived from the captured processor, an EPYC 7002.
    let rows = sheet["menus"].as_array().unwrap().iter().flat_map(|menu| menu["rows"].as_array().unwrap());
    let memory: Vec<&Value> = rows.filter(|row| row["name"] == "Maximum Memory Bus Frequency").collect();
    assert_eq!(memory.len(), 1);
    assert_eq!(memory[0]["values"], serde_json::json!(["2933 MT/s"]));
}

#[test]
fn two_servers_are_compared_by_meaning_and_without_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, attributes: Value| {
        let path = dir.path().join(name);
        fs::write(&path, serde_json::json!({"Attributes": attributes}).to_string()).unwrap();
        path.display().to_string()
    };
    let dell = write(
        "dell",
        serde_json::json!({"LogicalProc": "Disabled", "ProcCStates": "Enabled", "SysPassword": "a", "DellOnly": 1}),
    );
    let hpe = write(
        "hpe",
        serde_json::json!({"ProcSMT": "Disabled", "MinProcIdlePower": "NoCStates", "SysPassword": "b", "WorkloadProfile": "Custom"}),
    );
    let (code, said, _) = run(&["bios", "diff", &dell, &hpe]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("firmware.core_c_states     Enabled  | NoCStates"), "{said}");
    assert!(said.contains("firmware.workload_profile  missing  | Custom"), "{said}");
    assert!(
        said.contains("2 of 3 settings differ. Only the first server has 1 more, and only the second 0."),
        "{said}"
    );
    assert!(!said.contains("Password") && !said.contains("smt"), "{said}");
    let empty = write("empty", serde_json::json!({"SysPassword": "c"}));
    let (code, said, _) = run(&["bios", "diff", &empty, &empty]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("Could not compare"), "{said}");
    let unknown = write("unknown", serde_json::json!({"X001": "Enabled"}));
    let (code, said, _) = run(&["bios", "apply", "--dry-run", "--file", &unknown]);
    assert_eq!(code, 4, "nothing to send, because nothing was checked: {said}");
    let (code, said, _) = run(&["bios", "diff", &dell, &dell]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("3 settings compared, all are equal."), "{said}");
    let (code, said, _) = run(&["bios", "diff", &dell, &hpe, "--json"]);
    let diff: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, diff["differences"].as_array().unwrap().len()), (1, 2));
}
