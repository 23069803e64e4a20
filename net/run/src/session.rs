//! One run on the server.

use super::{
    control::{Control, ControlError, unexpected},
    facts,
    link::{Link, Shared, Wires},
    place,
    pong::{Batch, ServeError, serve},
    server::{State, token},
    sockets::{self, Udp, plain},
    stamps,
    watch::abort,
};
use lowlat_host::CpuId;
use lowlat_host_run::idle_hold::IdleHold;
use lowlat_net::pingpong::{End, EndFacts, Scenario, Transport, protocol::Message};
use rustix::event::PollFlags;
use std::{
    io,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

/// Longest wait for the client's data connection.
const JOIN_TIME_MAX: Duration = Duration::from_secs(5);
/// The same for AF_XDP: some cards lose their carrier for seconds when a program is attached.
const XDP_JOIN_TIME_MAX: Duration = Duration::from_secs(15);
/// Longest silence of a batch, beside the time between two scheduled messages.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Time between two checks of the run.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The client of a run, for its server.
pub struct ClientEnd<'a> {
    pub control: &'a Control,
    pub client: &'a EndFacts,
}

/// Runs a scenario. `shared` counts the messages answered.
pub fn run_session(
    state: &State<'_>,
    ends: &ClientEnd<'_>,
    scenario: &Scenario,
    shared: &Arc<Shared>,
    on_start: &dyn Fn(Option<CpuId>),
) -> Result<(), ServeError> {
    let (mut server, _idle) = prepare(state, ends, scenario)?;
    on_start(server.cpu);
    let wires = connect(state, ends, scenario, &mut server)?;
    let batch = Batch::default();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (batch, is_done, wires) = (&batch, &is_done, &wires);
        let serving = thread::Builder::new().name("lowlat-server".into()).spawn_scoped(scope, move || {
            // The CPU has already been checked.
            let _ = place::pin(server.cpu);
            let link = Link::of_thread(wires, scenario, Arc::clone(shared)).map_err(ServeError::Io);
            let result = link.and_then(|mut link| serve(ends.control, &mut link, scenario, batch));
            // Release: pairs with the acquire in `watch`.
            is_done.store(true, Ordering::Release);
            // Wakes the watching thread.
            let _ = ends.control.socket.shutdown(std::net::Shutdown::Read);
            result
        });
        let serving = serving?;
        watch(state, ends.control, scenario, shared, batch, is_done, wires);
        serving.join().unwrap_or_else(|_| Err(io::Error::other("the answering thread died").into()))
    })
}

/// Chooses the CPU, holds idle states off, and collects the facts.
fn prepare(
    state: &State<'_>,
    ends: &ClientEnd<'_>,
    scenario: &Scenario,
) -> Result<(EndFacts, Option<IdleHold>), ControlError> {
    let mut server = facts::of_this_end(state.root, None);
    let taken = scenario.client_cpu.filter(|_| ends.client.boot_id == server.boot_id);
    let named = state.options.cpu.or(scenario.server_cpu);
    server.cpu = named.or_else(|| place::choose(state.root, taken));
    if let Some(cpu) = server.cpu.filter(|cpu| !place::is_usable(*cpu)) {
        let why = format!("the server cannot use CPU {cpu}: offline or outside of its cpuset");
        return Err(ControlError::Refused(why));
    }
    let idle = scenario.holds_idle.then(|| facts::hold_idle(&mut server)).flatten();
    Ok((server, idle))
}

/// Accepts the run and connects its data path.
fn connect(
    state: &State<'_>,
    ends: &ClientEnd<'_>,
    scenario: &Scenario,
    server: &mut EndFacts,
) -> Result<Wires, ControlError> {
    let control = ends.control;
    let address = |address: io::Result<socket2::SockAddr>| {
        address?.as_socket().map(plain).ok_or_else(|| io::Error::other("no address"))
    };
    let (local, peer) = (address(control.socket.local_addr())?, address(control.socket.peer_addr())?);
    let token = token()?;
    let has_stamps = scenario.has_parts;
    if has_stamps {
        stamps::hold()?;
    }
    if scenario.transport != Transport::Tcp {
        let udp = Udp::bind(local, scenario)?;
        let udp_port = Some(udp.port()?);
        control.send(&Message::Opened { token, server: Box::new(server.clone()), udp_port, has_stamps })?;
        let limit = if scenario.transport == Transport::Xdp { XDP_JOIN_TIME_MAX } else { JOIN_TIME_MAX };
        let port = match control.receive(limit)? {
            Message::Peer { udp_port } => udp_port,
            other => return Err(unexpected(&other)),
        };
        let (wires, xdp) = udp.connect(peer, port, scenario, End::Server)?;
        control.send(&Message::Joined { xdp })?;
        return Ok(wires);
    }
    let (sender, joined) = mpsc::channel();
    *state.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some((token.clone(), sender));
    control.send(&Message::Opened { token, server: Box::new(server.clone()), udp_port: None, has_stamps })?;
    let begun = Instant::now();
    let data = loop {
        match joined.recv_timeout(LOOK_EVERY) {
            Ok(data) => break data,
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < JOIN_TIME_MAX => {
                if control.is_ready(PollFlags::RDHUP, Duration::ZERO) {
                    return Err(ControlError::Closed);
                }
            }
            // The channel is closed, or it took too long.
            Err(_) => return Err(ControlError::TimedOut(JOIN_TIME_MAX)),
        }
    };
    facts::add_acceleration(state.root, server, std::os::fd::AsFd::as_fd(&data));
    let data = Control { socket: data };
    data.send(&Message::Joined { xdp: None })?;
    Ok(sockets::tcp(data.socket, scenario)?)
}

/// Watches a run: ends it when the client is gone, when a batch is silent for too long, or when the server stops.
fn watch(
    state: &State<'_>,
    control: &Control,
    scenario: &Scenario,
    shared: &Shared,
    batch: &Batch,
    is_done: &AtomicBool,
    wires: &Wires,
) {
    let (mut arrived, mut since) = (shared.arrived(), Instant::now());
    // Acquire: pairs with the release of the answering thread.
    while !is_done.load(Ordering::Acquire) {
        let now = shared.arrived();
        if now != arrived || !batch.is_running() {
            (arrived, since) = (now, Instant::now());
        }
        // Relaxed: set by the signal handler; orders nothing.
        let is_stopped = state.stop.load(Ordering::Relaxed);
        let is_over = is_stopped || since.elapsed() > SILENCE_MAX + scenario.interval();
        let has_left = control.is_ready(PollFlags::RDHUP, LOOK_EVERY);
        // The answering thread closes the connection too; the cause is still to be sent to the client.
        if (is_over || has_left) && !is_done.load(Ordering::Acquire) {
            return abort(shared, wires, control);
        }
    }
}
