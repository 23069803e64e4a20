//! Checks whether the undo log still matches the record of the plan in force.

use super::{FlowError, Site};
use crate::{LogSeal, StateDir, StateError, Wrote, units};
use lowlat_plan::outcome::{NotRestored, RollbackOutcome};
use lowlat_undo::{Entry, History, Inspection, LoggedState, PlanEntry, Progress, UndoError, UndoLog};

/// Evidence that a log is unreliable: a rollback with it may leave changes in force.
#[derive(Debug)]
pub(super) struct Doubt {
    /// The reason, as a clause.
    pub(super) reason: String,
    /// Lasting changes that are missing from the log but listed in in-force.json.
    pub(super) unknown: Vec<Wrote>,
}

/// Compares a log with what in-force.json records of it.
pub(super) fn doubt(state: &StateDir, log: &Inspection) -> Result<Option<Doubt>, StateError> {
    let note = match state.note() {
        Ok(note) => note,
        Err(error @ StateError::Format { .. }) => {
            let reason = format!("cannot check whether the undo log is complete: {error}");
            return Ok(Some(Doubt { reason, unknown: Vec::new() }));
        }
        Err(error) => return Err(error),
    };
    let path = state.undo_log().display().to_string();
    let mismatch = match &note {
        Some((_, Some(seal))) => log.compare(&seal.mark).err().map(|mismatch| mismatch.to_string()),
        Some((now, None)) if now.is_complete => unsealed(&log.history),
        _ => None,
    };
    let mismatch = mismatch.map(|what| format!("the undo log {path} does not match in-force.json: {what}"));
    let reasons: Vec<String> =
        log.damage.as_ref().map(ToString::to_string).into_iter().chain(mismatch).collect();
    if reasons.is_empty() {
        return Ok(None);
    }
    let wrote = note.and_then(|(_, seal)| seal).map_or_else(Vec::new, |seal| seal.wrote);
    let is_known = |wrote: &Wrote| log.history.entries.iter().any(|entry| entry.target == wrote.target);
    let unknown = wrote.into_iter().filter(|wrote| !is_known(wrote)).collect();
    Ok(Some(Doubt { reason: reasons.join("; "), unknown }))
}

/// Returns the contradiction between a log whose end is not recorded and a complete plan, if any.
fn unsealed(history: &History) -> Option<String> {
    let is_cut = |plan: &&PlanEntry| plan.is_open && !super::stage::is_again(&plan.id);
    if history.plans.is_empty() && history.entries.is_empty() {
        return Some("it is empty, although a plan is in force".to_owned());
    }
    let cut = history.plans.iter().find(is_cut)?;
    Some(format!("the end of {} is missing", cut.id))
}

/// Returns the reason why a host's log is unreliable, as text; none if it is intact. Takes no lock and changes nothing.
///
/// # Errors
/// lowlat's own files or the log cannot be read.
pub fn log_doubt(state: &StateDir) -> Result<Option<String>, FlowError> {
    let inspection = UndoLog::inspect(state.open_undo_log()?.as_ref())?;
    Ok(doubt(state, &inspection)?.map(|doubt| doubt.reason))
}

/// Returns an error if the log is unreliable.
pub(super) fn refuse(site: &Site, log: &UndoLog) -> Result<(), FlowError> {
    if let Some(damage) = log.damage() {
        return Err(UndoError::damaged(damage).into());
    }
    match doubt(&site.state, log.inspection())? {
        Some(doubt) => Err(FlowError::Refused(format!(
            "cannot rely on the undo log: {}\nhint: `lowlat tune rollback --dry-run` shows what can still be restored",
            doubt.reason
        ))),
        None => Ok(()),
    }
}

impl Site {
    /// Records durably where the log ends, if a plan is in force.
    pub(super) fn seal(&self, log: &UndoLog) -> Result<(), StateError> {
        self.state.seal(&seal_of(log))
    }
}

fn seal_of(log: &UndoLog) -> LogSeal {
    let mut wrote: Vec<Wrote> = Vec::new();
    for entry in log.history().entries.iter().filter(|entry| !log.goes_with_boot(entry)) {
        let made = Wrote { target: entry.target.clone(), state: made(entry).clone() };
        match wrote.iter_mut().find(|known| known.target == made.target) {
            Some(known) => *known = made,
            None => wrote.push(made),
        }
    }
    LogSeal { mark: log.mark(), wrote }
}

fn made(entry: &Entry) -> &LoggedState {
    match &entry.progress {
        Progress::Intended => &entry.new,
        Progress::Done(state) | Progress::Left(state) => state,
    }
}

/// The changes that are still on the host as lowlat made them. Unreadable ones count.
pub(super) fn remaining(log: Option<&UndoLog>, lost: &[Wrote]) -> Vec<Wrote> {
    let is_there = |wrote: &&Wrote| {
        let present = log.and_then(|log| log.present(&wrote.target).ok());
        present.is_none_or(|present| wrote.state.describes(&present, wrote.target.comparison))
    };
    lost.iter().filter(is_there).cloned().collect()
}

/// The change, with a remedy as text.
pub(super) fn not_restored(wrote: &Wrote) -> NotRestored {
    let (kind, name) = (wrote.target.kind.as_str(), wrote.target.name.as_str());
    let is_path = matches!(kind, "file" | "grub-variable");
    let (name, remedy) = match &wrote.state {
        LoggedState::Absent => (name.to_owned(), "lowlat removed it; restore it from a backup"),
        _ if is_path => (name.to_owned(), "lowlat wrote it; restore it from a backup, or remove it"),
        _ => (format!("{kind} {name}"), "lowlat changed it; set it manually"),
    };
    NotRestored { name, reason: format!("its undo record is lost: {remedy}") }
}

/// Adds units of lowlat without a record: state and log are both gone, and the host stays tuned.
pub(super) fn add_stray_units(site: &Site, history: &History, outcome: &mut RollbackOutcome) {
    let is_stray = |path: &String| {
        site.root.read(path).text().starts_with(units::HEAD)
            && !history.entries.iter().any(|entry| entry.target.name == *path)
    };
    let reason = "lowlat wrote it, and the undo log has no record of it; disable and remove it";
    for name in units::ALL.into_iter().map(units::path).filter(is_stray) {
        if !outcome.remaining.iter().any(|known| known.name == name) {
            outcome.remaining.push(NotRestored { name, reason: reason.to_owned() });
        }
    }
}
