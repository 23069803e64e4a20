//! Nodes.

pub mod join;

use crate::{
    arguments::{self, bytes, whole, whole_or_none},
    errors::{self, BusyError, JoinError},
    events::{Answer, Begin, Command, Lost, Names, Order, PendingEvent, Quote, Record, Timer, cause_of},
    exit,
    ledger::OpenOrder,
};
use lowlat_ipc::{fork::ForkMark, stream::Stamp};
use lowlat_node::{
    Event, Join, Memory, NodeEnded,
    clock::now_ns,
    ledger::{Ledger, LedgerBusy},
    records::OrderType,
    strategy::{Numbers, OrderCause, OrderStream, Orders, SendError, numbers_of},
};
use pyo3::{
    exceptions::PyValueError,
    ffi::c_str,
    prelude::*,
    types::{IntoPyDict as _, PyDict},
};
use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    os::fd::AsRawFd as _,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Longest time between two checks of a wait for Ctrl-C, and for `leave` in another thread.
const SLICE: Duration = Duration::from_millis(100);

/// A node of the pipeline: an iterator of its events that ends when the master stops the node, or when a thread
/// calls leave. Created by join and join_node. It belongs to the process that joined.
#[pyclass(frozen, module = "lowlat")]
pub struct Node {
    /// Its name.
    #[pyo3(get)]
    name: String,
    /// Its number: the same after a restart under the same name.
    #[pyo3(get)]
    number: u32,
    /// Number of its strategy, which identifies its orders and answers. None for a node of join_node.
    #[pyo3(get)]
    strategy: Option<u32>,
    /// Number of processes under this name, including this one.
    #[pyo3(get)]
    epoch: u64,
    mark: Arc<ForkMark>,
    /// A thread has called `leave`.
    is_leaving: AtomicBool,
    /// Never locked while Python code runs: a signal handler may use the node.
    inner: Mutex<NodeState>,
}

struct NodeState {
    /// `None` once it has left.
    node: Option<lowlat_node::Node>,
    strategy: Option<(u32, Numbers)>,
    names: Names,
    events: VecDeque<PendingEvent>,
    is_over: bool,
}

#[pymethods]
impl Node {
    /// Whether the master has stopped it, or it has left.
    #[getter]
    fn is_over(&self) -> PyResult<bool> {
        if self.is_leaving() {
            return Ok(true);
        }
        let inner = self.lock()?;
        Ok(inner.is_over || inner.node.is_none())
    }

    /// Returns the available events, or waits for some up to `timeout_s`; None waits without limit. An empty
    /// list means a timeout or, with is_over, the end of the node.
    #[pyo3(signature = (timeout_s = 0.0))]
    fn poll(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Vec<Py<PyAny>>> {
        let until_ns = timeout_s.map(until).transpose()?;
        let events = self.fill(py, until_ns, mem::take)?;
        events.into_iter().map(|event| event.into_object(py)).collect()
    }

    /// Sends an order and returns its number, which answers refer to. `cause` is the Quote or Answer that
    /// caused it, whose instrument is used unless `instrument` is given; None for no cause. `side` is "buy" or
    /// "sell", `price` is in 1/PRICE_SCALE. `type` is "limit", "market" (at any price) or "ioc" (immediate or
    /// cancel); only a limit order rests. Raises PublishError, Fenced, ValueError, TypeError.
    #[pyo3(signature = (cause, side, price, quantity, *, instrument = None, r#type = None), text_signature = "($self, cause, side, price, quantity, *, instrument=None, type='limit')")]
    fn order(
        &self,
        cause: Option<&Bound<'_, PyAny>>,
        side: &str,
        price: &Bound<'_, PyAny>,
        quantity: &Bound<'_, PyAny>,
        instrument: Option<&Bound<'_, PyAny>>,
        r#type: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let (price, quantity) = (whole(price, "price")?, whole(quantity, "quantity")?);
        let instrument = whole_or_none(instrument, "instrument")?;
        let side = arguments::side(side)?;
        let order_type = r#type.map_or(Ok(OrderType::Limit), arguments::order_type)?;
        let (cause, of_cause) = cause_or_now(cause)?;
        let instrument = instrument.or(of_cause);
        let instrument = instrument
            .ok_or_else(|| PyValueError::new_err("an order without a cause needs an instrument"))?;
        self.request(cause, |orders| orders.send_as(order_type, instrument, side, price, quantity))
    }

    /// Asks to cancel what is left of an order. The answer is "cancelled" or "not changed". `cause` is the Quote or
    /// Answer that caused it. Raises PublishError, Fenced, ValueError, TypeError.
    #[pyo3(signature = (instrument, number, *, cause = None))]
    fn cancel(
        &self,
        instrument: &Bound<'_, PyAny>,
        number: &Bound<'_, PyAny>,
        cause: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (instrument, number) = (whole(instrument, "instrument")?, whole(number, "number")?);
        let (cause, _) = cause_or_now(cause)?;
        self.request(cause, |orders| orders.cancel(instrument, number))
    }

    /// Asks to change the price and the quantity of an order; `quantity` is the whole one, with what is filled. The
    /// answer is "replaced" or "not changed". The order keeps its place in the queue if the price stays and the
    /// quantity does not grow. `cause` as in cancel. Raises PublishError, Fenced, ValueError, TypeError.
    #[pyo3(signature = (instrument, number, price, quantity, *, cause = None))]
    fn replace(
        &self,
        instrument: &Bound<'_, PyAny>,
        number: &Bound<'_, PyAny>,
        price: &Bound<'_, PyAny>,
        quantity: &Bound<'_, PyAny>,
        cause: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (instrument, number) = (whole(instrument, "instrument")?, whole(number, "number")?);
        let (price, quantity) = (whole(price, "price")?, whole(quantity, "quantity")?);
        let (cause, _) = cause_or_now(cause)?;
        self.request(cause, |orders| orders.replace(instrument, number, price, quantity))
    }

    /// Returns the strategy's open orders, by number, from td's ledger: also those that a previous process has sent.
    /// Raises LowlatError if the run has no ledger, BusyError, ValueError.
    fn open_orders(&self, py: Python<'_>) -> PyResult<Vec<OpenOrder>> {
        let orders = self.read_ledger(py, Ledger::open_orders)?;
        Ok(orders.into_iter().map(OpenOrder::from).collect())
    }

    /// Returns the strategy's positions that are not 0, by instrument, from td's ledger; a sold one is negative.
    /// Raises what open_orders raises.
    fn positions(&self, py: Python<'_>) -> PyResult<BTreeMap<u32, i64>> {
        Ok(self.read_ledger(py, Ledger::positions)?.into_iter().collect())
    }

    /// Appends a record to the node's stream and returns its sequence number. `instrument` selects the readers.
    /// Before the event Begin some readers may be missing. `source` defaults to the node's number, `trigger_ns`
    /// to now.
    #[pyo3(signature = (payload, *, kind, instrument = None, schema = None, source = None, trigger_ns = None, cause_sequence = None), text_signature = "($self, payload, *, kind, instrument=0, schema=0, source=None, trigger_ns=None, cause_sequence=0)")]
    #[expect(clippy::too_many_arguments, reason = "as it comes from Python")]
    fn publish(
        &self,
        payload: &Bound<'_, PyAny>,
        kind: &Bound<'_, PyAny>,
        instrument: Option<&Bound<'_, PyAny>>,
        schema: Option<&Bound<'_, PyAny>>,
        source: Option<&Bound<'_, PyAny>>,
        trigger_ns: Option<&Bound<'_, PyAny>>,
        cause_sequence: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let payload = bytes(payload, "payload")?;
        let mut stamp = Stamp {
            kind: whole(kind, "kind")?,
            schema: whole_or_none(schema, "schema")?.unwrap_or(0),
            instrument: whole_or_none(instrument, "instrument")?.unwrap_or(0),
            source: whole_or_none(source, "source")?.unwrap_or(self.number),
            cause: whole_or_none(cause_sequence, "cause_sequence")?.unwrap_or(0),
            ..Stamp::default()
        };
        let trigger = whole_or_none(trigger_ns, "trigger_ns")?;
        let mut inner = self.lock()?;
        let node = inner.node.as_mut().filter(|_| !self.is_leaving()).ok_or_else(left)?;
        stamp.generated = now_ns();
        stamp.trigger = trigger.unwrap_or(stamp.generated);
        let published = node.publisher().publish(&stamp, &payload).map_err(errors::of_publish)?;
        Ok(published.sequence)
    }

    /// From this time of the pipeline's clock on, a poll or the iteration returns a Timer, once. Replaces the time set
    /// before; None sets none.
    fn set_timer(&self, at_ns: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let at_ns = whole_or_none(at_ns, "at_ns")?.unwrap_or(u64::MAX);
        let mut inner = self.lock()?;
        let node = inner.node.as_mut().filter(|_| !self.is_leaving()).ok_or_else(left)?;
        node.set_timer(at_ns);
        Ok(())
    }

    /// A descriptor that is readable while a poll may find something, for selectors and event loops. Each time it is
    /// readable, call poll; it is readable now and then without an event, too. It is valid until the node leaves.
    fn fileno(&self) -> PyResult<i32> {
        let mut inner = self.lock()?;
        let node = inner.node.as_mut().filter(|_| !self.is_leaving()).ok_or_else(left)?;
        let opened = node.descriptor().map_err(|error| errors::LowlatError::new_err(error.to_string()))?;
        Ok(opened.as_raw_fd())
    }

    /// Leaves the master. Any thread may call it, even while another waits in the node: that wait ends within
    /// 100 ms, and so does its iteration. Does nothing in a forked process.
    fn leave(&self, py: Python<'_>) {
        if !self.mark.is_this_process() {
            return;
        }
        // Pairs with the load in `is_leaving`. Relaxed: shared state is behind the lock.
        self.is_leaving.store(true, Ordering::Relaxed);
        exit::detached(py, || {
            // Held for a slice at most, and by a thread that may then need the interpreter's lock. After a
            // panic of another thread the node can still be dropped.
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.events.clear();
            inner.node = None;
        });
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let event = self.fill(py, None, VecDeque::pop_front)?;
        event.map(|event| event.into_object(py)).transpose()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) {
        self.leave(py);
    }

    fn __repr__(&self) -> String {
        format!("Node(name='{}', number={}, epoch={})", self.name, self.number, self.epoch)
    }
}

/// Adds the class, with its methods in Python: at the interpreter's end, a thread in Python code that this module has
/// called would be unwound through this module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let class = py.get_type::<Node>();
    let kinds = [
        (py.get_type::<Quote>(), "on_quote"),
        (py.get_type::<Answer>(), "on_answer"),
        (py.get_type::<Order>(), "on_order"),
        (py.get_type::<Lost>(), "on_lost"),
        (py.get_type::<Command>(), "on_command"),
        (py.get_type::<Timer>(), "on_timer"),
    ];
    let names = PyDict::new(py);
    names.set_item("Begin", py.get_type::<Begin>())?;
    names.set_item("KINDS", kinds.into_py_dict(py)?)?;
    py.run(c_str!(include_str!("run.py")), Some(&names), None)?;
    for name in ["run", "__aiter__"] {
        class.setattr(name, names.get_item(name)?)?;
    }
    module.add_class::<Node>()
}

fn left() -> PyErr {
    errors::LowlatError::new_err("cannot use the node: it has left its master\nhint: join again")
}

fn no_strategy() -> PyErr {
    PyValueError::new_err("this node is not a strategy\nhint: join with lowlat.join")
}

/// The cause of a request, and the cause's instrument.
fn cause_or_now(cause: Option<&Bound<'_, PyAny>>) -> PyResult<(OrderCause, Option<u32>)> {
    let Some(event) = cause else { return Ok((OrderCause::at(now_ns()), None)) };
    cause_of(event).map(|(cause, instrument)| (cause, Some(instrument)))
}

fn until(timeout_s: f64) -> PyResult<u64> {
    let timeout = Duration::try_from_secs_f64(timeout_s).map_err(|_| {
        PyValueError::new_err(format!("timeout_s {timeout_s}: expected 0 or more seconds, or None"))
    })?;
    Ok(now_ns().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)))
}

impl Node {
    fn join(py: Python<'_>, socket: &Path, join: &Join) -> PyResult<Self> {
        let joined = exit::detached(py, || lowlat_node::Node::join(socket, join));
        let node = joined.map_err(|error| JoinError::new_err(error.to_string()))?;
        let (name, number, epoch) = (node.name().to_owned(), node.number(), node.epoch());
        let mark = Arc::clone(node.mark());
        let strategy_number = node.strategies().first().copied();
        let strategy = strategy_number.map(|number| (number, numbers_of(&node, number)));
        let (names, events) = (Names::default(), VecDeque::new());
        let inner = Mutex::new(NodeState { node: Some(node), strategy, names, events, is_over: false });
        let is_leaving = AtomicBool::new(false);
        Ok(Self { name, number, strategy: strategy_number, epoch, mark, is_leaving, inner })
    }

    fn is_leaving(&self) -> bool {
        // Pairs with the store in `leave`.
        self.is_leaving.load(Ordering::Relaxed)
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, NodeState>> {
        if !self.mark.is_this_process() {
            // The lock may be held by a thread that does not exist in this process.
            return Err(errors::of_ended(&NodeEnded::Forked { pid: self.mark.pid() }));
        }
        let busy = |_| {
            BusyError::new_err(
                "cannot use the node: another thread uses it or waits in it\nhint: use a node in one thread",
            )
        };
        self.inner.try_lock().map_err(busy)
    }

    /// Sends a request of its strategy.
    fn request<T>(
        &self,
        cause: OrderCause,
        write: impl FnOnce(&mut Orders<'_>) -> Result<T, SendError>,
    ) -> PyResult<T> {
        let mut inner = self.lock()?;
        let NodeState { node, strategy, .. } = &mut *inner;
        let node = node.as_mut().filter(|_| !self.is_leaving()).ok_or_else(left)?;
        let (number, numbers) = strategy.as_mut().ok_or_else(no_strategy)?;
        let mut failed = None;
        let mut sink = OrderStream::new(node.publisher(), numbers, |error| failed = Some(error));
        let sent = write(&mut Orders::new(&mut sink, *number, cause));
        sent.map_err(|error| failed.map_or_else(|| errors::value(&error), errors::of_publish))
    }

    /// Reads what td's ledger has of its strategy.
    fn read_ledger<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&Ledger<Memory>, u32) -> Result<T, LedgerBusy> + Send,
    ) -> PyResult<T> {
        let inner = self.lock()?;
        let node = inner.node.as_ref().filter(|_| !self.is_leaving()).ok_or_else(left)?;
        let strategy = self.strategy.ok_or_else(no_strategy)?;
        let no_ledger = || {
            errors::LowlatError::new_err(
                "cannot read td's ledger: this run has none\nhint: join a run of `lowlat pipeline run`",
            )
        };
        let ledger = node.ledger().ok_or_else(no_ledger)?;
        let ledger = ledger.map_err(|error| errors::LowlatError::new_err(error.to_string()))?;
        drop(inner);
        // While td changes it all the time, this takes long.
        exit::detached(py, || read(&ledger, strategy)).map_err(|error| BusyError::new_err(error.to_string()))
    }

    /// Waits until there are events, the node has ended, or the time is up. Returns what `take` takes of the
    /// events.
    fn fill<T: Default>(
        &self,
        py: Python<'_>,
        until_ns: Option<u64>,
        take: impl FnOnce(&mut VecDeque<PendingEvent>) -> T,
    ) -> PyResult<T> {
        let mut is_first = true;
        loop {
            if self.is_leaving() {
                return Ok(T::default());
            }
            let mut inner = self.lock()?;
            // Events of one poll are returned one by one, and the strategy may take its time with each.
            if mem::take(&mut is_first)
                && let Some(node) = &mut inner.node
            {
                node.show_life();
            }
            inner.poll()?;
            let is_due = until_ns.is_some_and(|until_ns| now_ns() >= until_ns);
            if is_due || inner.is_over || inner.node.is_none() || !inner.events.is_empty() {
                return Ok(take(&mut inner.events));
            }
            let waiting = &mut *inner;
            exit::detached(py, || {
                waiting.wait(until_ns);
                if exit::is_over() {
                    // It leaves its master.
                    waiting.node = None;
                }
            });
            drop(inner);
            py.check_signals()?;
        }
    }
}

impl NodeState {
    /// Polls, unless events of an earlier poll are left.
    fn poll(&mut self) -> PyResult<()> {
        let Some(node) = self.node.as_mut().filter(|_| self.events.is_empty()) else { return Ok(()) };
        let (names, events, is_over) = (&mut self.names, &mut self.events, &mut self.is_over);
        if !*is_over {
            node.poll(&mut |_, event| match event {
                Event::Record { stream, record, payload } => {
                    let record = Record::new(names.get(stream.as_str()), record, payload, Some(now_ns()));
                    events.push_back(PendingEvent::Record(record));
                }
                Event::Lost { stream, count } => {
                    let stream = names.get(stream.as_str());
                    events.push_back(PendingEvent::Lost(Lost { stream, count, why: None }));
                }
                Event::Begin => events.push_back(PendingEvent::Begin),
                Event::Command(text) => events.push_back(PendingEvent::Command(text.to_owned())),
                Event::Timer { due_ns } => events.push_back(PendingEvent::Timer(due_ns)),
                Event::Stop => *is_over = true,
                _ => {}
            });
        }
        if *is_over && events.is_empty() {
            return node.ended().map_or(Ok(()), |ended| Err(errors::of_ended(&ended)));
        }
        Ok(())
    }

    /// Waits for events, for a slice at most.
    fn wait(&mut self, until_ns: Option<u64>) {
        if let Some(node) = &mut self.node {
            node.wait_at_most(until_ns, SLICE);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !self.mark.is_this_process() {
            // A thread that does not exist in this process may have been changing it: it stays until the
            // process ends.
            let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
            mem::forget((inner.node.take(), inner.strategy.take()));
        }
    }
}
