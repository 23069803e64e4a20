//! Ping-pong between a client and a server, over loopback and inside this process.

mod choose;
mod hostile;
mod losses;
mod parts;
mod runs;
mod stream;
mod veth;
mod wan;
mod xdp;

use lowlat_host_run::Root;
use lowlat_net::pingpong::{PingpongRecord, Scenario, Transport};
use lowlat_net_run::{ClientOptions, PingpongError, ServerEvent, ServerOptions, run_client, run_server};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

static CPUS: RwLock<()> = RwLock::new(());

/// Spinning runs that are judged by their figures need their CPUs: one at a time.
fn alone() -> RwLockWriteGuard<'static, ()> {
    CPUS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Tests of messages and counts may run at the same time.
fn beside_others() -> RwLockReadGuard<'static, ()> {
    CPUS.read().unwrap_or_else(PoisonError::into_inner)
}

/// A server on a free port of loopback.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    events: mpsc::Receiver<ServerEvent>,
    thread: Option<JoinHandle<Result<(), PingpongError>>>,
}

impl Server {
    fn start() -> Self {
        Self::start_on("127.0.0.1:0".parse().unwrap(), false)
    }

    fn start_on(listen: SocketAddr, is_single: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, events) = mpsc::channel();
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let sender = Mutex::new(sender);
            let options = ServerOptions { listen: vec![listen], cpu: None, is_single };
            run_server(&Root::live(), &options, &stopped, &|event| {
                let _ = sender.lock().unwrap().send(event.clone());
            })
        });
        let ServerEvent::Listens(address) = events.recv_timeout(Duration::from_secs(10)).unwrap() else {
            panic!("the first event names the address");
        };
        Self { address, stop, events, thread: Some(thread) }
    }

    /// The next event that the caller looks for.
    fn wait_for(&self, is_wanted: impl Fn(&ServerEvent) -> bool) -> ServerEvent {
        loop {
            let event = self.events.recv_timeout(Duration::from_secs(60)).expect("an event");
            if is_wanted(&event) {
                return event;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        if !thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

fn short(transport: Transport) -> Scenario {
    Scenario {
        transport,
        sizes: vec![1, 32, 4_000],
        time_ms_max: 30,
        iterations_min: 50,
        iterations_max: 2_000,
        warm_up_ms: 1,
        timeout_ms: 20_000,
        ..Scenario::default()
    }
}

fn client(scenario: Scenario, server: &str) -> Result<PingpongRecord, PingpongError> {
    client_until(scenario, server, &AtomicBool::new(false))
}

fn client_until(
    scenario: Scenario,
    server: &str,
    stop: &AtomicBool,
) -> Result<PingpongRecord, PingpongError> {
    let options = ClientOptions {
        scenario,
        server: server.to_owned(),
        command_line: "test".to_owned(),
        percentile: 99.0,
        is_forced: true,
        keeps_samples: false,
    };
    run_client(&Root::live(), &options, stop, &|_| {})
}

/// Runs again, at most ten times, until the host did not disturb it.
fn until_fair<T>(run: impl Fn() -> T, is_fair: impl Fn(&T) -> bool) -> T {
    (0..10).map(|_| run()).find(is_fair).unwrap_or_else(run)
}

/// On a busy machine the control's two threads may not run at the same time.
fn is_of_load(warning: &str) -> bool {
    warning.starts_with("The control is missing: cannot measure CPUs ")
        && warning.contains(": they did not answer each other within ")
}

/// There are no warnings but those of a busy machine.
fn check_warnings(warnings: &[String]) {
    let of_run: Vec<&String> = warnings.iter().filter(|warning| !is_of_load(warning)).collect();
    assert!(of_run.is_empty(), "{of_run:?}");
}

/// Every size is there, and its figures are in order.
fn check(record: &PingpongRecord) {
    check_warnings(&record.warnings);
    let sizes: Vec<u32> = record.sizes.iter().map(|size| size.size_bytes).collect();
    assert_eq!(sizes, record.scenario.sizes);
    for size in &record.sizes {
        let figures = &size.figures;
        assert!(figures.iterations >= record.scenario.iterations_min, "{figures:?}");
        assert!(
            figures.min_ns > 0 && figures.min_ns <= figures.median_ns && figures.median_ns <= figures.max_ns
        );
        assert_eq!(size.half_round_trips().unwrap().len(), figures.iterations);
    }
}
