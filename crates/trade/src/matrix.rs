//! The matrix of scenarios on this host: which rows have room, how the time is shared, and the runs.

use crate::run::{RunError, Runner, Turn, Watch, on_one_line};
use lowlat_pipeline::{
    MatrixDocument, MatrixRow,
    check::{Memory, Room, RoomFacts, came_beside, doubts, hindrances, judge},
    matrix::{Budget, BudgetError, PlatformPins, Row, Share},
};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use thiserror::Error;

/// A matrix ends early once it has taken this multiple of its budget: starting processes took
/// longer than estimated.
const OVERRUN_MAX: f64 = 1.25;
/// Consecutive failed runs after which the matrix gives up.
const FAILURES_MAX: u32 = 3;
const NO_HUGE_PAGES: &str = "no huge pages reserved; give --reserve-huge-pages";

/// What is asked of a matrix.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Time for all rows together.
    pub budget: Duration,
    /// Runs of each row; `None`: as the budget allows.
    pub repeats: Option<u32>,
    /// Whether huge pages are reserved for the rows that need them.
    pub reserves_huge_pages: bool,
    /// Whether rows run even if their figures would not be meaningful.
    pub is_forced: bool,
}

/// Why a matrix ended before its end.
#[derive(Debug, Error)]
#[error("{failures} runs failed in a row")]
pub struct MatrixError {
    failures: u32,
    /// What the last of them died of.
    source: RunError,
}

/// The rows to run, and the results so far.
#[derive(Debug)]
pub struct Matrix {
    /// How the time is shared.
    pub budget: Budget,
    /// The rows with their results.
    pub document: MatrixDocument,
}

impl Matrix {
    /// Shares the time among the rows that this host has room for; the others get a reason. `started_at` is the
    /// document's.
    ///
    /// # Errors
    /// No budget makes these runs.
    pub fn plan(
        rows: &[Row],
        pins: Result<PlatformPins, String>,
        facts: &RoomFacts,
        wanted: &Wanted,
        started_at: String,
    ) -> Result<Self, BudgetError> {
        let no_pins = PlatformPins {
            pins: BTreeMap::new(),
            host_core: 0,
            host_pins: BTreeMap::new(),
            how: String::new(),
        };
        let (usable_pins, no_pinning) = match pins {
            Ok(pins) => (pins, None),
            Err(why) => (no_pins, Some(why)),
        };
        let refused = |row: &Row| {
            if let Some(why) = no_pinning.as_ref().filter(|_| row.group.is_pinned) {
                return Some(why.clone());
            }
            let parameters = row.parameters(1.0, &usable_pins);
            let points = judge(&parameters, facts);
            let lacks_pages = |id: &str| points.iter().any(|point| point.id == id && point.room > Room::Fine);
            if row.group.needs_huge_pages && !wanted.reserves_huge_pages && lacks_pages("huge pages") {
                return Some(NO_HUGE_PAGES.to_owned());
            }
            let against = hindrances(&points, wanted.is_forced);
            against.first().map(|point| format!("{}: {}", point.id, point.found))
        };
        let shares: Vec<Share> = rows
            .iter()
            .map(|row| Share {
                rate_per_s: row.scenario.rate_per_s,
                processes: row.processes(),
                refused: refused(row),
            })
            .collect();
        let budget = Budget::share(&shares, wanted.budget.as_secs_f64(), wanted.repeats)?;
        let planned = rows.iter().zip(&budget.rows).map(|(row, plan)| MatrixRow {
            id: row.id(),
            group: row.group.letter,
            group_name: row.group.name.to_owned(),
            scenario: row.scenario.number,
            parameters: row.parameters(plan.duration_s, &usable_pins),
            ticks_per_run: plan.ticks,
            not_run: plan.not_run.clone(),
            runs: Vec::new(),
        });
        let document = MatrixDocument {
            document: MatrixDocument::DOCUMENT.into(),
            schema_version: MatrixDocument::SCHEMA_VERSION,
            lowlat_version: env!("CARGO_PKG_VERSION").into(),
            started_at,
            elapsed_s: 0.0,
            budget_s: wanted.budget.as_secs_f64(),
            is_interrupted: false,
            host: String::new(),
            kernel: String::new(),
            repeats: budget.repeats,
            pinning: if rows.iter().any(|row| row.group.is_pinned) {
                usable_pins.how.clone()
            } else {
                String::new()
            },
            rows: planned.collect(),
            warnings: Vec::new(),
        };
        Ok(Self { budget, document })
    }

    /// Pages of 2 MiB that the largest row needs.
    pub fn pages_needed(&self) -> u64 {
        let run = self.document.rows.iter().filter(|row| row.not_run.is_none());
        let huge = run.filter(|row| row.parameters.may_use_huge_pages);
        huge.map(|row| Memory::of(&row.parameters).huge_pages()).max().unwrap_or(0)
    }

    /// Doubts about the host, each once, with the rows that it affects.
    pub fn add_doubts(&mut self, facts: &RoomFacts) {
        let mut found: Vec<(String, Vec<&str>)> = Vec::new();
        for row in self.document.rows.iter().filter(|row| row.not_run.is_none()) {
            for doubt in doubts(&judge(&row.parameters, facts)) {
                match found.iter_mut().find(|(known, _)| *known == doubt) {
                    Some((_, ids)) => ids.push(&row.id),
                    None => found.push((doubt, vec![&row.id])),
                }
            }
        }
        let run = self.document.rows.iter().filter(|row| row.not_run.is_none()).count();
        let said = found.into_iter().map(|(doubt, ids)| {
            if ids.len() == run { doubt } else { format!("{}: {doubt}", ids.join(", ")) }
        });
        let said: Vec<String> = said.collect();
        self.document.warnings.extend(said);
    }

    /// Runs the rows. `keep` is called after every round, so that an aborted matrix leaves a
    /// document.
    ///
    /// # Errors
    /// Too many runs failed one after the other; the document has what was measured.
    pub fn measure(
        &mut self,
        runner: &mut dyn Runner,
        stop: &AtomicBool,
        watch: &mut Watch<'_>,
        keep: &dyn Fn(&MatrixDocument),
    ) -> Result<(), MatrixError> {
        let clock = Instant::now();
        let total = self.budget.runs.len();
        let (mut failures, mut repeat) = (0, 0);
        let mut result = Ok(());
        for (at, run) in self.budget.runs.clone().into_iter().enumerate() {
            let elapsed_s = clock.elapsed().as_secs_f64();
            self.document.elapsed_s = elapsed_s;
            // Relaxed: a lone flag.
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if run.repeat > repeat {
                repeat = run.repeat;
                keep(&self.document);
            }
            if elapsed_s > self.document.budget_s * OVERRUN_MAX {
                self.document.warnings.push(format!(
                    "The budget was used up after {at} of {total} runs: starting processes takes longer here than estimated."
                ));
                break;
            }
            let row = &mut self.document.rows[run.row];
            let turn = Turn { number: at + 1, total, name: &row.id, parameters: &row.parameters };
            let made = runner.run(&row.parameters, &mut |now| watch(&turn, now));
            match made {
                Ok(record) => {
                    failures = 0;
                    // A run that was interrupted before its first order does not count.
                    let beside = came_beside(&record).map(|warning| format!("{}: {warning}", row.id));
                    self.document.warnings.extend(beside);
                    if record.orders > 0 || !stop.load(Ordering::Relaxed) {
                        row.runs.push(record);
                    }
                }
                // Relaxed: as above. Errors of an interrupted run do not matter.
                Err(_) if stop.load(Ordering::Relaxed) => break,
                Err(error) => {
                    failures += 1;
                    let said = format!("{}: run failed: {}", row.id, on_one_line(&error));
                    row.not_run.get_or_insert_with(|| format!("failed: {}", on_one_line(&error)));
                    self.document.warnings.push(said);
                    if failures == FAILURES_MAX {
                        result = Err(MatrixError { failures, source: error });
                        break;
                    }
                }
            }
        }
        self.document.elapsed_s = clock.elapsed().as_secs_f64();
        self.document.is_interrupted = stop.load(Ordering::Relaxed);
        for row in self.document.rows.iter_mut().filter(|row| !row.runs.is_empty()) {
            row.not_run = None;
        }
        self.document.warnings.dedup();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fake::Fake;
    use lowlat_host::{CpuSet, Reading};
    use lowlat_pipeline::matrix::{choose, platform_pins};
    use std::sync::Arc;

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
    };
    /// Two runs of each row within a minute.
    const TWICE: Wanted = Wanted { budget: Duration::from_secs(60), repeats: Some(2), ..WANTED };

    fn plan(names: &[&str], wanted: &Wanted, cpus: u32) -> Matrix {
        let rows = choose(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        let pins = platform_pins(&CpuSet::first(cpus));
        Matrix::plan(&rows, pins, &facts(cpus), wanted, String::new()).unwrap()
    }

    fn why<'a>(matrix: &'a Matrix, id: &str) -> Option<&'a str> {
        matrix.document.rows.iter().find(|row| row.id == id).unwrap().not_run.as_deref()
    }

    #[test]
    fn rows_that_cannot_run_give_a_reason() {
        let matrix = plan(&[], &Wanted { budget: Duration::from_secs(240), ..WANTED }, 2);
        assert_eq!(why(&matrix, "B10"), Some(NO_HUGE_PAGES));
        assert!(why(&matrix, "F11").unwrap().contains("82 processes spin (md on CPU 0, td on CPU 1"));
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
        assert!(allowed.document.rows.iter().all(|row| row.not_run.is_none()), "{:?}", allowed.document.rows);
        assert!(allowed.pages_needed() > 0 && plan(&[], &WANTED, 2).pages_needed() == 0);
        let single = plan(&["C"], &WANTED, 1).document;
        assert!(
            single.rows.iter().all(|row| row.not_run.as_deref().is_some_and(|why| why.contains("one CPU")))
        );
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
}
