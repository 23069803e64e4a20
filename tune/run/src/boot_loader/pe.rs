//! Unified kernel images: programs in the format PE, whose sections contain the kernel, its initial RAM disk and its
//! command line.

use std::ops::Range;

/// Bytes of an image that contain its headers.
pub(super) const HEAD_BYTES: u64 = 64 << 10;
/// Length of a section's header.
const HEADER_BYTES: usize = 40;

/// A field of the headers.
fn field<const N: usize>(head: &[u8], at: usize) -> Option<[u8; N]> {
    head.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn number(head: &[u8], at: usize) -> Option<usize> {
    field(head, at).map(u32::from_le_bytes).and_then(|number| usize::try_from(number).ok())
}

fn short(head: &[u8], at: usize) -> Option<usize> {
    field(head, at).map(u16::from_le_bytes).map(usize::from)
}

/// The offset of the headers of the file, behind its signature.
fn headers(head: &[u8]) -> Option<usize> {
    let at = number(head, 0x3c)?;
    (head.starts_with(b"MZ") && &field(head, at)? == b"PE\0\0").then_some(at.checked_add(4)?)
}

/// The bytes of the first section of that name, from the image's first bytes; none if it has no such section.
pub(super) fn section(head: &[u8], name: &str) -> Option<Range<u64>> {
    let at = headers(head)?;
    let (count, optional_bytes) = (short(head, at + 2)?, short(head, at + 16)?);
    let first = at + 20 + optional_bytes;
    let found = (0..count).map(|index| first + index * HEADER_BYTES).find(|at| {
        let spelled = field::<8>(head, *at).unwrap_or_default();
        spelled.split(|byte| *byte == 0).next() == Some(name.as_bytes())
    })?;
    // In memory a section can be longer than its bytes in the file, or shorter, because those are padded.
    let bytes = number(head, found + 8)?.min(number(head, found + 16)?);
    let start = u64::try_from(number(head, found + 20)?).ok()?;
    Some(start..start + u64::try_from(bytes).ok()?)
}

/// True if the image contains a signature, from its first bytes.
pub(super) fn is_signed(head: &[u8]) -> bool {
    // The fifth of the directories, behind 112 other bytes of the optional header of a 64-bit image.
    let directory = headers(head).map(|at| at + 20 + 112 + 4 * 8);
    directory.and_then(|at| number(head, at + 4)).is_some_and(|bytes| bytes > 0)
}

/// An image with these sections.
#[cfg(test)]
pub(super) fn example(sections: &[(&str, &str)], is_signed: bool) -> Vec<u8> {
    let word = |number: usize| u32::try_from(number).unwrap_or_default().to_le_bytes();
    let mut head = vec![0; 0x40 + 24 + 240];
    head[..2].copy_from_slice(b"MZ");
    head[0x3c..0x40].copy_from_slice(&word(0x40));
    head[0x40..0x44].copy_from_slice(b"PE\0\0");
    head[0x46..0x48].copy_from_slice(&word(sections.len())[..2]);
    head[0x54..0x56].copy_from_slice(&word(240)[..2]);
    head[0x40 + 24 + 148..][..4].copy_from_slice(&word(usize::from(is_signed)));
    let mut data = Vec::new();
    let start = head.len() + sections.len() * HEADER_BYTES;
    for (name, text) in sections {
        let mut header = [0; HEADER_BYTES];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[8..12].copy_from_slice(&word(text.len()));
        header[16..20].copy_from_slice(&word(text.len() + 7));
        header[20..24].copy_from_slice(&word(start + data.len()));
        head.extend(header);
        data.extend([text.as_bytes(), &[0; 7]].concat());
    }
    [head, data].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_section_is_found_by_its_whole_name_without_its_padding() {
        let image = example(&[(".osrel", "ID=x"), (".cmdline", "ro quiet"), (".cmdline", "second")], false);
        let text = |name: &str| {
            let place = section(&image, name)?;
            let place = usize::try_from(place.start).ok()?..usize::try_from(place.end).ok()?;
            String::from_utf8(image.get(place)?.to_vec()).ok()
        };
        assert_eq!(text(".cmdline").as_deref(), Some("ro quiet"));
        assert_eq!(text(".osrel").as_deref(), Some("ID=x"));
        assert_eq!((text(".cmd"), text(".linux")), (None, None));
        assert_eq!(section(&image[..0x50], ".osrel"), None);
        assert_eq!(section(b"MZ", ".osrel"), None);
    }

    #[test]
    fn a_signature_is_one_that_has_bytes() {
        assert!(is_signed(&example(&[], true)));
        assert!(!is_signed(&example(&[], false)));
        assert!(!is_signed(b"MZ"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer(at in 0_usize..300, byte: u8, length in 0_usize..400) {
            let mut image = example(&[(".cmdline", "ro")], true);
            image[at] = byte;
            image.truncate(length);
            let _ = (section(&image, ".cmdline"), is_signed(&image));
        }
    }
}
