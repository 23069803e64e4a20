//! `lowlat pipeline matrix`: the report's groups and scenarios on this host, within a time budget.

use super::{
    huge_pages::Reserved,
    live::Live,
    now, room,
    scenario::{SCENARIO_HELP, ScenarioArguments, rate_and_duration},
};
use crate::{
    arguments::duration,
    commands::{help, outputs::OutputArgs},
    exit::Exit,
    output, signals,
};
use anyhow::ensure;
use clap::Args;
use lowlat_catalogue::CATALOGUE;
use lowlat_host_run::{Root, snapshot};
use lowlat_pipeline::{
    RowFigures,
    check::{Point, others},
    matrix::{MatrixPins, choose, rows, rows_of_file},
};
use lowlat_pipeline_report::{
    matrix_html, matrix_not_run_text, matrix_plan_text, matrix_text, matrix_warnings,
};
use lowlat_trade::{
    matrix::{FixedLoad, Matrix, Wanted},
    run::STRATEGIES_MAX,
    scenario::Scenario,
};
use std::time::Duration;

/// Measure tick to order across rates, modes, pins and page sizes, as the Kungfu report's tables
#[derive(Debug, Args)]
#[command(mut_arg("scenario", |scenario| scenario.conflicts_with("rows")))]
#[command(after_help = help(&format!("{SCENARIO_HELP}\n\nExit codes: 0 clean, 1 records were lost or wakes missed, 2 error, 130 interrupted."), &[
    ("lowlat pipeline matrix --budget 10m --report matrix.html", "Measure the rows that fit into ten minutes."),
    ("sudo lowlat pipeline matrix --budget 2h --reserve-huge-pages", "Include the groups on huge pages."),
    ("lowlat pipeline matrix --groups C,M --dry-run", "Show which rows would run, and for how long."),
    ("lowlat pipeline matrix --groups A,C --md-threads --start-interval 1s", "Publish and start strategies as the Kungfu report does."),
]))]
pub struct PipelineMatrixArgs {
    /// Time for all rows together: 10m, 2h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration, allow_hyphen_values = true)]
    budget: Duration,
    /// Rows to measure: A10,C11,... [default: all]
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    rows: Vec<String>,
    /// Groups to measure: A-D as in the report; S, T one strategy; F, G fast; R mixed as in the
    /// report, M mixed; H strategy host; P md and td in one process; findings of the report: K, J,
    /// L caches, O, Q CPUs of the platform, X, Y NUMA nodes
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    groups: Vec<String>,
    /// Runs of each row [default: 3, or 2 where a third would cost a row]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: Option<u32>,
    /// Reserve huge pages for groups B and D, and release them at the end
    #[arg(long)]
    reserve_huge_pages: bool,
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// Run rows even if their figures would not be meaningful
    #[arg(long)]
    force: bool,
    /// Show which rows would run and for how long, without running them
    #[arg(long, conflicts_with_all = ["json", "report", "result"])]
    dry_run: bool,
    #[command(flatten)]
    outputs: OutputArgs,
}

pub fn run(arguments: &PipelineMatrixArgs) -> anyhow::Result<Exit> {
    let outputs = arguments.outputs.prepare()?;
    let names = [arguments.rows.clone(), arguments.groups.clone()].concat();
    let scenario = arguments.scenario.read(STRATEGIES_MAX)?;
    let rows = match &scenario {
        Some(of) => choose(&names, rows_of_file(of.instruments, rate_and_duration(of).0)),
        None => choose(&names, rows()),
    };
    let rows = rows.map_err(anyhow::Error::msg)?;
    let wanted = wanted(arguments, scenario.as_ref());
    let stop = signals::stop_flag()?;
    let options = wanted.options(arguments.scenario.path());
    let (mut runner, mut facts) = super::runner::with_options(&options, &stop)?;
    let root = Root::live();
    let host = snapshot::read(&root, CATALOGUE);
    let cpus = facts.cpus.known().cloned().unwrap_or_default();
    let pins = MatrixPins::new(&cpus, &host.topology);
    let mut matrix = Matrix::plan(&rows, &pins, &facts, &wanted, now())?;
    if arguments.dry_run {
        let text = matrix_plan_text(&matrix.document, matrix.budget.expected_s, output::width());
        output::print(&text)?;
        return Ok(Exit::Clean);
    }
    ensure!(
        !matrix.budget.runs.is_empty(),
        "no row can run on this host\n{}\nhint: choose others with --rows or --groups; --force runs rows whose figures would not be meaningful",
        anstream::adapter::strip_str(&matrix_not_run_text(&matrix.document, output::width()))
            .to_string()
            .trim_end()
    );
    let (title, cpus) = lowlat_host_report::host_line(&host);
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
    let live = Live::new();
    let result =
        matrix.measure(&mut runner, &stop, &mut |turn, now| live.show_turn(turn, now), &|document| {
            outputs.files.keep(document);
        });
    live.finish();
    drop(reserved);
    let mut document = matrix.document;
    document.warnings = matrix_warnings(&document);
    let document = arguments.outputs.label(document);
    outputs.write_as(&document, &document.labels, matrix_text, matrix_html, || Ok(String::new()))?;
    result?;
    let is_sound = document.rows.iter().all(|row| RowFigures::of(row).failures == 0);
    Ok(Exit::of_run(document.is_interrupted, is_sound))
}

fn wanted(arguments: &PipelineMatrixArgs, scenario: Option<&Scenario>) -> Wanted {
    Wanted {
        budget: arguments.budget,
        repeats: arguments.rounds,
        reserves_huge_pages: arguments.reserve_huge_pages,
        is_forced: arguments.force,
        has_md_threads: arguments.scenario.md_threads,
        start_interval: arguments.scenario.start_interval.unwrap_or_default(),
        fixed: scenario.map(|of| FixedLoad {
            instruments: of.instruments,
            duration_s: rate_and_duration(of).1,
            quotes: of.records(),
        }),
    }
}
