//! Rolls plans back.

use super::apply::{file_steps, put_back};
use super::error::list;
use super::log_check::{Doubt, add_stray_units, doubt, not_restored, remaining};
use super::preview::three_ways;
use super::preview::{Excuse, excuse, look, unrecorded};
use super::stage::{ApplyStage, is_run_time, plan_of};
use super::{FlowError, Site, at_boot, persist};
use crate::{InForce, units};
use lowlat_plan::outcome::{NotRestored, Restored, RollbackOutcome};
use lowlat_undo::{Conflict, Entry, Left, OnFailure, RollbackReport, UndoLog};
use std::collections::BTreeSet;

/// Changes that a rollback includes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RollbackScope {
    /// All changes in the log.
    #[default]
    All,
    /// All plans after this one, which is then in force again.
    To(String),
    /// Values in the running kernel. Files, services and the command line stay, and the next boot applies
    /// the run-time part again.
    RunTime,
}

/// The request for a rollback.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RollbackRequest {
    pub scope: RollbackScope,
    /// Nothing is changed.
    pub is_preview: bool,
    /// Paths to restore even if another tool has changed them.
    pub forced: Vec<String>,
    /// Restores what an incomplete or damaged log still contains, and gives up the rest, so that plans can be applied
    /// again.
    pub accept_damage: bool,
}

/// The undo log's plan for boot files that are generated again.
const AGAIN: &str = "generated-again";

/// A step's plan in the log and its ID.
pub(super) type StepKey = (String, String);

pub(super) fn key(entry: &Entry) -> StepKey {
    (entry.plan.clone(), entry.step.clone())
}

fn left_key(left: &Left) -> StepKey {
    match left {
        Left::Conflict(conflict) => (conflict.plan.clone(), conflict.step.clone()),
        Left::Failed { plan, step, .. } => (plan.clone(), step.clone()),
    }
}

/// Rolls plans back, the last change first. It needs the undo log only. A preview changes nothing.
/// If the log does not match the record of the plan in force, nothing is changed: the outcome shows what can
/// be restored and what cannot. [`RollbackRequest::accept_damage`] restores the former and gives up the
/// latter.
///
/// # Errors
/// Another process is using the log, a name is unknown, or the system reported an error.
pub fn rollback(site: &Site, request: &RollbackRequest) -> Result<RollbackOutcome, FlowError> {
    if request.is_preview {
        return look(site, site.look_at_log()?.as_ref(), request);
    }
    let log = site.open_log()?;
    match doubt(&site.state, log.inspection())? {
        // Without the missing records, only a complete rollback is possible.
        Some(_) if !request.accept_damage || request.scope != RollbackScope::All => {
            look(site, Some(&log), request)
        }
        doubt => {
            let mut outcome = rollback_with(site, log, request, doubt.as_ref())?;
            if request.scope == RollbackScope::All && outcome.is_complete() && outcome.in_force.is_none() {
                match site.state.discard() {
                    Ok(kept) => outcome.directories_left.extend(kept),
                    Err(error) => outcome.failures.push(NotRestored {
                        name: site.state.path().display().to_string(),
                        reason: error.to_string(),
                    }),
                }
            }
            Ok(outcome)
        }
    }
}

/// The rollback with an open log, because the caller may have chosen the scope under its lock. With a
/// `doubt` the plan stays partly in force, unless the damage is accepted.
fn rollback_with(
    site: &Site,
    mut log: UndoLog,
    request: &RollbackRequest,
    doubt: Option<&Doubt>,
) -> Result<RollbackOutcome, FlowError> {
    let chosen = chosen(site, &log, &request.scope)?;
    let unknown = log.take_for_ours(|entry| chosen.contains(&key(entry)), &request.forced)?;
    if !unknown.is_empty() {
        let line = |name: &String| format!("--force-path {name}: no change in force affects that path");
        return Err(FlowError::obstacles(&unknown.iter().map(line).collect::<Vec<_>>()));
    }
    let before: Vec<Entry> = log.history().entries.clone();
    let taken_back = site.state.in_force().ok().flatten().filter(|_| request.scope == RollbackScope::All);
    let mut notes = Vec::new();
    let of_chosen = before.iter().filter(|entry| chosen.contains(&key(entry)));
    let untold = persist::expect_telling(site, of_chosen.map(|entry| entry.target.name.as_str()), &mut notes);
    let boot = log.boot().to_owned();
    // Changes of an earlier boot that stay are in effect, and need no reboot.
    let is_in_effect =
        |entry: &Entry| chosen.contains(&key(entry)) && is_of_boot(&entry.plan) && entry.boot != boot;
    if before.iter().any(is_in_effect)
        && let Err(error) = site.state.put_taken_back_in(&boot)
    {
        notes.push(error.to_string());
    }
    // The dead-man switch comes last: after a crash it completes the rollback.
    let is_confirm = |entry: &Entry| ApplyStage::Confirm.is_of(&entry.plan);
    let is_wanted = |entry: &Entry| chosen.contains(&key(entry)) && !is_confirm(entry);
    let report = match request.scope {
        RollbackScope::RunTime => log.rollback_until_boot(is_wanted),
        RollbackScope::All | RollbackScope::To(_) => log.rollback_where(is_wanted),
    };
    let mut outcome = empty();
    add(&mut outcome, &report, &before, &log, is_wanted);
    outcome.notes.extend(notes);
    settle_conflicts(site, &mut log, &report, &mut outcome)?;
    if request.scope != RollbackScope::RunTime {
        let is_switch = |entry: &Entry| chosen.contains(&key(entry)) && is_confirm(entry);
        let mut is_restored = outcome.failures.is_empty() && (doubt.is_none() || request.accept_damage);
        // The next boot's configuration is not restored, so the switch stays to guard it.
        if before.iter().any(is_switch) {
            for conflict in outcome.conflicts.iter().filter(|conflict| is_of_boot(&conflict.plan)) {
                is_restored = false;
                outcome.notes.push(format!(
                    "{}: edited by another tool, and the next boot depends on it, so the dead-man switch stays; \
                     restore the old state with `lowlat tune rollback --force-path \"{0}\"`",
                    conflict.name
                ));
            }
        }
        outcome.in_force = update_in_force(site, &request.scope, is_restored)?;
        if is_restored {
            let of_confirm = log.rollback_where(is_switch);
            add(&mut outcome, &of_confirm, &before, &log, is_switch);
        }
    }
    let mut lost = site.state.lost()?;
    if request.accept_damage {
        log.accept_damage()?;
        lost.extend(unrecorded(doubt));
    }
    let kept = remaining(Some(&log), &lost);
    if kept != site.state.lost()? {
        site.state.put_lost(&kept)?;
    }
    let kept = kept.into_iter().chain(unrecorded(doubt).into_iter().filter(|_| !request.accept_damage));
    outcome.remaining = kept.map(|wrote| not_restored(&wrote)).collect();
    if request.scope == RollbackScope::All {
        add_stray_units(site, log.history(), &mut outcome);
    }
    outcome.damage = doubt.map(|doubt| doubt.reason.clone());
    if doubt.is_none() || request.accept_damage {
        site.seal(&log)?;
    }
    outcome.needs_reboot =
        outcome.restored.iter().any(|done| is_of_boot(&done.plan)) && before.iter().any(is_in_effect);
    drop(log);
    if let Some((_, plan)) = taken_back {
        let is_known = |path: &str| before.iter().any(|entry| entry.target.name == path);
        outcome.notes.extend(persist::notes_on_later_kernels(site, &plan, is_known));
    }
    tell_units(site, &mut outcome, &untold);
    if matches!(&request.scope, RollbackScope::To(id) if outcome.in_force.as_ref() == Some(id)) {
        let again = at_boot::apply_again(site)?;
        outcome.notes.extend(again.refused);
    }
    Ok(outcome)
}

/// Runs when the dead-man switch fires: rolls unconfirmed plans back, down to the last plan that was
/// confirmed or needed no confirmation. None if no plan waits, or the switch is disarmed until the reboot.
pub fn rollback_unconfirmed(site: &Site) -> Result<Option<RollbackOutcome>, FlowError> {
    // Read under the log's lock: its previous holder may have confirmed the plan or rolled it back.
    let mut log = site.open_log()?;
    let doubt = doubt(&site.state, log.inspection())?;
    let waiting = match site.state.in_force() {
        Ok(in_force) => in_force.map(|(now, _)| now).filter(|now| now.confirm_within_s.is_some()),
        // Unreadable, and the switch was armed: the log is enough for a rollback.
        Err(_) => return take_back(site, log, RollbackScope::All, doubt.as_ref()).map(Some),
    };
    let Some(now) = waiting else {
        // Confirmed or rolled back, and a crash left the switch: only that is removed.
        let is_confirm = |entry: &Entry| ApplyStage::Confirm.is_of(&entry.plan);
        let before = log.history().entries.clone();
        let mut outcome = empty();
        let of_switch = before.iter().filter(|entry| is_confirm(entry));
        let untold = persist::expect_telling(
            site,
            of_switch.map(|entry| entry.target.name.as_str()),
            &mut outcome.notes,
        );
        let report = log.rollback_where(is_confirm);
        add(&mut outcome, &report, &before, &log, is_confirm);
        if doubt.is_none() {
            site.seal(&log)?;
        }
        drop(log);
        tell_units(site, &mut outcome, &untold);
        return Ok(None);
    };
    let resting_in = site.state.resting_in().ok().flatten();
    if resting_in.is_some() && resting_in.as_ref() == site.boot_id().known() {
        // Confirmed until the reboot, after which the switch is armed again.
        return Ok(None);
    }
    // Earlier unconfirmed plans are rolled back too.
    let below = now.chain().find(|plan| plan.confirm_within_s.is_none());
    let scope = below.map_or(RollbackScope::All, |plan| RollbackScope::To(plan.plan_id.clone()));
    take_back(site, log, scope, doubt.as_ref()).map(Some)
}

/// Restores all that the log still contains, even if it is damaged, because the host may be unreachable.
fn take_back(
    site: &Site,
    log: UndoLog,
    scope: RollbackScope,
    doubt: Option<&Doubt>,
) -> Result<RollbackOutcome, FlowError> {
    rollback_with(site, log, &RollbackRequest { scope, ..RollbackRequest::default() }, doubt)
}

/// Restores the boot loader's configuration from before a plan, which stays in force otherwise.
pub(super) fn restore_boot(site: &Site, log: &mut UndoLog, plan_id: &str) -> Result<(), FlowError> {
    let report = log.rollback_where(|entry| plan_of(&entry.plan) == plan_id && is_of_boot(&entry.plan));
    let mut outcome = empty();
    settle_conflicts(site, log, &report, &mut outcome)?;
    let failed = report.left.iter().filter(|left| matches!(left, Left::Failed { .. }));
    let edited =
        outcome.conflicts.iter().map(|conflict| format!("{}: edited by another tool", conflict.name));
    let failures = outcome.failures.iter().map(|failure| format!("{}: {}", failure.name, failure.reason));
    let left: Vec<String> = failed.map(ToString::to_string).chain(edited).chain(failures).collect();
    if left.is_empty() {
        Ok(())
    } else {
        Err(FlowError::Refused(format!("cannot restore the command line:\n{}", list(&left))))
    }
}

pub(super) fn is_of_boot(log_id: &str) -> bool {
    ApplyStage::Boot.is_of(log_id) || ApplyStage::Loader.is_of(log_id)
}

/// The steps that a rollback includes.
pub(super) fn chosen(
    site: &Site,
    log: &UndoLog,
    scope: &RollbackScope,
) -> Result<BTreeSet<StepKey>, FlowError> {
    let entries = log.history().entries.iter();
    Ok(match scope {
        RollbackScope::All => entries.map(key).collect(),
        RollbackScope::To(id) => later_than(site, log, id)?,
        RollbackScope::RunTime => {
            entries.filter(|entry| is_run_time(&entry.plan) && log.goes_with_boot(entry)).map(key).collect()
        }
    })
}

/// The steps of the plans after a plan. The record of the plan in force gives their order, because the log
/// lists a plan that was rolled back and applied again at its first place. The log's order counts for plans
/// that are no longer in force but left changes.
fn later_than(site: &Site, log: &UndoLog, id: &str) -> Result<BTreeSet<StepKey>, FlowError> {
    let history = log.history();
    let in_force = site.state.in_force().ok().flatten().map(|(now, _)| now);
    let chain: Vec<&str> =
        in_force.iter().flat_map(InForce::chain).map(|plan| plan.plan_id.as_str()).collect();
    let place = chain.iter().position(|plan| *plan == id);
    let (above, below) = chain.split_at(place.unwrap_or(0));
    let first_of = |id: &str| history.plans.iter().position(|plan| plan_of(&plan.id) == id);
    let first = first_of(id);
    if place.is_none() && first.is_none() {
        return Err(FlowError::Refused(format!(
            "cannot find plan {id} in the undo log\nhint: `lowlat tune status` lists the known plans"
        )));
    }
    let start = history.entries.iter().position(|entry| plan_of(&entry.plan) == id);
    let is_later = |(at, entry): &(usize, &Entry)| {
        let plan = plan_of(&entry.plan);
        match place.map(|_| (above.contains(&plan), below.contains(&plan))) {
            Some((true, false)) => true,
            Some((false, true)) => false,
            // Applied twice, before this plan and after it.
            Some((true, true)) => start.is_some_and(|start| *at > start),
            _ => plan != id && first.is_some_and(|first| first_of(plan).is_some_and(|other| other > first)),
        }
    };
    Ok(history.entries.iter().enumerate().filter(is_later).map(|(_, entry)| key(entry)).collect())
}

pub(super) fn empty() -> RollbackOutcome {
    RollbackOutcome {
        document: RollbackOutcome::DOCUMENT.to_owned(),
        schema_version: RollbackOutcome::SCHEMA_VERSION,
        ..RollbackOutcome::default()
    }
}

fn add(
    outcome: &mut RollbackOutcome,
    report: &RollbackReport,
    before: &[Entry],
    log: &UndoLog,
    is_chosen: impl Fn(&Entry) -> bool,
) {
    let not_restored: BTreeSet<StepKey> = report.left.iter().map(left_key).collect();
    // The report names steps by ID only. Their plan is the one whose step has gone from the log or changed in it. If
    // a full disk prevented that record, all chosen steps with that ID count unless they failed.
    let is_over = |entry: &Entry| match report.not_recorded {
        None => log.history().entry(&entry.plan, &entry.step) != Some(entry),
        Some(_) => is_chosen(entry) && !not_restored.contains(&key(entry)),
    };
    let over = before.iter().rev().filter(|entry| is_over(entry));
    for entry in over.filter(|entry| report.restored.contains(&entry.step)) {
        let restored = Restored {
            plan: entry.plan.clone(),
            kind: entry.target.kind.clone(),
            name: entry.target.name.clone(),
        };
        if !outcome.restored.contains(&restored) {
            outcome.restored.push(restored);
        }
    }
    outcome.unchanged_count += report.unchanged.len();
    outcome.expired_count += report.expired.len();
    outcome.given_up.extend(report.different.iter().map(|Conflict { name, old, ours, present, .. }| {
        NotRestored {
            name: name.clone(),
            reason: format!(
                "{old} before the plan, {ours} by lowlat; something else has set {present} since the reboot"
            ),
        }
    }));
    outcome.directories_left.extend(report.directories_left.iter().cloned());
    outcome.damage = report.damage.as_ref().map(ToString::to_string);
    outcome.notes.extend(report.not_recorded.as_ref().map(|why| format!("not recorded: {why}")));
    for left in &report.left {
        if let Left::Failed { plan, step, reason } = left {
            let name = before.iter().find(|entry| entry.plan == *plan && entry.step == *step);
            let name = name.map_or_else(|| step.clone(), |entry| entry.target.name.clone());
            outcome.failures.push(NotRestored { name, reason: reason.clone() });
        }
    }
}

/// Sorts conflicts: generated boot files are generated again, missing files are given up, the user decides
/// on the others.
fn settle_conflicts(
    site: &Site,
    log: &mut UndoLog,
    report: &RollbackReport,
    outcome: &mut RollbackOutcome,
) -> Result<(), FlowError> {
    let conflicts: Vec<&Conflict> = report
        .left
        .iter()
        .filter_map(|left| if let Left::Conflict(conflict) = left { Some(conflict.as_ref()) } else { None })
        .collect();
    let (mut of_user, mut generated) = (Vec::new(), Vec::new());
    for conflict in conflicts {
        match excuse(site, log, conflict) {
            Excuse::None => of_user.push(conflict),
            Excuse::Generated => generated.push(conflict),
            Excuse::Because(reason) => {
                log.give_up_where(|entry| entry.plan == conflict.plan && entry.step == conflict.step)?;
                outcome.given_up.push(NotRestored { name: conflict.name.clone(), reason });
            }
        }
    }
    if !generated.is_empty() {
        match generate_again(site, log, &generated) {
            Ok(names) => {
                let reason = "rewritten since, for example by a kernel update; generated again".to_owned();
                outcome
                    .given_up
                    .extend(names.into_iter().map(|name| NotRestored { name, reason: reason.clone() }));
            }
            Err(error) => outcome.failures.extend(generated.iter().map(|conflict| NotRestored {
                name: conflict.name.clone(),
                reason: format!("it cannot be generated again: {error}"),
            })),
        }
    }
    outcome.conflicts = three_ways(of_user.into_iter());
    Ok(())
}

/// Runs the boot loader's program again after its sources were restored. The log keeps the old files until
/// the new ones exist, so a crash changes nothing.
fn generate_again(site: &Site, log: &mut UndoLog, stale: &[&Conflict]) -> Result<Vec<String>, FlowError> {
    let is_source_left = log.history().entries.iter().any(|entry| ApplyStage::Boot.is_of(&entry.plan));
    let Some(programs) = site.programs.as_ref().filter(|_| !is_source_left) else {
        return Err(FlowError::obstacle("its sources are not restored"));
    };
    let loader = (site.detect)(&site.root)?;
    let files = loader.generated(&site.root, programs.as_ref())?;
    let steps = file_steps(log, &files)?;
    log.close_where(|id, _| id == AGAIN)?;
    log.apply(AGAIN, &steps, OnFailure::RollBack)?;
    let names: Vec<String> = stale.iter().map(|conflict| conflict.name.clone()).collect();
    log.give_up_where(|entry| {
        entry.plan == AGAIN || (ApplyStage::Loader.is_of(&entry.plan) && names.contains(&entry.target.name))
    })?;
    Ok(names)
}

/// Records which plan is in force after the rollback, and returns its ID.
fn update_in_force(
    site: &Site,
    scope: &RollbackScope,
    is_restored: bool,
) -> Result<Option<String>, FlowError> {
    let now = site.state.in_force().ok().flatten().map(|(now, _)| now);
    if !is_restored {
        // Something could not be restored, so the plan is partly in force.
        let Some(mut now) = now else { return Ok(None) };
        now.is_complete = false;
        let id = now.plan_id.clone();
        put_back(site, &now)?;
        return Ok(Some(id));
    }
    if let RollbackScope::To(id) = scope
        && let Some(plan) = now.iter().flat_map(InForce::chain).find(|plan| plan.plan_id == *id)
    {
        put_back(site, plan)?;
        return Ok(Some(id.clone()));
    }
    site.state.take_out_of_force()?;
    Ok(None)
}

/// Stops removed units, reloads the service manager, and restarts services with restored drop-ins. `untold`
/// lists the unit files that an earlier rollback did not report. Timers stop before the reload, at which those whose
/// service is gone fail; services after it, so that their commands to stop do not run.
fn tell_units(site: &Site, outcome: &mut RollbackOutcome, untold: &BTreeSet<String>) {
    let restored: BTreeSet<String> = outcome.restored.iter().map(|restored| restored.name.clone()).collect();
    let stop = |name: &&str| {
        let path = units::path(name);
        // A later apply may have written it again.
        let is_gone = untold.contains(&path) && site.real(&path).symlink_metadata().is_err();
        let manager = site.manager.as_ref().filter(|_| is_gone || restored.contains(&path))?;
        manager.stop(name).err().map(|error| format!("{name} failed to stop: {error}"))
    };
    // Not the service of the dead-man switch, which may be the caller.
    outcome.notes.extend([units::CONFIRM, units::WATCH, units::PROVE].iter().filter_map(stop));
    outcome.notes.extend(persist::tell_manager(site, restored.union(untold).map(String::as_str)));
    outcome.notes.extend([units::APPLY].iter().filter_map(stop));
    if let Err(error) = site.state.put_untold(&BTreeSet::new()) {
        outcome.notes.push(error.to_string());
    }
}
