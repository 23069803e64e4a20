//! `lowlat pipeline matrix`: the report's groups and scenarios on this host, within a time budget.

use super::{huge_pages::Reserved, live::Live, now, on_one_line, room, runner::Runner};
use crate::{
    arguments::duration,
    commands::{Subcommand, examples},
    output::{self, Exit},
    results::{self, OutputFile},
    signals,
};
use anyhow::{Context, bail, ensure};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::CpuSet;
use lowlat_pipeline::{
    MatrixDocument, MatrixRow, RowFigures,
    check::{Memory, Point, Room, RoomFacts, came_beside, doubts, hindrances, judge, others},
    matrix::{Budget, PlatformPins, Row, Share, choose, platform_pins},
};
use lowlat_report::{matrix_html, matrix_not_run_text, matrix_plan_text, matrix_text};
use lowlat_sys::{Root, snapshot};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

pub const COMMAND: Subcommand = Subcommand { name: "matrix", declare, run };

/// A matrix ends early once it has taken this multiple of its budget: starting processes took
/// longer than estimated.
const OVERRUN_MAX: f64 = 1.25;
/// Consecutive failed runs after which the matrix gives up.
const FAILURES_MAX: u32 = 3;
const NO_HUGE_PAGES: &str = "no huge pages reserved; give --reserve-huge-pages";

#[derive(Debug, Args)]
struct Arguments {
    /// Time for all rows together: 10m, 2h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration, allow_hyphen_values = true)]
    budget: Duration,
    /// Rows to measure: A10,C11,... [default: all]
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    rows: Vec<String>,
    /// Groups to measure: A-D as in the report, S one strategy, F fast, M mixed, H strategy host, P
    /// md and td in one process
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    groups: Vec<String>,
    /// Runs of each row [default: 3, or 2 where a third would cost a row]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    repeats: Option<u32>,
    /// Reserve huge pages for groups B and D, and release them at the end
    #[arg(long)]
    reserve_huge_pages: bool,
    /// Run rows even if their figures would not be meaningful
    #[arg(long)]
    force: bool,
    /// Show which rows would run and for how long, without running them
    #[arg(long)]
    plan: bool,
    /// Write an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write a JSON document, which --from reads
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show an existing JSON document instead of measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["budget", "rows", "groups", "repeats", "reserve_huge_pages", "force", "plan"])]
    from: Option<PathBuf>,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .about(
            "Measure tick to order across rates, modes, pins and page sizes, as the Kungfu report's tables",
        )
        .after_help(format!(
            "Exit codes: 0 clean, 1 records were lost or wakes missed, 2 error, 130 interrupted.\n\n{}",
            examples(&[
                (
                    "lowlat pipeline matrix --budget 10m --html matrix.html",
                    "the rows that fit into ten minutes"
                ),
                (
                    "sudo lowlat pipeline matrix --budget 2h --reserve-huge-pages",
                    "include the groups on huge pages"
                ),
                ("lowlat pipeline matrix --groups C,M --plan", "show which rows would run, and for how long"),
                (
                    "lowlat pipeline matrix --from matrix.json --html matrix.html",
                    "make the page of an earlier matrix"
                ),
            ])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    let outputs = Outputs::prepare(&arguments)?;
    if let Some(file) = &arguments.from {
        let document = read(file)?;
        outputs.write(&document)?;
        return Ok(Exit::Clean);
    }
    let names = [arguments.rows.clone(), arguments.groups.clone()].concat();
    let rows = choose(&names).map_err(anyhow::Error::msg)?;
    let stop = signals::stop_flag()?;
    let (mut runner, mut facts) = super::runner::real(&stop)?;
    let pins = platform_pins(facts.cpus.known().unwrap_or(&CpuSet::default()));
    let mut matrix = Matrix::plan(&rows, pins, &facts, &arguments)?;
    if arguments.plan {
        output::print(&matrix.plan_text(output::width()))?;
        return Ok(Exit::Clean);
    }
    ensure!(
        !matrix.budget.runs.is_empty(),
        "no row can run on this host\n{}\nhint: choose others with --rows or --groups; --force runs rows whose figures would not be meaningful",
        matrix.why_not(output::width()).trim_end()
    );
    let root = Root::live();
    let host = snapshot::read(&root, CATALOGUE);
    let (title, cpus) = lowlat_report::host_line(&host);
    matrix.document.host = format!("{title}: {cpus}");
    matrix.document.kernel = format!("Linux {}", host.kernel.release.text());
    let pages = matrix.pages_needed();
    let reserved = (arguments.reserve_huge_pages && pages > 0).then(|| Reserved::pages(pages)).transpose()?;
    if reserved.is_some() {
        facts = room::read(&root, None);
    }
    matrix.add_doubts(&facts);
    let beside = facts.other_runs.known().and_then(|runs| others(runs, false));
    room::talk("matrix", &beside.iter().map(Point::sentence).collect::<Vec<_>>());
    let result = matrix.measure(&mut runner, &stop, &|document| outputs.keep(document));
    drop(reserved);
    let document = matrix.document;
    outputs.write(&document)?;
    result?;
    let is_sound = document.rows.iter().all(|row| RowFigures::of(row).failures == 0);
    Ok(if document.is_interrupted {
        Exit::Interrupted
    } else if is_sound {
        Exit::Clean
    } else {
        Exit::Findings
    })
}

/// The rows to run, and the results so far.
struct Matrix {
    budget: Budget,
    document: MatrixDocument,
}

impl Matrix {
    fn plan(
        rows: &[Row],
        pins: Result<PlatformPins, String>,
        facts: &RoomFacts,
        arguments: &Arguments,
    ) -> anyhow::Result<Self> {
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
            if row.group.needs_huge_pages && !arguments.reserve_huge_pages && lacks_pages("huge pages") {
                return Some(NO_HUGE_PAGES.to_owned());
            }
            let against = hindrances(&points, arguments.force);
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
        let budget = Budget::share(&shares, arguments.budget.as_secs_f64(), arguments.repeats)?;
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
            started_at: now(),
            elapsed_s: 0.0,
            budget_s: arguments.budget.as_secs_f64(),
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
    fn pages_needed(&self) -> u64 {
        let run = self.document.rows.iter().filter(|row| row.not_run.is_none());
        let huge = run.filter(|row| row.parameters.may_use_huge_pages);
        huge.map(|row| Memory::of(&row.parameters).huge_pages()).max().unwrap_or(0)
    }

    /// Doubts about the host, each once, with the rows that it affects.
    fn add_doubts(&mut self, facts: &RoomFacts) {
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
    fn measure(
        &mut self,
        runner: &mut dyn Runner,
        stop: &AtomicBool,
        keep: &dyn Fn(&MatrixDocument),
    ) -> anyhow::Result<()> {
        let clock = Instant::now();
        let live = Live::new();
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
            let title = format!(
                "run {} of {total}, {}: {}",
                at + 1,
                row.id,
                lowlat_report::load_words(&row.parameters)
            );
            let made =
                runner.run(&row.parameters, &mut |now| live.show(&title, row.parameters.duration_s, now));
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
                        result = Err(error.context(format!("{FAILURES_MAX} runs failed in a row")));
                        break;
                    }
                }
            }
        }
        live.finish();
        self.document.elapsed_s = clock.elapsed().as_secs_f64();
        self.document.is_interrupted = stop.load(Ordering::Relaxed);
        for row in self.document.rows.iter_mut().filter(|row| !row.runs.is_empty()) {
            row.not_run = None;
        }
        self.document.warnings.dedup();
        result
    }

    /// The rows that would run.
    fn plan_text(&self, width: usize) -> String {
        matrix_plan_text(&self.document, self.budget.expected_s, width)
    }

    /// Why no row can run, as lines below an error.
    fn why_not(&self, width: usize) -> String {
        anstream::adapter::strip_str(&matrix_not_run_text(&self.document, width)).to_string()
    }
}

/// Where the results are written.
struct Outputs {
    html: Option<OutputFile>,
    json: Option<OutputFile>,
}

impl Outputs {
    fn prepare(arguments: &Arguments) -> anyhow::Result<Self> {
        let file = |path: &Option<PathBuf>, option: &str| {
            path.as_deref().map(|path| OutputFile::prepare(path, option)).transpose()
        };
        Ok(Self { html: file(&arguments.html, "--html")?, json: file(&arguments.json, "--json")? })
    }

    /// Writes the document between rounds. Errors are ignored here: the final write reports them.
    fn keep(&self, document: &MatrixDocument) {
        if let Some(file) = &self.json {
            let _ = file.write_json(document);
        }
    }

    fn write(&self, document: &MatrixDocument) -> anyhow::Result<()> {
        output::print(&matrix_text(document, output::width()))?;
        let json = self.json.iter().map(|file| (file, output::json_line(document)));
        let html = self.html.iter().map(|file| (file, Ok(matrix_html(document))));
        results::write_all(json.chain(html))
    }
}

fn read(path: &std::path::Path) -> anyhow::Result<MatrixDocument> {
    let shown = path.display();
    let not = || {
        format!("cannot read {shown} as a matrix\nhint: name a file written by lowlat pipeline matrix --json")
    };
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let document: MatrixDocument = serde_json::from_slice(&bytes).with_context(not)?;
    ensure!(
        document.document == MatrixDocument::DOCUMENT,
        "{}: it calls itself \"{}\"",
        not(),
        document.document
    );
    if document.schema_version > MatrixDocument::SCHEMA_VERSION {
        bail!(
            "cannot read {shown}: its document version is {}, and this lowlat reads up to {}\nhint: use lowlat {}, which wrote it",
            document.schema_version,
            MatrixDocument::SCHEMA_VERSION,
            document.lowlat_version
        );
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::super::runner::fake::Fake;
    use super::*;
    use lowlat_host::Reading;
    use std::sync::Arc;

    fn arguments(words: &[&str]) -> Arguments {
        let command = declare(Command::new("matrix"));
        Arguments::from_arg_matches(&command.get_matches_from([&["matrix"], words].concat())).unwrap()
    }

    fn facts(cpus: u32) -> RoomFacts {
        RoomFacts {
            cpus: Reading::Known(CpuSet::first(cpus)),
            huge_bytes_free: Reading::Known(0),
            ..RoomFacts::default()
        }
    }

    fn plan(words: &[&str], cpus: u32) -> Matrix {
        let arguments = arguments(words);
        let rows = choose(&[arguments.rows.clone(), arguments.groups.clone()].concat()).unwrap();
        let pins = platform_pins(&CpuSet::first(cpus));
        Matrix::plan(&rows, pins, &facts(cpus), &arguments).unwrap()
    }

    fn why<'a>(matrix: &'a Matrix, id: &str) -> Option<&'a str> {
        matrix.document.rows.iter().find(|row| row.id == id).unwrap().not_run.as_deref()
    }

    #[test]
    fn rows_that_cannot_run_give_a_reason() {
        let matrix = plan(&["--budget", "4m"], 2);
        assert_eq!(why(&matrix, "B10"), Some(NO_HUGE_PAGES));
        assert!(why(&matrix, "F11").unwrap().contains("82 processes spin (md on CPU 0, td on CPU 1"));
        assert!(why(&matrix, "A1").unwrap().contains("one tick takes 5.0 s"), "{:?}", why(&matrix, "A1"));
        assert_eq!((why(&matrix, "A12"), why(&matrix, "C10")), (None, None));
        assert!(
            matrix.plan_text(100).contains("B1-B12, D1-D12: no huge pages reserved"),
            "{}",
            matrix.plan_text(100)
        );
        let allowed = plan(&["--reserve-huge-pages", "--force", "--budget", "3h"], 2);
        assert!(allowed.document.rows.iter().all(|row| row.not_run.is_none()), "{}", allowed.plan_text(100));
        assert!(allowed.pages_needed() > 0 && plan(&[], 2).pages_needed() == 0);
        let single = plan(&["--groups", "C"], 1).document;
        assert!(
            single.rows.iter().all(|row| row.not_run.as_deref().is_some_and(|why| why.contains("one CPU")))
        );
    }

    #[test]
    fn rows_take_turns_and_the_document_is_kept_after_each_round() {
        let mut matrix = plan(&["--rows", "A10,C10", "--budget", "60s", "--repeats", "2"], 4);
        let mut runner = Fake::default();
        let kept = std::cell::Cell::new(0);
        matrix.measure(&mut runner, &AtomicBool::new(false), &|_| kept.set(kept.get() + 1)).unwrap();
        let pinned: Vec<bool> = runner.asked.iter().map(|of| !of.pins.is_empty()).collect();
        assert_eq!(pinned, [false, true, true, false]);
        assert_eq!(kept.get(), 1, "after the first round");
        assert!(matrix.document.rows.iter().all(|row| row.runs.len() == 2));
    }

    #[test]
    fn an_interrupted_matrix_keeps_its_results() {
        let mut matrix = plan(&["--rows", "A10,C10", "--budget", "60s", "--repeats", "2"], 4);
        let stop = Arc::new(AtomicBool::new(false));
        let mut runner = Fake { stops_after: Some((3, Arc::clone(&stop))), ..Fake::default() };
        matrix.measure(&mut runner, &stop, &|_| ()).unwrap();
        assert!(matrix.document.is_interrupted);
        let runs: Vec<usize> = matrix.document.rows.iter().map(|row| row.runs.len()).collect();
        assert_eq!(runs, [1, 2]);
    }

    #[test]
    fn a_failed_run_is_reported_and_the_others_continue() {
        let mut matrix = plan(&["--rows", "A10,C10", "--budget", "60s", "--repeats", "2"], 4);
        let mut runner = Fake { fails_at: Some(1), ..Fake::default() };
        matrix.measure(&mut runner, &AtomicBool::new(false), &|_| ()).unwrap();
        assert_eq!(runner.asked.len(), 4);
        assert!(matrix.document.warnings[0].contains("A10: run failed: md did not start"));
        assert_eq!(why(&matrix, "A10"), None, "its other run succeeded");
    }

    #[test]
    fn a_written_document_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("matrix.json");
        let document = plan(&["--rows", "A10"], 4).document;
        std::fs::write(&path, serde_json::to_vec(&document).unwrap()).unwrap();
        assert_eq!(read(&path).unwrap(), document);
        let newer = MatrixDocument { schema_version: 99, ..document };
        std::fs::write(&path, serde_json::to_vec(&newer).unwrap()).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("version is 99"));
        std::fs::write(&path, "{}").unwrap();
        assert!(format!("{:#}", read(&path).unwrap_err()).contains("as a matrix"));
    }
}
