//! `lowlat pipeline ps`, `drop` and `stop`: a run as seen from outside.

use crate::{commands::journal::runs, exit::Exit, output};
use clap::Args;
use lowlat_node::control::NodeRow;
use lowlat_node::{STRATEGIES_MAX, ask, control::Request};
use lowlat_pipeline_report::nodes_text;
use std::collections::BTreeMap;

#[derive(Debug, Args)]
pub struct Run {
    /// Run: its name, directory or master's socket [default: the only one that runs]
    #[arg(long, value_name = "NAME|SOCKET")]
    run: Option<String>,
}

impl Run {
    fn ask(&self, request: Request) -> anyhow::Result<Vec<NodeRow>> {
        Ok(ask(&runs::socket(self.run.as_deref())?, request)?)
    }
}

#[derive(Debug, Args)]
pub struct Ps {
    #[command(flatten)]
    run: Run,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct Drop {
    /// Node, as named by lowlat pipeline ps
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Args)]
pub struct Halt {
    /// Strategy, by its number [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..i64::from(STRATEGIES_MAX)))]
    strategy: Option<u32>,
    #[command(flatten)]
    run: Run,
}

pub fn ps(arguments: &Ps) -> anyhow::Result<Exit> {
    let nodes = arguments.run.ask(Request::List)?;
    let document = output::Document::of("lowlat-pipeline-nodes", BTreeMap::from([("nodes", &nodes)]));
    output::print_as(arguments.json, &document, |width| nodes_text(&nodes, width))?;
    Ok(Exit::Clean)
}

pub fn drop_node(arguments: &Drop) -> anyhow::Result<Exit> {
    arguments.run.ask(Request::Drop { name: arguments.node.clone() })?;
    output::talk(&format!("dropped {}", arguments.node));
    Ok(Exit::Clean)
}

/// Halts strategies, or ends that.
pub fn halt(arguments: &Halt, is_halted: bool) -> anyhow::Result<Exit> {
    let Halt { strategy, run } = arguments;
    run.ask(Request::Halt { strategy: *strategy, is_halted })?;
    let whom = strategy.map_or_else(|| "all strategies".to_owned(), |number| format!("strategy {number}"));
    output::talk(&format!("{} {whom}", if is_halted { "halted" } else { "resumed" }));
    Ok(Exit::Clean)
}

pub fn stop(run: &Run) -> anyhow::Result<Exit> {
    run.ask(Request::Stop)?;
    output::talk("the run ends");
    Ok(Exit::Clean)
}
