//! Applies the run-time part of the plan in force again: at each boot, and whenever TuneD starts.

use super::stage::{ApplyStage, ROUNDS_MAX as IDS_MAX, again_id, is_run_time, plan_of};
use super::{FlowError, Site, log_check, status::is_of_other_host};
use crate::steps::{self, Preparation, Prepared};
use lowlat_host::{Reading, cmdline::CommandLine};
use lowlat_plan::{
    Plan,
    outcome::{RebootStatus, reboot_status},
    verify::Refusal,
};
use lowlat_settings::change::Target;
use lowlat_undo::{ApplyReport, OnFailure, UndoError, UndoLog, UndoStep};

/// Maximum number of rounds. Each checks whether another tool has written since: mostly TuneD, which
/// continues after its start.
const ROUNDS_MAX: usize = 5;

/// The result of applying again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Again {
    /// The plan in force, if any.
    pub plan_id: Option<String>,
    /// Applied steps of all rounds.
    pub done: Vec<String>,
    /// Steps rejected in the last round, with the reason.
    pub refused: Vec<String>,
    pub rounds: usize,
}

/// Applies the run-time part of the plan in force again, until a round changes nothing. Steps that fail are
/// skipped: a partly tuned host is better than an untuned one.
pub fn apply_again(site: &Site) -> Result<Again, FlowError> {
    if site.state.in_force()?.is_none() {
        return Ok(Again::default());
    }
    // Read again under the log's lock: a rollback may have held it.
    let mut log = site.open_log()?;
    let Some((in_force, plan)) = site.state.in_force()? else { return Ok(Again::default()) };
    if !in_force.is_complete {
        return Err(FlowError::partly_applied(&in_force.plan_id));
    }
    if is_of_other_host(site, &plan) {
        return Err(FlowError::obstacle(format!(
            "plan {} was made for another host, whose copy this one is: keep it with `lowlat tune adopt`, or take it back \
             with `lowlat tune rollback`",
            in_force.plan_id
        )));
    }
    let mut again = Again { plan_id: Some(in_force.plan_id.clone()), ..Again::default() };
    log_check::refuse(site, &log)?;
    let done = rounds(site, &mut log, &in_force.plan_id, &plan, &mut again);
    // Steps recorded before an error count too.
    let sealed = site.seal(&log);
    done?;
    sealed?;
    Ok(again)
}

fn rounds(
    site: &Site,
    log: &mut UndoLog,
    plan_id: &str,
    plan: &Plan,
    again: &mut Again,
) -> Result<(), FlowError> {
    log.expire()?;
    // The plan is complete, but a proof over reboots may have been cut while it wrote the command line.
    log.close_where(|id, _| is_run_time(id) || plan_of(id) == plan_id)?;
    let mut refusals = Vec::new();
    while again.rounds < ROUNDS_MAX {
        if again.rounds > 0 {
            std::thread::sleep(site.pause);
        }
        again.rounds += 1;
        again.refused.clear();
        refusals.clear();
        let mut is_quiet = true;
        for stage in [ApplyStage::Queues, ApplyStage::Run] {
            let Round { report, left, refused } = round(site, log, plan_id, plan, stage)?;
            is_quiet &= report.done.is_empty();
            again.done.extend(report.done);
            again.refused.extend(left.iter().map(|left| left.reason.clone()));
            again.refused.extend(report.failed.into_iter().map(|(step, why)| format!("{step}: {why}")));
            for refusal in left.into_iter().chain(refused) {
                if !refusals.contains(&refusal) {
                    refusals.push(refusal);
                }
            }
        }
        again.refused.sort();
        again.refused.dedup();
        if is_quiet {
            break;
        }
    }
    Ok(site.state.put_refused(site.boot_id().text(), refusals)?)
}

/// The result of one round of a stage.
struct Round {
    report: ApplyReport,
    /// Changes that could not be prepared.
    left: Vec<Refusal>,
    refused: Vec<Refusal>,
}

fn round(
    site: &Site,
    log: &mut UndoLog,
    plan_id: &str,
    plan: &Plan,
    stage: ApplyStage,
) -> Result<Round, FlowError> {
    let host = site.snapshot();
    let left = super::check::left(site, |kind| log.knows(kind), plan, &host);
    let is_left = |at: usize| left.iter().any(|(other, _)| *other == at);
    let changes = plan.changes.iter().enumerate().filter(|(at, _)| !is_left(*at));
    let possible = Plan { changes: changes.map(|(_, change)| change.clone()).collect(), ..plan.clone() };
    let of = if stage == ApplyStage::Queues { steps::Part::Queues } else { steps::Part::RunTime };
    let preparation: Preparation = (site.prepare)(&possible, &host, log, of)?;
    let steps: Vec<UndoStep> = preparation.steps.iter().map(|prepared| prepared.step.clone()).collect();
    let left = left.into_iter().filter_map(|(at, reason)| refusal(plan, at, reason));
    let unprepared =
        preparation.left.into_iter().filter_map(|left| refusal(&possible, left.change, left.reason));
    let left: Vec<Refusal> = left.chain(unprepared).collect();
    let report = apply_in_this_boot(site, log, plan_id, stage, &steps)?;
    let refused = refusals(&possible, &preparation.steps, &report);
    Ok(Round { report, left, refused })
}

/// Applies steps of a run-time stage under an ID of this boot.
pub(super) fn apply_in_this_boot(
    site: &Site,
    log: &mut UndoLog,
    plan_id: &str,
    stage: ApplyStage,
    steps: &[UndoStep],
) -> Result<ApplyReport, UndoError> {
    let boot = site.boot_id().text().to_owned();
    let mut id = 0;
    loop {
        match log.apply(&again_id(plan_id, stage, &boot, id), steps, OnFailure::Continue) {
            // For example, a reloaded driver's interrupts have other numbers.
            Err(UndoError::PlanDiffers { .. }) if id < IDS_MAX => id += 1,
            applied => return applied,
        }
    }
}

/// The changes of the steps that failed.
fn refusals(plan: &Plan, steps: &[Prepared], report: &ApplyReport) -> Vec<Refusal> {
    let failed = report.failed.iter().flat_map(|(step, why)| {
        let of_step = steps.iter().filter(move |prepared| prepared.step.id == *step);
        of_step.flat_map(Prepared::changes).map(move |change| (change, why))
    });
    failed.filter_map(|(change, why)| refusal(plan, change, why.clone())).collect()
}

/// A change of a plan that was refused.
pub(super) fn refusal(plan: &Plan, change: usize, reason: String) -> Option<Refusal> {
    plan.changes.get(change).map(|change| Refusal { target: change.target.clone(), reason })
}

/// True if a reboot is needed to complete the plan. In a directory tree, where no kernel runs, a command line always
/// needs one.
pub(super) fn is_reboot_pending(site: &Site, plan: &Plan, refused: &[Refusal]) -> bool {
    matches!(reboot(site, plan, true, refused), RebootStatus::Pending | RebootStatus::Unknown)
}

/// Returns the state of the plan's command line.
pub(super) fn reboot(site: &Site, plan: &Plan, is_of_this_boot: bool, refused: &[Refusal]) -> RebootStatus {
    let line = site.root.read("/proc/cmdline");
    let status = reboot_status(plan, &CommandLine::parse(line.text()), is_of_this_boot);
    let is_of_line = |refusal: &Refusal| matches!(refusal.target, Target::CommandLine { .. });
    match status {
        RebootStatus::NotNeeded => status,
        RebootStatus::Done if line.is_known() => status,
        _ if refused.iter().any(is_of_line) => {
            // It may have been set manually since.
            if comes_next(site, plan) { RebootStatus::Pending } else { RebootStatus::Refused }
        }
        _ if line.is_known() => status,
        _ => RebootStatus::Unknown,
    }
}

/// True if the entry that boots next is known to have the parameters of a plan.
pub(super) fn comes_next(site: &Site, plan: &Plan) -> bool {
    let next = (site.detect)(&site.root).map(|loader| loader.next_boot_line(&site.root));
    let Ok(Reading::Known(next)) = next else { return false };
    reboot_status(plan, &CommandLine::parse(&next), true) == RebootStatus::Done
}
