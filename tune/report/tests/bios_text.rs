//! The audit of BIOS settings as text of 80 columns.

use lowlat_bios::{BiosAudit, BiosReader};
use lowlat_host::Profile;
use lowlat_tune_report::{BiosTextOptions, bios_text};

fn text(names: &[&str], profile: Profile, options: BiosTextOptions) -> String {
    let mut reader = BiosReader::default();
    for name in names {
        let path = format!("{}/../../fixtures/redfish/{name}", env!("CARGO_MANIFEST_DIR"));
        reader.add(name, &std::fs::read(&path).unwrap()).unwrap();
    }
    let audit = BiosAudit::of(&reader.finish().unwrap(), profile);
    anstream::adapter::strip_str(&bios_text(&audit, options)).to_string()
}

const STOCK: [&str; 3] = ["hpe-ilo5-bios.json", "hpe-ilo5-settings.json", "hpe-ilo5-registry.json"];

#[test]
fn a_stock_server_against_the_guide() {
    let options = BiosTextOptions { show_all: false, width: 80 };
    insta::assert_snapshot!(text(&STOCK, Profile::Guide57037, options));
}

#[test]
fn a_standard_service_without_a_registry() {
    let options = BiosTextOptions { show_all: false, width: 80 };
    insta::assert_snapshot!(text(
        &["standard-bios.json", "standard-settings.json"],
        Profile::Trading,
        options
    ));
}

#[test]
fn no_line_is_wider_than_the_terminal_and_every_row_is_shown_on_demand() {
    for width in [72, 80, 120] {
        for show_all in [false, true] {
            let text = text(&STOCK, Profile::Guide57037, BiosTextOptions { show_all, width });
            let wide = text.lines().find(|line| line.chars().count() > width);
            assert_eq!(wide, None, "{width}");
            assert_eq!(text.contains("--all shows"), !show_all);
            assert_eq!(text.contains("firmware.hpet_acpi_support"), show_all);
        }
    }
}

#[test]
fn hostile_texts_of_a_service_are_cleaned() {
    let resource = r#"{"Attributes": {"ProcSMT": "\u001b[31mx\u202e"}, "AttributeRegistry": "\u001b]0;x"}"#;
    let mut reader = BiosReader::default();
    reader.add("hostile.json", resource.as_bytes()).unwrap();
    let audit = BiosAudit::of(&reader.finish().unwrap(), Profile::Trading);
    let text = bios_text(&audit, BiosTextOptions { show_all: true, width: 80 });
    let text = anstream::adapter::strip_str(&text).to_string();
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    assert!(text.contains("\\u{1b}[31mx\\u{202e}"), "{text}");
}
