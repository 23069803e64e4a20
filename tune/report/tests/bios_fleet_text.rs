//! Audits of many servers as text and as a page.

use lowlat_bios::{BiosAudit, BiosFleet, BiosReader, FleetServer};
use lowlat_host::Profile;
use lowlat_tune_report::{bios_fleet_html, bios_fleet_text};

fn audit(maker: &str, model: &str) -> BiosAudit {
    let documents = format!(
        r##"[{{"@odata.type": "#ComputerSystem.v1_0_0.ComputerSystem", "Manufacturer": "{maker}", "Model": "{model}"}},
            {{"Attributes": {{"ProcSMT": "Enabled", "LogicalProc": "Enabled"}}}}]"##
    );
    let mut reader = BiosReader::default();
    reader.add("server.json", documents.as_bytes()).unwrap();
    BiosAudit::of(&reader.finish().unwrap(), Profile::Trading)
}

fn fleet() -> BiosFleet {
    let read = |address: &str, maker, model| FleetServer {
        address: address.into(),
        audit: Some(audit(maker, model)),
        error: None,
    };
    let error = "cannot connect to bmc9: refused\nhint: check the address".to_owned();
    let servers = vec![
        read("bmc7", "Lenovo", "ThinkSystem SR670 V2 with a name that is longer than any line of a terminal"),
        read(
            &format!("https://{}.example.org:8443", "rack-17-unit-23-management".repeat(3)),
            "Dell Inc.",
            "PowerEdge R750",
        ),
        FleetServer { address: "bmc9".into(), audit: None, error: Some(error) },
    ];
    BiosFleet::of(Profile::Trading, servers)
}

#[test]
fn long_addresses_and_models_fit_the_terminal() {
    for width in [60, 72, 80, 120] {
        let text = anstream::adapter::strip_str(&bios_fleet_text(&fleet(), width)).to_string();
        assert_eq!(text.lines().find(|line| line.chars().count() > width), None, "{width}: {text}");
        assert!(text.contains("3 servers: 2 with differences, 0 not judged, 1 not read."), "{text}");
        assert!(text.contains("\nhint: check the address\n"), "{text}");
    }
    let wide = anstream::adapter::strip_str(&bios_fleet_text(&fleet(), 200)).to_string();
    assert!(wide.contains("Dell Inc. PowerEdge R750"), "{wide}");
}

#[test]
fn the_page_names_every_server_in_full() {
    let page = bios_fleet_html(&fleet());
    for part in [
        "longer than any line of a terminal",
        ".example.org:8443",
        "<h3 translate=\"no\">bmc9</h3>",
        "Settings that differ",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    assert_eq!(page.matches("<details class=\"document\">").count(), 2);
}
