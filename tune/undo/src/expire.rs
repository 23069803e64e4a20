//! Changes that a restart of the host reverted.

use super::{Entry, Event, UndoError, UndoLog};
use std::collections::BTreeSet;

/// The boot ID in records that were written when none could be read.
pub(super) const UNKNOWN_BOOT: &str = "unknown";

impl UndoLog {
    /// Records every step as expired whose change did not survive the boot in which it was made, and whose record
    /// is not needed: the number of an interrupt or thread now means another one, or an older step made the same
    /// change. The first value before each change of a lasting name is kept, because a file may set lowlat's value at
    /// each boot. The host is not changed. Returns the entries in their previous state.
    ///
    /// If one of the two boots is unknown, nothing is expired. Plans that a crash left open in an earlier boot and
    /// that changed nothing lasting are closed.
    pub fn expire(&mut self) -> Result<Vec<Entry>, UndoError> {
        let expired: Vec<Entry> =
            self.history().entries.iter().filter(|e| self.is_expired(e)).cloned().collect();
        let (reset, lasting): (Vec<&Entry>, Vec<&Entry>) =
            self.history().entries.iter().partition(|entry| self.is_reset(entry));
        let plans =
            |entries: &[&Entry]| -> BTreeSet<String> { entries.iter().map(|e| e.plan.clone()).collect() };
        let over = &plans(&reset) - &plans(&lasting);
        for entry in &expired {
            self.append(&entry.plan, Event::Expired { step: entry.step.clone() })?;
        }
        self.close_where(|plan, _| over.contains(plan))?;
        Ok(expired)
    }

    /// True if a restart has reset the target since the change; false for an unknown kind, where this cannot be
    /// determined.
    pub(super) fn is_reset(&self, entry: &Entry) -> bool {
        let is_earlier =
            entry.boot != self.boot() && entry.boot != UNKNOWN_BOOT && self.boot() != UNKNOWN_BOOT;
        is_earlier && self.target(&entry.target).is_ok_and(|target| !target.outlives_boot(&entry.target))
    }

    /// True if a restart has reset the target, and the record of its previous state is not needed.
    pub(super) fn is_expired(&self, entry: &Entry) -> bool {
        let is_same = |other: &&Entry| other.target == entry.target && other.new == entry.new;
        let first = self.history().entries.iter().find(is_same);
        let is_first = first.is_none_or(|first| (&first.plan, &first.step) == (&entry.plan, &entry.step));
        self.is_reset(entry) && !(is_first && self.keeps_its_name(entry))
    }

    pub(super) fn keeps_its_name(&self, entry: &Entry) -> bool {
        self.target(&entry.target).is_ok_and(|target| target.keeps_its_name(&entry.target))
    }
}
