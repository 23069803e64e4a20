//! The next request to a server as text of 80 columns.

use lowlat_bios::{BiosChange, BiosExport, BiosFacts, BiosReader};
use lowlat_host::Profile;
use lowlat_tune_report::bios_change_text;

fn facts(names: &[&str]) -> BiosFacts {
    let mut reader = BiosReader::default();
    for name in names {
        let path = format!("{}/../../fixtures/redfish/{name}", env!("CARGO_MANIFEST_DIR"));
        reader.add(name, &std::fs::read(&path).unwrap()).unwrap();
    }
    reader.finish().unwrap()
}

fn change(facts: &BiosFacts) -> BiosChange {
    BiosChange::of(facts, &BiosExport::of(facts, Profile::Guide57037, &[]))
}

fn text(change: &BiosChange, width: usize) -> String {
    anstream::adapter::strip_str(&bios_change_text(change, width)).to_string()
}

const STOCK: [&str; 3] = ["hpe-ilo5-bios.json", "hpe-ilo5-settings.json", "hpe-ilo5-registry.json"];

#[test]
fn a_stock_server_on_which_others_changed_something() {
    insta::assert_snapshot!(text(&change(&facts(&STOCK)), 80));
}

#[test]
fn a_server_whose_profile_is_chosen() {
    let change = change(&facts(&["hpe-ilo5-low-latency.json", "hpe-ilo5-registry.json"]));
    insta::assert_snapshot!(text(&change, 80));
    for width in [72, 80, 120] {
        let text = text(&change, width);
        assert_eq!(text.lines().find(|line| line.chars().count() > width), None, "{width}");
    }
}

#[test]
fn a_server_as_wanted_has_nothing_to_send() {
    let change = change(&facts(&["hpe-ilo5-as-guide.json", "hpe-ilo5-registry.json"]));
    assert!(text(&change, 80).starts_with("Nothing to send.\n"));
}

#[test]
fn hostile_texts_of_a_service_are_cleaned() {
    let bios = r#"{"Attributes": {"ProcSMT": "\u001b[31mx\u202e"}, "@Redfish.Settings": {"SettingsObject": {"@odata.id": "/\u001b"}}}"#;
    let mut reader = BiosReader::default();
    reader.add("hostile.json", bios.as_bytes()).unwrap();
    let text = text(&change(&reader.finish().unwrap()), 80);
    assert!(text.contains("ProcSMT") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
}
