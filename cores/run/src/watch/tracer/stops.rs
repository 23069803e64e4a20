//! Requests of ptrace(2), and the stops that wait(2) reports.

use super::{LOOK, STOP_TIME};
use std::{io, mem::MaybeUninit, ptr, thread, time::Instant};

/// Number of a request, as the C library declares it.
#[cfg(target_env = "musl")]
pub type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
pub type Request = libc::c_uint;

const GET_SIGNAL_MASK: Request = 0x420a;
const SET_SIGNAL_MASK: Request = 0x420b;
/// A stop at a system call (PTRACE_O_TRACESYSGOOD).
pub const CALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// A stop of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    pub tid: u32,
    pub status: i32,
}

impl Stop {
    pub fn signal(self) -> i32 {
        libc::WSTOPSIG(self.status)
    }

    pub fn event(self) -> i32 {
        self.status >> 16
    }

    pub fn is_end(self) -> bool {
        !libc::WIFSTOPPED(self.status)
    }

    /// A stop that was asked for, or the first one of a new thread.
    pub fn is_trap(self) -> bool {
        self.event() == libc::PTRACE_EVENT_STOP && self.signal() == libc::SIGTRAP
    }

    /// The signal that the thread gets when it continues; 0 if none.
    fn pending_signal(self) -> i32 {
        if self.event() == 0 && self.signal() != CALL_STOP { self.signal() } else { 0 }
    }

    /// The whole program is stopped by a signal.
    pub fn is_group(self) -> bool {
        self.event() == libc::PTRACE_EVENT_STOP && !self.is_trap()
    }
}

pub fn task(tid: u32) -> libc::pid_t {
    tid.cast_signed()
}

/// Makes a request without memory.
pub fn request(what: Request, tid: u32, value: libc::c_long) -> io::Result<()> {
    // SAFETY: these requests (seize, interrupt, continue, listen, detach) take numbers and touch no memory of this process.
    let done = unsafe { libc::ptrace(what, task(tid), ptr::null_mut::<libc::c_void>(), value) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a request that reads or writes a value of this process.
pub fn exchange<T>(what: Request, tid: u32, bytes: usize, value: *mut T) -> io::Result<()> {
    // SAFETY: each caller passes memory of the type that the request reads or writes, of `bytes` bytes where it asks.
    let done = unsafe { libc::ptrace(what, task(tid), bytes, value) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub fn registers(tid: u32) -> io::Result<libc::user_regs_struct> {
    let mut registers = MaybeUninit::uninit();
    exchange(libc::PTRACE_GETREGS, tid, 0, registers.as_mut_ptr())?;
    // SAFETY: the request succeeded, so the kernel has written all registers.
    Ok(unsafe { registers.assume_init() })
}

pub fn set_registers(tid: u32, mut registers: libc::user_regs_struct) -> io::Result<()> {
    exchange(libc::PTRACE_SETREGS, tid, 0, &raw mut registers)
}

pub fn signal_mask(tid: u32) -> io::Result<u64> {
    let mut mask = 0_u64;
    exchange(GET_SIGNAL_MASK, tid, size_of::<u64>(), &raw mut mask)?;
    Ok(mask)
}

pub fn set_signal_mask(tid: u32, mut mask: u64) -> io::Result<()> {
    exchange(SET_SIGNAL_MASK, tid, size_of::<u64>(), &raw mut mask)
}

/// The next stop or end of a thread that this thread traces; of any if `tid` is `None`.
pub fn next_stop(tid: Option<u32>) -> Option<Stop> {
    let mut status = 0;
    // Only of this thread, so that children of others are left to them.
    let options = libc::__WALL | libc::WNOHANG | libc::__WNOTHREAD;
    // SAFETY: the kernel writes the status, which lives during the call.
    let found = unsafe { libc::waitpid(tid.map_or(-1, task), &raw mut status, options) };
    (found > 0).then(|| Stop { tid: found.cast_unsigned(), status })
}

pub fn wait_for(tid: u32) -> Option<Stop> {
    let begun = Instant::now();
    while begun.elapsed() < STOP_TIME {
        if let Some(stop) = next_stop(Some(tid)) {
            return Some(stop);
        }
        thread::sleep(LOOK);
    }
    None
}

/// Lets a thread continue, with the signal that it was about to get.
pub fn resume(stop: Stop) {
    // It fails if the thread has been killed.
    let _ = if stop.is_group() {
        request(libc::PTRACE_LISTEN, stop.tid, 0)
    } else {
        request(libc::PTRACE_CONT, stop.tid, stop.pending_signal().into())
    };
}

/// Stops tracing a stopped thread. It gets the signal that it was about to get, or stays stopped with its program.
pub fn let_go(stop: Stop) {
    let _ = request(libc::PTRACE_DETACH, stop.tid, stop.pending_signal().into());
}
