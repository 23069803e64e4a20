//! `lowlat tune status`: shows the plan in force.

use super::ask::SiteArgs;
use crate::{commands::help, exit::Exit, output};
use clap::Args;
use lowlat_host_run::Root;
use lowlat_plan::outcome::RebootStatus;
use lowlat_tune_run::flow;

/// Show which plan is in force, since when, and which units maintain it
#[derive(Debug, Args)]
#[command(after_help = help("Exit codes: 0 no plan or a complete plan, 1 an incomplete plan, a refused command line or a damaged undo log, \
    2 error.", &[
    ("sudo lowlat tune status", "Show the plan, reboot, confirmation, units and steps."),
    ("lowlat tune status", "Show what is readable without root."),
]))]
pub struct TuneStatusArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &TuneStatusArgs) -> anyhow::Result<Exit> {
    let root = Root::open(&arguments.site.root)?;
    anyhow::ensure!(
        !root.is_capture(),
        "cannot show the plan in force on {}: a capture does not contain it\nhint: run `lowlat tune status` on that host",
        root.label()
    );
    let status = flow::status(&arguments.site.open()?)?;
    let since = super::in_utc(status.in_force.known().map(|plan| plan.applied_unix_ms));
    output::print_as(arguments.json, &status, |width| {
        lowlat_tune_report::status_text(&status, &since, width)
    })?;
    let is_in_part = status.in_force.known().is_some_and(|plan| !plan.is_complete || plan.is_of_other_host);
    let is_in_part = is_in_part || status.reboot == RebootStatus::Refused;
    let is_sound = !is_in_part && status.damage.is_none() && status.unfinished.is_empty();
    Ok(if is_sound { Exit::Clean } else { Exit::Findings })
}
