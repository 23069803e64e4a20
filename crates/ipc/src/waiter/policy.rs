//! How long to look before sleeping: a rule, apart from what it is applied to.
//!
//! To look for as long as a sleep and a wake take costs twice the best choice at worst, whenever the record comes; a little
//! more hides the spread of the wakes. That holds while the core has nothing else to do. Where others want it, looking
//! takes from them what a sleep would have given, so nothing is spent on it.
//!
//! Whether others want it is told by the thread's own run delay (/proc/PID/task/TID/schedstat, second field, since Linux
//! 2.6.9): the time it was runnable and something else ran. Counting involuntary switches tells only of those that
//! interrupted it, and one that sleeps is never interrupted; so a thread that had stopped looking would not learn that it may
//! begin again. The run delay grows in both cases. A wake on an idle core has a little of it too, hence the threshold.

/// The longest spin: what no wake should take.
pub const SPIN_NS_MAX: u64 = 200_000;

/// What the scheduler says of a thread since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunDelay {
    /// How long it was runnable and did not run.
    pub delayed_ns: u64,
    /// How often it was given a CPU.
    pub slices: u64,
}

impl RunDelay {
    /// Out of the text of a schedstat file: time run, time delayed, slices.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace().skip(1).map(|field| field.parse().ok());
        Some(Self { delayed_ns: fields.next()??, slices: fields.next()?? })
    }
}

/// How long to look before sleeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpinPolicy {
    wake_ns: u64,
}

impl SpinPolicy {
    /// For a host where a wake takes so long ([`crate::waiter::WakeCost`]).
    pub fn new(wake_ns: u64) -> Self {
        Self { wake_ns }
    }

    /// How long to look, given whether others want the core.
    pub fn budget_ns(&self, is_core_wanted: bool) -> u64 {
        if is_core_wanted { 0 } else { self.wake_ns.saturating_mul(2).min(SPIN_NS_MAX) }
    }

    /// Whether others wanted the core between two looks: each time that it was given a CPU it waited for longer than two
    /// wakes take, on average.
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
    fn twice_the_wake_within_bounds_or_nothing() {
        assert_eq!(SpinPolicy::new(12_000).budget_ns(false), 24_000);
        assert_eq!(SpinPolicy::new(u64::MAX).budget_ns(false), SPIN_NS_MAX);
        assert_eq!(SpinPolicy::new(12_000).budget_ns(true), 0);
    }

    #[test]
    fn a_core_is_wanted_when_the_thread_waited_for_it() {
        let policy = SpinPolicy::new(10_000);
        let at = |delayed_ns, slices| RunDelay { delayed_ns, slices };
        assert!(!policy.is_core_wanted(at(5, 5), at(5, 5)));
        assert!(!policy.is_core_wanted(at(0, 0), at(30_000, 2)), "wakes on an idle core");
        assert!(policy.is_core_wanted(at(0, 0), at(4_000_000, 2)), "another thread's slice");
        assert!(!policy.is_core_wanted(at(9, 9), at(0, 0)), "nonsense");
    }

    #[test]
    fn the_file_is_three_numbers() {
        let text = "1635153 10187365 3\n";
        assert_eq!(RunDelay::parse(text), Some(RunDelay { delayed_ns: 10_187_365, slices: 3 }));
        assert_eq!(
            (RunDelay::parse("1 2"), RunDelay::parse("1 x 3"), RunDelay::parse("")),
            (None, None, None)
        );
    }
}
