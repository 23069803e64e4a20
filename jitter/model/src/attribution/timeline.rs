//! The events of one interruption in time order, while it is being analysed.

use super::{keys::KeyId, senders::SenderId};
use crate::{TIMELINE_STEPS_MAX, TimelineChange};

/// A step whose cause has no name yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawStep {
    /// Ticks since the start of the interruption.
    pub(super) offset: i64,
    pub(super) depth: u8,
    pub(super) change: TimelineChange,
    pub(super) key: KeyId,
    pub(super) sender: Option<SenderId>,
}

/// The first [`TIMELINE_STEPS_MAX`] steps. Written only on request: few interruptions are kept.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) steps: Vec<RawStep>,
    pub(super) cut_count: u64,
    pub(super) is_wanted: bool,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { steps: Vec::with_capacity(TIMELINE_STEPS_MAX), cut_count: 0, is_wanted: false }
    }
}

impl Timeline {
    pub(super) fn clear(&mut self, is_wanted: bool) {
        self.steps.clear();
        self.cut_count = 0;
        self.is_wanted = is_wanted;
    }

    pub(super) fn add(&mut self, offset: i64, depth: usize, change: TimelineChange, key: KeyId) {
        self.add_sent(offset, depth, change, key, None);
    }

    /// Adds a step with its sender on another CPU.
    pub(super) fn add_sent(
        &mut self,
        offset: i64,
        depth: usize,
        change: TimelineChange,
        key: KeyId,
        sender: Option<SenderId>,
    ) {
        if !self.is_wanted {
            return;
        }
        if self.steps.len() >= TIMELINE_STEPS_MAX {
            self.cut_count += 1;
            return;
        }
        let depth = u8::try_from(depth).unwrap_or(u8::MAX);
        self.steps.push(RawStep { offset, depth, change, key, sender });
    }

    /// The index of the next step.
    pub(super) fn place(&self) -> usize {
        self.steps.len()
    }

    /// Renames the step before `place`, if it is kept.
    pub(super) fn rename(&mut self, place: usize, key: KeyId) {
        let step = place.checked_sub(1).and_then(|before| self.steps.get_mut(before));
        if let Some(step) = step.filter(|step| step.change == TimelineChange::Begins) {
            step.key = key;
        }
    }

    /// Inserts a start that only now became known before the step at `place`. Later steps lie inside it, and
    /// the last one is dropped if there is no space.
    pub(super) fn insert_begin(&mut self, place: usize, offset: i64, depth: usize, key: KeyId) {
        if !self.is_wanted {
            return;
        }
        let place = place.min(self.steps.len());
        if place >= TIMELINE_STEPS_MAX {
            self.cut_count += 1;
            return;
        }
        if self.steps.len() >= TIMELINE_STEPS_MAX {
            self.steps.pop();
            self.cut_count += 1;
        }
        for step in self.steps.iter_mut().skip(place) {
            step.depth = step.depth.saturating_add(1);
        }
        let depth = u8::try_from(depth).unwrap_or(u8::MAX);
        self.steps
            .insert(place, RawStep { offset, depth, change: TimelineChange::Begins, key, sender: None });
    }
}
