//! Hexadecimal CPU masks as in `/proc` and `/sys`: groups of 32 bits separated by commas.

use super::{CPU_ID_MAX, CpuSet};
use thiserror::Error;

/// Error for a text that is not a CPU mask.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct MaskError(String);

impl CpuSet {
    /// Parses a mask: `fefe`, `0x101`, `ffffffff,00000000`. A single group of any length is accepted (tools
    /// write such masks, although the kernel rejects them beyond 32 bits).
    ///
    /// # Errors
    /// [`MaskError`] names the invalid group.
    pub fn parse_mask(text: &str) -> Result<Self, MaskError> {
        let mask = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0');
        let digits_only = mask.strip_prefix("0x").or_else(|| mask.strip_prefix("0X")).unwrap_or(mask);
        let groups: Vec<&str> = digits_only.split(',').collect();
        let digits: usize = groups.iter().map(|group| group.len()).sum();
        if digits > CPU_ID_MAX as usize / 4 + 1 {
            return Err(MaskError(format!("CPU mask of {digits} digits is longer than any host's")));
        }
        let mut set = Self::new();
        let mut base = 0u32;
        for group in groups.iter().rev() {
            if group.is_empty() || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(MaskError(format!(
                    "\"{group}\" in CPU mask \"{mask}\" is not a group of hexadecimal digits"
                )));
            }
            if groups.len() > 1 && group.len() > 8 {
                return Err(MaskError(format!(
                    "\"{group}\" in CPU mask \"{mask}\" has more than 8 digits; the kernel separates groups by a comma every \
                     32 bits"
                )));
            }
            let mut digit_base = base;
            for digit in group.chars().rev().filter_map(|c| c.to_digit(16)) {
                set.extend((0..4).filter(|bit| digit >> bit & 1 == 1).map(|bit| digit_base + bit));
                digit_base += 4;
            }
            base += 32;
        }
        Ok(set)
    }

    /// The shortest mask that the kernel accepts, without leading zeros and with a comma every 32 bits:
    /// `1,00000000`.
    pub fn to_mask(&self) -> String {
        let padded = self.to_mask_padded(self.highest().map_or(1, |max| max + 1));
        let short = padded.trim_start_matches(['0', ',']);
        if short.is_empty() { "0".into() } else { short.into() }
    }

    /// The mask as the kernel prints it on a host with `cpu_count` CPUs (its `nr_cpu_ids`): the first group
    /// as wide as the CPUs need, the others with 8 digits.
    pub fn to_mask_padded(&self, cpu_count: u32) -> String {
        let bits = cpu_count.max(self.highest().map_or(1, |max| max + 1)).max(1);
        let groups = bits.div_ceil(32);
        let group_text = |group: u32| {
            let value =
                (0..32).filter(|bit| self.contains(group * 32 + bit)).fold(0u32, |acc, bit| acc | 1 << bit);
            let width = if group + 1 == groups { (bits - group * 32).div_ceil(4) as usize } else { 8 };
            format!("{value:0width$x}")
        };
        (0..groups).rev().map(group_text).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_the_guide_s_masks() {
        assert_eq!(CpuSet::parse_list("0,8").unwrap().to_mask(), "101");
        assert_eq!(CpuSet::parse_list("1-7,9-15").unwrap().to_mask(), "fefe");
    }

    #[test]
    fn is_right_where_shell_arithmetic_is_wrong() {
        // ~(-1 << 64) is 0 in a shell, and 1 << 64 wraps to bit 0.
        assert_eq!(CpuSet::of(64).to_mask(), "1,00000000,00000000");
        assert_eq!(CpuSet::first(64).difference(&CpuSet::of(0)).to_mask(), "ffffffff,fffffffe");
        assert_eq!(CpuSet::of(1_023).to_mask().len(), 8 * 32 + 31);
    }

    #[test]
    fn pads_as_the_kernel_does() {
        assert_eq!(CpuSet::of(0).to_mask_padded(16), "0001");
        assert_eq!(CpuSet::of(0).to_mask_padded(33), "0,00000001");
        assert_eq!(CpuSet::of(0).to_mask_padded(128), "00000000,00000000,00000000,00000001");
        assert_eq!(CpuSet::new().to_mask(), "0");
    }

    #[test]
    fn refuses_what_is_not_a_mask() {
        for bad in ["", ",", "1,", "g", "1,123456789", "-1"] {
            assert!(CpuSet::parse_mask(bad).is_err(), "{bad}");
        }
        assert_eq!(CpuSet::parse_mask("0x0f\n").unwrap().to_list(), "0-3");
        assert_eq!(CpuSet::parse_mask("10000000000000000").unwrap().to_list(), "64");
    }
}
