//! `lowlat pipeline`: one file per subcommand.

pub mod beside;
mod control;
mod control_group;
mod exchange;
pub mod huge_pages;
mod live;
mod matching;
mod matrix;
mod own;
pub mod pins;
pub mod role;
mod room;
mod run;
mod runner;
mod scenario;
mod service;
mod size;
mod wire;

use super::{Subcommand, examples, help};
use crate::exit::Exit;
use clap::{ArgMatches, FromArgMatches, Subcommand as _};

pub const COMMAND: Subcommand = Subcommand { name: "pipeline", declare: Action::augment_subcommands, run };

/// Run the trading pipeline as processes and measure tick to order
#[derive(Debug, clap::Subcommand)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = examples(&[
    ("lowlat pipeline run --strategies 80 --rate 800 --duration 10s --pins md=0,td=1", "Run once; report latency by stage, CPU use and wakes."),
    ("lowlat pipeline matrix --budget 10m --report matrix.html", "Measure the Kungfu report's tables on this host."),
    ("lowlat pipeline size --rate 10 --goal 500us", "Find how many strategies this host carries."),
]))]
enum Action {
    Run(Box<run::PipelineRunArgs>),
    /// List the processes of a run, with what they have published, read and not yet read
    #[command(after_help = help(
        "A record is waiting once it is delivered and until it is read. Quotes of which only the latest counts are not counted.",
        &[("lowlat pipeline ps --run desk", "List the processes of the run desk.")],
    ))]
    Ps(control::Ps),
    /// Drop a process of a run: it can publish no more
    #[command(after_help = help(
        "A process that the run has started is killed, and started again. Its orders are kept for td, and its answers for its successor.",
        &[("lowlat pipeline drop s3", "Replace the process of strategy s3, which hangs.")],
    ))]
    Drop(control::Drop),
    /// End a run: its pending orders are answered, and its results are printed there
    #[command(after_help = examples(&[("lowlat pipeline stop --run desk", "End the run desk.")]))]
    Stop(control::Run),
    /// Halt strategies: td rejects their new orders, and cancels their open ones
    #[command(after_help = help(
        "This is the kill switch of a run. It holds until `lowlat pipeline resume`, also if td or a strategy is restarted. With --gateway, td cancels them at the exchange.",
        &[
            ("lowlat pipeline halt", "Halt all strategies of the only run."),
            ("lowlat pipeline halt --strategy 3 --run desk", "Halt strategy 3 of the run desk."),
        ],
    ))]
    Halt(control::Halt),
    /// Let halted strategies send orders again
    #[command(after_help = examples(&[("lowlat pipeline resume", "Let all strategies of the only run send orders.")]))]
    Resume(control::Halt),
    Matrix(matrix::PipelineMatrixArgs),
    Size(size::PipelineSizeArgs),
    Exchange(exchange::PipelineExchangeArgs),
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::Run(arguments) => run::run(&arguments),
        Action::Ps(arguments) => control::ps(&arguments),
        Action::Drop(arguments) => control::drop_node(&arguments),
        Action::Stop(run) => control::stop(&run),
        Action::Halt(arguments) => control::halt(&arguments, true),
        Action::Resume(arguments) => control::halt(&arguments, false),
        Action::Matrix(arguments) => matrix::run(&arguments),
        Action::Size(arguments) => size::run(&arguments),
        Action::Exchange(arguments) => exchange::run(&arguments),
    }
}

/// The current time in UTC, to the second, as in documents.
fn now() -> String {
    crate::documents::in_rfc3339(jiff::Timestamp::now())
}
