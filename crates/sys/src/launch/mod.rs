//! Starts a command as a [`Launch`] says, pins its threads as they appear, and passes signals and the exit code.

mod evidence;
mod memory;
mod signals;

pub use evidence::evidence;

use crate::{
    Root,
    idle_hold::{self, IdleHold},
    scheduling::{Scheduling, set_affinity, set_scheduling},
    task_stat::TaskStat,
};
use lowlat_host::{CpuSet, Reading, snapshot::SchedPolicy};
use lowlat_launch::{Acceleration, KernelSocket, Launch, Memory, Pins};
use signals::{Event, Signals};
use std::{
    io,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitStatus},
    time::{Duration, Instant},
};
use thiserror::Error;

/// Time between two looks at the command's threads: at first short, since most threads start then.
const LOOK_EARLY: Duration = Duration::from_millis(2);
const LOOK_LATE: Duration = Duration::from_millis(100);
/// How long a command counts as starting.
const EARLY: Duration = Duration::from_secs(2);
/// Time between two looks at its sockets.
const SOCKETS_EVERY: Duration = Duration::from_millis(500);
/// Time that a command has to end by SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a command was not started, or was stopped.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The program cannot be executed.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The first word after all settings.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel refused a setting.
    #[error("cannot {doing}: {source}\nhint: {hint}")]
    Set {
        /// "set SCHED_FIFO 50".
        doing: String,
        /// The system's error.
        source: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// The command's sockets are in the kernel, and acceleration is required.
    #[error(
        "stopped the command: it is not accelerated by {accelerator}: {}\nhint: leave out --require-accelerated to run it \
         with the kernel's sockets", sentence(.found)
    )]
    NotAccelerated {
        /// "Onload".
        accelerator: &'static str,
        /// What was found.
        found: Acceleration,
    },
}

fn sentence(found: &Acceleration) -> String {
    match found {
        Acceleration::NoLibrary => "its library is not in the command's memory".to_owned(),
        Acceleration::NoDevice => "its library has opened no device".to_owned(),
        Acceleration::InKernel(sockets) => {
            let all: Vec<String> = sockets.iter().map(KernelSocket::to_string).collect();
            format!("the kernel serves {}", all.join(", "))
        }
        Acceleration::Accelerated => "it is".to_owned(),
    }
}

/// What happened while the command ran.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    /// Exit code; 128 and the signal's number if a signal ended it.
    pub code: u8,
    /// Most threads that shared a CPU with another at the same time, beyond one per CPU.
    pub crowded_max: usize,
    /// Threads that could not be pinned, with the system's error: "1234: Invalid argument".
    pub unpinned: Vec<String>,
    /// What the command showed of its acceleration, at the last look.
    pub acceleration: Option<Acceleration>,
}

/// Runs a command to its end.
///
/// # Errors
/// [`LaunchError`] if it cannot be started, or is not accelerated though `is_acceleration_required`.
pub fn run(
    root: &Root,
    launch: &Launch,
    command: &[String],
    is_acceleration_required: bool,
) -> Result<Ran, LaunchError> {
    let hold = launch.is_awake.then(IdleHold::new).transpose();
    let _hold = hold.map_err(|error| LaunchError::Set {
        doing: format!("keep CPUs out of idle states through {}", idle_hold::FILE),
        source: error.into(),
        hint: "run as root, or leave out --c-states off",
    })?;
    // Before the command exists, so that its end is not missed.
    let signals = Signals::block();
    let child = start(launch, command)?;
    let mut running = Running {
        root,
        launch,
        pins: Pins::new(launch.cpus.clone(), launch.thread_map.clone()),
        child,
        started: Instant::now(),
        sockets_seen: Instant::now(),
        ran: Ran::default(),
    };
    let status = running.supervise(&signals, is_acceleration_required)?;
    running.ran.code = code(status);
    Ok(running.ran)
}

struct Running<'a> {
    root: &'a Root,
    launch: &'a Launch,
    pins: Pins,
    child: Child,
    started: Instant,
    sockets_seen: Instant,
    ran: Ran,
}

impl Running<'_> {
    fn supervise(&mut self, signals: &Signals, is_required: bool) -> Result<ExitStatus, LaunchError> {
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Ok(status);
            }
            self.pin();
            if let (true, Some(error)) = (self.looks_at_sockets(), self.refused(is_required)) {
                self.stop(signals);
                return Err(error);
            }
            let wait = if self.started.elapsed() < EARLY { LOOK_EARLY } else { LOOK_LATE };
            match signals.wait(wait) {
                Event::Pass(signal) => signals::send(&self.child, signal),
                Event::Child | Event::Nothing => {}
            }
        }
    }

    fn pin(&mut self) {
        let folder = format!("/proc/{}/task", self.child.id());
        let Reading::Known(tids) = self.root.list(&folder) else { return };
        let threads: Vec<(u32, String)> = tids
            .iter()
            .filter_map(|tid| {
                let stat = TaskStat::read(self.root, &format!("{folder}/{tid}/stat")).into_known()?;
                Some((tid.parse().ok()?, stat.comm))
            })
            .collect();
        for (tid, cpus) in self.pins.update(&threads) {
            match set_affinity(tid, &cpus) {
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => self.ran.unpinned.push(format!("{tid}: {error}")),
                Ok(()) => {}
            }
        }
        self.ran.crowded_max = self.ran.crowded_max.max(self.pins.crowded());
    }

    fn looks_at_sockets(&mut self) -> bool {
        let Some(accelerator) = &self.launch.accelerator else { return false };
        if self.sockets_seen.elapsed() < SOCKETS_EVERY {
            return false;
        }
        self.sockets_seen = Instant::now();
        self.ran.acceleration = Some(evidence(self.root, self.child.id(), accelerator).judge(accelerator));
        true
    }

    /// A missing device only means that no socket was opened so far.
    fn refused(&self, is_required: bool) -> Option<LaunchError> {
        let accelerator = self.launch.accelerator.as_ref().filter(|_| is_required)?;
        let found = self.ran.acceleration.clone()?;
        matches!(found, Acceleration::NoLibrary | Acceleration::InKernel(_))
            .then(|| LaunchError::NotAccelerated { accelerator: accelerator.name(), found })
    }

    fn stop(&mut self, signals: &Signals) {
        signals::send(&self.child, libc::SIGTERM);
        let stopped = Instant::now();
        while stopped.elapsed() < PATIENCE {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            let _ = signals.wait(LOOK_EARLY);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(launch: &Launch, command: &[String]) -> Result<Child, LaunchError> {
    let mut words = launch.launcher.iter().chain(command);
    let program = words.next().cloned().unwrap_or_default();
    let all = launch.all_cpus();
    let scheduling = launch.policy.map(|(policy, priority)| Scheduling {
        policy,
        priority,
        nice: None,
        deadline_ns: [0; 3],
        is_reset_on_fork: false,
    });
    check_settings(&all, scheduling.as_ref())?;
    let mut starting = Command::new(&program);
    starting.args(words).envs(launch.environment.iter().map(|(name, value)| (name, value)));
    let (memory, first) = (launch.memory, launch.cpus.first().copied());
    let set = move || {
        let this = std::process::id();
        set_affinity(this, &first.map_or_else(|| all.clone(), CpuSet::of))?;
        if memory != Memory::Inherited {
            memory::set_policy(memory)?;
        }
        scheduling.as_ref().map_or(Ok(()), |scheduling| set_scheduling(this, scheduling))
    };
    // SAFETY: between fork and exec the closure only makes system calls; it takes no lock that another thread of this
    // process could hold. It allocates masks, which glibc and musl allow in the child of a process that forks with its
    // allocator unlocked (both take their locks around fork).
    unsafe { starting.pre_exec(set) };
    starting.spawn().map_err(|source| LaunchError::Start { program, source })
}

/// Tries the settings on a thread of this process, so that a refusal names the setting.
fn check_settings(cpus: &CpuSet, scheduling: Option<&Scheduling>) -> Result<(), LaunchError> {
    let attempt = |doing: String, hint, act: &(dyn Fn(u32) -> io::Result<()> + Sync)| {
        let outcome = std::thread::scope(|scope| {
            let trial = scope.spawn(|| act(thread_id()));
            trial.join().unwrap_or_else(|_| Err(io::Error::other("the testing thread died")))
        });
        outcome.map_err(|source| LaunchError::Set { doing, source, hint })
    };
    attempt(format!("run on {cpus:#}"), "check the cpuset of this process", &|tid| set_affinity(tid, cpus))?;
    let Some(scheduling) = scheduling else { return Ok(()) };
    let hint = match scheduling.policy {
        SchedPolicy::Fifo | SchedPolicy::Rr => "run as root, or raise the limit with `ulimit -r`",
        _ => "run as root",
    };
    attempt(format!("set {scheduling}"), hint, &|tid| set_scheduling(tid, scheduling))
}

fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests;
