//! Serial numbers, asset tags and UUIDs inside the SMBIOS tables (DMTF DSP0134). The structures keep their lengths.

use super::pattern;

/// Bytes of a structure's header: type, length, handle.
const HEADER_BYTES: usize = 4;
/// Structures of a type from here on are the maker's own.
const MAKERS_OWN: u8 = 128;
/// Where the system's UUID stands in type 1.
const SYSTEM_UUID: std::ops::Range<usize> = 0x08..0x18;

/// Strings that are the same on many machines, and may stand for several fields at once.
const PLACEHOLDERS: &[&str] = &[
    "not specified",
    "not available",
    "unknown",
    "none",
    "n/a",
    "default string",
    "empty",
    "no dimm",
    "to be filled by o.e.m.",
];

/// Offsets of the bytes that give the number of a string to be overwritten.
fn private_strings(kind: u8) -> &'static [usize] {
    match kind {
        1 => &[0x07],           // System: serial number
        2 | 3 => &[0x07, 0x08], // Base board, chassis: serial number, asset tag
        4 => &[0x20, 0x21],     // Processor: serial number, asset tag
        17 => &[0x18, 0x19],    // Memory module: serial number, asset tag
        22 => &[0x07],          // Battery: serial number
        39 => &[0x08, 0x09],    // Power supply: serial number, asset tag
        _ => &[],
    }
}

/// Whether a file holds SMBIOS structures.
pub(super) fn is_table(path: &str) -> bool {
    path == "/sys/firmware/dmi/tables/DMI"
        || (path.starts_with("/sys/firmware/dmi/entries/") && path.ends_with("/raw"))
}

/// Overwrites in place. What is no structure is zeroed, for nothing tells what it holds.
pub(super) fn redact(table: &mut [u8]) {
    let mut at = 0;
    while let Some(structure) = table.get_mut(at..).filter(|rest| !rest.is_empty()) {
        match structure_length(structure) {
            Some((formatted, whole)) => {
                if let Some(structure) = structure.get_mut(..whole) {
                    redact_structure(structure, formatted);
                }
                at += whole;
            }
            None => {
                structure.fill(0);
                return;
            }
        }
    }
}

/// The length of the formatted part, and of the structure with its strings and their two zero bytes.
fn structure_length(bytes: &[u8]) -> Option<(usize, usize)> {
    let formatted = usize::from(*bytes.get(1)?);
    if formatted < HEADER_BYTES {
        return None;
    }
    let end = bytes.get(formatted..)?.windows(2).position(|pair| pair == [0, 0])?;
    Some((formatted, formatted + end + 2))
}

fn redact_structure(structure: &mut [u8], formatted: usize) {
    let (body, strings) = structure.split_at_mut(formatted);
    let kind = body.first().copied().unwrap_or_default();
    match kind {
        // OEM strings, the management controller's addresses, and what only the maker knows.
        11 | 42 | MAKERS_OWN.. => {
            if kind != 11 {
                body.get_mut(HEADER_BYTES..).unwrap_or_default().fill(0);
            }
            pattern::blank(strings);
        }
        _ => {
            for number in private_strings(kind).iter().filter_map(|offset| body.get(*offset)) {
                blank_string(strings, *number);
            }
            if kind == 1 {
                body.get_mut(SYSTEM_UUID).unwrap_or_default().fill(0);
            }
        }
    }
}

/// Strings count from 1; 0 is no string.
fn blank_string(strings: &mut [u8], number: u8) {
    let Some(index) = usize::from(number).checked_sub(1) else { return };
    if let Some(text) = strings.split_mut(|byte| *byte == 0).nth(index) {
        let words = String::from_utf8_lossy(text).trim().to_ascii_lowercase();
        if !PLACEHOLDERS.contains(&words.as_str()) {
            pattern::blank(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn structure(kind: u8, body: &[u8], strings: &[&str]) -> Vec<u8> {
        let mut bytes = vec![kind, u8::try_from(body.len() + HEADER_BYTES).unwrap(), 7, 0];
        bytes.extend(body);
        for text in strings {
            bytes.extend(text.as_bytes());
            bytes.push(0);
        }
        bytes.extend(if strings.is_empty() { [0, 0].as_slice() } else { &[0] });
        bytes
    }

    fn redacted(structures: &[Vec<u8>]) -> Vec<u8> {
        let mut table = structures.concat();
        redact(&mut table);
        table
    }

    #[test]
    fn the_systems_serial_and_uuid_go_and_its_name_stays() {
        let body = |uuid: u8| [&[1, 2, 0, 3][..], &[uuid; 16], &[6, 0, 0]].concat();
        let table =
            redacted(&[structure(1, &body(0xab), &["HPE", "DL385", "CZ-1"]), structure(127, &[], &[])]);
        let expected = [structure(1, &body(0), &["HPE", "DL385", "XX-X"]), structure(127, &[], &[])].concat();
        assert_eq!(table, expected);
    }

    #[test]
    fn boards_processors_and_modules_lose_serial_and_tag() {
        let board = structure(2, &[1, 0, 0, 2, 3], &["HPE", "PX1", "TAG"]);
        let module_body = [vec![0; 0x14], vec![1, 2]].concat();
        let module = structure(17, &module_body, &["DEAD", "Not Specified"]);
        let processor_body = [vec![0; 0x1c], vec![1, 2]].concat();
        let processor = structure(4, &processor_body, &["S1", "T1"]);
        let table = redacted(&[board, module, processor]);
        let expected = [
            structure(2, &[1, 0, 0, 2, 3], &["HPE", "XXX", "XXX"]),
            structure(17, &module_body, &["XXXX", "Not Specified"]),
            structure(4, &processor_body, &["XX", "XX"]),
        ];
        assert_eq!(table, expected.concat());
    }

    #[test]
    fn makers_own_and_broken_structures_are_emptied() {
        let table = redacted(&[
            structure(11, &[1], &["Service tag 5"]),
            structure(221, &[9, 9], &["SN"]),
            vec![1, 2, 3, 4, 5],
        ]);
        let expected =
            [structure(11, &[1], &["XXXXXXX XXX X"]), structure(221, &[0, 0], &["XX"]), vec![0; 5]];
        assert_eq!(table, expected.concat());
    }

    proptest! {
        #[test]
        fn any_bytes_keep_their_length(mut table in proptest::collection::vec(any::<u8>(), 0..300)) {
            let length = table.len();
            redact(&mut table);
            prop_assert_eq!(table.len(), length);
        }
    }
}
