//! What a restart of the host has taken away.

use super::{Entry, Event, UndoError, UndoLog};

/// The boot of records that were written where no boot id could be read.
pub(super) const UNKNOWN_BOOT: &str = "unknown";

impl UndoLog {
    /// Records every step as gone whose change did not outlive the boot that it was made in: the number of an interrupt
    /// or of a thread means another one now, and the value is the kernel's own again, or somebody else's. The host is
    /// not touched. Returns the entries, as they were.
    ///
    /// Where one of the two boots is not known, nothing is forgotten. Plans that a crash left open and of which
    /// nothing remains are closed.
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

    /// Whether the change of an entry went with the boot that it was made in. Of a kind that this build does not know
    /// it cannot be told.
    pub(super) fn is_expired(&self, entry: &Entry) -> bool {
        let is_earlier =
            entry.boot != self.boot() && entry.boot != UNKNOWN_BOOT && self.boot() != UNKNOWN_BOOT;
        is_earlier && self.target(&entry.target).is_ok_and(|target| !target.outlives_boot(&entry.target))
    }
}
