//! Removes everything that identifies one machine, for captures that are shared.

use super::{
    kind,
    table::{self, Structure},
};

/// The system's UUID in type 1.
const UUID: std::ops::Range<usize> = 0x08..0x18;

/// Offsets of the string numbers that lowlat reads, by type. Every other string (serial numbers, asset tags,
/// the firmware vendor's own) is not needed.
fn kept_strings(kind: u8) -> Option<&'static [usize]> {
    match kind {
        kind::BIOS => Some(&[0x04, 0x05, 0x08]),
        kind::SYSTEM | kind::BOARD => Some(&[0x04, 0x05]),
        kind::MEMORY_ARRAY => Some(&[]),
        kind::MEMORY_DEVICE => Some(&[0x10, 0x11, 0x17, 0x1A]),
        _ => None,
    }
}

/// The table with only the structures that lowlat reads. Their UUID is zero, and each letter of a string that
/// lowlat does not read is an `x`.
pub fn redacted(table: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    for structure in table::structures(table) {
        if let Some(offsets) = kept_strings(structure.kind()) {
            keep(&structure, offsets, &mut kept);
        }
    }
    kept.extend([kind::END, 4, 0, 0, 0, 0]);
    kept
}

fn keep(structure: &Structure<'_>, offsets: &[usize], kept: &mut Vec<u8>) {
    let start = kept.len();
    kept.extend(structure.formatted());
    if structure.kind() == kind::SYSTEM {
        let uuid = kept.iter_mut().skip(start + UUID.start).take(UUID.len());
        uuid.for_each(|byte| *byte = 0);
    }
    let is_read =
        |number: usize| offsets.iter().any(|at| structure.byte(*at).map(usize::from) == Some(number));
    let mut is_any = false;
    for (number, text) in (1..).zip(structure.strings()) {
        is_any = true;
        if is_read(number) {
            kept.extend(text);
        } else {
            kept.extend(std::iter::repeat_n(b'x', text.len()));
        }
        kept.push(0);
    }
    kept.extend(if is_any { &[0][..] } else { &[0, 0] });
}
