//! A node: polling, waiting, publishing.

use crate::{
    decode::payload_of,
    error::{Status, fail, guard, null, of_ended, of_publish},
    records::{
        Event, LOWLAT_EVENT_BEGIN, LOWLAT_EVENT_COMMAND, LOWLAT_EVENT_LOST, LOWLAT_EVENT_STOP,
        LOWLAT_KIND_QUOTE, LOWLAT_SIDE_BUY, LOWLAT_SIDE_SELL, Order, Record, Stamp,
    },
    text::Text,
};
use lowlat_ipc::{region::Memfd, stream};
use lowlat_trade::{
    clock::now_ns,
    node::{self, PublishError, Publisher},
    records::{self, PAYLOAD_BYTES, Side},
    roles::numbers_of,
    strategy::{Cause, Numbers, OrderSink, Orders, SendError},
};
use std::{
    cell::{Cell, RefCell, UnsafeCell},
    ffi::c_void,
    ptr,
    sync::Arc,
};

/// Room for a stream's name.
const NAME_BYTES: usize = 72;
/// Room for a command.
const COMMAND_BYTES: usize = 1024;

/// Called by lowlat_poll with each event. It may publish and send orders through `node`, and read records; lowlat_poll,
/// lowlat_wait, lowlat_ended and lowlat_leave give back LOWLAT_STATUS_BUSY. It must return: neither exceptions nor longjmp may
/// leave it.
pub type Handler = Option<unsafe extern "C" fn(user: *mut c_void, node: *mut Node, event: *const Event)>;

/// A node of the pipeline. One thread at a time uses it.
pub struct Node {
    inner: UnsafeCell<Inner>,
    /// The publisher while the handler runs.
    current: Cell<*mut Publisher>,
    strategy: RefCell<Option<Strategy>>,
    is_polling: Cell<bool>,
    is_broken: Cell<bool>,
    number: u32,
    epoch: u64,
}

/// What a poll has to itself.
struct Inner {
    node: node::Node,
    stream: Text<NAME_BYTES>,
    command: Text<COMMAND_BYTES>,
}

struct Strategy {
    number: u32,
    numbers: Numbers<Arc<Memfd>>,
}

impl Node {
    pub(crate) fn new(node: node::Node, strategy: Option<u32>) -> Self {
        let strategy = strategy.map(|number| Strategy { number, numbers: numbers_of(&node, number) });
        let (number, epoch) = (node.number(), node.epoch());
        Self {
            inner: UnsafeCell::new(Inner { node, stream: Text::new(), command: Text::new() }),
            current: Cell::new(ptr::null_mut()),
            strategy: RefCell::new(strategy),
            is_polling: Cell::new(false),
            is_broken: Cell::new(false),
            number,
            epoch,
        }
    }

    /// What a poll has to itself, outside of one.
    #[expect(clippy::mut_from_ref, reason = "the flag sees to it that there is one")]
    fn inner(&self, what: &str) -> Result<&mut Inner, Status> {
        if self.is_polling.get() {
            let text = format_args!(
                "{what} was called from the node's handler; call it when lowlat_poll has returned"
            );
            return Err(fail(Status::Busy, &text));
        }
        // SAFETY: one thread uses the node, as its users promise; outside of a poll no reference to the inside is kept
        // from one function of C to the next, and during a poll the flag turns others away.
        Ok(unsafe { &mut *self.inner.get() })
    }

    /// Works with the publisher, inside and outside of a handler.
    fn publish_with(&self, work: impl FnOnce(&mut Publisher) -> Result<(), Status>) -> Result<(), Status> {
        let current = self.current.replace(ptr::null_mut());
        // SAFETY: when there is one, it is the publisher that the poll lent to the handler which runs now; the poll does
        // not touch it before the handler returns, and nobody else has it, for it was taken out of the cell.
        if let Some(publisher) = unsafe { current.as_mut() } {
            let done = work(publisher);
            self.current.set(current);
            return done;
        }
        work(self.inner("publishing")?.node.publisher())
    }

    /// Hands an event to the handler, which may publish meanwhile.
    ///
    /// # Safety
    /// `this` is the pointer that this node is known by, and the handler keeps its promises.
    unsafe fn hand(&self, to: &Receiver, publisher: &mut Publisher, event: &Event) {
        if self.is_broken.get() {
            return;
        }
        self.current.set(ptr::from_mut(publisher));
        // SAFETY: the user gave the handler together with its pointer; the event and what it points to outlive the call.
        unsafe { (to.handler)(to.user, to.node, ptr::from_ref(event)) };
        self.current.set(ptr::null_mut());
    }
}

/// Who is given events.
struct Receiver {
    handler: unsafe extern "C" fn(*mut c_void, *mut Node, *const Event),
    user: *mut c_void,
    node: *mut Node,
}

/// # Safety
/// The pointer is NULL, or that of a node which has not been released.
unsafe fn with(node: *const Node, work: impl FnOnce(&Node) -> Result<(), Status>) -> Status {
    // SAFETY: as the caller promises; it is only ever borrowed shared, its inside is behind cells.
    let Some(node) = (unsafe { node.as_ref() }) else { return null("node") };
    if node.is_broken.get() {
        return fail(Status::Internal, &"this node had a fault before; release it with lowlat_leave");
    }
    guard(|| work(node), || node.is_broken.set(true))
}

/// Hands what is there to the handler, and never blocks. `events` is set to how many events there were; it may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_poll(
    node: *mut Node,
    handler: Handler,
    user: *mut c_void,
    events: *mut usize,
) -> Status {
    let poll = |this: &Node| {
        let handler = handler.ok_or_else(|| null("handler"))?;
        let to = Receiver { handler, user, node };
        let Inner { node, stream: name, command } = this.inner("lowlat_poll")?;
        this.is_polling.set(true);
        let count = node.poll(&mut |publisher, event| {
            let mut give = |event: &Event| {
                // SAFETY: the pointer is the one that this function was called with, and the handler is its caller's.
                unsafe { this.hand(&to, publisher, event) };
            };
            match event {
                node::Event::Record { stream, record, payload } => {
                    name.set(stream.as_str());
                    let record = Record {
                        stream: name.as_ptr(),
                        payload: payload.as_ptr(),
                        payload_bytes: payload.len(),
                        sequence: record.sequence,
                        received_ns: now_ns(),
                        stamp: Stamp::of(&record.stamp),
                    };
                    give(&Event::of_record(&record));
                }
                node::Event::Lost { stream, count } => {
                    name.set(stream.as_str());
                    give(&Event { stream: name.as_ptr(), lost: count, ..Event::new(LOWLAT_EVENT_LOST) });
                }
                node::Event::Begin => give(&Event::new(LOWLAT_EVENT_BEGIN)),
                node::Event::Stop => give(&Event::new(LOWLAT_EVENT_STOP)),
                node::Event::Command(text) => {
                    command.set(text);
                    give(&Event { text: command.as_ptr(), ..Event::new(LOWLAT_EVENT_COMMAND) });
                }
            }
        });
        this.is_polling.set(false);
        // SAFETY: NULL, or room for a number, as the caller promises.
        if let Some(events) = unsafe { events.as_mut() } {
            *events = count;
        }
        Ok(())
    };
    // SAFETY: NULL or a node, as the caller promises.
    unsafe { with(node, poll) }
}

/// Waits, as the node's options say, until a poll would find something or the pipeline's clock shows `until_ns`
/// (lowlat_now_ns; UINT64_MAX: without end). Signals do not end it: give a time when a flag is to be looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_wait(node: *mut Node, until_ns: u64) -> Status {
    let wait = |node: &Node| {
        node.inner("lowlat_wait")?.node.wait((until_ns != u64::MAX).then_some(until_ns));
        Ok(())
    };
    // SAFETY: NULL or a node, as the caller promises.
    unsafe { with(node, wait) }
}

/// Appends a record to the node's stream and gives it to every reader that wants stamp.instrument; those that sleep are
/// woken, with a system call each. `sequence` is set to its number; it may be NULL. Not before LOWLAT_EVENT_BEGIN, if all
/// readers are to have it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_publish(
    node: *mut Node,
    stamp: *const Stamp,
    payload: *const c_void,
    payload_bytes: usize,
    sequence: *mut u64,
) -> Status {
    let publish = |node: &Node| {
        // SAFETY: NULL or a stamp, as the caller promises.
        let stamp = unsafe { stamp.as_ref() }.ok_or_else(|| null("stamp"))?;
        if payload.is_null() && payload_bytes > 0 {
            return Err(null("payload"));
        }
        // SAFETY: so many bytes stand there while this runs, as the caller promises; NULL was looked at.
        let payload = unsafe { bytes_at(payload.cast(), payload_bytes) };
        node.publish_with(|publisher| {
            let published = publisher.publish(&stamp.to_publish(now_ns()), payload).map_err(of_publish)?;
            // SAFETY: NULL, or room for a number, as the caller promises.
            if let Some(sequence) = unsafe { sequence.as_mut() } {
                *sequence = published.sequence;
            }
            Ok(())
        })
    };
    // SAFETY: NULL or a node, as the caller promises.
    unsafe { with(node, publish) }
}

/// # Safety
/// NULL, or so many bytes can be read there.
unsafe fn bytes_at<'a>(first: *const u8, count: usize) -> &'a [u8] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(first, count) }
}

/// Sends an order of a node that joined with lowlat_join_strategy. instrument, side, price and quantity are the caller's;
/// number, scheduled_ns and received_ns are set. `cause` is the record that it is sent because of, so that tick-to-order
/// latency is known; NULL: none, which counts from now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_send_order(
    node: *mut Node,
    cause: *const Record,
    order: *mut Order,
) -> Status {
    let send = |node: &Node| {
        // SAFETY: NULL or an order, as the caller promises.
        let order = unsafe { order.as_mut() }.ok_or_else(|| null("order"))?;
        // SAFETY: NULL or a record that is still valid, as the caller promises.
        let cause =
            unsafe { cause.as_ref().map(|record| cause_of(record)) }.unwrap_or_else(|| Cause::at(now_ns()));
        let side = match order.side {
            LOWLAT_SIDE_BUY => Side::Buy,
            LOWLAT_SIDE_SELL => Side::Sell,
            found => {
                let text = format_args!("side {found}: expected LOWLAT_SIDE_BUY or LOWLAT_SIDE_SELL");
                return Err(fail(Status::Argument, &text));
            }
        };
        let no_strategy =
            || fail(Status::Argument, &"this node is no strategy; join with lowlat_join_strategy");
        let mut strategy = node.strategy.try_borrow_mut().map_err(|_| Status::Busy)?;
        let Strategy { number, numbers } = strategy.as_mut().ok_or_else(no_strategy)?;
        node.publish_with(|publisher| {
            let mut sink = Sink { publisher, numbers, failed: None };
            let sent = Orders::new(&mut sink, *number, cause).send(
                order.instrument,
                side,
                order.price,
                order.quantity,
            );
            match (sent, sink.failed) {
                (Ok(number), _) => {
                    let Cause { scheduled_ns, received_ns, .. } = cause;
                    *order = Order { number, scheduled_ns, received_ns, reserved: 0, ..*order };
                    Ok(())
                }
                (Err(_), Some(error)) => Err(of_publish(error)),
                (Err(error), None) => Err(fail(Status::Refused, &error)),
            }
        })
    };
    // SAFETY: NULL or a node, as the caller promises.
    unsafe { with(node, send) }
}

/// # Safety
/// The record's payload is NULL or valid.
unsafe fn cause_of(record: &Record) -> Cause {
    let Stamp { generated_ns, kind, .. } = record.stamp;
    // SAFETY: as the caller promises.
    let payload = unsafe { payload_of(record) };
    let quote = if kind == LOWLAT_KIND_QUOTE { records::Quote::decode(payload).ok() } else { None };
    Cause {
        generated_ns,
        scheduled_ns: quote.map_or(generated_ns, |quote| quote.scheduled_ns),
        received_ns: record.received_ns,
        sequence: record.sequence,
    }
}

/// Orders go into the node's stream.
struct Sink<'a> {
    publisher: &'a mut Publisher,
    numbers: &'a mut Numbers<Arc<Memfd>>,
    failed: Option<PublishError>,
}

impl OrderSink for Sink<'_> {
    fn send(&mut self, stamp: stream::Stamp, payload: &[u8; PAYLOAD_BYTES]) -> Result<(), SendError> {
        let stamp = stream::Stamp { generated: now_ns(), ..stamp };
        self.publisher.publish(&stamp, payload).map(|_| ()).map_err(|error| {
            self.failed = Some(error);
            SendError::Refused
        })
    }

    fn number(&mut self) -> u64 {
        self.numbers.take()
    }
}

/// Whether the node may go on: LOWLAT_STATUS_OK, or LOWLAT_STATUS_FENCED or LOWLAT_STATUS_MASTER_GONE when it must end without its
/// master's word. It looks at what the last poll or wait found.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_ended(node: *const Node) -> Status {
    let ended =
        |node: &Node| node.inner("lowlat_ended")?.node.ended().map_or(Ok(()), |ended| Err(of_ended(ended)));
    // SAFETY: NULL or a node, as the caller promises.
    unsafe { with(node, ended) }
}

/// The node's number, below 1024: the same over restarts of the same name. UINT32_MAX for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_node_number(node: *const Node) -> u32 {
    // SAFETY: NULL or a node, as the caller promises.
    unsafe { node.as_ref() }.map_or(u32::MAX, |node| node.number)
}

/// How many processes of the node's name there were, this one counted: 1 for the first. 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_node_epoch(node: *const Node) -> u64 {
    // SAFETY: NULL or a node, as the caller promises.
    unsafe { node.as_ref() }.map_or(0, |node| node.epoch)
}

/// Leaves the master and releases the node. NULL is nothing to release.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_leave(node: *mut Node) -> Status {
    let leave = || {
        // SAFETY: NULL or a node that was not released, as the caller promises.
        let Some(this) = (unsafe { node.as_ref() }) else { return Ok(()) };
        // A node that had a fault in a poll would be polling for ever.
        if !this.is_broken.get() {
            this.inner("lowlat_leave")?;
        }
        // SAFETY: it came from Box::into_raw in `join_as`, no reference to it is used any more, no handler of it runs, and
        // its user forgets it.
        drop(unsafe { Box::from_raw(node) });
        Ok(())
    };
    guard(leave, || ())
}

const _: () = {
    // A node may be joined in one thread and used in another.
    const fn is_send<T: Send>() {}
    is_send::<Inner>();
    is_send::<Strategy>();
};
