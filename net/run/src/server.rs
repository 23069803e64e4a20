//! The server: accepts connections, runs one scenario at a time.
//!
//! Peers cannot exceed the server's bounds. A first frame has a time limit. Connections that have sent none are limited
//! in number, and a new one closes the oldest. A run has limits of memory and silence, and only one runs at a time.

use super::{
    control::{Control, ControlError, unexpected},
    error::PingpongError,
    link::Shared,
    session::{ClientEnd, run_session},
    sockets,
};
use lowlat_host::CpuId;
use lowlat_host_run::Root;
use lowlat_net::pingpong::{EndFacts, Muxer, Scenario, Transport, protocol::Message};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;
use std::{
    collections::VecDeque,
    net::{Shutdown, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// Longest wait for a connection's first frame.
const FIRST_FRAME_TIME_MAX: Duration = Duration::from_secs(5);
/// Connections that may be without a first frame at a time. One more closes the oldest: a client sends its frame at
/// once, so silent connections cannot keep it out.
const SILENT_MAX: usize = 64;
/// Connections that the kernel queues.
const BACKLOG: i32 = 128;
/// Time between two checks of the stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerOptions {
    /// Addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// CPU of the answering thread, whatever the client asks for.
    pub cpu: Option<CpuId>,
    /// Ends the server after one run.
    pub is_single: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// It listens on an address.
    Listens(SocketAddr),
    /// - `what`: transport, muxer and waiting mode.
    /// - `cpu`: CPU of the answering thread.
    Started { peer: String, what: String, cpu: Option<CpuId> },
    /// `error`: error that ended it early.
    Ended { peer: String, answered: u64, error: Option<String> },
    /// A connection was refused or closed.
    Refused { peer: String, why: String },
}

/// State that the connections share.
pub(super) struct State<'a> {
    pub root: &'a Root,
    pub options: &'a ServerOptions,
    pub stop: &'a AtomicBool,
    pub on_event: &'a (dyn Fn(&ServerEvent) + Sync),
    /// The run that waits for its data connection: its token, and the channel for that connection.
    pub waiting: Mutex<Option<(String, mpsc::Sender<Socket>)>>,
    /// A run is in progress.
    is_busy: AtomicBool,
    ended: AtomicUsize,
    /// Connections without a first frame, the oldest first, with their numbers.
    silent: Mutex<VecDeque<(u64, Socket)>>,
}

/// Serves until `stop` is raised, or one run ended if the options say so.
///
/// # Errors
/// [`PingpongError`] if it cannot listen.
pub fn run(
    root: &Root,
    options: &ServerOptions,
    stop: &AtomicBool,
    on_event: &(dyn Fn(&ServerEvent) + Sync),
) -> Result<(), PingpongError> {
    if let Some(cpu) = options.cpu.filter(|cpu| !super::place::is_usable(*cpu)) {
        return Err(PingpongError::Cpu(cpu));
    }
    let listeners = listeners(options, on_event)?;
    let state = State {
        root,
        options,
        stop,
        on_event,
        waiting: Mutex::new(None),
        is_busy: AtomicBool::new(false),
        ended: AtomicUsize::new(0),
        silent: Mutex::default(),
    };
    thread::scope(|scope| {
        // Relaxed: the flags order nothing.
        let is_over = || {
            let has_served = state.ended.load(Ordering::Relaxed) > 0;
            stop.load(Ordering::Relaxed) || (options.is_single && has_served)
        };
        let mut number = 0;
        while !is_over() {
            for (socket, peer) in accept(&listeners) {
                number += 1;
                state.admit(number, &socket);
                let state = &state;
                let handling = thread::Builder::new().name("lowlat-peer".into());
                let handling =
                    handling.spawn_scoped(scope, move || state.handle(number, Control { socket }, &peer));
                if handling.is_err() {
                    state.forget(number);
                }
            }
        }
    });
    Ok(())
}

fn listeners(
    options: &ServerOptions,
    on_event: &(dyn Fn(&ServerEvent) + Sync),
) -> Result<Vec<Socket>, PingpongError> {
    let mut listeners = Vec::new();
    let mut failed = None;
    for address in &options.listen {
        match sockets::listen(*address, BACKLOG) {
            Ok(socket) => {
                let bound = socket.local_addr().ok().and_then(|bound| bound.as_socket()).unwrap_or(*address);
                on_event(&ServerEvent::Listens(bound));
                listeners.push(socket);
            }
            Err(source) => failed = Some(PingpongError::Listen { address: address.to_string(), source }),
        }
    }
    // A host without IPv6 listens on IPv4 alone.
    match failed {
        Some(error) if listeners.is_empty() => Err(error),
        _ => Ok(listeners),
    }
}

/// Waits a while for connections, and accepts those that came.
fn accept(listeners: &[Socket]) -> Vec<(Socket, SocketAddr)> {
    let mut polled: Vec<PollFd<'_>> =
        listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)).collect();
    let time = Timespec::try_from(LOOK_EVERY).ok();
    if poll(&mut polled, time.as_ref()).is_err() {
        return Vec::new();
    }
    let ready = polled.iter().map(|one| one.revents().contains(PollFlags::IN)).collect::<Vec<_>>();
    let ready = listeners.iter().zip(ready).filter(|(_, is_ready)| *is_ready);
    // A connection that was closed meanwhile is an error of accept alone.
    let accepted = ready.filter_map(|(listener, _)| listener.accept().ok());
    accepted.filter_map(|(socket, peer)| Some((socket, peer.as_socket()?))).collect()
}

impl State<'_> {
    /// Notes a connection that has sent nothing yet, and closes the oldest one if there are too many. Without a second
    /// descriptor it is not noted, and so not served.
    fn admit(&self, number: u64, socket: &Socket) {
        let Ok(socket) = socket.try_clone() else { return };
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        if silent.len() >= SILENT_MAX
            && let Some((_, oldest)) = silent.pop_front()
        {
            // The peer may have closed it first.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        silent.push_back((number, socket));
    }

    /// Forgets a connection that is silent no longer. Returns whether it was still open.
    fn forget(&self, number: u64) -> bool {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        let place = silent.iter().position(|(of, _)| *of == number);
        place.and_then(|place| silent.remove(place)).is_some()
    }

    fn handle(&self, number: u64, control: Control, peer: &SocketAddr) {
        let shown = sockets::plain(*peer).to_string();
        let first = control.socket.set_tcp_nodelay(true).map_err(ControlError::Io);
        let first = first.and_then(|()| control.receive(FIRST_FRAME_TIME_MAX));
        if !self.forget(number) {
            return;
        }
        match first {
            Ok(Message::Open { scenario, client }) => self.open(&control, shown, &scenario, &client),
            Ok(Message::Join { token }) => self.join(control, &token),
            Ok(other) => self.refuse(&control, shown, &unexpected(&other).to_string()),
            Err(error) => self.refuse(&control, shown, &error.to_string()),
        }
    }

    fn open(&self, control: &Control, peer: String, scenario: &Scenario, client: &EndFacts) {
        if let Err(error) = scenario.check() {
            return self.refuse(control, peer, &on_one_line(&error));
        }
        if scenario.transport.is_local() {
            return self.refuse(control, peer, &format!("{} is a local transport", scenario.transport));
        }
        // Acquire: pairs with the release below, so that a run sees nothing of the one before.
        if self.is_busy.swap(true, Ordering::Acquire) {
            return self.refuse(control, peer, "the server measures with another client");
        }
        let ends = ClientEnd { control, client };
        let started = |cpu| {
            let what = describe(scenario);
            (self.on_event)(&ServerEvent::Started { peer: peer.clone(), what, cpu });
        };
        let shared = Arc::new(Shared::default());
        let result = run_session(self, &ends, scenario, &shared, &started);
        let error = result.err().map(|error| on_one_line(&error));
        if let Some(why) = &error {
            // The client may be gone.
            let _ = control.send(&Message::Refused { why: why.clone() });
        }
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = None;
        // Release: pairs with the acquire above.
        self.is_busy.store(false, Ordering::Release);
        // Only now: a client that waits for this may open its next run at once.
        control.close();
        (self.on_event)(&ServerEvent::Ended { peer: peer.clone(), answered: shared.arrived(), error });
        // Relaxed: only counted.
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Hands a data connection to its run.
    fn join(&self, data: Control, token: &str) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Each run takes one connection, and only with its token.
        if let Some((_, taker)) = waiting.take_if(|(expected, _)| expected == token) {
            // The run may have ended.
            let _ = taker.send(data.socket);
        }
    }

    fn refuse(&self, control: &Control, peer: String, why: &str) {
        // The peer may be gone, or never have spoken the protocol.
        let _ = control.send(&Message::Refused { why: why.to_owned() });
        control.close();
        (self.on_event)(&ServerEvent::Refused { peer, why: why.to_owned() });
    }
}

fn on_one_line(error: &impl ToString) -> String {
    error.to_string().replace("\nhint: ", "; ")
}

fn describe(scenario: &Scenario) -> String {
    let muxer = match scenario.muxer {
        Muxer::None => String::new(),
        muxer => format!(", muxer {muxer}"),
    };
    let group = match scenario.group.filter(|_| scenario.transport == Transport::UdpMulticast) {
        Some(group) => format!(" {group}"),
        None => String::new(),
    };
    format!("{}{group}, {}{muxer}", scenario.transport, scenario.waiting)
}

/// A token that peers cannot guess.
pub(super) fn token() -> Result<String, ControlError> {
    let mut bytes = [0_u8; 16];
    let length = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| ControlError::Io(error.into()))?;
    if length < bytes.len() {
        return Err(ControlError::Io(std::io::Error::other("too few random bytes")));
    }
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
