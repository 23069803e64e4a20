//! `lowlat tune confirm`: disarms the dead-man switch.

use super::ask::AnswerArgs;
use crate::commands::{Subcommand, examples};
use crate::output::Exit;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_tune_run::flow::{self, Confirmed};

pub const COMMAND: Subcommand = Subcommand { name: "confirm", declare, run };

fn declare(command: Command) -> Command {
    AnswerArgs::augment_args(command)
        .about("Keep the plan in force: disarm the switch of `lowlat tune apply --confirm-within`")
        .after_help(format!(
            "If the plan needs a reboot, confirming before it disarms the switch only until the reboot.\n\n\
             Exit codes: 0 the plan stays, 1 no plan is in force, 2 error.\n\n{}",
            examples(&[(
                "sudo lowlat tune confirm",
                "Keep the plan, after the reboot and a check that the host works."
            )])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = AnswerArgs::from_arg_matches(matches)?;
    let confirmed = flow::confirm(&arguments.site.open()?)?;
    let (word, sentence) = match confirmed {
        Confirmed::NothingInForce => {
            ("nothing-in-force", "No plan is in force, so there is nothing to confirm.")
        }
        Confirmed::Already => ("already", "The plan in force needs no confirmation."),
        Confirmed::Now => ("now", "Confirmed: the plan stays in force."),
        Confirmed::UntilReboot => (
            "until-reboot",
            "Confirmed until the reboot, which arms the switch again. Run `lowlat tune confirm` after it.",
        ),
    };
    arguments.print("lowlat-confirm", "confirmed", word, sentence)?;
    Ok(if confirmed == Confirmed::NothingInForce { Exit::Findings } else { Exit::Clean })
}
