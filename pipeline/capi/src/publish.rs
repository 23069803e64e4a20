//! Publishes records and orders.

use crate::{
    decode::{bytes_at, payload_of},
    error::{Status, fail, null, of_publish},
    node::{Node, StrategyState, no_strategy, with},
    records::{
        LOWLAT_ACTION_NEW, LOWLAT_KIND_QUOTE, LOWLAT_SIDE_BUY, LOWLAT_SIDE_SELL, Order, Record, RecordStamp,
    },
};
use lowlat_node::{
    clock::now_ns,
    records::{self, OrderType, Side},
    strategy::{OrderCause, OrderStream, Orders, SendError},
};
use std::ffi::c_void;

/// Appends a record to the node's stream and delivers it to every reader that wants stamp.instrument; sleeping
/// readers are woken, each with a system call. Sets `sequence` to its number; it may be NULL. Publish after
/// LOWLAT_EVENT_BEGIN if all readers must get the record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_publish(
    node: *mut Node,
    stamp: *const RecordStamp,
    payload: *const c_void,
    payload_bytes: usize,
    sequence: *mut u64,
) -> Status {
    let publish = |node: &Node| {
        // SAFETY: NULL or a stamp, as the caller guarantees.
        let stamp = unsafe { stamp.as_ref() }.ok_or_else(|| null("stamp"))?;
        if payload.is_null() && payload_bytes > 0 {
            return Err(null("payload"));
        }
        // SAFETY: this many bytes exist there during the call, as the caller guarantees; NULL was checked.
        let payload = unsafe { bytes_at(payload.cast(), payload_bytes) };
        node.publish_with("lowlat_publish", |publisher| {
            let published = publisher.publish(&stamp.to_publish(now_ns()), payload).map_err(of_publish)?;
            // SAFETY: NULL, or space for a number, as the caller guarantees.
            if let Some(sequence) = unsafe { sequence.as_mut() } {
                *sequence = published.sequence;
            }
            Ok(())
        })
    };
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { with(node, publish) }
}

/// Sends a new order of a node that joined with lowlat_join_strategy. The caller sets instrument, side, price, quantity
/// and type; number, scheduled_ns and received_ns are filled in. `cause` is the record that caused it, from
/// which tick-to-order latency is measured; NULL: none, so latency is measured from now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_send_order(
    node: *mut Node,
    cause: *const Record,
    order: *mut Order,
) -> Status {
    let send = |node: &Node| {
        // SAFETY: NULL or an order that nothing else uses during the call, as the caller guarantees.
        let order = unsafe { order.as_mut() }.ok_or_else(|| null("order"))?;
        // SAFETY: NULL or a valid record, as the caller guarantees.
        let cause = unsafe { cause_of(cause) };
        let side = match order.side {
            LOWLAT_SIDE_BUY => Side::Buy,
            LOWLAT_SIDE_SELL => Side::Sell,
            found => {
                let text = format_args!("side {found}: expected LOWLAT_SIDE_BUY or LOWLAT_SIDE_SELL");
                return Err(fail(Status::Argument, &text));
            }
        };
        let Ok(order_type) = OrderType::of(order.r#type.into()) else {
            let found = order.r#type;
            let text = format_args!(
                "type {found}: expected LOWLAT_TYPE_LIMIT, LOWLAT_TYPE_MARKET or LOWLAT_TYPE_IMMEDIATE_OR_CANCEL"
            );
            return Err(fail(Status::Argument, &text));
        };
        if order.action != LOWLAT_ACTION_NEW {
            let text = format_args!(
                "action {}: expected LOWLAT_ACTION_NEW\nhint: call lowlat_cancel_order or lowlat_replace_order",
                order.action
            );
            return Err(fail(Status::Argument, &text));
        }
        request(node, "lowlat_send_order", cause, |orders| {
            let number = orders.send_as(order_type, order.instrument, side, order.price, order.quantity)?;
            let OrderCause { scheduled_ns, received_ns, .. } = cause;
            *order = Order { number, scheduled_ns, received_ns, reserved: 0, ..*order };
            Ok(())
        })
    };
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { with(node, send) }
}

/// Asks td to cancel what is left of an order of the node's strategy. The answer is LOWLAT_OUTCOME_CANCELLED or one of
/// LOWLAT_OUTCOME_NOT_CHANGED. `cause` is as for lowlat_send_order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_cancel_order(
    node: *mut Node,
    cause: *const Record,
    instrument: u32,
    number: u64,
) -> Status {
    let cancel = |node: &Node| {
        // SAFETY: NULL or a valid record, as the caller guarantees.
        let cause = unsafe { cause_of(cause) };
        request(node, "lowlat_cancel_order", cause, |orders| orders.cancel(instrument, number))
    };
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { with(node, cancel) }
}

/// Asks td to change an order of the node's strategy: `quantity` is the whole one, with what is filled. The order keeps
/// its place in the queue if the price stays and the quantity does not grow. The answer is LOWLAT_OUTCOME_REPLACED or one
/// of LOWLAT_OUTCOME_NOT_CHANGED. `cause` is as for lowlat_send_order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_replace_order(
    node: *mut Node,
    cause: *const Record,
    instrument: u32,
    number: u64,
    price: i64,
    quantity: u32,
) -> Status {
    let replace = |node: &Node| {
        // SAFETY: NULL or a valid record, as the caller guarantees.
        let cause = unsafe { cause_of(cause) };
        request(node, "lowlat_replace_order", cause, |orders| {
            orders.replace(instrument, number, price, quantity)
        })
    };
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { with(node, replace) }
}

/// Sends a request of the node's strategy; `what` is the function that was called.
fn request(
    node: &Node,
    what: &str,
    cause: OrderCause,
    send: impl FnOnce(&mut Orders<'_>) -> Result<(), SendError>,
) -> Result<(), Status> {
    node.publish_with(what, |publisher| {
        let mut strategy = node.strategy.borrow_mut();
        let StrategyState { number, numbers } = strategy.as_mut().ok_or_else(no_strategy)?;
        let mut failed = None;
        let mut sink = OrderStream::new(publisher, numbers, |error| failed = Some(error));
        let done = send(&mut Orders::new(&mut sink, *number, cause));
        match (done, failed) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(error)) => Err(of_publish(error)),
            (Err(error), None) => Err(fail(Status::Refused, &error)),
        }
    })
}

/// The record's cause, or the time if there is no record.
///
/// # Safety
/// The record is NULL or valid, and so is its payload.
unsafe fn cause_of(record: *const Record) -> OrderCause {
    // SAFETY: NULL, or a record that does not change during the call, as the caller guarantees.
    let Some(record) = (unsafe { record.as_ref() }) else { return OrderCause::at(now_ns()) };
    let RecordStamp { generated_ns, kind, .. } = record.stamp;
    // SAFETY: the payload is NULL or valid, as the caller guarantees.
    let payload = unsafe { payload_of(record) };
    let quote = if kind == LOWLAT_KIND_QUOTE { records::Quote::decode(payload).ok() } else { None };
    OrderCause {
        generated_ns,
        scheduled_ns: quote.map_or(generated_ns, |quote| quote.scheduled_ns),
        received_ns: record.received_ns,
        sequence: record.sequence,
        origin: quote.map_or_else(Default::default, |quote| quote.origin),
    }
}
