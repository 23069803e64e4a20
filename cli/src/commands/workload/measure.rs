//! Arguments and steps that the measuring subcommands share.

use crate::{
    arguments::duration_within, commands::outputs::OutputArgs, documents::Run, exit::Exit, host::RoleArgs,
    signals,
};
use anyhow::Context;
use clap::{Args, value_parser};
use lowlat_cores_run::workload::{self, Order, WORKLOADS, Workload, WorkloadSite};
use lowlat_host_run::affinity;
use lowlat_results::ResultDocument;
use lowlat_workload::{Setting, WorkloadMeasurement};
use std::time::Duration;

/// Most copies of a workload.
const COPIES_MAX: i64 = 1_024;

/// Arguments of every measurement.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// Length of each run; stress-ng and other external programs run for whole seconds
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = run_time)]
    pub duration: Duration,
    /// Rounds, each of one run of every row in random order; an interval needs 6
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    #[command(flatten)]
    pub outputs: OutputArgs,
    #[command(flatten)]
    pub role: RoleArgs,
}

/// Workloads that users name, with their numbers of copies.
#[derive(Debug, Args)]
pub struct NamesArgs {
    /// The workloads; `lowlat workload list` lists them
    #[arg(value_name = "NAME", required = true, value_parser = known)]
    pub names: Vec<String>,
    /// Run this many copies of each, such as 1,4,16,32,64
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1", value_parser = value_parser!(u32).range(1..=COPIES_MAX))]
    pub copies: Vec<u32>,
}

impl NamesArgs {
    /// Each workload with each number of copies, under each setting.
    pub fn cells(&self, settings: &[Setting]) -> Vec<(&'static Workload, u32, Setting)> {
        let workloads = self.names.iter().filter_map(|name| workload::find(name));
        let rows = workloads.flat_map(|of| self.copies.iter().map(move |copies| (of, *copies)));
        rows.flat_map(|(of, copies)| settings.iter().map(move |setting| (of, copies, *setting))).collect()
    }
}

fn known(name: &str) -> Result<String, String> {
    if workload::find(name).is_some() {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
    Err(format!("no such workload; expected one of {}", names.join(", ")))
}

fn run_time(text: &str) -> Result<Duration, String> {
    duration_within(text, Duration::from_millis(10)..=Duration::from_secs(600), "10 ms to 600 s")
}

/// Measures, and writes the outputs.
pub fn run(
    command: &'static str,
    arguments: &MeasureArgs,
    order: impl FnOnce() -> anyhow::Result<Order>,
) -> anyhow::Result<Exit> {
    let outputs = arguments.outputs.prepare()?;
    let document = measure(command, arguments, order()?)?;
    let record = &document.workload().context("the document contains no workloads")?.record;
    outputs.write(&document)?;
    if record.runs.is_empty() && !document.is_interrupted {
        let why = record.missing.first().map_or("it has no rounds", |missing| &missing.why);
        anyhow::bail!(
            "cannot measure any workload: {why}\nhint: `lowlat workload list` lists what can run here"
        );
    }
    Ok(Exit::of_measurement(document.is_interrupted, lowlat_cores_report::has_result(record)))
}

fn measure(command: &'static str, arguments: &MeasureArgs, order: Order) -> anyhow::Result<ResultDocument> {
    let labels = &arguments.outputs.files.language.labels;
    let mut run = Run::begin(command, labels, || arguments.role.read())?;
    let usable = affinity::current()?;
    let stop = signals::stop_flag()?;
    run.progress.stand_still();
    run.start();
    let order = Order { rounds: arguments.rounds, time: arguments.duration, ..order };
    let site = WorkloadSite { root: &run.host.root, topology: &run.host.snapshot.topology, usable: &usable };
    let record = workload::run(site, &order, &stop, &|round, cell| {
        let of = arguments.rounds;
        run.progress.say(format!(
            "round {} of {of}: {} x {}, {}",
            round + 1,
            cell.workload,
            cell.copies,
            cell.setting
        ));
    });
    Ok(run.document(vec![WorkloadMeasurement::from(record).into()], &stop))
}
