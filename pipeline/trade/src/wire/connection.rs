//! td's connection to an exchange. After the logon it never blocks, and allocates nothing.

use super::{GatewayAddress, WireClock, machine, receiver::nanoseconds, refused};
use lowlat_feed::gateway::{Kind, MESSAGE_BYTES, Message};
use lowlat_node::{Refusal, records::Origin};
use nix::{
    cmsg_space, libc,
    sys::{
        socket::{
            ControlMessageOwned, MsgFlags, TimestampingFlag, Timestamps, recvmsg, send, setsockopt,
            sockaddr_in6, sockopt,
        },
        time::TimeSpec,
    },
};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    collections::VecDeque,
    io::{self, IoSliceMut, Read, Write},
    os::fd::AsRawFd,
    time::Duration,
};

/// Time for connecting and for the logon.
const LOGON_TIME_MAX: Duration = Duration::from_secs(5);
/// Orders that wait for their send stamp; of more, the oldest ones stay without.
const TRIPS_MAX: usize = 8192;
const INPUT_BYTES: usize = MESSAGE_BYTES * 128;

/// An order's way through the pipeline, until its send stamp arrives. Times are in the pipeline's clock, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Trip {
    /// Number of its last byte in the connection.
    pub(crate) key: u32,
    pub(crate) origin: Origin,
    /// Receive stamp of the packet.
    pub(crate) packet_ns: u64,
    /// When md published the quote.
    pub(crate) published_ns: u64,
    /// When the strategy had read it.
    pub(crate) received_ns: u64,
    /// When the strategy wrote the order.
    pub(crate) written_ns: u64,
    /// When td had read it.
    pub(crate) read_ns: u64,
    /// When td called send.
    pub(crate) send_ns: u64,
}

/// A connection that has logged on.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    pub(crate) clock: WireClock,
    control: Vec<u8>,
    input: Box<[u8; INPUT_BYTES]>,
    /// Bytes of the input that are not yet decoded.
    unread: std::ops::Range<usize>,
    /// A message that was sent in part, and the bytes that remain.
    tail: Option<([u8; MESSAGE_BYTES], usize)>,
    /// Bytes given to the kernel, as it counts them for stamps.
    bytes: u32,
    trips: VecDeque<Trip>,
    /// Trips that got no stamp.
    pub(crate) unstamped: u64,
    /// Reason why it is lost; `None` while it is open.
    lost: Option<String>,
    /// Both ends have the same address.
    pub(crate) is_loopback: bool,
    /// The exchange runs on this machine.
    pub(crate) is_same_machine: bool,
    /// Its CPU on this machine.
    pub(crate) exchange_cpu: Option<u32>,
}

impl Connection {
    /// Connects and logs on.
    pub(crate) fn open(address: GatewayAddress) -> Result<Self, Refusal> {
        let hint = "start the exchange first, for example `lowlat pipeline exchange`";
        Self::try_open(address).map_err(refused(format!("log on to the exchange {address}"), hint))
    }

    fn try_open(GatewayAddress(to): GatewayAddress) -> io::Result<Self> {
        let mut socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.connect_timeout(&to.into(), LOGON_TIME_MAX)?;
        socket.set_tcp_nodelay(true)?;
        let flags = TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
            | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
        setsockopt(&socket, sockopt::Timestamping, &flags)?;
        socket.set_read_timeout(Some(LOGON_TIME_MAX))?;
        socket.set_write_timeout(Some(LOGON_TIME_MAX))?;
        socket.write_all(&Message::of(Kind::Logon).encode())?;
        let mut answer = [0; MESSAGE_BYTES];
        socket.read_exact(&mut answer)?;
        let peer = match Message::decode(&answer) {
            Ok(message @ Message { kind: Kind::LoggedOn, .. }) => message,
            Ok(other) => return Err(io::Error::other(format!("it answered {:?} to the logon", other.kind))),
            Err(error) => return Err(io::Error::other(error)),
        };
        let is_same_machine = peer.id != 0 && peer.id == machine();
        let near = socket.local_addr()?.as_socket().map(|near| near.ip());
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            clock: WireClock::new(),
            control: cmsg_space!(Timestamps, [TimeSpec; 2], libc::sock_extended_err, sockaddr_in6),
            input: Box::new([0; INPUT_BYTES]),
            unread: 0..0,
            tail: None,
            bytes: u32::try_from(MESSAGE_BYTES).unwrap_or(0),
            trips: VecDeque::with_capacity(TRIPS_MAX),
            unstamped: 0,
            lost: None,
            is_loopback: near == Some(to.ip()),
            is_same_machine,
            exchange_cpu: peer.quantity.checked_sub(1).filter(|_| is_same_machine),
        })
    }

    /// Reason why the connection is lost, if it is.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Marks it as lost; the first reason is kept.
    #[cold]
    pub(crate) fn lose(&mut self, why: &impl ToString) {
        self.lost.get_or_insert_with(|| why.to_string());
    }

    /// True if send stamps are outstanding.
    pub(crate) fn has_trips(&self) -> bool {
        !self.trips.is_empty()
    }

    /// Sends a message. Returns false if the connection is lost or its buffer is full: nothing was sent then.
    #[inline]
    pub(crate) fn send(&mut self, message: &Message, trip: Option<Trip>) -> bool {
        if self.lost.is_some() || !self.flush() {
            return false;
        }
        let bytes = message.encode();
        let sent = self.write(&bytes);
        if sent == 0 {
            return false;
        }
        if sent < bytes.len() {
            self.tail = Some((bytes, sent));
        }
        self.bytes = self.bytes.wrapping_add(u32::try_from(bytes.len()).unwrap_or(0));
        if let Some(trip) = trip {
            if self.trips.len() >= TRIPS_MAX {
                self.trips.pop_front();
                self.unstamped += 1;
            }
            self.trips.push_back(Trip { key: self.bytes.wrapping_sub(1), ..trip });
        }
        true
    }

    /// Returns the bytes sent; 0 if the buffer is full or the connection is lost.
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> usize {
        // The end of a record: the kernel does not merge the next message into its packet, which would take its stamp.
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_EOR;
        match send(self.socket.as_raw_fd(), bytes, flags) {
            Ok(sent) => sent,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => 0,
            Err(errno) => {
                self.lose(&io::Error::from(errno));
                0
            }
        }
    }

    /// Sends the rest of a message. Returns whether another one can follow.
    fn flush(&mut self) -> bool {
        let Some((bytes, from)) = self.tail else { return true };
        let sent = from + self.write(bytes.get(from..).unwrap_or_default());
        let is_whole = sent == bytes.len();
        self.tail = (!is_whole).then_some((bytes, sent));
        is_whole
    }

    /// The next message of the exchange, if one has arrived.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Message> {
        if self.unread.len() < MESSAGE_BYTES && !self.fill() {
            return None;
        }
        let bytes = self.input.get(self.unread.start..)?.first_chunk()?;
        self.unread.start += MESSAGE_BYTES;
        match Message::decode(bytes) {
            Ok(message) => Some(message),
            Err(error) => {
                self.lose(&format!("its message is damaged: {error}"));
                None
            }
        }
    }

    /// Reads what has arrived. Returns whether that is a message.
    fn fill(&mut self) -> bool {
        if self.lost.is_some() {
            return false;
        }
        self.flush();
        self.input.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        let free = self.input.get_mut(self.unread.end..).unwrap_or_default();
        match self.socket.read(free) {
            Ok(0) => self.lose(&"the exchange closed it"),
            Ok(count) => self.unread.end += count,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => self.lose(&error),
        }
        self.unread.len() >= MESSAGE_BYTES
    }

    /// The next order whose send stamp has arrived, with the stamp in CLOCK_REALTIME, ns.
    pub(crate) fn next_stamp(&mut self) -> Option<(Trip, u64)> {
        while !self.trips.is_empty() {
            let (key, stamp_ns) = self.read_stamp()?;
            while let Some(trip) = self.trips.front().copied() {
                // The distance of two numbers that wrap around.
                if key.wrapping_sub(trip.key).cast_signed() < 0 {
                    break;
                }
                self.trips.pop_front();
                if trip.key == key {
                    return Some((trip, stamp_ns));
                }
                self.unstamped += 1;
            }
        }
        None
    }

    /// A send stamp and the number of the last byte that it covers.
    fn read_stamp(&mut self) -> Option<(u32, u64)> {
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let mut slices: [IoSliceMut<'_>; 0] = [];
        let message =
            recvmsg::<()>(self.socket.as_raw_fd(), &mut slices, Some(&mut self.control), flags).ok()?;
        let (mut stamp_ns, mut key) = (0, None);
        for control in message.cmsgs().ok()? {
            match control {
                ControlMessageOwned::ScmTimestampsns(stamps) => stamp_ns = nanoseconds(stamps.system),
                ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _)
                    if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING =>
                {
                    key = Some(error.ee_data);
                }
                _ => {}
            }
        }
        key.map(|key| (key, stamp_ns))
    }

    /// Gives up the stamps that have not arrived.
    pub(crate) fn forget_trips(&mut self) {
        self.unstamped += u64::try_from(self.trips.len()).unwrap_or(u64::MAX);
        self.trips.clear();
    }
}
