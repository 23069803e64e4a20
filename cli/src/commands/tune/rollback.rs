//! `lowlat tune rollback`: restores the state before a plan.

use super::ask::{self, SiteArgs};
use crate::{commands::help, exit::Exit, output, signals};
use clap::Args;
use lowlat_plan::outcome::RollbackOutcome;
use lowlat_tune_run::flow::{self, RollbackRequest, RollbackScope, Site};

/// Roll plans back: files byte for byte, services, interrupts, threads, boot menu
#[derive(Debug, Args)]
#[command(after_help = help("Rollback reads only the undo log (/var/lib/lowlat/undo), and resumes after a crash. It shows the three states of \
    anything that was changed since, and leaves it unchanged. If records of the log are missing or damaged, it \
    shows what can and cannot be restored, and changes nothing without --accept-damage.\n\n\
    Exit codes: 0 all restored, 1 some left unrestored, 2 error.", &[
    ("sudo lowlat tune rollback --dry-run", "Show what would be rolled back."),
    ("sudo lowlat tune rollback", "Restore the state before the first plan."),
    ("sudo lowlat tune rollback --to 9f86d081884c7d65", "Roll back to an earlier plan."),
    ("sudo lowlat tune rollback --force-path /etc/sysctl.d/99-zz-lowlat.conf", "Restore a file even if it was edited since."),
]))]
pub struct TuneRollbackArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// Roll back to this earlier plan from `lowlat tune status` [default: before the first plan]
    #[arg(long, value_name = "ID")]
    to: Option<String>,
    /// Roll back only what a reboot would reset: kernel values, threads, interrupts, interfaces
    #[arg(long, conflicts_with = "to")]
    run_time: bool,
    /// Show what would be rolled back and what was changed since; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Restore the old state of this path even if it was changed since; repeatable
    #[arg(long, value_name = "PATH")]
    force_path: Vec<String>,
    /// Leave what was changed since (default)
    #[arg(long, conflicts_with = "force_path")]
    keep_theirs: bool,
    /// If the undo log is damaged, restore what its intact records allow and abandon the rest
    #[arg(long)]
    accept_damage: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Roll back an unconfirmed plan; lowlat-confirm.service runs this
    #[arg(long, hide = true, conflicts_with_all = ["to", "run_time", "dry_run"])]
    unconfirmed: bool,
}

pub fn run(arguments: &TuneRollbackArgs) -> anyhow::Result<Exit> {
    let site = arguments.site.open()?;
    if arguments.unconfirmed {
        return unconfirmed(&site);
    }
    let scope = match (&arguments.to, arguments.run_time) {
        (Some(id), _) => RollbackScope::To(id.clone()),
        (None, true) => RollbackScope::RunTime,
        (None, false) => RollbackScope::All,
    };
    let mut request = RollbackRequest {
        scope,
        is_preview: true,
        forced: arguments.force_path.clone(),
        accept_damage: arguments.accept_damage,
    };
    if !arguments.dry_run {
        if !arguments.yes {
            let preview = flow::rollback(&site, &request)?;
            if preview.is_of_nothing() {
                return print(&preview, arguments.json);
            }
            output::talk_painted(&lowlat_tune_report::rollback_text(&preview, output::stderr_width()));
        }
        if !ask::ask("Roll this back?", arguments.yes)? {
            output::talk("Nothing was changed.");
            return Ok(Exit::Findings);
        }
        request.is_preview = false;
    }
    // The first Ctrl-C lets the rollback finish.
    let _stop = signals::stop_flag()?;
    let outcome = flow::rollback(&site, &request)?;
    print(&outcome, arguments.json)
}

fn print(outcome: &RollbackOutcome, is_json: bool) -> anyhow::Result<Exit> {
    output::print_as(is_json, outcome, |width| lowlat_tune_report::rollback_text(outcome, width))?;
    Ok(if outcome.is_complete() { Exit::Clean } else { Exit::Findings })
}

/// Runs when the dead-man switch expires.
fn unconfirmed(site: &Site) -> anyhow::Result<Exit> {
    let Some(outcome) = flow::rollback_unconfirmed(site)? else {
        output::print("No plan is waiting for confirmation.")?;
        return Ok(Exit::Clean);
    };
    let exit = print(&outcome, false)?;
    if let Some(manager) = site.manager.as_ref().filter(|_| outcome.needs_reboot) {
        output::talk("The plan was not confirmed in time and was rolled back. Rebooting the host.");
        manager.reboot()?;
    }
    Ok(exit)
}
