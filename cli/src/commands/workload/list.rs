//! `lowlat workload list`.

use crate::{commands::examples, exit::Exit, output};
use clap::Args;
use lowlat_cores_report::{Listed, list_text};
use lowlat_cores_run::workload::WORKLOADS;

/// List the workloads, and why some cannot run here
#[derive(Debug, Args)]
#[command(after_help = examples(&[("lowlat workload list", "List the workloads.")]))]
pub struct WorkloadListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &WorkloadListArgs) -> anyhow::Result<Exit> {
    let listed: Vec<Listed> = WORKLOADS
        .iter()
        .map(|of| Listed { name: of.name, about: of.about, unit: of.unit, why_not: of.why_not() })
        .collect();
    let document = output::Document::of("lowlat-workloads", serde_json::json!({ "workloads": listed }));
    output::print_as(arguments.json, &document, |width| list_text(&listed, width))?;
    Ok(Exit::Clean)
}
