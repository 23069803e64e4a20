//! Stored documents, shown and written again.

use crate::common::{lowlat, text};
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/results").join(name)
}

const GATE: [&str; 2] = ["--gate", "max<10us,p99<5ms"];

/// Output and files of a document with a gate.
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
        let output = lowlat(&[&["report", "render", &document], arguments].concat());
        (output.status.code(), text(&output.stdout))
    };
    let page = result.with_extension("html");
    let files = ["--result", &result.display().to_string(), "--report", &page.display().to_string()];
    let (code, table) = from(&[&GATE[..], &files].concat());
    assert_eq!(code, Some(1), "{table}");
    let ((_, rows), (_, story)) =
        (from(&["--format", "sysjitter"]), from(&[&GATE[..], &["--longest"]].concat()));
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
    Shown { table, rows, story, page: read(&page), result: read(result) }
}

#[test]
fn a_document_is_shown_again_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["jitter.json", "assess.json"] {
        let (first, second) = (folder.path().join("first.json"), folder.path().join("second.json"));
        let stored = shown(&fixture(name), &first);
        let rows = std::fs::read_to_string(fixture("jitter.sysjitter")).expect("what it printed");
        assert_eq!(stored.rows, rows, "{name}");
        assert!(
            stored.table.contains("thread worker 0") && stored.page.contains("thread worker 0"),
            "{name}"
        );
        let written = shown(&first, &second);
        assert_eq!((&stored.table, &stored.story), (&written.table, &written.story), "{name}");
        assert!(stored == written, "{name}: other rows, page or document");
    }
}

#[test]
fn a_document_without_a_measurement_is_refused() {
    let unmeasured = fixture("assess-unmeasured.json").display().to_string();
    let output = lowlat(&["report", "render", &unmeasured, "--gate", "max<1s"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("has no jitter measurement"), "{}", text(&output.stderr));
}
