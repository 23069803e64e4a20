//! A program under ptrace(2), long enough to make a userfaultfd in it and to know when its threads end.
//!
//! A thread that ends writes to its memory where it can no longer wait (`clear_child_tid`, which joins depend on), so no
//! page may be protected then. [`TraceEvent::Ending`] reports it in time.

mod inject;
mod stops;

use super::{TraceEvent, WatchError};
use crate::Root;
use inject::Injected;
use lowlat_host::Reading;
use std::{
    collections::BTreeSet,
    fs::File,
    io,
    os::fd::OwnedFd,
    thread,
    time::{Duration, Instant},
};
use stops::{Stop, next_stop, registers, request, resume};

/// Time that all threads have to stop.
const STOP_TIME: Duration = Duration::from_secs(1);
/// Time between two looks for a stop.
const LOOK: Duration = Duration::from_micros(50);
/// Time that an ending thread has to end.
const END_TIME: Duration = Duration::from_millis(50);
/// The selector of 64-bit code (arch/x86/include/asm/segment.h, __USER_CS).
const CODE_64: u64 = 0x33;
/// Tries to find a thread outside of a restartable sequence.
const TRIES_MAX: u32 = 20;

/// A traced program. The tracer is the thread that made this; when that thread ends, the kernel lets the program run on
/// without it.
#[derive(Debug)]
pub struct Tracer {
    pid: u32,
    threads: BTreeSet<u32>,
    /// How long all threads were stopped, in nanoseconds.
    pub stopped_ns: u64,
    /// Status of wait(2) if this process had to wait for the program.
    pub ended: Option<i32>,
}

impl Tracer {
    /// Attaches to all threads of a program and makes two userfaultfds in it. This process then holds the only descriptors.
    ///
    /// # Errors
    /// [`WatchError`] if the program cannot be traced, or may have no userfaultfd. It runs on as before.
    pub fn attach(root: &Root, pid: u32) -> Result<(Self, [OwnedFd; 2]), WatchError> {
        let is_filtered = check(root, pid)?;
        let mut tracer = Self { pid, threads: BTreeSet::new(), stopped_ns: 0, ended: None };
        tracer.seize_all(root, is_filtered)?;
        let made = tracer.make(root)?;
        Ok((tracer, made))
    }

    /// Makes them again, after the program has replaced itself.
    ///
    /// # Errors
    /// [`WatchError`], as for [`Self::attach`].
    pub fn make_again(&mut self, root: &Root) -> Result<[OwnedFd; 2], WatchError> {
        self.make(root)
    }

    fn seize_all(&mut self, root: &Root, is_filtered: bool) -> Result<(), WatchError> {
        let mut options = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_TRACEEXEC;
        options |= libc::PTRACE_O_TRACESYSGOOD;
        if is_filtered {
            options |= libc::PTRACE_O_SUSPEND_SECCOMP;
        }
        // Threads that traced ones start are traced from their start, so this ends.
        loop {
            let Reading::Known(names) = root.list(&format!("/proc/{}/task", self.pid)) else {
                return Err(WatchError::Ended(self.pid));
            };
            let tids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
            let fresh: Vec<u32> = tids.into_iter().filter(|tid| !self.threads.contains(tid)).collect();
            if fresh.is_empty() {
                return Ok(());
            }
            for tid in fresh {
                match request(libc::PTRACE_SEIZE, tid, options.into()) {
                    Ok(()) => {
                        self.threads.insert(tid);
                    }
                    // It has ended, or a traced thread has just started it.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) if self.is_own(root, tid) && error.raw_os_error() == Some(libc::EPERM) => {
                        self.threads.insert(tid);
                    }
                    Err(_) if is_filtered => return Err(WatchError::Filtered(self.pid)),
                    Err(source) => return Err(refused(root, self.pid, source)),
                }
            }
        }
    }

    /// Whether this process already traces a thread.
    fn is_own(&self, root: &Root, tid: u32) -> bool {
        let status = format!("/proc/{}/task/{tid}/status", self.pid);
        status_field(root, &status, "TracerPid:")
            == Some(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned())
    }

    /// Stops all threads, so that none forks with a descriptor, and makes them.
    fn make(&mut self, root: &Root) -> Result<[OwnedFd; 2], WatchError> {
        let begun = Instant::now();
        let made = self.stop_all().and_then(|()| self.make_stopped(root));
        for tid in &self.threads {
            // Of those that are not stopped it fails.
            let _ = request(libc::PTRACE_CONT, *tid, 0);
        }
        self.stopped_ns += u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        made
    }

    fn stop_all(&mut self) -> Result<(), WatchError> {
        let mut running: BTreeSet<u32> = self.threads.clone();
        running.retain(|tid| request(libc::PTRACE_INTERRUPT, *tid, 0).is_ok());
        let begun = Instant::now();
        while let Some(tid) = running.first().copied() {
            if begun.elapsed() > STOP_TIME {
                return Err(WatchError::Busy { pid: self.pid, tid });
            }
            let Some(stop) = next_stop(None) else {
                thread::sleep(LOOK);
                continue;
            };
            if stop.is_end() {
                running.remove(&stop.tid);
                self.forget(stop);
            } else if stop.is_group() {
                let _ = request(libc::PTRACE_LISTEN, stop.tid, 0);
                return Err(WatchError::Stopped(self.pid));
            } else if stop.is_trap() {
                self.threads.insert(stop.tid);
                running.remove(&stop.tid);
            } else {
                resume(stop);
            }
            if self.threads.is_empty() {
                return Err(WatchError::Ended(self.pid));
            }
        }
        Ok(())
    }

    fn make_stopped(&mut self, root: &Root) -> Result<[OwnedFd; 2], WatchError> {
        let pid = self.pid;
        let call = |doing, source| WatchError::Call { doing, pid, source };
        let memory = File::options().read(true).open(format!("/proc/{pid}/mem"));
        let memory = memory.map_err(|source| call("read the memory of", source))?;
        let code = inject::call_instruction(root, pid, &memory)
            .ok_or_else(|| call("find a system call in", io::ErrorKind::NotFound.into()))?;
        let tid = self.quiet_thread(&memory)?;
        let injected = Injected::begin(tid, code).map_err(|source| call("stop", source))?;
        let made = injected.userfaultfd(pid).and_then(|first| Ok([first, injected.userfaultfd(pid)?]));
        injected.end(pid).map_err(|source| call("continue", source))?;
        made.map_err(|source| {
            let hint = match source.raw_os_error() {
                Some(libc::EPERM) => "run the program as root, or set vm.unprivileged_userfaultfd to 1",
                _ => "use a kernel with CONFIG_USERFAULTFD",
            };
            WatchError::Userfaultfd { pid, source, hint }
        })
    }

    /// A stopped thread that is not inside a restartable sequence: the kernel would forget the sequence.
    fn quiet_thread(&mut self, memory: &File) -> Result<u32, WatchError> {
        for _ in 0..TRIES_MAX {
            for tid in &self.threads {
                let Ok(registers) = registers(*tid) else { continue };
                if registers.cs != CODE_64 {
                    return Err(WatchError::Narrow(self.pid));
                }
                if !inject::is_in_sequence(*tid, registers.rip, memory) {
                    return Ok(*tid);
                }
            }
            for tid in &self.threads {
                let _ = request(libc::PTRACE_CONT, *tid, 0);
            }
            thread::sleep(LOOK);
            self.stop_all()?;
        }
        Err(WatchError::Busy { pid: self.pid, tid: self.pid })
    }

    /// Reports the next event, and lets threads continue that stopped for another reason.
    pub fn event(&mut self) -> Option<TraceEvent> {
        while let Some(stop) = next_stop(None) {
            if stop.is_end() {
                self.forget(stop);
                if self.threads.is_empty() || stop.tid == self.pid {
                    return Some(TraceEvent::Ended);
                }
                continue;
            }
            self.threads.insert(stop.tid);
            match stop.event() {
                libc::PTRACE_EVENT_EXIT => return Some(TraceEvent::Ending(stop.tid)),
                libc::PTRACE_EVENT_EXEC => {
                    // The other threads are gone.
                    self.threads.retain(|tid| *tid == stop.tid);
                    resume(stop);
                    return Some(TraceEvent::Replaced);
                }
                _ => resume(stop),
            }
        }
        None
    }

    /// Lets a thread end, and waits until it has written what it writes at its end.
    pub fn let_end(&mut self, tid: u32) -> Option<TraceEvent> {
        let _ = request(libc::PTRACE_CONT, tid, 0);
        let begun = Instant::now();
        while begun.elapsed() < END_TIME {
            if let Some(stop) = next_stop(Some(tid)) {
                if stop.is_end() {
                    self.forget(stop);
                    break;
                }
                resume(stop);
            }
            // The first thread of a program stays until the others have ended.
            if tid == self.pid && self.threads.len() > 1 {
                thread::sleep(END_TIME / 10);
                self.threads.remove(&tid);
                return None;
            }
            thread::sleep(LOOK);
        }
        self.threads.is_empty().then_some(TraceEvent::Ended)
    }

    fn forget(&mut self, stop: Stop) {
        self.threads.remove(&stop.tid);
        if stop.tid == self.pid {
            self.ended = Some(stop.status);
        }
    }

    /// The threads that run.
    pub fn threads(&self) -> Vec<u32> {
        self.threads.iter().copied().collect()
    }
}

/// Checks a program before anything is done to it; returns whether it filters its system calls.
fn check(root: &Root, pid: u32) -> Result<bool, WatchError> {
    let status = format!("/proc/{pid}/status");
    let field = |name| status_field(root, &status, name);
    if field("Tgid:") != Some(pid) {
        return Err(WatchError::Missing(pid));
    }
    if field("VmSize:").is_none() {
        return Err(WatchError::Kernel(pid));
    }
    if let Some(tracer) = field("TracerPid:").filter(|tracer| *tracer != 0) {
        return Err(WatchError::Traced { pid, tracer });
    }
    Ok(field("Seccomp:").is_some_and(|mode| mode != 0))
}

fn status_field(root: &Root, path: &str, name: &str) -> Option<u32> {
    let bytes = root.read_bytes(path).into_known()?;
    let text = String::from_utf8_lossy(&bytes);
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Names the reason why ptrace(2) is refused.
fn refused(root: &Root, pid: u32, source: io::Error) -> WatchError {
    let scope = root.read_as::<u32>("/proc/sys/kernel/yama/ptrace_scope", "a number").into_known();
    let hint = match scope {
        Some(3) => "set kernel.yama.ptrace_scope below 3 at boot; it cannot be lowered later",
        Some(1 | 2) => "run as root; kernel.yama.ptrace_scope limits other users",
        _ => "run as root, or as the program's user",
    };
    WatchError::Attach { pid, source, hint }
}
