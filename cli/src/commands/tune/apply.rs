//! `lowlat tune apply`: applies a plan completely or not at all.

use super::{ask, check_ids, plan_file};
use crate::{
    arguments,
    commands::{completions, help},
    exit::Exit,
    host::HostArgs,
    output,
    progress::Progress,
    role, signals,
};
use clap::Args;
use lowlat_host::{HostSnapshot, IsolateBy};
use lowlat_host_run::Root;
use lowlat_plan::{
    Plan,
    outcome::{ApplyOutcome, Fate},
};
use lowlat_tune_run::ROLE_FILE;
use lowlat_tune_run::flow::{self, ApplyOptions, PlanFrom, Ready, Site};
use lowlat_tune_run::units::Watch;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Apply a plan completely or not at all; every step can be rolled back
#[derive(Debug, Args)]
#[command(after_help = help("Before each step, lowlat records the old state in /var/lib/lowlat/undo. A second apply finishes an interrupted \
    one, and changes nothing that is already in place.\n\
    lowlat.service reapplies the run-time part at each boot; stopping the service reverts that part.\n\n\
    Exit codes: 0 in force, 1 in force except refused changes, 2 error and nothing left half done, 4 nothing to change, but less than half of the settings could be checked.", &[
    ("sudo lowlat tune apply", "Apply what `lowlat tune plan` shows, after confirmation."),
    ("sudo lowlat tune apply --plan plan.json --yes", "Apply a reviewed plan without asking for confirmation."),
    ("sudo lowlat tune apply --confirm-within 10m", "Roll back unless you reboot within 10 minutes and then run `lowlat tune confirm` within 10 minutes."),
    ("sudo lowlat tune apply --only-run-time", "Try the plan until the next reboot."),
]))]
pub struct TuneApplyArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Accept the risk of this setting; repeatable
    #[arg(long, value_name = "ID", add = completions::settings())]
    accept_risk: Vec<String>,
    /// Isolate CPUs by boot parameters, or by a cpuset partition without a reboot [default: boot]
    #[arg(long, value_name = "boot|cpuset", value_parser = super::isolate_by)]
    isolate_by: Option<IsolateBy>,
    /// Apply this saved plan. Refused if it is for another host, if the host has changed since, if lowlat would not plan
    /// it here, or if other users can write to the file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["role", "profile", "accept_risk", "isolate_by"])]
    plan: Option<PathBuf>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Roll everything back, and reboot if the new command line is running, unless `lowlat tune confirm` runs within this
    /// time of the apply, and again of each boot
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    confirm_within: Option<Duration>,
    /// Also install the role as /etc/lowlat/role.toml, which `lowlat tune rollback` removes
    #[arg(long, requires = "role", conflicts_with = "only_run_time")]
    install_role: bool,
    /// Do not install the service that reapplies the run-time part at each boot
    #[arg(long)]
    no_persist: bool,
    /// Install a timer that checks for drift this often [default without a time: 5m]
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "5m", value_parser = arguments::duration)]
    watch: Option<Duration>,
    /// Make the timer also repair drift
    #[arg(long, requires = "watch")]
    watch_repair: bool,
    /// Apply only changes that take effect at once and end with a reboot: no file, no command line, no service
    #[arg(long)]
    only_run_time: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Keep lowlat's own files here
    #[arg(long, value_name = "DIR", hide = true)]
    state_dir: Option<PathBuf>,
    /// Reapply the run-time part of the plan in force; lowlat.service runs this
    #[arg(long, hide = true)]
    at_boot: bool,
}

pub fn run(arguments: &TuneApplyArgs) -> anyhow::Result<Exit> {
    let site = ask::open(&arguments.host.root, arguments.state_dir.as_ref())?;
    if arguments.at_boot {
        return again(&site);
    }
    check_ids(&arguments.accept_risk)?;
    let mut host = arguments.host.judge.read_with(Root::open(&arguments.host.root)?, Some(&site.state))?;
    host.role.accepted_risks.extend(arguments.accept_risk.iter().cloned());
    host.role.isolate_by = arguments.isolate_by.unwrap_or(host.role.isolate_by);
    let (wanted, from) = match &arguments.plan {
        Some(path) => (plan_file::read_trusted(path)?, PlanFrom::File),
        None => (Plan::of(&host.context(), env!("CARGO_PKG_VERSION")), PlanFrom::Host),
    };
    let options = options(arguments);
    host.print_role_notes();
    let offer = offer(arguments, &site)?;
    carry_out(&site, &host.snapshot, (wanted, from), options, (arguments.yes, arguments.json), offer)
}

/// Role file to install with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RoleOffer {
    None,
    /// Install this text if the user agrees.
    Ask(String),
    Install(String),
}

/// Returns whether the role is to be installed.
fn offer(arguments: &TuneApplyArgs, site: &Site) -> anyhow::Result<RoleOffer> {
    let Some(path) = &arguments.host.judge.role else { return Ok(RoleOffer::None) };
    let text = role::text(path)?;
    let is_installed = site.root.read_bytes(ROLE_FILE).known().is_some_and(|found| found == text.as_bytes());
    Ok(match arguments.install_role {
        true => RoleOffer::Install(text),
        false if is_installed || arguments.yes || arguments.only_run_time => RoleOffer::None,
        false => RoleOffer::Ask(text),
    })
}

/// What to do with a plan that another command has just made for this host.
#[derive(Debug, Args)]
pub struct CarryOutArgs {
    /// Show the changes; write nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print the plan or the result as JSON
    #[arg(long)]
    json: bool,
    /// Keep lowlat's own files here
    #[arg(long, value_name = "DIR", hide = true)]
    state_dir: Option<PathBuf>,
}

impl CarryOutArgs {
    /// Prints the plan if it is only to be shown. Otherwise asks, applies it to the host at `root`, and prints the outcome.
    pub fn run(
        &self,
        root: &Path,
        host: &HostSnapshot,
        plan: Plan,
        options: ApplyOptions,
    ) -> anyhow::Result<Exit> {
        if self.dry_run {
            output::print_as(self.json, &plan, |width| lowlat_tune_report::plan_text(&plan, width))?;
            return Ok(plan.claim().into());
        }
        let site = ask::open(root, self.state_dir.as_ref())?;
        carry_out(&site, host, (plan, PlanFrom::Host), options, (self.yes, self.json), RoleOffer::None)
    }
}

/// Asks, applies a plan, and prints the outcome.
fn carry_out(
    site: &Site,
    host: &HostSnapshot,
    (wanted, from): (Plan, PlanFrom),
    options: ApplyOptions,
    (is_answered, json): (bool, bool),
    role: RoleOffer,
) -> anyhow::Result<Exit> {
    let mut ready = Ready::new(site, host, wanted, from, options)?;
    if ready.plan.changes.is_empty() {
        output::print_as(json, &ApplyOutcome::of_nothing(&ready.plan), |width| {
            lowlat_tune_report::plan_text(&ready.plan, width)
        })?;
        if matches!(role, RoleOffer::Install(_)) {
            output::talk(&format!(
                "The role was not installed, because there is no plan to apply\nhint: copy it to {ROLE_FILE}"
            ));
        }
        return Ok(ready.plan.claim().into());
    }
    if !json {
        show(&ready)?;
    }
    if !ask::ask(&question(&ready), is_answered)? {
        output::talk("Nothing was changed.");
        return Ok(Exit::Findings);
    }
    ready.role_file = match role {
        RoleOffer::Ask(text) => {
            ask::ask(&format!("Also install the role as {ROLE_FILE}?"), false)?.then_some(text)
        }
        RoleOffer::Install(text) => Some(text),
        RoleOffer::None => None,
    };
    // The first Ctrl-C lets the apply finish: half a plan is worse than all or none.
    let _stop = signals::stop_flag()?;
    let progress = Progress::new();
    let outcome = ready.carry_out(site, host, &mut |what| progress.say(what))?;
    progress.finish();
    output::print_as(json, &outcome, |width| lowlat_tune_report::apply_text(&ready.plan, &outcome, width))?;
    Ok(if outcome.count(Fate::Refused) == 0 { Exit::Clean } else { Exit::Findings })
}

fn options(arguments: &TuneApplyArgs) -> ApplyOptions {
    let is_repairing = arguments.watch_repair;
    ApplyOptions {
        persist: !arguments.no_persist,
        watch: arguments.watch.map(|interval| Watch { interval, is_repairing }),
        confirm_within: arguments.confirm_within,
        only_run_time: arguments.only_run_time,
    }
}

fn show(ready: &Ready) -> anyhow::Result<()> {
    let width = output::width();
    let text = if ready.is_in_force() {
        format!("Plan {} is already in force. Settings that drifted are set again.\n", ready.plan.id())
    } else {
        lowlat_tune_report::plan_text(&ready.plan, width)
    };
    let not_here = lowlat_tune_report::not_here_text(&ready.plan, &ready.left, &ready.notes, width);
    output::print(&(text + &not_here))
}

fn question(ready: &Ready) -> String {
    let count = ready.plan.changes.len() - ready.left.len().min(ready.plan.changes.len());
    if ready.is_resumed {
        format!("An earlier apply was interrupted. Resume it ({count} changes)?")
    } else {
        format!("Apply {count} changes to this host?")
    }
}

/// Runs for lowlat.service; its output goes to the journal.
fn again(site: &Site) -> anyhow::Result<Exit> {
    let again = flow::apply_again(site)?;
    let Some(plan) = &again.plan_id else {
        output::print("No plan is in force.")?;
        return Ok(Exit::Clean);
    };
    for refused in &again.refused {
        output::talk(&format!("refused: {refused}"));
    }
    output::print(&format!("Plan {plan}: {} reapplied, {} refused.", again.done.len(), again.refused.len()))?;
    Ok(Exit::Clean)
}
