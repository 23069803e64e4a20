//! Messages between td and an exchange over TCP: 48 bytes each, little endian.

use crate::{DecodeError, array, put};

pub const VERSION: u8 = 2;
pub const MESSAGE_BYTES: usize = 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Kind {
    /// To the exchange: the first message of a connection.
    #[default]
    Logon = 1,
    /// To the exchange: quotes may be published.
    Start = 2,
    /// To the exchange: an order.
    Order = 3,
    /// To the exchange: what is left of an order is to be cancelled.
    Cancel = 4,
    /// To the exchange: an order is to have this price and this whole quantity.
    Replace = 5,
    /// From the exchange: the logon is accepted.
    LoggedOn = 16,
    /// From the exchange: an order is accepted; fills follow.
    Accepted = 17,
    /// From the exchange: part of an order is filled, with its quantity and price.
    Filled = 18,
    /// From the exchange: an order is rejected for the reason [`Message::code`].
    Rejected = 19,
    /// From the exchange: a request to cancel is done, or what is left of an order that does not rest is cancelled.
    Cancelled = 20,
    /// From the exchange: a request to replace is done; fills of the order may follow.
    Replaced = 21,
    /// From the exchange: a request to cancel or replace changed nothing, for the reason [`Message::code`].
    NotChanged = 22,
}

const KINDS: [Kind; 12] = [
    Kind::Logon,
    Kind::Start,
    Kind::Order,
    Kind::Cancel,
    Kind::Replace,
    Kind::LoggedOn,
    Kind::Accepted,
    Kind::Filled,
    Kind::Rejected,
    Kind::Cancelled,
    Kind::Replaced,
    Kind::NotChanged,
];

/// A message. Fields that a kind does not use are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Message {
    pub kind: Kind,
    /// The order sells; otherwise it buys.
    pub is_sell: bool,
    /// Type of an order, or reason why one is rejected or not changed, as codes of `docs/feed.md`.
    pub code: u8,
    pub strategy: u32,
    /// Number of the request on this connection, from 1 without gaps; answers come in this order. Fills have that of
    /// their order.
    pub id: u64,
    /// The strategy's number of the order.
    pub number: u64,
    /// Limit price, or that of the fill, in ten-thousandths of the currency.
    pub price: i64,
    /// Quantity of the order, or of the fill.
    pub quantity: u32,
    pub instrument: u32,
    /// Sequence number of the quote in the feed that caused the order; 0: none. Of a cancel or a replace, the order's id.
    pub quote: u64,
}

impl Message {
    /// A message without an order.
    pub fn of(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }

    pub fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        put(&mut bytes, 0, &[self.kind as u8, VERSION, u8::from(self.is_sell), self.code]);
        put(&mut bytes, 4, &self.strategy.to_le_bytes());
        put(&mut bytes, 8, &self.id.to_le_bytes());
        put(&mut bytes, 16, &self.number.to_le_bytes());
        put(&mut bytes, 24, &self.price.to_le_bytes());
        put(&mut bytes, 32, &self.quantity.to_le_bytes());
        put(&mut bytes, 36, &self.instrument.to_le_bytes());
        put(&mut bytes, 40, &self.quote.to_le_bytes());
        bytes
    }

    /// Decodes the bytes of one message.
    pub fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Result<Self, DecodeError> {
        let [kind, version, side, code] = array(bytes, 0);
        let wrong = |field, found: u8, expected: u8| DecodeError::Value {
            field,
            found: u64::from(found),
            expected: u64::from(expected),
        };
        if version != VERSION {
            return Err(wrong("version", version, VERSION));
        }
        let known = KINDS.into_iter().find(|known| *known as u8 == kind);
        Ok(Self {
            kind: known.ok_or_else(|| wrong("kind", kind, Kind::Order as u8))?,
            is_sell: match side {
                0 => false,
                1 => true,
                found => return Err(wrong("side", found, 1)),
            },
            code,
            strategy: u32::from_le_bytes(array(bytes, 4)),
            id: u64::from_le_bytes(array(bytes, 8)),
            number: u64::from_le_bytes(array(bytes, 16)),
            price: i64::from_le_bytes(array(bytes, 24)),
            quantity: u32::from_le_bytes(array(bytes, 32)),
            instrument: u32::from_le_bytes(array(bytes, 36)),
            quote: u64::from_le_bytes(array(bytes, 40)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_order_is_as_documented() {
        let order = Message {
            is_sell: true,
            strategy: 2,
            id: 3,
            number: 4,
            price: 5,
            quantity: 6,
            instrument: 7,
            quote: 8,
            code: 2,
            ..Message::of(Kind::Order)
        };
        let mut expected = b"\x03\x02\x01\x02\x02\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0".to_vec();
        expected.extend(b"\x05\0\0\0\0\0\0\0\x06\0\0\0\x07\0\0\0\x08\0\0\0\0\0\0\0");
        assert_eq!(order.encode().to_vec(), expected);
        assert_eq!(Message::decode(&order.encode()), Ok(order));
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_refused_or_read(bytes: [u8; 32], kind in 0_u8..24, version in 0_u8..3, side in 0_u8..3) {
            let mut all = [0; MESSAGE_BYTES];
            all[16..].copy_from_slice(&bytes);
            all[..3].copy_from_slice(&[kind, version, side]);
            match Message::decode(&all) {
                Ok(message) => prop_assert_eq!(message.encode(), all),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
