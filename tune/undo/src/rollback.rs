//! Rolls back steps, the last one first.

use super::{Entry, Event, HostError, LogDamage, LoggedState, Progress, State, UndoLog};
use std::fmt;

/// A target that is neither in the state that lowlat found nor in the one it left, with all three states for
/// showing the difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub plan: String,
    pub step: String,
    /// Name of the target in conflict.
    pub name: String,
    /// State before the change by lowlat.
    pub old: State,
    /// State that lowlat wrote or would write.
    pub ours: State,
    pub present: State,
    /// True if the host was restarted since; values of the kernel do not survive that.
    pub is_after_reboot: bool,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, name, old, ours, present, .. } = self;
        write!(f, "{name} (step {step}): before {old}, by lowlat {ours}, now {present}")?;
        if self.is_after_reboot { write!(f, " (the host was restarted since)") } else { Ok(()) }
    }
}

/// Reason why a step is not rolled back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// The target was changed outside lowlat; it is not overwritten.
    Conflict(Box<Conflict>),
    /// It could not be restored.
    Failed { plan: String, step: String, reason: String },
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict(conflict) => conflict.fmt(f),
            Self::Failed { step, reason, .. } => write!(f, "step {step}: {reason}"),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RollbackReport {
    /// Steps whose targets were restored.
    pub restored: Vec<String>,
    /// Steps whose targets already had their previous state.
    pub unchanged: Vec<String>,
    /// Steps whose change ended with an earlier boot: nothing was touched.
    pub expired: Vec<String>,
    /// Those of them whose target has neither its previous value nor lowlat's: something else has set it since.
    pub different: Vec<Conflict>,
    /// Steps that are still active, with the reason.
    pub left: Vec<Left>,
    /// Directories that a step created and that are not empty: they contain other files.
    pub directories_left: Vec<String>,
    /// Error that kept a restored step from being recorded. Harmless: the next rollback finds it restored.
    pub not_recorded: Option<String>,
    /// Damage of the log: later steps are unknown.
    pub damage: Option<LogDamage>,
}

impl RollbackReport {
    /// True if everything has its previous state, according to the log.
    pub fn is_complete(&self) -> bool {
        self.left.is_empty() && self.directories_left.is_empty() && self.damage.is_none()
    }
}

impl fmt::Display for RollbackReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (restored, unchanged) = (self.restored.len(), self.unchanged.len());
        write!(f, "steps restored: {restored}, already as before: {unchanged}, left: {}", self.left.len())?;
        if !self.expired.is_empty() {
            write!(f, ", reverted by an earlier restart: {}", self.expired.len())?;
        }
        for left in &self.left {
            write!(f, "\n{left}")?;
        }
        for conflict in &self.different {
            write!(f, "\n{conflict}")?;
        }
        for directory in &self.directories_left {
            write!(f, "\n{directory} was created by lowlat but is not empty, so it stays")?;
        }
        if let Some(why) = &self.not_recorded {
            write!(f, "\nnot recorded: {why}")?;
        }
        if let Some(damage) = &self.damage {
            write!(f, "\n{damage}")?;
        }
        Ok(())
    }
}

/// Time for which a rollback applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// The plan is no longer in force.
    Forever,
    /// The plan stays in force, and the next boot may set the values again, so their first values stay recorded.
    NextBoot,
}

/// Result of rolling back a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undone {
    /// Its target has its previous state.
    Restored,
    /// A restart has reset its target.
    Expired,
    /// The same, and something else has set it since.
    Different,
    /// It is not rolled back.
    Left,
}

/// Reason recorded for a step that stays in the log although its target was restored.
const NEXT_BOOT: &str = "restored until the next boot";

impl UndoLog {
    /// Rolls back to another old state than the recorded one if `other_old` has one.
    pub(super) fn undo_to(
        &mut self,
        wanted: impl Fn(&Entry) -> bool,
        other_old: impl Fn(&Entry) -> Option<LoggedState>,
        until: Until,
    ) -> RollbackReport {
        let mut report = RollbackReport { damage: self.damage().cloned(), ..RollbackReport::default() };
        let entries: Vec<Entry> =
            self.history().entries.iter().rev().filter(|e| wanted(e)).cloned().collect();
        for mut entry in entries {
            entry.old = other_old(&entry).unwrap_or(entry.old);
            let undone =
                if self.is_expired(&entry) { Ok(Undone::Expired) } else { self.undo(&entry, &mut report) };
            let step = entry.step.clone();
            let event = match undone {
                Ok(Undone::Different) if until == Until::NextBoot => continue,
                Ok(Undone::Expired | Undone::Different) => {
                    report.expired.push(step.clone());
                    Event::Expired { step }
                }
                Ok(Undone::Restored) if until == Until::NextBoot && self.keeps_its_name(&entry) => {
                    Event::Failed { step, reason: NEXT_BOOT.to_owned(), present: Some(entry.old.clone()) }
                }
                Ok(Undone::Restored) => Event::Undone { step },
                Ok(Undone::Left) => continue,
                Err(error) => {
                    let plan = entry.plan.clone();
                    report.left.push(Left::Failed { plan, step, reason: error.to_string() });
                    continue;
                }
            };
            // The host comes first: a record that cannot be written (a full disk) must not prevent it from
            // being restored.
            if let Err(error) = self.append(&entry.plan, event) {
                report.not_recorded = Some(error.to_string());
            }
        }
        report
    }

    /// Rolls back one step, and adds the result to `report`.
    fn undo(&self, entry: &Entry, report: &mut RollbackReport) -> Result<Undone, HostError> {
        let spec = &entry.target;
        let same = |a: &State, b: &State| spec.comparison.same(a, b);
        let (old, new) = (self.restore(&entry.old)?, self.restore(&entry.new)?);
        let ours = self.ours(entry)?;
        let present = self.read(spec)?;
        let was_old = same(&present, &old);
        let is_between = spec.comparison.is_between(&present, &old, &ours);
        if !was_old && !same(&present, &ours) && !same(&present, &new) && !is_between {
            let conflict = self.conflict(entry, old, ours, present);
            if self.is_reset(entry) {
                report.different.push(conflict);
                return Ok(Undone::Different);
            }
            report.left.push(Left::Conflict(Box::new(conflict)));
            return Ok(Undone::Left);
        }
        let target = self.target(spec)?;
        if !was_old {
            target.write(&self.writer, spec, &old)?;
        }
        target.settle(&self.writer, spec)?;
        let read_back = self.read_back(spec, &old)?;
        if !same(&read_back, &old) {
            let what = format!("restored {old}, read back {read_back}");
            return Err(HostError::io("restore", &spec.name, std::io::Error::other(what)));
        }
        let (kept, is_used) = self.remove_directories(entry)?;
        report.directories_left.extend(kept);
        if is_used {
            // The record of the directories is needed until that step is undone.
            return Ok(Undone::Left);
        }
        let list = if was_old { &mut report.unchanged } else { &mut report.restored };
        list.push(entry.step.clone());
        Ok(Undone::Restored)
    }

    /// Removes the empty directories that a step created. Returns the others, and whether another step in force
    /// has its target in one of them.
    pub(super) fn remove_directories(&self, entry: &Entry) -> Result<(Vec<String>, bool), HostError> {
        let kept = self.writer.remove_directories(&entry.directories)?;
        let is_in_one = |other: &&Entry| {
            let place = self.target(&other.target).and_then(|t| t.identity(&self.writer, &other.target));
            let place = place.unwrap_or_else(|_| other.target.name.clone());
            kept.iter().any(|dir| place.strip_prefix(dir).is_some_and(|below| below.starts_with('/')))
        };
        let is_other = |other: &&Entry| (&other.plan, &other.step) != (&entry.plan, &entry.step);
        let is_used = self.history().entries.iter().filter(is_other).any(|other| is_in_one(&other));
        Ok((kept, is_used))
    }

    /// The state that lowlat wrote, or was about to.
    pub(super) fn conflict(&self, entry: &Entry, old: State, ours: State, present: State) -> Conflict {
        let (plan, step, name) = (entry.plan.clone(), entry.step.clone(), entry.target.name.clone());
        Conflict { plan, step, name, old, ours, present, is_after_reboot: entry.boot != self.boot() }
    }

    pub(super) fn ours(&self, entry: &Entry) -> Result<State, HostError> {
        self.restore(match &entry.progress {
            Progress::Intended => &entry.new,
            Progress::Done(state) | Progress::Left(state) => state,
        })
    }
}
