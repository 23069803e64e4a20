//! The handle with which a strategy sends orders.

use super::{AnswerSeen, QuoteSeen};
use crate::records::{Order, Origin, PAYLOAD_BYTES, Price, Quote, SCHEMA, Side, kind};
use lowlat_ipc::stream::Stamp;
use thiserror::Error;

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
pub struct Cause {
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

impl Cause {
    /// No cause except for the time.
    pub fn at(now_ns: u64) -> Self {
        Self { generated_ns: now_ns, scheduled_ns: now_ns, received_ns: now_ns, ..Self::default() }
    }
}

impl From<&QuoteSeen> for Cause {
    fn from(seen: &QuoteSeen) -> Self {
        let QuoteSeen { sequence, generated_ns, received_ns, .. } = *seen;
        let Quote { scheduled_ns, origin, .. } = seen.quote;
        Self { generated_ns, scheduled_ns, received_ns, sequence, origin }
    }
}

impl From<&AnswerSeen> for Cause {
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
    cause: Cause,
    sent: u32,
}

impl<'a> Orders<'a> {
    /// A handle of a strategy, for a call with this cause.
    pub fn new(sink: &'a mut dyn OrderSink, strategy: u32, cause: Cause) -> Self {
        Self { sink, strategy, cause, sent: 0 }
    }

    pub fn strategy(&self) -> u32 {
        self.strategy
    }

    /// Number of orders sent in this call.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Sends an order and returns its number, which answers refer to. Allocates nothing; if td sleeps, it is
    /// woken with one system call.
    #[inline]
    pub fn send(
        &mut self,
        instrument: u32,
        side: Side,
        price: Price,
        quantity: u32,
    ) -> Result<u64, SendError> {
        let number = self.sink.number();
        let Cause { generated_ns, scheduled_ns, received_ns, sequence, origin } = self.cause;
        let order = Order { number, scheduled_ns, received_ns, price, quantity, side, origin };
        let stamp = Stamp {
            kind: kind::ORDER,
            schema: SCHEMA,
            instrument,
            source: self.strategy,
            generated: 0,
            trigger: generated_ns,
            cause: sequence,
        };
        self.sink.send(stamp, &order.encode())?;
        self.sent += 1;
        Ok(number)
    }
}
