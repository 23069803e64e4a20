//! `lowlat tune profiles`: lists the profiles, the one in force and the processors they are for.

use super::ask::SiteArgs;
use crate::{
    commands::{Subcommand, examples},
    output::{self, Exit},
};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Profile, Reading};
use lowlat_host_run::{Root, snapshot};
use lowlat_tune_report::{ProfileLine, profiles_text};
use lowlat_tune_run::flow;
use serde::Serialize;

pub const COMMAND: Subcommand = Subcommand { name: "profiles", declare, run };

#[derive(Debug, Args)]
struct Arguments {
    #[command(flatten)]
    site: SiteArgs,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// The list, and the profile of the other tool that sets the same values.
#[derive(Debug, Serialize)]
struct Profiles {
    profiles: Vec<ProfileLine>,
    tuned_profile: Reading<String>,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .about("List the profiles, the one in force, and whether each is made for this processor")
        .after_help(format!(
            "Exit codes: 0 done, 2 error.\n\n{}",
            examples(&[("lowlat tune profiles", "List the profiles.")])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    let root = Root::open(&arguments.site.root)?;
    let host = snapshot::read(&root, CATALOGUE);
    // A capture does not contain the plan in force.
    let in_force =
        if root.is_capture() { Reading::Absent } else { flow::status(&arguments.site.open()?)?.in_force };
    let model = host.cpu.model_name.as_ref();
    let lines = Profile::ALL.map(|profile| ProfileLine {
        name: profile.name(),
        purpose: profile.purpose(),
        is_in_force: in_force.as_ref().map(|plan| plan.profile == profile.name()),
        is_default: profile == Profile::default(),
        suits_processor: match profile {
            Profile::Trading => Reading::Known(true),
            Profile::Guide57037 => model.clone().map(|model| lowlat_plan::is_processor_of_guide(model)),
        },
    });
    let list = Profiles { profiles: lines.into(), tuned_profile: host.services.tuned.profile };
    output::print_as(arguments.json, &output::Document::of("lowlat-profiles", &list), |width| {
        profiles_text(
            &list.profiles,
            list.tuned_profile.known().map(String::as_str),
            root.is_capture(),
            width,
        )
    })?;
    Ok(Exit::Clean)
}
