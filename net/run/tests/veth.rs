//! Two network namespaces with a pair of virtual interfaces, GRO on and TSO off so that their queues can be polled.

use super::{alone, check, client, short, until_fair};
use lowlat_host_run::Root;
use lowlat_net::pingpong::{Muxer, PingpongRecord, Scenario, Transport, Unsound, Waiting};
use lowlat_net_run::{PingpongError, ServerEvent, ServerOptions, run_server};
use std::{
    os::fd::AsFd,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Features of an interface: `ethtool -K`, by ioctl.
mod features {
    use std::{ffi::c_char, io};

    const SIOCETHTOOL: u32 = 0x8946;
    /// ETHTOOL_SGRO and ETHTOOL_STSO.
    pub const SET_GRO: u32 = 0x2c;
    pub const SET_TSO: u32 = 0x1f;
    /// ETHTOOL_STXCSUM: frames that another program forwards need whole checksums.
    pub const SET_TX_CHECKSUM: u32 = 0x17;

    #[repr(C)]
    struct EthtoolValue {
        command: u32,
        data: u32,
    }

    #[repr(C)]
    struct Request {
        name: [c_char; 16],
        data: *mut EthtoolValue,
        rest: [u8; 16],
    }

    pub fn set(interface: &str, command: u32, value: u32) -> io::Result<()> {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
        let mut data = EthtoolValue { command, data: value };
        let mut request = Request { name: [0; 16], data: &raw mut data, rest: [0; 16] };
        for (to, from) in request.name.iter_mut().zip(interface.bytes().take(15)) {
            *to = c_char::try_from(from).unwrap();
        }
        // SAFETY: the request is laid out as `struct ifreq`, whose data points to the value; both are alive during the
        // call, and the name ends in a zero.
        let done = unsafe {
            libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&socket), SIOCETHTOOL.into(), &raw mut request)
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Two namespaces; deleted with this.
pub struct Pair {
    pub names: [String; 2],
}

pub const ADDRESSES: [&str; 2] = ["10.214.71.1", "10.214.71.2"];
pub const ADDRESSES_V6: [&str; 2] = ["fd71::1", "fd71::2"];
pub const INTERFACE: &str = "eth0";

pub fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {}: {said}", arguments.join(" "))) }
}

/// Runs a function on a new thread in a namespace; threads that it starts are there too.
pub fn inside<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let path = format!("/run/netns/{name}");
    thread::spawn(move || {
        let namespace = std::fs::File::open(path).unwrap();
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(namespace.as_fd(), kind).unwrap();
        body()
    })
}

impl Pair {
    fn new(queues: &str, middle: Option<&str>) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only counts.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let names = ["a", "b"].map(|end| format!("lowlat-net-{}-{number}-{end}", std::process::id()));
        let pair = Self { names };
        let [a, b] = &pair.names;
        ip(&["netns", "add", a])?;
        ip(&["netns", "add", b])?;
        let many = ["numrxqueues", queues, "numtxqueues", queues];
        let link = |from: &str, [name, to]: [&str; 2]| {
            let peer = ["type", "veth", "peer", "name", name, "netns", to];
            ip(&[&["-n", from, "link", "add", INTERFACE][..], &many, &peer, &many].concat())
        };
        match middle {
            None => link(a, [INTERFACE, b])?,
            Some(middle) => {
                for (end, name) in [(a, "a0"), (b, "b0")] {
                    link(end, [name, middle])?;
                    ip(&["-n", middle, "link", "set", name, "up"])?;
                }
            }
        }
        for (name, (address, address_v6)) in pair.names.iter().zip(ADDRESSES.into_iter().zip(ADDRESSES_V6)) {
            ip(&["-n", name, "address", "add", &format!("{address_v6}/64"), "dev", INTERFACE, "nodad"])?;
            ip(&["-n", name, "address", "add", &format!("{address}/24"), "dev", INTERFACE])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            ip(&["-n", name, "link", "set", INTERFACE, "up"])?;
            let is_forwarded = middle.is_some();
            inside(name, move || {
                features::set(INTERFACE, features::SET_TSO, 0)?;
                if is_forwarded {
                    features::set(INTERFACE, features::SET_TX_CHECKSUM, 0)?;
                }
                features::set(INTERFACE, features::SET_GRO, 1)
            })
            .join()
            .unwrap()
            .map_err(|error| format!("features of {INTERFACE}: {error}"))?;
        }
        Ok(pair)
    }

    /// Measures from one namespace to the other.
    #[allow(clippy::needless_pass_by_value, reason = "callers make it for the call")]
    pub fn measure(&self, scenario: Scenario) -> PingpongRecord {
        // A busy kernel releases the queue of a closed AF_XDP socket late.
        let is_free = |result: &Result<_, PingpongError>| {
            let said = result.as_ref().err().map(PingpongError::to_string).unwrap_or_default();
            !said.contains("another socket has one of its queues")
        };
        until_fair(|| self.try_measure(scenario.clone(), ADDRESSES[1]), is_free).unwrap()
    }

    /// Measures from one namespace to an address of the other.
    pub fn try_measure(&self, scenario: Scenario, address: &str) -> Result<PingpongRecord, PingpongError> {
        self.beside_server(address, move |name| client(scenario, &name))
    }

    /// Runs a function in one namespace while a server listens on an address of the other; it gets the server's address
    /// and port.
    pub fn beside_server<T: Send + 'static>(
        &self,
        address: &str,
        body: impl FnOnce(String) -> T + Send + 'static,
    ) -> T {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, events) = mpsc::channel();
        let stopped = Arc::clone(&stop);
        let listen = format!("{address}:0").parse().unwrap();
        let server = inside(&self.names[1], move || {
            let sender = std::sync::Mutex::new(sender);
            let options = ServerOptions { listen: vec![listen], ..ServerOptions::default() };
            run_server(&Root::live(), &options, &stopped, &|event| {
                let _ = sender.lock().unwrap().send(event.clone());
            })
        });
        let Ok(ServerEvent::Listens(address)) = events.recv_timeout(Duration::from_secs(10)) else {
            panic!("the server does not listen");
        };
        let result = inside(&self.names[0], move || body(address.to_string())).join().unwrap();
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap().unwrap();
        result
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

/// The namespaces, or none with the reason.
pub fn pair(test: &str) -> Option<Pair> {
    pair_of(test, "1")
}

/// The same with interfaces `a0` and `b0` of a third namespace in between, which exists.
pub fn pair_over(test: &str, middle: &str) -> Option<Pair> {
    made(test, Pair::new("1", Some(middle)))
}

/// The same with so many queues of each interface.
pub fn pair_of(test: &str, queues: &str) -> Option<Pair> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: {test}: needs root for network namespaces");
        return None;
    }
    made(test, Pair::new(queues, None))
}

fn made(test: &str, pair: Result<Pair, String>) -> Option<Pair> {
    match pair {
        Ok(pair) => Some(pair),
        Err(why) => {
            eprintln!("skipped: {test}: {why}");
            None
        }
    }
}

const MODES: [(Muxer, Waiting); 4] = [
    (Muxer::None, Waiting::Block),
    (Muxer::None, Waiting::BusyPoll),
    (Muxer::Epoll, Waiting::EpollBusyPoll),
    (Muxer::Epoll, Waiting::SuspendedIrq),
];

#[test]
fn queues_of_veth_are_polled_in_every_mode() {
    let _alone = alone();
    let Some(pair) = pair("queues_of_veth_are_polled_in_every_mode") else { return };
    for transport in [Transport::Udp, Transport::Tcp] {
        for (muxer, waiting) in MODES {
            let scenario = Scenario { muxer, waiting, ..short(transport) };
            let record = pair.measure(scenario);
            check(&record);
            let ids = [record.client.napi_id, record.server.napi_id];
            assert!(
                ids.iter().all(|id| id.is_some_and(|id| id > 0)),
                "{transport}, {waiting}: NAPI ids {ids:?}"
            );
            let is_never = |one: &&Unsound| matches!(one, Unsound::IrqNotSuspended { interface, .. } if interface == INTERFACE);
            let never = record.unsound.iter().filter(is_never).count();
            if waiting == Waiting::SuspendedIrq && record.client.irq_suspend.is_none() {
                eprintln!("skipped: irq-suspend-timeout: this kernel has none (6.13)");
            } else {
                // Nothing has set the timeout of a new interface.
                assert_eq!(
                    never,
                    if waiting == Waiting::SuspendedIrq { 2 } else { 0 },
                    "{:?}",
                    record.unsound
                );
            }
            let is_expected =
                |one: &Unsound| matches!(one, Unsound::IdleStates { .. } | Unsound::IrqNotSuspended { .. });
            assert!(record.unsound.iter().all(is_expected), "{:?}", record.unsound);
            let p50 = record.sizes[1].figures.median_ns;
            eprintln!("{transport}, {muxer}, {waiting}: half round trip of 32 bytes {p50} ns");
        }
    }
}

#[test]
fn multicast_passes_between_the_namespaces() {
    let _alone = alone();
    let Some(pair) = pair("multicast_passes_between_the_namespaces") else { return };
    let group = Some("239.255.71.2".parse().unwrap());
    check(&pair.measure(Scenario { group, ..short(Transport::UdpMulticast) }));
}

#[test]
fn an_own_address_that_is_no_loopback_is_refused() {
    let _alone = alone();
    let Some(pair) = pair("an_own_address_that_is_no_loopback_is_refused") else { return };
    let listening = inside(&pair.names[0], || {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, events) = mpsc::channel();
        let stopped = Arc::clone(&stop);
        let server = thread::spawn(move || {
            let sender = std::sync::Mutex::new(sender);
            let listen = vec![format!("{}:0", ADDRESSES[0]).parse().unwrap()];
            let options = ServerOptions { listen, ..ServerOptions::default() };
            run_server(&Root::live(), &options, &stopped, &|event| {
                let _ = sender.lock().unwrap().send(event.clone());
            })
        });
        let Ok(ServerEvent::Listens(address)) = events.recv_timeout(Duration::from_secs(10)) else {
            panic!()
        };
        let options = lowlat_net_run::ClientOptions {
            scenario: short(Transport::Udp),
            server: address.to_string(),
            command_line: String::new(),
            percentile: 99.0,
            is_forced: false,
            keeps_samples: false,
        };
        let result = lowlat_net_run::run_client(&Root::live(), &options, &AtomicBool::new(false), &|_| {});
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap().unwrap();
        result.unwrap_err().to_string()
    });
    let error = listening.join().unwrap();
    assert!(error.contains("one of this host's own") && error.contains("hint: --force"), "{error}");
}

/// The link-local address of an interface in the namespace of this thread.
fn link_local() -> Option<std::net::Ipv6Addr> {
    let text = std::fs::read_to_string("/proc/thread-self/net/if_inet6").ok()?;
    let digits =
        text.lines().find(|line| line.starts_with("fe80") && line.ends_with(INTERFACE))?.get(..32)?;
    u128::from_str_radix(digits, 16).ok().map(std::net::Ipv6Addr::from)
}

#[test]
fn a_link_local_server_needs_its_interface_and_the_error_names_them() {
    let test = "a_link_local_server_needs_its_interface_and_the_error_names_them";
    let _alone = alone();
    let Some(pair) = pair(test) else { return };
    let a = &pair.names[0];
    let refused = |server: &str| {
        let server = server.to_owned();
        inside(a, move || client(short(Transport::Tcp), &server).unwrap_err().to_string()).join().unwrap()
    };
    let start =
        "cannot connect to fe80::1: a link-local address needs an interface of this host\nhint: write";
    assert_eq!(refused("[fe80::1]:12048"), format!("{start} fe80::1%{INTERFACE}"));
    ip(&["-n", a, "link", "add", "eth1", "type", "veth", "peer", "name", "eth2"]).unwrap();
    for name in ["eth1", "eth2"] {
        ip(&["-n", a, "link", "set", name, "up"]).unwrap();
    }
    let all = format!("{start} fe80::1%eth0 or fe80::1%eth1 or fe80::1%eth2");
    for server in ["[fe80::1]:12048", "fe80::1%nowhere:12048", "[fe80::1%nowhere]:12048"] {
        assert_eq!(refused(server), all, "{server}");
    }
    assert!(refused("[fd71::77%nowhere]:12048").contains("cannot find"));
    for name in ["eth0", "eth1", "eth2"] {
        ip(&["-n", a, "link", "set", name, "down"]).unwrap();
    }
    assert!(
        refused("[fe80::1]:1").ends_with("hint: write fe80::1%IF, where IF is the interface that reaches it")
    );
    ip(&["-n", a, "link", "set", INTERFACE, "up"]).unwrap();
    let Some(address) = inside(&pair.names[1], link_local).join().unwrap() else {
        return eprintln!("skipped: {test}: {INTERFACE} has no link-local address");
    };
    // Addresses are usable a second or two after the interface is up.
    for transport in [Transport::Tcp, Transport::Udp] {
        let measured = pair.beside_server("[::]", move |server| {
            let port = server.rsplit_once(':').unwrap().1;
            let named = format!("[{address}%{INTERFACE}]:{port}");
            let mut tries = (0..50).map(|_| {
                thread::sleep(Duration::from_millis(200));
                client(short(transport), &named)
            });
            tries.find(Result::is_ok)
        });
        check(&measured.expect("a measured run").unwrap());
    }
}
