//! A node: polling and waiting.

use crate::{
    error::{Status, fail, guard, null, of_ended},
    records::{
        Event, LOWLAT_EVENT_BEGIN, LOWLAT_EVENT_COMMAND, LOWLAT_EVENT_LOST, LOWLAT_EVENT_STOP, Record, Stamp,
    },
    text::Text,
};
use lowlat_trade::{
    clock::now_ns,
    node::{self, Publisher},
    roles::numbers_of,
    strategy::Numbers,
};
use std::{
    cell::{Cell, RefCell, UnsafeCell},
    ffi::c_void,
    ptr,
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
    pub(crate) strategy: RefCell<Option<Strategy>>,
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

/// What a strategy's node has besides.
pub struct Strategy {
    pub number: u32,
    pub numbers: Numbers,
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
    pub(crate) fn publish_with(
        &self,
        work: impl FnOnce(&mut Publisher) -> Result<(), Status>,
    ) -> Result<(), Status> {
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
pub unsafe fn with(node: *const Node, work: impl FnOnce(&Node) -> Result<(), Status>) -> Status {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::master_thread::{self, MasterThread};
    use std::cell::Cell;

    unsafe extern "C" fn count(user: *mut c_void, _: *mut Node, _: *const Event) {
        // SAFETY: the test gives a cell.
        let calls = unsafe { &*user.cast::<Cell<u64>>() };
        calls.set(calls.get() + 1);
    }

    #[test]
    fn a_fault_ends_a_node_and_not_its_program() {
        let master = MasterThread::start(|_| ());
        let joined = master.join(&master_thread::join("faulty", None, vec![]));
        let node = Box::into_raw(Box::new(Node::new(joined, None)));
        let calls = Cell::new(0_u64);
        let user = (&raw const calls).cast_mut().cast();
        // SAFETY: the node lives until it has left, and the cell longer.
        unsafe {
            assert_eq!(lowlat_poll(node, Some(count), user, ptr::null_mut()), Status::Ok);
            assert_eq!(with(node, |_| panic!("a fault")), Status::Internal);
            assert_eq!(lowlat_poll(node, Some(count), user, ptr::null_mut()), Status::Internal);
            assert_eq!(lowlat_wait(node, 0), Status::Internal);
            assert_eq!(lowlat_leave(node), Status::Ok);
        }
        assert_eq!(calls.get(), 0);
        let left = |it: &_| matches!(it, lowlat_trade::master::Happened::Left { name } if name == "faulty");
        master.expect("it has left", left);
    }
}
