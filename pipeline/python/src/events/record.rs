//! Records.

use lowlat_ipc::stream::{self, Stamp};
use lowlat_node::{
    records::{self, Reject, kind},
    strategy::OrderCause,
};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyBytes};
use std::{borrow::Cow, sync::Arc};

/// A record of a stream: its header fields and payload.
#[pyclass(frozen, eq, hash, subclass, module = "lowlat")]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Record {
    stream: Arc<str>,
    /// Its sequence number in the stream.
    #[pyo3(get)]
    sequence: u64,
    /// Kind of the payload: 1 a quote, 2 an order, 3 an answer, or a custom kind.
    #[pyo3(get)]
    kind: u16,
    /// Version of the payload's format.
    #[pyo3(get)]
    schema: u16,
    /// The instrument, which selects the readers.
    #[pyo3(get)]
    instrument: u32,
    /// Source: the strategy's number for an order, else the node's.
    #[pyo3(get)]
    source: u32,
    /// When it was written, ns.
    #[pyo3(get)]
    generated_ns: u64,
    /// When the record that caused it was written, ns.
    #[pyo3(get)]
    trigger_ns: u64,
    /// Sequence of the record that caused it; 0 without a cause.
    #[pyo3(get)]
    cause_sequence: u64,
    /// When this process had read it, ns; None in a recording.
    #[pyo3(get)]
    received_ns: Option<u64>,
    payload: Vec<u8>,
}

impl Record {
    pub fn new(stream: Arc<str>, record: &stream::Record, payload: &[u8], received_ns: Option<u64>) -> Self {
        let Stamp { kind, schema, instrument, source, generated, trigger, cause } = record.stamp;
        Self {
            stream,
            sequence: record.sequence,
            kind,
            schema,
            instrument,
            source,
            generated_ns: generated,
            trigger_ns: trigger,
            cause_sequence: cause,
            received_ns,
            payload: payload.to_vec(),
        }
    }

    /// A payload that does not match its kind stays bytes: other streams have custom kinds.
    pub fn into_object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (kind, payload) = (self.kind, &self.payload);
        let quote = if kind == kind::QUOTE { records::Quote::decode(payload).ok() } else { None };
        let order = if kind == kind::ORDER { records::Order::decode(payload).ok() } else { None };
        let answer = if kind == kind::ANSWER { records::Answer::decode(payload).ok() } else { None };
        let record = PyClassInitializer::from(self);
        Ok(match (quote, order, answer) {
            (Some(quote), ..) => Py::new(py, record.add_subclass(Quote::from(quote)))?.into_any(),
            (_, Some(order), _) => Py::new(py, record.add_subclass(Order::from(order)))?.into_any(),
            (.., Some(answer)) => Py::new(py, record.add_subclass(Answer::from(answer)))?.into_any(),
            _ => Py::new(py, record)?.into_any(),
        })
    }

    fn cause(&self) -> OrderCause {
        let generated_ns = self.generated_ns;
        OrderCause {
            generated_ns,
            scheduled_ns: generated_ns,
            received_ns: self.received_ns.unwrap_or(generated_ns),
            sequence: self.sequence,
            origin: records::Origin::default(),
        }
    }
}

/// A record's fields in the order of its declaration.
type Fields<'a> = (&'a str, u64, u16, u16, u32, u32, u64, u64, u64, Option<u64>, Cow<'a, [u8]>);

/// The record with these fields, for copies and pickles.
#[pyfunction]
#[pyo3(name = "_record")]
#[expect(clippy::too_many_arguments, reason = "as it comes from Python")]
pub fn _record(
    py: Python<'_>,
    stream: &str,
    sequence: u64,
    kind: u16,
    schema: u16,
    instrument: u32,
    source: u32,
    generated_ns: u64,
    trigger_ns: u64,
    cause_sequence: u64,
    received_ns: Option<u64>,
    payload: Vec<u8>,
) -> PyResult<Py<PyAny>> {
    let stream = stream.into();
    let record = Record {
        stream,
        sequence,
        kind,
        schema,
        instrument,
        source,
        generated_ns,
        trigger_ns,
        cause_sequence,
        received_ns,
        payload,
    };
    record.into_object(py)
}

/// The cause of an order, and its instrument.
pub fn cause_of(event: &Bound<'_, PyAny>) -> PyResult<(OrderCause, u32)> {
    let Ok(record) = event.cast::<Record>() else {
        let found = event.get_type().name()?;
        let text = format!("cause is a {found}, expected the Quote or Answer that caused the order, or None");
        return Err(PyTypeError::new_err(text));
    };
    let (cause, instrument) = (record.get().cause(), record.get().instrument);
    if let Ok(quote) = event.cast::<Quote>() {
        let Quote { scheduled_ns, origin, .. } = *quote.get();
        return Ok((OrderCause { scheduled_ns, origin, ..cause }, instrument));
    }
    let answer = event.cast::<Answer>();
    Ok((cause, answer.map_or(instrument, |answer| answer.get().instrument)))
}

#[pymethods]
impl Record {
    /// The stream.
    #[getter]
    fn stream(&self) -> &str {
        &self.stream
    }
    /// Its payload.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.payload)
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Fields<'_>)> {
        let fields = (
            &*self.stream,
            self.sequence,
            self.kind,
            self.schema,
            self.instrument,
            self.source,
            self.generated_ns,
            self.trigger_ns,
            self.cause_sequence,
            self.received_ns,
            Cow::Borrowed(&*self.payload),
        );
        Ok((py.import("lowlat")?.getattr("_record")?, fields))
    }
    fn __repr__(&self) -> String {
        let Self { stream, sequence, kind, payload, .. } = self;
        let bytes = payload.len();
        format!("Record(stream='{stream}', sequence={sequence}, kind={kind}, payload of {bytes} bytes)")
    }
}

/// Best bid and offer of an instrument. Prices in 1/PRICE_SCALE.
#[pyclass(frozen, extends = Record, module = "lowlat")]
pub struct Quote {
    /// When it was due in its schedule, ns.
    #[pyo3(get)]
    scheduled_ns: u64,
    /// Best bid; 0: none.
    #[pyo3(get)]
    bid: i64,
    /// Best offer; 0: none.
    #[pyo3(get)]
    ask: i64,
    /// Last trade.
    #[pyo3(get)]
    last: i64,
    /// Size at the bid.
    #[pyo3(get)]
    bid_size: u32,
    /// Size at the offer.
    #[pyo3(get)]
    ask_size: u32,
    origin: records::Origin,
}

impl From<records::Quote> for Quote {
    fn from(quote: records::Quote) -> Self {
        let records::Quote { scheduled_ns, bid, ask, last, bid_size, ask_size, origin } = quote;
        Self { scheduled_ns, bid, ask, last, bid_size, ask_size, origin }
    }
}

#[pymethods]
impl Quote {
    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let Self { bid, ask, .. } = slf.get();
        let Record { sequence, instrument, .. } = slf.as_super().get();
        format!("Quote(instrument={instrument}, bid={bid}, ask={ask}, sequence={sequence})")
    }
}

/// A request of a strategy: a new order, or a change of one. Its source is the strategy's number.
#[pyclass(frozen, extends = Record, module = "lowlat")]
pub struct Order {
    /// The strategy's number of the order. A change has its order's.
    #[pyo3(get)]
    number: u64,
    /// "new", "cancel" or "replace".
    #[pyo3(get)]
    action: &'static str,
    /// "limit", "market" or "ioc"; without effect in a change.
    #[pyo3(get)]
    r#type: &'static str,
    /// When the quote that caused it was due, ns.
    #[pyo3(get)]
    scheduled_ns: u64,
    /// When the strategy had read that quote, ns.
    #[pyo3(get)]
    quote_received_ns: u64,
    /// Limit price in 1/PRICE_SCALE; without effect in a cancel.
    #[pyo3(get)]
    price: i64,
    /// The whole quantity, with what is filled; without effect in a cancel.
    #[pyo3(get)]
    quantity: u32,
    /// "buy" or "sell"; without effect in a change.
    #[pyo3(get)]
    side: &'static str,
}

impl From<records::Order> for Order {
    fn from(order: records::Order) -> Self {
        let records::Order {
            number,
            scheduled_ns,
            received_ns,
            price,
            quantity,
            side,
            action,
            order_type,
            ..
        } = order;
        let (action, r#type, side) = (action.word(), order_type.word(), side.word());
        Self { number, action, r#type, scheduled_ns, quote_received_ns: received_ns, price, quantity, side }
    }
}

#[pymethods]
impl Order {
    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let Self { number, action, r#type, price, quantity, side, .. } = slf.get();
        let instrument = slf.as_super().get().instrument;
        format!(
            "Order(number={number}, action='{action}', type='{type}', instrument={instrument}, side='{side}', price={price}, quantity={quantity})"
        )
    }
}

/// td's answer to a request. Each order gets exactly one that is accepted or rejected, each change one that is
/// cancelled, replaced or not changed. Fills follow, and cancelled for what a market or ioc order leaves.
#[pyclass(frozen, extends = Record, module = "lowlat")]
pub struct Answer {
    /// The order's number.
    #[pyo3(get)]
    order_number: u64,
    /// "accepted", "rejected", "filled", "cancelled", "replaced" or "not changed".
    #[pyo3(get)]
    outcome: &'static str,
    /// Why it was rejected or not changed; else None.
    #[pyo3(get)]
    reason: Option<&'static str>,
    /// When td had read the order, ns.
    #[pyo3(get)]
    order_received_ns: u64,
    /// Price of the fill; in other answers that of the order.
    #[pyo3(get)]
    price: i64,
    /// Quantity of the fill, or what was cancelled; in other answers that of the order.
    #[pyo3(get)]
    quantity: u32,
    /// The order's instrument.
    #[pyo3(get)]
    instrument: u32,
    /// The order's side; without meaning if nothing was changed.
    #[pyo3(get)]
    side: &'static str,
}

impl From<records::Answer> for Answer {
    fn from(answer: records::Answer) -> Self {
        let records::Answer { order_number, outcome, received_ns, price, quantity, instrument, side } =
            answer;
        let (order_received_ns, side) = (received_ns, side.word());
        let (outcome, reason) = (outcome.word(), outcome.reason().map(Reject::words));
        Self { order_number, outcome, reason, order_received_ns, price, quantity, instrument, side }
    }
}

#[pymethods]
impl Answer {
    /// Number of the strategy that it is for.
    #[getter]
    fn strategy(slf: &Bound<'_, Self>) -> u32 {
        slf.as_super().get().instrument
    }
    fn __repr__(&self) -> String {
        let Self { order_number, outcome, price, quantity, .. } = self;
        format!(
            "Answer(order_number={order_number}, outcome='{outcome}', price={price}, quantity={quantity})"
        )
    }
}
