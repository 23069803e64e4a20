//! The handle with which a strategy sends orders, and their numbers.

use super::{AnswerSeen, QuoteSeen};
use crate::records::{
    Order, OrderAction, OrderType, Origin, PAYLOAD_BYTES, Price, Quote, SCHEMA, Side, kind,
};
use lowlat_ipc::stream::Stamp;
use thiserror::Error;

/// Bits of a number that count orders. The higher bits are the turn.
const COUNT_BITS: u32 = 40;
/// Maximum turns of a strategy.
pub const TURNS_MAX: u32 = 1 << (u64::BITS - COUNT_BITS);

/// Reason why an order was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SendError {
    /// The stream is closed: another process has replaced this one.
    #[error("this process was dropped and another one has replaced it")]
    Fenced,
    /// td has no room for it. Nothing was written; a later order may succeed.
    #[error("the order was not sent: td accepts no orders now, because it is dead or too slow")]
    NoCredit,
    /// The stream refused it for another reason.
    #[error("the orders stream refused the record\nhint: check the process's log")]
    Refused,
}

pub trait OrderSink {
    /// Writes one order. Fills in its time of writing.
    fn send(&mut self, stamp: Stamp, payload: &[u8; PAYLOAD_BYTES]) -> Result<(), SendError>;
    /// An unused number for an order of the strategy.
    fn number(&mut self) -> u64;
}

/// The record, or the time, that caused an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OrderCause {
    /// When the causing record was written, ns.
    pub generated_ns: u64,
    /// When it was due, ns.
    pub scheduled_ns: u64,
    /// When it had been read, ns.
    pub received_ns: u64,
    /// Its sequence in its stream.
    pub sequence: u64,
    /// Origin of the causing quote; zeros for any other cause.
    pub origin: Origin,
}

impl OrderCause {
    /// No cause except for the time.
    pub fn at(now_ns: u64) -> Self {
        Self { generated_ns: now_ns, scheduled_ns: now_ns, received_ns: now_ns, ..Self::default() }
    }
}

impl From<&QuoteSeen> for OrderCause {
    fn from(seen: &QuoteSeen) -> Self {
        let QuoteSeen { sequence, generated_ns, received_ns, .. } = *seen;
        let Quote { scheduled_ns, origin, .. } = seen.quote;
        Self { generated_ns, scheduled_ns, received_ns, sequence, origin }
    }
}

impl From<&AnswerSeen> for OrderCause {
    fn from(seen: &AnswerSeen) -> Self {
        let AnswerSeen { sequence, generated_ns, received_ns, .. } = *seen;
        Self { generated_ns, scheduled_ns: generated_ns, received_ns, sequence, origin: Origin::default() }
    }
}

/// A strategy's handle during one call. Orders carry their cause, so that tick-to-order latency is measured
/// without effort by the strategy.
pub struct Orders<'a> {
    sink: &'a mut dyn OrderSink,
    strategy: u32,
    cause: OrderCause,
    timer_ns: Option<u64>,
}

impl<'a> Orders<'a> {
    /// A handle of a strategy, for a call with this cause.
    pub fn new(sink: &'a mut dyn OrderSink, strategy: u32, cause: OrderCause) -> Self {
        Self { sink, strategy, cause, timer_ns: None }
    }

    pub fn strategy(&self) -> u32 {
        self.strategy
    }

    /// Calls [`super::Strategy::on_timer`] once, at this time of the pipeline's clock (ns) or soon after. Replaces the
    /// time set before; `u64::MAX` sets none.
    pub fn set_timer(&mut self, at_ns: u64) {
        self.timer_ns = Some(at_ns);
    }

    /// The time set in this call for the timer, ns.
    pub fn timer(&self) -> Option<u64> {
        self.timer_ns
    }

    /// Sends a limit order and returns its number, which answers refer to. Allocates nothing; if td sleeps, it is
    /// woken with one system call.
    #[inline]
    pub fn send(
        &mut self,
        instrument: u32,
        side: Side,
        price: Price,
        quantity: u32,
    ) -> Result<u64, SendError> {
        self.send_as(OrderType::Limit, instrument, side, price, quantity)
    }

    /// Sends an order of this type, as [`Orders::send`] does. In a simulated book, a market order's price has no effect.
    #[inline]
    pub fn send_as(
        &mut self,
        order_type: OrderType,
        instrument: u32,
        side: Side,
        price: Price,
        quantity: u32,
    ) -> Result<u64, SendError> {
        let number = self.sink.number();
        self.request(instrument, Order { number, price, quantity, side, order_type, ..Order::default() })?;
        Ok(number)
    }

    /// Asks to cancel what is left of an order. The answer is [`crate::records::Outcome::Cancelled`] or
    /// [`crate::records::Outcome::NotChanged`].
    #[inline]
    pub fn cancel(&mut self, instrument: u32, number: u64) -> Result<(), SendError> {
        self.request(instrument, Order { number, action: OrderAction::Cancel, ..Order::default() })
    }

    /// Asks to change an order: `quantity` is the whole one, with what is filled. The order keeps its place in the queue
    /// if the price stays and the quantity does not grow. The answer is [`crate::records::Outcome::Replaced`] or
    /// [`crate::records::Outcome::NotChanged`].
    #[inline]
    pub fn replace(
        &mut self,
        instrument: u32,
        number: u64,
        price: Price,
        quantity: u32,
    ) -> Result<(), SendError> {
        self.request(
            instrument,
            Order { number, price, quantity, action: OrderAction::Replace, ..Order::default() },
        )
    }

    fn request(&mut self, instrument: u32, order: Order) -> Result<(), SendError> {
        let OrderCause { generated_ns, scheduled_ns, received_ns, sequence, origin } = self.cause;
        let stamp = Stamp {
            kind: kind::ORDER,
            schema: SCHEMA,
            instrument,
            source: self.strategy,
            generated: 0,
            trigger: generated_ns,
            cause: sequence,
        };
        let order = Order { scheduled_ns, received_ns, origin, ..order };
        self.sink.send(stamp, &order.encode())
    }
}

/// Allocates the order numbers of one strategy, which are never reused.
///
/// Each process of a strategy gets a turn from the master, one higher than its predecessor's. An order number
/// consists of the turn and a count, so it needs no memory that other processes could change, and a process
/// that dies leaves nothing behind.
#[derive(Debug)]
pub struct Numbers {
    last: u64,
}

impl Numbers {
    /// The numbers of a strategy's turn, counted from 0 and below [`TURNS_MAX`]. They exceed those of earlier
    /// turns. Those of turn 0 are 1, 2, 3 and so on.
    pub fn of_turn(turn: u32) -> Self {
        Self { last: u64::from(turn) << COUNT_BITS }
    }

    /// The last number allocated; one less than the first if there was none.
    pub fn last(&self) -> u64 {
        self.last
    }

    #[inline]
    pub fn take(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_start_at_one_and_turns_do_not_overlap() {
        let mut before = Numbers::of_turn(0);
        assert_eq!([before.take(), before.take()], [1, 2]);
        for turn in [1, 2, TURNS_MAX - 1] {
            let mut numbers = Numbers::of_turn(turn);
            assert!(numbers.take() > before.last());
            before = numbers;
        }
    }
}
