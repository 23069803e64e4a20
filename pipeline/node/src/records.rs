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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Side {
    #[default]
    Buy = 0,
    Sell = 1,
}

/// What a record of an orders stream asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrderAction {
    /// A new order.
    #[default]
    New = 0,
    /// Cancels what is left of the order with this number.
    Cancel = 1,
    /// Changes the price and the quantity of the order with this number.
    Replace = 2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrderType {
    /// At its price or better. What is left rests in the book.
    #[default]
    Limit = 0,
    /// At any price. What is left is cancelled.
    Market = 1,
    /// At its price or better. What is left is cancelled (immediate or cancel).
    ImmediateOrCancel = 2,
}

/// A strategy's request: a new order, or a change of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// The strategy's number of the order, from 1, never reused, even after restarts. A change has its order's.
    pub number: u64,
    /// Due time of the quote that caused it ([`Quote::scheduled_ns`]).
    pub scheduled_ns: u64,
    /// When the strategy had read that quote, in the pipeline's clock, ns.
    pub received_ns: u64,
    /// Limit price; without effect in a market order and in a cancel.
    pub price: Price,
    /// The whole quantity, with what is filled; without effect in a cancel.
    pub quantity: u32,
    /// Without effect in a change.
    pub side: Side,
    pub action: OrderAction,
    /// Without effect in a change.
    pub order_type: OrderType,
    /// Origin of the quote that caused it.
    pub origin: Origin,
}

/// Reason why an order is rejected or not changed, by its code in payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reject {
    /// Not above 0, or too far from the market.
    BadPrice = 16,
    UnknownInstrument,
    /// 0, above the limit of one order, or not above what is filled.
    BadQuantity,
    /// The strategy's position, or its number of open orders, would exceed its limit.
    OverLimit,
    /// The number was already used.
    DuplicateNumber,
    /// The exchange cannot be reached, takes no more orders, or does not support the request.
    NoExchange,
    /// The strategy has no open order with this number and instrument.
    UnknownOrder,
    /// The run's user has halted the strategy.
    Halted,
    /// More requests in a second than the limit allows.
    TooFast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted; fills may follow.
    Accepted,
    /// Rejected; nothing follows.
    Rejected(Reject),
    /// Filled, with the `quantity` and `price` of the answer.
    Filled,
    /// What was left, the `quantity` of the answer, is cancelled; nothing follows.
    Cancelled,
    /// Replaced: the order has the `quantity` and `price` of the answer; fills may follow.
    Replaced,
    /// A cancel or a replace that changed nothing. The order, if it is open, stays as it is.
    NotChanged(Reject),
}

/// td's answer to a request. Each order gets exactly one that is [`Outcome::Accepted`] or [`Outcome::Rejected`], each
/// cancel and replace one that is [`Outcome::Cancelled`], [`Outcome::Replaced`] or [`Outcome::NotChanged`].
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

impl OrderAction {
    /// "new", "cancel" or "replace", as in exports and in Python.
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Cancel => "cancel",
            Self::Replace => "replace",
        }
    }

    #[inline]
    fn of(code: u64) -> Result<Self, PayloadError> {
        match code {
            0 => Ok(Self::New),
            1 => Ok(Self::Cancel),
            2 => Ok(Self::Replace),
            found => Err(PayloadError::value("action", found, "0 (new), 1 (cancel) or 2 (replace)")),
        }
    }
}

impl OrderType {
    /// All types with their words, as in exports and in Python.
    pub const ALL: [(Self, &str); 3] =
        [(Self::Limit, "limit"), (Self::Market, "market"), (Self::ImmediateOrCancel, "ioc")];

    /// "limit", "market" or "ioc".
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(of, _)| *of == self).map_or("", |(_, word)| word)
    }

    /// The type with this code.
    #[inline]
    pub fn of(code: u64) -> Result<Self, PayloadError> {
        match code {
            0 => Ok(Self::Limit),
            1 => Ok(Self::Market),
            2 => Ok(Self::ImmediateOrCancel),
            found => Err(PayloadError::value(
                "order type",
                found,
                "0 (limit), 1 (market) or 2 (immediate or cancel)",
            )),
        }
    }
}

/// Codes from here up are of [`Outcome::NotChanged`]: this much above the reason's.
const NOT_CHANGED: u64 = 16;

impl Reject {
    const WORDS: [(Self, &str); 9] = [
        (Self::BadPrice, "bad price"),
        (Self::UnknownInstrument, "unknown instrument"),
        (Self::BadQuantity, "bad quantity"),
        (Self::OverLimit, "over limit"),
        (Self::DuplicateNumber, "duplicate number"),
        (Self::NoExchange, "no exchange"),
        (Self::UnknownOrder, "unknown order"),
        (Self::Halted, "halted"),
        (Self::TooFast, "too fast"),
    ];

    fn of(code: u64) -> Option<Self> {
        Self::WORDS.into_iter().find(|(reject, _)| *reject as u64 == code).map(|(reject, _)| reject)
    }

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
            Self::Cancelled => 2,
            Self::Replaced => 3,
            Self::Rejected(reject) => reject as u64,
            Self::NotChanged(reject) => reject as u64 + NOT_CHANGED,
        }
    }

    /// The outcome with this code.
    pub fn of(code: u64) -> Result<Self, PayloadError> {
        let expected = "0 (accepted), 1 (filled), 2 (cancelled), 3 (replaced), 16 to 24 (rejected) or 32 to 40 (not changed)";
        let refused = || {
            let not_changed = || Reject::of(code.checked_sub(NOT_CHANGED)?).map(Self::NotChanged);
            Reject::of(code).map(Self::Rejected).or_else(not_changed)
        };
        match code {
            0 => Ok(Self::Accepted),
            1 => Ok(Self::Filled),
            2 => Ok(Self::Cancelled),
            3 => Ok(Self::Replaced),
            found => refused().ok_or_else(|| PayloadError::value("outcome", found, expected)),
        }
    }

    /// Its word, as in exports and in Python; the reason is [`Self::reason`].
    pub fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected(_) => "rejected",
            Self::Filled => "filled",
            Self::Cancelled => "cancelled",
            Self::Replaced => "replaced",
            Self::NotChanged(_) => "not changed",
        }
    }

    /// Reason of a rejection, or why nothing was changed.
    pub fn reason(self) -> Option<Reject> {
        match self {
            Self::Rejected(reason) | Self::NotChanged(reason) => Some(reason),
            Self::Accepted | Self::Filled | Self::Cancelled | Self::Replaced => None,
        }
    }

    /// The outcome with its reason, if any, as in exports: "rejected: bad price".
    pub fn text(self) -> String {
        let reason = self.reason().map(|reason| format!(": {}", reason.words()));
        format!("{}{}", self.word(), reason.unwrap_or_default())
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
            self.side as u64 | (self.action as u64) << 8 | (self.order_type as u64) << 16,
            self.origin.packet_ns,
            self.origin.sequence,
        ])
    }

    /// Decodes the payload of a record.
    #[inline]
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub fn decode(payload: &[u8]) -> Result<Self, PayloadError> {
        let [number, scheduled_ns, received_ns, price, quantity, kind, packet_ns, sequence] =
            words_of(payload)?;
        let (quantity, read_after_ns) = unpack(quantity);
        Ok(Self {
            number,
            scheduled_ns,
            received_ns,
            price: price.cast_signed(),
            quantity,
            side: Side::of(kind & 0xff)?,
            action: OrderAction::of(kind >> 8 & 0xff)?,
            order_type: OrderType::of(kind >> 16)?,
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
        let (action, order_type) = (OrderAction::Replace, OrderType::Market);
        let order = Order {
            number: 1,
            scheduled_ns: 2,
            received_ns: 3,
            price: 4,
            quantity: 5,
            side,
            action,
            order_type,
            origin,
        };
        let bytes = order.encode();
        assert_eq!([0, 8, 16, 24, 48, 56].map(|offset| at(&bytes, offset, 8)), [1, 2, 3, 4, 11, 12]);
        assert_eq!(bytes[40..48], [1, 2, 1, 0, 0, 0, 0, 0]);
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
        let reject = || proptest::sample::select(Reject::WORDS.map(|(reject, _)| reject).to_vec());
        prop_oneof![
            Just(Outcome::Accepted),
            Just(Outcome::Filled),
            Just(Outcome::Cancelled),
            Just(Outcome::Replaced),
            reject().prop_map(Outcome::Rejected),
            reject().prop_map(Outcome::NotChanged),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            numbers in any::<[u64; 3]>(), prices in any::<[i64; 3]>(), sizes in any::<[u32; 2]>(),
            is_sell in any::<bool>(), outcome in outcomes(), codes in (0_u64..3, 0_u64..3), stamps in any::<([u64; 2], u32)>(),
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
                action: OrderAction::of(codes.0).unwrap(), order_type: OrderType::of(codes.1).unwrap(),
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
        for (offset, field) in [(40, "side"), (41, "action"), (42, "order type")] {
            let mut order = Order::default().encode();
            order[offset] = 9;
            let error = Order::decode(&order).unwrap_err().to_string();
            assert!(error.contains(&format!("{field}: found 9")), "{error}");
        }
    }
}
