//! Every input that is not a resource is an error that names file, place and expectation, and never a panic.

use super::{super::*, fixture};
use proptest::prelude::*;

fn refused(documents: &[&str]) -> String {
    let mut reader = BiosReader::default();
    for (index, document) in documents.iter().enumerate() {
        if let Err(error) = reader.add(&format!("file{index}.json"), document.as_bytes()) {
            return error.to_string();
        }
    }
    reader.finish().map(|_| ()).expect_err("hostile").to_string()
}

#[test]
fn errors_name_file_place_and_what_was_expected() {
    let bios = r#"{"Attributes": {"ProcSMT": "Enabled"}}"#;
    for (documents, parts) in [
        (vec!["nonsense"], &["file0.json", "as JSON", "line 1 column"][..]),
        (vec![""], &["file0.json", "as JSON"]),
        (vec!["7"], &["file0.json", "found 7 at $", "\"Attributes\""]),
        (vec!["{}"], &["file0.json", "an object of 0 members", "\"RegistryEntries\""]),
        (
            vec![r#"{"Attributes": []}"#],
            &["file0.json", "$.Attributes", "an array of 0", "object of attributes"],
        ),
        (vec![r#"{"Attributes": {}}"#], &["file0.json", "$.Attributes", "at least one attribute"]),
        (vec![r#"{"Attributes": null}"#], &["file0.json", "$.Attributes", "nothing"]),
        (
            vec![r#"{"Attributes": {"A b": {"x": 1}}}"#],
            &["file0.json", "$.Attributes", "at least one attribute with a value"],
        ),
        (
            vec![r#"{"error": {"code": "x", "message": "no session"}}"#],
            &["file0.json", "no session", "credentials"],
        ),
        (vec![bios, bios], &["file0.json", "file1.json", "one server"]),
        (
            vec![r#"{"Attributes": {"A": 1}, "Id": "settings"}"#],
            &["cannot find an active Bios resource", "--file"],
        ),
    ] {
        let said = refused(&documents);
        for part in parts {
            assert!(said.contains(part), "{documents:?} does not say {part:?}: {said}");
        }
        assert!(said.len() < 400, "{said}");
    }
}

/// The warnings about a server of which one attribute is readable, with a registry.
fn warned(registry: &str) -> String {
    let mut reader = BiosReader::default();
    reader
        .add("bios.json", br#"{"Attributes": {"ProcSMT": "Enabled", "Fan": {"x": 1}, "Boot": [1]}}"#)
        .unwrap();
    reader.add_registry("registry.json", registry.as_bytes());
    let facts = reader.finish().unwrap();
    assert_eq!(BiosAudit::of(&facts, lowlat_host::Profile::Trading).counts.judged, 1);
    facts.warnings.join("\n")
}

#[test]
fn what_is_strange_costs_only_itself() {
    let entries = |entries: &str| format!(r#"{{"RegistryEntries": {entries}}}"#);
    let smt = r#"{"AttributeName": "ProcSMT", "ReadOnly": "false", "LowerBound": [], "Value": [{"ValueName": "Enabled"}, {"ValueName": "Disabled"}]}"#;
    let dependency =
        |dependency: &str| entries(&format!(r#"{{"Attributes": [{smt}], "Dependencies": [{dependency}]}}"#));
    for (registry, parts) in [
        (
            "<html>403 Forbidden</html>".to_owned(),
            &["registry could not be read", "registry.json", "as JSON"][..],
        ),
        (r#"{"error": {"message": "no right"}}"#.into(), &["registry could not be read", "no right"]),
        (entries("[]"), &["registry.json contains no attributes"]),
        (
            entries(&format!(r#"{{"Attributes": [7, {{}}, {smt}]}}"#)),
            &["attributes, because of an unknown shape: 2", "Attributes[0]"],
        ),
        (
            dependency(
                r#"{"Type": "Map", "Dependency": {"MapFrom": [{"MapFromAttribute": "A", "MapFromCondition": "LIKE"}], "MapToAttribute": "B", "MapToProperty": "ReadOnly"}}"#,
            ),
            &["MapFrom[0].MapFromCondition", "\"LIKE\"", "EQU, NEQ"],
        ),
        (
            dependency(
                r#"{"Dependency": {"MapFrom": [], "MapToAttribute": "B", "MapToProperty": "CurrentValue", "MapToValue": [1]}}"#,
            ),
            &["dependencies, because of an unknown shape: 1", "MapToValue", "an array of 1"],
        ),
        (dependency("7"), &["Dependencies[0]"]),
    ] {
        let said = warned(&registry);
        for part in parts.iter().chain(&["Boot (an array of 1), Fan (an object of 1 members)"]) {
            assert!(said.contains(part), "{registry} does not say {part:?}: {said}");
        }
    }
}

#[test]
fn packed_resources_are_read_within_the_limit() {
    use std::io::Write as _;
    let pack = |bytes: &[u8]| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    let bios = pack(&fixture("hpe-ilo5-bios.json"));
    let mut reader = BiosReader::default();
    reader.add("bios.json.gz", &bios).unwrap();
    assert!(reader.finish().is_ok());
    let said = |bytes: &[u8]| BiosReader::default().add("x.gz", bytes).unwrap_err().to_string();
    assert!(said(&bios[..bios.len() / 2]).contains("cannot unpack x.gz"));
    assert!(said(&pack(&vec![b' '; BYTES_MAX + 1])).contains("more than"));
}

#[test]
fn values_among_the_names_of_a_rejected_change_are_ignored() {
    let mut reader = BiosReader::default();
    let bios = r#"{"Attributes": {"ProcSMT": "Enabled"}, "@Redfish.Settings": {"Messages": [
        {"MessageId": "Bios.1.0.Bad", "MessageArgs": ["ProcSMT", 3, null, true, {}]}]}}"#;
    reader.add("bios.json", bios.as_bytes()).unwrap();
    let refused = reader.finish().unwrap().refused;
    assert_eq!(refused.into_iter().collect::<Vec<_>>(), [("ProcSMT".to_owned(), "Bad".to_owned())]);
}

#[test]
fn sizes_are_bounded() {
    let mut reader = BiosReader::default();
    let error = reader.add("big.json", &vec![b' '; BYTES_MAX + 1]).unwrap_err().to_string();
    assert!(error.contains("big.json") && error.contains("more than"), "{error}");
    let many = format!("[{}]", vec![r#"{"Attributes": {"A": 1}}"#; 300].join(","));
    assert!(refused(&[&many]).contains("more than 256 resources"));
    let deep = format!("{}{}", "[".repeat(400), "]".repeat(400));
    assert!(refused(&[&deep]).contains("as JSON"), "the parser's own limit");
    let nested = format!(r#"{}{{"Attributes": {{"A": 1}}}}{}"#, "[".repeat(20), "]".repeat(20));
    assert!(refused(&[&nested]).contains("at $"));
    let attributes: Vec<String> = (0..50_001).map(|index| format!("\"A{index}\": 1")).collect();
    assert!(
        refused(&[&format!("{{\"Attributes\": {{{}}}}}", attributes.join(","))]).contains("50000 attributes")
    );
}

/// Uses everything that was read.
fn use_all(documents: &[Vec<u8>]) {
    let mut reader = BiosReader::default();
    for document in documents {
        let _ = reader.add("file.json", document);
    }
    let Ok(facts) = reader.finish() else { return };
    for profile in lowlat_host::Profile::ALL {
        let _ = serde_json::to_string(&BiosAudit::of(&facts, profile)).unwrap();
        let _ = serde_json::to_string(&BiosExport::of(&facts, profile, &[])).unwrap();
    }
}

/// Replaces the value at one place by another.
fn replaced(value: &mut serde_json::Value, mut at: usize, by: &serde_json::Value) -> Option<usize> {
    if at == 0 {
        *value = by.clone();
        return None;
    }
    at -= 1;
    let children: Vec<&mut serde_json::Value> = match value {
        serde_json::Value::Array(items) => items.iter_mut().collect(),
        serde_json::Value::Object(members) => members.values_mut().collect(),
        _ => return Some(at),
    };
    for child in children {
        at = replaced(child, at, by)?;
    }
    Some(at)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_value_anywhere_is_an_answer_or_an_error(at in 0usize..1_200, kind in 0usize..8, file in 0usize..3) {
        let values = [
            serde_json::json!(null), serde_json::json!(true), serde_json::json!(-1), serde_json::json!(1e300),
            serde_json::json!(""), serde_json::json!("\u{202e}x"), serde_json::json!([]), serde_json::json!({}),
        ];
        let mut documents: Vec<Vec<u8>> = super::STOCK.into_iter().map(fixture).collect();
        let mut value: serde_json::Value = serde_json::from_slice(&documents[file]).unwrap();
        let _ = replaced(&mut value, at, &values[kind]);
        documents[file] = value.to_string().into_bytes();
        use_all(&documents);
    }

    #[test]
    fn any_cut_is_an_error(length in 0usize..3_000) {
        let whole = fixture("hpe-ilo5-bios.json");
        let cut = whole[..length.min(whole.len() - 3)].to_vec();
        prop_assert!(BiosReader::default().add("cut.json", &cut).is_err());
    }
}

/// Settings resources that hold nothing readable leave what is pending unknown, and cost no audit.
#[test]
fn pending_settings_of_a_strange_shape_cost_only_themselves() {
    let at = "/redfish/v1/Systems/1/Bios";
    let bios = serde_json::json!({"@odata.id": at, "Attributes": {"ProcSMT": "Enabled"}});
    for (settings, is_known, part) in [
        (serde_json::json!({}), true, None),
        (serde_json::json!({"Attributes": "none"}), false, Some("the text \"none\" at $.Attributes")),
        (serde_json::json!({"Attributes": []}), false, Some("pending settings could not be read")),
        (serde_json::json!({"error": {"message": "no right"}}), false, Some("no right")),
    ] {
        let mut settings = settings;
        settings["@odata.id"] = format!("{at}/Settings").into();
        let mut reader = BiosReader::default();
        reader.add("bios.json", bios.to_string().as_bytes()).unwrap();
        reader.add_settings("settings.json", settings.to_string().as_bytes());
        let facts = reader.finish().unwrap();
        assert_eq!(facts.pending.is_some(), is_known, "{settings}");
        let warned = facts.warnings.join("\n");
        assert!(part.is_none_or(|part| warned.contains(part)), "{settings}: {warned}");
        assert_eq!(BiosAudit::of(&facts, lowlat_host::Profile::Trading).counts.judged, 1);
    }
}

#[test]
fn values_may_be_plain_texts_and_names_in_another_language_are_announced() {
    let registry = r#"{"Language": "ja", "RegistryEntries": {"Attributes": [
        {"AttributeName": "ProcSMT", "ReadOnly": false, "Value": ["Enabled", "Disabled"]}]}}"#;
    let said = warned(registry);
    assert!(said.contains("in language ja") && !said.contains("unknown shape"), "{said}");
}
