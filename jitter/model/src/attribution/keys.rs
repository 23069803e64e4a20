//! Causes as small numbers, so that sums by cause need no search per event and stay bounded.

use crate::{CauseKind, cause::KINDS};
use lowlat_trace::Activity;
use std::collections::BTreeMap;

/// Maximum number of distinct activities of a CPU. Hosts have a few dozen interrupts, softirqs and functions;
/// the limit is for hosts with ever new threads.
pub const KEYS_MAX: usize = 512;

pub(super) const KINDS_COUNT: usize = KINDS.len();

/// A cause without its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CauseKey {
    /// An activity in the trace.
    Activity(Activity),
    /// A kind alone: one without activities (entry and exit, unexplained), or the activities of a kind beyond
    /// the first [`KEYS_MAX`].
    Kind(CauseKind),
}

impl CauseKey {
    pub fn kind(self) -> CauseKind {
        match self {
            Self::Activity(activity) => kind_of(activity),
            Self::Kind(kind) => kind,
        }
    }

    /// True if it names what ran, as opposed to entry and exit and the kinds for unknown time.
    pub fn is_named(self) -> bool {
        self.kind().is_kernel() && self.kind() != CauseKind::EntryExit
    }
}

/// The kind of cause of an activity.
pub(super) fn kind_of(activity: Activity) -> CauseKind {
    match activity {
        Activity::Nmi => CauseKind::Nmi,
        Activity::Irq(_) => CauseKind::Irq,
        Activity::Vector(_) | Activity::TimerInterrupt(_) => CauseKind::Vector,
        Activity::Softirq(_) => CauseKind::Softirq,
        Activity::Hrtimer(_) => CauseKind::Hrtimer,
        Activity::Timer(_) => CauseKind::Timer,
        Activity::CallFunction(_) => CauseKind::CallFunction,
        Activity::Tasklet(_) => CauseKind::Tasklet,
        Activity::Work(_) => CauseKind::Work,
        Activity::Thread(_) => CauseKind::Thread,
        Activity::PageFault => CauseKind::PageFault,
        Activity::Signal(_) => CauseKind::Signal,
        Activity::Held(_) => CauseKind::Held,
    }
}

/// Index of a cause in the sums of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyId(u16);

impl KeyId {
    pub(super) const COUNT: usize = KINDS_COUNT + KEYS_MAX;

    pub(super) const fn of_kind(kind: CauseKind) -> Self {
        // The discriminants of a field-less enum of 17 are 0 to 16.
        Self(kind as u16)
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The causes that have occurred on one CPU.
#[derive(Debug)]
pub(super) struct KeyTable {
    pub(super) keys: Vec<CauseKey>,
    ids: BTreeMap<Activity, KeyId>,
}

impl KeyTable {
    pub(super) fn new() -> Self {
        let mut keys = Vec::with_capacity(KeyId::COUNT);
        keys.extend(KINDS.map(|(kind, _)| CauseKey::Kind(kind)));
        Self { keys, ids: BTreeMap::new() }
    }

    /// The index of an activity, or of its kind if there is no space for another.
    pub(super) fn id(&mut self, activity: Activity) -> KeyId {
        if let Some(id) = self.ids.get(&activity) {
            return *id;
        }
        match u16::try_from(self.keys.len()) {
            Ok(next) if self.keys.len() < KeyId::COUNT => {
                self.keys.push(CauseKey::Activity(activity));
                self.ids.insert(activity, KeyId(next));
                KeyId(next)
            }
            _ => KeyId::of_kind(kind_of(activity)),
        }
    }

    /// The cause at an index.
    pub(super) fn key(&self, id: KeyId) -> CauseKey {
        self.keys.get(id.index()).copied().unwrap_or(CauseKey::Kind(CauseKind::Unexplained))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_at_their_own_number() {
        let table = KeyTable::new();
        for (kind, _) in KINDS {
            assert_eq!(table.key(KeyId::of_kind(kind)), CauseKey::Kind(kind));
        }
    }

    #[test]
    fn beyond_the_bound_only_the_kind_is_reported() {
        let mut table = KeyTable::new();
        for tid in 0..2_000 {
            table.id(Activity::Thread(tid));
        }
        assert_eq!(table.keys.len(), KeyId::COUNT);
        let last = table.id(Activity::Thread(511));
        assert_eq!(table.key(last), CauseKey::Activity(Activity::Thread(511)));
        assert_eq!(table.id(Activity::Thread(512)), KeyId::of_kind(CauseKind::Thread));
        assert_eq!(table.id(Activity::Irq(9)), KeyId::of_kind(CauseKind::Irq));
    }
}
