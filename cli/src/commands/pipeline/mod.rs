//! `lowlat pipeline`: one file per subcommand.

pub mod beside;
mod control;
mod control_group;
mod exchange;
pub mod huge_pages;
mod live;
mod matrix;
pub mod pins;
mod role;
mod room;
mod run;
mod runner;
mod scenario;
mod size;
mod wire;

use super::Subcommand;
use crate::output::Exit;
use clap::{ArgMatches, Command, ValueEnum};
use lowlat_pipeline::{Mode, QuoteOverrun};
use lowlat_trade::node::Overrun;

pub const COMMAND: Subcommand = Subcommand { name: "pipeline", declare, run };

/// The subcommands of `lowlat pipeline`, in the order of the help.
const COMMANDS: &[Subcommand] = &[
    run::COMMAND,
    control::PS,
    control::DROP,
    control::STOP,
    matrix::COMMAND,
    size::COMMAND,
    exchange::COMMAND,
    role::COMMAND,
];

/// How processes wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeWord {
    // Plain comments: doc comments would become help of the values and stretch the help to two
    // lines per option. Every process sleeps until it is woken.
    Parked,
    // Every process spins.
    Fast,
    // Every process spins as long as that pays, then sleeps.
    Adaptive,
    // md spins, td and strategies sleep.
    Mixed,
    // md and td spin, strategies sleep.
    PlatformFast,
}

impl From<ModeWord> for Mode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::Parked => Self::Parked,
            ModeWord::Fast => Self::Fast,
            ModeWord::Adaptive => Self::Adaptive,
            ModeWord::Mixed => Self::Mixed,
            ModeWord::PlatformFast => Self::PlatformFast,
        }
    }
}

/// What happens to quotes that a strategy is too slow for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OverrunWord {
    // The strategy loses them, and gets a notice of the gap.
    Gap,
    // The strategy gets the latest quote of each instrument.
    Conflate,
}

impl From<OverrunWord> for QuoteOverrun {
    fn from(word: OverrunWord) -> Self {
        match word {
            OverrunWord::Gap => Self::Gap,
            OverrunWord::Conflate => Self::Conflate,
        }
    }
}

impl From<OverrunWord> for Overrun {
    fn from(word: OverrunWord) -> Self {
        match word {
            OverrunWord::Gap => Self::Gap,
            OverrunWord::Conflate => Self::Conflate,
        }
    }
}

fn declare(command: Command) -> Command {
    super::group(command, COMMANDS)
        .about("Run the trading pipeline as processes and measure tick to order")
        .after_help(super::examples(&[
            (
                "lowlat pipeline run --strategies 80 --rate 800 --pins md=0,td=1",
                "Run once; report latency by stage, CPU use and wakes.",
            ),
            (
                "lowlat pipeline matrix --budget 10m --report matrix.html",
                "Measure the Kungfu report's tables on this host.",
            ),
            ("lowlat pipeline size --rate 10 --goal 500us", "Find how many strategies this host carries."),
        ]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    super::run_member("pipeline", COMMANDS, matches)
}

/// The current time in UTC, to the second, as in documents.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
