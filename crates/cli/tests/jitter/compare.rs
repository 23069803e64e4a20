//! Runs held against each other.

use crate::{common::text, jitter::runs};
use serde_json::Value;

fn compare(arguments: &[&str], code: i32) -> (String, String) {
    let output = runs::run(&runs::whole().directory, &[&["--compare"], arguments].concat(), code);
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let (said, _) = compare(&["result.json", "result.json"], 0);
    assert!(said.starts_with("Too short for a verdict"), "{said}");
    for part in ["before", "after", "Interruptions", "95 %"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn programs_get_the_comparison_as_json() {
    let (printed, _) = compare(&["result.json", "result.json", "--json", "--result", "comparison.json"], 0);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let written: Value =
        serde_json::from_slice(&std::fs::read(runs::whole().path("comparison.json")).unwrap()).unwrap();
    assert!(printed.is_object());
    assert_eq!(printed, written);
}

#[test]
fn pairs_are_pooled_and_odd_numbers_refused() {
    compare(&["result.json", "result.json", "result.json", "result.json"], 0);
    let (_, said) = compare(&["result.json", "result.json", "result.json"], 2);
    assert!(said.contains("in pairs, before and after: 3 were given"), "{said}");
    compare(&["result.json"], 2);
}

#[test]
fn a_comparison_has_no_form_of_sysjitter_s() {
    let (_, said) = compare(&["result.json", "result.json", "--format", "sysjitter"], 2);
    assert!(said.contains("leave out --format"), "{said}");
}

#[test]
fn a_comparison_is_no_document_of_a_run() {
    compare(&["result.json", "result.json", "--result", "none-of-a-run.json"], 0);
    let said = text(&runs::run(&runs::whole().directory, &["--from", "none-of-a-run.json"], 2).stderr);
    assert!(said.contains("none-of-a-run.json"), "{said}");
}

#[test]
fn a_comparison_has_a_page() {
    compare(&["result.json", "result.json", "--report", "comparison.html"], 0);
    let page = std::fs::read_to_string(runs::whole().path("comparison.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Too short for a verdict"), "{page}");
}
