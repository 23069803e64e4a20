//! `lowlat tune`: one file per subcommand.

mod adopt;
mod apply;
pub mod ask;
mod confirm;
mod export;
mod plan;
mod plan_file;
mod profiles;
mod rollback;
mod status;
pub mod verify;

pub use apply::carry_out_here;
pub use ask::open;

use super::Subcommand;
use crate::output::Exit;
use anyhow::bail;
use clap::{ArgMatches, Command};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::IsolateBy;

pub const COMMAND: Subcommand = Subcommand { name: "tune", declare, run };

/// Every subcommand of `lowlat tune`, in help order.
const COMMANDS: &[Subcommand] = &[
    plan::COMMAND,
    apply::COMMAND,
    verify::COMMAND,
    status::COMMAND,
    confirm::COMMAND,
    rollback::COMMAND,
    adopt::COMMAND,
    export::COMMAND,
];

/// Refuses an unknown setting id and suggests the nearest one.
pub fn check_id(id: &str) -> anyhow::Result<()> {
    if CATALOGUE.find(id).is_some() {
        return Ok(());
    }
    match CATALOGUE.nearest(id) {
        Some(near) => bail!("--accept-risk: no setting has the id \"{id}\"; did you mean \"{near}\"?"),
        None => {
            bail!("--accept-risk: no setting has the id \"{id}\"\nhint: `lowlat audit --list` shows every id")
        }
    }
}

/// Parses the value of `--isolate-by`.
fn isolate_by(name: &str) -> Result<IsolateBy, String> {
    IsolateBy::from_name(name).ok_or_else(|| format!("expected {}", IsolateBy::NAMES.join(" or ")))
}

fn declare(command: Command) -> Command {
    super::group(command, COMMANDS)
        .about("Plan a profile's changes to this host, apply them, verify them, roll them back")
        .after_help(super::examples(&[
            ("lowlat tune plan", "Show every change as one diff; write nothing."),
            ("sudo lowlat tune apply --confirm-within 10m", "Apply the plan, with a dead-man switch."),
            ("sudo lowlat tune verify", "Compare the plan in force with the running kernel."),
            ("sudo lowlat tune rollback", "Restore the state before the first plan."),
        ]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    super::run_member("tune", COMMANDS, matches)
}
