//! `lowlat pipeline ps`, `drop` and `stop`: a run as seen from outside.

use crate::{commands::journal::runs, exit::Exit, output};
use clap::Args;
use lowlat_node::control::NodeRow;
use lowlat_node::{ask, control::Request};
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

pub fn stop(run: &Run) -> anyhow::Result<Exit> {
    run.ask(Request::Stop)?;
    output::talk("the run ends");
    Ok(Exit::Clean)
}
