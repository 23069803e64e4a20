//! Starts a command, or copies of it, as a [`Launch`] says, pins its threads as they appear, and passes signals and the
//! exit code.

mod evidence;
mod memory;
mod signals;

pub use memory::allocate_on;

use evidence::AccelerationLook;
use lowlat_host::{CpuId, CpuSet, Reading, snapshot::SchedPolicy};
use lowlat_host_run::{
    Root,
    idle_hold::{self, IdleHold},
    programs::exit_code,
    scheduling::{Scheduling, set_affinity, set_scheduling},
    task_stat::{TaskStat, cpus_allowed},
};
use lowlat_launch::{Acceleration, Launch, Library, MemoryPolicy, Pins, SocketScope, Thread};
use rustix::process::{Signal, set_parent_process_death_signal};
use signals::{Mask, Passed, Signals};
use std::{
    collections::BTreeMap,
    io,
    os::unix::process::CommandExt,
    process::{Child, Command},
    time::{Duration, Instant},
};
use thiserror::Error;

/// Time between two checks of the command's threads: at first short, since most threads start then.
const LOOK_EARLY: Duration = Duration::from_millis(2);
const LOOK_LATE: Duration = Duration::from_millis(100);
/// Time for which a command counts as starting.
const EARLY: Duration = Duration::from_secs(2);
/// Time between two checks of its sockets and CPUs.
const LOOK_AROUND_EARLY: Duration = Duration::from_millis(50);
const LOOK_AROUND: Duration = Duration::from_millis(500);
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Time that a command has to end by SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reason why a command was not started, or was stopped.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct LaunchError(String);

impl LaunchError {
    /// The kernel refused a setting: "set SCHED_FIFO 50".
    fn set(doing: &str, error: &io::Error, hint: &str) -> Self {
        Self(format!("cannot {doing}: {error}\nhint: {hint}"))
    }
}

/// Returns a finding in words, to follow the accelerator's name and a colon.
pub fn acceleration_text(found: &Acceleration) -> String {
    match found {
        Acceleration::NotSeen => {
            "not proven: no socket was seen that carried traffic, except over loopback".to_owned()
        }
        Acceleration::NoLibrary(name, Library::Static) => {
            format!("{name} is a static program, to which no library can be preloaded")
        }
        Acceleration::NoLibrary(name, _) => format!(
            "its library is not in the memory of {name}, which is set-user-ID or was started without LD_PRELOAD"
        ),
        Acceleration::Unproven(why) => format!("not proven: {}", why.join("; ")),
        Acceleration::InKernel(sockets) => format!("the kernel serves {}", sockets.join(", ")),
        Acceleration::Accelerated(count) => format!(
            "accelerated: {count} {} carried traffic, and the kernel served none",
            if *count == 1 { "socket" } else { "sockets" }
        ),
    }
}

/// Result of running the command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaunchOutcome {
    /// Exit code, the highest one of copies; 128 and the signal's number if a signal ended it.
    pub code: u8,
    /// Largest number of threads that shared a CPU at the same time, beyond one per CPU.
    pub crowded_max: usize,
    /// Threads that could not be pinned, with the system's error: "1234: Invalid argument".
    pub unpinned: Vec<String>,
    /// Threads that chose other CPUs themselves: "md (1234) chose CPU 5".
    pub moved: BTreeMap<u32, String>,
    /// Names in the thread map that matched no thread.
    pub unmatched: Vec<String>,
    /// CPUs that went offline. The kernel moved their threads.
    pub cpus_lost: CpuSet,
    /// Acceleration that the command and its descendants showed.
    pub acceleration: Option<Acceleration>,
}

/// Runs a command, or all copies of it, to the end.
///
/// # Errors
/// [`LaunchError`] if one cannot be started, or a socket in `required` is not accelerated. The copies that run are then
/// stopped.
pub fn run(
    root: &Root,
    launch: &Launch,
    command: &[String],
    required: Option<&SocketScope>,
) -> Result<LaunchOutcome, LaunchError> {
    let hold = launch.is_awake.then(IdleHold::new).transpose();
    let _hold = hold.map_err(|error| {
        let doing = format!("keep CPUs out of idle states through {}", idle_hold::FILE);
        LaunchError::set(&doing, &error.into(), "run as root, or leave out --c-states off")
    })?;
    check_settings(launch)?;
    // Before the command exists, so that its end is not missed.
    let signals = Signals::block();
    let mut running = Running {
        root,
        launch,
        pins: Pins::new(launch.cpus.clone(), launch.thread_map.clone()),
        children: Vec::new(),
        started: Instant::now(),
        looked_around: Instant::now(),
        look: launch.accelerator.as_ref().map(|accelerator| {
            AccelerationLook::new(root, accelerator, &launch.launcher, required.cloned().unwrap_or_default())
        }),
        ran: LaunchOutcome::default(),
    };
    let outcome =
        running.start(command, signals.mask()).and_then(|()| running.supervise(&signals, required.is_some()));
    if outcome.is_err() {
        running.stop(&signals);
    }
    running.ran.unmatched = running.pins.unmatched();
    outcome.map(|()| running.ran)
}

struct Running<'a> {
    root: &'a Root,
    launch: &'a Launch,
    pins: Pins,
    /// Those that have not been waited for.
    children: Vec<Child>,
    started: Instant,
    looked_around: Instant,
    look: Option<AccelerationLook<'a>>,
    ran: LaunchOutcome,
}

impl Running<'_> {
    fn start(&mut self, command: &[String], mask: Mask) -> Result<(), LaunchError> {
        for cpus in self.launch.processes() {
            self.children.push(start(self.launch, cpus.first().copied(), command, mask)?);
        }
        Ok(())
    }

    fn supervise(&mut self, signals: &Signals, is_required: bool) -> Result<(), LaunchError> {
        loop {
            self.reap();
            if self.children.is_empty() {
                return Ok(());
            }
            // Threads of a copy inherit its CPU.
            if self.launch.copies.is_none() {
                self.pin();
            }
            let is_early = self.launch.copies.is_none() && self.started.elapsed() < EARLY;
            if self.looked_around.elapsed() >= if is_early { LOOK_AROUND_EARLY } else { LOOK_AROUND } {
                self.looked_around = Instant::now();
                self.look_at_cpus();
                self.look_at_sockets();
                if let Some(error) = self.refused(is_required) {
                    return Err(error);
                }
            }
            let received = signals.wait(if is_early { LOOK_EARLY } else { LOOK_LATE });
            if let Some(Passed { signal, is_of_terminal }) = received {
                self.children.iter().for_each(|child| signals::send(child, signal, is_of_terminal));
            }
        }
    }

    /// Waits for the children that have ended.
    fn reap(&mut self) {
        let code = &mut self.ran.code;
        self.children.retain_mut(|child| match child.try_wait() {
            Ok(Some(status)) => {
                *code = exit_code(status).max(*code);
                false
            }
            _ => true,
        });
    }

    fn pin(&mut self) {
        let Some(child) = self.children.first() else { return };
        let folder = format!("/proc/{}/task", child.id());
        let Reading::Known(tids) = self.root.list(&folder) else { return };
        let threads: Vec<Thread> = tids
            .iter()
            .filter_map(|tid| {
                let stat = TaskStat::read(self.root, &format!("{folder}/{tid}/stat")).into_known()?;
                let cpus = cpus_allowed(self.root, &format!("{folder}/{tid}/status")).into_known();
                Some(Thread { tid: tid.parse().ok()?, name: stat.comm, cpus })
            })
            .collect();
        let update = self.pins.update(&threads);
        for Thread { tid, name, cpus } in update.moved {
            let cpus = cpus.unwrap_or_default();
            self.ran.moved.entry(tid).or_insert_with(|| format!("{name} ({tid}) chose {cpus:#}"));
        }
        for (tid, cpus) in update.to_pin {
            match set_affinity(tid, &cpus) {
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => self.ran.unpinned.push(format!("{tid}: {error}")),
                Ok(()) => {}
            }
        }
        self.ran.crowded_max = self.ran.crowded_max.max(self.pins.crowded());
    }

    fn look_at_cpus(&mut self) {
        if let Reading::Known(online) = self.root.read_cpu_list(ONLINE) {
            self.ran.cpus_lost.extend(self.launch.all_cpus().difference(&online).iter());
        }
    }

    fn look_at_sockets(&mut self) {
        let pids: Vec<u32> = self.children.iter().map(Child::id).collect();
        self.ran.acceleration = self.look.as_mut().map(|look| look.again(&pids));
    }

    /// What was not seen so far may still come.
    fn refused(&self, is_required: bool) -> Option<LaunchError> {
        let accelerator = self.launch.accelerator.as_ref().filter(|_| is_required)?;
        let found = self.ran.acceleration.as_ref()?;
        matches!(found, Acceleration::NoLibrary(..) | Acceleration::InKernel(_)).then(|| {
            LaunchError(format!(
                "stopped the command: it is not accelerated by {}: {}\nhint: leave out --require-accelerated to run it with \
                 the kernel's sockets, or name the sockets that it is for",
                accelerator.name(),
                acceleration_text(found)
            ))
        })
    }

    fn stop(&mut self, signals: &Signals) {
        self.children.iter().for_each(|child| signals::send(child, libc::SIGTERM, false));
        if let Some(look) = &mut self.look {
            look.send(Signal::TERM);
        }
        let stopped = Instant::now();
        while !self.children.is_empty() && stopped.elapsed() < PATIENCE {
            let _ = signals.wait(LOOK_EARLY);
            self.reap();
        }
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        // What the command started would go on with the kernel's sockets.
        if let Some(look) = &mut self.look {
            look.send(Signal::KILL);
        }
    }
}

/// Starts one process on its first CPU, with the signal mask that lowlat was started with; without a CPU, on all CPUs
/// of the launch.
fn start(
    launch: &Launch,
    first: Option<CpuId>,
    command: &[String],
    mask: Mask,
) -> Result<Child, LaunchError> {
    let mut words = launch.launcher.iter().chain(command);
    let program = words.next().cloned().unwrap_or_default();
    let all = launch.all_cpus();
    let scheduling = scheduling(launch);
    let mut starting = Command::new(&program);
    starting.args(words).envs(launch.environment.iter().map(|(name, value)| (name, value)));
    let memory = launch.memory;
    let parent = std::process::id();
    let set = move || {
        mask.restore();
        // If the command outlived lowlat, nothing would pin its threads or pass signals to it.
        set_parent_process_death_signal(Some(Signal::TERM))?;
        if std::os::unix::process::parent_id() != parent {
            return Err(io::Error::other("lowlat has ended"));
        }
        let this = std::process::id();
        set_affinity(this, &first.map_or_else(|| all.clone(), CpuSet::of))?;
        if memory != MemoryPolicy::Inherited {
            memory::set_policy(memory)?;
        }
        scheduling.as_ref().map_or(Ok(()), |scheduling| set_scheduling(this, scheduling))
    };
    // SAFETY: between fork and exec the closure only makes system calls; it takes no lock that another thread of this
    // process could hold. It allocates masks, which glibc and musl allow in the child of a process that forks with its
    // allocator unlocked (both take their locks around fork).
    unsafe { starting.pre_exec(set) };
    starting.spawn().map_err(|error| {
        LaunchError(format!(
            "cannot start {program}: {error}\nhint: name a program on PATH, or the path of an executable file"
        ))
    })
}

fn scheduling(launch: &Launch) -> Option<Scheduling> {
    launch.policy.map(|(policy, priority)| Scheduling {
        policy,
        priority,
        nice: None,
        deadline_ns: [0; 3],
        is_reset_on_fork: false,
    })
}

/// Tries the settings on a thread of this process, so that a refusal names the setting.
fn check_settings(launch: &Launch) -> Result<(), LaunchError> {
    let cpus = &launch.all_cpus();
    let attempt = |doing: String, hint, act: &(dyn Fn(u32) -> io::Result<()> + Sync)| {
        let outcome = std::thread::scope(|scope| {
            let trial = scope.spawn(|| act(thread_id()));
            trial.join().unwrap_or_else(|_| Err(io::Error::other("the testing thread died")))
        });
        outcome.map_err(|error| LaunchError::set(&doing, &error, hint))
    };
    attempt(format!("run on {cpus:#}"), "check the cpuset of this process", &|tid| set_affinity(tid, cpus))?;
    let Some(scheduling) = &scheduling(launch) else { return Ok(()) };
    let hint = match scheduling.policy {
        SchedPolicy::Fifo | SchedPolicy::Rr => "run as root, or raise the limit with `ulimit -r`",
        _ => "run as root",
    };
    attempt(format!("set {scheduling}"), hint, &|tid| set_scheduling(tid, scheduling))
}

fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests;
