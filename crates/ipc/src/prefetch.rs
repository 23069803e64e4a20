//! Lines on their way before they are asked for.

use crate::atomics::AtomicU64;

/// Has the line of a word fetched, and does not wait for it. It is a hint and reads nothing; where there is no instruction
/// for it, nothing is done.
#[inline]
pub fn line(word: Option<&AtomicU64>) {
    #[cfg(all(target_arch = "x86_64", not(lowlat_loom), not(lowlat_shuttle), not(miri)))]
    if let Some(word) = word {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch neither reads nor writes nor faults, whatever the address; this one is of a word that is there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(word.as_ptr().cast_const().cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(lowlat_loom), not(lowlat_shuttle), not(miri))))]
    let _ = word;
}

/// [`line()`] for who is about to write it: other cores lose their copies already now, while the words are put together.
#[inline]
pub fn line_to_write(word: Option<&AtomicU64>) {
    #[cfg(all(target_arch = "x86_64", not(lowlat_loom), not(lowlat_shuttle), not(miri)))]
    if let Some(word) = word {
        // SAFETY: PREFETCHW is a hint (AMD APM volume 3, Intel SDM volume 2): it changes no memory, register or flag and does
        // not fault, and processors of 64 bits that lack it take it for no operation; the word is there.
        unsafe {
            core::arch::asm!(
                "prefetchw [{word}]",
                word = in(reg) word.as_ptr(),
                options(nostack, preserves_flags, readonly)
            );
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(lowlat_loom), not(lowlat_shuttle), not(miri))))]
    let _ = word;
}
