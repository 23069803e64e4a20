//! The structures of the table: a header, a formatted area of its stated length, then strings up to two zeros.

use super::kind;

#[derive(Debug, Clone, Copy)]
pub(super) struct Structure<'a> {
    /// Header and formatted area; at least [`HEADER_BYTES`].
    formatted: &'a [u8],
    /// The strings, each terminated by a zero, without the last zero.
    strings: &'a [u8],
}

/// Header of a structure: type, length and handle.
const HEADER_BYTES: usize = 4;

/// The structures up to the end marker, the end of the bytes, or the first invalid header.
pub(super) fn structures(bytes: &[u8]) -> impl Iterator<Item = Structure<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (structure, behind) = Structure::split(rest)?;
        rest = behind;
        (structure.kind() != kind::END).then_some(structure)
    })
}

impl<'a> Structure<'a> {
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let length = usize::from(*bytes.get(1)?);
        if length < HEADER_BYTES {
            return None;
        }
        let (formatted, behind) = bytes.split_at_checked(length)?;
        // A table truncated in its last strings still yields the available ones.
        let end = behind.windows(2).position(|pair| pair == [0, 0]);
        let (strings, rest) = match end {
            Some(at) => (behind.get(..=at)?, behind.get(at + 2..)?),
            None => (behind, &[][..]),
        };
        Some((Self { formatted, strings }, rest))
    }

    pub(super) fn kind(&self) -> u8 {
        self.byte(0).unwrap_or(kind::END)
    }

    /// The header and formatted area.
    pub(super) fn formatted(&self) -> &'a [u8] {
        self.formatted
    }

    /// The strings in order, without their zeros.
    pub(super) fn strings(&self) -> impl Iterator<Item = &'a [u8]> {
        let kept = self.strings.strip_suffix(&[0]).unwrap_or(self.strings);
        let is_any = !kept.is_empty();
        kept.split(|byte| *byte == 0).filter(move |_| is_any)
    }

    /// The byte at an offset, if the structure is long enough.
    pub(super) fn byte(&self, offset: usize) -> Option<u8> {
        self.formatted.get(offset).copied()
    }

    /// The 16-bit number at an offset.
    pub(super) fn word(&self, offset: usize) -> Option<u16> {
        self.formatted.get(offset..)?.first_chunk().copied().map(u16::from_le_bytes)
    }

    /// The 32-bit number at an offset.
    pub(super) fn double_word(&self, offset: usize) -> Option<u32> {
        self.formatted.get(offset..)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    /// The 64-bit number at an offset.
    pub(super) fn quad_word(&self, offset: usize) -> Option<u64> {
        self.formatted.get(offset..)?.first_chunk().copied().map(u64::from_le_bytes)
    }

    /// The string whose number is at an offset, without the blanks that firmware pads with; `None` if it is
    /// empty.
    pub(super) fn text(&self, offset: usize) -> Option<String> {
        let number = usize::from(self.byte(offset)?);
        let bytes = self.strings().nth(number.checked_sub(1)?)?;
        let text = String::from_utf8_lossy(bytes);
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}
