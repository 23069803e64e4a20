//! Prefetches of cache lines.

use crate::atomics::AtomicU64;

/// Fetches the line of a word without waiting. A hint that reads nothing; a no-op where no instruction exists.
#[inline]
pub fn line(word: Option<&AtomicU64>) {
    word.inspect(|word| hint::to_read(word));
}

/// Like [`line()`], for a line about to be written: other cores lose their copies early, while the record is
/// prepared.
#[inline]
pub fn line_to_write(word: Option<&AtomicU64>) {
    word.inspect(|word| hint::to_write(word));
}

#[cfg(all(target_arch = "x86_64", not(any(lowlat_loom, lowlat_shuttle, miri))))]
mod hint {
    use super::AtomicU64;
    use core::arch::{
        asm,
        x86_64::{_MM_HINT_T0, _mm_prefetch},
    };

    #[inline]
    pub fn to_read(word: &AtomicU64) {
        // SAFETY: a prefetch neither reads nor writes nor faults, whatever the address; this one is that of an
        // existing word.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(word.as_ptr().cast_const().cast()) };
    }

    #[inline]
    pub fn to_write(word: &AtomicU64) {
        // SAFETY: PREFETCHW is a hint (AMD APM volume 3, Intel SDM volume 2): it changes no memory, register or
        // flag and does not fault, and 64-bit processors without it treat it as a no-op; the word exists.
        unsafe {
            asm!("prefetchw [{word}]", word = in(reg) word.as_ptr(), options(nostack, preserves_flags, readonly));
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(any(lowlat_loom, lowlat_shuttle, miri))))]
mod hint {
    use super::AtomicU64;
    use core::arch::asm;

    #[inline]
    pub fn to_read(word: &AtomicU64) {
        // SAFETY: PRFM is a hint (Arm ARM, "PRFM (immediate)"): it changes no memory, register or flag and does
        // not fault; the word exists.
        unsafe {
            asm!("prfm pldl1keep, [{word}]", word = in(reg) word.as_ptr(), options(nostack, preserves_flags, readonly));
        }
    }

    #[inline]
    pub fn to_write(word: &AtomicU64) {
        // SAFETY: as in `to_read`.
        unsafe {
            asm!("prfm pstl1keep, [{word}]", word = in(reg) word.as_ptr(), options(nostack, preserves_flags, readonly));
        }
    }
}

#[cfg(any(lowlat_loom, lowlat_shuttle, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod hint {
    use super::AtomicU64;

    #[inline]
    pub fn to_read(_: &AtomicU64) {}

    #[inline]
    pub fn to_write(_: &AtomicU64) {}
}
