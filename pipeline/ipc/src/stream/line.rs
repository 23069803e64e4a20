//! Whole lines of payloads. On x86-64 16 bytes move at a time: stores of words fill the store buffer, which then holds few
//! lines that are on their way from readers (figures: docs/decisions/pipeline/segments.md).

use crate::{
    atomics::{AtomicU64, Ordering},
    layout::record,
};

/// A line in a ring.
pub(super) type RingLine = [AtomicU64; record::WORDS];
/// A line outside it.
pub(super) type PlainLine = [u8; size_of::<RingLine>()];

#[cfg(all(target_arch = "x86_64", not(any(lowlat_loom, lowlat_shuttle, miri))))]
mod moved {
    use super::{PlainLine, RingLine};
    use core::arch::asm;

    macro_rules! move_line {
        ($from:expr, $to:expr) => {
            asm!(
                "movups {a}, [{from}]",
                "movups {b}, [{from} + 16]",
                "movups {c}, [{from} + 32]",
                "movups {d}, [{from} + 48]",
                "movups [{to}], {a}",
                "movups [{to} + 16], {b}",
                "movups [{to} + 32], {c}",
                "movups [{to} + 48], {d}",
                from = in(reg) $from,
                to = in(reg) $to,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack, preserves_flags),
            )
        };
    }

    #[inline]
    pub fn load(line: &RingLine, to: &mut PlainLine) {
        // SAFETY: both references are valid for 64 bytes, `to` for writing, and `movups` needs no alignment. The ring
        // is written meanwhile; a processor's loads may then mix two records, as loads of its words may, and the
        // caller discards such a copy. To the compiler the block reads and writes any memory, so it moves no access
        // over it, and the processor keeps the order of its loads.
        unsafe { move_line!(line.as_ptr(), to.as_mut_ptr()) }
    }

    #[inline]
    pub fn store(line: &RingLine, from: &PlainLine) {
        // SAFETY: as in `load`; words may be written through a shared reference, because they are atomic. The
        // processor's stores become visible in their order, so before the commit that follows.
        unsafe { move_line!(from.as_ptr(), line.as_ptr()) }
    }
}

#[cfg(any(not(target_arch = "x86_64"), lowlat_loom, lowlat_shuttle, miri))]
mod moved {
    pub(in crate::stream) use super::store_words as store;
    use super::{PlainLine, RingLine};
    use crate::atomics::Ordering;

    #[inline]
    pub fn load(line: &RingLine, to: &mut PlainLine) {
        for (bytes, word) in to.as_chunks_mut::<8>().0.iter_mut().zip(line) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
    }
}

pub(super) use moved::{load, store};

/// Stores a line word by word: its words were often stored just before, and a wider load would wait for them.
#[inline]
pub(super) fn store_words(line: &RingLine, from: &PlainLine) {
    for (word, bytes) in line.iter().zip(from.as_chunks::<8>().0) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
}
