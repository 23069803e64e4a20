//! `lowlat cache`.

mod finder;

use crate::common::{self, text};
use serde_json::Value;

#[test]
fn two_cpus_are_measured_in_each_way_and_shown_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c2c.json");
    let file = file.to_str().unwrap();
    for method in ["store", "cas", "read", "invalidate"] {
        let output = common::lowlat(&["cache", "c2c", "--method", method, "--json", "--result", file]);
        let said = text(&output.stderr);
        if said.contains("a pair takes two CPUs") {
            eprintln!("skipped: two_cpus_are_measured: one CPU");
            return;
        }
        assert!(output.status.code().is_some_and(|code| code < 2), "{said}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let record = &document["measurements"][0]["record"];
        let pair = &record["pairs"][0];
        assert!(pair["median_ns"].as_f64().unwrap() > 0.0, "{record}");
        assert!(pair["low_ns"].as_f64() <= pair["high_ns"].as_f64(), "{pair}");
        let again = common::lowlat(&["cache", "c2c", "--from", file]);
        assert_eq!(again.status.code(), output.status.code());
        let shown = text(&again.stdout);
        assert!(shown.contains(&format!("({method})")) && !shown.contains("u{1b}"), "{shown}");
    }
}

#[test]
fn what_cannot_be_measured_is_an_error_with_a_hint() {
    for (arguments, cause) in [
        (["--cpus", "0"], "a pair takes two CPUs"),
        (["--cpus", "0,8000"], "outside of this process's cpuset"),
        (["--root", "/nowhere"], "/nowhere"),
    ] {
        let output = common::lowlat(&[["cache", "c2c"], arguments].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(cause) && said.contains("hint:"), "{said}");
    }
}

#[test]
fn memory_is_measured_with_a_small_buffer() {
    let output = common::lowlat(&["cache", "memory", "--buffer", "8M", "--rounds", "3", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["buffer_bytes"], 8 << 20);
    let paths = record["paths"].as_array().unwrap();
    let left_out = record["left_out"].as_array().unwrap();
    assert!(!paths.is_empty() || !left_out.is_empty(), "{record}");
    for path in paths {
        assert!(path["rounds"][2]["idle_ns"].as_f64().unwrap() > 0.0, "{path}");
    }
    let output = common::lowlat(&["cache", "memory", "--buffer", "16T"]);
    let shown = text(&output.stdout);
    assert!(shown.contains("Nothing was measured") && shown.contains("Not measured"), "{shown}");
}

#[test]
fn clusters_are_judged_on_captures_and_compared_or_explained_here() {
    let (_, capture) =
        common::fixtures().into_iter().find(|(name, _)| name == "xeon6-e-2x4-modules").unwrap();
    let output = common::lowlat(&["cache", "clusters", "--root", capture.to_str().unwrap()]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for part in [
        "This kernel spreads load over clusters",
        "CPUs 0-3 have a scheduling domain",
        "is not the",
        "lowlat run --place cluster-spread 4 -- CMD",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clusters.json");
    let file = file.to_str().unwrap();
    let page = folder.path().join("clusters.html");
    let output = common::lowlat(&[
        "cache",
        "clusters",
        "--rounds",
        "2",
        "--json",
        "--result",
        file,
        "--report",
        page.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let record = &document["measurements"][0]["record"];
    let rounds = record["rounds"].as_array().unwrap().len();
    assert!(rounds == 2 || record["why_not"].as_str().unwrap().starts_with("There is no choice"), "{record}");
    assert!(std::fs::read_to_string(page).unwrap().contains("CONFIG_SCHED_CLUSTER"));
    let again = common::lowlat(&["cache", "clusters", "--from", file]);
    assert_eq!(again.status.code(), Some(0));
    assert!(text(&again.stdout).contains("last-level caches"), "{}", text(&again.stdout));
    let wrong = common::lowlat(&["cache", "clusters", "--cpus", "0,8000"]);
    assert!(text(&wrong.stderr).contains("cannot measure CPUs 8000"), "{}", text(&wrong.stderr));
}
