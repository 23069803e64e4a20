//! Copies of integer and floating-point work that stays in the first-level cache. "Base" is what every processor of the
//! architecture runs; "peak" the same source, built for the widest instructions that this processor has.

use crate::workload::{Kind, Workload, WorkloadJob};
use std::{array, hint};

pub const INTEGER_BASE: Workload = Workload {
    name: "integer-base",
    about: "copies multiply, shift and add integers in the first-level cache",
    unit: "blocks",
    kind: Kind::Processes { per_copy: 1, make: |_| Ok(integer_blocks(false)) },
};
pub const INTEGER_PEAK: Workload = Workload {
    name: "integer-peak",
    about: "integer-base, built for this processor's widest instructions",
    unit: "blocks",
    kind: Kind::Processes { per_copy: 1, make: |_| Ok(integer_blocks(true)) },
};
pub const FLOATING_BASE: Workload = Workload {
    name: "floating-base",
    about: "copies evaluate polynomials in the first-level cache",
    unit: "blocks",
    kind: Kind::Processes { per_copy: 1, make: |_| Ok(floating_blocks(false)) },
};
pub const FLOATING_PEAK: Workload = Workload {
    name: "floating-peak",
    about: "floating-base, built for this processor's widest instructions",
    unit: "blocks",
    kind: Kind::Processes { per_copy: 1, make: |_| Ok(floating_blocks(true)) },
};

/// Numbers of a block: 8 KiB of integers, 16 KiB of doubles.
const NUMBERS: usize = 2_048;
const TERMS: usize = 8;

fn integer_blocks(is_peak: bool) -> WorkloadJob {
    Box::new(move |_, _, pace| {
        let mut block: [u32; NUMBERS] = array::from_fn(place_of);
        pace.count(|| {
            integer(hint::black_box(&mut block), is_peak);
            Ok(())
        })
    })
}

fn floating_blocks(is_peak: bool) -> WorkloadJob {
    Box::new(move |_, _, pace| {
        let mut block: [f64; NUMBERS] = array::from_fn(|place| f64::from(place_of(place)) / NUMBERS as f64);
        pace.count(|| {
            floating(hint::black_box(&mut block), is_peak);
            Ok(())
        })
    })
}

fn place_of(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(0).wrapping_add(1)
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "built anew with other instructions by its callers")]
fn integers(block: &mut [u32; NUMBERS]) {
    for number in block {
        let mut mixed = number.wrapping_mul(0x9E37_79B1).wrapping_add(0x7F4A_7C15);
        mixed ^= mixed >> 15;
        mixed = mixed.wrapping_mul(0x85EB_CA6B);
        *number = mixed ^ (mixed >> 13);
    }
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "built anew with other instructions by its callers")]
fn polynomials(block: &mut [f64; NUMBERS], multiply_add: impl Fn(f64, f64, f64) -> f64) {
    for number in block {
        let mut sum = 0.5;
        for _ in 0..TERMS {
            sum = multiply_add(sum, *number, 0.25);
        }
        // Stays between 0 and 1.
        *number = sum - sum.floor();
    }
}

fn integer(block: &mut [u32; NUMBERS], is_peak: bool) {
    #[cfg(target_arch = "x86_64")]
    if is_peak && is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(block: &mut [u32; NUMBERS]) {
            integers(block);
        }
        // SAFETY: the processor has these instructions, as was just asked.
        return unsafe { wide(block) };
    }
    let _ = is_peak;
    integers(block);
}

fn floating(block: &mut [f64; NUMBERS], is_peak: bool) {
    #[cfg(target_arch = "x86_64")]
    if is_peak && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        #[target_feature(enable = "avx2,fma")]
        fn wide(block: &mut [f64; NUMBERS]) {
            polynomials(block, f64::mul_add);
        }
        // SAFETY: the processor has these instructions, as was just asked.
        return unsafe { wide(block) };
    }
    let _ = is_peak;
    polynomials(block, |a, b, c| a * b + c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_computes_what_base_computes() {
        let mut base: [u32; NUMBERS] = array::from_fn(place_of);
        let mut peak = base;
        integer(&mut base, false);
        integer(&mut peak, true);
        assert!(base == peak && base.iter().any(|number| *number != 0));
        let mut base: [f64; NUMBERS] = array::from_fn(|place| f64::from(place_of(place)) / NUMBERS as f64);
        let mut peak = base;
        floating(&mut base, false);
        floating(&mut peak, true);
        let differs = base.iter().zip(&peak).any(|(a, b)| (a - b).abs() > 1e-9);
        assert!(!differs && base.iter().all(|number| (0.0..=1.0).contains(number)));
    }
}
