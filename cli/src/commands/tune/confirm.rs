//! `lowlat tune confirm`, which disarms the dead-man switch, and `lowlat tune adopt`, which keeps the plan of the host of
//! which this one is a copy.

use super::ask::AnswerArgs;
use crate::exit::Exit;
use lowlat_tune_run::flow::{self, Adopted, Confirmed};

/// Runs `lowlat tune confirm`.
pub fn confirm(arguments: &AnswerArgs) -> anyhow::Result<Exit> {
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

/// Runs `lowlat tune adopt`.
pub fn adopt(arguments: &AnswerArgs) -> anyhow::Result<Exit> {
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
