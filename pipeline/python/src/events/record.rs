//! Records.

use lowlat_ipc::stream::{self, Stamp};
use lowlat_trade::{
    records::{self, Outcome, Reject, Side, kind},
    strategy::OrderCause,
};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyBytes};
use std::sync::Arc;

/// A record of a stream: its header fields and payload.
#[pyclass(frozen, subclass, module = "lowlat")]
#[derive(Debug)]
pub struct Record {
    stream: Arc<str>,
    sequence: u64,
    stamp: Stamp,
    received_ns: Option<u64>,
    payload: Vec<u8>,
}

impl Record {
    pub fn new(stream: Arc<str>, record: &stream::Record, payload: &[u8], received_ns: Option<u64>) -> Self {
        let (sequence, stamp) = (record.sequence, record.stamp);
        Self { stream, sequence, stamp, received_ns, payload: payload.to_vec() }
    }

    /// A payload that does not match its kind stays bytes: other streams have custom kinds.
    pub fn into_object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (kind, payload) = (self.stamp.kind, &self.payload);
        let quote = if kind == kind::QUOTE { records::Quote::decode(payload).ok() } else { None };
        let order = if kind == kind::ORDER { records::Order::decode(payload).ok() } else { None };
        let answer = if kind == kind::ANSWER { records::Answer::decode(payload).ok() } else { None };
        let record = PyClassInitializer::from(self);
        Ok(match (quote, order, answer) {
            (Some(quote), ..) => Py::new(py, record.add_subclass(Quote { quote }))?.into_any(),
            (_, Some(order), _) => Py::new(py, record.add_subclass(Order { order }))?.into_any(),
            (.., Some(answer)) => Py::new(py, record.add_subclass(Answer { answer }))?.into_any(),
            _ => Py::new(py, record)?.into_any(),
        })
    }

    fn cause(&self) -> OrderCause {
        let generated_ns = self.stamp.generated;
        OrderCause {
            generated_ns,
            scheduled_ns: generated_ns,
            received_ns: self.received_ns.unwrap_or(generated_ns),
            sequence: self.sequence,
            origin: records::Origin::default(),
        }
    }
}

/// The cause of an order, and its instrument.
pub fn cause_of(event: &Bound<'_, PyAny>) -> PyResult<(OrderCause, u32)> {
    let Ok(record) = event.cast::<Record>() else {
        let found = event.get_type().name()?;
        let text = format!("cause is a {found}, expected the Quote or Answer that caused the order, or None");
        return Err(PyTypeError::new_err(text));
    };
    let (cause, instrument) = (record.get().cause(), record.get().stamp.instrument);
    if let Ok(quote) = event.cast::<Quote>() {
        let records::Quote { scheduled_ns, origin, .. } = quote.get().quote;
        return Ok((OrderCause { scheduled_ns, origin, ..cause }, instrument));
    }
    let answer = event.cast::<Answer>();
    Ok((cause, answer.map_or(instrument, |answer| answer.get().answer.instrument)))
}

#[pymethods]
impl Record {
    /// The stream.
    #[getter]
    fn stream(&self) -> &str {
        &self.stream
    }
    /// Its sequence number in the stream.
    #[getter]
    fn sequence(&self) -> u64 {
        self.sequence
    }
    /// Kind of the payload: 1 a quote, 2 an order, 3 an answer, or a custom kind.
    #[getter]
    fn kind(&self) -> u16 {
        self.stamp.kind
    }
    /// Version of the payload's format.
    #[getter]
    fn schema(&self) -> u16 {
        self.stamp.schema
    }
    /// The instrument, which selects the readers.
    #[getter]
    fn instrument(&self) -> u32 {
        self.stamp.instrument
    }
    /// Source: the strategy's number for an order, else the node's.
    #[getter]
    fn source(&self) -> u32 {
        self.stamp.source
    }
    /// When it was written, ns.
    #[getter]
    fn generated_ns(&self) -> u64 {
        self.stamp.generated
    }
    /// When the record that caused it was written, ns.
    #[getter]
    fn trigger_ns(&self) -> u64 {
        self.stamp.trigger
    }
    /// Sequence of the record that caused it; 0 without a cause.
    #[getter]
    fn cause_sequence(&self) -> u64 {
        self.stamp.cause
    }
    /// When this process had read it, ns; None in a recording.
    #[getter]
    fn received_ns(&self) -> Option<u64> {
        self.received_ns
    }
    /// Its payload.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.payload)
    }
    fn __repr__(&self) -> String {
        let Self { stream, sequence, stamp, payload, .. } = self;
        let (kind, bytes) = (stamp.kind, payload.len());
        format!("Record(stream='{stream}', sequence={sequence}, kind={kind}, payload of {bytes} bytes)")
    }
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Buy => "buy",
        Side::Sell => "sell",
    }
}

/// Best bid and offer of an instrument. Prices in 1/PRICE_SCALE.
#[pyclass(frozen, extends = Record, module = "lowlat")]
pub struct Quote {
    quote: records::Quote,
}

#[pymethods]
impl Quote {
    /// When it was due in its schedule, ns.
    #[getter]
    fn scheduled_ns(&self) -> u64 {
        self.quote.scheduled_ns
    }
    /// Best bid; 0: none.
    #[getter]
    fn bid(&self) -> i64 {
        self.quote.bid
    }
    /// Best offer; 0: none.
    #[getter]
    fn ask(&self) -> i64 {
        self.quote.ask
    }
    /// Last trade.
    #[getter]
    fn last(&self) -> i64 {
        self.quote.last
    }
    /// Size at the bid.
    #[getter]
    fn bid_size(&self) -> u32 {
        self.quote.bid_size
    }
    /// Size at the offer.
    #[getter]
    fn ask_size(&self) -> u32 {
        self.quote.ask_size
    }
    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let records::Quote { bid, ask, .. } = slf.get().quote;
        let Record { sequence, stamp: Stamp { instrument, .. }, .. } = slf.as_super().get();
        format!("Quote(instrument={instrument}, bid={bid}, ask={ask}, sequence={sequence})")
    }
}

/// An order of a strategy. Its source is the strategy's number.
#[pyclass(frozen, extends = Record, module = "lowlat")]
pub struct Order {
    order: records::Order,
}

#[pymethods]
impl Order {
    /// The strategy's number of it.
    #[getter]
    fn number(&self) -> u64 {
        self.order.number
    }
    /// When the quote that caused it was due, ns.
    #[getter]
    fn scheduled_ns(&self) -> u64 {
        self.order.scheduled_ns
    }
    /// When the strategy had read that quote, ns.
    #[getter]
    fn quote_received_ns(&self) -> u64 {
        self.order.received_ns
    }
    /// Limit price in 1/PRICE_SCALE.
    #[getter]
    fn price(&self) -> i64 {
        self.order.price
    }
    /// Quantity.
    #[getter]
    fn quantity(&self) -> u32 {
        self.order.quantity
    }
    /// "buy" or "sell".
    #[getter]
    fn side(&self) -> &'static str {
        side_name(self.order.side)
    }
    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let (records::Order { number, price, quantity, .. }, side) = (slf.get().order, slf.get().side());
        let instrument = slf.as_super().get().stamp.instrument;
        format!(
            "Order(number={number}, instrument={instrument}, side='{side}', price={price}, quantity={quantity})"
        )
    }
}

/// td's answer to an order. Each order gets exactly one that is accepted or rejected; fills follow.
#[pyclass(frozen, extends = Record, module = "lowlat")]
pub struct Answer {
    answer: records::Answer,
}

#[pymethods]
impl Answer {
    /// The order's number.
    #[getter]
    fn order_number(&self) -> u64 {
        self.answer.order_number
    }
    /// "accepted", "rejected" or "filled".
    #[getter]
    fn outcome(&self) -> &'static str {
        match self.answer.outcome {
            Outcome::Accepted => "accepted",
            Outcome::Filled => "filled",
            Outcome::Rejected(_) => "rejected",
        }
    }
    /// Why it was rejected; else None.
    #[getter]
    fn reason(&self) -> Option<&'static str> {
        let Outcome::Rejected(reason) = self.answer.outcome else { return None };
        Some(match reason {
            Reject::BadPrice => "bad price",
            Reject::UnknownInstrument => "unknown instrument",
            Reject::BadQuantity => "bad quantity",
            Reject::OverLimit => "over limit",
            Reject::DuplicateNumber => "duplicate number",
            Reject::NoExchange => "no exchange",
        })
    }
    /// When td had read the order, ns.
    #[getter]
    fn order_received_ns(&self) -> u64 {
        self.answer.received_ns
    }
    /// Price of the fill; in other answers that of the order.
    #[getter]
    fn price(&self) -> i64 {
        self.answer.price
    }
    /// Quantity of the fill; in other answers that of the order.
    #[getter]
    fn quantity(&self) -> u32 {
        self.answer.quantity
    }
    /// The order's instrument.
    #[getter]
    fn instrument(&self) -> u32 {
        self.answer.instrument
    }
    /// The order's side.
    #[getter]
    fn side(&self) -> &'static str {
        side_name(self.answer.side)
    }
    /// Number of the strategy that it is for.
    #[getter]
    fn strategy(slf: &Bound<'_, Self>) -> u32 {
        slf.as_super().get().stamp.instrument
    }
    fn __repr__(&self) -> String {
        let records::Answer { order_number, price, quantity, .. } = self.answer;
        let outcome = self.outcome();
        format!(
            "Answer(order_number={order_number}, outcome='{outcome}', price={price}, quantity={quantity})"
        )
    }
}
