//! Finds addresses, IDs and words in bytes, and overwrites them in place.

use std::collections::BTreeMap;

/// Bytes of a hardware address that identify its vendor.
const MAKER_BYTES: usize = 3;
/// Bytes of the shortest hardware address.
const ADDRESS_BYTES_MIN: usize = 6;
/// Positions of the hyphens in a UUID.
const UUID_HYPHENS: [usize; 4] = [8, 13, 18, 23];
const UUID_CHARS: usize = 36;
/// Network interfaces that are named after their address: "enx" and twelve digits.
const ENX: &[u8] = b"enx";
const ENX_CHARS: usize = 15;
const ENX_MAKER_CHARS: usize = 9;

/// Overwrites every letter and digit.
pub(super) fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()) {
        *byte = b'X';
    }
}

/// Overwrites every byte but white space, so that not even the punctuation of a secret remains.
pub(super) fn blank_all(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| !byte.is_ascii_whitespace()) {
        *byte = b'X';
    }
}

/// Overwrites what is neither a hexadecimal digit nor a hyphen.
pub(super) fn blank_all_but_hex(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| !byte.is_ascii_hexdigit() && **byte != b'-') {
        *byte = b'X';
    }
}

/// Zeroes the digits of IPv4 addresses: four numbers up to 255 with dots between.
pub(super) fn ip_addresses(bytes: &mut [u8]) {
    let is_part = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    for word in bytes.split_mut(|byte| !is_part(*byte)) {
        let numbers: Vec<Option<u8>> =
            String::from_utf8_lossy(word).split('.').take(5).map(|number| number.parse().ok()).collect();
        if numbers.len() == 4 && numbers.iter().all(Option::is_some) {
            zero_digits(word);
        }
    }
}

/// Overwrites hexadecimal digits with zeros.
pub(super) fn zero_digits(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| byte.is_ascii_hexdigit()) {
        *byte = b'0';
    }
}

/// Overwrites a word that has no letter or digit next to it. Case is ignored.
pub(super) fn words(bytes: &mut [u8], word: &[u8]) {
    let mut at = 0_usize;
    while let Some(end) = at.checked_add(word.len()).filter(|end| *end <= bytes.len()) {
        let is_alone = !is_alphanumeric(before(bytes, at)) && !is_alphanumeric(bytes.get(end));
        match bytes.get_mut(at..end) {
            Some(found) if is_alone && found.eq_ignore_ascii_case(word) => {
                blank(found);
                at = end;
            }
            _ => at += 1,
        }
    }
}

fn before(bytes: &[u8], at: usize) -> Option<&u8> {
    bytes.get(at.checked_sub(1)?)
}

fn is_alphanumeric(byte: Option<&u8>) -> bool {
    byte.is_some_and(u8::is_ascii_alphanumeric)
}

/// Zeroes hardware addresses (six or more pairs of digits separated by `:` or `-`) after the vendor's bytes.
pub(super) fn hardware_addresses(bytes: &mut [u8]) {
    let mut at = 0;
    while at < bytes.len() {
        let length = if is_address_char(before(bytes, at)) { 0 } else { address_length(bytes, at) };
        if let Some(tail) = bytes.get_mut(at + MAKER_BYTES * 3..at + length) {
            zero_digits(tail);
        }
        at += length.max(1);
    }
}

fn is_address_char(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b':')
}

/// The length of the address at `at`, or 0.
fn address_length(bytes: &[u8], at: usize) -> usize {
    let pair = |at: usize| bytes.get(at..at + 2).is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit));
    let Some(separator) = bytes.get(at + 2).filter(|byte| matches!(byte, b':' | b'-')) else { return 0 };
    let mut pairs = 0;
    let mut end = at;
    while pair(end) {
        pairs += 1;
        end += 2;
        if bytes.get(end) != Some(separator) || !pair(end + 1) {
            break;
        }
        end += 1;
    }
    let ends_here = !is_address_char(bytes.get(end));
    if pairs >= ADDRESS_BYTES_MIN && ends_here { end - at } else { 0 }
}

/// IDs that also name files. Each gets a distinct number, so that two items stay distinct.
#[derive(Debug, Default)]
pub(super) struct Pseudonyms {
    uuids: BTreeMap<Vec<u8>, u64>,
    interfaces: BTreeMap<Vec<u8>, u64>,
}

impl Pseudonyms {
    /// Replaces UUIDs, and the last half of interface names that are hardware addresses.
    pub(super) fn replace(&mut self, bytes: &mut [u8]) {
        for at in 0..bytes.len() {
            if is_alphanumeric(before(bytes, at)) {
                continue;
            }
            if let Some(uuid) = bytes.get_mut(at..at + UUID_CHARS).filter(|uuid| is_uuid(uuid)) {
                let digits = u64::try_from(self.uuids.len()).unwrap_or(u64::MAX) + 1;
                let is_nil = uuid.iter().all(|byte| matches!(byte, b'0' | b'-'));
                if !is_nil {
                    let number = *self.uuids.entry(uuid.to_ascii_lowercase()).or_insert(digits);
                    number_over(uuid, number);
                }
            } else if let Some(name) = bytes.get_mut(at..at + ENX_CHARS).filter(|name| is_enx(name)) {
                let digits = u64::try_from(self.interfaces.len()).unwrap_or(u64::MAX);
                let number = *self.interfaces.entry(name.to_vec()).or_insert(digits);
                if let Some(tail) = name.get_mut(ENX_MAKER_CHARS..) {
                    number_over(tail, number);
                }
            }
        }
    }
}

fn is_uuid(text: &[u8]) -> bool {
    text.iter()
        .enumerate()
        .all(|(at, byte)| if UUID_HYPHENS.contains(&at) { *byte == b'-' } else { byte.is_ascii_hexdigit() })
}

fn is_enx(name: &[u8]) -> bool {
    name.strip_prefix(ENX).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// Zeroes the digits and writes a number at their end, in hexadecimal.
fn number_over(digits: &mut [u8], number: u64) {
    zero_digits(digits);
    let mut rest = number;
    for byte in digits.iter_mut().rev().filter(|byte| byte.is_ascii_hexdigit()) {
        let digit = u32::try_from(rest % 16).unwrap_or_default();
        *byte = char::from_digit(digit, 16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(b'0');
        rest /= 16;
    }
}

/// Zeroes the digits of every number that starts with "0x".
pub(super) fn kernel_addresses(bytes: &mut [u8]) {
    let mut rest = bytes;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"0x") {
        let digits = &mut rest[at + 2..];
        let length = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        digits[..length].fill(b'0');
        rest = &mut digits[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn addresses(text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        hardware_addresses(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn only_hardware_addresses_are_taken_for_such() {
        assert_eq!(addresses("a 00:1B:21:aa:bb:cc."), "a 00:1B:21:00:00:00.");
        assert_eq!(addresses("00-1b-21-aa-bb-cc"), "00-1b-21-00-00-00");
        assert_eq!(addresses("80:00:02:08:fe:80:11:22"), "80:00:02:00:00:00:00:00");
        for other in
            ["0000:3b:00.0", "12:34:56", "00:1b:21:aa:bb", "00:1b:21:aa:bb:ccc", "x00:1b:21:aa:bb:cc", "::"]
        {
            assert_eq!(addresses(other), other);
        }
    }

    #[test]
    fn two_ids_stay_two_and_the_nil_id_stays_nil() {
        let mut names = Pseudonyms::default();
        let mut replaced = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            names.replace(&mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(
            replaced("root=UUID=4C4C4544-0042-3510-8052-b7c04f4d3233"),
            "root=UUID=00000000-0000-0000-0000-000000000001"
        );
        assert_eq!(replaced("4c4c4544-0042-3510-8052-B7C04f4d3233"), "00000000-0000-0000-0000-000000000001");
        assert_eq!(replaced("00000000-0000-0000-0000-000000000000"), "00000000-0000-0000-0000-000000000000");
        assert_eq!(replaced("enx001b21000001 enx001b21000002"), "enx001b21000000 enx001b21000001");
    }

    proptest! {
        #[test]
        fn any_bytes_keep_their_length(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[0-9a-f:x-]{0,80}") {
            for original in [bytes, text.into_bytes()] {
                let mut changed = original.clone();
                hardware_addresses(&mut changed);
                Pseudonyms::default().replace(&mut changed);
                words(&mut changed, b"abc");
                prop_assert_eq!(changed.len(), original.len());
            }
        }
    }

    #[test]
    fn addresses_of_modules_are_zeroed() {
        let mut text = b"virtio_net 73728 0 - Live 0xffffffffc0d06000\nsfc 1 0 - Live 0x12 0x".to_vec();
        kernel_addresses(&mut text);
        assert_eq!(text, b"virtio_net 73728 0 - Live 0x0000000000000000\nsfc 1 0 - Live 0x00 0x");
    }
}
