//! `lowlat tune confirm`: disarms the dead-man switch.

use super::ask::AnswerArgs;
use crate::output::Exit;
use lowlat_tune_run::flow::{self, Confirmed};

pub fn run(arguments: &AnswerArgs) -> anyhow::Result<Exit> {
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
