//! The matrix of scenarios on this host: which rows have room, how the time is shared, and the runs.

use crate::run::{Runner, Turn, Watch, on_one_line, plan::FOLDER};
use lowlat_node::Refusal;
use lowlat_pipeline::{
    MatrixDocument, MatrixRow, PipelineOptions, PipelineParameters,
    check::{HUGE_PAGES, Memory, Room, RoomFacts, came_beside, doubts, hindrances, judge},
    matrix::{Budget, FOLLOWERS, MatrixPins, PLATFORM_PROCESSES, Pinning, Row, Share},
};
use std::{
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

/// Load that a scenario file defines.
#[derive(Debug, Clone, Copy)]
pub struct FixedLoad {
    pub instruments: u32,
    /// From its first quote to its last, seconds.
    pub duration_s: f64,
    pub quotes: u64,
}

/// Options of a matrix.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Time for all rows together.
    pub budget: Duration,
    /// Runs of each row; `None`: as the budget allows.
    pub repeats: Option<u32>,
    /// Reserves huge pages for the rows that need them.
    pub reserves_huge_pages: bool,
    /// Runs rows even if their figures would not be meaningful.
    pub is_forced: bool,
    /// md has a thread for each instrument.
    pub has_md_threads: bool,
    /// Time between the starts of two strategies.
    pub start_interval: Duration,
    /// Load of each run if a scenario file defines it.
    pub fixed: Option<FixedLoad>,
}

impl Wanted {
    /// Options of the matrix's runs, beside their load. Nothing reads cached's state after its run.
    pub fn options(&self, scenario: Option<String>) -> PipelineOptions {
        PipelineOptions {
            cached_store: Some(format!("{FOLDER}/cached.sqlite")),
            followers: FOLLOWERS,
            scenario,
            start_interval_ms: u32::try_from(self.start_interval.as_millis()).unwrap_or(u32::MAX),
            ..PipelineOptions::default()
        }
    }

    /// Returns the reason why a row cannot be run as requested; `None` if it can.
    fn misfit(&self, row: &Row) -> Option<String> {
        let instruments = self.fixed?.instruments;
        (row.strategies != instruments).then(|| {
            format!("the scenario has {instruments} instruments, and a run of the group one strategy")
        })
    }

    /// Describes, for the document, the processes beside the strategies and how md publishes.
    fn platform(&self) -> String {
        let md = if self.has_md_threads {
            "md has a thread for each instrument, as in the report; they share one stream (not with td in one process)"
        } else {
            "md publishes all instruments from one thread (the report: one each, as with --md-threads)"
        };
        let interval = self.start_interval.as_secs_f64();
        let start =
            if interval > 0.0 { format!(" Strategies start {interval} s apart.") } else { String::new() };
        format!(
            "{PLATFORM_PROCESSES} processes beside the strategies, as in the report: master, cached, md, td, and \
             {FOLLOWERS} that read every record, for those that it does not name. {md}.{start}"
        )
    }
}

/// Error of a matrix that gave up early.
#[derive(Debug, Error)]
#[error("{failures} runs failed in a row")]
pub struct MatrixError {
    failures: u32,
    /// Error of the last of them.
    source: Refusal,
}

/// The rows to run, and the results so far.
#[derive(Debug)]
pub struct Matrix {
    /// The rows' shares of the time, and the runs in order.
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
        pins: &MatrixPins<'_>,
        facts: &RoomFacts,
        wanted: &Wanted,
        started_at: String,
    ) -> Result<Self, Refusal> {
        let parameters = |row: &Row, duration_s: f64| PipelineParameters {
            has_md_threads: wanted.has_md_threads && !row.group.is_colocated,
            ..row.parameters(duration_s, pins)
        };
        let refused = |row: &Row| {
            if let Some(why) = pins.of(row.group).err().or_else(|| wanted.misfit(row)) {
                return Some(why);
            }
            let points = judge(&parameters(row, 1.0), facts);
            let lacks_pages = || points.iter().any(|point| point.id == HUGE_PAGES && point.room > Room::Fine);
            if row.group.needs_huge_pages && !wanted.reserves_huge_pages && lacks_pages() {
                return Some(NO_HUGE_PAGES.to_owned());
            }
            let against = hindrances(&points, wanted.is_forced);
            against.first().map(|point| format!("{}: {}", point.id, point.found))
        };
        let strategies = |row: &Row| if row.group.has_host { 0 } else { row.strategies };
        let shares: Vec<Share> = rows
            .iter()
            .map(|row| Share {
                rate_per_s: row.scenario.rate_per_s,
                processes: row.processes(),
                start_s: wanted.start_interval.as_secs_f64() * f64::from(strategies(row)),
                fixed: wanted.fixed.map(|fixed| (fixed.duration_s, fixed.quotes)),
                refused: refused(row),
            })
            .collect();
        let budget =
            Budget::share(&shares, wanted.budget.as_secs_f64(), wanted.repeats).map_err(Refusal::new)?;
        let planned = rows.iter().zip(&budget.rows).map(|(row, plan)| MatrixRow {
            id: row.id(),
            group: row.group.letter,
            group_name: row.group.name.to_owned(),
            scenario: row.scenario.number,
            parameters: parameters(row, plan.duration_s),
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
            labels: lowlat_host::Labels::default(),
            host: String::new(),
            kernel: String::new(),
            repeats: budget.repeats,
            pinning: if rows.iter().any(|row| row.group.pinning != Pinning::Nothing) {
                pins.how()
            } else {
                String::new()
            },
            platform: wanted.platform(),
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
mod tests;
