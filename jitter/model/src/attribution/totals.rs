//! Exact sums by cause over all interruptions of one CPU.

use super::{
    keys::{CauseKey, KeyId, KeyTable},
    parts::Parts,
    windows::Windows,
};
use crate::CauseKind;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) main_count: u64,
    pub(super) ticks: u64,
    pub(super) entry_exit_ticks: u64,
    pub(super) ticks_max: u64,
}

impl Sum {
    fn add(&mut self, ticks: u64, entry_exit_ticks: u64, is_main: bool) {
        let main_count = is_main.into();
        self.merge(Self { count: 1, main_count, ticks, entry_exit_ticks, ticks_max: ticks });
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.main_count += other.main_count;
        self.ticks = self.ticks.saturating_add(other.ticks);
        self.entry_exit_ticks = self.entry_exit_ticks.saturating_add(other.entry_exit_ticks);
        self.ticks_max = self.ticks_max.max(other.ticks_max);
    }
}

/// Interruptions with one cause by whole seconds of the run, in time order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BySecond {
    /// The second of the last one.
    second: u64,
    /// Interruptions in it so far.
    open_count: u64,
    /// Interruptions in the seconds before.
    pub(super) count: u64,
    /// Sum over these seconds of the squared numbers of interruptions.
    pub(super) square_sum: u64,
}

impl BySecond {
    fn add(&mut self, second: u64, count: u64) {
        if second != self.second {
            self.close();
            self.second = second;
        }
        self.open_count += count;
    }

    fn close(&mut self) {
        self.count += self.open_count;
        self.square_sum = self.square_sum.saturating_add(self.open_count.saturating_mul(self.open_count));
        self.open_count = 0;
    }

    /// The sums over a run of so many whole seconds. What is later belongs to an incomplete second.
    fn finish(mut self, whole_seconds: u64) -> Self {
        if self.second < whole_seconds {
            self.close();
        }
        self
    }
}

/// Unexplained time of a window, until it is known whether a counter of firmware or hypervisor increased.
#[derive(Debug, Default)]
struct Waiting {
    sum: Sum,
    /// Seconds of the run with their interruptions; a window has few.
    seconds: Vec<(u64, u64)>,
}

impl Waiting {
    fn add(&mut self, second: u64, ticks: u64, entry_exit_ticks: u64, is_main: bool) {
        self.sum.add(ticks, entry_exit_ticks, is_main);
        match self.seconds.last_mut() {
            Some((last, count)) if *last == second => *count += 1,
            _ => self.seconds.push((second, 1)),
        }
    }

    fn clear(&mut self) {
        self.sum = Sum::default();
        self.seconds.clear();
    }
}

/// The sums. Unexplained time waits until it is known whether a counter of firmware or hypervisor increased.
#[derive(Debug)]
pub(super) struct Totals {
    sums: Vec<(Sum, BySecond)>,
    /// Unexplained time in the open window, and in the one before.
    unexplained: [Waiting; 2],
}

impl Totals {
    pub(super) fn new() -> Self {
        Self {
            sums: vec![<(Sum, BySecond)>::default(); KeyId::COUNT],
            unexplained: [Waiting::default(), Waiting::default()],
        }
    }

    /// Adds an interruption that started in this second of the run.
    pub(super) fn add(&mut self, parts: &Parts, main: KeyId, second: u64) {
        for (id, ticks) in parts.iter() {
            if id == KeyId::of_kind(CauseKind::Unexplained) {
                self.unexplained[0].add(second, ticks, parts.entry_exit(id), id == main);
            } else {
                let (sum, by_second) = &mut self.sums[id.index()];
                sum.add(ticks, parts.entry_exit(id), id == main);
                by_second.add(second, 1);
            }
        }
    }

    /// After a window was closed: the class of the one before is now known.
    pub(super) fn close_window(&mut self, windows: Windows) {
        let is_touched = windows.open().checked_sub(2).is_some_and(|window| windows.touched_at_end(window));
        self.class(1, is_touched);
        self.unexplained.swap(0, 1);
    }

    /// Adds the unexplained time of a window to its kind, now known.
    fn class(&mut self, window: usize, is_touched: bool) {
        let kind = if is_touched { CauseKind::FirmwareOrHypervisor } else { CauseKind::Unexplained };
        let waiting = &mut self.unexplained[window];
        let (sum, by_second) = &mut self.sums[KeyId::of_kind(kind).index()];
        sum.merge(waiting.sum);
        waiting.seconds.iter().for_each(|(second, count)| by_second.add(*second, *count));
        waiting.clear();
    }

    /// Every cause that had a part, with its sums.
    pub(super) fn finish(
        mut self,
        windows: Windows,
        keys: &KeyTable,
        whole_seconds: u64,
    ) -> Vec<(CauseKey, Sum, BySecond)> {
        let last = windows.open().checked_sub(1);
        self.class(1, last.is_some_and(|window| windows.touched_at_end(window)));
        self.class(0, windows.touched_at_end(windows.open()));
        let pairs = keys.keys.iter().copied().zip(self.sums);
        pairs
            .filter(|(_, (sum, _))| sum.count > 0)
            .map(|(key, (sum, by_second))| (key, sum, by_second.finish(whole_seconds)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_second(counts: &[(u64, u64)], whole_seconds: u64) -> (u64, u64) {
        let mut found = BySecond::default();
        for (second, count) in counts {
            found.add(*second, *count);
        }
        let found = found.finish(whole_seconds);
        (found.count, found.square_sum)
    }

    #[test]
    fn whole_seconds_count_and_the_incomplete_one_does_not() {
        assert_eq!(by_second(&[], 3), (0, 0));
        assert_eq!(by_second(&[(0, 2), (0, 1), (1, 3), (2, 3)], 3), (9, 27));
        assert_eq!(by_second(&[(0, 3), (2, 3)], 2), (3, 9));
        assert_eq!(by_second(&[(0, 3)], 0), (0, 0));
    }

    /// A second that two windows share is one second.
    #[test]
    fn unexplained_time_is_counted_by_seconds_across_windows() {
        let mut totals = Totals::new();
        let mut windows = Windows::default();
        let unexplained = KeyId::of_kind(CauseKind::Unexplained);
        let mut parts = Parts::default();
        parts.begin(unexplained);
        for second in 0..6 {
            for place in 0..10 {
                totals.add(&parts, unexplained, second);
                if place == 6 {
                    windows.close(false);
                    totals.close_window(windows);
                }
            }
        }
        let found = totals.finish(windows, &KeyTable::new(), 5);
        let [(_, sum, by_second)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((sum.count, by_second.count, by_second.square_sum), (60, 50, 500));
    }
}
