//! Parameters of one run.

use super::{
    End,
    sizes::{COUNT_MAX, DATAGRAM_SIZES, STREAM_SIZES},
};
use crate::{
    words::words,
    xdp::{XdpEnds, XdpOptions},
};
use lowlat_host::{CPU_ID_MAX, CpuId};
use serde::{Deserialize, Serialize};
use std::{net::IpAddr, time::Duration};
use thiserror::Error;

/// Largest message of a byte stream, in bytes.
const STREAM_BYTES_MAX: u32 = 16 << 20;
/// Largest UDP payload over IPv4, in bytes.
const UDP_BYTES_MAX: u32 = 65_507;
/// Largest payload of a frame through AF_XDP, in bytes: a page without the room that the kernel takes and the headers.
/// The MTU may allow less.
const XDP_BYTES_MAX: u32 = 4_096 - 256 - 62;
/// Largest UDP payload of an Ethernet frame of the usual size, in bytes.
const ETHERNET_BYTES_MAX: u32 = 1_472;
/// Largest local datagram, in bytes; the kernel's default send buffer carries it.
const LOCAL_DATAGRAM_BYTES_MAX: u32 = 131_072;
/// Longest measurement of one size, in milliseconds: a day.
const TIME_MS_MAX: u64 = 86_400_000;
/// Highest rate, in messages per second.
const RATE_MAX: f64 = 10_000_000.0;

words! {
    /// Transport of the messages between the ends.
    Transport {
        Tcp = "tcp",
        /// UDP, both sockets connected.
        Udp = "udp",
        /// UDP to a multicast group, in both directions.
        UdpMulticast = "udp-multicast",
        /// UDP in Ethernet frames through AF_XDP sockets, past the kernel's network stack.
        Xdp = "xdp",
        /// A pair of Unix stream sockets.
        UnixStream = "unix-stream",
        /// A pair of Unix datagram sockets.
        UnixDatagram = "unix-datagram",
        /// A pair of Unix sequential-packet sockets.
        UnixSeqpacket = "unix-seqpacket",
        /// Two pipes.
        Pipe = "pipe",
    }
}

words! {
    /// The system call that waits for a message.
    Muxer {
        /// The receiving call itself, without a muxer.
        None = "none",
        Select = "select",
        Poll = "poll",
        Epoll = "epoll",
        /// `io_uring`, which also receives the message.
        IoUring = "io_uring",
    }
}

words! {
    /// Behaviour of a thread until its message arrives.
    Waiting {
        /// Sleeps until the kernel wakes it.
        Block = "block",
        /// Polls the queue of the NIC inside the receiving call (SO_BUSY_POLL).
        BusyPoll = "busy-poll",
        /// Polls the queue of the NIC inside `epoll_wait` (EPIOCSPARAMS, Linux 6.9).
        EpollBusyPoll = "epoll-busy-poll",
        /// As `epoll-busy-poll`, while the interrupts of the queue are suspended (Linux 6.13).
        SuspendedIrq = "suspended-irq",
        /// Calls again and again without sleeping.
        Spin = "spin",
    }
}

impl Transport {
    /// True if both ends are in one process.
    pub fn is_local(self) -> bool {
        !matches!(self, Self::Tcp | Self::Udp | Self::UdpMulticast | Self::Xdp)
    }

    /// True if messages have no boundaries.
    pub fn is_stream(self) -> bool {
        matches!(self, Self::Tcp | Self::UnixStream | Self::Pipe)
    }

    /// True if a message can be lost on the way without ending the run.
    pub fn may_lose(self) -> bool {
        matches!(self, Self::Udp | Self::UdpMulticast)
    }

    /// Sizes of sfnt-pingpong for this transport.
    pub fn default_sizes(self) -> Vec<u32> {
        match self {
            _ if self.is_stream() => STREAM_SIZES.to_vec(),
            // A sequential packet of no bytes reads as the end of the connection.
            Self::UnixSeqpacket => DATAGRAM_SIZES.iter().copied().filter(|size| *size > 0).collect(),
            // Frames are not cut into fragments.
            Self::Xdp => DATAGRAM_SIZES.iter().copied().filter(|size| *size <= ETHERNET_BYTES_MAX).collect(),
            _ => DATAGRAM_SIZES.to_vec(),
        }
    }

    fn size_limits(self) -> (u32, u32) {
        match self {
            Self::Udp | Self::UdpMulticast => (0, UDP_BYTES_MAX),
            Self::Xdp => (0, XDP_BYTES_MAX),
            Self::UnixDatagram => (0, LOCAL_DATAGRAM_BYTES_MAX),
            Self::UnixSeqpacket => (1, LOCAL_DATAGRAM_BYTES_MAX),
            Self::Tcp | Self::UnixStream | Self::Pipe => (1, STREAM_BYTES_MAX),
        }
    }
}

impl Waiting {
    /// True if the thread never sleeps while it waits.
    pub fn spins(self) -> bool {
        self == Self::Spin
    }

    /// True if the kernel polls a queue of the NIC.
    pub fn polls_queue(self) -> bool {
        matches!(self, Self::BusyPoll | Self::EpollBusyPoll | Self::SuspendedIrq)
    }
}

/// Parameters of one run. The client sends them to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(clippy::struct_excessive_bools, reason = "each is a separate choice of the user")]
pub struct Scenario {
    pub transport: Transport,
    /// Sizes of messages in bytes, in the order of measurement.
    pub sizes: Vec<u32>,
    /// The system call that waits, on both ends.
    pub muxer: Muxer,
    /// Waiting mode of both ends.
    pub waiting: Waiting,
    /// Time for which the kernel polls the queue per call, in microseconds, if it does.
    pub busy_poll_us: u32,
    /// True if TCP sends small segments at once (TCP_NODELAY).
    pub is_nodelay: bool,
    /// True if TCP acknowledges at once (TCP_QUICKACK).
    pub is_quickack: bool,
    /// Longest measurement of one size, in milliseconds.
    pub time_ms_max: u64,
    /// Fewest round trips of one size, whatever the time.
    pub iterations_min: u64,
    /// Most round trips of one size.
    pub iterations_max: u64,
    /// Unmeasured round trips before the first size, in milliseconds. The other sizes have a tenth of it.
    pub warm_up_ms: u64,
    /// Messages per second; `None` sends each one as soon as the previous answer has arrived. With a rate, latency
    /// counts from the time when the message was due.
    pub rate_per_s: Option<f64>,
    /// CPU of the client; `None` leaves it to the kernel.
    pub client_cpu: Option<CpuId>,
    /// CPU of the server; `None` leaves it to the kernel.
    pub server_cpu: Option<CpuId>,
    /// True if both ends keep their CPUs out of idle states (/dev/cpu_dma_latency).
    pub holds_idle: bool,
    /// Multicast group, for [`Transport::UdpMulticast`].
    pub group: Option<IpAddr>,
    /// Options of [`Transport::Xdp`]; its defaults if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpOptions>,
    /// Time after which an unanswered message counts as lost, in milliseconds.
    pub timeout_ms: u64,
    /// True if each round trip is split into parts, in separate rounds with time stamps.
    pub has_parts: bool,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            transport: Transport::Tcp,
            sizes: STREAM_SIZES.to_vec(),
            muxer: Muxer::None,
            waiting: Waiting::Block,
            busy_poll_us: 50,
            is_nodelay: true,
            is_quickack: false,
            time_ms_max: 3_000,
            iterations_min: 1_000,
            iterations_max: 1_000_000,
            warm_up_ms: 500,
            rate_per_s: None,
            client_cpu: None,
            server_cpu: None,
            holds_idle: false,
            group: None,
            xdp: None,
            timeout_ms: 2_000,
            has_parts: false,
        }
    }
}

/// Reason why a scenario cannot be measured.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ScenarioError {
    /// The list of sizes is empty or too long.
    #[error("{0} sizes\nhint: name 1 to {COUNT_MAX}")]
    SizeCount(usize),
    /// The transport does not carry messages of this size.
    #[error("{transport} does not carry messages of {bytes} bytes\nhint: name sizes from {min} to {max}")]
    Size { transport: Transport, bytes: u32, min: u32, max: u32 },
    /// A limit is zero or too high.
    /// - `what`: name of the limit: "the warm-up in ms".
    #[error("{what} is {value}\nhint: choose a value from {min} to {max}")]
    Limit { what: &'static str, value: f64, min: f64, max: f64 },
    /// The waiting mode needs another muxer.
    /// - `hint`: arguments that work: "--muxer epoll".
    #[error("waiting mode {waiting} does not work with muxer {muxer}\nhint: use {hint}")]
    Mode { waiting: Waiting, muxer: Muxer, hint: &'static str },
    /// AF_XDP has its own way to wait.
    #[error(
        "xdp does not work with muxer {0} and waiting mode {1}\nhint: use muxer none with block, busy-poll or spin"
    )]
    Xdp(Muxer, Waiting),
    /// Local transports have no queue to poll.
    #[error("waiting mode {0} polls the queue of a NIC, and {1} has none\nhint: use block or spin")]
    NoQueue(Waiting, Transport),
    /// Multicast without a group, or with a group that is not a multicast address.
    #[error("{0} needs a multicast group\nhint: name one with --group, such as 239.255.1.1")]
    Group(Transport),
    /// Parts need time stamps of sockets.
    #[error(
        "round trips cannot be split into parts with {0}\nhint: use tcp or udp, and another muxer than io_uring"
    )]
    Parts(String),
}

impl Scenario {
    /// Most round trips per size. Each takes eight bytes of memory.
    pub const ITERATIONS_MAX: u64 = 100_000_000;

    /// Checks that the scenario can be measured and costs bounded memory and time.
    ///
    /// # Errors
    /// [`ScenarioError`] with the first problem.
    pub fn check(&self) -> Result<(), ScenarioError> {
        if self.sizes.is_empty() || self.sizes.len() > COUNT_MAX {
            return Err(ScenarioError::SizeCount(self.sizes.len()));
        }
        let transport = self.transport;
        let (min, max) = transport.size_limits();
        if let Some(bytes) = self.sizes.iter().copied().find(|bytes| !(min..=max).contains(bytes)) {
            return Err(ScenarioError::Size { transport, bytes, min, max });
        }
        self.check_limits()?;
        self.check_mode()?;
        let is_group = self.group.is_some_and(|group| group.is_multicast());
        if transport == Transport::UdpMulticast && !is_group {
            return Err(ScenarioError::Group(transport));
        }
        let is_stamped = matches!(transport, Transport::Tcp | Transport::Udp);
        if self.has_parts && (!is_stamped || self.muxer == Muxer::IoUring) {
            let what = if is_stamped { self.muxer.to_string() } else { transport.to_string() };
            return Err(ScenarioError::Parts(what));
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), ScenarioError> {
        let cpu = |cpu: Option<CpuId>| cpu.map_or(0.0, f64::from);
        let limits = [
            ("the time per size in ms", self.time_ms_max as f64, 1.0, TIME_MS_MAX as f64),
            ("the most iterations", self.iterations_max as f64, 1.0, Self::ITERATIONS_MAX as f64),
            ("the fewest iterations", self.iterations_min as f64, 1.0, self.iterations_max as f64),
            ("the warm-up in ms", self.warm_up_ms as f64, 0.0, TIME_MS_MAX as f64),
            ("the timeout in ms", self.timeout_ms as f64, 10.0, 60_000.0),
            ("the rate per second", self.rate_per_s.unwrap_or(1.0), 0.01, RATE_MAX),
            ("the time of busy polling in us", f64::from(self.busy_poll_us), 1.0, 1e6),
            ("the client's CPU", cpu(self.client_cpu), 0.0, f64::from(CPU_ID_MAX)),
            ("the server's CPU", cpu(self.server_cpu), 0.0, f64::from(CPU_ID_MAX)),
        ];
        for (what, value, min, max) in limits {
            if !(min..=max).contains(&value) {
                return Err(ScenarioError::Limit { what, value, min, max });
            }
        }
        Ok(())
    }

    fn check_mode(&self) -> Result<(), ScenarioError> {
        let (muxer, waiting) = (self.muxer, self.waiting);
        if waiting.polls_queue() && self.transport.is_local() {
            return Err(ScenarioError::NoQueue(waiting, self.transport));
        }
        let is_polled = matches!(waiting, Waiting::Block | Waiting::BusyPoll | Waiting::Spin);
        if self.transport == Transport::Xdp && (muxer != Muxer::None || !is_polled) {
            return Err(ScenarioError::Xdp(muxer, waiting));
        }
        let hint = match (waiting, muxer) {
            (Waiting::EpollBusyPoll | Waiting::SuspendedIrq, muxer) if muxer != Muxer::Epoll => {
                "--muxer epoll"
            }
            (Waiting::BusyPoll, Muxer::Epoll) => "--wait epoll-busy-poll",
            _ => return Ok(()),
        };
        Err(ScenarioError::Mode { waiting, muxer, hint })
    }

    /// True if both ends are in one process.
    pub fn is_local(&self) -> bool {
        self.transport.is_local()
    }

    /// Returns the time between two scheduled messages; zero without a rate.
    pub fn interval(&self) -> Duration {
        self.rate_per_s.and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok()).unwrap_or_default()
    }

    /// Returns the AF_XDP options of an end; `None` if it uses a socket of the kernel.
    pub fn xdp_of(&self, end: End) -> Option<XdpOptions> {
        let options = self.xdp.unwrap_or_default();
        let is_used = end == End::Client || options.ends == XdpEnds::Both;
        (self.transport == Transport::Xdp && is_used).then_some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Scenario)) -> ScenarioError {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        scenario.check().unwrap_err()
    }

    #[test]
    fn every_transport_carries_its_default_sizes() {
        for transport in Transport::ALL.iter().copied() {
            let group = Some("239.255.1.1".parse().unwrap());
            let scenario =
                Scenario { transport, sizes: transport.default_sizes(), group, ..Scenario::default() };
            assert_eq!(scenario.check(), Ok(()), "{transport}");
        }
        assert_eq!((Transport::Tcp.default_sizes().len(), Transport::Udp.default_sizes().len()), (17, 19));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        assert_eq!(refused(|s| s.sizes.clear()), ScenarioError::SizeCount(0));
        assert!(matches!(refused(|s| s.sizes.push(0)), ScenarioError::Size { bytes: 0, .. }));
        for error in [
            refused(|s| s.time_ms_max = 0),
            refused(|s| s.iterations_max = u64::MAX),
            refused(|s| s.iterations_min = s.iterations_max + 1),
            refused(|s| s.rate_per_s = Some(f64::NAN)),
            refused(|s| s.rate_per_s = Some(0.0)),
            refused(|s| s.client_cpu = Some(u32::MAX)),
            refused(|s| s.timeout_ms = 0),
        ] {
            assert!(matches!(error, ScenarioError::Limit { .. }), "{error}");
        }
        assert!(matches!(refused(|s| s.waiting = Waiting::EpollBusyPoll), ScenarioError::Mode { .. }));
        let xdp = |s: &mut Scenario| (s.transport, s.sizes) = (Transport::Xdp, vec![0, 1_472]);
        let muxed = refused(|s| (xdp(s), s.muxer = Muxer::Poll).0);
        assert_eq!(muxed, ScenarioError::Xdp(Muxer::Poll, Waiting::Block));
        let local = refused(|s| (s.transport, s.waiting) = (Transport::Pipe, Waiting::BusyPoll));
        assert!(matches!(local, ScenarioError::NoQueue(..)));
        let group = refused(|s| {
            s.sizes = vec![1];
            (s.transport, s.group) = (Transport::UdpMulticast, "10.0.0.1".parse().ok());
        });
        assert_eq!(group, ScenarioError::Group(Transport::UdpMulticast));
        let parts = |change: fn(&mut Scenario)| {
            refused(|s| {
                s.has_parts = true;
                change(s);
            })
        };
        assert_eq!(parts(|s| s.transport = Transport::Pipe), ScenarioError::Parts("pipe".into()));
        assert_eq!(parts(|s| s.muxer = Muxer::IoUring), ScenarioError::Parts("io_uring".into()));
    }

    #[test]
    fn one_end_or_both_use_af_xdp() {
        let scenario = |transport, xdp| Scenario { transport, xdp, ..Scenario::default() };
        assert_eq!(scenario(Transport::Udp, None).xdp_of(End::Client), None);
        let both = scenario(Transport::Xdp, None);
        assert_eq!(both.xdp_of(End::Server), Some(XdpOptions::default()));
        let one = XdpOptions { ends: XdpEnds::Client, ..XdpOptions::default() };
        let one = scenario(Transport::Xdp, Some(one));
        assert_eq!((one.xdp_of(End::Client).is_some(), one.xdp_of(End::Server)), (true, None));
    }

    #[test]
    fn words_are_found_again() {
        for waiting in Waiting::ALL {
            assert_eq!(Waiting::of_word(waiting.word()), Some(*waiting));
        }
        assert_eq!(Muxer::of_word("kqueue"), None);
        assert_eq!(serde_json::to_string(&Muxer::IoUring).unwrap(), "\"io_uring\"");
    }
}
