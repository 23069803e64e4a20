//! `lowlat` without arguments: the state of this host, and the next command.

use crate::{
    commands::tune::{open, verify},
    exit::Exit,
    output,
};
use anyhow::Context as _;
use lowlat_host::Reading;
use lowlat_host_run::Root;
use lowlat_plan::outcome::{Confirmation, RebootStatus};
use lowlat_results::ResultDocument;
use lowlat_tune_report::{Assessed, PlanState, Standing, standing_text};
use lowlat_tune_run::flow;
use std::path::Path;

/// Prints the state of the running host.
pub fn run() -> anyhow::Result<Exit> {
    let root = Root::open(Path::new("/"))?;
    let standing = Standing { in_force: in_force(&root)?, assessed: assessed()? };
    output::print(&standing_text(&standing, output::width()))?;
    Ok(Exit::Clean)
}

/// Returns the state of the plan in force.
fn in_force(root: &Root) -> anyhow::Result<Reading<PlanState>> {
    let status = flow::status(&open(Path::new("/"), None)?)?;
    let plan = match status.in_force {
        Reading::Known(plan) => plan,
        other => return Ok(other.map(|_| PlanState::Held)),
    };
    let state = if !plan.is_complete || status.damage.is_some() {
        PlanState::Incomplete
    } else if plan.is_of_other_host {
        PlanState::OfOtherHost
    } else if matches!(plan.confirmation, Confirmation::Waiting { .. }) {
        PlanState::Unconfirmed
    } else if status.reboot == RebootStatus::Pending {
        PlanState::WaitsForReboot
    } else if status.reboot == RebootStatus::Refused {
        PlanState::Refused
    } else {
        match verify::in_force(root)?.map(|verification| verification.counts.not_held()) {
            None | Some(0) => PlanState::Held,
            Some(drifted) => PlanState::Drifted(drifted),
        }
    };
    Ok(Reading::Known(state))
}

/// Returns the latest document of `lowlat assess` in this directory.
fn assessed() -> anyhow::Result<Option<Assessed>> {
    let mut latest: Option<Assessed> = None;
    for entry in std::fs::read_dir(".").context("cannot read this directory")? {
        let Ok(entry) = entry else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_json = entry.path().extension().is_some_and(|ending| ending == "json");
        if !name.starts_with("lowlat-result") || !is_json {
            continue;
        }
        // A file that is not a document, or not this user's to read, is no assessment.
        let Ok(bytes) = crate::documents::bytes_of(&entry.path()) else { continue };
        let Ok(document) = serde_json::from_slice::<ResultDocument>(&bytes) else { continue };
        if latest.as_ref().is_none_or(|latest| latest.started_at < document.started_at) {
            latest = Some(Assessed {
                file: name,
                started_at: document.started_at,
                score_percent: document.audit.score.percent,
            });
        }
    }
    Ok(latest)
}
