//! Waits of a subscriber: it spins, it sleeps, or it spins for about as long as a sleep would cost and then sleeps.

mod calibration;
#[cfg(test)]
mod tests;

pub use calibration::wake_ns;

use crate::{
    doorbell::{Park, Waited},
    inbox::Inbox,
    region::Region,
};
use std::{
    fs::File,
    ops::ControlFlow,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

/// Longest spin: no wake should take longer.
pub const SPIN_NS_MAX: u64 = 200_000;

/// Waiting mode of a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Spins, which takes a whole core.
    Fast,
    /// Sleeps at once, without spinning.
    Parked,
    /// Spins as long as its policy allows, then sleeps.
    Adaptive(SpinPolicy),
}

/// Scheduler statistics of a thread since its start, of /proc/PID/task/TID/schedstat (since Linux 2.6.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunDelay {
    /// Time during which it was runnable while something else ran.
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

/// Policy that limits the spin before a sleep: a pure rule.
///
/// Spinning for as long as a sleep and a wake take costs at most twice the optimum, whenever the record
/// arrives; a little more covers the spread of wakes. That holds while the core has nothing else to do. If
/// other threads want it, spinning takes time from them that a sleep would give, so the budget is zero.
///
/// Whether others want the core follows from the thread's [`RunDelay`]. Involuntary switches would count only
/// interrupted spins: a sleeping thread is never interrupted, so a thread that stopped spinning could never
/// learn that it may resume. The run delay grows in both cases. A wake on an idle core causes a little of it
/// too, hence the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpinPolicy {
    wake_ns: u64,
}

impl SpinPolicy {
    /// The policy of a host whose wakes take this long ([`wake_ns`]).
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

/// How often the thread's waits ended within its budget, by the two waits before each: a pure rule.
///
/// A wait that will be long is not worth a spin, and what follows the last waits is likely to be what followed such waits
/// before. A mean would not show it: an order's answers come in microseconds, the next quote in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpinHistory {
    /// Share of short waits in 256ths, of which the last one is an eighth: after two long waits, a long and a short one, a
    /// short and a long one, two short ones.
    short: [u32; 4],
    /// Which of these was last.
    last: usize,
}

impl Default for SpinHistory {
    /// Of a thread that has not waited yet: spins until it knows better.
    fn default() -> Self {
        Self { short: [256; 4], last: 0 }
    }
}

impl SpinHistory {
    /// Adds a wait of that length, with the budget that it had or would have had.
    pub fn add(&mut self, waited_ns: u64, budget_ns: u64) {
        // A sleep that the record ended within the budget takes the time of a wake more, which is half of it.
        let is_short = waited_ns <= budget_ns.saturating_add(budget_ns / 2);
        if let Some(short) = self.short.get_mut(self.last) {
            *short = *short - *short / 8 + if is_short { 32 } else { 0 };
        }
        self.last = (self.last << 1 | usize::from(is_short)) & 3;
    }

    /// True if half of the waits after two such ones were short.
    pub fn is_soon(&self) -> bool {
        self.short.get(self.last).is_some_and(|short| *short >= 128)
    }
}

/// Counts of a subscriber's waits. Waits that found something at once are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitCounts {
    /// Spins that ended with a record.
    pub spins_paid: u64,
    /// Spins without a record, which ended in a sleep or a timeout.
    pub spins_unpaid: u64,
    pub parks: u64,
}

/// Successful spins after which the core's load is checked again. An unsuccessful spin is followed by a sleep,
/// before which it is checked anyway.
const LOOK_AFTER_SPINS: u64 = 256;
/// Polls between two reads of the clock.
const LOOKS: u32 = 16;

/// Waits on behalf of one thread.
#[derive(Debug)]
pub struct Waiter {
    mode: Mode,
    counts: WaitCounts,
    core: Core,
    /// Other threads wanted the core at the last check.
    is_core_wanted: bool,
    history: SpinHistory,
}

/// This thread's run delay, from /proc.
#[derive(Debug)]
enum Core {
    /// Opened by the waiting thread, because the file is per thread.
    NotOpened,
    Known {
        schedstat: File,
        last: RunDelay,
    },
    /// The kernel does not expose it.
    Unknown,
}

impl Waiter {
    /// A waiter for one thread.
    pub fn new(mode: Mode) -> Self {
        let (counts, history) = (WaitCounts::default(), SpinHistory::default());
        Self { mode, counts, core: Core::NotOpened, is_core_wanted: false, history }
    }

    pub fn counts(&self) -> WaitCounts {
        self.counts
    }

    /// Waits until the inbox has something, or `longest` has elapsed. Mode [`Mode::Fast`] makes no system call.
    pub fn wait<R: Region>(&mut self, inbox: &Inbox<R>, park: &impl Park, longest: Duration) -> Waited {
        if inbox.is_ready() {
            return Waited::Ready;
        }
        if self.mode != Mode::Parked {
            return self.wait_spinning(inbox, park, longest);
        }
        self.counts.parks += 1;
        inbox.wait(park, longest)
    }

    /// Apart, so that the path of a parked subscriber is short.
    #[inline(never)]
    fn wait_spinning<R: Region>(&mut self, inbox: &Inbox<R>, park: &impl Park, longest: Duration) -> Waited {
        let start = Instant::now();
        let waited = match self.spin_first(inbox, longest) {
            ControlFlow::Break(waited) => waited,
            ControlFlow::Continue(rest) => {
                self.counts.parks += 1;
                inbox.wait(park, rest)
            }
        };
        if let Mode::Adaptive(policy) = self.mode {
            let waited_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.history.add(waited_ns, policy.budget_ns(false));
        }
        waited
    }

    /// Spins, unless other threads want the core or the wait is likely to be long. Returns the time that is left for a
    /// sleep, if one should follow.
    fn spin_first<R: Region>(
        &mut self,
        inbox: &Inbox<R>,
        longest: Duration,
    ) -> ControlFlow<Waited, Duration> {
        let budget = match self.mode {
            Mode::Adaptive(_) if !self.history.is_soon() => Duration::ZERO,
            Mode::Adaptive(policy) => self.budget(policy).min(longest),
            _ => longest,
        };
        if !budget.is_zero() {
            inbox.set_spinning(true);
            let has_paid = spin(budget, || inbox.is_ready());
            inbox.set_spinning(false);
            if has_paid {
                self.counts.spins_paid += 1;
                return ControlFlow::Break(Waited::Ready);
            }
            self.counts.spins_unpaid += 1;
            if budget == longest {
                return ControlFlow::Break(Waited::TimedOut);
            }
        }
        if let Mode::Adaptive(policy) = self.mode {
            // Done before the sleep, when there is nothing else to do; after it a record would be delayed.
            self.look_at_core(policy);
        }
        ControlFlow::Continue(longest.saturating_sub(budget))
    }

    fn budget(&mut self, policy: SpinPolicy) -> Duration {
        let is_first = matches!(self.core, Core::NotOpened);
        if is_first || self.counts.spins_paid % LOOK_AFTER_SPINS == LOOK_AFTER_SPINS - 1 {
            self.look_at_core(policy);
        }
        Duration::from_nanos(policy.budget_ns(self.is_core_wanted))
    }

    fn look_at_core(&mut self, policy: SpinPolicy) {
        self.is_core_wanted = match &mut self.core {
            Core::Known { schedstat, last } => match read(schedstat) {
                Some(now) => policy.is_core_wanted(std::mem::replace(last, now), now),
                None => true,
            },
            Core::NotOpened => {
                let opened = File::open("/proc/thread-self/schedstat").ok();
                let known = opened.and_then(|schedstat| read(&schedstat).map(|last| (schedstat, last)));
                let is_known = known.is_some();
                self.core = known.map_or(Core::Unknown, |(schedstat, last)| Core::Known { schedstat, last });
                !is_known
            }
            // Without that information, assume that others want the core.
            Core::Unknown => true,
        };
    }
}

/// Spins until something is ready, or the budget has elapsed.
fn spin(budget: Duration, is_ready: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..LOOKS {
            if is_ready() {
                return true;
            }
            crate::relax();
        }
        if start.elapsed() >= budget {
            return false;
        }
    }
}

fn read(schedstat: &File) -> Option<RunDelay> {
    let mut bytes = [0; 96];
    let count = schedstat.read_at(&mut bytes, 0).ok()?;
    RunDelay::parse(std::str::from_utf8(bytes.get(..count)?).ok()?)
}
