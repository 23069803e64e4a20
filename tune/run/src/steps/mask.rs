//! Sets of CPUs that the kernel reads as masks: default IRQ affinity, workqueues, packet steering.
//!
//! A mask is written with as many words as the kernel shows, with a comma every 32 bits. Shell arithmetic
//! fails from 64 CPUs on, and tools that write fewer words leave the others undefined.

use super::{Gathering, gathering::cpu_list};
use lowlat_host::CpuSet;
use lowlat_undo::{Comparison, State, TargetSpec, UndoError};

/// Prepares the CPUs of a list as a mask at `path`.
pub(super) fn prepare(gathering: &mut Gathering<'_>, change: usize, path: &str) -> Result<(), UndoError> {
    let Some(cpus) = cpu_list(gathering, change) else { return Ok(()) };
    let spec = TargetSpec::value(path, Comparison::CpuMask);
    let Some(present) = gathering.present_value(change, &spec)? else { return Ok(()) };
    let bits = bits_shown(&present);
    if let Some(highest) = cpus.highest().filter(|cpu| *cpu >= bits) {
        gathering.leave(change, format!("{path} has {bits} bits, and none for CPU {highest}"));
        return Ok(());
    }
    let new = like(&present, &cpus);
    gathering.step(change, spec, State::Value(present), State::Value(new))
}

/// The number of bits of a printed mask: four per digit.
fn bits_shown(mask: &str) -> u32 {
    let mask = mask.trim();
    let mask = mask.strip_prefix("0x").unwrap_or(mask);
    let digits = mask.bytes().filter(u8::is_ascii_hexdigit).count();
    u32::try_from(digits).unwrap_or(u32::MAX / 4).saturating_mul(4)
}

/// The mask of these CPUs in the format of the shown one.
fn like(shown: &str, cpus: &CpuSet) -> String {
    cpus.to_mask_padded(bits_shown(shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_many_words_as_the_kernel_shows() {
        let list = |text| CpuSet::parse_list(text).unwrap();
        assert_eq!(like("ffff\n", &list("0,8")), "0101");
        assert_eq!(like("ff\n", &list("0")), "01");
        assert_eq!(like("ffffffff,ffffffff\n", &list("0,32")), "00000001,00000001");
        assert_eq!(like("ffffffff,ffffffff,ffffffff\n", &list("64")), "00000001,00000000,00000000");
        // 72 possible CPUs, of which some are offline: their bits are there all the same.
        assert_eq!(like("ff,ffffffff,ffffffff\n", &list("0,71")), "80,00000000,00000001");
        assert_eq!(like("0000\n", &CpuSet::new()), "0000");
    }

    proptest! {
        #[test]
        fn a_mask_means_its_list_and_has_its_shape(
            count in 1u32..1_025,
            picked in proptest::collection::btree_set(0u32..1_024, 0..20),
        ) {
            let shown = CpuSet::first(count).to_mask_padded(count);
            let cpus: CpuSet = picked.into_iter().filter(|cpu| *cpu < count).collect();
            let mask = like(&shown, &cpus);
            prop_assert_eq!(CpuSet::parse_mask(&mask).unwrap(), cpus);
            prop_assert_eq!(mask.len(), shown.len());
            let commas = |text: &str| text.match_indices(',').map(|(at, _)| at).collect::<Vec<_>>();
            prop_assert_eq!(commas(&mask), commas(&shown));
        }
    }
}
