//! Order numbers that are never reused.
//!
//! Each process of a strategy gets a turn from the master, one higher than its predecessor's. An order number
//! consists of the turn and a count, so it needs no memory that other processes could change, and a process
//! that dies leaves nothing behind.

/// Bits of a number that count orders. The higher bits are the turn.
const COUNT_BITS: u32 = 40;
/// Maximum turns of a strategy.
pub const TURNS_MAX: u32 = 1 << (u64::BITS - COUNT_BITS);

/// Allocates the order numbers of one strategy.
#[derive(Debug)]
pub struct Numbers {
    last: u64,
}

impl Numbers {
    /// The numbers of a strategy's turn, counted from 0 and below [`TURNS_MAX`]. They exceed those of earlier
    /// turns. Those of turn 0 are 1, 2, 3 and so on.
    pub fn of_turn(turn: u32) -> Self {
        Self { last: u64::from(turn) << COUNT_BITS }
    }

    /// The last number allocated; one less than the first if there was none.
    pub fn last(&self) -> u64 {
        self.last
    }

    #[inline]
    pub fn take(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_start_at_one_and_turns_do_not_overlap() {
        let mut before = Numbers::of_turn(0);
        assert_eq!([before.take(), before.take()], [1, 2]);
        for turn in [1, 2, TURNS_MAX - 1] {
            let mut numbers = Numbers::of_turn(turn);
            assert!(numbers.take() > before.last());
            before = numbers;
        }
    }
}
