//! Entry points: the version and the number of structures.

/// The used parts of an entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryPoint {
    pub(super) major: u8,
    pub(super) minor: u8,
    /// Maximum number of structures in the table; version 3 does not state it.
    pub(super) structures_max: usize,
}

/// Limit for tables that do not state their number of structures.
const STRUCTURES_MAX: usize = 65_536;

impl EntryPoint {
    /// Reads the entry point of version 3 (`_SM3_`), version 2 (`_SM_`), or the older `_DMI_`, which the
    /// kernel exposes alone if the firmware has nothing else.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"_SM3_") {
            check(bytes, usize::from(*bytes.get(0x06)?))?;
            Some(Self { major: *bytes.get(0x07)?, minor: *bytes.get(0x08)?, structures_max: STRUCTURES_MAX })
        } else if bytes.starts_with(b"_SM_") {
            // Some firmware of version 2.1 states 0x1E instead of its 0x1F bytes (DSP0134, 5.2.1).
            check(bytes, usize::from(*bytes.get(0x05)?).max(0x1F))?;
            Some(Self {
                major: *bytes.get(0x06)?,
                minor: *bytes.get(0x07)?,
                structures_max: usize::from(u16::from_le_bytes([*bytes.get(0x1C)?, *bytes.get(0x1D)?])),
            })
        } else if bytes.starts_with(b"_DMI_") {
            check(bytes, 0x0F)?;
            let revision = *bytes.get(0x0E)?;
            Some(Self {
                major: revision >> 4,
                minor: revision & 0x0F,
                structures_max: usize::from(u16::from_le_bytes([*bytes.get(0x0C)?, *bytes.get(0x0D)?])),
            })
        } else {
            None
        }
    }
}

/// The bytes of the entry point add up to zero.
fn check(bytes: &[u8], length: usize) -> Option<()> {
    let sum = bytes.get(..length)?.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    (length > 0 && sum == 0).then_some(())
}
