//! Publishes records and orders.

use crate::{
    decode::{bytes_at, payload_of},
    error::{Status, fail, null, of_publish},
    node::{Node, StrategyState, with},
    records::{LOWLAT_KIND_QUOTE, LOWLAT_SIDE_BUY, LOWLAT_SIDE_SELL, Order, Record, RecordStamp},
};
use lowlat_node::{
    clock::now_ns,
    records::{self, Side},
    strategy::{OrderCause, OrderStream, Orders},
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

/// Sends an order of a node that joined with lowlat_join_strategy. The caller sets instrument, side, price and
/// quantity; number, scheduled_ns and received_ns are filled in. `cause` is the record that caused it, from
/// which tick-to-order latency is measured; NULL: none, so latency is measured from now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_send_order(
    node: *mut Node,
    cause: *const Record,
    order: *mut Order,
) -> Status {
    let send = |node: &Node| {
        // SAFETY: NULL or an order, as the caller guarantees.
        let order = unsafe { order.as_mut() }.ok_or_else(|| null("order"))?;
        // SAFETY: NULL or a valid record, as the caller guarantees.
        let cause = unsafe { cause.as_ref().map(|record| cause_of(record)) }
            .unwrap_or_else(|| OrderCause::at(now_ns()));
        let side = match order.side {
            LOWLAT_SIDE_BUY => Side::Buy,
            LOWLAT_SIDE_SELL => Side::Sell,
            found => {
                let text = format_args!("side {found}: expected LOWLAT_SIDE_BUY or LOWLAT_SIDE_SELL");
                return Err(fail(Status::Argument, &text));
            }
        };
        let no_strategy =
            || fail(Status::Argument, &"this node is not a strategy\nhint: join with lowlat_join_strategy");
        node.publish_with("lowlat_send_order", |publisher| {
            let mut strategy = node.strategy.borrow_mut();
            let StrategyState { number, numbers } = strategy.as_mut().ok_or_else(no_strategy)?;
            let mut failed = None;
            let mut sink = OrderStream::new(publisher, numbers, |error| failed = Some(error));
            let sent = Orders::new(&mut sink, *number, cause).send(
                order.instrument,
                side,
                order.price,
                order.quantity,
            );
            match (sent, failed) {
                (Ok(number), _) => {
                    let OrderCause { scheduled_ns, received_ns, .. } = cause;
                    *order = Order { number, scheduled_ns, received_ns, reserved: 0, ..*order };
                    Ok(())
                }
                (Err(_), Some(error)) => Err(of_publish(error)),
                (Err(error), None) => Err(fail(Status::Refused, &error)),
            }
        })
    };
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { with(node, send) }
}

/// # Safety
/// The record's payload is NULL or valid.
unsafe fn cause_of(record: &Record) -> OrderCause {
    let RecordStamp { generated_ns, kind, .. } = record.stamp;
    // SAFETY: guaranteed by the caller.
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
