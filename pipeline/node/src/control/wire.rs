//! One end of a control socket.

use crate::{
    clock::{monotonic_ns, timespec},
    refusal::Refusal,
};
use lowlat_ipc::{
    passing::{self, MESSAGE_BYTES_MAX, Received},
    region::{Access, Memfd},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::VecDeque,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

fn too_long(bytes: usize) -> Refusal {
    Refusal::new(format!(
        "cannot send a control message of {bytes} bytes: the maximum is {MESSAGE_BYTES_MAX}\nhint: use shorter names"
    ))
}

fn malformed(bytes: &[u8], cause: &postcard::Error) -> Refusal {
    Refusal::new(format!(
        "cannot parse a control message of {} bytes: {cause}\nhint: use one lowlat version for all processes",
        bytes.len()
    ))
}

fn failed(errno: Errno) -> Refusal {
    Refusal::new(format!("control socket: {errno}"))
}

/// Memory sent with a message, and the receiver's access to it.
#[derive(Debug, Clone)]
pub struct Lent {
    memory: Arc<Memfd>,
    access: Access,
}

impl Lent {
    /// Memory with a descriptor for this access.
    pub fn new(memory: &Arc<Memfd>, access: Access) -> Self {
        Self { memory: Arc::clone(memory), access }
    }

    /// Memory that the receiver writes.
    pub fn to_write(memory: &Arc<Memfd>) -> Self {
        Self::new(memory, Access::Write)
    }

    /// Memory that the receiver can only read.
    pub fn to_read(memory: &Arc<Memfd>) -> Self {
        Self::new(memory, Access::Read)
    }
}

/// A queued message. Descriptors are opened when it is sent, so that a queue holds none.
#[derive(Debug)]
struct QueuedMessage {
    bytes: Vec<u8>,
    memory: Vec<Lent>,
}

impl QueuedMessage {
    fn send(&self, socket: &OwnedFd) -> Result<(), Errno> {
        // Descriptors opened for this message, which are closed once it is sent.
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

/// A non-blocking socket; messages that cannot be sent yet are queued.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    queue: VecDeque<QueuedMessage>,
}

impl Socket {
    /// Wraps a connected, non-blocking SOCK_SEQPACKET socket.
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd, queue: VecDeque::new() }
    }

    /// The descriptor, for poll(2).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Queues a message and sends as much as possible. Returns true if the queue is empty afterwards.
    pub fn send(&mut self, message: &impl Serialize, memory: Vec<Lent>) -> Result<bool, Refusal> {
        let bytes = encode(message)?;
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(too_long(bytes.len()));
        }
        self.queue.push_back(QueuedMessage { bytes, memory });
        self.flush()
    }

    /// Sends as much as possible. Returns true if the queue is empty afterwards. A closed peer is not an error
    /// here: its last messages, such as a refusal, can still be received, and then the close.
    pub fn flush(&mut self) -> Result<bool, Refusal> {
        while let Some(next) = self.queue.front() {
            match next.send(&self.fd) {
                Ok(()) => _ = self.queue.pop_front(),
                // The peer is slow, too many descriptors are in flight, or this process has too many open.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::TOOMANYREFS | Errno::MFILE | Errno::NFILE) => {
                    return Ok(false);
                }
                Err(Errno::PIPE | Errno::CONNRESET) => self.queue.clear(),
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(true)
    }

    /// Number of queued messages.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// True if messages are queued.
    pub fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    pub fn receive(&self) -> Result<ReceiveOutcome, Refusal> {
        let received = match passing::receive(&self.fd) {
            // Reported once if the peer closed without having read everything; its last messages follow.
            Err(Errno::CONNRESET) => passing::receive(&self.fd),
            received => received,
        };
        match received {
            Ok(Some(received)) => Ok(ReceiveOutcome::Message(received)),
            Ok(None) | Err(Errno::CONNRESET | Errno::PIPE) => Ok(ReceiveOutcome::Closed),
            Err(Errno::AGAIN) => Ok(ReceiveOutcome::Nothing),
            Err(Errno::MSGSIZE) => Err(too_long(MESSAGE_BYTES_MAX + 1)),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Waits for a message until the deadline. Sends queued messages meanwhile.
    pub fn receive_until(&mut self, until_ns: u64) -> Result<ReceiveOutcome, Refusal> {
        loop {
            self.flush()?;
            match self.receive()? {
                ReceiveOutcome::Nothing => {}
                other => return Ok(other),
            }
            let now = monotonic_ns();
            if now >= until_ns {
                return Ok(ReceiveOutcome::Nothing);
            }
            let flags = if self.is_waiting() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            let timeout = timespec((until_ns - now).min(100_000_000));
            match poll(&mut [PollFd::new(&self.fd, flags)], Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
    }
}

#[derive(Debug)]
pub enum ReceiveOutcome {
    Nothing,
    Message(Received),
    Closed,
}

/// The bytes of a message.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    postcard::to_allocvec(message).map_err(|error| malformed(&[], &error))
}

pub fn parse<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, Refusal> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok(_) => Err(malformed(bytes, &postcard::Error::DeserializeBadEncoding)),
        Err(error) => Err(malformed(bytes, &error)),
    }
}

/// The version of the messages in a first message of any version; `None` if it is none.
pub fn version_of(bytes: &[u8]) -> Option<u32> {
    let ((message, version), _) = postcard::take_from_bytes::<(u32, u32)>(bytes).ok()?;
    (message < 2).then_some(version)
}
