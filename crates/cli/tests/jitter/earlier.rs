//! Documents that earlier versions wrote: before version 2, `jitter`, `jitter_study` and `gate` were fields of their own.

use crate::{
    common::{lowlat, text},
    jitter::runs,
};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/results").join(name)
}

const GATE: [&str; 2] = ["--gate", "max<10us,p99<5ms"];

/// What is printed and written of a document with a gate.
#[derive(Debug, PartialEq)]
struct Shown {
    table: String,
    rows: String,
    story: String,
    page: String,
    result: String,
}

fn shown(document: &Path, result: &Path) -> Shown {
    let from = |arguments: &[&str]| {
        let document = document.display().to_string();
        let output = lowlat(&[&["jitter", "--from", &document], arguments].concat());
        (output.status.code(), text(&output.stdout))
    };
    let page = result.with_extension("html");
    let files = ["--result", &result.display().to_string(), "--report", &page.display().to_string()];
    let (code, table) = from(&[&GATE[..], &files].concat());
    assert_eq!(code, Some(1), "{table}");
    let ((_, rows), (_, story)) =
        (from(&["--format", "sysjitter"]), from(&[&GATE[..], &["--explain"]].concat()));
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
    Shown { table, rows, story, page: read(&page), result: read(result) }
}

#[test]
fn a_document_of_version_1_is_shown_as_one_of_today() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["jitter.json", "assess.json"] {
        let (first, second) = (folder.path().join("first.json"), folder.path().join("second.json"));
        let earlier = shown(&fixture(name), &first);
        let rows = std::fs::read_to_string(fixture("jitter.sysjitter")).expect("what version 1 printed");
        assert_eq!(earlier.rows, rows, "{name}");
        assert!(
            earlier.table.contains("thread worker 0") && earlier.page.contains("thread worker 0"),
            "{name}"
        );
        let converted: Value = serde_json::from_str(&earlier.result).expect("JSON");
        assert_eq!(
            (&converted["schema_version"], converted.get("jitter")),
            (&Value::from(2), None),
            "{name}"
        );
        assert_eq!(converted["measurements"][0]["kind"], "jitter", "{name}");
        let today = shown(&first, &second);
        assert_eq!((&earlier.table, &earlier.story), (&today.table, &today.story), "{name}");
        assert!(earlier == today, "{name}: other rows, page or document");
    }
}

#[test]
fn documents_of_both_versions_are_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let today = folder.path().join("today.json");
    let earlier = fixture("jitter.json").display().to_string();
    runs::run(folder.path(), &["--from", &earlier, "--result", "today.json"], 0);
    let output = lowlat(&["report", "compare", &earlier, &today.display().to_string()]);
    let said = text(&output.stdout);
    assert!(said.contains("Too short for a verdict"), "{said}");
}

#[test]
fn a_document_of_version_1_without_a_measurement_is_refused() {
    let unmeasured = fixture("assess-unmeasured.json").display().to_string();
    let output = lowlat(&["jitter", "--from", &unmeasured]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("has no jitter measurement"), "{}", text(&output.stderr));
}
