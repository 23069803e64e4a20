//! `lowlat onload`: the vendor's programs for Solarflare cards, in order, with a log and what undoes each step.

mod demos;
mod firmware;
mod install;
mod register;
mod status;
mod uninstall;

use super::{Subcommand, help, tune::ask};
use crate::{exit::Exit, output};
use anyhow::{Context as _, bail};
use clap::{ArgMatches, Args, FromArgMatches, Subcommand as _};
use lowlat_host::{HostSnapshot, snapshot::Nic};
use lowlat_host_run::{
    Root,
    programs::{self, Program},
};
use lowlat_net::onload::{
    InstallSurroundings, Procedure, USER, boot_program, check_session, firmware_variant, is_x4,
    running_variant,
};
use lowlat_net_report::{command_line, procedure_text};
use std::{io::Write as _, path::PathBuf};

pub const COMMAND: Subcommand = Subcommand { name: "onload", declare: Action::augment_subcommands, run };

/// Install, update and remove Onload for Solarflare cards; build its demonstrations
#[derive(Debug, clap::Subcommand)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = help("lowlat downloads nothing: it runs the programs of an archive that you have, in order, with a log.", &[
    ("lowlat onload status", "Show cards, firmware variants and installed programs."),
    ("lowlat onload install onload-9.2.1.tgz --dry-run", "Show what an installation would run."),
    ("sudo lowlat onload firmware enp1s0f1", "Choose the ultra-low-latency firmware variant."),
    ("sudo lowlat onload uninstall", "Remove Onload and its driver."),
]))]
enum Action {
    Status(status::OnloadStatusArgs),
    Install(install::OnloadInstallArgs),
    Firmware(firmware::OnloadFirmwareArgs),
    Register(register::OnloadRegisterArgs),
    Uninstall(uninstall::OnloadUninstallArgs),
    Demos(demos::OnloadDemosArgs),
}

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

/// What may cut the user off.
#[derive(Debug, Args)]
struct SessionGuard {
    /// Go on even if your ssh session runs over the card
    #[arg(long)]
    force: bool,
}

impl SessionGuard {
    /// Refuses what ends the links of the cards, if the user's session runs over one.
    fn check(&self, doing: &'static str, host: &HostSnapshot) -> anyhow::Result<()> {
        Ok(check_session(doing, host, &ssh_connection(&Root::live()), self.force)?)
    }
}

/// Returns SSH_CONNECTION of this process or of the nearest of its ancestors: sudo and su remove it.
fn ssh_connection(root: &Root) -> String {
    const NAME: &str = "SSH_CONNECTION=";
    if let Ok(own) = std::env::var(NAME.trim_end_matches('=')) {
        return own;
    }
    let mut pid = std::process::id();
    while pid > 1 {
        let environment = root.read_bytes(&format!("/proc/{pid}/environ")).into_known().unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        if let Some(value) = variables.find_map(|variable| variable.strip_prefix(NAME.as_bytes())) {
            return String::from_utf8_lossy(value).into_owned();
        }
        let status = root.read(&format!("/proc/{pid}/status")).into_known().unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        pid = parent.unwrap_or(0);
    }
    String::new()
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::Status(arguments) => status::run(&arguments),
        Action::Install(arguments) => install::run(&arguments),
        Action::Firmware(arguments) => firmware::run(&arguments),
        Action::Register(arguments) => register::run(&arguments),
        Action::Uninstall(arguments) => uninstall::run(&arguments),
        Action::Demos(arguments) => demos::run(&arguments),
    }
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
        if !status.success() && !step.may_fail {
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

/// Returns what the vendor's programs may add to. No folder is known where `find` fails.
fn surroundings() -> InstallSurroundings {
    let find = ["find", "/etc", "/usr", "/lib/modules", "-ignore_readdir_race", "-type", "d"];
    let folders = said(&find).unwrap_or_default().lines().map(str::to_owned).collect();
    InstallSurroundings { folders, has_user: has_user() }
}

fn has_user() -> bool {
    said(&["getent", "passwd", USER]).is_some()
}

/// Returns the output of a program; `None` if it cannot be run or fails.
fn said(words: &[&str]) -> Option<String> {
    let command: Vec<String> = words.iter().copied().map(str::to_owned).collect();
    Program { command: &command, folder: "", environment: &[] }.output()
}

/// Returns the firmware variant of a card: the one that it runs, or else the one that its program reports.
fn variant(nic: &Nic, is_live: bool) -> Option<&'static str> {
    running_variant(nic.firmware.text()).or_else(|| {
        // The program would answer for a card of this host.
        let ask = || said(&[boot_program(is_x4(nic)), &format!("--adapter={}", nic.name)]);
        firmware_variant(&is_live.then(ask)??)
    })
}

/// Returns the environment variable PATH; empty if it is unset.
fn path() -> String {
    std::env::var("PATH").unwrap_or_default()
}
