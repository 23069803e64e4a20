//! One end of the data path: sends a message, waits for one.

use super::{
    calls::{self, Wait},
    ring::Ring,
};
use lowlat_net::pingpong::{Muxer, Scenario, Waiting};
use std::{
    fmt, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Busy polling in the receiving call, in microseconds (SOL_SOCKET).
const SO_BUSY_POLL: i32 = 46;
/// Id of the queue that delivered the last message (SOL_SOCKET).
const SO_INCOMING_NAPI_ID: i32 = 56;
/// Prefers busy polling to the interrupt of the queue (SOL_SOCKET, Linux 5.11).
const SO_PREFER_BUSY_POLL: i32 = 69;

/// Why messages ended.
#[derive(Debug)]
pub enum Ended {
    /// The run was stopped.
    Stopped,
    /// The other end closed.
    Closed,
    /// A datagram of another size than expected arrived.
    WrongSize {
        /// Its size.
        bytes: usize,
        /// The expected size.
        expected: usize,
    },
    /// A system call failed.
    Failed(io::Error),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::Closed => f.write_str("the peer closed the data connection"),
            Self::WrongSize { bytes, expected } => {
                write!(f, "a message of {bytes} bytes arrived instead of {expected}")
            }
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// What both threads of an end share: the one that passes messages and the one that watches it.
#[derive(Debug, Default)]
pub struct Shared {
    /// Ends the loop of messages.
    is_stopped: AtomicBool,
    /// Messages that arrived.
    arrived: AtomicU64,
}

impl Shared {
    /// Asks the loop of messages to end. A thread that sleeps must also be woken: [`Wires::wake`].
    pub fn stop(&self) {
        // Relaxed: pairs with the load in `is_stopped`; orders nothing else.
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the loop of messages is to end.
    pub fn is_stopped(&self) -> bool {
        // Relaxed: pairs with the store in `stop`.
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Messages that arrived so far.
    pub fn arrived(&self) -> u64 {
        // Relaxed: pairs with the store in `Link::receive`; only compared with itself.
        self.arrived.load(Ordering::Relaxed)
    }
}

/// Descriptors of an end.
#[derive(Debug, Clone)]
pub enum Wires {
    /// Sockets: one for both directions, except with multicast.
    Sockets {
        /// Where messages arrive.
        receive: Arc<OwnedFd>,
        /// Where messages leave.
        send: Arc<OwnedFd>,
    },
    /// Two pipes.
    Pipes {
        /// Where messages arrive.
        receive: Arc<OwnedFd>,
        /// Where messages leave.
        send: Arc<OwnedFd>,
        /// The other side of `receive`, to wake the thread that reads it.
        wake: Arc<OwnedFd>,
    },
}

impl Wires {
    /// One socket for both directions.
    pub fn socket(socket: impl Into<OwnedFd>) -> Self {
        let socket = Arc::new(socket.into());
        Self::Sockets { receive: Arc::clone(&socket), send: socket }
    }

    /// Wakes the thread that waits for a message; it finds out that it is stopped.
    pub fn wake(&self) {
        match self {
            Self::Sockets { receive, send } => {
                for socket in [receive, send] {
                    // An unconnected datagram socket answers ENOTCONN, but wakes its readers too.
                    let _ = rustix::net::shutdown(socket.as_fd(), rustix::net::Shutdown::Both);
                }
            }
            Self::Pipes { wake, .. } => {
                // A full pipe has a reader that is awake.
                let _ = calls::write(wake.as_fd(), &[0]);
            }
        }
    }

    /// The descriptor where messages arrive.
    pub fn receiving(&self) -> BorrowedFd<'_> {
        let (Self::Sockets { receive, .. } | Self::Pipes { receive, .. }) = self;
        receive.as_fd()
    }

    fn is_pipe(&self) -> bool {
        matches!(self, Self::Pipes { .. })
    }

    /// Returns the id of the queue that delivered the last message; `None` where the kernel knows none.
    pub fn napi_id(&self) -> Option<u32> {
        let Self::Sockets { receive, .. } = self else { return None };
        let id = calls::option(receive.as_fd(), libc::SOL_SOCKET, SO_INCOMING_NAPI_ID).ok()?;
        Some(id.cast_unsigned())
    }
}

/// How an end waits.
#[derive(Debug)]
enum Waiter {
    /// In the receiving call.
    Receive(Wait),
    /// In `select` or `poll`.
    Call(fn(BorrowedFd<'_>, Wait) -> io::Result<bool>, Wait),
    /// In `epoll_wait`.
    Epoll(OwnedFd, Wait),
    /// In `io_uring`.
    Ring(Box<Ring>, Wait),
}

/// One end of the data path.
#[derive(Debug)]
pub struct Link {
    wires: Wires,
    waiter: Waiter,
    shared: Arc<Shared>,
    buffer: Vec<u8>,
    is_stream: bool,
    is_quickack: bool,
    arrived: u64,
}

impl Link {
    /// Sets up an end for a scenario, with a touched buffer for its largest message.
    ///
    /// # Errors
    /// If the kernel lacks the waiting mode.
    pub fn new(wires: Wires, scenario: &Scenario, shared: Arc<Shared>) -> io::Result<Self> {
        let waiter = waiter(&wires, scenario)?;
        let bytes = scenario.sizes.iter().copied().max().unwrap_or(0);
        // One byte more than the largest message shows a datagram that is too long.
        let buffer = vec![0x5a; usize::try_from(bytes).unwrap_or(0) + 1];
        let is_stream = scenario.transport.is_stream();
        let is_quickack = scenario.is_quickack && scenario.transport == lowlat_net::pingpong::Transport::Tcp;
        Ok(Self { wires, waiter, shared, buffer, is_stream, is_quickack, arrived: 0 })
    }

    /// The descriptors.
    pub fn wires(&self) -> &Wires {
        &self.wires
    }

    /// Sends a message of this size.
    ///
    /// # Errors
    /// [`Ended`] if it cannot be sent.
    pub fn send(&mut self, bytes: usize) -> Result<(), Ended> {
        let mut left = self.buffer.get(..bytes).unwrap_or_default();
        loop {
            let result = match &self.wires {
                Wires::Sockets { send, .. } => calls::send(send.as_fd(), left),
                Wires::Pipes { send, .. } => calls::write(send.as_fd(), left),
            };
            match result {
                Ok(sent) if sent >= left.len() => return Ok(()),
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
                Err(error) => return Err(self.failed(error)),
            }
            if self.shared.is_stopped() {
                return Err(Ended::Stopped);
            }
        }
    }

    /// Waits for a message of this size.
    ///
    /// # Errors
    /// [`Ended`] if none arrives.
    pub fn receive(&mut self, bytes: usize) -> Result<(), Ended> {
        if self.is_stream {
            let mut have = 0;
            while have < bytes {
                match self.receive_some(have, bytes)? {
                    0 => return Err(self.ended()),
                    some => have += some,
                }
            }
        } else {
            let end = self.buffer.len();
            let length = self.receive_some(0, end)?;
            if length == 0 && self.shared.is_stopped() {
                return Err(Ended::Stopped);
            }
            if length != bytes {
                return Err(Ended::WrongSize { bytes: length, expected: bytes });
            }
        }
        self.arrived += 1;
        // Relaxed: pairs with the load in `Shared::arrived`; this thread is the only writer.
        self.shared.arrived.store(self.arrived, Ordering::Relaxed);
        if self.is_quickack {
            // The kernel turns it off again on its own.
            let _ = calls::set_option(self.wires.receiving(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
        }
        Ok(())
    }

    /// Receives what is there, into a part of the buffer, and waits until something is.
    fn receive_some(&mut self, from: usize, to: usize) -> Result<usize, Ended> {
        let Self { wires, waiter, shared, buffer, .. } = self;
        let into = buffer.get_mut(from..to).unwrap_or_default();
        let fd = wires.receiving();
        if let Waiter::Ring(ring, wait) = waiter {
            return ring.receive(fd, into, *wait, || shared.is_stopped());
        }
        loop {
            let is_ready = match waiter {
                Waiter::Receive(_) => Ok(true),
                Waiter::Call(call, wait) => call(fd, *wait),
                Waiter::Epoll(epoll, wait) => calls::epoll_in(epoll.as_fd(), *wait),
                Waiter::Ring(..) => Ok(false),
            };
            let wait = if let Waiter::Receive(wait) = waiter { *wait } else { Wait::Not };
            let received = match is_ready {
                Ok(true) if wires.is_pipe() => calls::read(fd, into),
                Ok(true) => calls::receive(fd, into, wait),
                Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
                Err(error) => Err(error),
            };
            match received {
                Ok(bytes) => return Ok(bytes),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    if shared.is_stopped() {
                        return Err(Ended::Stopped);
                    }
                }
                Err(error) => return Err(Ended::Failed(error)),
            }
        }
    }

    fn ended(&self) -> Ended {
        if self.shared.is_stopped() { Ended::Stopped } else { Ended::Closed }
    }

    fn failed(&self, error: io::Error) -> Ended {
        if self.shared.is_stopped() { Ended::Stopped } else { Ended::Failed(error) }
    }
}

/// Sets the waiting mode on the descriptors.
fn waiter(wires: &Wires, scenario: &Scenario) -> io::Result<Waiter> {
    let fd = wires.receiving();
    let (waiting, busy_poll_us) = (scenario.waiting, scenario.busy_poll_us);
    let wait = if waiting.spins() { Wait::Not } else { Wait::Sleep };
    if waiting == Waiting::BusyPoll && scenario.muxer != Muxer::IoUring {
        let micros = i32::try_from(busy_poll_us).unwrap_or(i32::MAX);
        calls::set_option(fd, libc::SOL_SOCKET, SO_BUSY_POLL, micros)?;
    }
    if waiting.polls_queue() {
        // Kernels before 5.11 lack it; polling works without.
        let _ = calls::set_option(fd, libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, 1);
    }
    if wires.is_pipe()
        && (scenario.muxer != Muxer::None || wait == Wait::Not)
        && scenario.muxer != Muxer::IoUring
    {
        // A pipe has no flag for one call.
        let flags = rustix::fs::fcntl_getfl(fd)?;
        rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)?;
    }
    Ok(match scenario.muxer {
        Muxer::None => Waiter::Receive(wait),
        Muxer::Select => Waiter::Call(calls::select_in, wait),
        Muxer::Poll => Waiter::Call(calls::poll_in, wait),
        Muxer::Epoll => {
            let epoll = calls::epoll_of(fd)?;
            if waiting.polls_queue() {
                let is_preferred = waiting == Waiting::SuspendedIrq;
                calls::epoll_busy_poll(epoll.as_fd(), busy_poll_us, is_preferred)?;
            }
            Waiter::Epoll(epoll, wait)
        }
        Muxer::IoUring => {
            let busy_poll = (waiting == Waiting::BusyPoll).then_some(busy_poll_us);
            Waiter::Ring(Box::new(Ring::new(wires.is_pipe(), busy_poll)?), wait)
        }
    })
}
