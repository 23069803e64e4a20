//! Logs of sfnt-pingpong, read and printed.

use crate::common;
use std::path::{Path, PathBuf};

fn published(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../net/model/src/sfnt/reference").join(name)
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
fn a_damaged_row_costs_that_row_and_is_named_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("damaged.log");
    let text = std::fs::read_to_string(published("tcp.txt")).unwrap();
    std::fs::write(&file, text.replace("15773", "15x73")).unwrap();
    let file = file.to_str().unwrap();
    let (code, shown, _) = run(&["--import", file]);
    assert!(code == Some(0) && shown.contains("16 sizes"), "{shown}");
    assert!(shown.contains("Left out: line 42 is not a row of eight whole numbers"), "{shown}");
    let (_, sfnt, said) = run(&["--import", file, "--format", "sfnt"]);
    assert!(sfnt.lines().count() + 1 == text.lines().count() && said.contains("line 42"), "{said}");
    let logs: serde_json::Value =
        serde_json::from_str(&run(&["--import", file, "--format", "json"]).1).unwrap();
    assert_eq!(logs["logs"][0]["damaged"][0]["row"]["line"], 42);
}

#[test]
fn a_log_from_syslog_in_utf_16_is_shown_as_the_plain_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("syslog");
    let text = std::fs::read_to_string(published("udp.txt")).unwrap();
    let line = |line| format!("\u{1b}[32m2026-11-25T22:40:01 host1 sfnt[123]: {line}\u{1b}[0m\r\n");
    let prefixed: String = text.lines().map(line).collect();
    std::fs::write(
        &file,
        format!("\u{feff}{prefixed}").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
    )
    .unwrap();
    let plain = published("udp.txt");
    for format in ["text", "sfnt", "json"] {
        let [a, b] =
            [&file, &plain].map(|file| run(&["--import", file.to_str().unwrap(), "--format", format]));
        assert_eq!((a.0, a.1), (Some(0), b.1), "{}", a.2);
    }
}

#[test]
fn other_files_are_refused_with_their_name_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("damaged.log");
    std::fs::write(
        &file,
        "#\tsize\tmean\tmin\tmedian\tmax\t%ile\tstddev\titer\n\t32\t-5\t-9\t3\t4\t5\t6\t9\n",
    )
    .unwrap();
    let (code, _, said) = run(&["--import", file.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(said.contains("damaged.log: line 2 is not a row") && said.contains("\nhint: "), "{said}");
    let (code, _, said) = run(&["--import", "/nowhere/x.log"]);
    assert_eq!((code, said.contains("cannot read /nowhere/x.log")), (Some(2), true), "{said}");
    assert_eq!(run(&[]).0, Some(2), "neither a file nor --reference");
}
