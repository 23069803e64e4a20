//! `lowlat assess` on the running host.

use crate::common;
use crate::jitter::runs::UnderWay;
use lowlat_results::ResultDocument;
use rustix::process::Signal;
use std::{
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

fn files_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn assess(dir: &Path, duration: &str) -> Command {
    let mut command = Command::new(common::binary());
    command
        .current_dir(dir)
        .args(["assess", "--duration", duration])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn document(dir: &Path) -> ResultDocument {
    serde_json::from_slice(&std::fs::read(dir.join("lowlat-result.json")).unwrap()).unwrap()
}

#[test]
fn writes_both_files_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let output = assess(dir.path(), "2s").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", common::text(&output.stderr));
    assert_eq!(files_in(dir.path()), ["lowlat-report.html", "lowlat-result.json"]);
    let document = document(dir.path());
    assert_eq!(document.document, "lowlat-result");
    assert!(!document.is_interrupted);
    let jitter = &document.jitter().expect("a live host is measured").record;
    assert!(!jitter.cpus.is_empty());
    for cpu in &jitter.cpus {
        assert!(cpu.loop_count > 0 && cpu.runtime_ns >= 1_000_000_000, "{cpu:?}");
    }
    let page = std::fs::read_to_string(dir.path().join("lowlat-report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("</html>"));
    let said = common::text(&output.stdout);
    assert!(said.contains("lowlat-report.html") && said.contains("lowlat-result.json"), "{said}");
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let run = UnderWay::start(&mut assess(dir.path(), "10m"));
    let sent = Instant::now();
    run.signal(Signal::INT);
    let output = run.wait();
    assert_eq!(
        output.status.code(),
        Some(130),
        "{} after {:?}",
        common::text(&output.stderr),
        sent.elapsed()
    );
    assert_eq!(files_in(dir.path()), ["lowlat-report.html", "lowlat-result.json"]);
    let document = document(dir.path());
    assert!(document.is_interrupted && document.jitter().is_some());
}

#[test]
fn a_directory_that_cannot_be_written_fails_before_the_measurement() {
    let output = common::lowlat(&["assess", "--report", "/nonexistent/r.html"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(common::text(&output.stderr).contains("/nonexistent/r.html"));
}

#[test]
fn a_captured_host_is_reported_without_a_measurement() {
    let dir = tempfile::tempdir().unwrap();
    let (_, fixture) = common::fixtures().into_iter().next().expect("a fixture");
    let output =
        assess(dir.path(), "2s").arg("--root").arg(fixture.canonicalize().unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", common::text(&output.stderr));
    let document = document(dir.path());
    assert!(document.measurements.is_empty());
    assert!(document.warnings.iter().any(|w| w.contains("Nothing was measured")), "{:?}", document.warnings);
}

#[test]
fn lowlat_alone_says_where_the_host_stands() {
    let dir = tempfile::tempdir().unwrap();
    let alone = || {
        let output = Command::new(common::binary()).current_dir(dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", common::text(&output.stderr));
        common::text(&output.stdout)
    };
    let before = alone();
    assert!(before.contains("Not assessed") && before.contains("\nNext  "), "{before}");
    std::fs::write(dir.path().join("lowlat-result-2.json"), "no document").unwrap();
    let (_, fixture) = common::fixtures().into_iter().next().expect("a fixture");
    let assessed =
        assess(dir.path(), "2s").arg("--root").arg(fixture.canonicalize().unwrap()).output().unwrap();
    assert_eq!(assessed.status.code(), Some(0), "{}", common::text(&assessed.stderr));
    let after = alone();
    assert!(after.contains("Assessed at ") && after.contains("lowlat-result.json."), "{after}");
}
