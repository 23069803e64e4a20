//! The parts of an interruption while it is being analysed.

use super::keys::{CauseKey, KeyId, KeyTable};
use crate::CauseKind;

/// Ticks by cause, and how many of them are entry and exit. Reused for each interruption.
#[derive(Debug)]
pub(super) struct Parts {
    ticks: Vec<u64>,
    entry_exit_ticks: Vec<u64>,
    is_there: Vec<bool>,
    /// Causes in order of first appearance.
    pub(super) present: Vec<KeyId>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            ticks: vec![0; KeyId::COUNT],
            entry_exit_ticks: vec![0; KeyId::COUNT],
            is_there: vec![false; KeyId::COUNT],
            present: Vec::with_capacity(KeyId::COUNT),
        }
    }
}

impl Parts {
    pub(super) fn clear(&mut self) {
        for id in self.present.drain(..) {
            self.ticks[id.index()] = 0;
            self.entry_exit_ticks[id.index()] = 0;
            self.is_there[id.index()] = false;
        }
    }

    /// Records that a cause has a part, even if too short to measure.
    pub(super) fn begin(&mut self, id: KeyId) {
        if !std::mem::replace(&mut self.is_there[id.index()], true) {
            self.present.push(id);
        }
    }

    pub(super) fn add(&mut self, id: KeyId, ticks: u64) {
        self.begin(id);
        self.ticks[id.index()] += ticks;
    }

    /// Adds unnamed time to the cause that it is the entry to or exit from, if any.
    pub(super) fn add_entry_exit(&mut self, id: KeyId, ticks: u64) {
        if ticks > 0 {
            self.add(id, ticks);
            self.entry_exit_ticks[id.index()] += ticks;
        }
    }

    /// Entry and exit time within a cause's part.
    pub(super) fn entry_exit(&self, id: KeyId) -> u64 {
        self.entry_exit_ticks[id.index()]
    }

    /// Adds time to a kind, if any.
    pub(super) fn add_kind(&mut self, kind: CauseKind, ticks: u64) {
        if ticks > 0 {
            self.add(KeyId::of_kind(kind), ticks);
        }
    }

    /// The time of a kind.
    pub(super) fn of_kind(&self, kind: CauseKind) -> u64 {
        self.ticks[KeyId::of_kind(kind).index()]
    }

    /// Moves time from one cause to another.
    pub(super) fn give(&mut self, from: KeyId, to: KeyId, ticks: u64) {
        let given = ticks.min(self.ticks[from.index()]);
        self.ticks[from.index()] -= given;
        self.add(to, given);
    }

    /// Moves a part, or so much of it, to another cause, with its entry and exit.
    pub(super) fn hand_over(&mut self, from: KeyId, to: KeyId, ticks: u64, entry_exit_ticks: u64) {
        self.give(from, to, ticks);
        let given = entry_exit_ticks.min(self.entry_exit_ticks[from.index()]);
        self.entry_exit_ticks[from.index()] -= given;
        self.entry_exit_ticks[to.index()] += given;
        if self.ticks[from.index()] == 0 {
            self.is_there[from.index()] = false;
            self.present.retain(|id| *id != from);
        }
    }

    /// The parts in order of first appearance.
    pub(super) fn iter(&self) -> impl Iterator<Item = (KeyId, u64)> + '_ {
        self.present.iter().map(|id| (*id, self.ticks[id.index()]))
    }

    /// The longest part that `passes`; among equal ones, the first to appear.
    pub(super) fn longest(&self, keys: &KeyTable, passes: fn(CauseKey) -> bool) -> Option<(KeyId, u64)> {
        let mut longest: Option<(KeyId, u64)> = None;
        for (id, ticks) in self.iter() {
            if passes(keys.key(id)) && longest.is_none_or(|(_, most)| ticks > most) {
                longest = Some((id, ticks));
            }
        }
        longest
    }
}
