//! Events of the master's listener, connections and processes, most of which are silent most of the time.

use super::{Master, connection::Connection, socket_error};
use lowlat_node::{
    Refusal,
    clock::{now_ns, timespec},
};
use rustix::{
    buffer::spare_capacity,
    event::epoll::{self, CreateFlags, Event, EventData, EventFlags},
    io::Errno,
};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

/// Events taken per turn; the others follow in the next.
const EVENTS_MAX: usize = 512;
/// Bits of a tag for its kind.
const KIND_BITS: u32 = 2;

/// A descriptor to wait for, or one with an event: a connection with messages or with room for some, or a process that
/// has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventTag {
    Listener,
    /// A connection, by its number.
    Connection(u64),
    /// The process of a member, by the member's number.
    Member(u32),
    /// A started process, by its process id.
    Program(u32),
}

impl EventTag {
    fn data(self) -> EventData {
        let (number, kind) = match self {
            Self::Listener => (0, 0),
            Self::Connection(id) => (id, 1),
            Self::Member(number) => (u64::from(number), 2),
            Self::Program(pid) => (u64::from(pid), 3),
        };
        EventData::new_u64(number << KIND_BITS | kind)
    }

    fn of(data: EventData) -> Self {
        let number = data.u64() >> KIND_BITS;
        let short = u32::try_from(number).unwrap_or(u32::MAX);
        match data.u64() & ((1 << KIND_BITS) - 1) {
            0 => Self::Listener,
            1 => Self::Connection(number),
            2 => Self::Member(short),
            _ => Self::Program(short),
        }
    }
}

/// The kernel's list of watched descriptors (epoll). A turn costs time per event, not per descriptor. Closed
/// descriptors leave the list automatically.
#[derive(Debug)]
pub(super) struct ReadyList {
    fd: OwnedFd,
    is_accepting: bool,
}

impl ReadyList {
    pub(super) fn new(listener: &OwnedFd) -> Result<Self, Errno> {
        let list = Self { fd: epoll::create(CreateFlags::CLOEXEC)?, is_accepting: true };
        list.add(listener.as_fd(), EventTag::Listener)?;
        Ok(list)
    }

    /// Adds a descriptor that becomes readable.
    pub(super) fn add(&self, fd: BorrowedFd<'_>, tag: EventTag) -> Result<(), Errno> {
        epoll::add(&self.fd, fd, tag.data(), EventFlags::IN)
    }

    /// Adds the descriptor of a process. Without one, the end of the process is found by checks instead.
    pub(super) fn add_process(&self, pidfd: Option<OwnedFd>, tag: EventTag) -> Option<OwnedFd> {
        pidfd.filter(|fd| self.add(fd.as_fd(), tag).is_ok())
    }

    fn change(&self, fd: BorrowedFd<'_>, tag: EventTag, flags: EventFlags) {
        // It cannot fail for a descriptor of the list; a wrong interest would only cost turns.
        epoll::modify(&self.fd, fd, tag.data(), flags).ok();
    }

    /// Waits for room in a connection too while messages are queued.
    pub(super) fn follow(&self, id: u64, connection: &mut Connection) {
        let is_waiting = connection.socket.is_waiting();
        if std::mem::replace(&mut connection.is_waited_for, is_waiting) != is_waiting {
            let flags = if is_waiting { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            self.change(connection.socket.fd(), EventTag::Connection(id), flags);
        }
    }
}

impl Master {
    /// Waits, for `longest` at most, until something happens.
    pub(super) fn wait(&mut self, longest: Duration) -> Result<Vec<EventTag>, Refusal> {
        // While accepting is paused, the listener would keep waking this thread.
        let is_accepting = now_ns() >= self.accept_ns;
        let list = &mut self.ready_list;
        if std::mem::replace(&mut list.is_accepting, is_accepting) != is_accepting {
            let flags = if is_accepting { EventFlags::IN } else { EventFlags::empty() };
            list.change(self.listener.as_fd(), EventTag::Listener, flags);
        }
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        let longest = timespec(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
        match epoll::wait(&list.fd, spare_capacity(&mut events), Some(&longest)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(source) => return Err(socket_error("wait for nodes", &self.options.folder)(source)),
        }
        Ok(events.iter().map(|event| EventTag::of(event.data)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_survives_the_kernel() {
        for tag in [
            EventTag::Listener,
            EventTag::Connection(1 << 40),
            EventTag::Member(0),
            EventTag::Member(1023),
            EventTag::Program(4_194_304),
        ] {
            assert_eq!(EventTag::of(tag.data()), tag);
        }
    }
}
