//! `lowlat workload list`.

use crate::{
    commands::{Subcommand, examples},
    output::{self, Exit},
};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_cores_report::{Listed, list_text};
use lowlat_cores_run::workload::WORKLOADS;

pub const COMMAND: Subcommand = Subcommand { name: "list", declare, run };

#[derive(Debug, Args)]
struct WorkloadListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn declare(command: Command) -> Command {
    WorkloadListArgs::augment_args(command)
        .about("List the workloads, and why some cannot run here")
        .after_help(examples(&[("lowlat workload list", "List the workloads.")]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = WorkloadListArgs::from_arg_matches(matches)?;
    let listed: Vec<Listed> = WORKLOADS
        .iter()
        .map(|of| Listed { name: of.name, about: of.about, unit: of.unit, why_not: of.why_not() })
        .collect();
    let document = output::Document::of("lowlat-workloads", serde_json::json!({ "workloads": listed }));
    output::print_as(arguments.json, &document, |width| list_text(&listed, width))?;
    Ok(Exit::Clean)
}
