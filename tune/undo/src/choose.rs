//! Steps chosen one by one: rolled back, previewed, adopted as lowlat's own, or abandoned.

use super::{
    Entry, Event, Left, Restoration, RollbackPreview, RollbackReport, UndoError, UndoLog,
    preview::ExpectedStates, rollback::Until,
};

/// Reason recorded for a step that was adopted as lowlat's own although its target was changed outside lowlat.
const FORCED: &str = "changed outside lowlat, rolled back on request";

impl UndoLog {
    /// Rolls back the steps that `wanted` selects, the last one first, and checks each target. If it is in lowlat's
    /// state, it is restored. If it is in its previous state, that is only recorded. Anything else is a change from
    /// outside, which stays and is reported with all three states.
    ///
    /// Changes reverted by an earlier restart ([`UndoLog::expire`]) are only recorded.
    ///
    /// A file is restored with bytes, owner, group, mode, modification time and those extended attributes that may be
    /// set. Times of directories are not restored: they show other programs that an entry has changed, which is true.
    pub fn rollback_where(&mut self, wanted: impl Fn(&Entry) -> bool) -> RollbackReport {
        self.rollback_until(wanted, Until::Forever)
    }

    /// The same for a plan that stays in force: the next boot may set its values again, so the first values of
    /// lasting names stay recorded.
    pub fn rollback_until_boot(&mut self, wanted: impl Fn(&Entry) -> bool) -> RollbackReport {
        self.rollback_until(wanted, Until::NextBoot)
    }

    fn rollback_until(&mut self, wanted: impl Fn(&Entry) -> bool, until: Until) -> RollbackReport {
        let mut report = self.undo_to(wanted, |_| None, until);
        if let Err(error) = self.close_where(|_, is_empty| is_empty) {
            report.not_recorded = Some(error.to_string());
        }
        report
    }

    /// Previews [`UndoLog::rollback_where`] as if the targets named in `forced` were in lowlat's state. Reads the host
    /// and changes nothing, neither there nor in the log. It does not show whether a write would fail, nor which
    /// directories would stay because they contain other files.
    pub fn preview_where(&self, wanted: impl Fn(&Entry) -> bool, forced: &[String]) -> RollbackPreview {
        let mut preview = RollbackPreview { damage: self.damage().cloned(), ..RollbackPreview::default() };
        let mut seen = ExpectedStates::new();
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
            let kind = self.history().entry(&conflict.plan, &conflict.step).map(|e| e.target.kind.clone());
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

    /// Adopts the current state of the targets named `names` as lowlat's own, so that a rollback restores the
    /// previous state instead of keeping an edit. Of several steps on a target this affects the last one, and
    /// those whose target was changed before the next step. Returns the names that no selected step has.
    pub fn take_for_ours(
        &mut self,
        wanted: impl Fn(&Entry) -> bool,
        names: &[String],
    ) -> Result<Vec<String>, UndoError> {
        let mut unknown = Vec::new();
        for name in names {
            let last = self.history().entries.iter().rfind(|e| wanted(e) && e.target.name == *name);
            let Some(spec) = last.map(|entry| entry.target.clone()) else {
                unknown.push(name.clone());
                continue;
            };
            let is_there = |e: &&Entry| wanted(e) && e.target.kind == spec.kind && e.target.name == *name;
            let entries: Vec<Entry> = self.history().entries.iter().rev().filter(is_there).cloned().collect();
            let mut present = self.present(&spec)?;
            for (at, entry) in entries.into_iter().enumerate() {
                if at > 0 && self.is_expired(&entry) {
                    continue;
                }
                // The state when this step's turn comes.
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

    /// Records the steps that `wanted` selects as rolled back without changing the host, for changes
    /// deliberately left in place. Returns their number.
    pub fn give_up_where(&mut self, wanted: impl Fn(&Entry) -> bool) -> Result<usize, UndoError> {
        let chosen: Vec<(String, String)> = self
            .history()
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

    /// True if a restart of the host reverts this step's change. An unknown kind counts as permanent.
    pub fn goes_with_boot(&self, entry: &Entry) -> bool {
        self.target(&entry.target).is_ok_and(|target| !target.outlives_boot(&entry.target))
    }

    /// True if this log knows the kind of target.
    pub fn knows(&self, kind: &str) -> bool {
        self.targets.iter().any(|target| target.kind() == kind)
    }

    /// Records that the open plans that `wanted` selects, by their ID and by whether they have no active
    /// step, are no longer in progress. Their steps stay as they are, and the same plan can be resumed.
    pub fn close_where(&mut self, wanted: impl Fn(&str, bool) -> bool) -> Result<(), UndoError> {
        let is_empty = |id: &str| !self.history().entries.iter().any(|entry| entry.plan == id);
        let open =
            self.history().plans.iter().filter(|plan| plan.is_open && wanted(&plan.id, is_empty(&plan.id)));
        for id in open.map(|plan| plan.id.clone()).collect::<Vec<_>>() {
            self.append(&id, Event::End)?;
        }
        Ok(())
    }
}
