//! Messages of ITCH 5.0: big endian, of fixed size per type. Prices have 4 decimals.

use crate::{DecodeError, array};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Bid,
    Ask,
}

/// Event that a message reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// `S`: an event of the day, such as `C`, the end of messages.
    System(u8),
    /// `R`: the locate number of a stock on this day.
    Directory,
    /// `A`, `F`: a new order.
    Add {
        reference: u64,
        side: Side,
        shares: u32,
        /// Price of the order, in ten-thousandths.
        price: u32,
    },
    /// `E`, `C`: an execution against an order; with a price if it differs from the order's.
    Executed {
        reference: u64,
        shares: u32,
        /// Price of the execution, in `C`; `None` in `E`.
        price: Option<u32>,
    },
    /// `X`: shares of an order are cancelled.
    Cancel { reference: u64, shares: u32 },
    /// `D`: an order is deleted.
    Delete { reference: u64 },
    /// `U`: an order is replaced by another one on its side.
    Replace {
        /// Reference of the old order.
        old: u64,
        /// Reference of the new order.
        new: u64,
        /// Shares of the new order.
        shares: u32,
        /// Price of the new order, in ten-thousandths.
        price: u32,
    },
    /// `P`, `Q`: a trade against no order of the book.
    Trade {
        /// Price of the trade, in ten-thousandths.
        price: u32,
    },
    /// Any other type, which changes no quote.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Number of the stock on this day.
    pub locate: u16,
    /// Time of the message, in ns since midnight.
    pub time_ns: u64,
    /// Symbol of the stock, padded with spaces, in `R`, `A`, `F`, `P` and `Q`.
    pub symbol: Option<[u8; 8]>,
    pub event: Event,
}

/// Bytes of every message's head: type, locate, tracking number, time.
const HEAD_BYTES: usize = 11;

/// Bytes of the messages that are parsed.
fn length_of(kind: u8) -> Option<usize> {
    Some(match kind {
        b'S' => 12,
        b'R' => 39,
        b'A' | b'C' => 36,
        b'F' | b'Q' => 40,
        b'E' => 31,
        b'X' => 23,
        b'D' => 19,
        b'U' => 35,
        b'P' => 44,
        _ => return None,
    })
}

/// Parses a message. Types that change no quote are [`Event::Other`].
pub fn parse(bytes: &[u8]) -> Result<Message, DecodeError> {
    let kind = bytes.first().copied().unwrap_or(0);
    let length = length_of(kind);
    let expected = length.unwrap_or(HEAD_BYTES);
    if bytes.len() < expected || length.is_some_and(|length| bytes.len() != length) {
        return Err(DecodeError::Length { found: bytes.len(), expected });
    }
    let long = |at| u64::from_be_bytes(array(bytes, at));
    let int = |at| u32::from_be_bytes(array(bytes, at));
    let event = match kind {
        b'S' => Event::System(bytes.get(11).copied().unwrap_or(0)),
        b'R' => Event::Directory,
        b'A' | b'F' => {
            let side = match bytes.get(19) {
                Some(b'B') => Side::Bid,
                Some(b'S') => Side::Ask,
                other => {
                    let found = u64::from(other.copied().unwrap_or(0));
                    return Err(DecodeError::Value { field: "side", found, expected: u64::from(b'B') });
                }
            };
            Event::Add { reference: long(11), side, shares: int(20), price: int(32) }
        }
        b'E' => Event::Executed { reference: long(11), shares: int(19), price: None },
        b'C' => Event::Executed { reference: long(11), shares: int(19), price: Some(int(32)) },
        b'X' => Event::Cancel { reference: long(11), shares: int(19) },
        b'D' => Event::Delete { reference: long(11) },
        b'U' => Event::Replace { old: long(11), new: long(19), shares: int(27), price: int(31) },
        b'P' => Event::Trade { price: int(32) },
        b'Q' => Event::Trade { price: int(27) },
        _ => Event::Other,
    };
    let symbol_at = match kind {
        b'R' => Some(11),
        b'A' | b'F' | b'P' => Some(24),
        b'Q' => Some(19),
        _ => None,
    };
    let locate = u16::from_be_bytes(array(bytes, 1));
    let time = u64::from_be_bytes(array(bytes, 3)) & 0xffff_ffff_ffff;
    Ok(Message { locate, time_ns: time, symbol: symbol_at.map(|at| array(bytes, at)), event })
}
