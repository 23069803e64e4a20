//! Interruptions of one CPU that are kept with their parts and timelines: the longest and the first.

use super::{
    keys::{KINDS_COUNT, KeyId, KeyTable},
    replay::EventReplay,
    timeline::RawStep,
    windows::Windows,
};
use crate::{CauseKind, TIMELINE_STEPS_MAX};
use std::{cmp::Reverse, collections::BinaryHeap};

/// Parts of a kept interruption that are listed separately; shorter ones are summed by kind.
const PARTS_MAX: usize = 48;

/// Time and length of an interruption, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TickSpan {
    /// Ticks since the epoch.
    pub(super) at: u64,
    pub(super) length: u64,
}

/// Length, then time in reverse.
pub(super) type Rank = (u64, Reverse<u64>);

impl TickSpan {
    /// Longer is worse; among equal ones, the earlier.
    fn rank(self) -> Rank {
        (self.length, Reverse(self.at))
    }
}

/// A kept interruption whose causes have no names yet.
#[derive(Debug)]
pub(super) struct KeptInterruption {
    pub(super) span: TickSpan,
    pub(super) steps: Vec<RawStep>,
    pub(super) steps_cut_count: u64,
    /// Longest first, if listed separately.
    pub(super) parts: Vec<(KeyId, u64)>,
    window: u64,
    /// Firmware or hypervisor may have caused its unexplained time; `None` until known.
    is_touched: Option<bool>,
}

impl KeptInterruption {
    fn new() -> Self {
        Self {
            span: TickSpan::default(),
            steps: Vec::with_capacity(TIMELINE_STEPS_MAX),
            steps_cut_count: 0,
            parts: Vec::with_capacity(PARTS_MAX + KINDS_COUNT),
            window: 0,
            is_touched: None,
        }
    }

    /// Its parts, with unexplained time in its class.
    pub(super) fn classed_parts(&self, windows: Windows) -> impl Iterator<Item = (KeyId, u64)> + '_ {
        let is_touched = self.is_touched.unwrap_or_else(|| windows.touched_at_end(self.window));
        let unexplained = KeyId::of_kind(CauseKind::Unexplained);
        let firmware = KeyId::of_kind(CauseKind::FirmwareOrHypervisor);
        self.parts.iter().map(move |(id, ticks)| {
            let id = if is_touched && *id == unexplained { firmware } else { *id };
            (id, *ticks)
        })
    }
}

/// Keeps the longest and the first interruptions. Slots are allocated once and then reused.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) worst: Vec<KeptInterruption>,
    /// Slots of the worst by rank, the least bad on top, so that it is replaced first.
    pub(super) ranks: BinaryHeap<Reverse<(Rank, usize)>>,
    worst_count: usize,
    pub(super) first: Vec<KeptInterruption>,
    first_count: usize,
    pub(super) sorted: Vec<(KeyId, u64)>,
}

impl Keeper {
    pub(super) fn new(worst_count: usize, first_count: usize) -> Self {
        Self {
            worst: Vec::with_capacity(worst_count),
            ranks: BinaryHeap::with_capacity(worst_count),
            worst_count,
            first: Vec::with_capacity(first_count),
            first_count,
            sorted: Vec::with_capacity(KeyId::COUNT),
        }
    }

    /// True if an interruption will be kept.
    pub(super) fn wants(&self, span: TickSpan) -> bool {
        self.wants_first() || self.wants_worst(span)
    }

    fn wants_first(&self) -> bool {
        self.first.len() < self.first_count
    }

    fn wants_worst(&self, span: TickSpan) -> bool {
        self.worst.len() < self.worst_count
            || self.ranks.peek().is_some_and(|Reverse((least, _))| span.rank() > *least)
    }

    /// Keeps the result of a replay, if the interruption is wanted.
    pub(super) fn keep(&mut self, span: TickSpan, window: u64, replay: &EventReplay, keys: &KeyTable) {
        let (wants_first, wants_worst) = (self.wants_first(), self.wants_worst(span));
        if !wants_first && !wants_worst {
            return;
        }
        self.sorted.clear();
        self.sorted.extend(replay.parts.iter().filter(|(_, ticks)| *ticks > 0));
        self.sorted.sort_by_key(|(_, ticks)| Reverse(*ticks));
        if wants_first {
            let mut kept = KeptInterruption::new();
            fill(&mut kept, span, window, &self.sorted, replay, keys);
            self.first.push(kept);
        }
        if wants_worst {
            let place = self.worst_place();
            if let Some(kept) = self.worst.get_mut(place) {
                fill(kept, span, window, &self.sorted, replay, keys);
                self.ranks.push(Reverse((span.rank(), place)));
            }
        }
    }

    /// A new slot while available, otherwise that of the least bad.
    fn worst_place(&mut self) -> usize {
        if self.worst.len() < self.worst_count {
            self.worst.push(KeptInterruption::new());
            return self.worst.len() - 1;
        }
        self.ranks.pop().map_or(usize::MAX, |Reverse((_, place))| place)
    }

    /// Assigns unexplained time to its class, if now known, after a window was closed.
    pub(super) fn close_window(&mut self, windows: Windows) {
        for kept in self.worst.iter_mut().chain(&mut self.first) {
            kept.is_touched = kept.is_touched.or_else(|| windows.touched(kept.window));
        }
    }

    /// The worst, longest first, and the first, in time order.
    pub(super) fn finish(mut self) -> (Vec<KeptInterruption>, Vec<KeptInterruption>) {
        self.worst.sort_by_key(|kept| Reverse(kept.span.rank()));
        (self.worst, self.first)
    }
}

fn fill(
    kept: &mut KeptInterruption,
    span: TickSpan,
    window: u64,
    sorted: &[(KeyId, u64)],
    replay: &EventReplay,
    keys: &KeyTable,
) {
    (kept.span, kept.window, kept.is_touched) = (span, window, None);
    kept.steps.clear();
    kept.steps.extend_from_slice(&replay.timeline.steps);
    kept.steps_cut_count = replay.timeline.cut_count;
    let (alone, rest) = sorted.split_at(sorted.len().min(PARTS_MAX));
    kept.parts.clear();
    kept.parts.extend_from_slice(alone);
    for (id, ticks) in rest {
        let kind = KeyId::of_kind(keys.key(*id).kind());
        match kept.parts.iter_mut().find(|(id, _)| *id == kind) {
            Some((_, sum)) => *sum += ticks,
            None => kept.parts.push((kind, *ticks)),
        }
    }
}
