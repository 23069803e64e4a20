//! The kernel's calibration of the counter, as exposed by perf_event_open(2).
//!
//! The first mapped page of any perf event contains `time_mult` and `time_shift` if the kernel uses the counter
//! for its scheduler clock (`cap_user_time`): ns = ticks * time_mult >> time_shift. It is unavailable in guests
//! with kvm-clock, in kernels without perf, and with a strict `perf_event_paranoid`.

use rustix::{
    fd::{AsFd, FromRawFd, OwnedFd},
    mm::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{mem::offset_of, ptr, sync::atomic};

/// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_DUMMY` (include/uapi/linux/perf_event.h): an event that counts nothing.
const TYPE_SOFTWARE: u32 = 1;
const COUNT_DUMMY: u64 = 9;
/// `exclude_kernel` and `exclude_hv` in the attribute's bit field: required for unprivileged users.
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// `cap_user_time` in the page's capabilities.
const CAP_USER_TIME: u64 = 1 << 3;
/// `PERF_FLAG_FD_CLOEXEC`.
const FLAG_CLOEXEC: libc::c_ulong = 1 << 3;
/// Attempts to read between two writes of the kernel; it writes rarely.
const ATTEMPTS: u32 = 1_000;

/// The first 64 bytes of `struct perf_event_attr` (`PERF_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Default)]
struct Attribute {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

/// The start of `struct perf_event_mmap_page`.
#[repr(C)]
struct Page {
    version: u32,
    compat_version: u32,
    lock: u32,
    index: u32,
    offset: i64,
    time_enabled: u64,
    time_running: u64,
    capabilities: u64,
    pmc_width: u16,
    time_shift: u16,
    time_mult: u32,
}

const _: () = assert!(size_of::<Attribute>() == 64 && offset_of!(Page, time_mult) == 52);

/// Ticks per second according to the kernel's calibration; `None` if unavailable.
pub fn counter_hz() -> Option<u64> {
    let event = open_dummy_event()?;
    let length = rustix::param::page_size();
    // SAFETY: a fresh mapping of one page at an address chosen by the kernel; it overlaps nothing of ours.
    let address =
        unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, event.as_fd(), 0).ok()? };
    let scale = read_scale(address.cast::<Page>());
    // SAFETY: unmaps exactly what was mapped above; no reference into it is left.
    let _ = unsafe { munmap(address, length) };
    let (mult, shift) = scale?;
    hz_of(mult, shift)
}

fn open_dummy_event() -> Option<OwnedFd> {
    let attribute = Attribute {
        kind: TYPE_SOFTWARE,
        size: 64,
        config: COUNT_DUMMY,
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        ..Attribute::default()
    };
    let (this_thread, any_cpu, no_group): (libc::c_int, libc::c_int, libc::c_int) = (0, -1, -1);
    // SAFETY: the attribute is alive through the call and as long as its `size` says; the kernel only reads it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attribute,
            this_thread,
            any_cpu,
            no_group,
            FLAG_CLOEXEC,
        )
    };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Multiplier and shift, read under the page's sequence lock.
fn read_scale(page: *const Page) -> Option<(u32, u16)> {
    for _ in 0..ATTEMPTS {
        // SAFETY: the page is mapped readable, at least one page long and aligned. The kernel may write it at
        // any time, so each field is read once and volatile; a torn pair is detected because `lock` changes.
        let (before, capabilities, shift, mult, after) = unsafe {
            let before = ptr::read_volatile(&raw const (*page).lock);
            atomic::fence(atomic::Ordering::Acquire);
            let capabilities = ptr::read_volatile(&raw const (*page).capabilities);
            let shift = ptr::read_volatile(&raw const (*page).time_shift);
            let mult = ptr::read_volatile(&raw const (*page).time_mult);
            // Acquire: keeps the reads above before the second read of the lock, like the kernel's barrier.
            atomic::fence(atomic::Ordering::Acquire);
            (before, capabilities, shift, mult, ptr::read_volatile(&raw const (*page).lock))
        };
        if before == after && before & 1 == 0 {
            return (capabilities & CAP_USER_TIME != 0).then_some((mult, shift));
        }
    }
    None
}

fn hz_of(mult: u32, shift: u16) -> Option<u64> {
    let ticks = 1_000_000_000_u128.checked_shl(u32::from(shift)).filter(|_| shift <= 64)?;
    let mult = u128::from(mult);
    u64::try_from(ticks.checked_add(mult / 2)?.checked_div(mult)?).ok().filter(|hz| *hz > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplier_and_shift_give_the_frequency() {
        // 2.4 GHz: 2^31 / 2.4 rounded.
        assert_eq!(hz_of(894_784_853, 31), Some(2_400_000_001));
        assert_eq!(hz_of(0, 31), None);
        assert_eq!(hz_of(1, 65), None);
        assert_eq!(hz_of(u32::MAX, 0), None);
    }

    #[test]
    fn the_calibration_is_plausible_or_unavailable() {
        match counter_hz() {
            Some(hz) => assert!((1_000_000..=20_000_000_000).contains(&hz), "{hz}"),
            None => eprintln!("skipped: this kernel exposes no counter calibration through perf events"),
        }
    }
}
