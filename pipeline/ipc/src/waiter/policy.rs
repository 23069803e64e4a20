//! Limit of the time spent spinning before a sleep: a pure rule.
//!
//! Spinning for as long as a sleep and a wake take costs at most twice the optimum, whenever the record
//! arrives; a little more covers the spread of wakes. That holds while the core has nothing else to do. If
//! other threads want it, spinning takes time from them that a sleep would give, so the budget is zero.
//!
//! Whether others want the core follows from the thread's run delay (/proc/PID/task/TID/schedstat, second
//! field, since Linux 2.6.9): the time during which it was runnable while something else ran. Involuntary
//! switches would count only interrupted spins: a sleeping thread is never interrupted, so a thread that
//! stopped spinning could never learn that it may resume. The run delay grows in both cases. A wake on an idle
//! core causes a little of it too, hence the threshold.

/// Longest spin: no wake should take longer.
pub const SPIN_NS_MAX: u64 = 200_000;

/// Scheduler statistics of a thread since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunDelay {
    /// Time during which it was runnable but not running.
    pub delayed_ns: u64,
    pub slices: u64,
}

impl RunDelay {
    /// Parses a schedstat file: time run, time delayed, slices.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace().skip(1).map(|field| field.parse().ok());
        Some(Self { delayed_ns: fields.next()??, slices: fields.next()?? })
    }
}

/// Policy that limits the spin before a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpinPolicy {
    wake_ns: u64,
}

impl SpinPolicy {
    /// The policy of a host whose wakes take this long ([`crate::waiter::WakeCost`]).
    pub fn new(wake_ns: u64) -> Self {
        Self { wake_ns }
    }

    /// Returns the longest spin before a sleep, ns; 0 if other threads want the core.
    pub fn budget_ns(&self, is_core_wanted: bool) -> u64 {
        if is_core_wanted { 0 } else { self.wake_ns.saturating_mul(2).min(SPIN_NS_MAX) }
    }

    /// Returns true if other threads wanted the core between two checks: the average delay per slice exceeded the time
    /// of two wakes.
    pub fn is_core_wanted(&self, before: RunDelay, now: RunDelay) -> bool {
        let slices = now.slices.saturating_sub(before.slices);
        let delayed_ns = now.delayed_ns.saturating_sub(before.delayed_ns);
        delayed_ns > slices.saturating_mul(self.wake_ns).saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_twice_the_wake_within_bounds_or_zero() {
        assert_eq!(SpinPolicy::new(12_000).budget_ns(false), 24_000);
        assert_eq!(SpinPolicy::new(u64::MAX).budget_ns(false), SPIN_NS_MAX);
        assert_eq!(SpinPolicy::new(12_000).budget_ns(true), 0);
    }

    #[test]
    fn a_core_is_wanted_if_the_thread_was_delayed() {
        let policy = SpinPolicy::new(10_000);
        let at = |delayed_ns, slices| RunDelay { delayed_ns, slices };
        assert!(!policy.is_core_wanted(at(5, 5), at(5, 5)));
        assert!(!policy.is_core_wanted(at(0, 0), at(30_000, 2)), "wakes on an idle core");
        assert!(policy.is_core_wanted(at(0, 0), at(4_000_000, 2)), "another thread's slice");
        assert!(!policy.is_core_wanted(at(9, 9), at(0, 0)), "nonsense");
    }

    #[test]
    fn the_file_holds_three_numbers() {
        let text = "1635153 10187365 3\n";
        assert_eq!(RunDelay::parse(text), Some(RunDelay { delayed_ns: 10_187_365, slices: 3 }));
        assert_eq!(
            (RunDelay::parse("1 2"), RunDelay::parse("1 x 3"), RunDelay::parse("")),
            (None, None, None)
        );
    }
}
