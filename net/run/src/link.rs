//! One end of the data path: sends a message, waits for one.

mod numbers;
mod stamped;

use super::{
    calls::{self, Wait},
    place,
    ring::Ring,
    stamps::Stamper,
    xdp,
};
use lowlat_host::CpuId;
use lowlat_net::pingpong::{Muxer, Scenario, Transport, Waiting};
use numbers::MessageNumbers;
pub use numbers::{Side, Strays};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use thiserror::Error;

/// Busy polling in the receiving call, in microseconds (SOL_SOCKET).
const SO_BUSY_POLL: i32 = 46;
/// Id of the queue that delivered the last message (SOL_SOCKET).
const SO_INCOMING_NAPI_ID: i32 = 56;
/// CPU on which the last packet was handled (SOL_SOCKET).
const SO_INCOMING_CPU: i32 = 49;
/// Prefers busy polling to the interrupt of the queue (SOL_SOCKET, Linux 5.11).
const SO_PREFER_BUSY_POLL: i32 = 69;

/// Times that an end answers that a message was lost.
const GIVE_UP_TIMES: u32 = 3;
/// Datagrams thrown away after a loss: a socket that is shut down always has one more.
const DRAINED_MAX: u64 = 1_000;

/// Reason why messages ended early.
#[derive(Debug, Error)]
pub enum Ended {
    #[error("stopped")]
    Stopped,
    #[error("the peer closed the data connection")]
    Closed,
    /// The other end has given up a message.
    #[error("a message was lost")]
    Lost,
    #[error("a message of {bytes} bytes arrived instead of {expected}")]
    WrongSize { bytes: usize, expected: usize },
    #[error(transparent)]
    Failed(io::Error),
}

/// State that both threads of an end share: the one that passes messages and the one that watches it.
#[derive(Debug, Default)]
pub struct Shared {
    /// Ends the loop of messages.
    is_stopped: AtomicBool,
    arrived: AtomicU64,
    /// Number of the first message of the batch.
    first: AtomicU64,
}

impl Shared {
    /// Asks the loop of messages to end. A thread that sleeps must also be woken: [`Wires::wake`].
    pub fn stop(&self) {
        // Relaxed: pairs with the load in `is_stopped`; orders nothing else.
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// True if the loop of messages is to end.
    pub fn is_stopped(&self) -> bool {
        // Relaxed: pairs with the store in `stop`.
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Returns why the loop of messages ended: it was to end, or `otherwise`.
    pub fn ended(&self, otherwise: Ended) -> Ended {
        if self.is_stopped() { Ended::Stopped } else { otherwise }
    }

    /// Messages that arrived so far.
    pub fn arrived(&self) -> u64 {
        // Relaxed: pairs with the store in `Link::receive`; only compared with itself.
        self.arrived.load(Ordering::Relaxed)
    }

    /// Number of the first message of the batch, for [`Wires::give_up`].
    pub fn first(&self) -> u64 {
        // Relaxed: pairs with the store in `Link::begin`; a give-up of the batch before is ignored.
        self.first.load(Ordering::Relaxed)
    }
}

/// Descriptors that an end receives from and sends to.
#[derive(Debug, Clone)]
pub enum Wires {
    /// Sockets: one for both directions, except with multicast.
    Sockets { receive: Arc<OwnedFd>, send: Arc<OwnedFd> },
    /// Two pipes, one for each direction.
    /// - `wake`: the other side of `receive`, to wake the thread that reads it.
    Pipes { receive: Arc<OwnedFd>, send: Arc<OwnedFd>, wake: Arc<OwnedFd> },
    /// - `udp`: A socket of the kernel that keeps the port.
    /// - `port`: the sockets, until a link takes them.
    Xdp { udp: Arc<OwnedFd>, port: Arc<Mutex<Option<Box<xdp::Port>>>> },
}

impl Wires {
    /// One socket for both directions.
    pub fn socket(socket: impl Into<OwnedFd>) -> Self {
        let socket = Arc::new(socket.into());
        Self::Sockets { receive: Arc::clone(&socket), send: socket }
    }

    /// Wakes the thread that waits for a message; it then finds that it is stopped.
    pub fn wake(&self) {
        match self {
            Self::Sockets { receive, send } => {
                for socket in [receive, send] {
                    // An unconnected datagram socket answers ENOTCONN, but wakes its readers too.
                    let _ = rustix::net::shutdown(socket.as_fd(), rustix::net::Shutdown::Both);
                }
            }
            Self::Pipes { wake, .. } => {
                // If the pipe is full, its reader is awake.
                let _ = calls::write(wake.as_fd(), &[0]);
            }
            // Its thread never sleeps for long.
            Self::Xdp { .. } => {}
        }
    }

    /// Sends the datagram that reports the loss of one of this size, in the batch that starts with this number. It is
    /// repeated until the other end answers with the same, so it may be lost too.
    pub fn give_up(&self, bytes: usize, first: u64) {
        if let Self::Sockets { send, .. } = self {
            let mut datagram = vec![0x5a; calls::lost_bytes(bytes)];
            numbers::write(&mut datagram, first);
            let _ = calls::send(send.as_fd(), &datagram, Wait::Sleep);
        }
    }

    /// The descriptor where messages arrive.
    pub fn receiving(&self) -> BorrowedFd<'_> {
        let (Self::Sockets { receive, .. } | Self::Pipes { receive, .. } | Self::Xdp { udp: receive, .. }) =
            self;
        receive.as_fd()
    }

    fn is_pipe(&self) -> bool {
        matches!(self, Self::Pipes { .. })
    }

    /// AF_XDP sockets, with the socket of the kernel that keeps their port.
    pub fn xdp(udp: impl Into<OwnedFd>, port: xdp::Port) -> Self {
        Self::Xdp { udp: Arc::new(udp.into()), port: Arc::new(Mutex::new(Some(Box::new(port)))) }
    }
}

/// Call or rings in which an end waits.
#[derive(Debug)]
enum LinkWaiter {
    Receive(Wait),
    /// `select` or `poll`, before the receiving call.
    Call(fn(BorrowedFd<'_>, Wait) -> io::Result<bool>, Wait),
    Epoll(OwnedFd, Wait),
    Ring(Box<Ring>, Wait),
    /// The rings of AF_XDP sockets.
    Xdp(Box<xdp::Port>),
}

/// One end of the data path.
#[derive(Debug)]
pub struct Link {
    wires: Wires,
    waiter: LinkWaiter,
    shared: Arc<Shared>,
    buffer: Vec<u8>,
    is_stream: bool,
    /// A message can be lost without ending the run.
    may_lose: bool,
    is_quickack: bool,
    arrived: u64,
    /// The scenario's sizes, by which a late message is known.
    sizes: Vec<usize>,
    /// Numbers of the messages, where one can be lost or repeated; `None` until the first batch.
    numbers: Option<MessageNumbers>,
    /// Time stamps of the batch in progress, if it is to have some.
    stamper: Option<Box<Stamper>>,
}

impl Link {
    /// Sets up the calling thread's end for a scenario, with a touched buffer for its largest message. It has a private
    /// table of descriptors unless it takes over some that it must close everywhere: those of AF_XDP, and the traces of
    /// the parts.
    ///
    /// # Errors
    /// If the kernel lacks the waiting mode.
    pub fn of_thread(wires: &Wires, scenario: &Scenario, shared: Arc<Shared>) -> io::Result<Self> {
        let transport = scenario.transport;
        if !scenario.has_parts && transport != Transport::Xdp {
            place::own_descriptors();
        }
        let bytes = scenario.sizes.iter().copied().max().unwrap_or(0);
        Ok(Self {
            waiter: waiter(wires, scenario)?,
            wires: wires.clone(),
            shared,
            // One byte more than the largest message shows a datagram that is too long.
            buffer: vec![0x5a; usize::try_from(bytes).unwrap_or(0) + 1],
            is_stream: transport.is_stream(),
            may_lose: transport.may_lose(),
            is_quickack: scenario.is_quickack && transport == Transport::Tcp,
            arrived: 0,
            sizes: scenario.sizes.iter().filter_map(|bytes| usize::try_from(*bytes).ok()).collect(),
            numbers: None,
            stamper: None,
        })
    }

    /// Returns the id of the queue that delivered the last message; `None` where the kernel knows none.
    pub fn napi_id(&self) -> Option<u32> {
        let socket = match (&self.wires, &self.waiter) {
            (_, LinkWaiter::Xdp(port)) => port.active()?,
            (Wires::Sockets { receive, .. }, _) => receive.as_fd(),
            _ => return None,
        };
        let id = calls::option(socket, libc::SOL_SOCKET, SO_INCOMING_NAPI_ID).ok()?;
        Some(id.cast_unsigned())
    }

    /// Returns the CPU on which the kernel handled the last packet; `None` where it knows none.
    pub fn incoming_cpu(&self) -> Option<CpuId> {
        let Wires::Sockets { receive, .. } = &self.wires else { return None };
        let cpu = calls::option(receive.as_fd(), libc::SOL_SOCKET, SO_INCOMING_CPU).ok()?;
        CpuId::try_from(cpu).ok()
    }

    /// Returns how many datagrams the kernel has dropped because the socket was full; `None` where it does not count
    /// them, or counts other things there.
    pub fn dropped(&self) -> Option<u32> {
        if self.is_stream { None } else { calls::dropped(self.wires.receiving()) }
    }

    /// The message that arrived last; longer if that was short.
    pub fn message(&self) -> &[u8] {
        &self.buffer
    }

    /// Sends a message of this size.
    ///
    /// # Errors
    /// [`Ended`] if it cannot be sent.
    pub fn send(&mut self, bytes: usize) -> Result<(), Ended> {
        if let (Some(numbers), Some(message)) = (&mut self.numbers, self.buffer.get_mut(..bytes)) {
            numbers.send(message);
        }
        let mut left = self.buffer.get(..bytes).unwrap_or_default();
        if let LinkWaiter::Xdp(port) = &mut self.waiter {
            return port.send(left, || self.shared.is_stopped());
        }
        loop {
            let result = match &self.wires {
                Wires::Sockets { send, .. } => calls::send(send.as_fd(), left, Wait::Sleep),
                Wires::Pipes { send, .. } => calls::write(send.as_fd(), left),
                // Its waiter has sent above.
                Wires::Xdp { .. } => return Err(Ended::Closed),
            };
            match result {
                Ok(sent) if sent >= left.len() => return Ok(()),
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
                Err(error) => return Err(self.shared.ended(Ended::Failed(error))),
            }
            if self.shared.is_stopped() {
                return Err(Ended::Stopped);
            }
        }
    }

    /// Answers that a message of this size was lost: more than once, because the answer can be lost as well.
    pub fn give_up(&self, bytes: usize) {
        (0..GIVE_UP_TIMES).for_each(|_| self.wires.give_up(bytes, self.shared.first()));
    }

    /// Discards what has arrived for a batch that has ended. Returns the number of datagrams.
    pub fn drain(&mut self) -> u64 {
        let fd = self.wires.receiving();
        let mut drained = 0;
        while self.may_lose
            && drained < DRAINED_MAX
            && calls::receive(fd, &mut self.buffer, Wait::Not).is_ok()
        {
            drained += 1;
        }
        drained
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
                    0 => return Err(self.shared.ended(Ended::Closed)),
                    some => have += some,
                }
            }
        } else {
            while !self.receive_datagram(bytes)? {}
        }
        self.arrived += 1;
        // Relaxed: pairs with the load in `Shared::arrived`; this thread is the only writer.
        self.shared.arrived.store(self.arrived, Ordering::Relaxed);
        if self.is_quickack {
            // The kernel turns it off again automatically.
            let _ = calls::set_option(self.wires.receiving(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
        }
        Ok(())
    }

    /// Receives a datagram; `false` if it is not the awaited one, but a late or repeated one.
    fn receive_datagram(&mut self, bytes: usize) -> Result<bool, Ended> {
        let end = self.buffer.len();
        let length = self.receive_some(0, end)?;
        if length == 0 && self.shared.is_stopped() {
            return Err(Ended::Stopped);
        }
        let datagram = self.buffer.get(..length).unwrap_or_default();
        let Some(numbers) = &mut self.numbers else {
            return if length == bytes {
                Ok(true)
            } else {
                Err(Ended::WrongSize { bytes: length, expected: bytes })
            };
        };
        if length == bytes {
            return Ok(numbers.is_awaited(datagram));
        }
        if length == calls::lost_bytes(bytes) && numbers.is_of_batch(datagram) {
            return Err(Ended::Lost);
        }
        let is_of_other_size = |size: &usize| [*size, calls::lost_bytes(*size)].contains(&length);
        if length == calls::lost_bytes(bytes) || self.sizes.iter().any(is_of_other_size) {
            numbers.count_late();
            return Ok(false);
        }
        Err(Ended::WrongSize { bytes: length, expected: bytes })
    }

    /// Receives available data into a part of the buffer; waits if there is none.
    fn receive_some(&mut self, from: usize, to: usize) -> Result<usize, Ended> {
        let Self { wires, waiter, shared, buffer, stamper, .. } = self;
        let into = buffer.get_mut(from..to).unwrap_or_default();
        if let LinkWaiter::Xdp(port) = waiter {
            return port.receive(into, || shared.is_stopped());
        }
        let fd = wires.receiving();
        if let LinkWaiter::Ring(ring, wait) = waiter {
            return ring.receive(fd, into, *wait, || shared.is_stopped());
        }
        loop {
            let is_ready = match waiter {
                LinkWaiter::Receive(_) => Ok(true),
                LinkWaiter::Call(call, wait) => call(fd, *wait),
                LinkWaiter::Epoll(epoll, wait) => calls::epoll_in(epoll.as_fd(), *wait),
                LinkWaiter::Ring(..) | LinkWaiter::Xdp(_) => Ok(false),
            };
            let is_muxed = !matches!(waiter, LinkWaiter::Receive(_)) && matches!(is_ready, Ok(true));
            let wait = if let LinkWaiter::Receive(wait) = waiter { *wait } else { Wait::Not };
            let received = match is_ready {
                Ok(true) if wires.is_pipe() => calls::read(fd, into),
                Ok(true) => match stamper.as_mut() {
                    None => calls::receive(fd, into, wait),
                    Some(stamper) => stamper.receive(into, wait),
                },
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
                    // Departures make a socket ready for a muxer, which would then not wait.
                    if let (Some(stamper), true) = (stamper.as_mut(), is_muxed) {
                        stamper.read_departures();
                    }
                }
                Err(error) => return Err(Ended::Failed(error)),
            }
        }
    }
}

/// Makes calls on a socket poll the queue of its NIC for this long.
pub fn busy_poll(fd: BorrowedFd<'_>, busy_poll_us: u32) -> io::Result<()> {
    let micros = i32::try_from(busy_poll_us).unwrap_or(i32::MAX);
    calls::set_option(fd, libc::SOL_SOCKET, SO_BUSY_POLL, micros)?;
    prefer_busy_poll(fd);
    Ok(())
}

fn prefer_busy_poll(fd: BorrowedFd<'_>) {
    // Kernels before 5.11 lack it; polling works without.
    let _ = calls::set_option(fd, libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, 1);
}

/// Sets the waiting mode on the descriptors.
fn waiter(wires: &Wires, scenario: &Scenario) -> io::Result<LinkWaiter> {
    if let Wires::Xdp { port, .. } = wires {
        let taken = port.lock().unwrap_or_else(PoisonError::into_inner).take();
        return taken.map(LinkWaiter::Xdp).ok_or_else(|| io::Error::other("the AF_XDP sockets are in use"));
    }
    let fd = wires.receiving();
    let (waiting, busy_poll_us) = (scenario.waiting, scenario.busy_poll_us);
    let wait = if waiting.spins() { Wait::Not } else { Wait::Sleep };
    if waiting == Waiting::BusyPoll && scenario.muxer != Muxer::IoUring {
        busy_poll(fd, busy_poll_us)?;
    } else if waiting.polls_queue() {
        prefer_busy_poll(fd);
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
        Muxer::None => LinkWaiter::Receive(wait),
        Muxer::Select => LinkWaiter::Call(calls::select_in, wait),
        Muxer::Poll => LinkWaiter::Call(calls::poll_in, wait),
        Muxer::Epoll => {
            let epoll = calls::epoll_of(fd)?;
            if waiting.polls_queue() {
                let is_preferred = waiting == Waiting::SuspendedIrq;
                calls::epoll_busy_poll(epoll.as_fd(), busy_poll_us, is_preferred)?;
            }
            LinkWaiter::Epoll(epoll, wait)
        }
        Muxer::IoUring => {
            let busy_poll = (waiting == Waiting::BusyPoll).then_some(busy_poll_us);
            LinkWaiter::Ring(Box::new(Ring::new(wires.is_pipe(), busy_poll)?), wait)
        }
    })
}
