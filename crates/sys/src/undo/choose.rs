//! Steps chosen one by one: undone, looked at, taken for lowlat's own, or given up.

use super::{
    Entry, Event, Left, Restoration, RollbackPreview, RollbackReport, UndoError, UndoLog, preview::Seen,
};

/// Why a step was taken for lowlat's own though somebody else has changed its target.
const FORCED: &str = "changed by somebody else, and taken back on demand";

impl UndoLog {
    /// Rolls back the steps that `wanted` chooses, the last one first. A target that is as lowlat left it is restored. One
    /// that is as before is only recorded. Anything else is another program's change: it is left, and reported with all
    /// three states.
    ///
    /// What a restart has undone already ([`UndoLog::expire`]) is not touched and only recorded.
    ///
    /// A file is restored with its bytes, owner, group, mode, modification time, and those extended attributes that may
    /// be set. Times of directories are not restored: they show other programs that a name has changed.
    pub fn rollback_where(&mut self, wanted: impl Fn(&Entry) -> bool) -> RollbackReport {
        let mut report = self.undo_where(wanted);
        if let Err(error) = self.close_where(|_, is_empty| is_empty) {
            report.not_recorded = Some(error.to_string());
        }
        report
    }

    /// What [`UndoLog::rollback_where`] would do if the targets named in `forced` were as lowlat left them. Reads the host
    /// and changes nothing, neither there nor in the log. It cannot know whether a write would be refused, nor which
    /// directories would stay because they hold other files.
    pub fn preview_where(&self, wanted: impl Fn(&Entry) -> bool, forced: &[String]) -> RollbackPreview {
        let mut preview = RollbackPreview { damage: self.damage().cloned(), ..RollbackPreview::default() };
        let mut seen = Seen::new();
        for entry in self.history().entries.iter().rev().filter(|entry| wanted(entry)) {
            if self.is_expired(entry) {
                preview.expired.push(entry.step.clone());
            } else if let Err(error) = self.preview(entry, &mut seen, &mut preview) {
                let (plan, step) = (entry.plan.clone(), entry.step.clone());
                preview.left.push(Left::Failed { plan, step, reason: error.to_string() });
            }
        }
        let is_forced = |left: &Left| matches!(left, Left::Conflict(c) if forced.contains(&c.name));
        for left in preview.left.extract_if(.., |left| is_forced(left)) {
            let Left::Conflict(conflict) = left else { continue };
            let kind = self.history.entry(&conflict.plan, &conflict.step).map(|e| e.target.kind.clone());
            preview.restore.push(Restoration {
                plan: conflict.plan,
                step: conflict.step,
                kind: kind.unwrap_or_default(),
                name: conflict.name,
                present: conflict.present,
                old: conflict.old,
            });
        }
        preview
    }

    /// Takes what is there now at the targets named `names` for lowlat's own, so that a rollback restores what was there
    /// before instead of leaving somebody else's edit. Of several steps on a target the last one needs it, and those after
    /// which somebody else has changed the target before the next one. Returns those names that no chosen step has.
    pub fn take_for_ours(
        &mut self,
        wanted: impl Fn(&Entry) -> bool,
        names: &[String],
    ) -> Result<Vec<String>, UndoError> {
        let mut unknown = Vec::new();
        for name in names {
            let last = self.history.entries.iter().rfind(|e| wanted(e) && e.target.name == *name);
            let Some(spec) = last.map(|entry| entry.target.clone()) else {
                unknown.push(name.clone());
                continue;
            };
            let is_there = |e: &&Entry| wanted(e) && e.target.kind == spec.kind && e.target.name == *name;
            let entries: Vec<Entry> = self.history.entries.iter().rev().filter(is_there).cloned().collect();
            let mut present = self.present(&spec)?;
            for (at, entry) in entries.into_iter().enumerate() {
                if at > 0 && self.is_expired(&entry) {
                    continue;
                }
                // What is there when this one's turn comes.
                let there = std::mem::replace(&mut present, self.restore(&entry.old)?);
                if at == 0 || !entry.target.comparison.same(&self.ours(&entry)?, &there) {
                    let present = Some(self.keep(&there)?);
                    let (step, reason) = (entry.step, FORCED.to_owned());
                    self.append(&entry.plan, Event::Failed { step, reason, present })?;
                }
            }
        }
        Ok(unknown)
    }

    /// Records the steps that `wanted` chooses as undone without touching the host: for what is left to somebody else on
    /// purpose. Returns how many.
    pub fn give_up_where(&mut self, wanted: impl Fn(&Entry) -> bool) -> Result<usize, UndoError> {
        let chosen: Vec<(String, String)> = self
            .history
            .entries
            .iter()
            .rev()
            .filter(|entry| wanted(entry))
            .map(|entry| (entry.plan.clone(), entry.step.clone()))
            .collect();
        for (plan, step) in &chosen {
            self.append(plan, Event::Undone { step: step.clone() })?;
        }
        self.close_where(|_, is_empty| is_empty)?;
        Ok(chosen.len())
    }

    /// Whether a restart of the host undoes what this step changes. A kind that is not known here counts as lasting.
    pub fn goes_with_boot(&self, entry: &Entry) -> bool {
        self.target(&entry.target).is_ok_and(|target| !target.outlives_boot(&entry.target))
    }

    /// Whether the kind of target is known here.
    pub fn knows(&self, kind: &str) -> bool {
        self.targets.iter().any(|target| target.kind() == kind)
    }

    /// Records that nothing more is under way of those open plans that `wanted` chooses, by their id and by whether they
    /// have no step in force. Their steps stay as they are, and the same plan can be taken up again.
    pub fn close_where(&mut self, wanted: impl Fn(&str, bool) -> bool) -> Result<(), UndoError> {
        let is_empty = |id: &str| !self.history.entries.iter().any(|entry| entry.plan == id);
        let open =
            self.history.plans.iter().filter(|plan| plan.is_open && wanted(&plan.id, is_empty(&plan.id)));
        for id in open.map(|plan| plan.id.clone()).collect::<Vec<_>>() {
            self.append(&id, Event::End)?;
        }
        Ok(())
    }
}
