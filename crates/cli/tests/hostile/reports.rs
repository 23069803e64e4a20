//! Claims in reports that the measurement does not carry.

use crate::{
    common::{fixtures, text},
    support::{binary, lowlat},
};
use serde_json::Value;
use std::process::{Command, Output};

/// A run of ten strategies with 100 orders in all, which carry no p99. The goal is one that every host keeps.
const SIZE: [&str; 11] =
    ["pipeline", "size", "--check", "10", "--rate", "10", "--duration", "1s", "--goal", "10s", "--force"];

/// Runs one sizing in a run folder of this test.
fn size(more: &[&str]) -> Output {
    let runs = tempfile::tempdir().expect("a folder for runs");
    let mut command = Command::new(binary());
    command.args(SIZE).args(more).env("XDG_RUNTIME_DIR", runs.path()).env("NO_COLOR", "1");
    command.output().expect("the binary starts")
}

#[test]
fn size_does_not_claim_strategies_that_no_run_checked() {
    let output = size(&[]);
    let (told, errors) = (text(&output.stdout), text(&output.stderr));
    let headline: String = told.lines().take(2).collect::<Vec<_>>().join(" ");
    // A busy machine may be too slow for the run.
    let is_broken = headline.starts_with("The run with 10 strategies");
    assert!(is_broken || headline.starts_with("Predicted, not checked: "), "{headline}\n{errors}");
    assert!(!headline.contains("at p99"), "{headline}");
    assert!(is_broken || told.contains("no run had enough orders for a p99"), "{told}");
    assert_eq!(output.status.code(), Some(1), "nothing shows that the goal is kept: {told}{errors}");
}

#[test]
fn size_separates_checked_from_predicted_in_its_document() {
    let output = size(&["--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let answer = &document["answer"];
    assert_eq!(answer["checked"], Value::Null, "100 orders carry no p99: {answer}");
    let predicted = answer["predicted"].as_u64().expect("a number");
    assert_eq!(answer["is_extrapolated"], Value::Bool(predicted > 0), "{answer}");
}

#[test]
fn size_refuses_a_host_that_is_not_running() {
    let (_, capture) = fixtures().into_iter().next().expect("a captured host");
    let output = lowlat(&["pipeline", "size", "--root", &capture.display().to_string()]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("hint: leave out --root"), "{errors}");
}
