//! Streams at rising rates, as users start them.

use super::pingpong::Server;
use crate::common;
use serde_json::Value;

fn client(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = common::lowlat(&[&["net", "stream", "client"], arguments].concat());
    (output.status.code(), common::text(&output.stdout), common::text(&output.stderr))
}

#[test]
fn a_run_gives_a_table_a_document_a_page_and_the_columns_of_sfnt_stream() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let [result, report] = ["s.json", "s.html"].map(|name| dir.path().join(name).display().to_string());
    let rates = ["--rates", "500,1000", "--rounds", "1", "--duration", "200ms", "--timeout", "20s"];
    let outputs = ["--result", &result, "--report", &report];
    let (code, text, said) = client(&[&["udp", &server.address], &rates[..], &outputs[..]].concat());
    assert_eq!(code, Some(0), "{said}");
    for part in [
        &format!("udp to {}, block", server.address),
        "Latency is one-way",
        "messages/s",
        "Messages go over lo",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    let measurement = &document["measurements"][0];
    assert_eq!((&document["command"], &measurement["kind"]), (&"net stream".into(), &"stream".into()));
    let round = &measurement["record"]["rounds"][1];
    assert_eq!((&round["target_per_s"], &round["received"]["messages"]), (&1_000.0.into(), &round["sent"]));
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("Latency by rate, from the time when each message was due"));
    let again = |form: &str| {
        let output = common::lowlat(&["report", "render", &result, "--format", form]);
        assert_eq!(output.status.code(), Some(0), "{}", common::text(&output.stderr));
        common::text(&output.stdout)
    };
    assert_eq!(again("text"), text);
    let sfnt = again("sfnt");
    assert!(sfnt.contains("\n#target\tsend\trecv\tmean\t") && sfnt.contains("\n1000\t"), "{sfnt}");
    // A document of another measurement is refused.
    let output = common::lowlat(&["report", "render", &result, "--format", "sfnt-1.5"]);
    assert!(common::text(&output.stderr).contains("has no such measurement"));
}

#[test]
fn what_cannot_be_measured_is_refused_before_the_run() {
    for (arguments, part) in [
        (&["udp", "10.0.0.2", "--rates", "0"][..], "cannot send 0 messages/s\nhint: choose rates"),
        (&["udp", "10.0.0.2", "--rates", "fast"], "--rates: \"fast\" is not a list of rates\nhint: "),
        (&["tcp", "10.0.0.2", "--size", "8"], "their header takes 24\nhint: "),
        (&["udp", "10.0.0.2", "--size", "70000"], "udp does not carry messages of 70000 bytes"),
    ] {
        let (code, _, said) = client(arguments);
        assert_eq!((code, said.contains(part)), (Some(2), true), "{arguments:?}: {said}");
    }
    let (code, _, said) = client(&["pipe", "10.0.0.2"]);
    assert_eq!((code, said.contains("possible values: udp, tcp")), (Some(2), true), "{said}");
}
