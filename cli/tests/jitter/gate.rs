//! Gates: exit codes for scripts, rows for people.

use crate::{common::text, jitter::runs};

/// Stdout and stderr about a gate on the whole run, with each of its rows on one line.
fn gate(limits: &str, code: i32) -> String {
    let arguments = ["result.json", "--gate", limits];
    let output = runs::shown(&runs::whole().directory, &arguments, code);
    let printed = text(&output.stdout);
    let gate = printed.lines().skip_while(|line| !line.starts_with("Gate ")).collect::<Vec<_>>().join("\n");
    gate + &text(&output.stderr)
}

#[test]
fn a_gate_that_holds_is_clean() {
    assert!(gate("max<1000s, lost<=100%", 0).starts_with("Gate max<1000s,lost<=100% held"));
}

#[test]
fn a_broken_gate_names_its_rows() {
    let said = gate("count<0,max<1000s", 1);
    assert!(said.starts_with("Gate count<0,max<1000s broken"), "{said}");
    let rows: Vec<Vec<&str>> = said.lines().skip(2).map(|row| row.split_whitespace().collect()).collect();
    let record = &runs::whole().document.jitter().unwrap().record;
    let wanted: Vec<[String; 5]> = record
        .cpus
        .iter()
        .map(|cpu| {
            [
                cpu.cpu.to_string(),
                "count".into(),
                cpu.interruption_count.to_string(),
                "<0".into(),
                "broken".into(),
            ]
        })
        .collect();
    assert_eq!(rows, wanted, "rows that held are not listed: {said}");
}

#[test]
fn what_a_run_cannot_show_does_not_hold() {
    let said = gate("p99.9999<1000s", 4);
    assert!(said.starts_with("Gate p99.9999<1000s not shown"), "{said}");
    assert!(said.contains("p99.9999 is not shown"), "{said}");
}

#[test]
fn programs_read_it_beside_the_gate() {
    let arguments = ["result.json", "--gate", "count<0", "--format", "sysjitter"];
    let output = runs::shown(&runs::whole().directory, &arguments, 1);
    assert!(text(&output.stdout).starts_with("core_i:"), "rows alone on stdout");
    assert!(text(&output.stderr).contains("Gate count<0 broken"), "{}", text(&output.stderr));
}

#[test]
fn the_document_keeps_the_gate() {
    let whole = runs::whole();
    let arguments = ["result.json", "--gate", "count<0", "--json"];
    let printed = runs::shown(&whole.directory, &arguments, 1).stdout;
    let document: lowlat_results::ResultDocument = serde_json::from_slice(&printed).unwrap();
    assert!(document.jitter().unwrap().gate.as_ref().is_some_and(|gate| !gate.is_held()));
}

#[test]
fn of_several_documents_it_says_how_many_keep_it() {
    let directory = &runs::whole().directory;
    let of = |limits: &str, more: &[&str], code| {
        let files = ["--gate", limits, "result.json", "result.json", "./result.json"];
        runs::shown(directory, &[&files[..], more].concat(), code)
    };
    for (limits, code, last) in [
        ("max<1000s".to_owned(), 0, "3 of 3 documents keep the gate max<1000s; broken: 0, not shown: 0."),
        ("count<0".to_owned(), 1, "0 of 3 documents keep the gate count<0; broken: 3, not shown: 0."),
        (
            "p99.9999<1000s".to_owned(),
            4,
            "0 of 3 documents keep the gate p99.9999<1000s; broken: 0, not shown: 3.",
        ),
    ] {
        let said = text(&of(&limits, &[], code).stdout);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines.len(), lines[3]), (4, last), "{said}");
        assert!(lines[0].starts_with("result.json: ") && lines[2].starts_with("./result.json: "), "{said}");
    }
    let document: serde_json::Value =
        serde_json::from_slice(&of("max<1000s", &["--json"], 0).stdout).unwrap();
    assert_eq!((&document["held_count"], &document["documents"][1]["verdict"]), (&3.into(), &"held".into()));
    let refused = runs::shown(directory, &["result.json", "result.json", "--longest"], 2);
    assert!(text(&refused.stderr).contains("judge them with --gate"), "{}", text(&refused.stderr));
    assert!(text(&of("max<1s", &["--result", "x.json"], 2).stderr).contains("only --json"));
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
