//! Lines on their way before they are asked for.

use crate::atomics::AtomicU64;

/// Has the line of a word fetched, and does not wait for it. It is a hint and reads nothing; where there is no instruction
/// for it, nothing is done.
#[inline]
pub fn line(word: Option<&AtomicU64>) {
    word.inspect(|word| hint::to_read(word));
}

/// [`line()`] for who is about to write it: other cores lose their copies already now, while the words are put together.
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
        // SAFETY: a prefetch neither reads nor writes nor faults, whatever the address; this one is of a word that is there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(word.as_ptr().cast_const().cast()) };
    }

    #[inline]
    pub fn to_write(word: &AtomicU64) {
        // SAFETY: PREFETCHW is a hint (AMD APM volume 3, Intel SDM volume 2): it changes no memory, register or flag and does
        // not fault, and processors of 64 bits that lack it take it for no operation; the word is there.
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
        // SAFETY: PRFM is a hint (Arm ARM, "PRFM (immediate)"): it changes no memory, register or flag and does not fault;
        // the word is there.
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
