//! Prefetches of cache lines: hints that read nothing, and no-ops where no instruction exists.

use crate::atomics::AtomicU64;

/// Fetches the line of a word without waiting.
#[inline]
pub fn line(word: Option<&AtomicU64>) {
    let Some(word) = word else { return };
    #[cfg(all(target_arch = "x86_64", not(any(lowlat_loom, lowlat_shuttle, miri))))]
    // SAFETY: a prefetch neither reads nor writes nor faults, whatever the address; this one is that of an
    // existing word.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(word.as_ptr().cast_const().cast());
    }
    #[cfg(all(target_arch = "aarch64", not(any(lowlat_loom, lowlat_shuttle, miri))))]
    // SAFETY: PRFM is a hint (Arm ARM, "PRFM (immediate)"): it changes no memory, register or flag and does not
    // fault; the word exists.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{word}]", word = in(reg) word.as_ptr(), options(nostack, preserves_flags, readonly));
    }
    let _ = word;
}

/// Like [`line()`], for a line about to be written: other cores lose their copies early, while the record is
/// prepared.
#[inline]
pub fn line_to_write(word: Option<&AtomicU64>) {
    let Some(word) = word else { return };
    #[cfg(all(target_arch = "x86_64", not(any(lowlat_loom, lowlat_shuttle, miri))))]
    // SAFETY: PREFETCHW is a hint (AMD APM volume 3, Intel SDM volume 2): it changes no memory, register or flag
    // and does not fault, and 64-bit processors without it treat it as a no-op; the word exists.
    unsafe {
        core::arch::asm!("prefetchw [{word}]", word = in(reg) word.as_ptr(), options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(any(lowlat_loom, lowlat_shuttle, miri))))]
    // SAFETY: as in `line`.
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{word}]", word = in(reg) word.as_ptr(), options(nostack, preserves_flags, readonly));
    }
    let _ = word;
}
