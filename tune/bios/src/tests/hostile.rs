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
    let registry = |entries: &str| format!(r#"{{"RegistryEntries": {entries}}}"#);
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
            &["file0.json", "$.Attributes[\"A b\"]", "an object of 1 members", "a text, a number"],
        ),
        (
            vec![r#"{"Attributes": {"A": 1}, "@Redfish.Settings": {"SettingsObject": {"@odata.id": 5}}}"#],
            &["$[\"@Redfish.Settings\"].SettingsObject[\"@odata.id\"]", "found 5"],
        ),
        (
            vec![r#"{"Attributes": {"A": 1}, "@Redfish.Settings": {"Messages": [7]}}"#],
            &["Messages[0]", "found 7", "MessageId"],
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
        (vec![bios, &registry("[]")], &["file1.json", "$.RegistryEntries.Attributes", "nothing"]),
        (vec![bios, &registry(r#"{"Attributes": [7]}"#)], &["$.RegistryEntries.Attributes[0].AttributeName"]),
        (
            vec![bios, &registry(r#"{"Attributes": [{"AttributeName": "A", "Value": ["x"]}]}"#)],
            &["Attributes[0].Value[0].ValueName"],
        ),
        (
            vec![
                bios,
                &registry(
                    r#"{"Attributes": [], "Dependencies": [{"Type": "Map", "Dependency": {"MapFrom": [{"MapFromAttribute": "A", "MapFromCondition": "LIKE"}], "MapToAttribute": "B", "MapToProperty": "ReadOnly"}}]}"#,
                ),
            ],
            &["MapFrom[0].MapFromCondition", "\"LIKE\"", "EQU, NEQ"],
        ),
    ] {
        let said = refused(&documents);
        for part in parts {
            assert!(said.contains(part), "{documents:?} does not say {part:?}: {said}");
        }
        assert!(said.len() < 400, "{said}");
    }
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
