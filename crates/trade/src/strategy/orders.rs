//! The handle through which a strategy sends orders.

use super::{AnswerSeen, QuoteSeen};
use crate::records::{Order, PAYLOAD_BYTES, Price, SCHEMA, Side, kind};
use lowlat_ipc::stream::Stamp;
use thiserror::Error;

/// Why an order is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SendError {
    /// The stream takes nothing any more: another process has this one's place.
    #[error("this process was given up and another has its place; end")]
    Fenced,
    /// td has no room for it. Nothing was written; a later order may find room.
    #[error("td takes no orders at this moment: it is dead, or too slow; the order was not sent")]
    NoCredit,
    /// The stream refuses it for another reason.
    #[error("the orders stream refuses the record; see the process's log")]
    Refused,
}

/// Where orders go.
pub trait OrderSink {
    /// Writes one order. Fills in when it is written.
    fn send(&mut self, stamp: Stamp, payload: &[u8; PAYLOAD_BYTES]) -> Result<(), SendError>;
    /// A number for an order of the strategy, never used before.
    fn number(&mut self) -> u64;
}

/// What an order is sent because of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cause {
    /// When it was written, ns.
    pub generated_ns: u64,
    /// When it was due, ns.
    pub scheduled_ns: u64,
    /// When it had been read, ns.
    pub received_ns: u64,
    /// Its number in its stream.
    pub sequence: u64,
}

impl Cause {
    /// Nothing but the time.
    pub fn at(now_ns: u64) -> Self {
        Self { generated_ns: now_ns, scheduled_ns: now_ns, received_ns: now_ns, sequence: 0 }
    }
}

impl From<&QuoteSeen> for Cause {
    fn from(seen: &QuoteSeen) -> Self {
        let QuoteSeen { sequence, generated_ns, received_ns, .. } = *seen;
        Self { generated_ns, scheduled_ns: seen.quote.scheduled_ns, received_ns, sequence }
    }
}

impl From<&AnswerSeen> for Cause {
    fn from(seen: &AnswerSeen) -> Self {
        let AnswerSeen { sequence, generated_ns, received_ns, .. } = *seen;
        Self { generated_ns, scheduled_ns: generated_ns, received_ns, sequence }
    }
}

/// A strategy's handle during one call. Orders carry what they were sent because of, so that tick-to-order latency is
/// known without the strategy doing anything for it.
pub struct Orders<'a> {
    sink: &'a mut dyn OrderSink,
    strategy: u32,
    cause: Cause,
    sent: u32,
}

impl<'a> Orders<'a> {
    /// A handle of a strategy, for a call because of `cause`.
    pub fn new(sink: &'a mut dyn OrderSink, strategy: u32, cause: Cause) -> Self {
        Self { sink, strategy, cause, sent: 0 }
    }

    /// The strategy's number.
    pub fn strategy(&self) -> u32 {
        self.strategy
    }

    /// How many were sent in this call.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Sends an order and gives back its number, by which answers name it. It allocates nothing; when td sleeps it wakes
    /// it, which is one system call.
    #[inline]
    pub fn send(
        &mut self,
        instrument: u32,
        side: Side,
        price: Price,
        quantity: u32,
    ) -> Result<u64, SendError> {
        let number = self.sink.number();
        let Cause { generated_ns, scheduled_ns, received_ns, sequence } = self.cause;
        let order = Order { number, scheduled_ns, received_ns, price, quantity, side };
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
