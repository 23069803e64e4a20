//! Decodes payloads.

use crate::{
    error::{Status, fail, guard, null},
    records::{
        Answer, LOWLAT_KIND_ANSWER, LOWLAT_KIND_ORDER, LOWLAT_KIND_QUOTE, Order, Quote, Record, side_code,
    },
};
use lowlat_node::records::{self, PayloadError};

/// Decodes the quote in a record. Returns LOWLAT_STATUS_WRONG_RECORD if it is not a quote.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_quote_of(record: *const Record, quote: *mut Quote) -> Status {
    // SAFETY: the caller passes an unchanged record, and the address of a quote, or NULL.
    guard(|| unsafe { decode(record, quote, (LOWLAT_KIND_QUOTE, "a quote"), quote_in) }, || ())
}

/// Decodes the order in a record. Returns LOWLAT_STATUS_WRONG_RECORD if it is not an order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_order_of(record: *const Record, order: *mut Order) -> Status {
    // SAFETY: the caller passes an unchanged record, and the address of an order, or NULL.
    guard(|| unsafe { decode(record, order, (LOWLAT_KIND_ORDER, "an order"), order_in) }, || ())
}

/// Decodes the answer in a record. Returns LOWLAT_STATUS_WRONG_RECORD if it is not an answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_answer_of(record: *const Record, answer: *mut Answer) -> Status {
    // SAFETY: the caller passes an unchanged record, and the address of an answer, or NULL.
    guard(|| unsafe { decode(record, answer, (LOWLAT_KIND_ANSWER, "an answer"), answer_in) }, || ())
}

/// # Safety
/// Both pointers are NULL or valid, and so is the record's payload.
unsafe fn decode<T>(
    record: *const Record,
    into: *mut T,
    (kind, what): (u16, &str),
    read: impl FnOnce(&Record, &[u8]) -> Result<T, PayloadError>,
) -> Result<(), Status> {
    // SAFETY: NULL, or a record that is valid until the handler returns, as the caller guarantees.
    let record = unsafe { record.as_ref() }.ok_or_else(|| null("record"))?;
    let found = record.stamp.kind;
    if found != kind {
        let text = format_args!(
            "record {} has kind {found}, expected {kind} ({what})\nhint: check record->stamp.kind first",
            record.sequence
        );
        return Err(fail(Status::WrongRecord, &text));
    }
    // SAFETY: as above.
    let payload = unsafe { payload_of(record) };
    let value = read(record, payload).map_err(|error| fail(Status::WrongRecord, &error))?;
    if into.is_null() {
        return Err(null(what));
    }
    // SAFETY: not NULL, and the caller guarantees space for one of these; nothing is dropped, because it is
    // plain data.
    unsafe { into.write(value) };
    Ok(())
}

/// # Safety
/// The payload is NULL, or this many bytes can be read there.
pub unsafe fn payload_of(record: &Record) -> &[u8] {
    // SAFETY: guaranteed by the caller; they do not change while the record is valid.
    unsafe { bytes_at(record.payload, record.payload_bytes) }
}

/// # Safety
/// NULL, or this many bytes can be read there and do not change while the slice is used.
pub unsafe fn bytes_at<'a>(first: *const u8, count: usize) -> &'a [u8] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: not NULL; the caller guarantees the rest.
    unsafe { std::slice::from_raw_parts(first, count) }
}

fn quote_in(_: &Record, payload: &[u8]) -> Result<Quote, PayloadError> {
    let records::Quote { scheduled_ns, bid, ask, last, bid_size, ask_size, .. } =
        records::Quote::decode(payload)?;
    Ok(Quote { scheduled_ns, bid, ask, last, bid_size, ask_size })
}

fn order_in(record: &Record, payload: &[u8]) -> Result<Order, PayloadError> {
    let records::Order {
        number, scheduled_ns, received_ns, price, quantity, side, action, order_type, ..
    } = records::Order::decode(payload)?;
    Ok(Order {
        number,
        scheduled_ns,
        received_ns,
        price,
        quantity,
        side: side_code(side),
        instrument: record.stamp.instrument,
        r#type: order_type as u32,
        action: action as u32,
        reserved: 0,
    })
}

fn answer_in(_: &Record, payload: &[u8]) -> Result<Answer, PayloadError> {
    let records::Answer { order_number, outcome, received_ns, price, quantity, instrument, side } =
        records::Answer::decode(payload)?;
    let (outcome, side) = (u32::try_from(outcome.code()).unwrap_or(u32::MAX), side_code(side));
    Ok(Answer { order_number, received_ns, price, quantity, outcome, instrument, side })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        LOWLAT_ACTION_REPLACE, LOWLAT_OUTCOME_ACCEPTED, LOWLAT_OUTCOME_CANCELLED, LOWLAT_OUTCOME_FILLED,
        LOWLAT_OUTCOME_NOT_CHANGED, LOWLAT_OUTCOME_REJECTED, LOWLAT_OUTCOME_REPLACED, LOWLAT_SIDE_SELL,
        LOWLAT_TYPE_IMMEDIATE_OR_CANCEL, RecordStamp,
    };
    use lowlat_node::records::{OrderAction, OrderType, Outcome, Reject, Side};
    use std::ptr;

    fn record(kind: u16, payload: &[u8]) -> Record {
        let stamp = RecordStamp { kind, instrument: 4, ..RecordStamp::default() };
        let stream = c"md".as_ptr();
        Record {
            stream,
            payload: payload.as_ptr(),
            payload_bytes: payload.len(),
            sequence: 9,
            received_ns: 0,
            stamp,
        }
    }

    #[test]
    fn payloads_are_read_field_by_field() {
        let quote = records::Quote {
            scheduled_ns: 1,
            bid: 2,
            ask: 3,
            last: 4,
            bid_size: 5,
            ask_size: 6,
            origin: records::Origin::default(),
        };
        let payload = quote.encode();
        let mut read = Quote::default();
        // SAFETY: both are local.
        assert_eq!(unsafe { lowlat_quote_of(&record(LOWLAT_KIND_QUOTE, &payload), &mut read) }, Status::Ok);
        assert_eq!(read, Quote { scheduled_ns: 1, bid: 2, ask: 3, last: 4, bid_size: 5, ask_size: 6 });

        let order = records::Order {
            number: 1,
            scheduled_ns: 2,
            received_ns: 3,
            price: -4,
            quantity: 5,
            side: Side::Sell,
            action: OrderAction::Replace,
            order_type: OrderType::ImmediateOrCancel,
            origin: records::Origin::default(),
        };
        let payload = order.encode();
        let mut read = Order::default();
        // SAFETY: both are local.
        assert_eq!(unsafe { lowlat_order_of(&record(LOWLAT_KIND_ORDER, &payload), &mut read) }, Status::Ok);
        let expected = Order {
            number: 1,
            scheduled_ns: 2,
            received_ns: 3,
            price: -4,
            quantity: 5,
            side: LOWLAT_SIDE_SELL,
            instrument: 4,
            r#type: LOWLAT_TYPE_IMMEDIATE_OR_CANCEL,
            action: LOWLAT_ACTION_REPLACE,
            reserved: 0,
        };
        assert_eq!(read, expected);

        let outcome = Outcome::Rejected(Reject::OverLimit);
        let answer = records::Answer {
            order_number: 1,
            outcome,
            received_ns: 2,
            price: 3,
            quantity: 4,
            instrument: 5,
            side: Side::Buy,
        };
        let payload = answer.encode();
        let mut read = Answer::default();
        // SAFETY: both are local.
        assert_eq!(unsafe { lowlat_answer_of(&record(LOWLAT_KIND_ANSWER, &payload), &mut read) }, Status::Ok);
        let expected = Answer {
            order_number: 1,
            received_ns: 2,
            price: 3,
            quantity: 4,
            outcome: 19,
            instrument: 5,
            side: 0,
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn outcomes_have_the_codes_of_the_header() {
        for (outcome, code) in [
            (Outcome::Accepted, LOWLAT_OUTCOME_ACCEPTED),
            (Outcome::Filled, LOWLAT_OUTCOME_FILLED),
            (Outcome::Cancelled, LOWLAT_OUTCOME_CANCELLED),
            (Outcome::Replaced, LOWLAT_OUTCOME_REPLACED),
            (Outcome::Rejected(Reject::BadPrice), LOWLAT_OUTCOME_REJECTED),
            (Outcome::Rejected(Reject::TooFast), 24),
            (Outcome::NotChanged(Reject::BadPrice), LOWLAT_OUTCOME_NOT_CHANGED),
            (Outcome::NotChanged(Reject::UnknownOrder), 38),
        ] {
            assert_eq!(outcome.code(), u64::from(code));
        }
    }

    #[test]
    fn wrong_records_are_refused_and_nothing_is_written() {
        let mut quote = Quote { bid: 7, ..Quote::default() };
        let payload = records::Quote::default().encode();
        let at = &raw mut quote;
        for (record, status) in [
            (record(LOWLAT_KIND_ORDER, &payload), Status::WrongRecord),
            (record(LOWLAT_KIND_QUOTE, &payload[..63]), Status::WrongRecord),
            (Record { payload: ptr::null(), ..record(LOWLAT_KIND_QUOTE, &payload) }, Status::WrongRecord),
        ] {
            // SAFETY: both are local.
            assert_eq!(unsafe { lowlat_quote_of(&raw const record, at) }, status);
        }
        // SAFETY: NULL is allowed.
        unsafe {
            assert_eq!(lowlat_quote_of(ptr::null(), at), Status::Argument);
            assert_eq!(
                lowlat_quote_of(&record(LOWLAT_KIND_QUOTE, &payload), ptr::null_mut()),
                Status::Argument
            );
        }
        assert_eq!(quote.bid, 7);
    }
}
