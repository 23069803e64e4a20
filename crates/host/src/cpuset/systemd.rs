//! The spellings of CPU sets that systemd uses: `CPUAffinity=0-3 8` and the byte array on D-Bus.

use super::{CpuId, CpuSet, ListError};

impl CpuSet {
    /// Parses the value of `CPUAffinity=` and its like: numbers and ranges parted by white space or commas.
    /// Source: systemd.exec(5).
    ///
    /// # Errors
    /// [`ListError`] names the part that is wrong. Strides are refused: systemd has none.
    pub fn parse_systemd(text: &str) -> Result<Self, ListError> {
        match text.split([',', ' ', '\t']).find(|part| part.contains(':')) {
            Some(part) => Err(ListError::Syntax { part: part.into(), list: text.into() }),
            None => Self::parse_list(text),
        }
    }

    /// The spelling that systemd prints: ranges parted by a space: `0-3 8`.
    pub fn to_systemd(&self) -> String {
        self.join_ranges(" ")
    }

    /// The set from systemd's D-Bus form: CPU `8 * i + b` is bit `b` of byte `i`.
    pub fn from_systemd_bytes(bytes: &[u8]) -> Self {
        let cpus_of = |(index, byte): (CpuId, &u8)| {
            let byte = *byte;
            (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| index * 8 + bit)
        };
        (0..).zip(bytes).flat_map(cpus_of).collect()
    }

    /// The set in systemd's D-Bus form, without trailing zero bytes.
    pub fn to_systemd_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0u8; self.highest().map_or(0, |max| max as usize / 8 + 1)];
        for cpu in self.iter() {
            bytes[cpu as usize / 8] |= 1 << (cpu % 8);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spells_as_systemd_does() {
        let set = CpuSet::parse_systemd("0-3 8, 10").unwrap();
        assert_eq!(set.to_systemd(), "0-3 8 10");
        assert_eq!(set.to_systemd_bytes(), [0x0f, 0x05]);
        assert!(CpuSet::parse_systemd("0-8:1/2").is_err());
    }
}
