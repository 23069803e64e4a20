//! A record in a block's body.

use super::{RECORD_HEAD_BYTES, record_bytes};
use crate::bytes::{is_zero, put, put_words, u16_at, u32_at, u64_at};
use lowlat_ipc::stream::{Record, Stamp};

/// Bytes of the head covered by the check: all except the check.
const CHECKED: usize = 60;

/// The check before the first record of a body. Because of it, a body under the head of another recording,
/// stream or epoch (a lost or misdirected write) has no intact record, even if its sequences match.
pub fn body_seed(recording: u64, stream: u32, epoch: u64) -> u32 {
    let seed = crc32c::crc32c(&recording.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &stream.to_le_bytes()), &epoch.to_le_bytes())
}

/// The check after a record, from that of the previous record ([`body_seed`] before the first).
pub fn check_of(before: u32, head: &[u8], rest: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(before, head.get(..CHECKED).unwrap_or_default()), rest)
}

/// Writes a record to `place`, which must have [`record_bytes`] bytes. Returns its check.
#[inline]
pub fn encode_record(place: &mut [u8], record: &Record, payload: &[u8], before: u32) -> u32 {
    let Some((head, rest)) = place.split_at_mut_checked(RECORD_HEAD_BYTES) else { return before };
    let stamp = &record.stamp;
    put_words(head, 0, &[record.position, record.sequence, stamp.generated, stamp.trigger, stamp.cause]);
    put(head, 40, &stamp.instrument.to_le_bytes());
    put(head, 44, &stamp.source.to_le_bytes());
    put(head, 48, &stamp.kind.to_le_bytes());
    put(head, 50, &stamp.schema.to_le_bytes());
    put(head, 52, &u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    put(head, 56, &0_u32.to_le_bytes());
    if let Some((to, fill)) = rest.split_at_mut_checked(payload.len()) {
        to.copy_from_slice(payload);
        fill.fill(0);
    }
    let check = check_of(before, head, rest);
    put(head, CHECKED, &check.to_le_bytes());
    check
}

/// The record at the start of `body`: its fields, payload, check and size in bytes. `None` if the body ends inside it,
/// its check does not match, or bytes that must be 0 are not.
#[inline]
pub fn decode_record(body: &[u8], before: u32) -> Option<(Record, &[u8], u32, usize)> {
    let (head, rest) = body.split_at_checked(RECORD_HEAD_BYTES)?;
    let length = u32_at(head, 52) as usize;
    let bytes = record_bytes(length);
    let rest = rest.get(..bytes - RECORD_HEAD_BYTES)?;
    let check = check_of(before, head, rest);
    let (payload, fill) = rest.split_at_checked(length)?;
    if check != u32_at(head, CHECKED) || !is_zero(fill) || u32_at(head, 56) != 0 {
        return None;
    }
    let stamp = Stamp {
        kind: u16_at(head, 48),
        schema: u16_at(head, 50),
        instrument: u32_at(head, 40),
        source: u32_at(head, 44),
        generated: u64_at(head, 16),
        trigger: u64_at(head, 24),
        cause: u64_at(head, 32),
    };
    Some((Record { position: u64_at(head, 0), sequence: u64_at(head, 8), stamp }, payload, check, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            words in any::<[u64; 5]>(), halves in any::<[u32; 2]>(), shorts in any::<[u16; 2]>(),
            payload in proptest::collection::vec(any::<u8>(), 0..100), before in any::<u32>(), bit in any::<usize>(),
        ) {
            let stamp = Stamp {
                kind: shorts[0], schema: shorts[1], instrument: halves[0], source: halves[1],
                generated: words[2], trigger: words[3], cause: words[4],
            };
            let record = Record { position: words[0], sequence: words[1], stamp };
            let mut bytes = vec![0xff; record_bytes(payload.len())];
            let check = encode_record(&mut bytes, &record, &payload, before);
            prop_assert_eq!(decode_record(&bytes, before), Some((record, &payload[..], check, bytes.len())));
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode_record(&bytes, before).is_none());
        }
    }
}
