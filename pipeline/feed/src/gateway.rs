//! Messages between td and an exchange over TCP: 48 bytes each, little endian.

use crate::{DecodeError, array, put};

pub const VERSION: u8 = 1;
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
    /// From the exchange: the logon is accepted.
    LoggedOn = 16,
    /// From the exchange: an order is accepted; fills follow.
    Accepted = 17,
    /// From the exchange: part of an order is filled, with its quantity and price.
    Filled = 18,
    /// From the exchange: an order is rejected for [`Message::reason`].
    Rejected = 19,
}

const KINDS: [Kind; 7] =
    [Kind::Logon, Kind::Start, Kind::Order, Kind::LoggedOn, Kind::Accepted, Kind::Filled, Kind::Rejected];

/// A message. Fields that a kind does not use are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Message {
    pub kind: Kind,
    /// The order sells; otherwise it buys.
    pub is_sell: bool,
    /// Reason of a rejection, as a code of `docs/feed.md`.
    pub reason: u8,
    pub strategy: u32,
    /// Number of the order on this connection, from 1 without gaps; answers come in this order.
    pub id: u64,
    /// The strategy's number of the order.
    pub number: u64,
    /// Limit price, or that of the fill, in ten-thousandths of the currency.
    pub price: i64,
    /// Quantity of the order, or of the fill.
    pub quantity: u32,
    pub instrument: u32,
    /// Sequence number of the quote in the feed that caused the order; 0: none.
    pub quote: u64,
}

impl Message {
    /// A message without an order.
    pub fn of(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }

    pub fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        put(&mut bytes, 0, &[self.kind as u8, VERSION, u8::from(self.is_sell), self.reason]);
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
        let [kind, version, side, reason] = array(bytes, 0);
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
            reason,
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
            ..Message::of(Kind::Order)
        };
        let mut expected = b"\x03\x01\x01\0\x02\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0".to_vec();
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
