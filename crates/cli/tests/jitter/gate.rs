//! Gates: exit codes for scripts, rows for people.

use crate::{common::text, runs};

fn gate(limits: &str, code: i32) -> String {
    let arguments = ["--from", "result.json", "--gate", limits];
    text(&runs::run(&runs::whole().directory, &arguments, code).stderr)
}

#[test]
fn a_gate_that_holds_is_clean() {
    assert!(gate("max<1000s, lost<=100%", 0).contains("held"));
}

#[test]
fn a_broken_gate_names_its_rows() {
    let said = gate("count<0,max<1000s", 1);
    assert!(said.contains("not held"), "{said}");
    for cpu in &runs::whole().document.jitter.as_ref().unwrap().cpus {
        let row = format!("CPU {}: count {}, limit <0: broken", cpu.cpu, cpu.interruption_count);
        assert!(said.contains(&row), "{row:?} in {said}");
    }
    assert!(!said.contains(": max "), "rows that held are not listed: {said}");
}

#[test]
fn what_a_run_cannot_show_does_not_hold() {
    // Far below the threshold: a run without interruptions could not show it either.
    let said = gate("p99.9999<1000s", 1);
    assert!(said.contains("not held") && said.contains("not shown"), "{said}");
}

#[test]
fn the_document_keeps_the_gate() {
    let whole = runs::whole();
    let arguments = ["--from", "result.json", "--gate", "count<0", "--json"];
    let printed = runs::run(&whole.directory, &arguments, 1).stdout;
    let document: lowlat_model::result::ResultDocument = serde_json::from_slice(&printed).unwrap();
    assert!(document.gate.is_some_and(|gate| !gate.is_held()));
}

#[test]
fn bad_grammar_points_at_the_place() {
    for (limits, parts) in [
        ("max<10us,bogus<1", &["\n  max<10us,bogus<1\n           ^^^^^\n", "one of the keys max"][..]),
        ("max<10", &["\n  max<10\n        ^\n", "a unit of max (ns, us, ms, s)"]),
        ("max<", &["\n  max<\n      ^\n", "a number such as 10"]),
        ("max=10us", &["\n  max=10us\n     ^", "<, <=, > or >="]),
        ("", &["one of the keys max"]),
    ] {
        let said = gate(limits, 2);
        for part in parts {
            assert!(said.contains(part), "{limits:?} does not say {part:?}: {said}");
        }
    }
}
