//! Undoing steps, the last one first.

use super::{Damage, Entry, Event, HostError, LoggedState, Progress, State, UndoLog};
use std::fmt;

/// A target that is neither as lowlat found it nor as lowlat left it: all three, for a difference to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The plan.
    pub plan: String,
    /// The step.
    pub step: String,
    /// The target's name.
    pub name: String,
    /// What was there before.
    pub old: State,
    /// What lowlat made of it, or would.
    pub ours: State,
    /// What is there now.
    pub present: State,
    /// Whether the host was started again since: values of the kernel do not outlive that.
    pub is_after_reboot: bool,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, name, old, ours, present, .. } = self;
        write!(f, "{name} (step {step}): before {old}, by lowlat {ours}, now {present}")?;
        if self.is_after_reboot { write!(f, " (the host was restarted since)") } else { Ok(()) }
    }
}

/// Why a step is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// Somebody else changed the target; it is not overwritten.
    Conflict(Box<Conflict>),
    /// It could not be restored.
    Failed {
        /// The plan.
        plan: String,
        /// The step.
        step: String,
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict(conflict) => conflict.fmt(f),
            Self::Failed { step, reason, .. } => write!(f, "step {step}: {reason}"),
        }
    }
}

/// What a rollback has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RollbackReport {
    /// Steps whose targets were restored.
    pub restored: Vec<String>,
    /// Steps whose targets already were as before.
    pub unchanged: Vec<String>,
    /// Steps whose change went with an earlier boot: nothing was touched.
    pub expired: Vec<String>,
    /// Steps that are still in force, and why.
    pub left: Vec<Left>,
    /// Directories that a step made and that are not empty: somebody else's files are in them.
    pub directories_left: Vec<String>,
    /// Why a restored step could not be recorded as such. Harmless: the next rollback finds it as before.
    pub not_recorded: Option<String>,
    /// Damage of the log: steps behind it are not known.
    pub damage: Option<Damage>,
}

impl RollbackReport {
    /// Whether everything is as before, as far as the log tells.
    pub fn is_complete(&self) -> bool {
        self.left.is_empty() && self.directories_left.is_empty() && self.damage.is_none()
    }
}

impl fmt::Display for RollbackReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (restored, unchanged) = (self.restored.len(), self.unchanged.len());
        write!(f, "steps restored: {restored}, already as before: {unchanged}, left: {}", self.left.len())?;
        if !self.expired.is_empty() {
            write!(f, ", gone with an earlier boot: {}", self.expired.len())?;
        }
        for left in &self.left {
            write!(f, "\n{left}")?;
        }
        for directory in &self.directories_left {
            write!(f, "\n{directory} was made by lowlat and is not empty; it stays")?;
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

impl UndoLog {
    pub(super) fn undo_where(&mut self, wanted: impl Fn(&Entry) -> bool) -> RollbackReport {
        self.undo_to(wanted, |_| None)
    }

    /// The same, to another old state than the one on record where `other_old` has one.
    pub(super) fn undo_to(
        &mut self,
        wanted: impl Fn(&Entry) -> bool,
        other_old: impl Fn(&Entry) -> Option<LoggedState>,
    ) -> RollbackReport {
        let mut report = RollbackReport { damage: self.damage().cloned(), ..RollbackReport::default() };
        let entries: Vec<Entry> = self.history.entries.iter().rev().filter(|e| wanted(e)).cloned().collect();
        for mut entry in entries {
            entry.old = other_old(&entry).unwrap_or(entry.old);
            if self.is_expired(&entry) {
                report.expired.push(entry.step.clone());
                if let Err(error) = self.append(&entry.plan, Event::Expired { step: entry.step.clone() }) {
                    report.not_recorded = Some(error.to_string());
                }
                continue;
            }
            let undone = match self.undo(&entry, &mut report) {
                Ok(undone) => undone,
                Err(error) => {
                    let (plan, step) = (entry.plan.clone(), entry.step.clone());
                    report.left.push(Left::Failed { plan, step, reason: error.to_string() });
                    false
                }
            };
            // The host comes first: a record that cannot be written (a full disk) must not keep it from being restored.
            if undone && let Err(error) = self.append(&entry.plan, Event::Undone { step: entry.step.clone() })
            {
                report.not_recorded = Some(error.to_string());
            }
        }
        report
    }

    /// Undoes one step; false when it is left.
    fn undo(&self, entry: &Entry, report: &mut RollbackReport) -> Result<bool, HostError> {
        let spec = &entry.target;
        let same = |a: &State, b: &State| spec.comparison.same(a, b);
        let (old, new) = (self.restore(&entry.old)?, self.restore(&entry.new)?);
        let ours = self.ours(entry)?;
        let present = self.read(spec)?;
        let was_old = same(&present, &old);
        let is_between = spec.comparison.is_between(&present, &old, &ours);
        if !was_old && !same(&present, &ours) && !same(&present, &new) && !is_between {
            report.left.push(Left::Conflict(Box::new(Conflict {
                plan: entry.plan.clone(),
                step: entry.step.clone(),
                name: spec.name.clone(),
                old,
                ours,
                present,
                is_after_reboot: entry.boot != self.boot(),
            })));
            return Ok(false);
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
        report.directories_left.extend(self.writer.remove_directories(&entry.directories)?);
        let list = if was_old { &mut report.unchanged } else { &mut report.restored };
        list.push(entry.step.clone());
        Ok(true)
    }

    /// What lowlat made of the target, or was about to.
    pub(super) fn ours(&self, entry: &Entry) -> Result<State, HostError> {
        self.restore(match &entry.progress {
            Progress::Intended => &entry.new,
            Progress::Done(state) | Progress::Left(state) => state,
        })
    }
}
