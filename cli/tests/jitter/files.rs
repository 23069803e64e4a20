//! Documents read again, and files that are not documents.

use crate::{common::text, jitter::runs};
use std::fs;

/// Checks for exit code 2, and for an error with all of these parts.
fn refused(arguments: &[&str], parts: &[&str]) {
    let said = text(&runs::shown(&runs::whole().directory, arguments, 2).stderr);
    for part in parts {
        assert!(said.contains(part), "{arguments:?} does not say {part:?}: {said}");
    }
}

#[test]
fn a_document_shows_again_what_the_run_showed() {
    let whole = runs::whole();
    let said = text(&runs::shown(&whole.directory, &["result.json"], 0).stdout);
    for part in ["Per CPU", "Lengths of interruptions", "interruptions of"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.replace("...", "").contains(".."), "a sentence ends twice: {said}");
}

#[test]
fn every_interruption_that_is_kept_is_explained() {
    let whole = runs::whole();
    let record = &whole.document.jitter().unwrap().record;
    let kept: usize = record.cpus.iter().map(|cpu| cpu.worst.len()).sum();
    if kept == 0 {
        say!("skipped: timelines: nothing interrupted this run");
        return;
    }
    let is_traced =
        record.causes.as_ref().is_some_and(|causes| causes.source == lowlat_jitter::CauseSource::Trace);
    for rank in [1, kept.div_ceil(2), kept] {
        let said =
            text(&runs::shown(&whole.directory, &["result.json", "--longest", &rank.to_string()], 0).stdout);
        assert!(said.starts_with("Interruption of "), "{said}");
        assert_eq!(said.contains("Parts"), is_traced, "rank {rank}: {said}");
    }
    let first = text(&runs::shown(&whole.directory, &["result.json", "--longest"], 0).stdout);
    let same = text(&runs::shown(&whole.directory, &["result.json", "--longest", "1"], 0).stdout);
    assert_eq!(first, same);
}

#[test]
fn ranks_that_are_not_there_are_refused() {
    refused(&["result.json", "--longest", "999999"], &["no interruption of rank 999999", "keeps the"]);
    for rank in ["0", "-1", "first"] {
        refused(&["result.json", "--longest", rank], &["ranks start at 1, the longest"]);
    }
    refused(&["result.json", "--longest", "--format", "sysjitter"], &["leave out --format"]);
}

#[test]
fn files_that_are_no_documents_are_refused() {
    let whole = runs::whole();
    let written = fs::read_to_string(whole.path("result.json")).unwrap();
    let put = |name: &str, text: &str| fs::write(whole.path(name), text).unwrap();
    put("none.json", "{\"a\": 1}");
    put("empty.json", "");
    put("other.json", "{\"document\": \"perf\", \"schema_version\": 1, \"lowlat_version\": \"0\"}");
    put("cut.json", &written[..written.len() / 2]);
    put(
        "newer.json",
        "{\"document\": \"lowlat-result\", \"schema_version\": 99, \"lowlat_version\": \"9.9.9\"}",
    );
    put("older.json", "{\"document\": \"lowlat-result\", \"schema_version\": 1}");
    put(
        "damaged.json",
        "{\"document\": \"lowlat-result\", \"schema_version\": 2, \"lowlat_version\": \"0.1.0\"}",
    );
    for name in ["none.json", "empty.json", "cut.json", "raw.0"] {
        if fs::exists(whole.path(name)).unwrap() {
            refused(&[name], &[name, "not a result document of lowlat", "--result or --json"]);
        }
    }
    refused(&["other.json"], &["found a \"perf\""]);
    refused(
        &["newer.json"],
        &[
            "newer.json: it has document version 99, and this lowlat reads version 2",
            "hint: use the lowlat that wrote it, 9.9.9",
        ],
    );
    refused(&["older.json"], &["older.json: it has document version 1, and this lowlat reads version 2"]);
    refused(
        &["damaged.json"],
        &["damaged.json is damaged: missing field", "hint: copy it again, or measure again"],
    );
    refused(&["nowhere.json"], &["cannot read nowhere.json", "--result or --json"]);
    refused(&["."], &["cannot read .", "directory"]);
}

#[test]
fn a_document_without_a_measurement_is_refused() {
    let whole = runs::whole();
    let mut document = whole.document.clone();
    document.measurements.clear();
    fs::write(whole.path("audit.json"), serde_json::to_vec(&document).unwrap()).unwrap();
    refused(
        &["audit.json", "--gate", "max<1s"],
        &["has no jitter measurement", "`lowlat jitter` or `lowlat assess`"],
    );
}

#[test]
fn a_record_that_lies_is_refused() {
    let whole = runs::whole();
    let mut document = whole.document.clone();
    if let Some(cpu) = document.jitter_mut().and_then(|jitter| jitter.record.cpus.first_mut()) {
        cpu.interruption_count += 1;
    }
    fs::write(whole.path("lies.json"), serde_json::to_vec(&document).unwrap()).unwrap();
    refused(&["lies.json"], &["cannot read the jitter record of CPU", "measure again"]);
}
