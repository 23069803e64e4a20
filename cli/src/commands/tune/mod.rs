//! `lowlat tune`: one file per subcommand.

mod apply;
pub mod ask;
mod confirm;
mod export;
mod plan;
mod plan_file;
mod profiles;
mod prove;
mod rollback;
mod status;
pub mod verify;

pub use apply::CarryOutArgs;
pub use ask::open;

use super::{Subcommand, examples, help};
use crate::exit::Exit;
use anyhow::bail;
use clap::{ArgMatches, FromArgMatches, Subcommand as _};
use jiff::Timestamp;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::IsolateBy;

pub const COMMAND: Subcommand = Subcommand { name: "tune", declare: Action::augment_subcommands, run };

/// Plan a profile's changes to this host, apply them, verify them, roll them back
#[derive(Debug, clap::Subcommand)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = examples(&[
    ("lowlat tune plan", "Show every change as one diff; write nothing."),
    ("sudo lowlat tune apply --confirm-within 10m", "Apply the plan, with a dead-man switch."),
    ("sudo lowlat tune verify", "Compare the plan in force with the running kernel."),
    ("sudo lowlat tune rollback", "Restore the state before the first plan."),
]))]
enum Action {
    Plan(plan::TunePlanArgs),
    Apply(apply::TuneApplyArgs),
    Verify(verify::TuneVerifyArgs),
    Prove(Box<prove::TuneProveArgs>),
    Status(status::TuneStatusArgs),
    /// Keep the plan in force: disarm the switch of `lowlat tune apply --confirm-within`
    #[command(after_help = help(
        "If the plan needs a reboot, confirming before it disarms the switch only until the reboot.\n\n\
        Exit codes: 0 the plan stays, 1 no plan is in force, 2 error.",
        &[("sudo lowlat tune confirm", "Keep the plan, after the reboot and a check that the host works.")],
    ))]
    Confirm(ask::AnswerArgs),
    Rollback(rollback::TuneRollbackArgs),
    /// Keep the plan in force on a copy of the host that it was made for
    #[command(after_help = help(
        "A host with another machine ID is a copy (a cloned image), and the plan is not applied at its boots. It \
        may not fit: CPUs and interfaces may differ. Run `lowlat tune plan` first.\n\n\
        Exit codes: 0 the plan is this host's, 1 no plan is in force, 2 error.",
        &[("sudo lowlat tune adopt", "Keep the plan that came with the image.")],
    ))]
    Adopt(ask::AnswerArgs),
    Export(export::TuneExportArgs),
}

/// Refuses the first unknown id of a setting and suggests the nearest one.
pub fn check_ids(ids: &[String]) -> anyhow::Result<()> {
    let Some(id) = ids.iter().find(|id| CATALOGUE.find(id).is_none()) else { return Ok(()) };
    match CATALOGUE.nearest(id) {
        Some(near) => bail!("--accept-risk: no setting has the id \"{id}\"; did you mean \"{near}\"?"),
        None => {
            bail!("--accept-risk: no setting has the id \"{id}\"\nhint: `lowlat audit --list` shows every id")
        }
    }
}

/// Formats the time of an apply, such as "2026-11-21 18:02:11 UTC"; empty if it is not known.
fn in_utc(applied_unix_ms: Option<u64>) -> String {
    let ms = applied_unix_ms.and_then(|ms| i64::try_from(ms).ok());
    let at = ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Parses the value of `--isolate-by`.
fn isolate_by(name: &str) -> Result<IsolateBy, String> {
    IsolateBy::from_name(name).ok_or_else(|| format!("expected {}", IsolateBy::NAMES.join(" or ")))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::Plan(arguments) => plan::run(&arguments),
        Action::Apply(arguments) => apply::run(&arguments),
        Action::Verify(arguments) => verify::run(&arguments),
        Action::Prove(arguments) => prove::run(&arguments),
        Action::Status(arguments) => status::run(&arguments),
        Action::Confirm(arguments) => confirm::confirm(&arguments),
        Action::Rollback(arguments) => rollback::run(&arguments),
        Action::Adopt(arguments) => confirm::adopt(&arguments),
        Action::Export(arguments) => export::run(&arguments),
    }
}
