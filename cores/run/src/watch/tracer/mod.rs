//! Programs under ptrace(2), long enough to make userfaultfds in them and to know when their threads end.
//!
//! A thread that ends writes to its memory where it can no longer wait (`clear_child_tid`, which joins depend on), so
//! no page may be protected then. [`ProgramEvent::Ending`] reports it in time.
//!
//! Each clone, signal and end stops a thread until [`Tracer::event`] finds it. Where that takes too much of a program's
//! time, threads that stop are let go, and [`Tracer::hold`] traces them again before pages are protected.

mod inject;
mod stops;

use super::{ProgramEvent, WatchError};
use inject::Injected;
use lowlat_host::Reading;
use lowlat_host_run::{Root, task_stat::TaskStat};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io,
    os::fd::OwnedFd,
    thread,
    time::{Duration, Instant},
};
use stops::{let_go, next_stop, registers, request, resume};

/// Time that all threads have to stop.
const STOP_TIME: Duration = Duration::from_secs(1);
/// Time between two checks for a stop.
const LOOK: Duration = Duration::from_micros(50);
/// Longest time for which threads are continued without a report.
const EVENT_TIME: Duration = Duration::from_micros(500);
/// Time that an ending thread has to end.
const END_TIME: Duration = Duration::from_millis(50);
/// The selector of 64-bit code (arch/x86/include/asm/segment.h, __USER_CS).
const CODE_64: u64 = 0x33;
/// Tries to find a thread outside of a restartable sequence.
const TRIES_MAX: u32 = 20;

/// Traced programs. The tracer is the thread that made this; when that thread ends, the kernel lets the programs run on
/// without it.
#[derive(Debug)]
pub struct Tracer<'a> {
    root: &'a Root,
    /// Traced threads, and their processes.
    threads: BTreeMap<u32, u32>,
    /// Processes of which threads were let go.
    left: BTreeSet<u32>,
    /// Threads that may have been ending when they were traced again.
    unsure: BTreeSet<u32>,
    /// Last known moment at which no thread was stopped.
    quiet: Instant,
    is_any_stopped: bool,
    /// Upper bound of the time for which threads were stopped, in nanoseconds. Stops at the same time count once.
    pub stopped_ns: u64,
}

impl<'a> Tracer<'a> {
    /// Creates a tracer that traces nothing yet.
    #[must_use]
    pub fn new(root: &'a Root) -> Self {
        Self {
            root,
            threads: BTreeMap::new(),
            left: BTreeSet::new(),
            unsure: BTreeSet::new(),
            quiet: Instant::now(),
            is_any_stopped: false,
            stopped_ns: 0,
        }
    }

    /// Attaches to all threads of a program and makes two userfaultfds in it, also again after it has replaced itself.
    /// This process then holds the only descriptors.
    ///
    /// # Errors
    /// [`WatchError`] if the program cannot be traced, or may have no userfaultfd. It runs on as before.
    pub fn attach(&mut self, pid: u32) -> Result<[OwnedFd; 2], WatchError> {
        self.seize_all(pid, check(self.root, pid)?)?;
        self.make(pid)
    }

    /// Traces the threads again that were let go. After this, no thread ends unnoticed.
    ///
    /// # Errors
    /// [`WatchError`] if that is not so, since a thread cannot be traced or does not stop: no page may be protected
    /// then.
    pub fn hold(&mut self, pid: u32) -> Result<(), WatchError> {
        if !self.left.contains(&pid) {
            return Ok(());
        }
        self.seize_all(pid, is_filtered(self.root, pid))?;
        // One that was already ending when it was seized does not report that; it stops no more, but ends.
        let unsure = self.of(pid).intersection(&self.unsure).copied().collect();
        self.stop(pid, unsure, false)?;
        if let Some(tid) = self.of(pid).intersection(&self.unsure).next() {
            return Err(busy(pid, *tid));
        }
        self.left.remove(&pid);
        Ok(())
    }

    /// Traces all threads of a process.
    fn seize_all(&mut self, pid: u32, is_filtered: bool) -> Result<(), WatchError> {
        let mut options = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_TRACEEXEC;
        options |= libc::PTRACE_O_TRACESYSGOOD;
        if is_filtered {
            options |= libc::PTRACE_O_SUSPEND_SECCOMP;
        }
        // Threads that traced ones start are traced from their start, so this ends.
        loop {
            let Reading::Known(names) = self.root.list(&format!("/proc/{pid}/task")) else {
                return Err(WatchError::ended(pid));
            };
            let tids = names.iter().filter_map(|name| name.parse().ok());
            let fresh: Vec<u32> = tids.filter(|tid| !self.threads.contains_key(tid)).collect();
            let mut is_done = true;
            for tid in fresh {
                match request(libc::PTRACE_SEIZE, tid, options.into()) {
                    Ok(()) => {
                        is_done = false;
                        self.threads.insert(tid, pid);
                        self.unsure.insert(tid);
                    }
                    // It has ended, or a traced thread has just started it.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => is_done = false,
                    Err(error) if self.is_own(pid, tid) && error.raw_os_error() == Some(libc::EPERM) => {
                        self.threads.insert(tid, pid);
                    }
                    // The first thread stays until the others have ended.
                    Err(_) if has_ended(self.root, pid, tid) => is_done &= tid == pid,
                    Err(_) if is_filtered => {
                        return Err(WatchError::of(
                            pid,
                            "it filters its system calls (seccomp), and this process may not suspend the filter\nhint: run \
                             as root",
                        ));
                    }
                    Err(source) => return Err(refused(self.root, pid, &source)),
                }
            }
            if is_done {
                return Ok(());
            }
        }
    }

    /// True if this process already traces a thread.
    fn is_own(&self, pid: u32, tid: u32) -> bool {
        let status = format!("/proc/{pid}/task/{tid}/status");
        status_field(self.root, &status, "TracerPid:") == Some(own_tid())
    }

    /// Stops all threads, so that none forks with a descriptor, and makes them.
    fn make(&mut self, pid: u32) -> Result<[OwnedFd; 2], WatchError> {
        self.is_any_stopped = true;
        let made = self.stop(pid, self.of(pid), true).and_then(|()| self.make_stopped(pid));
        for tid in self.of(pid) {
            // It fails for threads that are not stopped.
            let _ = request(libc::PTRACE_CONT, tid, 0);
        }
        self.end_stop();
        made
    }

    fn of(&self, pid: u32) -> BTreeSet<u32> {
        self.threads.iter().filter(|(_, of)| **of == pid).map(|(tid, _)| *tid).collect()
    }

    /// Waits until threads have stopped once, or ended. They stay stopped, or continue at once.
    fn stop(&mut self, pid: u32, mut running: BTreeSet<u32>, is_to_stay: bool) -> Result<(), WatchError> {
        running.retain(|tid| request(libc::PTRACE_INTERRUPT, *tid, 0).is_ok());
        let begun = Instant::now();
        while let Some(tid) = running.first().copied() {
            if begun.elapsed() > STOP_TIME {
                return Err(busy(pid, tid));
            }
            let Some(stop) = next_stop(None) else {
                if !is_to_stay {
                    self.end_stop();
                }
                thread::sleep(LOOK);
                continue;
            };
            self.is_any_stopped = true;
            let of = self.process_of(stop.tid);
            // Any stop shows that it was not ending; to stay it must stop where it was interrupted.
            if stop.is_trap() || stop.is_end() || !is_to_stay {
                running.remove(&stop.tid);
                self.unsure.remove(&stop.tid);
            }
            if stop.is_end() {
                self.threads.remove(&stop.tid);
            } else if stop.event() == libc::PTRACE_EVENT_EXIT {
                running.remove(&stop.tid);
                self.let_end(stop.tid);
            } else if of == pid && stop.is_group() {
                let _ = request(libc::PTRACE_LISTEN, stop.tid, 0);
                let why = format!("it is stopped\nhint: continue it with `kill -CONT {pid}`");
                return Err(WatchError::of(pid, &why));
            } else if of == pid && stop.is_trap() && is_to_stay {
                self.threads.insert(stop.tid, pid);
            } else {
                self.threads.insert(stop.tid, of);
                resume(stop);
                // Each stop, such as that of a clone, ends the interruption that was pending (kernel/signal.c,
                // ptrace_stop).
                if running.contains(&stop.tid) {
                    let _ = request(libc::PTRACE_INTERRUPT, stop.tid, 0);
                }
            }
            if is_to_stay && self.of(pid).is_empty() {
                return Err(WatchError::ended(pid));
            }
        }
        if !is_to_stay {
            self.end_stop();
        }
        Ok(())
    }

    fn make_stopped(&mut self, pid: u32) -> Result<[OwnedFd; 2], WatchError> {
        let call = |doing: &str, error: io::Error| {
            WatchError::new(format!(
                "cannot {doing} process {pid}: {error}\nhint: check that it is still running"
            ))
        };
        let memory = File::options().read(true).open(format!("/proc/{pid}/mem"));
        let memory = memory.map_err(|source| call("read the memory of", source))?;
        let code = inject::call_instruction(self.root, pid, &memory)
            .ok_or_else(|| call("find a system call in", io::ErrorKind::NotFound.into()))?;
        let tid = self.quiet_thread(pid, &memory)?;
        let injected = Injected::begin(tid, code).map_err(|source| call("stop", source))?;
        let made = injected.userfaultfd(pid).and_then(|first| Ok([first, injected.userfaultfd(pid)?]));
        injected.end(pid).map_err(|source| call("continue", source))?;
        made.map_err(|source| {
            let hint = match source.raw_os_error() {
                Some(libc::EPERM) => "run the program as root, or set vm.unprivileged_userfaultfd to 1",
                _ => "use a kernel with CONFIG_USERFAULTFD",
            };
            WatchError::new(format!("cannot make a userfaultfd in process {pid}: {source}\nhint: {hint}"))
        })
    }

    /// A stopped thread that is not inside a restartable sequence: the kernel would forget the sequence.
    fn quiet_thread(&mut self, pid: u32, memory: &File) -> Result<u32, WatchError> {
        for _ in 0..TRIES_MAX {
            for tid in self.of(pid) {
                let Ok(registers) = registers(tid) else { continue };
                if registers.cs != CODE_64 {
                    let why = "it is a 32-bit program\nhint: watch a 64-bit build of it";
                    return Err(WatchError::of(pid, why));
                }
                if !inject::is_in_sequence(tid, registers.rip, memory) {
                    return Ok(tid);
                }
            }
            for tid in self.of(pid) {
                let _ = request(libc::PTRACE_CONT, tid, 0);
            }
            thread::sleep(LOOK);
            self.stop(pid, self.of(pid), true)?;
        }
        Err(busy(pid, pid))
    }

    /// Reports the next event, and lets threads continue that stopped for another reason: traced as before, or no
    /// longer. Call it often while threads are traced, as a stop counts from the call before.
    pub fn event(&mut self, is_letting_go: bool) -> Option<ProgramEvent> {
        let begun = Instant::now();
        // A program may stop again as fast as it is continued.
        while begun.elapsed() < EVENT_TIME {
            let Some(stop) = next_stop(None) else { break };
            self.is_any_stopped = true;
            if stop.is_end() {
                self.threads.remove(&stop.tid);
                continue;
            }
            let pid = self.process_of(stop.tid);
            self.threads.insert(stop.tid, pid);
            match stop.event() {
                libc::PTRACE_EVENT_EXIT => return Some(ProgramEvent::Ending(stop.tid)),
                libc::PTRACE_EVENT_EXEC => {
                    // The other threads are gone.
                    self.threads.retain(|tid, of| *of != pid || *tid == stop.tid);
                    resume(stop);
                    return Some(ProgramEvent::Replaced(pid));
                }
                _ if is_letting_go => {
                    let_go(stop);
                    self.threads.remove(&stop.tid);
                    self.left.insert(pid);
                }
                _ => resume(stop),
            }
        }
        self.end_stop();
        None
    }

    /// Notes that no thread is stopped now. Adds the time since the last such moment if any was stopped in between.
    fn end_stop(&mut self) {
        let now = Instant::now();
        if std::mem::take(&mut self.is_any_stopped) {
            let stopped = now.saturating_duration_since(self.quiet);
            self.stopped_ns += u64::try_from(stopped.as_nanos()).unwrap_or(u64::MAX);
        }
        self.quiet = now;
    }

    /// The process of a thread. One that is not known yet was started by a traced one.
    fn process_of(&self, tid: u32) -> u32 {
        let known = self.threads.get(&tid).copied();
        known.or_else(|| status_field(self.root, &format!("/proc/{tid}/status"), "Tgid:")).unwrap_or(tid)
    }

    /// Lets a thread end, and waits until it has written what it writes at its end.
    pub fn let_end(&mut self, tid: u32) {
        let pid = self.process_of(tid);
        let _ = request(libc::PTRACE_CONT, tid, 0);
        self.end_stop();
        let begun = Instant::now();
        while begun.elapsed() < END_TIME {
            if let Some(stop) = next_stop(Some(tid)) {
                if stop.is_end() {
                    self.threads.remove(&tid);
                    return;
                }
                resume(stop);
            }
            // The first thread of a program stays until the others have ended.
            if tid == pid && self.of(pid).len() > 1 {
                thread::sleep(END_TIME / 10);
                self.threads.remove(&tid);
                return;
            }
            thread::sleep(LOOK);
        }
        // No page is protected before it has ended.
        self.unsure.insert(tid);
        self.left.insert(pid);
    }
}

/// A thread does not stop in time.
fn busy(pid: u32, tid: u32) -> WatchError {
    let why = format!(
        "thread {tid} does not stop\nhint: retry when it does not wait for a child process or a device"
    );
    WatchError::of(pid, &why)
}

fn own_tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// True if a thread has ended, and only its number is left.
fn has_ended(root: &Root, pid: u32, tid: u32) -> bool {
    let stat = TaskStat::read(root, &format!("/proc/{pid}/task/{tid}/stat"));
    stat.known().is_none_or(TaskStat::is_dead)
}

fn is_filtered(root: &Root, pid: u32) -> bool {
    status_field(root, &format!("/proc/{pid}/status"), "Seccomp:").is_some_and(|mode| mode != 0)
}

/// Checks a program before anything is done to it; returns whether it filters its system calls.
fn check(root: &Root, pid: u32) -> Result<bool, WatchError> {
    let status = format!("/proc/{pid}/status");
    let field = |name| status_field(root, &status, name);
    if field("Tgid:") != Some(pid) {
        let why = "no such process\nhint: name a running process with --pid";
        return Err(WatchError::of_nothing(pid, why));
    }
    if field("VmSize:").is_none() {
        let why = "it has no memory of its own\nhint: name a user-space program with --pid";
        return Err(WatchError::of_nothing(pid, why));
    }
    if let Some(tracer) = field("TracerPid:").filter(|tracer| *tracer != 0 && *tracer != own_tid()) {
        let why = format!("process {tracer} traces it\nhint: end that debugger first");
        return Err(WatchError::of(pid, &why));
    }
    Ok(is_filtered(root, pid))
}

fn status_field(root: &Root, path: &str, name: &str) -> Option<u32> {
    let bytes = root.read_bytes(path).into_known()?;
    let text = String::from_utf8_lossy(&bytes);
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Names the reason why ptrace(2) is refused.
fn refused(root: &Root, pid: u32, source: &io::Error) -> WatchError {
    let scope = root.read_as::<u32>("/proc/sys/kernel/yama/ptrace_scope", "a number").into_known();
    let hint = match scope {
        Some(3) => "set kernel.yama.ptrace_scope below 3 at boot; it cannot be lowered later",
        Some(1 | 2) => "run as root; kernel.yama.ptrace_scope limits other users",
        _ => "run as root, or as the program's user",
    };
    WatchError::of(pid, &format!("{source}\nhint: {hint}"))
}
