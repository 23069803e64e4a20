//! Signals for the command: those that other processes send to lowlat are passed on.

use std::{mem::MaybeUninit, process::Child, ptr, time::Duration};

/// Signals that keep their usual effect on lowlat: faults of its own, those of job control, which the terminal sends to
/// the command too, and SIGPIPE. All others that can be blocked are passed on.
const KEPT: [libc::c_int; 11] = [
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGPIPE,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
];

/// Blocked signals, which wait to be received. Unblocked again when dropped.
pub struct Signals {
    set: libc::sigset_t,
    before: libc::sigset_t,
}

/// A signal for the command. The terminal sends its signals to all processes of lowlat's process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    pub signal: libc::c_int,
    /// The kernel sent it, not a process.
    pub is_of_terminal: bool,
}

impl Signals {
    /// Blocks the signals for this thread, and for the threads and processes that it starts: a command must call
    /// [`Mask::restore`].
    pub fn block() -> Self {
        let mut set = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: `sigfillset` initialises the set before anything reads it; `pthread_sigmask` reads the set and
        // initialises `before`. Both are alive through the calls.
        unsafe {
            libc::sigfillset(set.as_mut_ptr());
            for signal in KEPT {
                libc::sigdelset(set.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            Self { set: set.assume_init(), before: before.assume_init() }
        }
    }

    /// Returns the signal mask from before [`Signals::block`].
    pub fn mask(&self) -> Mask {
        Mask(self.before)
    }

    /// Waits for the next signal, and returns one that is to be passed on; `None` if a child has changed its state, or
    /// nothing arrived within the time.
    pub fn wait(&self, patience: Duration) -> Option<Passed> {
        self.next(patience).filter(|received| received.signal != libc::SIGCHLD)
    }

    fn next(&self, patience: Duration) -> Option<Passed> {
        let timeout = libc::timespec {
            tv_sec: patience.as_secs().try_into().unwrap_or(1),
            tv_nsec: patience.subsec_nanos().into(),
        };
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the set, the structure and the time are alive through the call, which writes no more than the
        // structure.
        let signal =
            unsafe { libc::sigtimedwait(&raw const self.set, info.as_mut_ptr(), &raw const timeout) };
        // SAFETY: zeroes are a valid `siginfo_t`, so it is initialised even if the call failed.
        let code = unsafe { info.assume_init() }.si_code;
        (signal > 0).then_some(Passed { signal, is_of_terminal: code == libc::SI_KERNEL })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Those that still wait were for the command. Unblocked, they would end lowlat before it passes the exit code.
        while self.next(Duration::ZERO).is_some() {}
        self.mask().restore();
    }
}

/// The signals that were blocked before [`Signals::block`].
#[derive(Clone, Copy)]
pub struct Mask(libc::sigset_t);

impl Mask {
    /// Makes it the calling thread's. It only makes a system call, so a forked process may call it before exec.
    pub fn restore(self) {
        // SAFETY: the mask is initialised: `Signals::block` read it from the kernel.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// Sends a signal to a child that has not been waited for; one of the terminal only if the child has left lowlat's
/// process group, to which the terminal sent it.
pub fn send(child: &Child, signal: libc::c_int, is_of_terminal: bool) {
    let Ok(pid) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: the calls take numbers only. The process id belongs to the child until it is waited for.
    unsafe {
        if !is_of_terminal || libc::getpgid(pid) != libc::getpgrp() {
            libc::kill(pid, signal);
        }
    }
}
