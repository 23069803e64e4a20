//! A node: polling and waiting.

use crate::{
    error::{Status, fail, guard, null, of_ended, this_thread},
    records::{
        Event, LOWLAT_EVENT_BEGIN, LOWLAT_EVENT_COMMAND, LOWLAT_EVENT_LOST, LOWLAT_EVENT_STOP,
        LOWLAT_EVENT_TIMER, Record, RecordStamp,
    },
    text::Text,
};
use lowlat_ipc::fork::ForkMark;
use lowlat_node::{
    Memory, NodeEnded, Publisher, Refusal,
    clock::now_ns,
    ledger::{Ledger, LedgerBusy},
    strategy::{Numbers, numbers_of},
};
use std::{
    cell::{Cell, RefCell, UnsafeCell},
    ffi::{c_int, c_void},
    os::fd::AsRawFd as _,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// Largest stream name, in bytes.
const NAME_BYTES: usize = 72;
const COMMAND_BYTES: usize = 1024;

/// Called by lowlat_poll with each event. It may publish, send and change orders and look them up through
/// `node`, and read records; lowlat_poll, lowlat_wait, lowlat_ended and lowlat_leave return LOWLAT_STATUS_BUSY. It must return: neither
/// exceptions nor longjmp may leave it.
pub type Handler = Option<unsafe extern "C" fn(user: *mut c_void, node: *mut Node, event: *const Event)>;

/// A node of the pipeline.
///
/// It is used by one thread at a time, and handed to another with a lock, a join or the like. A call from a
/// second thread usually returns LOWLAT_STATUS_BUSY. Two calls that start within the same nanoseconds may not
/// detect each other, and are undefined behaviour.
///
/// It belongs to the process that joined. In a forked process every function returns LOWLAT_STATUS_FORKED,
/// except lowlat_leave, which does nothing: the parent's node is unaffected.
pub struct Node {
    inner: UnsafeCell<Inner>,
    /// The publisher, while the handler runs.
    current: Cell<*mut Publisher>,
    pub(crate) strategy: RefCell<Option<StrategyState>>,
    mark: Arc<ForkMark>,
    /// The thread in a function of this node ([`this_thread`]); 0: none.
    user: AtomicUsize,
    is_broken: AtomicBool,
    number: u32,
    strategy_number: Option<u32>,
    /// td's; `None` if the master gives this node none.
    ledger: Option<Result<Ledger<Memory>, Refusal>>,
    epoch: u64,
}

/// State that a function of the node accesses exclusively.
struct Inner {
    node: lowlat_node::Node,
    stream: Text<NAME_BYTES>,
    command: Text<COMMAND_BYTES>,
}

/// Additional state of a strategy's node.
pub struct StrategyState {
    pub number: u32,
    pub numbers: Numbers,
}

/// A running function of the node. There is only one at a time; publishing by the handler uses
/// [`Node::current`].
struct Entered<'a>(&'a Node);

impl Entered<'_> {
    fn inner(&mut self) -> &mut Inner {
        // SAFETY: `Node::enter` creates only one of these at a time: calls from the handler find their own
        // thread in `user` and are refused, and the node's users guarantee that two threads do not call at the
        // same moment. Borrowing this value keeps its own function from creating a second reference.
        unsafe { &mut *self.0.inner.get() }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.current.set(ptr::null_mut());
        // Read by `Node::enter`. Relaxed: handing the node to another thread orders everything else.
        self.0.user.store(0, Ordering::Relaxed);
    }
}

impl Node {
    pub(crate) fn new(node: lowlat_node::Node) -> Self {
        let strategy_number = node.strategies().first().copied();
        let strategy =
            strategy_number.map(|number| StrategyState { number, numbers: numbers_of(&node, number) });
        let (number, epoch, mark) = (node.number(), node.epoch(), Arc::clone(node.mark()));
        let ledger = node.ledger();
        Self {
            inner: UnsafeCell::new(Inner { node, stream: Text::new(), command: Text::new() }),
            current: Cell::new(ptr::null_mut()),
            strategy: RefCell::new(strategy),
            mark,
            user: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            number,
            strategy_number,
            ledger,
            epoch,
        }
    }

    /// Starts a function of this node, which ends when the value is dropped, also by a panic.
    fn enter(&self, what: &str) -> Result<Entered<'_>, Status> {
        let me = this_thread();
        // Pairs with the stores here and in `Entered::drop`. Relaxed, and no exchange: it detects misuse, and
        // does not order anything for threads that hand over a node.
        let user = self.user.load(Ordering::Relaxed);
        if user == 0 {
            self.user.store(me, Ordering::Relaxed);
            return Ok(Entered(self));
        }
        let text = if user == me {
            format_args!(
                "cannot run {what}: it was called from the node's handler\nhint: call it when lowlat_poll has returned"
            )
        } else {
            format_args!(
                "cannot run {what}: another thread uses the node\nhint: use a node in one thread at a time"
            )
        };
        Err(fail(Status::Busy, &text))
    }

    /// True if this thread is in a function of the node, so in its handler.
    fn is_in_handler(&self) -> bool {
        // Relaxed: only this thread stores its own number.
        self.user.load(Ordering::Relaxed) == this_thread()
    }

    /// Uses the publisher, inside and outside of a handler.
    pub(crate) fn publish_with(
        &self,
        what: &str,
        work: impl FnOnce(&mut Publisher) -> Result<(), Status>,
    ) -> Result<(), Status> {
        if !self.is_in_handler() {
            return work(self.enter(what)?.inner().node.publisher());
        }
        let current = self.current.replace(ptr::null_mut());
        // SAFETY: this thread is in a function of the node, so a pointer here is the publisher that the poll
        // lent to the handler that runs now; the poll does not access it before the handler returns, and it was
        // taken out of the cell, so it is exclusive.
        let publisher = unsafe { current.as_mut() };
        let no_handler =
            || fail(Status::Busy, &format_args!("cannot run {what}: it was called from within this library"));
        let done = work(publisher.ok_or_else(no_handler)?);
        self.current.set(current);
        done
    }

    /// Reads what td's ledger has of the node's strategy, inside and outside of a handler.
    pub(crate) fn look<T>(
        &self,
        what: &str,
        read: impl FnOnce(&Ledger<Memory>, u32) -> Result<T, LedgerBusy>,
    ) -> Result<T, Status> {
        // Not for access: so that lowlat_leave of another thread finds the node in use.
        let _entered = if self.is_in_handler() { None } else { Some(self.enter(what)?) };
        let strategy = self.strategy_number.ok_or_else(no_strategy)?;
        let no_ledger = || {
            let text = format_args!(
                "cannot run {what}: the run has no ledger of td\nhint: start its master with the areas that td uses"
            );
            fail(Status::NoLedger, &text)
        };
        let ledger = self.ledger.as_ref().ok_or_else(no_ledger)?;
        let ledger = ledger.as_ref().map_err(|error| fail(Status::Unusable, error))?;
        read(ledger, strategy).map_err(|error| fail(Status::LedgerBusy, &error))
    }

    /// Passes an event to the handler, which may publish meanwhile.
    ///
    /// # Safety
    /// `to.node` is the pointer of this node, and the handler keeps its guarantees.
    unsafe fn hand(&self, to: &EventHandler, publisher: &mut Publisher, event: &Event) {
        if self.is_broken() {
            return;
        }
        self.current.set(ptr::from_mut(publisher));
        // SAFETY: the user passed the handler together with its pointer; the event and what it points to
        // outlive the call. The node outlives it too: while its poll runs, lowlat_leave finds it in use.
        unsafe { (to.handler)(to.user, to.node, ptr::from_ref(event)) };
        self.current.set(ptr::null_mut());
    }

    fn is_broken(&self) -> bool {
        // Relaxed: stored by the thread that uses the node.
        self.is_broken.load(Ordering::Relaxed)
    }
}

struct EventHandler {
    handler: unsafe extern "C" fn(*mut c_void, *mut Node, *const Event),
    user: *mut c_void,
    node: *mut Node,
}

/// # Safety
/// The pointer is NULL, or that of a node that has not been released.
pub unsafe fn with(node: *const Node, work: impl FnOnce(&Node) -> Result<(), Status>) -> Status {
    // SAFETY: guaranteed by the caller; it is only ever borrowed shared, its state is in cells.
    let Some(node) = (unsafe { node.as_ref() }) else { return null("node") };
    if !node.mark.is_this_process() {
        return of_ended(&NodeEnded::Forked { pid: node.mark.pid() });
    }
    if node.is_broken() {
        return broken();
    }
    guard(|| work(node), || node.is_broken.store(true, Ordering::Relaxed))
}

pub fn no_strategy() -> Status {
    fail(Status::Argument, &"this node is not a strategy\nhint: join with lowlat_join_strategy")
}

fn broken() -> Status {
    fail(Status::Internal, &"this node has failed before\nhint: release it with lowlat_leave")
}

/// Passes available events to the handler, and never blocks. Sets `events` to their number; it may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_poll(
    node: *mut Node,
    handler: Handler,
    user: *mut c_void,
    events: *mut usize,
) -> Status {
    let poll = |this: &Node| {
        let handler = handler.ok_or_else(|| null("handler"))?;
        let to = EventHandler { handler, user, node };
        let mut entered = this.enter("lowlat_poll")?;
        let Inner { node, stream: name, command } = entered.inner();
        let count = node.poll(&mut |publisher, event| {
            let mut give = |event: &Event| {
                // SAFETY: the pointer is the one that this function was called with, and the handler is the
                // caller's.
                unsafe { this.hand(&to, publisher, event) };
            };
            match event {
                lowlat_node::Event::Record { stream, record, payload } => {
                    name.set(stream.as_str());
                    let record = Record {
                        stream: name.as_ptr(),
                        payload: payload.as_ptr(),
                        payload_bytes: payload.len(),
                        sequence: record.sequence,
                        received_ns: now_ns(),
                        stamp: RecordStamp::of(&record.stamp),
                    };
                    give(&Event::of_record(&record));
                }
                lowlat_node::Event::Lost { stream, count } => {
                    name.set(stream.as_str());
                    give(&Event { stream: name.as_ptr(), lost: count, ..Event::new(LOWLAT_EVENT_LOST) });
                }
                lowlat_node::Event::Begin => give(&Event::new(LOWLAT_EVENT_BEGIN)),
                lowlat_node::Event::Stop => give(&Event::new(LOWLAT_EVENT_STOP)),
                lowlat_node::Event::Command(text) => {
                    command.set(text);
                    give(&Event { text: command.as_ptr(), ..Event::new(LOWLAT_EVENT_COMMAND) });
                }
                lowlat_node::Event::Timer { due_ns } => {
                    give(&Event { due_ns, ..Event::new(LOWLAT_EVENT_TIMER) });
                }
                // C programs ignore unknown kinds.
                _ => {}
            }
        });
        drop(entered);
        // SAFETY: NULL, or space for a number, as the caller guarantees.
        if let Some(events) = unsafe { events.as_mut() } {
            *events = count;
        }
        // In a function that the handler called.
        if this.is_broken() { Err(broken()) } else { Ok(()) }
    };
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { with(node, poll) }
}

/// Waits, as configured in the node's options, until a poll would find something or the pipeline's clock shows
/// `until_ns` (lowlat_now_ns; UINT64_MAX: no limit). Signals do not end it: pass a limit if a flag must be
/// checked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_wait(node: *mut Node, until_ns: u64) -> Status {
    let wait = |node: &Node| {
        node.enter("lowlat_wait")?.inner().node.wait((until_ns != u64::MAX).then_some(until_ns));
        Ok(())
    };
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { with(node, wait) }
}

/// A poll from `at_ns` of the pipeline's clock on returns LOWLAT_EVENT_TIMER, once, and no wait lasts longer. Replaces the
/// time set before; UINT64_MAX sets none. A handler may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_set_timer(node: *mut Node, at_ns: u64) -> Status {
    let set = |node: &Node| {
        if node.is_in_handler() {
            return node.publish_with("lowlat_set_timer", |publisher| {
                publisher.set_timer(at_ns);
                Ok(())
            });
        }
        node.enter("lowlat_set_timer")?.inner().node.set_timer(at_ns);
        Ok(())
    };
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { with(node, set) }
}

/// Sets `descriptor` to one that is readable while a poll may find something, for epoll and the like. Each time it is
/// readable, call lowlat_poll; it is readable now and then without an event, too. From then on a thread of this library
/// waits for the node, which does not spin any more. It is valid until lowlat_leave; do not read or close it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_node_descriptor(node: *mut Node, descriptor: *mut c_int) -> Status {
    let open = |node: &Node| {
        // SAFETY: NULL, or space for a number, as the caller guarantees.
        let descriptor = unsafe { descriptor.as_mut() }.ok_or_else(|| null("descriptor"))?;
        let mut entered = node.enter("lowlat_node_descriptor")?;
        let opened = entered.inner().node.descriptor().map_err(|error| fail(Status::System, &error))?;
        *descriptor = opened.as_raw_fd();
        Ok(())
    };
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { with(node, open) }
}

/// Why the node ended, according to the last poll or wait. LOWLAT_STATUS_OK while it may continue, and after
/// its master has stopped it, which is the normal end. LOWLAT_STATUS_MASTER_GONE if the master died,
/// LOWLAT_STATUS_FENCED if it dropped this process, LOWLAT_STATUS_REFUSED if it refused the node after it had
/// joined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_ended(node: *const Node) -> Status {
    let ended = |node: &Node| {
        let ended = node.enter("lowlat_ended")?.inner().node.ended();
        ended.map_or(Ok(()), |ended| Err(of_ended(&ended)))
    };
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { with(node, ended) }
}

/// Number of the node, below 1024: the same after a restart under the same name. UINT32_MAX for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_node_number(node: *const Node) -> u32 {
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { node.as_ref() }.map_or(u32::MAX, |node| node.number)
}

/// Number of the node's strategy, which identifies its orders and answers: the one that it joined with, or that
/// the master assigned. UINT32_MAX for NULL, and for a node that did not join with lowlat_join_strategy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_node_strategy(node: *const Node) -> u32 {
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { node.as_ref() }.and_then(|node| node.strategy_number).unwrap_or(u32::MAX)
}

/// Number of processes under the node's name, including this one: 1 for the first. 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_node_epoch(node: *const Node) -> u64 {
    // SAFETY: NULL or a node, as the caller guarantees.
    unsafe { node.as_ref() }.map_or(0, |node| node.epoch)
}

/// Leaves the master and releases the node, which must not be used after LOWLAT_STATUS_OK. LOWLAT_STATUS_BUSY
/// if it is in use; nothing is released then. NULL is ignored. In a forked process it does nothing: the memory
/// remains until that process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_leave(node: *mut Node) -> Status {
    let leave = || {
        // SAFETY: NULL or a node that was not released, as the caller guarantees.
        let Some(this) = (unsafe { node.as_ref() }) else { return Ok(()) };
        // A thread that does not exist in the forked process may have been changing it.
        if !this.mark.is_this_process() {
            return Ok(());
        }
        drop(this.enter("lowlat_leave")?);
        // SAFETY: it came from Box::into_raw in `join_as`, and was not released, as the caller guarantees.
        // `enter` found no function of it running in this thread, so no handler runs, whatever panicked before.
        // In other threads it detects functions that started earlier; the caller guarantees that none starts
        // later. `this` is not used any more.
        drop(unsafe { Box::from_raw(node) });
        Ok(())
    };
    guard(leave, || ())
}

const _: () = {
    // A node may be joined in one thread and used in another.
    const fn is_send<T: Send>() {}
    is_send::<Inner>();
    is_send::<StrategyState>();
    is_send::<Ledger<Memory>>();
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::master_thread::{self, MasterThread};
    use std::cell::Cell;

    unsafe extern "C" fn count(user: *mut c_void, _: *mut Node, _: *const Event) {
        // SAFETY: the test passes a cell.
        let calls = unsafe { &*user.cast::<Cell<u64>>() };
        calls.set(calls.get() + 1);
    }

    #[test]
    fn a_panic_ends_a_node_and_not_its_program() {
        let master = MasterThread::start(|_| ());
        let joined = master.join(&master_thread::join("faulty", None, vec![]));
        let node = Box::into_raw(Box::new(Node::new(joined)));
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

    /// Results of a handler's calls with a failed node.
    #[derive(Default)]
    struct Done {
        calls: u32,
        statuses: Vec<Status>,
    }

    unsafe extern "C" fn fail_and_leave(user: *mut c_void, node: *mut Node, _: *const Event) {
        // SAFETY: the test passes a `Done`, and polls that node.
        unsafe {
            let done = &mut *user.cast::<Done>();
            done.calls += 1;
            let publish = |node: &Node| node.publish_with("publishing", |_| panic!("a fault"));
            done.statuses.extend([with(node, publish), lowlat_leave(node), lowlat_leave(node)]);
        }
    }

    #[test]
    fn a_handler_whose_publishing_panics_cannot_release_the_polled_node() {
        let master = MasterThread::start(|_| ());
        let joined = master.join(&master_thread::join("faulty", None, vec![]));
        let node = Box::into_raw(Box::new(Node::new(joined)));
        master.with(|master, _| {
            master.begin();
            master.command("faulty", "one more event").unwrap();
        });
        let mut done = Done::default();
        let user = (&raw mut done).cast();
        // SAFETY: the node lives until it has left, and `done` longer.
        unsafe {
            assert_eq!(lowlat_wait(node, u64::MAX), Status::Ok);
            assert_eq!(lowlat_poll(node, Some(fail_and_leave), user, ptr::null_mut()), Status::Internal);
            assert_eq!(done.statuses, [Status::Internal, Status::Busy, Status::Busy]);
            assert_eq!(done.calls, 1, "a failed node delivers nothing");
            assert_eq!(lowlat_poll(node, Some(fail_and_leave), user, ptr::null_mut()), Status::Internal);
            assert_eq!(lowlat_leave(node), Status::Ok);
        }
        let left = |it: &_| matches!(it, lowlat_trade::master::Happened::Left { name } if name == "faulty");
        master.expect("it has left", left);
    }
}
