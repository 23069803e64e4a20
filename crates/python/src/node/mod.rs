//! Nodes.

pub mod join;

use crate::{
    errors::{self, BusyError, JoinError},
    events::{Answer, Begin, Command, Lost, Names, Order, Quote, Record, Seen, cause_of},
};
use lowlat_ipc::stream::Stamp;
use lowlat_trade::{
    clock::now_ns,
    node::{self, Event, Join},
    records::Side,
    roles::{OrderStream, numbers_of},
    strategy::{Cause, Numbers, Orders},
};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::{
    collections::VecDeque,
    path::Path,
    sync::{Mutex, MutexGuard},
};

/// How long a wait goes on before it looks whether Ctrl-C was pressed.
const SLICE_NS: u64 = 100_000_000;

/// A node of the pipeline: an iterator of its events that ends with the master's word to end. Made by join and join_node.
#[pyclass(frozen, module = "lowlat")]
pub struct Node {
    name: String,
    number: u32,
    epoch: u64,
    inner: Mutex<Inner>,
}

struct Inner {
    /// None once it has left.
    node: Option<node::Node>,
    strategy: Option<(u32, Numbers)>,
    names: Names,
    events: VecDeque<Seen>,
    is_over: bool,
}

#[pymethods]
impl Node {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its number: the same over restarts of the same name.
    #[getter]
    fn number(&self) -> u32 {
        self.number
    }

    /// How many processes of this name there were, this one counted.
    #[getter]
    fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether it was told to end, or has left.
    #[getter]
    fn is_over(&self) -> PyResult<bool> {
        let inner = self.lock()?;
        Ok(inner.is_over || inner.node.is_none())
    }

    /// The events that are there. When there are none, it waits for some up to `timeout_s`; None waits without end. An empty
    /// list says that the time is over, or, with is_over, that the node is.
    #[pyo3(signature = (timeout_s = 0.0))]
    fn poll(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Vec<Py<PyAny>>> {
        let until_ns = timeout_s.map(until).transpose()?;
        let mut inner = self.lock()?;
        inner.fill(py, until_ns)?;
        inner.events.drain(..).map(|event| event.into_object(py)).collect()
    }

    /// Sends an order and gives back its number, by which answers name it. `cause` is the Quote or Answer that it is sent
    /// because of, whose instrument it has unless `instrument` says otherwise; None for none. `side` is "buy" or "sell",
    /// `price` is in 1/PRICE_SCALE.
    #[pyo3(signature = (cause, side, price, quantity, *, instrument = None))]
    fn order(
        &self,
        cause: Option<&Bound<'_, PyAny>>,
        side: &str,
        price: i64,
        quantity: u32,
        instrument: Option<u32>,
    ) -> PyResult<u64> {
        let side = match side {
            "buy" => Side::Buy,
            "sell" => Side::Sell,
            _ => return Err(PyValueError::new_err(format!("side {side:?}: expected \"buy\" or \"sell\""))),
        };
        let (cause, of_cause) = match cause {
            Some(event) => cause_of(event).map(|(cause, instrument)| (cause, Some(instrument)))?,
            None => (Cause::at(now_ns()), None),
        };
        let instrument = instrument.or(of_cause);
        let instrument = instrument
            .ok_or_else(|| PyValueError::new_err("an order without a cause needs an instrument"))?;
        let mut inner = self.lock()?;
        let Inner { node, strategy, .. } = &mut *inner;
        let node = node.as_mut().ok_or_else(left)?;
        let no_strategy = || PyValueError::new_err("this node is no strategy; join with lowlat.join");
        let (number, numbers) = strategy.as_mut().ok_or_else(no_strategy)?;
        let mut failed = None;
        let mut sink = OrderStream::new(node.publisher(), numbers, |error| failed = Some(error));
        let sent = Orders::new(&mut sink, *number, cause).send(instrument, side, price, quantity);
        sent.map_err(|error| failed.map_or_else(|| errors::value(&error), errors::of_publish))
    }

    /// Appends a record to the node's stream and gives back its number there. Readers are chosen by `instrument`. Before the
    /// event Begin not all readers may be there. `source` is the node's number unless given, `trigger_ns` now.
    #[pyo3(signature = (payload, *, kind, instrument = 0, schema = 0, source = None, trigger_ns = None, cause_sequence = 0))]
    #[expect(clippy::too_many_arguments, reason = "as it comes from Python")]
    fn publish(
        &self,
        payload: &[u8],
        kind: u16,
        instrument: u32,
        schema: u16,
        source: Option<u32>,
        trigger_ns: Option<u64>,
        cause_sequence: u64,
    ) -> PyResult<u64> {
        let mut inner = self.lock()?;
        let node = inner.node.as_mut().ok_or_else(left)?;
        let generated = now_ns();
        let stamp = Stamp {
            kind,
            schema,
            instrument,
            source: source.unwrap_or(self.number),
            generated,
            trigger: trigger_ns.unwrap_or(generated),
            cause: cause_sequence,
        };
        let published = node.publisher().publish(&stamp, payload).map_err(errors::of_publish)?;
        Ok(published.sequence)
    }

    /// Calls methods of `strategy` until the word to end, those that it has: on_begin(node), on_quote(node, quote),
    /// on_answer(node, answer), on_order(node, order), on_record(node, record), on_lost(node, lost), on_command(node, command).
    fn run(slf: &Bound<'_, Self>, strategy: &Bound<'_, PyAny>) -> PyResult<()> {
        let handlers =
            ["on_begin", "on_quote", "on_answer", "on_order", "on_record", "on_lost", "on_command"]
                .map(|name| strategy.getattr_opt(name));
        let [begin, quote, answer, order, record, lost, command] = handlers;
        let (begin, quote, answer) = (begin?, quote?, answer?);
        let (order, record, lost, command) = (order?, record?, lost?, command?);
        let py = slf.py();
        while let Some(event) = slf.get().__next__(py)? {
            let event = event.into_bound(py);
            if event.is_instance_of::<Begin>() {
                if let Some(begin) = &begin {
                    begin.call1((slf,))?;
                }
                continue;
            }
            let handler = match () {
                () if event.is_instance_of::<Quote>() => &quote,
                () if event.is_instance_of::<Answer>() => &answer,
                () if event.is_instance_of::<Order>() => &order,
                () if event.is_instance_of::<Lost>() => &lost,
                () if event.is_instance_of::<Command>() => &command,
                () => &record,
            };
            if let Some(handler) = handler {
                handler.call1((slf, event))?;
            }
        }
        Ok(())
    }

    /// Leaves the master. A node that is left does nothing any more.
    fn leave(&self) -> PyResult<()> {
        let mut inner = self.lock()?;
        inner.events.clear();
        inner.node = None;
        Ok(())
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let mut inner = self.lock()?;
        inner.fill(py, None)?;
        inner.events.pop_front().map(|event| event.into_object(py)).transpose()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        _kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.leave()
    }

    fn __repr__(&self) -> String {
        format!("Node(name='{}', number={}, epoch={})", self.name, self.number, self.epoch)
    }
}

fn left() -> PyErr {
    errors::LowlatError::new_err("this node has left its master; join again")
}

fn until(timeout_s: f64) -> PyResult<u64> {
    let timeout = std::time::Duration::try_from_secs_f64(timeout_s).map_err(|_| {
        PyValueError::new_err(format!("timeout_s {timeout_s}: expected seconds from 0, or None"))
    })?;
    Ok(now_ns().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)))
}

impl Node {
    fn join(py: Python<'_>, socket: &Path, join: &Join, strategy: Option<u32>) -> PyResult<Self> {
        let joined = py.detach(|| node::Node::join(socket, join));
        let node = joined.map_err(|error| JoinError::new_err(error.to_string()))?;
        let (name, number, epoch) = (node.name().to_owned(), node.number(), node.epoch());
        let strategy = strategy.map(|number| (number, numbers_of(&node, number)));
        let (names, events) = (Names::default(), VecDeque::new());
        let inner = Mutex::new(Inner { node: Some(node), strategy, names, events, is_over: false });
        Ok(Self { name, number, epoch, inner })
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Inner>> {
        let busy =
            |_| BusyError::new_err("another thread uses this node, or waits in it; let one thread have it");
        self.inner.try_lock().map_err(busy)
    }
}

impl Inner {
    /// Waits until there are events, the node is over, or the time is.
    fn fill(&mut self, py: Python<'_>, until_ns: Option<u64>) -> PyResult<()> {
        // Events of one poll are given out one by one, and the strategy may take its time with each.
        if let Some(node) = &mut self.node {
            node.show_life();
        }
        while let Some(node) = self.node.as_mut().filter(|_| self.events.is_empty()) {
            if self.is_over {
                return node.ended().map_or(Ok(()), |ended| Err(errors::of_ended(ended)));
            }
            let (names, events, is_over) = (&mut self.names, &mut self.events, &mut self.is_over);
            node.poll(&mut |_, event| match event {
                Event::Record { stream, record, payload } => {
                    let name = names.get(stream.as_str());
                    events.push_back(Seen::Record(Record::new(name, record, payload, Some(now_ns()))));
                }
                Event::Lost { stream, count } => {
                    events.push_back(Seen::Lost(Lost {
                        stream: names.get(stream.as_str()),
                        count,
                        why: None,
                    }));
                }
                Event::Begin => events.push_back(Seen::Begin),
                Event::Command(text) => events.push_back(Seen::Command(text.to_owned())),
                Event::Stop => *is_over = true,
            });
            if !events.is_empty() || *is_over {
                continue;
            }
            py.check_signals()?;
            let now_ns = now_ns();
            if until_ns.is_some_and(|until_ns| now_ns >= until_ns) {
                break;
            }
            let slice_ns = now_ns.saturating_add(SLICE_NS).min(until_ns.unwrap_or(u64::MAX));
            py.detach(|| node.wait(Some(slice_ns)));
        }
        Ok(())
    }
}
