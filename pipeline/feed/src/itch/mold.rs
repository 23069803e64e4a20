//! Packets of MoldUDP64: big endian; each message is behind its length.

use crate::{Content, DATAGRAM_BYTES_MAX, DecodeError, Head, array, put};

/// Bytes of a head: session, sequence, count.
pub const HEAD_BYTES: usize = 20;

/// Decodes a packet: its head, and its messages. All of them are within the packet.
pub fn decode(bytes: &[u8]) -> Result<(Head, impl Iterator<Item = &[u8]>), DecodeError> {
    if bytes.len() < HEAD_BYTES {
        return Err(DecodeError::Length { found: bytes.len(), expected: HEAD_BYTES });
    }
    // Ten characters; the last two go where the first ones of a numbered session rarely differ.
    let session = u64::from_be_bytes(array(bytes, 0));
    let last = u64::from(u16::from_be_bytes(array(bytes, 8)));
    let head = Head {
        session: session ^ (last << 48),
        sequence: u64::from_be_bytes(array(bytes, 10)),
        content: Content::of(u16::from_be_bytes(array(bytes, 18))),
    };
    let blocks = bytes.get(HEAD_BYTES..).unwrap_or_default();
    let mut end = 0;
    for _ in 0..head.count() {
        let length = usize::from(u16::from_be_bytes(array(blocks, end)));
        end += 2 + length;
        if end > blocks.len() {
            return Err(DecodeError::Length { found: bytes.len(), expected: HEAD_BYTES + end });
        }
    }
    let mut at = 0;
    let messages = (0..head.count()).map(move |_| {
        let length = usize::from(u16::from_be_bytes(array(blocks, at)));
        let message = blocks.get(at + 2..at + 2 + length).unwrap_or_default();
        at += 2 + length;
        message
    });
    Ok((head, messages))
}

/// Writes a head, with the session's number in ten characters, and returns its bytes. Messages follow with
/// [`write_message`].
pub fn write_head(head: &Head, into: &mut [u8; DATAGRAM_BYTES_MAX]) -> usize {
    let mut session = [b' '; 10];
    let mut rest = head.session;
    for digit in session.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    put(into, 0, &session);
    put(into, 10, &head.sequence.to_be_bytes());
    put(into, 18, &head.content.code().to_be_bytes());
    HEAD_BYTES
}

/// Writes a message at a place, and returns the place behind it; `None` if it does not fit.
pub fn write_message(at: usize, message: &[u8], into: &mut [u8; DATAGRAM_BYTES_MAX]) -> Option<usize> {
    let length = u16::try_from(message.len()).ok()?;
    let end = at.checked_add(2)?.checked_add(message.len()).filter(|end| *end <= into.len())?;
    put(into, at, &length.to_be_bytes());
    put(into, at + 2, message);
    Some(end)
}
