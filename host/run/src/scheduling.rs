//! Scheduling of a task, through the kernel's own calls (sched_setaffinity(2), sched_setattr(2)).

use crate::{Root, affinity::set_mask, task_stat::cpus_allowed};
use lowlat_host::{CPU_ID_MAX, CpuSet, Reading, snapshot::SchedPolicy};
use std::{fmt, io, str::FromStr};

/// Children start with the default policy (SCHED_FLAG_RESET_ON_FORK).
const RESET_ON_FORK: u64 = 1;

/// `struct sched_attr` in its first version, which every kernel since 3.14 accepts. Utilization clamps follow
/// it and stay unchanged.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Scheduling of a task. As text "SCHED_FIFO 2", "SCHED_OTHER nice -5", "SCHED_DEADLINE 100000 1000000
/// 1000000" (runtime, deadline and period in nanoseconds), followed by "reset-on-fork" if that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduling {
    pub policy: SchedPolicy,
    /// Real-time priority, 1 to 99; 0 for other policies.
    pub priority: u32,
    /// Nice value of policies that have one. `None` keeps the task's current value.
    pub nice: Option<i32>,
    /// Runtime, deadline and period in nanoseconds; 0 for other policies.
    pub deadline_ns: [u64; 3],
    /// True if children start with the default policy. A task that has this flag keeps it.
    pub is_reset_on_fork: bool,
}

/// Returns the scheduling of task `tid`.
pub fn scheduling(tid: u32) -> io::Result<Scheduling> {
    let now = attributes(tid)?;
    let policy = SchedPolicy::from_number(now.policy);
    let has_nice =
        matches!(policy, SchedPolicy::Other | SchedPolicy::Batch | SchedPolicy::Idle | SchedPolicy::Ext);
    let is_deadline = policy == SchedPolicy::Deadline;
    Ok(Scheduling {
        policy,
        priority: now.priority,
        nice: has_nice.then_some(now.nice),
        deadline_ns: if is_deadline { [now.runtime_ns, now.deadline_ns, now.period_ns] } else { [0; 3] },
        is_reset_on_fork: now.flags & RESET_ON_FORK != 0,
    })
}

/// Sets the scheduling of task `tid`.
pub fn set_scheduling(tid: u32, to: &Scheduling) -> io::Result<()> {
    let now = attributes(tid)?;
    let policy = to.policy.number().ok_or_else(|| io::Error::other("unknown policy"))?;
    let [runtime_ns, deadline_ns, period_ns] = to.deadline_ns;
    let keeps = if to.is_reset_on_fork { RESET_ON_FORK } else { now.flags & RESET_ON_FORK };
    let nice = match to.nice {
        Some(nice) => nice,
        None => nice(tid)?,
    };
    let (size, priority) = (now.size, to.priority);
    let wanted =
        Attributes { size, policy, flags: keeps, nice, priority, runtime_ns, deadline_ns, period_ns };
    let flags: libc::c_uint = 0;
    // SAFETY: the structure is laid out as `struct sched_attr` and alive through the call; its first member is its
    // own size, which bounds what the kernel reads.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, task(tid)?, &raw const wanted, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Restricts task `tid` to `cpus`.
pub fn set_affinity(tid: u32, cpus: &CpuSet) -> io::Result<()> {
    set_mask(task(tid)?, cpus)
}

/// Gives the threads of this process whose names start with `name` other CPUs than those they are pinned to, and the
/// default policy, so that they can end although real-time threads hold their CPU. A process ends only with its last
/// thread. Errors are ignored: a thread may have ended, or no other CPU may be allowed.
pub fn release_threads(name: &str) {
    let root = Root::live();
    let other = of_policy(SchedPolicy::Other, false);
    for tid in root.list("/proc/self/task").into_known().unwrap_or_default() {
        let is_named = root.read(&format!("/proc/self/task/{tid}/comm")).text().starts_with(name);
        let (true, Ok(number)) = (is_named, tid.parse()) else { continue };
        let status = format!("/proc/self/task/{tid}/status");
        if let Reading::Known(pinned) = cpus_allowed(&root, &status) {
            let _ = set_affinity(number, &CpuSet::first(CPU_ID_MAX).difference(&pinned));
        }
        let _ = set_scheduling(number, &other);
    }
}

fn attributes(tid: u32) -> io::Result<Attributes> {
    let mut now = Attributes::default();
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or(0);
    let flags: libc::c_uint = 0;
    // SAFETY: the structure is alive and borrowed mutably through the call, and `size` is its size: the kernel writes
    // no more than that.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, task(tid)?, &raw mut now, size, flags) };
    now.size = size;
    if result == 0 { Ok(now) } else { Err(io::Error::last_os_error()) }
}

/// The nice value, which a task keeps while a real-time policy hides it from sched_getattr.
fn nice(tid: u32) -> io::Result<i32> {
    // SAFETY: the call takes numbers only.
    let raw = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, task(tid)?) };
    // The raw system call returns 40 to 1 for -20 to 19, to avoid negative numbers.
    match i32::try_from(raw) {
        Ok(raw @ 1..=40) => Ok(20 - raw),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The kernel treats 0 as the caller, which is never meant here.
fn task(tid: u32) -> io::Result<libc::pid_t> {
    let tid = libc::pid_t::try_from(tid).ok().filter(|tid| *tid > 0);
    tid.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.policy.name())?;
        if self.priority != 0 {
            write!(f, " {}", self.priority)?;
        }
        if let Some(nice) = self.nice {
            write!(f, " nice {nice}")?;
        }
        if self.policy == SchedPolicy::Deadline {
            let [runtime, deadline, period] = self.deadline_ns;
            write!(f, " {runtime} {deadline} {period}")?;
        }
        if self.is_reset_on_fork { f.write_str(" reset-on-fork") } else { Ok(()) }
    }
}

/// A text that is not a [`Scheduling`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {0:?}, expected a policy such as \"SCHED_FIFO 2\" or \"SCHED_OTHER nice 0\"")]
pub struct NoScheduling(String);

impl FromStr for Scheduling {
    type Err = NoScheduling;

    fn from_str(text: &str) -> Result<Self, NoScheduling> {
        parse(text).ok_or_else(|| NoScheduling(text.chars().take(80).collect()))
    }
}

fn of_policy(policy: SchedPolicy, is_reset_on_fork: bool) -> Scheduling {
    Scheduling { policy, priority: 0, nice: None, deadline_ns: [0; 3], is_reset_on_fork }
}

fn parse(text: &str) -> Option<Scheduling> {
    let (text, is_reset_on_fork) = match text.trim().strip_suffix("reset-on-fork") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let words: Vec<&str> = text.split_whitespace().take(5).collect();
    let (name, rest) = words.split_first()?;
    let policy = SchedPolicy::from_name(name)?;
    let mut found = of_policy(policy, is_reset_on_fork);
    match (policy, rest) {
        (SchedPolicy::Fifo | SchedPolicy::Rr, [priority]) => {
            found.priority = priority.parse().ok().filter(|priority| (1..=99).contains(priority))?;
        }
        (SchedPolicy::Deadline, [runtime, deadline, period]) => {
            found.deadline_ns = [runtime.parse().ok()?, deadline.parse().ok()?, period.parse().ok()?];
        }
        (SchedPolicy::Fifo | SchedPolicy::Rr | SchedPolicy::Deadline, _) => return None,
        (_, []) => {}
        (_, ["nice", nice]) => {
            found.nice = Some(nice.parse().ok().filter(|nice| (-20..=19).contains(nice))?);
        }
        _ => return None,
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc, thread};

    #[test]
    fn policies_are_reported_as_they_are_read() {
        let texts = [
            "SCHED_FIFO 2",
            "SCHED_RR 99 reset-on-fork",
            "SCHED_OTHER",
            "SCHED_OTHER nice -5 reset-on-fork",
            "SCHED_BATCH nice 19",
            "SCHED_IDLE nice 0",
            "SCHED_DEADLINE 100000 1000000 2000000",
        ];
        for text in texts {
            assert_eq!(text.parse::<Scheduling>().unwrap().to_string(), text);
        }
        let bad = [
            "",
            "FIFO 2",
            "SCHED_FIFO",
            "SCHED_FIFO 0",
            "SCHED_FIFO 100",
            "SCHED_FIFO -1",
            "SCHED_FIFO 2 3",
            "SCHED_OTHER 1",
            "SCHED_OTHER nice",
            "SCHED_OTHER nice 20",
            "SCHED_DEADLINE 1 2",
            "unknown",
        ];
        for text in bad {
            let error = text.parse::<Scheduling>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("found {text:?}, expected a policy such as ")), "{error}");
        }
    }

    /// Runs `test` with the number of a thread that does nothing.
    fn with_thread(test: impl FnOnce(u32)) {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
            let _ = ended.recv();
        });
        test(told.recv().unwrap());
        drop(end);
        other.join().unwrap();
    }

    #[test]
    fn a_thread_is_scheduled_otherwise_and_as_before_again() {
        with_thread(|tid| {
            let before = scheduling(tid).unwrap();
            assert_eq!((before.policy, before.priority), (SchedPolicy::Other, 0));
            let batch: Scheduling = "SCHED_BATCH nice 7".parse().unwrap();
            set_scheduling(tid, &batch).unwrap();
            assert_eq!(scheduling(tid).unwrap(), batch);
            let fifo: Scheduling = "SCHED_FIFO 2".parse().unwrap();
            match set_scheduling(tid, &fifo) {
                Ok(()) => {
                    assert_eq!(scheduling(tid).unwrap(), fifo);
                    // The nice value is kept during the real-time policy.
                    set_scheduling(tid, &"SCHED_OTHER".parse().unwrap()).unwrap();
                    assert_eq!(scheduling(tid).unwrap().to_string(), "SCHED_OTHER nice 7");
                    set_scheduling(tid, &before).unwrap();
                    assert_eq!(scheduling(tid).unwrap(), before);
                }
                Err(error) => eprintln!("skipped: may not set SCHED_FIFO here: {error}"),
            }
            let reset: Scheduling = "SCHED_BATCH nice 9 reset-on-fork".parse().unwrap();
            set_scheduling(tid, &reset).unwrap();
            set_scheduling(tid, &"SCHED_OTHER nice 10".parse().unwrap()).unwrap();
            assert!(scheduling(tid).unwrap().is_reset_on_fork, "the flag is kept");
        });
    }

    #[test]
    fn a_thread_is_moved() {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        let first = (0..1_024).find(|cpu| allowed.is_set(*cpu)).unwrap();
        with_thread(|tid| {
            set_affinity(tid, &CpuSet::of(u32::try_from(first).unwrap())).unwrap();
            let pid = rustix::process::Pid::from_raw(tid.cast_signed());
            let now = rustix::thread::sched_getaffinity(pid).unwrap();
            assert!(now.is_set(first) && now.count() == 1);
            let error = set_affinity(tid, &CpuSet::new()).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        });
    }

    #[test]
    fn no_task_and_the_caller_are_rejected() {
        for tid in [0, u32::MAX, 4_194_305] {
            assert!(scheduling(tid).is_err() && set_affinity(tid, &CpuSet::of(0)).is_err(), "{tid}");
        }
    }
}
