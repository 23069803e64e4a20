//! Changes that a restart of the host reverted.

use super::{Entry, Event, UndoError, UndoLog};

/// The boot ID in records that were written when none could be read.
pub(super) const UNKNOWN_BOOT: &str = "unknown";

impl UndoLog {
    /// Records every step as expired whose change did not survive the boot in which it was made. The number
    /// of an interrupt or thread now means another one, and the value is the kernel's default again, or
    /// another tool's. The host is not changed. Returns the entries in their previous state.
    ///
    /// If one of the two boots is unknown, nothing is expired. Plans that a crash left open and that have no
    /// remaining steps are closed.
    pub fn expire(&mut self) -> Result<Vec<Entry>, UndoError> {
        let expired: Vec<Entry> =
            self.history.entries.iter().filter(|e| self.is_expired(e)).cloned().collect();
        for entry in &expired {
            self.append(&entry.plan, Event::Expired { step: entry.step.clone() })?;
        }
        let is_emptied = |plan: &str| {
            self.history.is_open(plan)
                && expired.iter().any(|e| e.plan == plan)
                && !self.history.entries.iter().any(|e| e.plan == plan)
        };
        let plans = self.history.plans.iter().map(|p| p.id.clone());
        for plan in plans.filter(|plan| is_emptied(plan)).collect::<Vec<_>>() {
            self.append(&plan, Event::End)?;
        }
        Ok(expired)
    }

    /// Whether the change of an entry ended with the boot in which it was made. For an unknown kind this
    /// cannot be determined.
    pub(super) fn is_expired(&self, entry: &Entry) -> bool {
        let is_earlier =
            entry.boot != self.boot() && entry.boot != UNKNOWN_BOOT && self.boot() != UNKNOWN_BOOT;
        is_earlier && self.target(&entry.target).is_ok_and(|target| !target.outlives_boot(&entry.target))
    }
}
