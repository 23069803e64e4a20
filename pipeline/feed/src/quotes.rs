//! lowlat's own feed: datagrams of quotes, little endian.

use crate::{Content, DATAGRAM_BYTES_MAX, DecodeError, Head, array, put};

const MAGIC: u32 = u32::from_le_bytes(*b"LLFD");
pub const VERSION: u16 = 1;
pub const HEAD_BYTES: usize = 24;
pub const QUOTE_BYTES: usize = 40;
/// Most quotes of a datagram.
pub const QUOTES_MAX: usize = (DATAGRAM_BYTES_MAX - HEAD_BYTES) / QUOTE_BYTES;

/// Best bid and offer of an instrument; prices are in ten-thousandths of its currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedQuote {
    pub instrument: u32,
    pub bid_size: u32,
    pub ask_size: u32,
    /// Best bid; 0 if there is none.
    pub bid: i64,
    /// Best offer; 0 if there is none.
    pub ask: i64,
    /// Price of the last trade.
    pub last: i64,
}

/// Writes a head, and returns the bytes of its datagram. The quotes follow with [`write_quote`].
pub fn write_head(head: &Head, into: &mut [u8; DATAGRAM_BYTES_MAX]) -> usize {
    put(into, 0, &MAGIC.to_le_bytes());
    put(into, 4, &VERSION.to_le_bytes());
    put(into, 6, &head.content.code().to_le_bytes());
    put(into, 8, &head.session.to_le_bytes());
    put(into, 16, &head.sequence.to_le_bytes());
    HEAD_BYTES + usize::from(head.count()) * QUOTE_BYTES
}

/// Writes quote `number` of a datagram, from 0; nothing from [`QUOTES_MAX`] on.
pub fn write_quote(number: usize, quote: &FeedQuote, into: &mut [u8; DATAGRAM_BYTES_MAX]) {
    let at = HEAD_BYTES.saturating_add(number.saturating_mul(QUOTE_BYTES));
    let sizes = [quote.instrument, quote.bid_size, quote.ask_size, 0];
    let sizes = sizes.map(u32::to_le_bytes);
    let prices = [quote.bid, quote.ask, quote.last].map(i64::to_le_bytes);
    if number < QUOTES_MAX {
        put(into, at, sizes.as_flattened());
        put(into, at + 16, prices.as_flattened());
    }
}

/// Decodes a datagram: its head, and its quotes.
pub fn decode(bytes: &[u8]) -> Result<(Head, impl Iterator<Item = FeedQuote>), DecodeError> {
    if bytes.len() < HEAD_BYTES {
        return Err(DecodeError::Length { found: bytes.len(), expected: HEAD_BYTES });
    }
    let magic = u32::from_le_bytes(array(bytes, 0));
    let version = u16::from_le_bytes(array(bytes, 4));
    for (field, found, expected) in
        [("magic", u64::from(magic), u64::from(MAGIC)), ("version", u64::from(version), u64::from(VERSION))]
    {
        if found != expected {
            return Err(DecodeError::Value { field, found, expected });
        }
    }
    let head = Head {
        content: Content::of(u16::from_le_bytes(array(bytes, 6))),
        session: u64::from_le_bytes(array(bytes, 8)),
        sequence: u64::from_le_bytes(array(bytes, 16)),
    };
    let expected = HEAD_BYTES + usize::from(head.count()) * QUOTE_BYTES;
    if bytes.len() != expected {
        return Err(DecodeError::Length { found: bytes.len(), expected });
    }
    let quotes = bytes.get(HEAD_BYTES..).unwrap_or_default();
    Ok((head, quotes.chunks_exact(QUOTE_BYTES).map(quote)))
}

fn quote(bytes: &[u8]) -> FeedQuote {
    FeedQuote {
        instrument: u32::from_le_bytes(array(bytes, 0)),
        bid_size: u32::from_le_bytes(array(bytes, 4)),
        ask_size: u32::from_le_bytes(array(bytes, 8)),
        bid: i64::from_le_bytes(array(bytes, 16)),
        ask: i64::from_le_bytes(array(bytes, 24)),
        last: i64::from_le_bytes(array(bytes, 32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_datagram_is_as_documented() {
        let mut bytes = [0; DATAGRAM_BYTES_MAX];
        let head = Head { session: 7, sequence: 256, content: Content::Messages(1) };
        let length = write_head(&head, &mut bytes);
        let quote = FeedQuote { instrument: 1, bid_size: 2, ask_size: 3, bid: 4, ask: 5, last: -1 };
        write_quote(0, &quote, &mut bytes);
        let mut expected = b"LLFD\x01\0\x01\0\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0".to_vec();
        expected.extend(b"\x01\0\0\0\x02\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0");
        expected.extend([0xff; 8]);
        assert_eq!(bytes[..length], expected);
        assert_eq!(QUOTES_MAX, 36);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            session: u64, sequence: u64,
            quotes in proptest::collection::vec(any::<([u32; 3], [i64; 3])>(), 1..=QUOTES_MAX),
        ) {
            let quotes: Vec<_> = quotes.into_iter().map(|([instrument, bid_size, ask_size], [bid, ask, last])| {
                FeedQuote { instrument, bid_size, ask_size, bid, ask, last }
            }).collect();
            let content = Content::Messages(u16::try_from(quotes.len()).unwrap());
            let head = Head { session, sequence, content };
            let mut bytes = [0; DATAGRAM_BYTES_MAX];
            let length = write_head(&head, &mut bytes);
            quotes.iter().enumerate().for_each(|(at, quote)| write_quote(at, quote, &mut bytes));
            let (found, read) = decode(&bytes[..length]).unwrap();
            prop_assert_eq!(found, head);
            prop_assert_eq!(read.collect::<Vec<_>>(), quotes);
            prop_assert!(decode(&bytes[..length - 1]).is_err());
        }

        #[test]
        fn hostile_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..1500), is_marked: bool) {
            let mut bytes = bytes;
            if is_marked && bytes.len() >= 6 {
                bytes[..6].copy_from_slice(b"LLFD\x01\0");
            }
            if let Ok((head, quotes)) = decode(&bytes) {
                prop_assert_eq!(quotes.count(), usize::from(head.count()));
            }
        }
    }
}
