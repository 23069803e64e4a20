//! System calls that a stopped thread makes for this process.

use super::stops::{
    CALL_STOP, Request, exchange, registers, request, set_registers, set_signal_mask, signal_mask, task,
    wait_for,
};
use crate::watch::{Mapping, mappings};
use lowlat_host_run::Root;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::{
    cell::Cell,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::FileExt},
};

/// Bytes of code searched for a system call.
const CODE_BYTES_MAX: usize = 1 << 20;
/// Machine code of the instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Not in a system call, so that none is restarted.
const NO_CALL: u64 = u64::MAX;
const GET_RSEQ_CONFIGURATION: Request = 0x420f;

/// Takes a descriptor of another process.
fn copy(pid: u32, number: i64) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(task(pid)).ok_or(io::ErrorKind::InvalidInput)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let number = i32::try_from(number).map_err(io::Error::other)?;
    Ok(pidfd_getfd(process, number, PidfdGetfdFlags::empty())?)
}

/// The address of a `syscall` instruction: in the vDSO if possible, which every program has.
pub fn call_instruction(root: &Root, pid: u32, memory: &File) -> Option<u64> {
    let mut code: Vec<Mapping> = mappings(root, pid).into_known()?;
    code.retain(|mapping| mapping.is_executable() && mapping.access.starts_with('r'));
    code.sort_by_key(|mapping| mapping.name != "[vdso]");
    code.iter().find_map(|mapping| {
        let count = usize::try_from(mapping.bytes()).unwrap_or(CODE_BYTES_MAX).min(CODE_BYTES_MAX);
        let mut bytes = vec![0; count];
        let read = memory.read_at(&mut bytes, mapping.start).ok()?;
        let place = bytes[..read].windows(SYSCALL.len()).position(|at| at == SYSCALL)?;
        Some(mapping.start + place as u64)
    })
}

/// True if a thread was stopped inside a restartable sequence (rseq(2)).
pub fn is_in_sequence(tid: u32, instruction: u64, memory: &File) -> bool {
    /// struct ptrace_rseq_configuration
    #[repr(C)]
    #[derive(Default)]
    struct Configuration {
        area: u64,
        bytes: u32,
        signature: u32,
        flags: u32,
        pad: u32,
    }
    let mut of = Configuration::default();
    let bytes = size_of::<Configuration>();
    if exchange(GET_RSEQ_CONFIGURATION, tid, bytes, &raw mut of).is_err() || of.area == 0 {
        return false;
    }
    let word = |address: u64| {
        let mut bytes = [0_u8; 8];
        memory.read_exact_at(&mut bytes, address).ok().map(|()| u64::from_ne_bytes(bytes))
    };
    // struct rseq has the sequence's address at 8; struct rseq_cs has its start at 8 and its length at 16.
    let Some(sequence) = word(of.area + 8).filter(|sequence| *sequence != 0) else { return false };
    match (word(sequence + 8), word(sequence + 16)) {
        (Some(start), Some(bytes)) => instruction.wrapping_sub(start) < bytes,
        _ => true,
    }
}

/// A stopped thread that makes calls for this process.
pub struct Injected {
    tid: u32,
    code: u64,
    registers: libc::user_regs_struct,
    mask: u64,
    /// True if a signal that cannot be blocked tried to stop the thread.
    was_stopped: Cell<bool>,
}

impl Injected {
    pub fn begin(tid: u32, code: u64) -> io::Result<Self> {
        let injected = Self {
            tid,
            code,
            registers: registers(tid)?,
            mask: signal_mask(tid)?,
            was_stopped: Cell::new(false),
        };
        // Signals wait until the thread is as it was.
        set_signal_mask(tid, u64::MAX)?;
        Ok(injected)
    }

    /// Makes a call with one argument.
    fn call(&self, number: libc::c_long, argument: u64) -> io::Result<i64> {
        let wanted = libc::user_regs_struct {
            rip: self.code,
            rax: number.cast_unsigned(),
            orig_rax: NO_CALL,
            rdi: argument,
            ..self.registers
        };
        set_registers(self.tid, wanted)?;
        // Once to the call's entry, once to its exit.
        self.to_call_stop()?;
        self.to_call_stop()?;
        let result = registers(self.tid)?.rax.cast_signed();
        match i32::try_from(result) {
            Ok(error @ -4095..0) => Err(io::Error::from_raw_os_error(-error)),
            _ => Ok(result),
        }
    }

    fn to_call_stop(&self) -> io::Result<()> {
        loop {
            request(libc::PTRACE_SYSCALL, self.tid, 0)?;
            let stop = wait_for(self.tid).ok_or(io::ErrorKind::TimedOut)?;
            if stop.is_end() || stop.event() == libc::PTRACE_EVENT_EXIT {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            if stop.event() == 0 && stop.signal() == CALL_STOP {
                return Ok(());
            }
            self.was_stopped.set(self.was_stopped.get() || stop.signal() == libc::SIGSTOP);
        }
    }

    /// Makes a userfaultfd, and closes it in the program when this process has it.
    pub fn userfaultfd(&self, pid: u32) -> io::Result<OwnedFd> {
        let flags = u64::from((libc::O_CLOEXEC | libc::O_NONBLOCK).cast_unsigned());
        let number = self.call(libc::SYS_userfaultfd, flags)?;
        let copied = copy(pid, number);
        // Before anything is watched: this process then has the only descriptor.
        self.call(libc::SYS_close, number.cast_unsigned())?;
        copied
    }

    /// Gives the thread its registers and signals back. It stays stopped.
    pub fn end(self, pid: u32) -> io::Result<()> {
        // From the exit of a call to where the kernel delivers signals, since only there it restarts a call that was
        // interrupted when the thread was first stopped.
        request(libc::PTRACE_INTERRUPT, self.tid, 0)?;
        request(libc::PTRACE_CONT, self.tid, 0)?;
        let stop = wait_for(self.tid).ok_or(io::ErrorKind::TimedOut)?;
        if stop.is_end() || stop.event() == libc::PTRACE_EVENT_EXIT {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        set_registers(self.tid, self.registers)?;
        set_signal_mask(self.tid, self.mask)?;
        if let (true, Some(pid)) = (self.was_stopped.get(), Pid::from_raw(task(pid))) {
            rustix::process::kill_process(pid, rustix::process::Signal::STOP)?;
        }
        Ok(())
    }
}
