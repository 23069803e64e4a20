//! Exact sums by cause over all interruptions of one CPU.

use super::{
    keys::{CauseKey, KeyId, KeyTable},
    parts::Parts,
    windows::Windows,
};
use crate::CauseKind;

/// Sum of one cause.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) main_count: u64,
    pub(super) ticks: u64,
    pub(super) entry_exit_ticks: u64,
    pub(super) ticks_max: u64,
    /// Interruptions in the open window.
    open_count: u64,
    /// Interruptions in closed windows, and the sum over the windows of their squared numbers.
    pub(super) windowed_count: u64,
    pub(super) windowed_squares: u64,
}

impl Sum {
    fn add(&mut self, ticks: u64, entry_exit_ticks: u64, is_main: bool) {
        self.count += 1;
        self.open_count += 1;
        self.main_count += u64::from(is_main);
        self.ticks = self.ticks.saturating_add(ticks);
        self.entry_exit_ticks = self.entry_exit_ticks.saturating_add(entry_exit_ticks);
        self.ticks_max = self.ticks_max.max(ticks);
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.main_count += other.main_count;
        self.ticks = self.ticks.saturating_add(other.ticks);
        self.entry_exit_ticks = self.entry_exit_ticks.saturating_add(other.entry_exit_ticks);
        self.ticks_max = self.ticks_max.max(other.ticks_max);
        self.windowed_count += other.windowed_count;
        self.windowed_squares = self.windowed_squares.saturating_add(other.windowed_squares);
    }

    fn close_window(&mut self) {
        self.windowed_count += self.open_count;
        self.windowed_squares =
            self.windowed_squares.saturating_add(self.open_count.saturating_mul(self.open_count));
        self.open_count = 0;
    }
}

/// The sums. Unexplained time waits until it is known whether a counter of firmware or hypervisor increased.
#[derive(Debug)]
pub(super) struct Totals {
    sums: Vec<Sum>,
    /// Unexplained time in the open window, and in the one before.
    unexplained: [Sum; 2],
}

impl Totals {
    pub(super) fn new() -> Self {
        Self { sums: vec![Sum::default(); KeyId::COUNT], unexplained: [Sum::default(); 2] }
    }

    pub(super) fn add(&mut self, parts: &Parts, main: KeyId) {
        for (id, ticks) in parts.iter() {
            let sum = if id == KeyId::of_kind(CauseKind::Unexplained) {
                &mut self.unexplained[0]
            } else {
                &mut self.sums[id.index()]
            };
            sum.add(ticks, parts.entry_exit(id), id == main);
        }
    }

    /// After a window was closed: the class of the one before is now known.
    pub(super) fn close_window(&mut self, windows: Windows) {
        self.sums.iter_mut().chain(self.unexplained.first_mut()).for_each(Sum::close_window);
        let [open, before] = self.unexplained;
        let is_touched = windows.open().checked_sub(2).is_some_and(|window| windows.touched_at_end(window));
        self.class(before, is_touched);
        self.unexplained = [Sum::default(), open];
    }

    fn class(&mut self, unexplained: Sum, is_touched: bool) {
        let kind = if is_touched { CauseKind::FirmwareOrHypervisor } else { CauseKind::Unexplained };
        self.sums[KeyId::of_kind(kind).index()].merge(unexplained);
    }

    /// Every cause that had a part, with its sum.
    pub(super) fn finish(mut self, windows: Windows, keys: &KeyTable) -> Vec<(CauseKey, Sum)> {
        let [open, before] = self.unexplained;
        self.class(open, windows.touched_at_end(windows.open()));
        let last = windows.open().checked_sub(1);
        self.class(before, last.is_some_and(|window| windows.touched_at_end(window)));
        let pairs = keys.keys().iter().copied().zip(self.sums);
        pairs.filter(|(_, sum)| sum.count > 0).collect()
    }
}
