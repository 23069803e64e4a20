//! Waking a subscriber that sleeps in an epoll loop, beside sockets and timers.
//!
//! ```text
//! subscriber                                publisher
//!   arm: state = IN EPOLL, fence, look        put the record where the subscriber looks
//!   epoll_wait, with the descriptor in it     fence; state IN EPOLL: state = RUNNING, write the descriptor
//!   disarm: state = RUNNING; drain
//! ```
//!
//! The descriptor is written only for a subscriber that sleeps there; one that runs or spins costs nothing. A publisher may
//! be slow between the state and the descriptor, so it is drained each time, whoever ended the sleep.

use super::Park;
use crate::atomics::AtomicU32;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    io::{self, Errno},
    thread::futex::Timespec,
};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

/// An eventfd(2): the subscriber has it in its epoll loop, and each of its publishers a copy (SCM_RIGHTS).
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A new one.
    pub fn new() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self)
    }

    /// One that another process made.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// The same one, for another holder.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Publisher: makes it readable. One that is so full that it cannot be written is readable already.
    pub fn ring(&self) {
        let _ = io::retry_on_intr(|| io::write(&self.0, &1_u64.to_ne_bytes()));
    }

    /// Subscriber: takes what publishers wrote, so that it is not readable any more. Gives back how often they did.
    pub fn drain(&self) -> u64 {
        let mut bytes = [0; 8];
        match io::retry_on_intr(|| io::read(&self.0, &mut bytes)) {
            Ok(8) => u64::from_ne_bytes(bytes),
            _ => 0,
        }
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// For a thread that has nothing but this to wait for; what stands in the word is not looked at.
impl Park for EventFd {
    fn sleep(&self, _: &AtomicU32, _: u32, longest: Duration) {
        let timeout = Timespec {
            tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(longest.subsec_nanos()),
        };
        let _ = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout));
    }

    fn wake(&self, _: &AtomicU32) {
        self.ring();
    }
}
