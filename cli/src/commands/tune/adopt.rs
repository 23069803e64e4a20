//! `lowlat tune adopt`: keeps the plan of the host of which this one is a copy.

use super::ask::AnswerArgs;
use crate::commands::{Subcommand, examples};
use crate::output::Exit;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_tune_run::flow::{self, Adopted};

pub const COMMAND: Subcommand = Subcommand { name: "adopt", declare, run };

fn declare(command: Command) -> Command {
    AnswerArgs::augment_args(command)
        .about("Keep the plan in force on a copy of the host that it was made for")
        .after_help(format!(
            "A host with another machine ID is a copy (a cloned image), and the plan is not applied at its boots. It \
             may not fit: CPUs and interfaces may differ. Run `lowlat tune plan` first.\n\n\
             Exit codes: 0 the plan is this host's, 1 no plan is in force, 2 error.\n\n{}",
            examples(&[("sudo lowlat tune adopt", "Keep the plan that came with the image.")])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = AnswerArgs::from_arg_matches(matches)?;
    let adopted = flow::adopt(&arguments.site.open()?)?;
    let (word, sentence) = match adopted {
        Adopted::NothingInForce => ("nothing-in-force", "No plan is in force, so there is nothing to adopt."),
        Adopted::Already => ("already", "The plan in force was made for this host."),
        Adopted::Now => (
            "now",
            "Adopted: the plan is applied at each boot; `lowlat tune apply --at-boot` applies it now.",
        ),
    };
    arguments.print("lowlat-adopt", "adopted", word, sentence)?;
    Ok(if adopted == Adopted::NothingInForce { Exit::Findings } else { Exit::Clean })
}
