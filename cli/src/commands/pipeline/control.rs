//! `lowlat pipeline ps`, `drop` and `stop`: a run as seen from outside.

use crate::{
    commands::{Subcommand, examples, journal::runs},
    output::{self, Exit},
};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_pipeline::NodeRow;
use lowlat_pipeline_report::nodes_text;
use lowlat_trade::{control::Request, node::ask};
use serde::Serialize;

pub const PS: Subcommand = Subcommand { name: "ps", declare: declare_ps, run: ps };
pub const DROP: Subcommand = Subcommand { name: "drop", declare: declare_drop, run: drop_node };
pub const STOP: Subcommand = Subcommand { name: "stop", declare: declare_stop, run: stop };

#[derive(Debug, Args)]
struct Run {
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
struct Ps {
    #[command(flatten)]
    run: Run,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Drop {
    /// Node, as named by lowlat pipeline ps
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    run: Run,
}

/// The nodes of a run, as a document.
#[derive(Debug, Serialize)]
struct Nodes {
    nodes: Vec<NodeRow>,
}

fn declare_ps(command: Command) -> Command {
    Ps::augment_args(command).about("List the processes of a run, with what they have published, read and not yet read").after_help(
        format!(
            "A record is waiting once it is delivered and until it is read. Quotes of which only the latest counts are not counted.\n\n{}",
            examples(&[("lowlat pipeline ps --run desk", "List the processes of the run desk.")])
        ),
    )
}

fn declare_drop(command: Command) -> Command {
    Drop::augment_args(command).about("Drop a process of a run: it can publish no more").after_help(format!(
        "A process that the run has started is killed, and started again. Its orders are kept for td, and its answers for its successor.\n\n{}",
        examples(&[("lowlat pipeline drop s3", "Replace the process of strategy s3, which hangs.")])
    ))
}

fn declare_stop(command: Command) -> Command {
    Run::augment_args(command)
        .about("End a run: its pending orders are answered, and its results are printed there")
        .after_help(examples(&[("lowlat pipeline stop --run desk", "End the run desk.")]))
}

fn ps(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Ps::from_arg_matches(matches)?;
    let nodes = arguments.run.ask(Request::List)?;
    if arguments.json {
        output::print_json(&output::Document::of("lowlat-pipeline-nodes", &Nodes { nodes }))?;
    } else {
        output::print(&nodes_text(&nodes, output::width()))?;
    }
    Ok(Exit::Clean)
}

fn drop_node(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Drop::from_arg_matches(matches)?;
    arguments.run.ask(Request::Drop { name: arguments.node.clone() })?;
    output::talk(&format!("dropped {}", arguments.node));
    Ok(Exit::Clean)
}

fn stop(matches: &ArgMatches) -> anyhow::Result<Exit> {
    Run::from_arg_matches(matches)?.ask(Request::Stop)?;
    output::talk("the run ends");
    Ok(Exit::Clean)
}
