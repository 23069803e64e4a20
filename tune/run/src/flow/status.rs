//! The status of the plan in force.

use super::log_check::doubt;
use super::{FlowError, Site, at_boot};
use crate::{InForce, StateError, units};
use lowlat_host::Reading;
use lowlat_host_run::snapshot::machine_id_digest;
use lowlat_plan::{
    HostMark, Plan,
    outcome::{Confirmation, PlanInForce, RebootStatus, StepCount, TuneStatus, UnitStatus},
};
use lowlat_undo::{History, HostError, Inspection, UndoError, UndoLog};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::io;

/// Maximum number of earlier plans in the status.
const EARLIER_MAX: usize = 64;

/// Reads the status. Changes nothing, and takes no lock. Files that only root can read are reported as
/// denied.
pub fn status(site: &Site) -> Result<TuneStatus, FlowError> {
    let in_force = match site.state.in_force() {
        Ok(Some(found)) => Reading::Known(found),
        Ok(None) => Reading::Absent,
        Err(StateError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            Reading::Denied
        }
        Err(error) => return Err(error.into()),
    };
    let inspected = site.state.open_undo_log().map_err(UndoError::from);
    let log = match inspected.and_then(|dir| UndoLog::inspect(dir.as_ref())) {
        Ok(log) => Reading::Known(log),
        Err(UndoError::Host(HostError::Io { source, .. }))
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            Reading::Denied
        }
        Err(error) => return Err(error.into()),
    };
    let reboot = match &in_force {
        Reading::Known((now, plan)) => {
            let is_of_this_boot = site.boot_id().text() == now.applied_boot_id;
            at_boot::reboot(site, plan, is_of_this_boot, &now.refused)
        }
        Reading::Absent => match site.state.taken_back_in()? {
            Some(boot_id) if site.boot_id().known() == Some(&boot_id) => RebootStatus::PendingRollback,
            _ => RebootStatus::NotNeeded,
        },
        _ => RebootStatus::Unknown,
    };
    let known_log = log.known();
    Ok(TuneStatus {
        document: TuneStatus::DOCUMENT.to_owned(),
        schema_version: TuneStatus::SCHEMA_VERSION,
        units: units::ALL.into_iter().map(|name| unit(site, name)).collect(),
        unfinished: known_log.map_or_else(Vec::new, |log| unfinished(&log.history)),
        torn: known_log.and_then(|log| log.torn.as_ref().map(ToString::to_string)),
        damage: known_log.map_or(Ok(None), |log| damage(site, log))?,
        steps: log.as_ref().map(|log| steps(&log.history)),
        in_force: in_force.map(|(now, plan)| facts(site, &now, &plan)),
        reboot,
    })
}

/// The reason why the log is unreliable, or the changes whose records are lost; none if it is intact.
fn damage(site: &Site, log: &Inspection) -> Result<Option<String>, StateError> {
    if let Some(doubt) = doubt(&site.state, log)? {
        return Ok(Some(doubt.reason));
    }
    let names: Vec<String> = site.state.lost()?.into_iter().map(|wrote| wrote.target.name).collect();
    Ok((!names.is_empty()).then(|| format!("the undo records of {} are lost", names.join(", "))))
}

fn facts(site: &Site, now: &InForce, plan: &Plan) -> PlanInForce {
    let of_this_boot = site.state.refused(site.boot_id().text()).unwrap_or_default();
    PlanInForce {
        plan_id: now.plan_id.clone(),
        profile: plan.profile.to_string(),
        role: plan.role_in_force(),
        change_count: plan.changes.len(),
        applied_unix_ms: now.applied_unix_ms,
        age_s: Site::now_unix_ms().checked_sub(now.applied_unix_ms).map(|ms| ms / 1000),
        is_of_this_boot: site.boot_id().text() == now.applied_boot_id,
        is_of_other_host: is_of_other_host(site, plan),
        is_complete: now.is_complete,
        confirmation: confirmation(site, now),
        earlier: now.chain().skip(1).take(EARLIER_MAX).map(|plan| plan.plan_id.clone()).collect(),
        refused: now.refused.iter().cloned().chain(of_this_boot).collect(),
    }
}

/// True if a plan was made on a machine with another ID.
pub(super) fn is_of_other_host(site: &Site, plan: &Plan) -> bool {
    let now = HostMark { machine_id_digest: machine_id_digest(&site.root), ..plan.host.clone() };
    plan.host.is_other_machine(&now)
}

fn confirmation(site: &Site, now: &InForce) -> Confirmation {
    let Some(within_s) = now.confirm_within_s else { return Confirmation::NotNeeded };
    let since_us = site.manager.as_ref().and_then(|manager| manager.active_since_us(units::CONFIRM).ok()?);
    let left_s = since_us.map(|since_us| {
        let now = clock_gettime(ClockId::Monotonic);
        let passed_s = u64::try_from(now.tv_sec).unwrap_or(0).saturating_sub(since_us / 1_000_000);
        within_s.saturating_sub(passed_s)
    });
    Confirmation::Waiting { within_s, left_s }
}

fn unit(site: &Site, name: &str) -> UnitStatus {
    let is_there = site.root.read_bytes(&units::path(name)).map(|_| true);
    // A service started by a timer has no link.
    let starter = match name {
        units::WATCH_SERVICE => units::WATCH,
        units::CONFIRM_SERVICE => units::CONFIRM,
        other => other,
    };
    let by = [units::AT_BOOT, "timers.target", "tuned.service"];
    let is_enabled = by.iter().any(|by| site.root.read_link(&units::link_path(starter, by)).is_known());
    UnitStatus { name: name.to_owned(), is_there, is_enabled }
}

fn unfinished(history: &History) -> Vec<String> {
    let has_steps = |id: &str| history.entries.iter().any(|entry| entry.plan == id);
    let open = history.plans.iter().filter(|plan| plan.is_open && has_steps(&plan.id));
    open.map(|plan| plan.id.clone()).collect()
}

fn steps(history: &History) -> Vec<StepCount> {
    let mut counts: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    let place = |id: &str| history.plans.iter().position(|plan| plan.id == id).unwrap_or(usize::MAX);
    for entry in &history.entries {
        *counts.entry((place(&entry.plan), entry.target.kind.as_str())).or_default() += 1;
    }
    counts
        .into_iter()
        .filter_map(|((at, kind), count)| {
            let plan = history.plans.get(at)?.id.clone();
            Some(StepCount { plan, kind: kind.to_owned(), count })
        })
        .collect()
}
