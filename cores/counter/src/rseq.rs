//! Additions in a restartable sequence (rseq(2), Documentation/userspace-api/rseq.rst).
//!
//! A thread shares an area with the kernel. The kernel writes the number of the thread's CPU there, and reads the
//! address of a descriptor: first and last instruction of a sequence, and where to go on if the thread is preempted,
//! moved or interrupted by a signal within it. glibc registers an area for each thread since 2.35; where it did not,
//! this module registers one.
//!
//! A thread's address of a descriptor is zero outside a sequence: the kernel would otherwise read it at the next
//! preemption, and end the process if the library that held it has been unloaded since.
//!
//! Other processors than x86-64 add atomically: the sequence would have to be written and proven on each. On aarch64
//! with LSE an atomic addition to a line that no other CPU uses is one instruction, and emulators that run aarch64
//! programs have no rseq, so that nothing would show a mistake there before a count is wrong.

use super::Part;
use std::{arch::asm, cell::Cell, ffi::c_void, ptr, sync::atomic::AtomicI64};

/// `struct rseq` as of Linux 4.18. Later fields are behind it.
#[repr(C, align(32))]
struct RseqArea {
    cpu_id_start: u32,
    cpu_id: u32,
    descriptor: u64,
    flags: u32,
    rest: [u32; 3],
}

/// Precedes the code at which an aborted sequence goes on; the same as glibc's.
const SIGNATURE: u32 = 0x5305_3053;
/// Flag that unregisters an area.
const UNREGISTER: i32 = 1;
/// Restarts after which something is wrong, such as a debugger that steps through the sequence.
const RESTARTS_MAX: u32 = 1_000;
/// Upper bound of CPU numbers. The kernel writes a larger one before the first return to user space, and if
/// registration failed.
const CPUS_MAX: u32 = 1 << 20;

thread_local! {
    /// The area of this thread; null before it is known.
    static CURRENT: Cell<*mut RseqArea> = const { Cell::new(ptr::null_mut()) };
    /// The area that this module registered.
    static REGISTERED: Registered = const { Registered(Cell::new(None)) };
}

/// Stands for a thread that has no area.
static mut NONE: RseqArea =
    RseqArea { cpu_id_start: u32::MAX, cpu_id: u32::MAX, descriptor: 0, flags: 0, rest: [0; 3] };

/// Unregisters the area when the thread ends.
struct Registered(Cell<Option<Box<RseqArea>>>);

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
fn register(area: *mut RseqArea, flags: i32) -> bool {
    // SAFETY: the caller keeps the area where it is until it is unregistered; the kernel writes only into it.
    let result = unsafe { libc::syscall(libc::SYS_rseq, area, size_of::<RseqArea>(), flags, SIGNATURE) };
    result == 0
}

/// Addresses of glibc's `__rseq_size` and `__rseq_offset`; null where they do not exist.
///
/// dlsym, and not weak symbols as below: a linker that finds these in glibc may bind the program to that version.
#[cfg(not(all(target_env = "gnu", target_feature = "crt-static")))]
fn symbols_of_glibc() -> [*const c_void; 2] {
    // SAFETY: both names are literals that end with a zero byte.
    [c"__rseq_size", c"__rseq_offset"]
        .map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.cast_const())
}

/// As above. In a static program dlsym finds nothing.
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
fn symbols_of_glibc() -> [*const c_void; 2] {
    let (size, offset): (*const c_void, *const c_void);
    // SAFETY: it reads two words of the global offset table, which the linker fills with the symbols' addresses, or with
    // zero for a weak symbol that is missing.
    unsafe {
        asm!(
            ".weak __rseq_size",
            ".weak __rseq_offset",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            size = out(reg) size,
            offset = out(reg) offset,
            options(nostack, preserves_flags, pure, readonly),
        );
    }
    [size, offset]
}

/// The area that glibc registered for this thread.
fn of_glibc() -> Option<*mut RseqArea> {
    let [size, offset] = symbols_of_glibc();
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
fn find() -> *mut RseqArea {
    let found = of_glibc().unwrap_or_else(|| {
        let mut area =
            Box::new(RseqArea { cpu_id_start: 0, cpu_id: u32::MAX, descriptor: 0, flags: 0, rest: [0; 3] });
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
fn current() -> *mut RseqArea {
    let area = CURRENT.get();
    if area.is_null() { find() } else { area }
}

/// True if this thread has an area.
pub fn is_registered() -> bool {
    // SAFETY: `current` returns the area of this thread, which lives as long as the thread, or the static.
    let cpu = unsafe { (&raw const (*current()).cpu_id).read_volatile() };
    cpu < CPUS_MAX
}

/// Adds to the part of the CPU on which this thread runs, and returns that part. `None` without restartable
/// sequences, or for a CPU without a part.
#[inline]
pub fn add(parts: &[Part], value: i64) -> Option<&Part> {
    let area = current();
    for _ in 0..RESTARTS_MAX {
        // SAFETY: `current` returns the area of this thread, which lives as long as the thread, or the static. The kernel
        // changes it, hence volatile.
        let cpu = unsafe { (&raw const (*area).cpu_id_start).read_volatile() };
        let part = parts.get(usize::try_from(cpu).ok()?)?;
        // SAFETY: the area is that of this thread, and the part is that of `cpu`, which only sequences on that CPU change.
        if unsafe { add_on(area, cpu, &part.value, value) } {
            return Some(part);
        }
    }
    None
}

/// Adds to a value if this thread is on `cpu` from the first to the last instruction. Returns whether it was; if not,
/// or if it was preempted or interrupted meanwhile, nothing has changed.
///
/// # Safety
/// `area` must be this thread's registered area, or one that names no CPU. Only this function with the same `cpu` may
/// change `value_of`.
#[inline]
unsafe fn add_on(area: *mut RseqArea, cpu: u32, value_of: &AtomicI64, value: i64) -> bool {
    // SAFETY: the sequence (21 to 22) reads and writes only the area and the value, both valid by the caller's promise. Its
    // last instruction is the only one that changes the value, so an abort before it has no effect. The
    // kernel jumps to 24 alone, which the signature precedes, with all registers as they were. The
    // descriptor is constant, and its section is mapped as long as the code: its address is taken back before this code
    // is left, by whichever way. A preemption before that is harmless, and so is a signal whose handler adds, because
    // the sequence begins with the instruction behind the one that sets the address. Nothing is pushed on the stack.
    unsafe {
        asm!(
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "20:",
            ".long 0, 0",
            ".quad 21f, 22f - 21f, 24f",
            ".popsection",
            "lea {held}, [rip + 20b]",
            "mov qword ptr [{area} + 8], {held}",
            "21:",
            "cmp dword ptr [{area} + 4], {cpu:e}",
            "jne 24f",
            "mov {held}, qword ptr [{value_at}]",
            "add {held}, {value}",
            "mov qword ptr [{value_at}], {held}",
            "22:",
            "mov qword ptr [{area} + 8], 0",
            ".pushsection __rseq_failure, \"ax\"",
            // An undefined instruction whose operand is the signature.
            ".byte 0x0f, 0xb9, 0x3d",
            ".long {signature}",
            "24:",
            "mov qword ptr [{area} + 8], 0",
            "jmp {failed}",
            ".popsection",
            area = in(reg) area,
            cpu = in(reg) cpu,
            value_at = in(reg) value_of.as_ptr(),
            value = in(reg) value,
            held = out(reg) _,
            signature = const SIGNATURE,
            failed = label { return false },
            options(nostack),
        );
    }
    true
}
