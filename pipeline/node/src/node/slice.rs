//! A short time slice for a node that sleeps (sched_setattr(2)).
//!
//! A woken task waits until the running one has used its slice, 3 ms by default. From Linux 6.12 on a task may ask for
//! a slice of its own, and one with a shorter slice is not kept waiting. A record takes some microseconds of work, so
//! a node that sleeps needs no more. Earlier kernels ignore the request.

use std::{io, mem::size_of};

/// The shortest slice that the kernel gives.
const SLICE_NS: u64 = 100_000;

/// `struct sched_attr` in its first version, which every kernel since 3.14 accepts.
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

/// Size of that version of the structure.
const BYTES: u32 = 48;
const _: () = assert!(size_of::<Attributes>() == BYTES as usize);

/// Shortens the slice of the calling thread. Does nothing under another policy than SCHED_OTHER, which the user chose,
/// or where the slice is short already.
pub(super) fn shorten() {
    // The default slice remains if the kernel refuses.
    let Ok(now) = attributes() else { return };
    if now.policy != libc::SCHED_OTHER.cast_unsigned() || (1..=SLICE_NS).contains(&now.runtime_ns) {
        return;
    }
    let wanted = Attributes { size: BYTES, runtime_ns: SLICE_NS, ..now };
    // SAFETY: the structure is laid out as `struct sched_attr` and alive through the call; its first member is its own
    // size, which bounds what the kernel reads. 0 is the calling thread, and no flags.
    _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
}

fn attributes() -> io::Result<Attributes> {
    let mut now = Attributes::default();
    // SAFETY: the kernel writes at most `BYTES` bytes, the structure's size. 0 is the calling thread, and no flags.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut now, BYTES, 0) };
    if result == 0 { Ok(now) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_a_short_slice_and_keeps_its_nice_value() {
        let (before, after) = std::thread::spawn(|| {
            let before = attributes().unwrap();
            shorten();
            (before, attributes().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!((before.policy, before.nice), (after.policy, after.nice));
        if before.runtime_ns == 0 {
            println!(
                "skipped: a_thread_gets_a_short_slice_and_keeps_its_nice_value: Linux before 6.12 has no slices"
            );
            return;
        }
        assert_eq!(after.runtime_ns, SLICE_NS, "{before:?}");
    }
}
