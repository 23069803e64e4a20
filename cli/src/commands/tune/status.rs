//! `lowlat tune status`: shows the plan in force.

use super::ask::SiteArgs;
use crate::commands::{Subcommand, examples};
use crate::output::{self, Exit};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use jiff::Timestamp;
use lowlat_host_run::Root;
use lowlat_plan::outcome::{RebootStatus, TuneStatus};
use lowlat_tune_run::flow;

pub const COMMAND: Subcommand = Subcommand { name: "status", declare, run };

#[derive(Debug, Args)]
struct TuneStatusArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
}

fn declare(command: Command) -> Command {
    TuneStatusArgs::augment_args(command)
        .about("Show which plan is in force, since when, and which units maintain it")
        .after_help(format!(
            "Exit codes: 0 no plan or a complete plan, 1 an incomplete plan, a refused command line or a damaged undo log, \
             2 error.\n\n{}",
            examples(&[
                ("sudo lowlat tune status", "Show the plan, reboot, confirmation, units and steps."),
                ("lowlat tune status", "Show what is readable without root."),
            ])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = TuneStatusArgs::from_arg_matches(matches)?;
    let root = Root::open(&arguments.site.root)?;
    anyhow::ensure!(
        !root.is_capture(),
        "cannot show the plan in force on {}: a capture does not contain it\nhint: run `lowlat tune status` on that host",
        root.label()
    );
    let status = flow::status(&arguments.site.open()?)?;
    output::print_as(arguments.json, &status, |width| {
        lowlat_tune_report::status_text(&status, &since(&status), width)
    })?;
    let is_in_part = status.in_force.known().is_some_and(|plan| !plan.is_complete || plan.is_of_other_host);
    let is_in_part = is_in_part || status.reboot == RebootStatus::Refused;
    let is_sound = !is_in_part && status.damage.is_none() && status.unfinished.is_empty();
    Ok(if is_sound { Exit::Clean } else { Exit::Findings })
}

/// Formats the time of the apply, in UTC.
fn since(status: &TuneStatus) -> String {
    let known = status.in_force.known();
    let at = known
        .and_then(|plan| i64::try_from(plan.applied_unix_ms).ok())
        .and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}
