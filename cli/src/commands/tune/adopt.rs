//! `lowlat tune adopt`: keeps the plan of the host of which this one is a copy.

use super::ask::AnswerArgs;
use crate::output::Exit;
use lowlat_tune_run::flow::{self, Adopted};

pub fn run(arguments: &AnswerArgs) -> anyhow::Result<Exit> {
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
