//! Forked processes that do nothing but call the system.

use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitOptions, kill_process, waitpid},
};
use std::{
    io,
    os::fd::{AsFd, RawFd},
};

/// Exit code of a process whose work panicked.
const PANICKED: i32 = 101;

/// A forked process. It is killed and waited for when this is dropped.
#[derive(Debug)]
pub struct Forked {
    pid: Pid,
    is_over: bool,
}

/// Ends the process however its work ends: a panic must not unwind into the parent's code.
struct End(i32);

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: it ends the process; no destructor or exit handler of the parent runs.
        unsafe { libc::_exit(self.0) }
    }
}

/// Forks a process that does `work` and ends. It ignores Ctrl-C, which the terminal sends to the whole process group:
/// its parent decides. If `dies_along`, the kernel kills it when the calling thread ends.
///
/// `work` must neither allocate nor lock: other threads of the parent may hold locks.
///
/// # Errors
/// The system's error.
pub fn fork(dies_along: bool, work: impl FnOnce()) -> io::Result<Forked> {
    let parent = rustix::process::getpid();
    // Until the child has its own dispositions, a signal would run the parent's handler in it.
    let before = mask(libc::SIG_BLOCK, None);
    // SAFETY: the child only runs what follows, which calls the system and `work`, and then ends.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let mut end = End(PANICKED);
        for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGTERM, libc::SIGPIPE] {
            // SAFETY: ignoring a signal takes no handler.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        mask(libc::SIG_SETMASK, Some(before));
        if dies_along {
            // The parent may have ended before.
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            if rustix::process::getppid() != Some(parent) {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        work();
        end.0 = 0;
        drop(end);
    }
    let error = io::Error::last_os_error();
    mask(libc::SIG_SETMASK, Some(before));
    Pid::from_raw(pid).filter(|_| pid > 0).map(|pid| Forked { pid, is_over: false }).ok_or(error)
}

/// Changes the calling thread's mask of signals to all signals, or to one that was returned before.
fn mask(how: i32, to: Option<libc::sigset_t>) -> libc::sigset_t {
    // SAFETY: a set of signals is plain data; sigfillset fills it.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut before = all;
    // SAFETY: the sets are alive; the call has no other effect than on the mask, and fails for a wrong `how` only.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(how, &raw const *to.as_ref().unwrap_or(&all), &raw mut before);
    }
    before
}

/// Closes a descriptor that the parent holds.
pub fn leave(held: RawFd) {
    // SAFETY: the child never uses its copy of it.
    unsafe { libc::close(held) };
}

/// Waits until a pipe has no writer.
pub fn only_read(pipe: impl AsFd) {
    while matches!(retry_on_intr(|| rustix::io::read(&pipe, &mut [0_u8; 1])), Ok(1)) {}
}

impl Forked {
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns whether it ended successfully; `None` if it has not ended.
    pub fn ended(&mut self) -> Option<bool> {
        let status = waitpid(Some(self.pid), WaitOptions::NOHANG).transpose()?;
        self.is_over = true;
        Some(status.is_ok_and(|(_, status)| status.exit_status() == Some(0)))
    }

    /// True if it has been waited for.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Waits until the process ends.
    pub fn wait(mut self) {
        let _ = retry_on_intr(|| waitpid(Some(self.pid), WaitOptions::empty()));
        self.is_over = true;
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = retry_on_intr(|| waitpid(Some(self.pid), WaitOptions::empty()));
        }
    }
}
