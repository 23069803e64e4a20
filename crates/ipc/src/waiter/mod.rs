//! How a subscriber waits: it looks all the time, it sleeps, or it looks for about as long as a sleep would cost and sleeps
//! then.

mod calibration;
mod policy;
#[cfg(test)]
mod tests;

pub use calibration::WakeCost;
pub use policy::{RunDelay, SPIN_NS_MAX, SpinPolicy};

use crate::{
    doorbell::{ParkSeveral, Waited},
    inbox::Inbox,
    region::Region,
};
use std::{
    fs::File,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

/// How a subscriber waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It looks all the time, and takes a whole core.
    Fast,
    /// It sleeps at once.
    Parked,
    /// It looks as long as its policy says, and sleeps then.
    Adaptive(SpinPolicy),
}

/// What the waits of a subscriber came to. A wait that found something at once is none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitCounts {
    /// It looked, and something came.
    pub spins_paid: u64,
    /// It looked, nothing came, and it slept after all, or its time was over.
    pub spins_unpaid: u64,
    /// It slept.
    pub parks: u64,
}

/// After how many spins that paid the core is looked at again. A spin that does not pay is followed by a sleep, and before
/// each of those it is looked at anyway.
const LOOK_AFTER_SPINS: u64 = 256;
/// Looks between two of the clock.
const LOOKS: u32 = 16;

/// One thread's way to wait.
#[derive(Debug)]
pub struct Waiter {
    mode: Mode,
    counts: WaitCounts,
    core: Core,
    /// Whether others wanted the core when it was last looked at.
    is_core_wanted: bool,
}

/// This thread's delays, out of /proc.
#[derive(Debug)]
enum Core {
    /// It is opened by the thread that waits, since the file is that thread's.
    NotOpened,
    Known {
        schedstat: File,
        last: RunDelay,
    },
    /// The kernel does not tell.
    Unknown,
}

impl Waiter {
    /// A waiter for one thread.
    pub fn new(mode: Mode) -> Self {
        Self { mode, counts: WaitCounts::default(), core: Core::NotOpened, is_core_wanted: false }
    }

    /// What its waits came to.
    pub fn counts(&self) -> WaitCounts {
        self.counts
    }

    /// Waits until the inbox has something, or `longest` is over. In mode [`Mode::Fast`] no system call is made.
    pub fn wait<R: Region>(
        &mut self,
        inbox: &Inbox<R>,
        park: &impl ParkSeveral,
        longest: Duration,
    ) -> Waited {
        self.wait_several(&[inbox], park, longest)
    }

    /// Waits until one of this thread's inboxes has something, or `longest` is over.
    pub fn wait_several<R: Region>(
        &mut self,
        inboxes: &[&Inbox<R>],
        park: &impl ParkSeveral,
        longest: Duration,
    ) -> Waited {
        let is_ready = || inboxes.iter().any(|inbox| inbox.is_ready());
        if is_ready() {
            return Waited::Ready;
        }
        let budget = match self.mode {
            Mode::Fast => longest,
            Mode::Parked => Duration::ZERO,
            Mode::Adaptive(policy) => self.budget(policy).min(longest),
        };
        if !budget.is_zero() {
            for inbox in inboxes {
                inbox.set_spinning(true);
            }
            let has_paid = spin(budget, is_ready);
            for inbox in inboxes {
                inbox.set_spinning(false);
            }
            if has_paid {
                self.counts.spins_paid += 1;
                return Waited::Ready;
            }
            self.counts.spins_unpaid += 1;
            if budget == longest {
                return Waited::TimedOut;
            }
        }
        if let Mode::Adaptive(policy) = self.mode {
            // Now, for nothing is there to be done; after the sleep a record would wait for it.
            self.look_at_core(policy);
        }
        self.counts.parks += 1;
        let rest = longest.saturating_sub(budget);
        match inboxes {
            [one] => one.wait(park, rest),
            several => Inbox::wait_several(several, park, rest),
        }
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
            // Who does not know whether others want the core does not hold it against them.
            Core::Unknown => true,
        };
    }
}

/// Looks until something is there, or the time is over.
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
