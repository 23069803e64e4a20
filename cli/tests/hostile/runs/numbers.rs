//! Two strategies with one number.

use super::pipeline::{Pipeline, role, warnings};

/// A second host claims strategies 0 and 1, which belong to the run's own processes.
#[test]
fn a_strategy_number_of_the_run_is_refused_and_answers_reach_its_owner() {
    let pipeline = Pipeline::start(&["--duration", "4s"]);
    let attack = role(&pipeline.socket(), &["host"]);
    let said = String::from_utf8_lossy(&attack.stderr).into_owned();
    assert_ne!(attack.status.code(), Some(0), "{said}");
    assert!(said.contains("strategy 0 belongs to"), "{said}");
    assert!(said.contains("hint: leave the number out"), "{said}");
    let document = pipeline.document();
    assert_eq!(document["orders"], document["ticks_published"], "{document}");
    assert!(warnings(&document).contains("host was refused: strategy 0 belongs to"), "{document}");
}
