//! Logs of sfnt-pingpong, read and printed.

use crate::common;
use std::path::{Path, PathBuf};

fn published(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../net/src/sfnt/reference").join(name)
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = common::lowlat(&[&["net", "pingpong"], arguments].concat());
    (output.status.code(), common::text(&output.stdout), common::text(&output.stderr))
}

#[test]
fn a_log_is_shown_with_its_doubts() {
    let (code, text, _) = run(&["--import", published("tcp.txt").to_str().unwrap()]);
    assert_eq!(code, Some(0));
    for part in ["tcp over 127.0.0.1, 17 sizes", "723,000", "Caveats", "CPU 1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_log_is_printed_as_it_was_and_as_json() {
    let file = published("tcp.txt");
    let (_, text, _) = run(&["--import", file.to_str().unwrap(), "--format", "sfnt"]);
    assert_eq!(text, std::fs::read_to_string(file).unwrap());
    let (_, text, _) = run(&["--reference", "--format", "json"]);
    let logs: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(logs["logs"][1]["rows"][18]["size_bytes"], 32_768);
    assert_eq!(logs["logs"][0]["rows"][5]["percentile_ns"], 7_875);
}

#[test]
fn other_files_are_refused_with_their_name_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("damaged.log");
    let text = std::fs::read_to_string(published("tcp.txt")).unwrap();
    std::fs::write(&file, text.replace("15773", "15x73")).unwrap();
    let (code, _, said) = run(&["--import", file.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(said.contains("damaged.log: line 42 is not a row") && said.contains("\nhint: "), "{said}");
    let (code, _, said) = run(&["--import", "/nowhere/x.log"]);
    assert_eq!((code, said.contains("cannot read /nowhere/x.log")), (Some(2), true), "{said}");
    assert_eq!(run(&[]).0, Some(2), "neither a file nor --reference");
}
