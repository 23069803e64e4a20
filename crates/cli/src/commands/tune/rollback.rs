//! `lowlat tune rollback`: everything as it was before.

use super::ask::{self, SiteArgs};
use crate::commands::{Subcommand, examples};
use crate::{
    output::{self, Exit},
    signals,
};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_plan::outcome::RollbackOutcome;
use lowlat_tune::flow::{self, RollbackRequest, Scope, Site};

pub const COMMAND: Subcommand = Subcommand { name: "rollback", declare, run };

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a command are independent")]
struct Arguments {
    #[command(flatten)]
    site: SiteArgs,
    /// Go back to this earlier plan, which `lowlat tune status` names, instead of to the start
    #[arg(long, value_name = "ID")]
    to: Option<String>,
    /// Take back only what a reboot would: values of the kernel, threads, interrupts, interfaces
    #[arg(long, conflicts_with = "to")]
    run_time: bool,
    /// Show what would be taken back, and what others have changed since; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Bring the old state of this path back though somebody else has changed it since; repeat it for each
    #[arg(long, value_name = "PATH")]
    force_path: Vec<String>,
    /// Leave what others have changed since; the default
    #[arg(long, conflicts_with = "force_path")]
    keep_theirs: bool,
    /// If the undo log is damaged, restore what its intact records allow and give up the rest
    #[arg(long)]
    accept_damage: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    /// Take back what nobody has confirmed; what lowlat-confirm.service runs
    #[arg(long, hide = true, conflicts_with_all = ["to", "run_time", "dry_run"])]
    unconfirmed: bool,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .about("Roll plans back: files byte for byte, services, interrupts, threads, the boot menu")
        .after_help(format!(
            "Reads only the undo log (/var/lib/lowlat/undo) and resumes after a crash. What others have changed since is shown \
             in all three states and left alone. If records of the log are missing or damaged, rollback shows what can \
             and what cannot be restored, and changes nothing without --accept-damage.\n\n\
             Exit codes: 0 as before, 1 something is left, 2 error.\n\n{}",
            examples(&[
                ("sudo lowlat tune rollback --dry-run", "what would be taken back"),
                ("sudo lowlat tune rollback", "everything as before the first plan"),
                ("sudo lowlat tune rollback --to 9f86d081884c7d65", "an earlier plan in force again"),
                (
                    "sudo lowlat tune rollback --force-path /etc/sysctl.d/99-zz-lowlat.conf",
                    "the old state of a file that somebody has edited since"
                ),
            ])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    let site = arguments.site.open()?;
    if arguments.unconfirmed {
        return unconfirmed(&site);
    }
    let scope = match (&arguments.to, arguments.run_time) {
        (Some(id), _) => Scope::To(id.clone()),
        (None, true) => Scope::RunTime,
        (None, false) => Scope::All,
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
            output::talk_painted(&lowlat_report::rollback_text(&preview, output::width()));
        }
        if !ask::ask("Take this back?", arguments.yes)? {
            output::talk("Nothing was changed.");
            return Ok(Exit::Findings);
        }
        request.is_preview = false;
    }
    // The first Ctrl-C lets it finish.
    let _stop = signals::stop_flag()?;
    let outcome = flow::rollback(&site, &request)?;
    print(&outcome, arguments.json)
}

fn print(outcome: &RollbackOutcome, is_json: bool) -> anyhow::Result<Exit> {
    if is_json {
        output::print_json(outcome)?;
    } else {
        output::print(&lowlat_report::rollback_text(outcome, output::width()))?;
    }
    Ok(if outcome.is_complete() { Exit::Clean } else { Exit::Findings })
}

/// The end of the dead-man switch's time.
fn unconfirmed(site: &Site) -> anyhow::Result<Exit> {
    let Some((outcome, wants_reboot)) = flow::rollback_unconfirmed(site)? else {
        output::print("Nothing waits for a confirmation.")?;
        return Ok(Exit::Clean);
    };
    let exit = print(&outcome, false)?;
    if let Some(manager) = site.manager.as_ref().filter(|_| wants_reboot) {
        output::talk("The plan was not confirmed in time and is taken back; the host is started again.");
        manager.reboot()?;
    }
    Ok(exit)
}
