//! `lowlat tune`: one file per subcommand.

mod apply;
mod ask;
mod confirm;
mod export;
mod plan;
mod plan_file;
mod rollback;
mod status;
mod verify;

use super::Subcommand;
use crate::output::Exit;
use anyhow::bail;
use clap::{ArgMatches, Command};
use lowlat_catalogue::CATALOGUE;

pub const COMMAND: Subcommand = Subcommand { name: "tune", declare, run };

/// Every subcommand of `lowlat tune` in the order of the help.
const COMMANDS: &[Subcommand] = &[
    plan::COMMAND,
    apply::COMMAND,
    verify::COMMAND,
    status::COMMAND,
    confirm::COMMAND,
    rollback::COMMAND,
    export::COMMAND,
];

/// Refuses the id of no setting, with the nearest one.
fn check_id(id: &str) -> anyhow::Result<()> {
    if CATALOGUE.find(id).is_some() {
        return Ok(());
    }
    match CATALOGUE.nearest(id) {
        Some(near) => bail!("--accept-risk: no setting has the id \"{id}\"; did you mean \"{near}\"?"),
        None => bail!("--accept-risk: no setting has the id \"{id}\"; `lowlat audit --list` shows every id"),
    }
}

fn declare(command: Command) -> Command {
    super::group(command, COMMANDS)
        .about("Plan what a profile changes on this host, apply it, verify it, take it back exactly")
        .after_help(super::examples(&[
            ("lowlat tune plan", "every change as one diff; nothing is written"),
            ("sudo lowlat tune apply --confirm-within 10m", "applies it, with a dead-man switch"),
            ("sudo lowlat tune verify", "the plan in force, held against what the kernel says"),
            ("sudo lowlat tune rollback", "everything as it was before"),
        ]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    super::run_member("tune", COMMANDS, matches)
}
