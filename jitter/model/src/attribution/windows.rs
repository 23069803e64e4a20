//! Tracks whether a counter of firmware or hypervisor increased around the time of an interruption.

/// Windows of about a second, numbered from 0, and whether steal time or the SMI count increased in each.
///
/// The kernel accounts steal time at the next tick and publishes it in units of 10 ms, so time stolen in one
/// window may appear in the next. A window therefore counts as affected if the counter increased in it or in
/// the next.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Windows {
    /// Number of the open window.
    open: u64,
    /// Bit 0 is for the last closed window, bit 1 for the one before, and so on.
    moved: u64,
}

impl Windows {
    pub(super) fn open(self) -> u64 {
        self.open
    }

    pub(super) fn close(&mut self, moved: bool) {
        self.open += 1;
        self.moved = (self.moved << 1) | u64::from(moved);
    }

    fn has_moved(self, window: u64) -> bool {
        let back = self.open.saturating_sub(window);
        (1..=64).contains(&back) && (self.moved >> (back - 1)) & 1 == 1
    }

    /// Returns whether a window is affected; `None` until the one after it is closed. Remembers 64 windows.
    pub(super) fn touched(self, window: u64) -> Option<bool> {
        (self.open >= window.saturating_add(2)).then(|| self.touched_at_end(window))
    }

    /// The same if no further window will be closed.
    pub(super) fn touched_at_end(self, window: u64) -> bool {
        self.has_moved(window) || self.has_moved(window.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_touches_its_window_and_the_one_before() {
        let mut windows = Windows::default();
        for moved in [false, false, true, false] {
            windows.close(moved);
        }
        let all: Vec<Option<bool>> = (0..5).map(|window| windows.touched(window)).collect();
        assert_eq!(all, [Some(false), Some(true), Some(true), None, None]);
        assert!(
            !windows.touched_at_end(3) && !windows.touched_at_end(4) && !windows.touched_at_end(u64::MAX)
        );
        windows.close(true);
        assert_eq!(windows.touched(3), Some(true));
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let mut windows = Windows::default();
        windows.close(true);
        for _ in 0..63 {
            windows.close(false);
        }
        assert_eq!(windows.touched(0), Some(true));
        windows.close(false);
        assert_eq!(windows.touched(0), Some(false));
    }
}
