//! Plans and runs of matrices, with invented results.

use super::*;
use crate::run::testing::Fake;
use lowlat_host::{CpuSet, Reading, Topology};
use lowlat_pipeline::matrix::{choose, rows, rows_of_file};
use std::{collections::BTreeSet, sync::Arc};

fn facts(cpus: u32) -> RoomFacts {
    RoomFacts {
        cpus: Reading::Known(CpuSet::first(cpus)),
        huge_bytes_free: Reading::Known(0),
        ..RoomFacts::default()
    }
}

const WANTED: Wanted = Wanted {
    budget: Duration::from_secs(600),
    repeats: None,
    reserves_huge_pages: false,
    is_forced: false,
    has_md_threads: false,
    start_interval: Duration::ZERO,
    fixed: None,
};
/// Two runs of each row within a minute.
const TWICE: Wanted = Wanted { budget: Duration::from_secs(60), repeats: Some(2), ..WANTED };

fn plan(names: &[&str], wanted: &Wanted, cpus: u32) -> Matrix {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let rows = match wanted.fixed {
        Some(fixed) => choose(&names, rows_of_file(fixed.instruments, 40.0)).unwrap(),
        None => choose(&names, rows()).unwrap(),
    };
    let (cpus, topology, facts) = (CpuSet::first(cpus), Topology::default(), facts(cpus));
    Matrix::plan(&rows, &MatrixPins::new(&cpus, &topology), &facts, wanted, String::new()).unwrap()
}

fn why<'a>(matrix: &'a Matrix, id: &str) -> Option<&'a str> {
    matrix.document.rows.iter().find(|row| row.id == id).unwrap().not_run.as_deref()
}

#[test]
fn rows_that_cannot_run_give_a_reason() {
    let matrix = plan(&[], &Wanted { budget: Duration::from_secs(400), ..WANTED }, 2);
    assert_eq!(why(&matrix, "B10"), Some(NO_HUGE_PAGES));
    assert!(why(&matrix, "F11").unwrap().contains("82 processes spin (md on CPU 0, td on CPU 1"));
    assert!(why(&matrix, "X10").unwrap().contains("NUMA nodes of this host are not known"));
    assert!(why(&matrix, "A1").unwrap().contains("one tick takes 5.0 s"), "{:?}", why(&matrix, "A1"));
    assert_eq!((why(&matrix, "A12"), why(&matrix, "C10")), (None, None));
    let allowed = plan(
        &[],
        &Wanted {
            budget: Duration::from_secs(3 * 3_600),
            reserves_huge_pages: true,
            is_forced: true,
            ..WANTED
        },
        2,
    );
    let not_run = allowed.document.rows.iter().filter(|row| row.not_run.is_some()).map(|row| row.group);
    // Neither nodes nor caches of this host are known.
    assert_eq!(not_run.collect::<BTreeSet<char>>(), BTreeSet::from(['L', 'X', 'Y']));
    assert!(allowed.pages_needed() > 0 && plan(&[], &WANTED, 2).pages_needed() == 0);
    let single = plan(&["C"], &WANTED, 1).document;
    assert!(single.rows.iter().all(|row| row.not_run.as_deref().is_some_and(|why| why.contains("one CPU"))));
}

#[test]
fn the_report_s_ways_are_planned_and_named() {
    let wanted = Wanted {
        has_md_threads: true,
        start_interval: Duration::from_secs(1),
        fixed: Some(FixedLoad { instruments: 20, duration_s: 3.0, quotes: 120 }),
        ..WANTED
    };
    let matrix = plan(&["A", "S", "P"], &wanted, 4);
    let row = &matrix.document.rows[0];
    assert_eq!((row.id.as_str(), row.parameters.strategies, row.ticks_per_run), ("A", 20, 120));
    assert!(row.parameters.has_md_threads && (row.parameters.duration_s - 3.0).abs() < 1e-9);
    assert!(matrix.budget.expected_s > 2.0 * 23.0, "a strategy each second: {}", matrix.budget.expected_s);
    assert!(why(&matrix, "S").unwrap().contains("20 instruments"));
    let host = &matrix.document.rows[2].parameters;
    assert!(!host.has_md_threads, "md and td in one loop have no threads");
    let said = &matrix.document.platform;
    assert!(
        said.starts_with("6 processes beside the strategies")
            && said.ends_with("Strategies start 1 s apart.")
    );
    assert!(
        said.contains("a thread for each instrument") && !said.contains("one thread (the report"),
        "{said}"
    );
    let options = wanted.options(None);
    assert_eq!((options.followers, options.start_interval_ms), (2, 1000));
}

#[test]
fn rows_take_turns_and_the_document_is_kept_after_each_round() {
    let mut matrix = plan(&["A10", "C10"], &TWICE, 4);
    let mut runner = Fake::default();
    let kept = std::cell::Cell::new(0);
    matrix
        .measure(&mut runner, &AtomicBool::new(false), &mut |_, _| (), &|_| kept.set(kept.get() + 1))
        .unwrap();
    let pinned: Vec<bool> = runner.asked.iter().map(|of| !of.pins.is_empty()).collect();
    assert_eq!(pinned, [false, true, true, false]);
    assert_eq!(kept.get(), 1, "after the first round");
    assert!(matrix.document.rows.iter().all(|row| row.runs.len() == 2));
}

#[test]
fn an_interrupted_matrix_keeps_its_results() {
    let mut matrix = plan(&["A10", "C10"], &TWICE, 4);
    let stop = Arc::new(AtomicBool::new(false));
    let mut runner = Fake { stops_after: Some((3, Arc::clone(&stop))), ..Fake::default() };
    matrix.measure(&mut runner, &stop, &mut |_, _| (), &|_| ()).unwrap();
    assert!(matrix.document.is_interrupted);
    let runs: Vec<usize> = matrix.document.rows.iter().map(|row| row.runs.len()).collect();
    assert_eq!(runs, [1, 2]);
}

#[test]
fn a_failed_run_is_reported_and_the_others_continue() {
    let mut matrix = plan(&["A10", "C10"], &TWICE, 4);
    let mut runner = Fake { fails_at: Some(1), ..Fake::default() };
    matrix.measure(&mut runner, &AtomicBool::new(false), &mut |_, _| (), &|_| ()).unwrap();
    assert_eq!(runner.asked.len(), 4);
    assert!(matrix.document.warnings[0].contains("A10: run failed: process md ended: it did not start"));
    assert_eq!(why(&matrix, "A10"), None, "its other run succeeded");
}
