//! The promise that a program waits for a quarter of the time at most.

/// The program runs this many times as long as it waits, and the waiting is a part of it.
const RUN_PER_WAIT: i64 = 4;
/// Waiting that is allowed at once, in nanoseconds.
const AT_ONCE_NS: i64 = 25_000_000;

/// Budget of waiting: elapsed time fills it, and waiting takes from it. It holds only a little, so that the promise
/// also holds for a program that starts to be stopped often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quarter {
    debt_ns: i64,
    is_resting: bool,
}

impl Quarter {
    /// Adds time that passed, and how long the program waited in it.
    pub fn pass(&mut self, elapsed_ns: u64, waited_ns: u64) {
        let number = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let debt_ns = self.debt_ns.saturating_add(number(waited_ns).saturating_mul(RUN_PER_WAIT));
        self.debt_ns = debt_ns.saturating_sub(number(elapsed_ns)).max(-AT_ONCE_NS * RUN_PER_WAIT);
        self.is_resting = self.debt_ns > if self.is_resting { -AT_ONCE_NS * RUN_PER_WAIT / 2 } else { 0 };
    }

    /// True if the program must be left alone for a while.
    pub fn is_used_up(&self) -> bool {
        self.is_resting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share that a program waits whose every step of 100 us waits for so much, until the quarter is used up.
    fn share(waited_ns: u64, steps: u64, idle_steps: u64) -> f64 {
        let (mut quarter, mut waited) = (Quarter::default(), 0);
        for step in 0..idle_steps + steps {
            let wait_ns = if step < idle_steps || quarter.is_used_up() { 0 } else { waited_ns };
            waited += wait_ns;
            quarter.pass(100_000, wait_ns);
        }
        waited as f64 / (steps * 100_000) as f64
    }

    #[test]
    fn no_program_waits_for_more_than_a_quarter() {
        for waited_ns in [0, 10_000, 24_000, 50_000, 100_000] {
            let expected = (waited_ns as f64 / 100_000.0).min(0.25);
            for idle_steps in [0, 1_000_000] {
                let share = share(waited_ns, 100_000, idle_steps);
                assert!(
                    (expected - 0.02..=expected + 0.01).contains(&share),
                    "{waited_ns} {idle_steps}: {share}"
                );
            }
        }
        assert!(share(u64::MAX, 10, 0) > 0.0, "no overflow");
    }

    #[test]
    fn it_rests_for_a_while_and_not_for_a_step() {
        let mut quarter = Quarter::default();
        quarter.pass(0, 1_000_000);
        assert!(quarter.is_used_up());
        quarter.pass(5_000_000, 0);
        assert!(quarter.is_used_up(), "the debt is paid, and nothing is saved yet");
        quarter.pass(60_000_000, 0);
        assert!(!quarter.is_used_up());
    }
}
