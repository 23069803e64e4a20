//! One end of a control socket.

use crate::clock::now_ns;
use lowlat_ipc::{
    passing::{self, MESSAGE_BYTES_MAX, Received},
    region::{Access, Memfd},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::VecDeque,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};
use thiserror::Error;

/// Why a message is not sent or not understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireError {
    /// Too long.
    #[error("a control message of {bytes} bytes, {MESSAGE_BYTES_MAX} are the most; use shorter names")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Not what it must be.
    #[error("control message {text:?}: {cause}; use one lowlat for all processes")]
    Malformed {
        /// The text, cut.
        text: String,
        /// What is wrong.
        cause: String,
    },
    /// The socket does not work.
    #[error("control socket: {0}")]
    Socket(Errno),
}

/// Memory that goes with a message, and what its receiver may do with it.
#[derive(Debug, Clone)]
pub struct Lent {
    memory: Arc<Memfd>,
    access: Access,
}

impl Lent {
    /// Memory with a descriptor that gives this access.
    pub fn new(memory: &Arc<Memfd>, access: Access) -> Self {
        Self { memory: Arc::clone(memory), access }
    }

    /// Memory that the receiver writes.
    pub fn to_write(memory: &Arc<Memfd>) -> Self {
        Self::new(memory, Access::Write)
    }

    /// Memory that the receiver only reads.
    pub fn to_read(memory: &Arc<Memfd>) -> Self {
        Self::new(memory, Access::Read)
    }
}

/// A message that waits to be sent. Descriptors are opened when it is, so that a queue holds none.
#[derive(Debug)]
struct Outgoing {
    bytes: Vec<u8>,
    memory: Vec<Lent>,
}

impl Outgoing {
    fn send(&self, socket: &OwnedFd) -> Result<(), Errno> {
        // Those opened for this message, which are closed once it is sent.
        let mut opened = Vec::new();
        for lent in self.memory.iter().filter(|lent| lent.access == Access::Read) {
            opened.push(lent.memory.reader_fd().map_err(|error| error.errno())?);
        }
        let mut read_only = opened.iter();
        let descriptors = self.memory.iter().filter_map(|lent| match lent.access {
            Access::Read => read_only.next().map(AsFd::as_fd),
            Access::Write => Some(lent.memory.writer_fd()),
        });
        passing::send(socket, &self.bytes, &descriptors.collect::<Vec<_>>())
    }
}

/// A socket that never blocks; what it cannot send waits in a queue.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    queue: VecDeque<Outgoing>,
}

impl Socket {
    /// Takes a connected, non-blocking SOCK_SEQPACKET socket.
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd, queue: VecDeque::new() }
    }

    /// The descriptor, for poll(2).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Puts a message into the queue and sends what can be sent. True when the queue is empty after it.
    pub fn send(&mut self, message: &impl Serialize, memory: Vec<Lent>) -> Result<bool, WireError> {
        let bytes = serde_json::to_vec(message)
            .map_err(|error| WireError::Malformed { text: String::new(), cause: error.to_string() })?;
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(WireError::TooLong { bytes: bytes.len() });
        }
        self.queue.push_back(Outgoing { bytes, memory });
        self.flush()
    }

    /// Sends what can be sent. True when the queue is empty after it. A peer that has closed is no error: what it said last, such as why it
    /// refuses, is still to be received, and then that it has closed.
    pub fn flush(&mut self) -> Result<bool, WireError> {
        while let Some(next) = self.queue.front() {
            match next.send(&self.fd) {
                Ok(()) => _ = self.queue.pop_front(),
                // The other side is slow, too many descriptors are on their way, or this process has too many open.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::TOOMANYREFS | Errno::MFILE | Errno::NFILE) => {
                    return Ok(false);
                }
                Err(Errno::PIPE | Errno::CONNRESET) => self.queue.clear(),
                Err(errno) => return Err(WireError::Socket(errno)),
            }
        }
        Ok(true)
    }

    /// Messages that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Whether something waits to be sent.
    pub fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The next message as it came.
    pub fn receive(&self) -> Result<Incoming, WireError> {
        let received = match passing::receive(&self.fd) {
            // Said once when the other side closed without having read everything; its last words come after that.
            Err(Errno::CONNRESET) => passing::receive(&self.fd),
            received => received,
        };
        match received {
            Ok(Some(received)) => Ok(Incoming::Message(received)),
            Ok(None) | Err(Errno::CONNRESET | Errno::PIPE) => Ok(Incoming::Closed),
            Err(Errno::AGAIN) => Ok(Incoming::Nothing),
            Err(Errno::MSGSIZE) => Err(WireError::TooLong { bytes: MESSAGE_BYTES_MAX + 1 }),
            Err(errno) => Err(WireError::Socket(errno)),
        }
    }

    /// Waits for a message, or until the time. Sends meanwhile what waits.
    pub fn receive_until(&mut self, until_ns: u64) -> Result<Incoming, WireError> {
        loop {
            self.flush()?;
            match self.receive()? {
                Incoming::Nothing => {}
                other => return Ok(other),
            }
            let now = now_ns();
            if now >= until_ns {
                return Ok(Incoming::Nothing);
            }
            let flags = if self.is_waiting() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            let timeout = timespec((until_ns - now).min(100_000_000));
            match poll(&mut [PollFd::new(&self.fd, flags)], Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(WireError::Socket(errno)),
            }
        }
    }
}

/// What a look at a socket gives.
#[derive(Debug)]
pub enum Incoming {
    /// Nothing is there.
    Nothing,
    /// A message.
    Message(Received),
    /// The other side is gone.
    Closed,
}

/// A duration in nanoseconds, for system calls.
pub(crate) fn timespec(ns: u64) -> Timespec {
    let part = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    Timespec { tv_sec: part(ns / 1_000_000_000), tv_nsec: part(ns % 1_000_000_000) }
}

/// Reads a message.
pub fn parse<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, WireError> {
    serde_json::from_slice(bytes).map_err(|error| WireError::Malformed {
        text: String::from_utf8_lossy(bytes).chars().take(200).collect(),
        cause: error.to_string(),
    })
}
