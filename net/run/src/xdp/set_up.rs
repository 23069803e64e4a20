//! Sets an end up: route, sockets, map, program, link.

use super::{Port, Queue};
use crate::{
    bpf::{Link, Program, SocketMap, XdpPlace},
    route::{self, Interface, RouteError, XdpAttached},
};
use crate::{calls, link};
use lowlat_net::{
    pingpong::{Scenario, Waiting},
    xdp::{
        Flow, XdpFacts, XdpMode, XdpOptions,
        frame::{Path, overhead_bytes},
        program,
    },
};
use std::{
    io,
    net::SocketAddr,
    os::fd::AsRawFd,
    thread,
    time::{Duration, Instant},
};
use thiserror::Error;
use xdp::{
    RingConfigBuilder, Umem,
    nic::NicIndex,
    socket::{SocketError, XdpSocketBuilder},
    umem::{FrameSize, UmemCfgBuilder},
};

/// Frames of a queue: more than a driver's own ring usually holds, so that it never waits for memory.
const FRAMES: u32 = 2_048;
/// Frames of a queue that wait for arrivals.
const FILL: u32 = 1_024;
/// Frames on their way out.
const SEND: u32 = 64;
/// Largest packet that fits into a frame of 2,048 bytes, behind the kernel's room and the Ethernet header.
const SMALL_MTU_BYTES: u32 = 2_048 - 256 - 18;
/// Longest wait for a queue that another socket has: the kernel releases the queue of a closed socket a moment later.
const RELEASE_TIME_MAX: Duration = Duration::from_secs(5);
/// Most queues with a socket each; the memory of more would be out of proportion.
const QUEUES_MAX: u32 = 64;
/// Longest wait for the carrier, which some drivers drop when a program is attached.
const CARRIER_TIME_MAX: Duration = Duration::from_secs(10);
/// `XDP_OPTIONS` of `SOL_XDP`, and its flag for zero copy (linux/if_xdp.h).
const SOL_XDP: i32 = 283;
const XDP_OPTIONS: i32 = 8;
const XDP_OPTIONS_ZEROCOPY: i32 = 1;

/// Error that prevents an end from using AF_XDP.
#[derive(Debug, Error)]
pub enum XdpError {
    /// The route to the peer is unknown, or not over Ethernet.
    #[error(
        "cannot use AF_XDP: {0}\nhint: name the peer by an address that a network card of this host reaches"
    )]
    Route(#[from] RouteError),
    /// The port of this end is unknown.
    #[error("cannot read the port of a socket: {0}")]
    Port(io::Error),
    /// Messages are longer than the packets of the interface.
    #[error(
        "cannot send {bytes} bytes through AF_XDP: packets on {interface} carry {max}\nhint: name smaller ones with --sizes"
    )]
    Size { bytes: u32, interface: String, max: u32 },
    #[error(
        "cannot use AF_XDP: {0}\nhint: run lowlat as root, or with CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF"
    )]
    Permission(io::Error),
    /// Another XDP program is on the interface.
    #[error(
        "cannot use AF_XDP on {0}: it has another XDP program\nhint: end what attached it, or detach it with `ip link set {0} xdp off`"
    )]
    Busy(String),
    /// Another socket has a queue of the interface.
    #[error(
        "cannot use AF_XDP on {0}: another socket has one of its queues\nhint: end the process that `ss --xdp --processes` shows"
    )]
    Queue(String),
    /// The driver lacks the mode that was asked for.
    /// - `hint`: value of `--xdp-mode` that may work.
    #[error("cannot use AF_XDP on {interface} in mode {mode}: {source}\nhint: use --xdp-mode {hint}")]
    Mode { interface: String, mode: XdpMode, source: io::Error, hint: &'static str },
    /// `what`: name of the failed step.
    #[error(
        "cannot use AF_XDP on {interface}: {what}: {source}\nhint: check that the kernel has AF_XDP and is Linux 5.9 or newer"
    )]
    Step { interface: String, what: &'static str, source: io::Error },
    /// The carrier did not return.
    #[error("cannot use AF_XDP on {0}: it has no carrier\nhint: check the cable and the peer's port")]
    Carrier(String),
}

/// Opens the sockets of an end, and sends the frames from `peer` to `own` there.
///
/// # Errors
/// [`XdpError`] with what is missing. Nothing is left on the interface then.
pub fn open(
    own: SocketAddr,
    peer: SocketAddr,
    scenario: &Scenario,
    options: XdpOptions,
) -> Result<Port, XdpError> {
    let scope = match peer {
        SocketAddr::V6(peer) => peer.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    let way = route::way_to(own.ip(), peer.ip(), scope)?;
    let interface = way.interface;
    check_sizes(&interface, own, scenario)?;
    let path = Path {
        source_mac: interface.mac,
        destination_mac: way.next_mac,
        // Frames carry no scope.
        source: SocketAddr::new(own.ip(), own.port()),
        destination: SocketAddr::new(peer.ip(), peer.port()),
    };
    let flow = Flow { source: path.destination, destination: path.source };
    let (queues, link, fallback) = attached(&interface, &flow, options.mode)?;
    let attached = wait_for_carrier(&interface)?;
    let is_zero_copy = queues.first().is_some_and(is_zero_copy);
    let facts = XdpFacts {
        interface: interface.name.clone(),
        is_native: attached == Some(XdpAttached::Driver),
        is_zero_copy,
        queues: u32::try_from(queues.len()).unwrap_or(u32::MAX),
        fallback,
    };
    if scenario.waiting == Waiting::BusyPoll {
        for queue in &queues {
            link::busy_poll(queue.fd(), scenario.busy_poll_us)
                .map_err(|source| step(&interface, "busy polling", source))?;
        }
    }
    let polled =
        |queue: &Queue| libc::pollfd { fd: queue.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    Ok(Port {
        _link: link,
        polled: queues.iter().map(polled).collect(),
        queues,
        active: 0,
        path,
        waiting: scenario.waiting,
        payload: Vec::new(),
        frame: Vec::new(),
        facts,
    })
}

fn check_sizes(interface: &Interface, own: SocketAddr, scenario: &Scenario) -> Result<(), XdpError> {
    let overhead = u32::try_from(overhead_bytes(own.ip())).unwrap_or(0);
    let max = interface.mtu_bytes.saturating_sub(overhead);
    match scenario.sizes.iter().copied().max() {
        Some(bytes) if bytes > max => Err(XdpError::Size { bytes, interface: interface.name.clone(), max }),
        _ => Ok(()),
    }
}

/// Opens the sockets and attaches the program, in the mode or, with `auto`, in the fastest that works. Returns why a
/// faster one was not used.
fn attached(
    interface: &Interface,
    flow: &Flow,
    mode: XdpMode,
) -> Result<(Vec<Queue>, Link, Option<String>), XdpError> {
    // With `auto`, the kernel chooses zero copy itself if the driver has it.
    match attach(interface, flow, mode) {
        Err(XdpError::Mode { source, .. }) if mode == XdpMode::Auto => {
            let (queues, link) = attach(interface, flow, XdpMode::Generic)?;
            let why =
                format!("The driver of {} refused the native mode of AF_XDP: {source}.", interface.name);
            Ok((queues, link, Some(why)))
        }
        attached => attached.map(|(queues, link)| (queues, link, None)),
    }
}

fn attach(interface: &Interface, flow: &Flow, mode: XdpMode) -> Result<(Vec<Queue>, Link), XdpError> {
    let queues = sockets(interface, mode)?;
    let failed = |what| move |source| step(interface, what, source);
    let map = SocketMap::create(u32::try_from(queues.len()).unwrap_or(u32::MAX))
        .map_err(failed("creating a map of sockets"))?;
    for (place, queue) in (0..).zip(&queues) {
        map.set(place, queue.fd()).map_err(failed("registering a socket"))?;
    }
    // The program keeps the map.
    let program = Program::load(&program(flow, map.descriptor())).map_err(failed("loading the program"))?;
    let place = if mode == XdpMode::Generic { XdpPlace::Generic } else { XdpPlace::Driver };
    let has_program = || route::interface(interface.index).is_ok_and(|now| now.xdp.is_some());
    let link = program.attach(interface.index, place).map_err(|source| match source.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) if has_program() => XdpError::Busy(interface.name.clone()),
        Some(libc::EPERM) => XdpError::Permission(source),
        _ => XdpError::Mode { interface: interface.name.clone(), mode, source, hint: "generic" },
    })?;
    Ok((queues, link))
}

/// A socket for each queue in use. Waits a while for queues that are not free.
fn sockets(interface: &Interface, mode: XdpMode) -> Result<Vec<Queue>, XdpError> {
    let deadline = Instant::now() + RELEASE_TIME_MAX;
    let mut queues = Vec::new();
    for queue in 0..interface.rx_queues_max.min(QUEUES_MAX) {
        let is_busy =
            |error: &io::Error| error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline;
        let opened = loop {
            match socket(interface, queue, mode) {
                Err(SocketError::Bind(error)) if is_busy(&error) => thread::sleep(Duration::from_millis(20)),
                opened => break opened,
            }
        };
        match opened {
            Ok(queue) => queues.push(queue),
            // The interface has fewer queues in use than it was created with.
            Err(SocketError::Bind(error)) if queue > 0 && error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(in_words(error, interface, mode)),
        }
    }
    Ok(queues)
}

fn socket(interface: &Interface, queue: u32, mode: XdpMode) -> Result<Queue, SocketError> {
    let is_small = interface.mtu_bytes <= SMALL_MTU_BYTES;
    let frame_size = if is_small { FrameSize::TwoK } else { FrameSize::FourK };
    let wrong = |error: xdp::error::Error| SocketError::SocketCreation(io::Error::other(error.to_string()));
    let umem = UmemCfgBuilder { frame_size, frame_count: FRAMES, ..UmemCfgBuilder::default() };
    let mut umem =
        umem.build().map_err(wrong).and_then(|umem| Umem::map(umem).map_err(SocketError::SocketCreation))?;
    let rings =
        RingConfigBuilder { rx_count: FILL, fill_count: FILL, tx_count: SEND, completion_count: SEND };
    let mut builder = XdpSocketBuilder::new()?;
    let (mut rings, mut flags) = builder.build_rings(&umem, rings.build().map_err(wrong)?)?;
    match mode {
        XdpMode::Auto => {}
        XdpMode::ZeroCopy => flags.force_zerocopy(),
        XdpMode::Native | XdpMode::Generic => flags.force_copy(),
    }
    // SAFETY: the queue drops its memory after its socket and rings.
    unsafe { rings.fill_ring.enqueue(&mut umem, FILL as usize) };
    let socket = builder.bind(NicIndex::new(interface.index), queue, flags)?;
    Ok(Queue { socket, rings, umem })
}

fn in_words(error: SocketError, interface: &Interface, mode: XdpMode) -> XdpError {
    let (what, source) = match error {
        SocketError::SocketCreation(source) => ("creating a socket", source),
        SocketError::SetSockOpt { inner, .. } | SocketError::GetSockOpt { inner, .. } => {
            ("setting up a socket", inner)
        }
        SocketError::RingMap { inner, .. } => ("mapping a ring", inner),
        SocketError::Bind(source) => match source.raw_os_error() {
            Some(libc::EBUSY) => return XdpError::Queue(interface.name.clone()),
            Some(libc::EOPNOTSUPP) if mode == XdpMode::ZeroCopy => {
                return XdpError::Mode { interface: interface.name.clone(), mode, source, hint: "native" };
            }
            _ => ("binding a socket to a queue", source),
        },
    };
    step(interface, what, source)
}

fn step(interface: &Interface, what: &'static str, source: io::Error) -> XdpError {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => XdpError::Permission(source),
        _ => XdpError::Step { interface: interface.name.clone(), what, source },
    }
}

/// Waits until the interface has a carrier. Returns where its program runs.
fn wait_for_carrier(interface: &Interface) -> Result<Option<XdpAttached>, XdpError> {
    let deadline = Instant::now() + CARRIER_TIME_MAX;
    loop {
        let now = route::interface(interface.index)?;
        if now.has_carrier {
            return Ok(now.xdp);
        }
        if Instant::now() > deadline {
            return Err(XdpError::Carrier(interface.name.clone()));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn is_zero_copy(queue: &Queue) -> bool {
    let options = calls::option(queue.fd(), SOL_XDP, XDP_OPTIONS);
    options.is_ok_and(|options| options & XDP_OPTIONS_ZEROCOPY != 0)
}
