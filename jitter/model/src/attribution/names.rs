//! Names of causes, when a run has ended and all names are known.

use super::{
    engine::Sleep,
    keys::{CauseKey, kind_of},
};
use crate::{Cause, CauseKind, cause::LOCAL_TIMER};
use lowlat_host::CpuSet;
use lowlat_trace::{Activity, Hold, SIGNALS, SOFTIRQS, TraceNames, Vector};
use std::collections::BTreeSet;

/// The name of the idle task as a cause. It runs while the measured thread is not allowed to.
pub const IDLE_NAME: &str = "idle: the thread was stopped or throttled";

/// Its name if the measured thread waited for a timer: the time until the CPU has left its idle state.
pub const ASLEEP_NAME: &str = "idle: the processor had to wake";

/// The priority of a thread of the deadline class.
pub const DEADLINE: &str = "deadline";

/// The name of causes beyond the maximum number of distinct ones.
const OTHER_NAME: &str = "other";

/// Converts keys to causes with names.
#[derive(Debug, Clone, Copy)]
pub struct CauseNames<'a> {
    /// Names from the trace and the symbol table.
    pub names: &'a TraceNames,
    /// Thread IDs of lowlat itself.
    pub own_tids: &'a BTreeSet<i32>,
    pub sleep: Sleep,
}

impl CauseNames<'_> {
    /// Returns the cause of a key.
    pub fn cause(&self, key: CauseKey) -> Cause {
        match key {
            CauseKey::Activity(Activity::Thread(tid)) => self.thread(tid),
            CauseKey::Activity(activity) => self.activity(activity),
            CauseKey::Kind(kind) if key.is_named() => Cause::named(kind, OTHER_NAME),
            CauseKey::Kind(kind) => Cause::of(kind),
        }
    }

    /// The CPUs on which a thread may run, if that is known.
    pub fn allowed_cpus(&self, key: CauseKey) -> Option<CpuSet> {
        let CauseKey::Activity(Activity::Thread(tid)) = key else { return None };
        self.names.threads.get(&tid)?.allowed_cpus.clone()
    }

    fn activity(&self, activity: Activity) -> Cause {
        let kind = kind_of(activity);
        match activity {
            Activity::Irq(number) => Cause {
                number: Some(i64::from(number)),
                ..Cause::named(kind, self.names.irqs.get(&number).map_or("", String::as_str))
            },
            Activity::Vector(vector) => Cause::named(kind, vector_name(vector)),
            Activity::TimerInterrupt(function) => {
                Cause::named(kind, format!("{LOCAL_TIMER} ({})", self.function(function)))
            }
            Activity::Softirq(number) => Cause::named(kind, name_in("", &SOFTIRQS, Some(number), number)),
            Activity::Signal(number) => Cause {
                number: Some(i64::from(number)),
                ..Cause::named(kind, name_in("SIG", &SIGNALS, number.checked_sub(1), number))
            },
            // The limit comes with the sampler's own real-time class.
            Activity::Held(hold) => {
                Cause { is_own: hold == Hold::Limit, ..Cause::named(kind, hold_name(hold)) }
            }
            _ => activity
                .function()
                .map_or_else(|| Cause::of(kind), |function| Cause::named(kind, self.function(function))),
        }
    }

    /// An exit event without its entry may not name the function that ended.
    fn function(&self, address: u64) -> String {
        match self.names.functions.get(&address) {
            Some(name) => name.clone(),
            None if address == 0 => "function not known".into(),
            None => format!("{address:#x}"),
        }
    }

    fn thread(&self, tid: i32) -> Cause {
        if tid == 0 {
            let name = if self.sleep == Sleep::Timer { ASLEEP_NAME } else { IDLE_NAME };
            return Cause::named(CauseKind::Thread, name);
        }
        let thread = self.names.threads.get(&tid);
        Cause {
            number: Some(i64::from(tid)),
            priority: thread.and_then(|thread| priority_text(thread.prio)),
            is_own: self.own_tids.contains(&tid),
            ..Cause::named(CauseKind::Thread, thread.map_or("", |thread| &thread.comm))
        }
    }
}

/// The name at a place of a table with this start, otherwise the number.
fn name_in(start: &str, names: &[&str], place: Option<u8>, number: u8) -> String {
    let name = place.and_then(|place| names.get(usize::from(place)));
    name.map_or_else(|| number.to_string(), |name| format!("{start}{name}"))
}

/// The scheduling for a priority on the scheduler's scale (see [`lowlat_trace::ThreadName::prio`]).
fn priority_text(prio: i32) -> Option<String> {
    match prio {
        ..0 => Some(DEADLINE.into()),
        0..=98 => Some(format!("real-time {}", 99 - prio)),
        100..=139 => Some(format!("nice {}", prio - 120)),
        _ => None,
    }
}

fn hold_name(hold: Hold) -> &'static str {
    match hold {
        Hold::Stopped => "stopped (SIGSTOP)",
        Hold::Traced => "stopped (ptrace)",
        Hold::Blocked => "blocked in the kernel",
        Hold::Limit => "throttled (real-time limit)",
        Hold::Quota => "throttled (CPU quota)",
    }
}

fn vector_name(vector: Vector) -> &'static str {
    match vector {
        Vector::LocalTimer => LOCAL_TIMER,
        Vector::Reschedule => "reschedule",
        Vector::CallFunction => "call function",
        Vector::CallFunctionSingle => "call function single",
        Vector::IrqWork => "irq work",
        Vector::Thermal => "thermal",
        Vector::Threshold => "threshold",
        Vector::DeferredError => "deferred error",
        Vector::ErrorApic => "APIC error",
        Vector::SpuriousApic => "spurious APIC",
        Vector::PlatformIpi => "platform IPI",
        Vector::OtherIpi => "IPI",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_trace::ThreadName;

    fn label(key: CauseKey) -> String {
        let mut names = TraceNames::default();
        names.irqs.insert(47, "nvme0q3".into());
        names.functions.insert(0xffff_ffff_8112_3450, "tick_nohz_handler".into());
        for (tid, comm, prio) in [(9, "migration/1", 0), (50, "irq/47-nvme", 49), (60, "sugov:0", -1)] {
            names.threads.insert(tid, ThreadName { comm: comm.into(), prio, allowed_cpus: None });
        }
        names.threads.insert(77, ThreadName { comm: "lowlat".into(), prio: 110, allowed_cpus: None });
        let own_tids = BTreeSet::from([77]);
        let cause = CauseNames { names: &names, own_tids: &own_tids, sleep: Sleep::Never }.cause(key);
        format!("{}{}", cause.label(), if cause.is_own { " (own)" } else { "" })
    }

    #[test]
    fn labels() {
        let of = |activity| label(CauseKey::Activity(activity));
        assert_eq!(of(Activity::Irq(47)), "irq 47 nvme0q3");
        assert_eq!(of(Activity::Irq(48)), "irq 48");
        assert_eq!(of(Activity::Vector(Vector::LocalTimer)), "local timer");
        assert_eq!(of(Activity::TimerInterrupt(0xffff_ffff_8112_3450)), "local timer (tick_nohz_handler)");
        assert_eq!(of(Activity::Softirq(9)), "softirq RCU");
        assert_eq!(of(Activity::Softirq(200)), "softirq 200");
        assert_eq!(of(Activity::Hrtimer(0xffff_ffff_8112_3450)), "hrtimer tick_nohz_handler");
        assert_eq!(of(Activity::Work(0xffff_ffff_8112_3460)), "work 0xffffffff81123460");
        assert_eq!(of(Activity::Timer(0)), "timer function not known");
        assert_eq!(of(Activity::Signal(14)), "signal SIGALRM");
        assert_eq!(of(Activity::Signal(31)), "signal SIGSYS");
        assert_eq!(of(Activity::Signal(34)), "signal 34");
        assert_eq!(of(Activity::Signal(0)), "signal 0");
        assert_eq!(of(Activity::Thread(9)), "thread migration/1 (pid 9, real-time 99)");
        assert_eq!(of(Activity::Thread(50)), "thread irq/47-nvme (pid 50, real-time 50)");
        assert_eq!(of(Activity::Thread(60)), "thread sugov:0 (pid 60, deadline)");
        assert_eq!(of(Activity::Thread(77)), "thread lowlat (pid 77, nice -10) (own)");
        assert_eq!(of(Activity::Thread(0)), "idle: the thread was stopped or throttled");
        assert_eq!(label(CauseKey::Kind(CauseKind::Thread)), "thread other");
        assert_eq!(label(CauseKey::Kind(CauseKind::EntryExit)), "kernel entry and exit");
        assert_eq!(label(CauseKey::Kind(CauseKind::NotTraced)), "not traced");
    }
}
