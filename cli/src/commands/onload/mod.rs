//! `lowlat onload`: the vendor's programs for Solarflare cards, in order, with a log and what undoes each step.

mod demos;
mod firmware;
mod install;
mod status;
mod uninstall;

use super::{Subcommand, examples, group, run_member, tune::ask};
use crate::output::{self, Exit};
use anyhow::{Context as _, bail};
use clap::{ArgMatches, Args, Command};
use lowlat_host_run::programs::{self, Program};
use lowlat_net::onload::{Procedure, firmware_variant};
use lowlat_net_report::{command_line, procedure_text};
use std::{io::Write as _, path::PathBuf};

pub const COMMAND: Subcommand = Subcommand { name: "onload", declare, run };

/// The subcommands, in help order. A new one adds its file and its line here.
const MEMBERS: &[Subcommand] =
    &[status::COMMAND, install::COMMAND, firmware::COMMAND, uninstall::COMMAND, demos::COMMAND];

/// Lines of a failed program's output that are shown.
const LINES_SHOWN: usize = 12;

/// How to run a procedure.
#[derive(Debug, Args)]
struct Running {
    /// Print the steps; run nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Append the output of the programs, and what undoes each step, to this file
    #[arg(long, value_name = "FILE", default_value = "/var/log/lowlat/onload.log")]
    log: PathBuf,
}

fn declare(command: Command) -> Command {
    group(command, MEMBERS)
        .about("Install, update and remove Onload for Solarflare cards; build its demonstrations")
        .after_help(format!(
            "lowlat downloads nothing: it runs the programs of an archive that you have, in order, with a log.\n\n{}",
            examples(&[
                ("lowlat onload status", "Show cards, firmware variants and installed programs."),
                ("lowlat onload install onload-9.2.1.tgz --dry-run", "Show what an installation would run."),
                ("sudo lowlat onload firmware enp1s0f1", "Choose the ultra-low-latency firmware variant."),
                ("sudo lowlat onload uninstall", "Remove Onload and its driver."),
            ])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    run_member("onload", MEMBERS, matches)
}

/// Shows a procedure, asks, and runs its steps until one fails.
fn perform(procedure: &Procedure, running: &Running) -> anyhow::Result<Exit> {
    output::print(&procedure_text(procedure, output::width()))?;
    if running.dry_run {
        return Ok(Exit::Clean);
    }
    if !ask::ask("\nRun these steps?", running.yes)? {
        output::talk("Nothing was run.");
        return Ok(Exit::Findings);
    }
    let mut log = programs::open_log(&running.log).with_context(|| {
        format!("cannot write {}\nhint: name another file with --log", running.log.display())
    })?;
    let count = procedure.steps.len();
    for (number, step) in (1..).zip(&procedure.steps) {
        output::talk(&format!("{number}/{count}: {}", step.what));
        writeln!(log, "\n== {} {}\n$ {}", jiff::Timestamp::now(), step.what, command_line(step))?;
        let program =
            Program { command: &step.command, folder: &step.folder, environment: &step.environment };
        let status =
            program.run_into(&log).with_context(|| format!("cannot start {}", step.command.join(" ")))?;
        writeln!(
            log,
            "== {status}; undo: {}",
            if step.undo.is_empty() { "nothing to do" } else { &step.undo }
        )?;
        if !status.success() {
            let lines = programs::last_lines(&mut log, LINES_SHOWN + 1).unwrap_or_default();
            let shown = lines.iter().take(lines.len().saturating_sub(1)).map(|line| format!("  {line}\n"));
            bail!(
                "cannot {}: {} ended with {status}\n{}hint: {} has its whole output",
                step.what,
                step.command.first().map_or("", String::as_str),
                shown.collect::<String>(),
                running.log.display()
            );
        }
    }
    let reboot = if procedure.needs_reboot { " Reboot to complete it." } else { "" };
    output::talk(&format!("Done.{reboot} The log is {}.", running.log.display()));
    Ok(Exit::Clean)
}

/// Returns the firmware variant of an interface that sfboot reports.
fn variant(interface: &str) -> Option<String> {
    let command = ["sfboot".to_owned(), format!("--adapter={interface}")];
    firmware_variant(&Program { command: &command, folder: "", environment: &[] }.output()?)
}

/// Returns the environment variable PATH; empty if it is unset.
fn path() -> String {
    std::env::var("PATH").unwrap_or_default()
}
