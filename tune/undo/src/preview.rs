//! A preview of a rollback.

use super::{Entry, HostError, Left, LogDamage, State, UndoLog};
use std::collections::BTreeMap;

/// A step that a rollback would restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restoration {
    pub plan: String,
    pub step: String,
    /// The target's kind, such as "file".
    pub kind: String,
    /// The target's name; for a file, its path.
    pub name: String,
    /// The state when its turn comes: later steps of the same target count as rolled back.
    pub present: State,
    /// The state that would be restored.
    pub old: State,
}

/// Result that a rollback would have, in order of its steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RollbackPreview {
    /// Steps whose targets would be restored.
    pub restore: Vec<Restoration>,
    /// Steps whose targets already have their previous state.
    pub unchanged: Vec<String>,
    /// Steps whose change ended with an earlier boot.
    pub expired: Vec<String>,
    /// Steps that would stay, with the reason.
    pub left: Vec<Left>,
    /// Damage of the log: later steps are unknown.
    pub damage: Option<LogDamage>,
}

/// Expected states of targets at this point, by kind and identity.
pub(super) type ExpectedStates = BTreeMap<(String, String), State>;

impl UndoLog {
    pub(super) fn preview(
        &self,
        entry: &Entry,
        seen: &mut ExpectedStates,
        preview: &mut RollbackPreview,
    ) -> Result<(), HostError> {
        let spec = &entry.target;
        let same = |a: &State, b: &State| spec.comparison.same(a, b);
        let (old, ours, new) = (self.restore(&entry.old)?, self.ours(entry)?, self.restore(&entry.new)?);
        let place = (spec.kind.clone(), self.target(spec)?.identity(&self.writer, spec)?);
        let present = match seen.get(&place) {
            Some(state) => state.clone(),
            None => self.read(spec)?,
        };
        let (plan, step, name) = (entry.plan.clone(), entry.step.clone(), spec.name.clone());
        if same(&present, &old) {
            preview.unchanged.push(step);
        } else if same(&present, &ours)
            || same(&present, &new)
            || spec.comparison.is_between(&present, &old, &ours)
        {
            seen.insert(place, old.clone());
            preview.restore.push(Restoration { plan, step, kind: spec.kind.clone(), name, present, old });
        } else if self.is_reset(entry) {
            preview.expired.push(step);
        } else {
            let conflict = self.conflict(entry, old, ours, present);
            preview.left.push(Left::Conflict(Box::new(conflict)));
        }
        Ok(())
    }
}
