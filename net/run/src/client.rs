//! A run from the client's side.

use super::{
    control::{Control, ControlError, unexpected},
    core_to_core,
    error::PingpongError,
    facts,
    link::{Link, Shared, Wires},
    parts::PartsRun,
    ping::Pinger,
    place,
    pong::{Batch, serve},
    sockets::{self, Udp, plain},
    watch::{DIED, Outcome, Watch, abort, sentence, watch},
};
use lowlat_host::CpuId;
use lowlat_host_run::{Root, idle_hold::IdleHold};
use lowlat_jitter_run::clock::{ArchCounter, TickScale, frequency_of};
use lowlat_net::pingpong::{
    End, EndFacts, PingpongRecord, Route, Scenario, Setup, Severity, SizeRecord, Transport, Waiting, judge,
    protocol::Message,
};
use socket2::{Domain, Socket, Type};
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs},
    sync::{Arc, atomic::AtomicBool, mpsc},
    thread,
    time::Duration,
};

/// Longest wait for a connection or an answer of the server.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// The same for AF_XDP: some cards lose their carrier for seconds when a program is attached.
const XDP_ANSWER_TIME_MAX: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, PartialEq)]
pub struct ClientOptions {
    /// Scenario to measure. Missing CPUs are chosen.
    pub scenario: Scenario,
    /// The server: `host:port`. Irrelevant to local transports.
    pub server: String,
    /// The command line, for the record.
    pub command_line: String,
    /// Percentile of the column `%ile`.
    pub percentile: f64,
    /// Measures unsound set-ups too (`--force`).
    pub is_forced: bool,
    /// Keeps every sample in the order of sending: [`SizeRecord::samples_ns`].
    pub keeps_samples: bool,
}

/// Measures a scenario: connects to the server, or starts one in this process for a local transport. Ends early, with
/// what it has, when `stop` is raised. `on_size` gets each size as it is complete.
///
/// # Errors
/// [`PingpongError`] if nothing could be measured.
pub fn run(
    root: &Root,
    options: &ClientOptions,
    stop: &AtomicBool,
    on_size: &(dyn Fn(&SizeRecord) + Sync),
) -> Result<PingpongRecord, PingpongError> {
    let mut run = prepare(root, options, stop, on_size)?;
    let _idle = run.hold_idle();
    let outcome =
        if run.record.scenario.is_local() { run.local() } else { run.network(&options.server, Run::measure) };
    outcome?;
    Ok(run.record)
}

/// Checks a scenario, chooses the client's CPU and reads the facts of this end.
///
/// # Errors
/// [`PingpongError`] if nothing can be measured.
pub fn prepare<'a>(
    root: &'a Root,
    options: &ClientOptions,
    stop: &'a AtomicBool,
    on_size: &'a (dyn Fn(&SizeRecord) + Sync),
) -> Result<Run<'a>, PingpongError> {
    let mut scenario = options.scenario.clone();
    scenario.check()?;
    let cpu = scenario.client_cpu.or_else(|| place::choose(root, scenario.server_cpu));
    if let Some(cpu) = cpu.filter(|cpu| !place::is_usable(*cpu)) {
        return Err(PingpongError::Cpu(cpu));
    }
    scenario.client_cpu = cpu;
    let frequency = frequency_of(ArchCounter::KIND, root)?;
    let client = facts::of_this_end(root, cpu);
    Ok(Run {
        root,
        scale: TickScale::new(frequency.hz),
        stop,
        on_size,
        is_forced: options.is_forced,
        keeps_samples: options.keeps_samples,
        record: PingpongRecord {
            scenario,
            server_name: options.server.clone(),
            command_line: options.command_line.clone(),
            client,
            counter: ArchCounter::KIND.name().to_owned(),
            counter_hz: frequency.hz,
            percentile: options.percentile,
            ..PingpongRecord::default()
        },
    })
}

pub struct Run<'a> {
    root: &'a Root,
    /// Scale of the client's counter.
    pub scale: TickScale,
    /// Ends the run when raised.
    pub stop: &'a AtomicBool,
    on_size: &'a (dyn Fn(&SizeRecord) + Sync),
    is_forced: bool,
    keeps_samples: bool,
    /// Record with the facts known so far.
    pub record: PingpongRecord,
}

impl Run<'_> {
    /// Holds idle states off, if the scenario says so.
    pub fn hold_idle(&mut self) -> Option<IdleHold> {
        self.record.scenario.holds_idle.then(|| facts::hold_idle(&mut self.record.client)).flatten()
    }

    /// Both ends in this process.
    fn local(&mut self) -> Result<(), PingpongError> {
        let client_cpu = self.record.scenario.client_cpu;
        let server_cpu = self.record.scenario.server_cpu.or_else(|| place::choose(self.root, client_cpu));
        if let Some(cpu) = server_cpu.filter(|cpu| !place::is_usable(*cpu)) {
            return Err(PingpongError::Cpu(cpu));
        }
        self.record.scenario.server_cpu = server_cpu;
        self.record.server = EndFacts { cpu: server_cpu, ..self.record.client.clone() };
        self.record.server.warnings.clear();
        self.record.is_same_host = true;
        self.judge(Route::Local)?;
        let scenario = self.record.scenario.clone();
        let failed = |source| PingpongError::SetUp { what: scenario.transport.to_string(), source };
        let (near, far) = sockets::local_pair(scenario.transport).map_err(failed)?;
        let (control, control_far) = Socket::pair(Domain::UNIX, Type::STREAM, None).map_err(failed)?;
        let (control, control_far) = (Control { socket: control }, Control { socket: control_far });
        let shared = Arc::new(Shared::default());
        thread::scope(|scope| {
            let (scenario, shared, far, control_far) = (&scenario, &shared, &far, &control_far);
            let serving =
                thread::Builder::new().name("lowlat-server".into()).spawn_scoped(scope, move || {
                    // The CPU has already been checked.
                    let _ = place::pin(scenario.server_cpu);
                    // If it cannot be set up, neither can the client's, which says why.
                    if let Ok(mut link) = Link::of_thread(far, scenario, Arc::clone(shared)) {
                        let _ = serve(control_far, &mut link, scenario, &Batch::default());
                    }
                    control_far.close();
                });
            serving.map_err(PingpongError::Thread)?;
            let outcome = self.measure(&control, &near);
            abort(shared, far, &control);
            outcome
        })
    }

    /// The server in another process, here or elsewhere. `measure` uses the connected data path.
    pub fn network(
        &mut self,
        server: &str,
        measure: impl FnOnce(&mut Self, &Control, &Wires) -> Result<(), PingpongError>,
    ) -> Result<(), PingpongError> {
        let address = resolve(self.root, server)?;
        let shown = address.to_string();
        let (control, local, peer) = connect(address)?;
        let failed = |source: ControlError| match source {
            ControlError::Xdp(error) => PingpongError::Xdp(error),
            source => PingpongError::Control { address: shown.clone(), source },
        };
        let (token, udp_port) = self.open(&control).map_err(failed)?;
        self.record.client.address = local.ip().to_string();
        self.record.server.address = peer.ip().to_string();
        self.record.scenario.server_cpu = self.record.server.cpu;
        self.record.is_same_host = self.record.server.boot_id == self.record.client.boot_id;
        let route = match (local.ip() == peer.ip() || peer.ip().is_loopback(), peer.ip().is_loopback()) {
            (true, true) => Route::LoopbackNamed,
            (true, false) => Route::LoopbackUnnamed,
            (false, _) => Route::Nic,
        };
        let wires = self.data_path(&control, address, (local, peer), &token, udp_port).map_err(failed)?;
        facts::add_acceleration(self.root, &mut self.record.client, wires.receiving());
        self.judge(route)?;
        let outcome = measure(self, &control, &wires);
        // The server notices a closed connection too.
        let _ = control.send(&Message::End);
        // The server closes the connection when it is ready for the next run.
        let _ = control.receive(ANSWER_TIME_MAX);
        self.judge_again(route);
        outcome
    }

    /// Opens the run on the server. Returns its token and UDP port.
    fn open(&mut self, control: &Control) -> Result<(String, Option<u16>), ControlError> {
        let (scenario, client) = (self.record.scenario.clone(), Box::new(self.record.client.clone()));
        control.send(&Message::Open { scenario, client })?;
        match control.receive(ANSWER_TIME_MAX)? {
            Message::Opened { has_stamps: false, .. } if self.record.scenario.has_parts => {
                Err(ControlError::Refused("the server's version of lowlat takes no time stamps".to_owned()))
            }
            Message::Opened { token, server, udp_port, .. } => {
                self.record.server = *server;
                Ok((token, udp_port))
            }
            other => Err(unexpected(&other)),
        }
    }

    fn data_path(
        &mut self,
        control: &Control,
        address: SocketAddr,
        (local, peer): (SocketAddr, SocketAddr),
        token: &str,
        udp_port: Option<u16>,
    ) -> Result<Wires, ControlError> {
        let scenario = &self.record.scenario;
        let limit = if scenario.transport == Transport::Xdp { XDP_ANSWER_TIME_MAX } else { ANSWER_TIME_MAX };
        let joined = |control: &Control| match control.receive(limit)? {
            Message::Joined { xdp } => Ok(xdp),
            other => Err(unexpected(&other)),
        };
        if scenario.transport == Transport::Tcp {
            let stream = TcpStream::connect_timeout(&address, ANSWER_TIME_MAX)?;
            let data = Control { socket: stream.into() };
            data.send(&Message::Join { token: token.to_owned() })?;
            joined(&data)?;
            return Ok(sockets::tcp(data.socket, scenario)?);
        }
        let udp = Udp::bind(local, scenario)?;
        let own_port = udp.port()?;
        let port = udp_port.unwrap_or_default();
        let (wires, xdp) = udp.connect(peer, port, scenario, End::Client)?;
        self.record.client.xdp = xdp;
        control.send(&Message::Peer { udp_port: own_port })?;
        self.record.server.xdp = joined(control)?;
        Ok(wires)
    }

    /// Refuses an unsound set-up, or marks the record.
    fn judge(&mut self, route: Route) -> Result<(), PingpongError> {
        self.judge_again(route);
        let is_refused = |one: &&lowlat_net::pingpong::Unsound| one.severity() == Severity::Refused;
        let refused: Vec<_> = self.record.unsound.iter().filter(is_refused).cloned().collect();
        if refused.is_empty() || self.is_forced { Ok(()) } else { Err(PingpongError::Unsound(refused)) }
    }

    /// Judges again, with the facts that the run has shown.
    fn judge_again(&mut self, route: Route) {
        let PingpongRecord { scenario, client, server, is_same_host, .. } = &self.record;
        let setup = Setup { scenario, client, server, route, is_same_host: *is_same_host };
        self.record.unsound = judge(&setup);
    }

    /// Measures every size on a thread pinned to the client's CPU, while this thread watches it.
    fn measure(&mut self, control: &Control, wires: &Wires) -> Result<(), PingpongError> {
        let scenario = self.record.scenario.clone();
        let failed = |source| PingpongError::SetUp {
            what: format!("muxer {} with waiting mode {}", scenario.muxer, scenario.waiting),
            source,
        };
        let shared = Arc::new(Shared::default());
        let batch = Batch::default();
        let (events, watched) = mpsc::channel();
        let control_cpus = self.control_cpus();
        let parts = scenario.has_parts.then(|| PartsRun::new(self.root, self.scale, &self.record));
        let (outcome, aborted) = thread::scope(|scope| -> Result<_, PingpongError> {
            let (scenario, batch) = (&scenario, &batch);
            let (scale, percentile, keeps_samples) = (self.scale, self.record.percentile, self.keeps_samples);
            let shared_with_link = Arc::clone(&shared);
            let body = move || {
                if let Err(sentence) = place::pin(scenario.client_cpu) {
                    return Ok(Outcome::early(sentence));
                }
                let link = Link::of_thread(wires, scenario, shared_with_link)?;
                let mut pinger = Pinger::new(control, link, scenario, scale, percentile, batch);
                (pinger.keeps_samples, pinger.parts) = (keeps_samples, parts);
                Ok(measure_sizes(pinger, scenario, control_cpus, scale, &events))
            };
            let measuring = thread::Builder::new().name("lowlat-client".into()).spawn_scoped(scope, body);
            let measuring = measuring.map_err(PingpongError::Thread)?;
            let watched = Watch { events: watched, shared: &shared, batch, scenario, wires, control };
            let aborted = watch(&watched, self.stop, self.on_size);
            let outcome = measuring.join().unwrap_or_else(|_| Ok(Outcome::early(DIED))).map_err(failed)?;
            Ok((outcome, aborted))
        })?;
        self.record.sizes = outcome.sizes;
        self.record.controls = outcome.controls;
        self.record.parts = outcome.parts;
        let [client, server] = outcome.napi_ids;
        (self.record.client.napi_id, self.record.server.napi_id) = (client, server);
        if scenario.waiting == Waiting::SuspendedIrq {
            self.record.client.irq_suspend = facts::irq_suspend(client);
            self.record.server.irq_suspend = outcome.server_irq_suspend;
        }
        let ended = aborted.or(outcome.warning);
        self.record.has_ended_early = ended.is_some();
        self.record.warnings.extend(ended);
        self.record.warnings.extend(outcome.control_warning);
        Ok(())
    }

    /// The CPUs of both ends, if a control between them is possible; the record says why not.
    pub fn control_cpus(&mut self) -> Option<(CpuId, CpuId)> {
        let PingpongRecord { scenario, is_same_host, .. } = &self.record;
        let cpus = scenario.client_cpu.zip(scenario.server_cpu);
        let cpus =
            cpus.filter(|(client, server)| *is_same_host && client != server && place::is_usable(*server));
        if cpus.is_none() {
            self.record.control_missing = Some(self.why_no_control());
        }
        cpus
    }

    fn why_no_control(&self) -> String {
        let PingpongRecord { scenario, is_same_host, .. } = &self.record;
        let why = match (is_same_host, scenario.client_cpu, scenario.server_cpu) {
            (false, ..) => "the ends are on two hosts",
            (true, Some(client), Some(server)) if client == server => "both ends share one CPU",
            (true, Some(_), Some(_)) => "this process cannot use the server's CPU",
            (true, ..) => "an end was not pinned",
        };
        format!("No control: {why}.")
    }
}

/// Measures the sizes in order, with a control before each one and after the last.
fn measure_sizes(
    mut pinger: Pinger<'_>,
    scenario: &Scenario,
    control_cpus: Option<(u32, u32)>,
    scale: TickScale,
    events: &mpsc::Sender<SizeRecord>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let control = |outcome: &mut Outcome| {
        let Some((client, server)) = control_cpus else { return };
        let before = u32::try_from(outcome.sizes.len()).unwrap_or(u32::MAX);
        match core_to_core::measure(client, server, scale, before) {
            Ok(row) => outcome.controls.push(row),
            Err(sentence) => outcome.control_warning = Some(sentence),
        }
    };
    for (place, size) in scenario.sizes.iter().enumerate() {
        control(&mut outcome);
        let (record, result) = pinger.measure(*size, place == 0);
        if let Some(record) = record {
            // The watching thread ends after this one.
            let _ = events.send(record.clone());
            outcome.sizes.push(record);
        }
        outcome.napi_ids = pinger.napi_ids();
        outcome.server_irq_suspend.clone_from(&pinger.server_irq_suspend);
        if let Err(error) = result {
            outcome.warning = Some(sentence(&format!("size {size}"), &error));
            break;
        }
    }
    if outcome.warning.is_none() {
        control(&mut outcome);
    }
    outcome.parts = pinger.parts.map(PartsRun::finish);
    outcome
}

/// The address of "host:port", where the host may be in brackets and have an interface: "[fe80::1%eth0]:12048".
fn resolve(root: &Root, server: &str) -> Result<SocketAddr, PingpongError> {
    let (host, port) = server.rsplit_once(':').unwrap_or((server, ""));
    let host = host.trim_matches(['[', ']']);
    let found = (host, port.parse().unwrap_or_default()).to_socket_addrs();
    let found = found.and_then(|mut all| all.next().ok_or_else(|| std::io::Error::other("no address")));
    let has_interface = matches!(&found, Ok(SocketAddr::V6(address)) if address.scope_id() > 0);
    let named = host.split('%').next().and_then(|address| address.parse().ok());
    match found.as_ref().map_or(named, |found| Some(found.ip())) {
        Some(IpAddr::V6(address)) if address.is_unicast_link_local() && !has_interface => {
            Err(PingpongError::NoInterface { address, choices: choices(root, address) })
        }
        _ => found.map_err(|source| PingpongError::Name { name: server.to_owned(), source }),
    }
}

/// A link-local address with each interface that has such addresses: "fe80::1%eth0 or fe80::1%eth1".
fn choices(root: &Root, address: Ipv6Addr) -> String {
    // Of this thread, which can be in another network namespace than the process.
    let text = root.read("/proc/thread-self/net/if_inet6").into_known().unwrap_or_default();
    // Address, index, length of the prefix, scope, flags, name.
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let names = words.filter(|words| words.get(3) == Some(&"20")).filter_map(|words| words.last().copied());
    let each = names.collect::<BTreeSet<_>>().into_iter().map(|name| format!("{address}%{name}"));
    each.reduce(|all, one| format!("{all} or {one}"))
        .unwrap_or_else(|| format!("{address}%IF, where IF is the interface that reaches it"))
}

/// Connects to the server. Returns the connection with both addresses.
fn connect(address: SocketAddr) -> Result<(Control, SocketAddr, SocketAddr), PingpongError> {
    let failed = |source| PingpongError::Connect { address: address.to_string(), source };
    let stream = TcpStream::connect_timeout(&address, ANSWER_TIME_MAX).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let (local, peer) = (stream.local_addr().map_err(failed)?, stream.peer_addr().map_err(failed)?);
    Ok((Control { socket: stream.into() }, plain(local), plain(peer)))
}
