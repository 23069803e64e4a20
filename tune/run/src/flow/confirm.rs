//! Confirms a plan, which disarms the dead-man switch.

use super::stage::ApplyStage;
use super::{FlowError, Site, at_boot, log_check, persist};
use crate::{InForce, units};

/// The result of a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmed {
    /// No plan is in force.
    NothingInForce,
    /// The plan in force needs no confirmation, or is confirmed.
    Already,
    /// The dead-man switch was removed.
    Now,
    /// The switch is disarmed until the reboot that completes the plan, and armed again after it: its
    /// purpose is to guard the boot with the new command line.
    UntilReboot,
}

/// Confirms the plan in force.
pub fn confirm(site: &Site) -> Result<Confirmed, FlowError> {
    let Some((meant, _)) = site.state.in_force()? else { return Ok(Confirmed::NothingInForce) };
    // Read again under the log's lock: the switch may have fired in the meantime.
    let mut log = site.open_log()?;
    let Some((now, plan)) = site.state.in_force()? else { return Ok(Confirmed::NothingInForce) };
    log_check::refuse(site, &log)?;
    if now.plan_id != meant.plan_id {
        return Err(FlowError::obstacle(format!(
            "plan {} was replaced by plan {}; check with `lowlat tune status`, and confirm again if the new plan \
             should stay",
            meant.plan_id, now.plan_id
        )));
    }
    if !now.is_complete {
        return Err(FlowError::partly_applied(&now.plan_id));
    }
    let is_waiting = now.confirm_within_s.is_some();
    let is_of_this_boot = site.boot_id().text() == now.applied_boot_id;
    if is_waiting && is_of_this_boot && at_boot::is_reboot_pending(site, &plan, &now.refused) {
        // It may have fired already, with its rollback waiting for the log. This note stops that rollback.
        site.state.put_resting_in(Some(site.boot_id().text()))?;
        stop_timer(site)?;
        return Ok(Confirmed::UntilReboot);
    }
    if is_waiting {
        // First the note: if the switch fires from here on, it finds nothing to roll back.
        site.state.put_in_force(&confirmed(now), &plan)?;
    }
    // The earlier plans are confirmed with it.
    let is_switch = |id: &str| ApplyStage::Confirm.is_of(id);
    let paths: Vec<String> = log
        .history()
        .entries
        .iter()
        .filter(|entry| is_switch(&entry.plan))
        .map(|entry| entry.target.name.clone())
        .collect();
    if paths.is_empty() && !is_waiting {
        return Ok(Confirmed::Already);
    }
    let report = log.rollback_where(|entry| is_switch(&entry.plan));
    site.seal(&log)?;
    drop(log);
    stop_timer(site)?;
    persist::tell_manager(site, paths.iter().map(String::as_str));
    if report.left.is_empty() {
        return Ok(Confirmed::Now);
    }
    Err(FlowError::obstacle(format!(
        "the plan is confirmed, but units of the dead-man switch remain: {report}"
    )))
}

/// The plan and its earlier plans, which are parts of it, as confirmed.
fn confirmed(mut now: InForce) -> InForce {
    let mut at = Some(&mut now);
    while let Some(plan) = at {
        plan.confirm_within_s = None;
        at = plan.earlier.as_deref_mut();
    }
    now
}

fn stop_timer(site: &Site) -> Result<(), FlowError> {
    let Some(manager) = &site.manager else { return Ok(()) };
    let failed = |error| FlowError::manager(&format!("stop {}", units::CONFIRM), &error);
    manager.stop(units::CONFIRM).map_err(failed)
}
