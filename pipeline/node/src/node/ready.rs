//! A descriptor for programs whose one wait covers more than a node: event loops, `poll`, `epoll`.
//!
//! A thread of this process waits at the node's bell in the node's place. It makes the descriptor readable when a poll
//! may find something, and then waits until the node was polled.

use super::{BEAT_NS, Memory, Node, NodeTurn, Wait};
use crate::{Refusal, clock::monotonic_ns, control::CONTROL_STREAM};
use lowlat_ipc::{doorbell::Futex, inbox::Inbox};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::{read, write},
};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

/// What the node wants of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// To wait at the bell, up to this time of the clock.
    Bell { until_ns: u64 },
    /// Nothing before the next poll: the descriptor is readable.
    Poll,
    /// Its end.
    End,
}

/// State of node and thread.
#[derive(Debug)]
struct Shared {
    event: OwnedFd,
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

impl Shared {
    fn set(&self, wanted: Wanted) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
        self.changed.notify_one();
    }

    /// Waits until the bell is wanted, and returns up to when; `None` at the end.
    fn wait(&self) -> Option<u64> {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = self.changed.wait_while(wanted, |wanted| *wanted == Wanted::Poll);
        match *wanted.unwrap_or_else(PoisonError::into_inner) {
            Wanted::Bell { until_ns } => Some(until_ns),
            Wanted::Poll | Wanted::End => None,
        }
    }

    /// The descriptor becomes readable, unless the node was polled or has ended meanwhile.
    fn ring(&self) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*wanted, Wanted::Bell { .. }) {
            *wanted = Wanted::Poll;
            // It cannot fail: its counter is 0 or 1.
            write(&self.event, &1_u64.to_ne_bytes()).ok();
        }
    }
}

/// The node's side. The thread ends within 100 ms of its drop.
#[derive(Debug)]
pub(super) struct ReadyDescriptor(Arc<Shared>);

impl ReadyDescriptor {
    fn new(inbox: Memory, turn: Option<NodeTurn>) -> Result<Self, Refusal> {
        let refused = |error: std::io::Error| {
            Refusal::new(format!(
                "cannot create the node's descriptor: {error}\nhint: raise the limit on open files or processes (ulimit -n, -u)"
            ))
        };
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| refused(errno.into()))?;
        let shared =
            Shared { event, wanted: Mutex::new(Wanted::Bell { until_ns: 0 }), changed: Condvar::new() };
        let shared = Arc::new(shared);
        let inbox = Inbox::new(inbox).ok_or_else(|| Refusal::new("the node's inbox is too small"))?;
        let of_thread = Arc::clone(&shared);
        let watch = move || {
            while let Some(until_ns) = of_thread.wait() {
                // At most: a poll also sends the node's heartbeat and looks for its master.
                let longest_ns = until_ns.saturating_sub(monotonic_ns()).min(BEAT_NS);
                let longest = Duration::from_nanos(longest_ns);
                match &turn {
                    Some(turn) => turn.wait(longest),
                    None => _ = inbox.wait(&Futex, longest),
                }
                of_thread.ring();
            }
        };
        thread::Builder::new().name("lowlat-ready".to_owned()).spawn(watch).map_err(refused)?;
        Ok(Self(shared))
    }

    /// Clears it, before a poll.
    pub(super) fn clear(&self) {
        // Nothing to read: it was not readable.
        read(&self.0.event, &mut [0; 8]).ok();
    }

    /// After a poll: it becomes readable again when there is more, or at this time of the clock.
    pub(super) fn arm(&self, until_ns: u64) {
        self.0.set(Wanted::Bell { until_ns });
    }

    /// Waits until it is readable, or this time of the clock.
    fn wait(&self, until_ns: u64) {
        let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        let left = Timespec::try_from(left).ok().filter(|_| until_ns != u64::MAX);
        // A signal ends it early.
        poll(&mut [PollFd::new(&self.0.event, PollFlags::IN)], left.as_ref()).ok();
    }
}

impl Drop for ReadyDescriptor {
    fn drop(&mut self) {
        self.0.set(Wanted::End);
    }
}

impl Node {
    /// A descriptor that is readable while a poll may find something, and now and then besides, for the node's
    /// heartbeat. After each time it was readable, poll the node. A thread waits for the node from now on, which takes
    /// one wake more for each record, so the node does not spin any more.
    pub fn descriptor(&mut self) -> Result<BorrowedFd<'_>, Refusal> {
        if self.followed != 0 {
            return Err(Refusal::new(
                "cannot create a descriptor for a node that spins: nothing announces its records\nhint: join with wait parked or adaptive",
            ));
        }
        if self.ready.is_none() {
            self.ready = Some(ReadyDescriptor::new(Arc::clone(&self.inbox_memory), self.turn.clone())?);
            self.waiting.wait = Wait::Parked;
            self.direct = 0;
            self.takes_all = true;
            self.inbox.set_spinning(false);
        }
        let ready = self.ready.as_ref().ok_or_else(|| Refusal::new("the node has no descriptor"))?;
        Ok(ready.0.event.as_fd())
    }

    /// Like [`super::Publisher::set_timer`], for a time between polls.
    pub fn set_timer(&mut self, at_ns: u64) {
        self.publisher.set_timer(at_ns);
        if self.ready.is_some() {
            // The next poll arms the descriptor for this time.
            self.inbox.notify(CONTROL_STREAM, &Futex);
        }
    }

    /// Waits with the descriptor.
    #[cold]
    pub(super) fn wait_by_descriptor(&self, until_ns: u64) {
        if !self.is_ready() {
            self.ready.iter().for_each(|ready| ready.wait(until_ns));
        }
    }
}
