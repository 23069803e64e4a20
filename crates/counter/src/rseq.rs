//! Additions in a restartable sequence (rseq(2), Documentation/userspace-api/rseq.rst).
//!
//! A thread shares an area with the kernel. The kernel writes the number of the thread's CPU there, and reads the
//! address of a descriptor: first and last instruction of a sequence, and where to go on if the thread is
//! preempted, moved or interrupted by a signal within it. glibc registers an area for each thread since 2.35; where it did not,
//! this module registers one.

use super::Part;
use std::{arch::asm, cell::Cell, ptr};

/// `struct rseq` as of Linux 4.18. Later fields are behind it.
#[repr(C, align(32))]
struct Area {
    cpu_id_start: u32,
    cpu_id: u32,
    descriptor: u64,
    flags: u32,
    rest: [u32; 3],
}

/// Precedes the code at which an aborted sequence goes on; the same as glibc's.
const SIGNATURE: u32 = 0x5305_3053;
/// Unregisters an area.
const UNREGISTER: i32 = 1;
/// Restarts after which something is wrong, such as a debugger that steps through the sequence.
const RESTARTS_MAX: u32 = 1_000;
/// What the kernel writes as CPU before the first return to user space, and if registration failed.
const CPUS_MAX: u32 = 1 << 20;

thread_local! {
    /// The area of this thread; null before it is known.
    static CURRENT: Cell<*mut Area> = const { Cell::new(ptr::null_mut()) };
    /// The area that this module registered.
    static REGISTERED: Registered = const { Registered(Cell::new(None)) };
}

/// Stands for a thread that has no area.
static mut NONE: Area =
    Area { cpu_id_start: u32::MAX, cpu_id: u32::MAX, descriptor: 0, flags: 0, rest: [0; 3] };

/// Unregisters the area when the thread ends.
struct Registered(Cell<Option<Box<Area>>>);

impl Drop for Registered {
    fn drop(&mut self) {
        // From now on the thread has no area.
        CURRENT.set(&raw mut NONE);
        if let Some(mut area) = self.0.take()
            && !register(&raw mut *area, UNREGISTER)
        {
            // The kernel goes on writing to it, so it must not be freed.
            Box::leak(area);
        }
    }
}

/// Registers or unregisters an area of this thread. Returns whether that worked.
fn register(area: *mut Area, flags: i32) -> bool {
    // SAFETY: the caller keeps the area where it is until it is unregistered; the kernel writes only into it.
    let result = unsafe { libc::syscall(libc::SYS_rseq, area, size_of::<Area>(), flags, SIGNATURE) };
    result == 0
}

/// The area that glibc registered for this thread.
fn of_glibc() -> Option<*mut Area> {
    // SAFETY: both names are literals that end with a zero byte.
    let [size, offset] = [c"__rseq_size", c"__rseq_offset"]
        .map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
    if size.is_null() || offset.is_null() {
        return None;
    }
    // SAFETY: glibc exports an unsigned int of the first name and a ptrdiff_t of the second; both are constant once the
    // program runs.
    let (size, offset) = unsafe { (*size.cast::<u32>(), *offset.cast::<isize>()) };
    if size == 0 {
        return None;
    }
    let thread: *mut u8;
    // SAFETY: on x86-64 the first word at fs is the address of the thread's control block itself.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) thread, options(nostack, preserves_flags, readonly));
    }
    Some(thread.wrapping_offset(offset).cast())
}

/// Finds or registers the area of this thread.
#[cold]
fn find() -> *mut Area {
    let found = of_glibc().unwrap_or_else(|| {
        let mut area =
            Box::new(Area { cpu_id_start: 0, cpu_id: u32::MAX, descriptor: 0, flags: 0, rest: [0; 3] });
        let address = &raw mut *area;
        let is_kept = REGISTERED.try_with(|registered| {
            let is_registered = register(address, 0);
            if is_registered {
                registered.0.set(Some(area));
            }
            is_registered
        });
        // The kernel lacks it, or another library has registered an area that is not known here.
        if is_kept == Ok(true) { address } else { &raw mut NONE }
    });
    CURRENT.set(found);
    found
}

#[inline]
fn current() -> *mut Area {
    let area = CURRENT.get();
    if area.is_null() { find() } else { area }
}

/// Whether this thread has an area.
pub fn is_registered() -> bool {
    // SAFETY: `current` returns the area of this thread, which lives as long as the thread, or the static.
    let cpu = unsafe { (&raw const (*current()).cpu_id).read_volatile() };
    cpu < CPUS_MAX
}

/// Adds to the part of the CPU on which this thread runs, and returns what it holds then. `None` without restartable
/// sequences, or for a CPU without a part.
#[inline]
pub fn add(parts: &[Part], value: i64) -> Option<i64> {
    let area = current();
    for _ in 0..RESTARTS_MAX {
        // SAFETY: `current` returns the area of this thread, which lives as long as the thread, or the static. The kernel
        // changes it, hence volatile.
        let cpu = unsafe { (&raw const (*area).cpu_id_start).read_volatile() };
        let part = parts.get(usize::try_from(cpu).ok()?)?;
        // SAFETY: the area is that of this thread, and the part is that of `cpu`, which only sequences on that CPU change.
        if let Some(held) = unsafe { add_on(area, cpu, part.0.as_ptr(), value) } {
            return Some(held);
        }
    }
    None
}

/// Adds to a value if this thread is on `cpu` from the first to the last instruction. Returns the new value, or `None`
/// if the thread was elsewhere, or was preempted, moved or interrupted meanwhile, with nothing changed.
///
/// # Safety
/// `area` must be this thread's registered area, or one that names no CPU. `value_at` must be valid and
/// aligned, and changed only by this function with the same `cpu`.
#[inline]
unsafe fn add_on(area: *mut Area, cpu: u32, value_at: *mut i64, value: i64) -> Option<i64> {
    let (done, held): (u32, i64);
    // SAFETY: the sequence (21 to 22) reads and writes only the area and the value, both valid by the caller's promise. Its
    // last instruction is the only one that changes the value, so an abort before it has no effect. The
    // kernel jumps to 24 alone, which the signature precedes, with all registers as they were; `done` is zero there. The
    // descriptor is constant, and its section is mapped as long as the code. Nothing is pushed on the stack.
    unsafe {
        asm!(
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "20:",
            ".long 0, 0",
            ".quad 21f, 22f - 21f, 24f",
            ".popsection",
            "xor {done:e}, {done:e}",
            "lea {held}, [rip + 20b]",
            "mov qword ptr [{area} + 8], {held}",
            "21:",
            "cmp dword ptr [{area} + 4], {cpu:e}",
            "jne 25f",
            "mov {held}, qword ptr [{value_at}]",
            "add {held}, {value}",
            "mov qword ptr [{value_at}], {held}",
            "22:",
            "inc {done:e}",
            "25:",
            ".pushsection __rseq_failure, \"ax\"",
            // An undefined instruction whose operand is the signature.
            ".byte 0x0f, 0xb9, 0x3d",
            ".long {signature}",
            "24:",
            "jmp 25b",
            ".popsection",
            area = in(reg) area,
            cpu = in(reg) cpu,
            value_at = in(reg) value_at,
            value = in(reg) value,
            done = out(reg) done,
            held = out(reg) held,
            signature = const SIGNATURE,
            options(nostack),
        );
    }
    (done == 1).then_some(held)
}
