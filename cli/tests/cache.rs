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
        let again = common::lowlat(&["report", "render", file]);
        assert_eq!(again.status.code(), Some(0));
        let shown = text(&again.stdout);
        assert!(shown.contains(&format!("({method})")) && !shown.contains("u{1b}"), "{shown}");
    }
}

#[test]
fn what_cannot_be_measured_is_an_error_with_a_hint() {
    for (arguments, cause) in [
        (["--cpus", "0"], "a pair takes two CPUs"),
        (["--cpus", "0,8000"], "outside of this process's cpuset"),
    ] {
        let output = common::lowlat(&[["cache", "c2c"], arguments].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(cause) && said.contains("hint:"), "{said}");
    }
}

/// The record of a printed document with one measurement.
fn record(output: &std::process::Output) -> Value {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["measurements"].as_array().unwrap().len(), 1, "{document}");
    document["measurements"][0]["record"].clone()
}

#[test]
fn a_stored_measurement_is_shown_as_it_was_printed_and_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let memory = ["memory", "--buffer", "8M", "--largest", "8M", "--rounds", "1", "--curves"];
    let mut runs =
        vec![(&memory[..], "A load from memory takes"), (&["clock", "--duration", "200ms"], "MHz")];
    if lowlat_host_run::affinity::current().unwrap().len() > 1 {
        runs.push((&["false-sharing", "--rounds", "2"], "one value"));
    }
    for (arguments, said) in runs {
        let (page, result) = (at("page.html"), at("result.json"));
        let files = ["--report", &page, "--result", &result, "--title", "of a test"];
        let output = common::lowlat(&[&["cache"], arguments, &files].concat());
        let printed = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(printed.contains(said), "{printed}");
        assert_eq!(text(&common::lowlat(&["report", "render", &result]).stdout), printed);
        let page = std::fs::read_to_string(page).unwrap();
        assert!(
            page.contains("of a test") && page.contains("<table") && page.contains(said),
            "{arguments:?}"
        );
    }
}

#[test]
fn memory_is_measured_with_a_small_buffer() {
    let small =
        ["cache", "memory", "--buffer", "8M", "--largest", "8M", "--rounds", "3", "--curves", "--json"];
    let output = common::lowlat(&small);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let record = record(&output);
    assert_eq!(record["plan"]["chased_bytes"], 4 << 20);
    for path in record["paths"].as_array().unwrap() {
        assert!(path["rounds"][2]["idle"]["ns"].as_f64().unwrap() > 0.0, "{path}");
    }
    for point in record["by_size"].as_array().unwrap().iter().chain(record["by_chains"].as_array().unwrap()) {
        assert!(point["ns"][2].as_f64().unwrap() > 0.0, "{point}");
    }
    let output = common::lowlat(&["cache", "memory", "--buffer", "16T"]);
    let shown = text(&output.stdout);
    assert!(shown.contains("Nothing was measured") && shown.contains("Not measured"), "{shown}");
    assert_eq!(output.status.code(), Some(4), "{shown}");
}

/// Eight cores with an L3 of 16 MiB each: a buffer of four times one of them would stay in all of them.
#[test]
fn a_captured_host_gets_a_plan_beyond_all_its_caches() {
    let host = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/hosts/epyc-7f32-2x8.tar.gz");
    let plan = |arguments: &[&str]| {
        let output = common::lowlat(&[&["cache", "memory", "--root", host, "--json"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        record(&output)["plan"].clone()
    };
    let all = plan(&[]);
    for node in all["nodes"].as_array().unwrap() {
        let llc_bytes = node["llc_bytes"]["known"].as_u64().unwrap();
        assert!(llc_bytes > 16 << 20, "{node}");
        assert!(all["chased_bytes"].as_u64() >= Some(2 * llc_bytes), "{all}");
        assert!(node["bytes_per_cpu"].as_u64() >= node["bytes_per_cpu_min"].as_u64(), "{node}");
    }
    assert_eq!(plan(&["--cpus", "3"])["nodes"].as_array().unwrap().len(), 1);
    let shown = text(&common::lowlat(&["cache", "memory", "--root", host]).stdout);
    assert!(shown.contains("Nothing was measured") && shown.contains("last-level caches have"), "{shown}");
}

/// CPUs that the user bound lowlat to are the ones to measure.
#[test]
fn a_measurement_stays_on_the_cpus_that_it_was_bound_to() {
    let Some(cpu) = lowlat_host_run::affinity::current().unwrap().highest().filter(|cpu| *cpu > 0) else {
        eprintln!("skipped: a_measurement_stays_on_the_cpus_that_it_was_bound_to: there is one CPU");
        return;
    };
    let bound = |arguments: &[&str]| {
        std::process::Command::new("taskset")
            .args(["-c", &cpu.to_string()])
            .arg(common::binary())
            .arg("cache")
            .args(arguments)
            .output()
            .unwrap()
    };
    let output = bound(&["memory", "--buffer", "8M", "--largest", "8M", "--rounds", "1", "--json"]);
    let record = record(&output);
    assert_eq!(record["paths"][0]["cpus"], cpu.to_string(), "{}", text(&output.stderr));
    let output = bound(&["clock", "--duration", "100ms", "--json"]);
    let cpus: Vec<u64> = self::record(&output)["cpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["cpu"].as_u64().unwrap())
        .collect();
    assert_eq!(cpus, [u64::from(cpu)]);
    for two in ["c2c", "false-sharing"] {
        let output = bound(&[two]);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("take"), "{two}: {said}");
    }
}

#[test]
fn a_published_matrix_is_grouped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two-caches.csv");
    let cell = |row: u32, column: u32| match (row > column, row / 2 == column / 2) {
        (false, _) => String::new(),
        (true, true) => "19.5".to_owned(),
        (true, false) => format!("8{row}.25"),
    };
    let line = |row| (0..4).map(|column| cell(row, column)).collect::<Vec<_>>().join(",");
    std::fs::write(&file, (0..4).map(|row| line(row) + "\n").collect::<String>()).unwrap();
    let file = file.to_str().unwrap();
    let output = common::lowlat(&["cache", "c2c", "--import", file]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(shown.contains("Latency between 4 CPUs: 2 levels"), "{shown}");
    assert!(shown.contains("compare-exchange") && !shown.contains("differs"), "{shown}");
    let output = common::lowlat(&["cache", "c2c", "--import", "/dev/null"]);
    assert!(text(&output.stderr).contains("it has no time between two CPUs"), "{}", text(&output.stderr));
}

/// An endless device is refused before it fills the host's memory.
#[test]
fn a_file_without_end_is_refused() {
    for arguments in [
        &["report", "fleet", "/dev/zero"][..],
        &["audit", "--role", "/dev/zero"],
        &["report", "render", "/dev/zero"],
        &["net", "compare", "--import", "/dev/zero"],
        &["pipeline", "run", "--pins", "/dev/zero"],
        &["import", "tuned", "/dev/zero"],
    ] {
        // More than the limit, less than the memory of most hosts.
        let line = format!("ulimit -v 6000000; exec {} {}", common::binary().display(), arguments.join(" "));
        let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        let said = text(&output.stderr);
        assert!(said.contains("larger than 1 GiB"), "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn clusters_are_judged_on_captures_and_compared_or_explained_here() {
    let capture = common::capture("xeon6-e-2x4-modules");
    let output = common::lowlat(&["cache", "clusters", "--root", capture.to_str().unwrap()]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for part in [
        "This kernel spreads load over clusters",
        "CPUs 0-3 have a scheduling domain",
        "on the running host only",
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
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let record = &document["measurements"][0]["record"];
    let rounds = record["rounds"].as_array().unwrap().len();
    let code = Some(if rounds == 0 { 4 } else { 0 });
    assert_eq!(output.status.code(), code, "{}", text(&output.stderr));
    assert!(rounds == 2 || record["why_not"].as_str().unwrap().starts_with("There is no choice"), "{record}");
    assert!(std::fs::read_to_string(page).unwrap().contains("CONFIG_SCHED_CLUSTER"));
    let again = common::lowlat(&["report", "render", file]);
    assert_eq!(again.status.code(), Some(0));
    assert!(text(&again.stdout).contains("last-level caches"), "{}", text(&again.stdout));
    let wrong = common::lowlat(&["cache", "clusters", "--cpus", "0,8000"]);
    assert!(text(&wrong.stderr).contains("cannot measure CPUs 8000"), "{}", text(&wrong.stderr));
}
