//! The sampling loop itself.

use crate::clock::MonotonicCounter;

/// Turns between two checks of the end of the run and the stop flag: some tens of microseconds.
pub const STRETCH_TURNS: u32 = 1_024;

/// End of a stretch of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The reading before the last.
    pub before: u64,
    /// The last reading.
    pub now: u64,
    pub turns: u32,
}

impl Stretch {
    /// The last gap, in ticks. Backward readings give a gap beyond `i64::MAX`.
    #[inline]
    pub fn gap(&self) -> u64 {
        self.now.wrapping_sub(self.before)
    }
}

/// Reads the counter until two readings are `threshold` ticks or more apart, or `turns` turns are made.
///
/// A turn is one reading, one subtraction, one comparison and a count in a register: it accesses no memory,
/// shares nothing, and the end of the run and the stop flag are checked only between stretches. So a turn is no
/// longer than one of a loop that tests a flag in memory each time.
#[expect(clippy::inline_always, reason = "a call would be part of the turn")]
#[inline(always)]
pub fn spin<C: MonotonicCounter>(counter: &C, last: u64, threshold: u64, turns: u32) -> Stretch {
    let mut before = last;
    let mut now = last;
    let mut left = turns;
    while left > 0 {
        left -= 1;
        now = counter.now();
        if now.wrapping_sub(before) >= threshold {
            break;
        }
        before = now;
    }
    Stretch { before, now, turns: turns - left }
}
