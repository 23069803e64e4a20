//! Payloads of the pipeline's records: little-endian, of fixed size, one cache line each, so that a record
//! takes two.
//!
//! Fields of the record's stamp are not repeated: a quote's instrument is `stamp.instrument`, its write time
//! `stamp.generated`; an order's `stamp.trigger` is the write time of its quote, `stamp.cause` that quote's
//! sequence, `stamp.source` the strategy. An answer's `stamp.instrument` is the number of its strategy: answers
//! are routed by strategy, as quotes are by instrument.

use thiserror::Error;

pub const PAYLOAD_BYTES: usize = 64;
/// Version of these payloads, in `stamp.schema`.
pub const SCHEMA: u16 = 1;

/// Record kinds in `stamp.kind`.
pub mod kind {
    pub const QUOTE: u16 = 1;
    pub const ORDER: u16 = 2;
    pub const ANSWER: u16 = 3;
}

/// Error for a payload that does not match its record's kind.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PayloadError(String);

impl PayloadError {
    #[cold]
    fn value(field: &str, found: u64, expected: &str) -> Self {
        Self(format!(
            "cannot decode {field}: found {found}, expected {expected}; another version wrote it, or it is damaged"
        ))
    }
}

/// A price in ten-thousandths of the instrument's currency.
pub type Price = i64;

/// Best bid and offer of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quote {
    /// Due time of the quote in its schedule, in the pipeline's clock, ns. Equals the stamp's time in a live
    /// feed.
    pub scheduled_ns: u64,
    /// Best bid; 0: none.
    pub bid: Price,
    /// Best offer; 0: none.
    pub ask: Price,
    /// Price of the last trade.
    pub last: Price,
    pub bid_size: u32,
    pub ask_size: u32,
    pub origin: Origin,
}

/// Origin of a quote that md received in a packet; zeros if md made the quote. An order has the origin of its quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// The kernel's receive stamp of the packet, in its clock (CLOCK_REALTIME), ns. A quote's
    /// [`Quote::scheduled_ns`] is the same moment in the pipeline's clock. 0 if the packet has no stamp.
    pub packet_ns: u64,
    /// Sequence number of the quote in its feed.
    pub sequence: u64,
    /// Time from the stamp until md had read the packet, ns.
    pub read_after_ns: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Side {
    #[default]
    Buy = 0,
    Sell = 1,
}

/// An order of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// The strategy's number of it, from 1, never reused, even after restarts.
    pub number: u64,
    /// Due time of the quote that caused it ([`Quote::scheduled_ns`]).
    pub scheduled_ns: u64,
    /// When the strategy had read that quote, in the pipeline's clock, ns.
    pub received_ns: u64,
    /// Limit price.
    pub price: Price,
    pub quantity: u32,
    pub side: Side,
    /// Origin of the quote that caused it.
    pub origin: Origin,
}

/// Reason why an order is rejected, by its code in payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reject {
    /// Not above 0, or too far from the market.
    BadPrice = 16,
    UnknownInstrument,
    /// 0, or above the limit of one order.
    BadQuantity,
    /// The strategy's position, or its number of open orders, would exceed its limit.
    OverLimit,
    /// The number was already used.
    DuplicateNumber,
    /// The exchange cannot be reached, or takes no more orders.
    NoExchange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted; fills may follow.
    Accepted,
    /// Rejected; nothing follows.
    Rejected(Reject),
    /// Filled, with the `quantity` and `price` of the answer.
    Filled,
}

/// td's answer to an order. Each order gets exactly one that is [`Outcome::Accepted`] or [`Outcome::Rejected`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub order_number: u64,
    pub outcome: Outcome,
    /// When td had read the order, in the pipeline's clock, ns.
    pub received_ns: u64,
    /// Price of the fill; in other answers that of the order.
    pub price: Price,
    /// Quantity of the fill; in other answers that of the order.
    pub quantity: u32,
    pub instrument: u32,
    pub side: Side,
}

impl Side {
    /// What this quantity changes a position by.
    #[inline]
    pub fn signed(self, quantity: u32) -> i64 {
        match self {
            Self::Buy => i64::from(quantity),
            Self::Sell => -i64::from(quantity),
        }
    }

    /// "buy" or "sell", as in exports, tables and Python.
    pub fn word(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
        }
    }

    #[inline]
    fn of(code: u64) -> Result<Self, PayloadError> {
        match code {
            0 => Ok(Self::Buy),
            1 => Ok(Self::Sell),
            found => Err(PayloadError::value("side", found, "0 (buy) or 1 (sell)")),
        }
    }
}

impl Reject {
    const WORDS: [(Self, &str); 6] = [
        (Self::BadPrice, "bad price"),
        (Self::UnknownInstrument, "unknown instrument"),
        (Self::BadQuantity, "bad quantity"),
        (Self::OverLimit, "over limit"),
        (Self::DuplicateNumber, "duplicate number"),
        (Self::NoExchange, "no exchange"),
    ];

    /// The reason in words, such as "bad price".
    pub fn words(self) -> &'static str {
        Self::WORDS.iter().find(|(of, _)| *of == self).map_or("", |(_, words)| words)
    }
}

impl Outcome {
    /// Its code in payloads, and in messages of an order gateway.
    pub fn code(self) -> u64 {
        match self {
            Self::Accepted => 0,
            Self::Filled => 1,
            Self::Rejected(reject) => reject as u64,
        }
    }

    /// The outcome with this code.
    pub fn of(code: u64) -> Result<Self, PayloadError> {
        let expected = "0 (accepted), 1 (filled) or 16 to 21 (rejected)";
        let reject = || Reject::WORDS.into_iter().find(|(reject, _)| *reject as u64 == code);
        match code {
            0 => Ok(Self::Accepted),
            1 => Ok(Self::Filled),
            found => reject()
                .map(|(reject, _)| Self::Rejected(reject))
                .ok_or_else(|| PayloadError::value("outcome", found, expected)),
        }
    }
}

type Words = [u64; PAYLOAD_BYTES / 8];

#[inline]
fn bytes_of(words: Words) -> [u8; PAYLOAD_BYTES] {
    let mut bytes = [0; PAYLOAD_BYTES];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[inline]
fn words_of(payload: &[u8]) -> Result<Words, PayloadError> {
    if payload.len() != PAYLOAD_BYTES {
        return Err(PayloadError(format!(
            "cannot decode a payload of {} bytes, expected {PAYLOAD_BYTES}: another version wrote it\nhint: use one lowlat version for all processes",
            payload.len()
        )));
    }
    let mut words = Words::default();
    for (to, from) in words.iter_mut().zip(payload.chunks_exact(8)) {
        *to = from.try_into().map(u64::from_le_bytes).unwrap_or_default();
    }
    Ok(words)
}

fn pack(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[expect(clippy::cast_possible_truncation, reason = "halves are meant")]
fn unpack(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

impl Quote {
    /// Encodes it as the payload of a record.
    #[inline]
    pub fn encode(&self) -> [u8; PAYLOAD_BYTES] {
        let sizes = pack(self.bid_size, self.ask_size);
        let [bid, ask, last] = [self.bid, self.ask, self.last].map(i64::cast_unsigned);
        let Origin { packet_ns, sequence, read_after_ns } = self.origin;
        bytes_of([self.scheduled_ns, bid, ask, last, sizes, packet_ns, sequence, u64::from(read_after_ns)])
    }

    /// Decodes the payload of a record.
    #[inline]
    pub fn decode(payload: &[u8]) -> Result<Self, PayloadError> {
        let [scheduled_ns, bid, ask, last, sizes, packet_ns, sequence, read_after] = words_of(payload)?;
        let (bid_size, ask_size) = unpack(sizes);
        let [bid, ask, last] = [bid, ask, last].map(u64::cast_signed);
        let origin = Origin { packet_ns, sequence, read_after_ns: unpack(read_after).0 };
        Ok(Self { scheduled_ns, bid, ask, last, bid_size, ask_size, origin })
    }
}

impl Order {
    /// Encodes it as the payload of a record.
    #[inline]
    pub fn encode(&self) -> [u8; PAYLOAD_BYTES] {
        bytes_of([
            self.number,
            self.scheduled_ns,
            self.received_ns,
            self.price.cast_unsigned(),
            pack(self.quantity, self.origin.read_after_ns),
            self.side as u64,
            self.origin.packet_ns,
            self.origin.sequence,
        ])
    }

    /// Decodes the payload of a record.
    #[inline]
    pub fn decode(payload: &[u8]) -> Result<Self, PayloadError> {
        let [number, scheduled_ns, received_ns, price, quantity, side, packet_ns, sequence] =
            words_of(payload)?;
        let (quantity, read_after_ns) = unpack(quantity);
        Ok(Self {
            number,
            scheduled_ns,
            received_ns,
            price: price.cast_signed(),
            quantity,
            side: Side::of(side)?,
            origin: Origin { packet_ns, sequence, read_after_ns },
        })
    }
}

impl Answer {
    /// Encodes it as the payload of a record.
    #[inline]
    pub fn encode(&self) -> [u8; PAYLOAD_BYTES] {
        bytes_of([
            self.order_number,
            self.outcome.code(),
            self.received_ns,
            self.price.cast_unsigned(),
            u64::from(self.quantity),
            self.side as u64,
            u64::from(self.instrument),
            0,
        ])
    }

    /// Decodes the payload of a record.
    #[inline]
    pub fn decode(payload: &[u8]) -> Result<Self, PayloadError> {
        let [order_number, outcome, received_ns, price, quantity, side, instrument, _] = words_of(payload)?;
        let instrument = short("instrument", instrument)?;
        Ok(Self {
            order_number,
            outcome: Outcome::of(outcome)?,
            received_ns,
            price: price.cast_signed(),
            quantity: short("quantity", quantity)?,
            instrument,
            side: Side::of(side)?,
        })
    }
}

fn short(field: &'static str, found: u64) -> Result<u32, PayloadError> {
    u32::try_from(found).map_err(|_| PayloadError::value(field, found, "a 32-bit number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The little-endian number of these bytes of a payload.
    fn at(payload: &[u8], offset: usize, bytes: usize) -> u64 {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&payload[offset..offset + bytes]);
        u64::from_le_bytes(word)
    }

    /// As docs/formats.md tells readers without lowlat.
    #[test]
    fn fields_are_at_their_documented_offsets() {
        let origin = Origin { packet_ns: 11, sequence: 12, read_after_ns: 13 };
        let quote = Quote { scheduled_ns: 1, bid: 2, ask: 3, last: -4, bid_size: 5, ask_size: 6, origin };
        let bytes = quote.encode();
        assert_eq!([0, 8, 16, 40, 48].map(|offset| at(&bytes, offset, 8)), [1, 2, 3, 11, 12]);
        assert_eq!(at(&bytes, 24, 8).cast_signed(), -4);
        assert_eq!([32, 36, 56].map(|offset| at(&bytes, offset, 4)), [5, 6, 13]);
        let side = Side::Sell;
        let order = Order { number: 1, scheduled_ns: 2, received_ns: 3, price: 4, quantity: 5, side, origin };
        let bytes = order.encode();
        assert_eq!([0, 8, 16, 24, 40, 48, 56].map(|offset| at(&bytes, offset, 8)), [1, 2, 3, 4, 1, 11, 12]);
        assert_eq!([32, 36].map(|offset| at(&bytes, offset, 4)), [5, 13]);
        let outcome = Outcome::Rejected(Reject::OverLimit);
        let answer =
            Answer { order_number: 1, outcome, received_ns: 2, price: 3, quantity: 4, instrument: 5, side };
        let bytes = answer.encode();
        assert_eq!(
            [0, 8, 16, 24, 32, 40, 48, 56].map(|offset| at(&bytes, offset, 8)),
            [1, 19, 2, 3, 4, 1, 5, 0]
        );
    }

    fn outcomes() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            Just(Outcome::Accepted),
            Just(Outcome::Filled),
            Just(Outcome::Rejected(Reject::BadPrice)),
            Just(Outcome::Rejected(Reject::UnknownInstrument)),
            Just(Outcome::Rejected(Reject::BadQuantity)),
            Just(Outcome::Rejected(Reject::OverLimit)),
            Just(Outcome::Rejected(Reject::DuplicateNumber)),
            Just(Outcome::Rejected(Reject::NoExchange)),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            numbers in any::<[u64; 3]>(), prices in any::<[i64; 3]>(), sizes in any::<[u32; 2]>(),
            is_sell in any::<bool>(), outcome in outcomes(), stamps in any::<([u64; 2], u32)>(),
        ) {
            let ([packet_ns, sequence], read_after_ns) = stamps;
            let origin = Origin { packet_ns, sequence, read_after_ns };
            let side = if is_sell { Side::Sell } else { Side::Buy };
            let quote = Quote {
                scheduled_ns: numbers[0], bid: prices[0], ask: prices[1], last: prices[2],
                bid_size: sizes[0], ask_size: sizes[1], origin,
            };
            prop_assert_eq!(Quote::decode(&quote.encode()), Ok(quote));
            let order = Order {
                number: numbers[0], scheduled_ns: numbers[1], received_ns: numbers[2],
                price: prices[0], quantity: sizes[0], side, origin,
            };
            prop_assert_eq!(Order::decode(&order.encode()), Ok(order));
            let answer = Answer {
                order_number: numbers[0], outcome, received_ns: numbers[1], price: prices[0],
                quantity: sizes[0], instrument: sizes[1], side,
            };
            prop_assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
        }

        #[test]
        fn hostile_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let sized = bytes.len() == PAYLOAD_BYTES;
            prop_assert_eq!(Quote::decode(&bytes).is_ok(), sized);
            prop_assert!(sized || Order::decode(&bytes).is_err());
            prop_assert!(sized || Answer::decode(&bytes).is_err());
        }
    }

    #[test]
    fn an_undefined_value_is_reported() {
        let mut order = Order::default().encode();
        order[40] = 9;
        let error = Order::decode(&order).unwrap_err().to_string();
        assert!(error.contains("side: found 9"), "{error}");
    }
}
