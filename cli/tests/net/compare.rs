//! Comparisons and choices as users start them.

use super::pingpong::Server;
use crate::common::{self, programs::write_program};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = common::lowlat(&[&["net"], arguments].concat());
    (output.status.code(), common::text(&output.stdout), common::text(&output.stderr))
}

fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../net/model/tests-data").join(name).display().to_string()
}

fn at(dir: &Path, name: &str) -> (PathBuf, String) {
    (dir.join(name), dir.join(name).display().to_string())
}

const SHORT: [&str; 8] =
    ["--duration", "20ms", "--iterations", "400", "--warm-up", "1ms", "--timeout", "20s"];

#[test]
fn two_ways_to_wait_are_compared_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let ((result, result_name), (report, report_name)) = (at(dir.path(), "c.json"), at(dir.path(), "c.html"));
    let options = [
        "compare",
        "--rounds",
        "6",
        "--result",
        &result_name,
        "--report",
        &report_name,
        "--",
        "pipe",
        "--sizes",
        "32",
    ];
    let other = ["--", "unix-stream", "--sizes", "32,64"];
    let (code, text, said) = run(&[&options[..], &SHORT, &other, &SHORT].concat());
    assert_eq!(code, Some(0), "{said}");
    for part in ["A: lowlat net pingpong client pipe --sizes 32", "6 rounds in the order A B, B A", "p50 / A"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    let measurement = &document["measurements"][0];
    assert_eq!((&document["command"], &measurement["kind"]), (&"net compare".into(), &"compare".into()));
    let runs = measurement["record"]["runs"].as_array().unwrap();
    let order: Vec<u64> = runs.iter().map(|run| run["side"].as_u64().unwrap()).collect();
    assert_eq!(order, [0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0]);
    assert!(runs.iter().all(|run| run["rows"][0]["p99_ns"].is_number()), "{runs:?}");
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("Comparison of round trips") && page.contains("Half round trips of each side"));
    assert_eq!(common::text(&common::lowlat(&["report", "render", &result_name]).stdout), text);
}

#[test]
fn outputs_of_other_programs_are_shown_without_a_verdict() {
    let files = ["tools/sockperf-3.7-ping-pong.txt", "tools/sockperf-3.7-full-rtt.txt"].map(data);
    let (code, text, said) = run(&["compare", "--import", &files[0], &files[1]]);
    assert_eq!(code, Some(0), "{said}");
    for part in [
        "No winner is named: finished outputs were not measured in turn",
        "B: sockperf, from",
        "2.42 us",
        "A: 0 dropped, 0 duplicated, 0 out of order",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("faster"), "{text}");
    let (_, sizes, _) = run(&[
        "compare",
        "--import",
        &data("sfnt-pingpong-1.6.0.txt"),
        &data("sfnt-pingpong-1.6.0.txt"),
        "--json",
    ]);
    let document: Value = serde_json::from_str(&sizes).unwrap();
    assert_eq!(document["measurements"][0]["record"]["sides"][1]["tool"], "sfnt");
}

#[test]
fn a_program_that_fails_is_named_with_its_side() {
    let own = ["compare", "--rounds", "1", "--", "pipe", "--sizes", "32"];
    let failed = |other: &[&str]| {
        let (code, _, said) = run(&[&own[..], &SHORT, &["--"], other].concat());
        assert_eq!(code, Some(2), "{said}");
        said
    };
    let said = failed(&["/nowhere/sockperf", "ping-pong"]);
    assert!(said.contains("side B: cannot start /nowhere/sockperf") && said.contains("\nhint: "), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let (path, name) = at(dir.path(), "netperf");
    write_program(&path, "#!/bin/sh\necho establish control: are you sure there is a netserver >&2\n");
    let said = failed(&[&name, "-t", "TCP_RR"]);
    assert!(
        said.contains("side B: cannot measure: the output of netperf") && said.contains("netserver"),
        "{said}"
    );
    let said = failed(&["tcp", "127.0.0.1:1"]);
    assert!(said.contains("side B: cannot connect") && said.contains("lowlat net server"), "{said}");
}

#[test]
fn wrong_arguments_are_refused_with_hints() {
    for (arguments, parts) in [
        (&["compare", "--", "pipe"][..], &["cannot compare one side with itself", "hint: write --"][..]),
        (&["compare", "--", "pipe", "--", "pipe", "--json"], &["side B", "hint: write --json"]),
        (&["compare", "--", "pipe", "--", "iperf3"], &["side B", "hint: "]),
        (
            &["compare", "--import", "/nowhere/x"],
            &["cannot read /nowhere/x", "hint: name output of sfnt-pingpong"],
        ),
        (&["choose", "10.0.0.2"], &["--p99"]),
        (&["choose", "10.0.0.2", "--p99", "20us", "--cpu-share", "0%"], &["is not a share of a CPU"]),
        (&["choose", "10.0.0.2", "--p99", "20us", "--rounds", "5"], &["5 is not in 6..=1000"]),
        (&["choose", "10.0.0.2", "--p99", "20us", "--size", "1,2"], &["--size takes one size"]),
        (&["choose", "127.0.0.1:1", "--p99", "20us"], &["cannot connect to 127.0.0.1:1", "hint: start"]),
    ] {
        let (code, _, said) = run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{arguments:?} does not say {part:?}: {said}");
        }
    }
}

#[test]
fn a_mode_is_chosen_and_the_document_shown_again() {
    let server = Server::start_for_many();
    let dir = tempfile::tempdir().unwrap();
    let ((_, result), (report, report_name)) = (at(dir.path(), "m.json"), at(dir.path(), "m.html"));
    // Any mode meets this goal, and modes that poll a queue have none to poll on loopback.
    let (code, text, said) = run(&[
        "choose",
        &server.address,
        "--p99",
        "1000s",
        "--rounds",
        "6",
        "--duration",
        "10ms",
        "--rate",
        "2000",
        "--result",
        &result,
        "--report",
        &report_name,
    ]);
    // 1: the control of a shared machine may have moved.
    assert!(matches!(code, Some(0 | 1)), "{said}{text}");
    for part in [
        "is the cheapest mode that meets p99",
        "meets the goal",
        "Not available",
        "busy-poll has no effect there",
        "lowlat run --mode",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("Choice of a waiting mode") && page.contains("&gt; "));
    assert_eq!(common::text(&common::lowlat(&["report", "render", &result]).stdout), text);
}
