//! Events and records for C.

use lowlat_ipc::stream;
use lowlat_node::records::{self, OrderAction, OrderType};
use std::{ffi::c_char, ptr};

/// Prices are whole numbers in units of 1/LOWLAT_PRICE_SCALE of the instrument's currency.
pub const LOWLAT_PRICE_SCALE: i64 = 10_000;
/// Version of the payloads below, in stamp.schema.
pub const LOWLAT_SCHEMA: u16 = 1;

/// stamp.kind of a lowlat_quote.
pub const LOWLAT_KIND_QUOTE: u16 = 1;
/// stamp.kind of a lowlat_order.
pub const LOWLAT_KIND_ORDER: u16 = 2;
/// stamp.kind of a lowlat_answer.
pub const LOWLAT_KIND_ANSWER: u16 = 3;

// Written out for the header; they equal those of the records.
const _: () = assert!(
    LOWLAT_SCHEMA == records::SCHEMA
        && LOWLAT_KIND_QUOTE == records::kind::QUOTE
        && LOWLAT_KIND_ORDER == records::kind::ORDER
        && LOWLAT_KIND_ANSWER == records::kind::ANSWER
        && LOWLAT_TYPE_LIMIT == OrderType::Limit as u32
        && LOWLAT_TYPE_MARKET == OrderType::Market as u32
        && LOWLAT_TYPE_IMMEDIATE_OR_CANCEL == OrderType::ImmediateOrCancel as u32
        && LOWLAT_ACTION_NEW == OrderAction::New as u32
        && LOWLAT_ACTION_CANCEL == OrderAction::Cancel as u32
        && LOWLAT_ACTION_REPLACE == OrderAction::Replace as u32
);

/// side: buy.
pub const LOWLAT_SIDE_BUY: u32 = 0;
/// side: sell.
pub const LOWLAT_SIDE_SELL: u32 = 1;

/// type: at the order's price or better; what is left rests in the book.
pub const LOWLAT_TYPE_LIMIT: u32 = 0;
/// type: at any price; what is left is cancelled.
pub const LOWLAT_TYPE_MARKET: u32 = 1;
/// type: at the order's price or better; what is left is cancelled.
pub const LOWLAT_TYPE_IMMEDIATE_OR_CANCEL: u32 = 2;

/// action: a new order.
pub const LOWLAT_ACTION_NEW: u32 = 0;
/// action: cancels what is left of the order with this number.
pub const LOWLAT_ACTION_CANCEL: u32 = 1;
/// action: changes the price and the quantity of the order with this number.
pub const LOWLAT_ACTION_REPLACE: u32 = 2;

/// outcome: the order is accepted; fills may follow.
pub const LOWLAT_OUTCOME_ACCEPTED: u32 = 0;
/// outcome: the order is filled, with this quantity and price.
pub const LOWLAT_OUTCOME_FILLED: u32 = 1;
/// outcome: what was left of the order, this quantity, is cancelled; nothing follows. Orders that may not rest, and those
/// of a halted strategy, are cancelled without a request.
pub const LOWLAT_OUTCOME_CANCELLED: u32 = 2;
/// outcome: the order has this quantity and price now; fills may follow.
pub const LOWLAT_OUTCOME_REPLACED: u32 = 3;
/// outcome: values from this on, below LOWLAT_OUTCOME_NOT_CHANGED, mean that the order is rejected: 16 bad price, 17
/// unknown instrument, 18 bad quantity, 19 over a limit, 20 duplicate number, 21 no exchange or not supported by it,
/// 22 unknown order, 23 strategy halted, 24 too many requests in a second.
pub const LOWLAT_OUTCOME_REJECTED: u32 = 16;
/// outcome: values from this on mean that a cancel or a replace changed nothing, and the order, if it is open, stays as it
/// is. They are 16 above the codes of the reasons: 38 means that the strategy has no open order with this number and
/// instrument.
pub const LOWLAT_OUTCOME_NOT_CHANGED: u32 = 32;

/// event.kind: event.record is a record.
pub const LOWLAT_EVENT_RECORD: u32 = 1;
/// event.kind: event.lost records of event.stream are lost: the node was too slow, or they are missing from the
/// recording.
pub const LOWLAT_EVENT_LOST: u32 = 2;
/// event.kind: all nodes have joined; publishing may start.
pub const LOWLAT_EVENT_BEGIN: u32 = 3;
/// event.kind: the node should stop; lowlat_ended returns the reason, if the master did not request it.
pub const LOWLAT_EVENT_STOP: u32 = 4;
/// event.kind: event.text is a command of the master's user.
pub const LOWLAT_EVENT_COMMAND: u32 = 5;
/// event.kind: event.text describes damage of a recording. Reading continues after it.
pub const LOWLAT_EVENT_DAMAGE: u32 = 6;
/// event.kind: the time set with lowlat_set_timer has come; it is event.due_ns.
pub const LOWLAT_EVENT_TIMER: u32 = 7;

/// Header fields of a record, besides its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct RecordStamp {
    /// Kind of the payload: LOWLAT_KIND_..., or a custom kind below 0xff00.
    pub kind: u16,
    /// Version of the payload's format.
    pub schema: u16,
    /// The instrument, which selects the readers; for an answer, the number of its strategy.
    pub instrument: u32,
    /// Source: the strategy's number for an order, else the node's.
    pub source: u32,
    /// 0.
    pub reserved: u32,
    /// When it was written, ns of the pipeline's clock. When publishing, 0 means now.
    pub generated_ns: u64,
    /// When the record that caused it was written. When publishing, 0 means its own time.
    pub trigger_ns: u64,
    /// Sequence of the record that caused it; 0 without a cause.
    pub cause_sequence: u64,
}

/// A record. It and what it points to are valid until the handler returns, or until the next
/// lowlat_journal_next.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Record {
    /// The stream: "md", "td", "orders.NAME", ...
    pub stream: *const c_char,
    /// Its payload, unaligned.
    pub payload: *const u8,
    /// Bytes of the payload.
    pub payload_bytes: usize,
    /// Its sequence in the stream.
    pub sequence: u64,
    /// When this process had read it, ns of the pipeline's clock; 0 in a recording.
    pub received_ns: u64,
    /// Its header fields.
    pub stamp: RecordStamp,
}

/// An event of a node or a recording. It and what it points to are valid as long as a record is.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Event {
    /// LOWLAT_EVENT_... Ignore unknown kinds.
    pub kind: u32,
    /// 0.
    pub reserved: u32,
    /// The stream of a record or of lost records; else NULL.
    pub stream: *const c_char,
    /// The record; else NULL.
    pub record: *const Record,
    /// Number of lost records.
    pub lost: u64,
    /// A command, a description of damage, why records are missing from a recording; else NULL.
    pub text: *const c_char,
    /// The time of a timer.
    pub due_ns: u64,
}

/// Best bid and offer of an instrument, which is stamp.instrument. Prices in LOWLAT_PRICE_SCALE-ths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Quote {
    /// When it was due in its schedule, ns of the pipeline's clock.
    pub scheduled_ns: u64,
    /// Best bid; 0: none.
    pub bid: i64,
    /// Best offer; 0: none.
    pub ask: i64,
    /// Last trade.
    pub last: i64,
    /// Size at the bid.
    pub bid_size: u32,
    /// Size at the offer.
    pub ask_size: u32,
}

/// A strategy's request: a new order, or a change of one. To send an order, set instrument, side, price and quantity, and
/// type unless it is a limit order; action stays 0. lowlat_send_order sets the other fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Order {
    /// The strategy's number of the order, never reused, even after restarts. Answers and changes refer to it.
    pub number: u64,
    /// When the quote that caused it was due.
    pub scheduled_ns: u64,
    /// When the strategy had read that quote.
    pub received_ns: u64,
    /// Limit price in LOWLAT_PRICE_SCALE-ths; without effect in a cancel, and in a market order that quotes fill.
    pub price: i64,
    /// The whole quantity, with what is filled; without effect in a cancel.
    pub quantity: u32,
    /// LOWLAT_SIDE_...; without effect in a change.
    pub side: u32,
    /// The instrument.
    pub instrument: u32,
    /// LOWLAT_TYPE_...; without effect in a change.
    pub r#type: u32,
    /// LOWLAT_ACTION_...
    pub action: u32,
    /// 0.
    pub reserved: u32,
}

/// td's answer to a request. Each order gets exactly one answer that accepts or rejects it. Each cancel and each replace
/// gets one that cancels, replaces or changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Answer {
    /// The order's number.
    pub order_number: u64,
    /// When td had read the order, ns of the pipeline's clock.
    pub received_ns: u64,
    /// Price of the fill; in other answers that of the order.
    pub price: i64,
    /// Quantity of the fill; in other answers that of the order.
    pub quantity: u32,
    /// LOWLAT_OUTCOME_...
    pub outcome: u32,
    /// The order's instrument.
    pub instrument: u32,
    /// The order's side.
    pub side: u32,
}

impl RecordStamp {
    pub(crate) fn of(stamp: &stream::Stamp) -> Self {
        Self {
            kind: stamp.kind,
            schema: stamp.schema,
            instrument: stamp.instrument,
            source: stamp.source,
            reserved: 0,
            generated_ns: stamp.generated,
            trigger_ns: stamp.trigger,
            cause_sequence: stamp.cause,
        }
    }

    /// Converts it for publishing, with the time `now_ns` if it has none.
    pub(crate) fn to_publish(self, now_ns: u64) -> stream::Stamp {
        let generated = if self.generated_ns == 0 { now_ns } else { self.generated_ns };
        stream::Stamp {
            kind: self.kind,
            schema: self.schema,
            instrument: self.instrument,
            source: self.source,
            generated,
            trigger: if self.trigger_ns == 0 { generated } else { self.trigger_ns },
            cause: self.cause_sequence,
        }
    }
}

impl Event {
    pub(crate) fn new(kind: u32) -> Self {
        let (stream, record, text) = (ptr::null(), ptr::null(), ptr::null());
        Self { kind, reserved: 0, stream, record, lost: 0, text, due_ns: 0 }
    }

    pub(crate) fn of_record(record: &Record) -> Self {
        Self { stream: record.stream, record: ptr::from_ref(record), ..Self::new(LOWLAT_EVENT_RECORD) }
    }
}

pub(crate) fn side_code(side: records::Side) -> u32 {
    match side {
        records::Side::Buy => LOWLAT_SIDE_BUY,
        records::Side::Sell => LOWLAT_SIDE_SELL,
    }
}
