//! Previews of rollbacks.

use super::{
    FlowError, Site,
    log_check::{Doubt, add_stray_units, doubt, not_restored, remaining},
    rollback::{RollbackRequest, RollbackScope, StepKey, chosen, empty, is_of_boot, key},
    stage::ApplyStage,
};
use crate::Wrote;
use lowlat_host::digest;
use lowlat_plan::outcome::{NotRestored, Restored, RollbackOutcome, StateText, ThreeWay};
use lowlat_undo::{Conflict, FileState, Left, Restoration, State, UndoLog};
use std::collections::BTreeSet;

pub(super) fn look(
    site: &Site,
    log: Option<&UndoLog>,
    request: &RollbackRequest,
) -> Result<RollbackOutcome, FlowError> {
    let nothing = UndoLog::inspect(None)?;
    let found = log.map_or(&nothing, UndoLog::inspection);
    let doubt = doubt(&site.state, found)?;
    let mut outcome = match log {
        Some(log) => preview(site, log, &chosen(site, log, &request.scope)?, request),
        None => RollbackOutcome { is_preview: true, ..empty() },
    };
    let lost: Vec<Wrote> = site.state.lost()?.into_iter().chain(unrecorded(doubt.as_ref())).collect();
    outcome.remaining = remaining(log, &lost).iter().map(not_restored).collect();
    if request.scope == RollbackScope::All {
        add_stray_units(site, &found.history, &mut outcome);
    }
    outcome.damage = doubt.map(|doubt| doubt.reason);
    Ok(outcome)
}

pub(super) fn unrecorded(doubt: Option<&Doubt>) -> Vec<Wrote> {
    doubt.map(|doubt| doubt.unknown.clone()).unwrap_or_default()
}

fn preview(
    site: &Site,
    log: &UndoLog,
    chosen: &BTreeSet<StepKey>,
    request: &RollbackRequest,
) -> RollbackOutcome {
    let preview = log.preview_where(|entry| chosen.contains(&key(entry)), &request.forced);
    let restored = |step: Restoration| Restored { plan: step.plan, kind: step.kind, name: step.name };
    let mut outcome = RollbackOutcome {
        is_preview: true,
        unchanged_count: preview.unchanged.len(),
        expired_count: preview.expired.len(),
        damage: preview.damage.as_ref().map(ToString::to_string),
        restored: preview.restore.into_iter().map(restored).collect(),
        ..empty()
    };
    let mut conflicts = Vec::new();
    for left in preview.left {
        let conflict = match left {
            Left::Conflict(conflict) => conflict,
            Left::Failed { step, reason, .. } => {
                outcome.failures.push(NotRestored { name: step, reason });
                continue;
            }
        };
        let reason = match excuse(site, log, &conflict) {
            Excuse::None => {
                conflicts.push(conflict);
                continue;
            }
            Excuse::Generated => {
                "rewritten since, for example by a kernel update; it will be generated again".to_owned()
            }
            Excuse::Because(reason) => reason,
        };
        outcome.given_up.push(NotRestored { name: conflict.name, reason });
    }
    outcome.conflicts = three_ways(conflicts.iter().map(AsRef::as_ref));
    outcome
}

/// Reason why a conflict needs no decision by the user.
pub(super) enum Excuse {
    /// The conflict needs one.
    None,
    /// A generated boot file, which is generated again.
    Generated,
    /// There is nothing to restore, with the reason.
    Because(String),
}

pub(super) fn excuse(site: &Site, log: &UndoLog, conflict: &Conflict) -> Excuse {
    if ApplyStage::Loader.is_of(&conflict.plan)
        && site.programs.is_some()
        && conflict.present != State::Absent
    {
        return Excuse::Generated;
    }
    let is_gone = conflict.present == State::Absent;
    if is_gone && is_of_boot(&conflict.plan) && conflict.name.contains("/loader/entries/") {
        return Excuse::Because("its kernel was removed".to_owned());
    }
    let entry = log.history().entry(&conflict.plan, &conflict.step);
    let is_of_kernel = entry.is_some_and(|entry| log.goes_with_boot(entry));
    if is_gone && is_of_kernel {
        return Excuse::Because("it no longer exists".to_owned());
    }
    if conflict.name.starts_with("/proc/irq/") && is_irqbalance_active(site) {
        return Excuse::Because("irqbalance moves it".to_owned());
    }
    Excuse::None
}

fn is_irqbalance_active(site: &Site) -> bool {
    let manager = site.manager.as_ref();
    manager.is_some_and(|manager| matches!(manager.active_since_us("irqbalance.service"), Ok(Some(_))))
}

/// Maximum number of characters of a file in a conflict.
const TEXT_CHARS_MAX: usize = 64 << 10;

/// The conflicts of a rollback, one for each target. With several steps on one target: the state before the
/// first step, the one that the last step wrote, and the present one. `conflicts` start with the last step.
pub(super) fn three_ways<'a>(conflicts: impl Iterator<Item = &'a Conflict>) -> Vec<ThreeWay> {
    let mut all: Vec<ThreeWay> = Vec::new();
    for conflict in conflicts {
        let before = text_of(&conflict.old);
        match all.iter_mut().find(|known| known.name == conflict.name) {
            Some(known) => known.before = before,
            None => all.push(ThreeWay {
                name: conflict.name.clone(),
                plan: conflict.plan.clone(),
                before,
                by_lowlat: text_of(&conflict.ours),
                now: text_of(&conflict.present),
            }),
        }
    }
    all
}

fn text_of(state: &State) -> StateText {
    match state {
        State::Absent => StateText::Absent,
        State::Value(text) => StateText::Value { text: text.trim_end().to_owned() },
        State::Link { to, .. } => StateText::Link { to: to.clone() },
        State::File(file) => text_of_file(file),
    }
}

fn text_of_file(file: &FileState) -> StateText {
    let attributes = format!("{}:{} {:04o}", file.uid, file.gid, file.mode);
    match std::str::from_utf8(&file.bytes) {
        Ok(text) if !text.contains('\0') => {
            let cut: String = text.chars().take(TEXT_CHARS_MAX).collect();
            StateText::File { is_cut: cut.len() < text.len(), text: cut, attributes }
        }
        _ => StateText::Binary {
            bytes: u64::try_from(file.bytes.len()).unwrap_or(u64::MAX),
            digest: digest(&String::from_utf8_lossy(&file.bytes)),
            attributes,
        },
    }
}
