//! Metrics over HTTP: a server that answers GET /metrics and nothing else.
//!
//! It answers clients in parallel. A request is bounded in size, and it and its answer in time, so only [`CLIENTS_MAX`]
//! silent clients delay others, by at most twice [`REQUEST_TIME`].

use crate::output;
use anyhow::{Context, bail};
use lowlat_jitter_report::watch::{Watch, classic, open_metrics};
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::Timespec,
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Longest request with its header, in bytes. Prometheus sends a few hundred.
const REQUEST_MAX: usize = 8 << 10;
/// Clients that are answered at the same time. Further ones wait.
const CLIENTS_MAX: usize = 64;
/// Time to receive a request, and as much again to send the answer.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// Longest time until a raised stop flag is noticed, and the pause after a failure to accept a client.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Pause while as many clients as possible are answered.
const PAUSE: Duration = Duration::from_millis(20);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Listening HTTP server of the metrics.
#[derive(Debug)]
pub struct Exporter {
    listener: TcpListener,
    address: SocketAddr,
}

/// An answer before it is written.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Exporter {
    /// Listens on an address, which only this host can reach unless `is_open`.
    pub fn bind(address: SocketAddr, is_open: bool) -> anyhow::Result<Self> {
        if !address.ip().is_loopback() && !is_open {
            bail!(
                "cannot serve metrics at {address}: other hosts can reach it, and lowlat asks no client who it is\nhint: use \
                 127.0.0.1:{}, or add --listen-anyway",
                address.port()
            );
        }
        let listener = TcpListener::bind(address)
            .with_context(|| format!("cannot serve metrics at {address}\nhint: choose another port"))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// The address with the port that the kernel chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers clients until `stop` is raised.
    pub fn serve(&self, stop: &AtomicBool, watch: &(dyn Fn() -> Watch + Sync)) {
        let served = AtomicUsize::new(0);
        thread::scope(|clients| self.accept(clients, &served, stop, watch));
    }

    fn accept<'scope, 'env: 'scope>(
        &self,
        clients: &'scope thread::Scope<'scope, 'env>,
        served: &'env AtomicUsize,
        stop: &'env AtomicBool,
        watch: &'env (dyn Fn() -> Watch + Sync),
    ) {
        let wait = Timespec::try_from(LOOK_EVERY).ok();
        let mut has_warned = false;
        // Relaxed: the flag orders nothing.
        while !stop.load(Ordering::Relaxed) {
            // Relaxed: a count that orders nothing.
            if served.load(Ordering::Relaxed) >= CLIENTS_MAX {
                thread::sleep(PAUSE);
                continue;
            }
            let mut listening = [PollFd::new(&self.listener, PollFlags::IN)];
            // A signal ends the wait early.
            let _ = poll(&mut listening, wait.as_ref());
            match self.listener.accept() {
                Ok((client, _)) => {
                    // Relaxed: as above.
                    served.fetch_add(1, Ordering::Relaxed);
                    let thread = thread::Builder::new().name("lowlat-http".to_owned());
                    let answer = move || {
                        // A client that breaks off gets no answer.
                        let _ = answer_client(client, stop, watch);
                        served.fetch_sub(1, Ordering::Relaxed);
                    };
                    if thread.spawn_scoped(clients, answer).is_err() {
                        // Without a thread the client's connection is closed.
                        served.fetch_sub(1, Ordering::Relaxed);
                    }
                }
                Err(error) if is_no_client(&error) => {}
                Err(error) => {
                    // The client stays in the queue, so the next poll would return at once.
                    if !has_warned {
                        output::talk(&format!(
                            "warning: cannot accept a client of --exporter: {error}\nhint: check the limit on open \
                             files (ulimit -n) and free memory; lowlat keeps trying"
                        ));
                    }
                    has_warned = true;
                    thread::sleep(LOOK_EVERY);
                }
            }
        }
    }
}

/// True if accept failed because no client waits, or no longer does.
fn is_no_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | ConnectionAborted | Interrupted)
}

fn answer_client(
    mut client: TcpStream,
    stop: &AtomicBool,
    watch: &(dyn Fn() -> Watch + Sync),
) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let answer = match receive(&mut client, stop)? {
        Some(request) => answer(&request, watch),
        None => plain("431 Request Header Fields Too Large", "the request is too long"),
    };
    let Answer { status, kind, body } = answer;
    let whole = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    send(&mut client, whole.as_bytes(), stop)
}

/// Sends an answer within [`REQUEST_TIME`], however slowly the client reads.
fn send(client: &mut TcpStream, mut unsent: &[u8], stop: &AtomicBool) -> io::Result<()> {
    let until = Instant::now() + REQUEST_TIME;
    while !unsent.is_empty() {
        client.set_write_timeout(Some(time_to_wait(until, stop)?))?;
        match client.write(unsent) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => unsent = unsent.get(length..).unwrap_or_default(),
            Err(error) if is_early(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Time to wait for a client before the stop flag is checked again; an error if none is left.
fn time_to_wait(until: Instant, stop: &AtomicBool) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    // Relaxed: the flag orders nothing.
    if left.is_zero() || stop.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(left.min(LOOK_EVERY))
}

/// True if a read or write ended by its timeout, or by a signal, and may be repeated.
fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Receives a request up to the empty line behind its header. `None` if it is too long.
fn receive(client: &mut TcpStream, stop: &AtomicBool) -> io::Result<Option<String>> {
    let until = Instant::now() + REQUEST_TIME;
    let (mut request, mut part) = (Vec::new(), [0; 1 << 10]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > REQUEST_MAX {
            return Ok(None);
        }
        client.set_read_timeout(Some(time_to_wait(until, stop)?))?;
        match client.read(&mut part) {
            Ok(0) => break,
            Ok(length) => request.extend_from_slice(part.get(..length).unwrap_or_default()),
            Err(error) if is_early(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(String::from_utf8_lossy(&request).into_owned()))
}

fn answer(request: &str, watch: &dyn Fn() -> Watch) -> Answer {
    let mut lines = request.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else { return plain("400 Bad Request", "this is not HTTP") };
    if !version.starts_with("HTTP/1.") {
        return plain("400 Bad Request", "this is not HTTP/1");
    }
    if target.split('?').next() != Some("/metrics") {
        return plain("404 Not Found", "metrics are at /metrics");
    }
    if method != "GET" {
        return plain("405 Method Not Allowed", "use GET");
    }
    let accepts = lines.filter_map(|line| line.split_once(':'));
    let mut accepts = accepts.filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
    let watch = watch();
    if accepts.any(|(_, kinds)| kinds.contains("application/openmetrics-text")) {
        Answer { status: "200 OK", kind: OPEN_METRICS, body: open_metrics(&watch) }
    } else {
        Answer { status: "200 OK", kind: CLASSIC, body: classic(&watch) }
    }
}

fn plain(status: &'static str, words: &str) -> Answer {
    Answer { status, kind: PLAIN, body: format!("{words}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_jitter_report::watch::Subject;
    use rustix::{
        net::{AddressFamily, SocketType, socket, sockopt::set_socket_recv_buffer_size},
        time::{ClockId, clock_gettime},
    };

    fn status(request: &str) -> &'static str {
        answer(request, &Watch::default).status
    }

    #[test]
    fn only_get_metrics_is_answered() {
        assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "200 OK");
        assert_eq!(status("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), "200 OK");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(status("GET /metrics/../etc HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(status("POST /metrics HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
        for junk in ["", "GET", "GET /metrics", "GET /metrics HTTP/2\r\n\r\n", "\u{16}\u{3}\u{1}"] {
            assert_eq!(status(junk), "400 Bad Request", "{junk:?}");
        }
    }

    #[test]
    fn the_client_chooses_the_format() {
        let open = answer(
            "GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0,text/plain\r\n\r\n",
            &Watch::default,
        );
        assert!(open.kind == OPEN_METRICS && open.body.ends_with("# EOF\n"), "{open:?}");
        let classic = answer("GET /metrics HTTP/1.1\r\nAccept: */*\r\n\r\n", &Watch::default);
        assert!(classic.kind == CLASSIC && !classic.body.contains("# EOF"), "{classic:?}");
        assert!(
            classic.body.contains("# TYPE lowlat_watch_seconds_total counter\nlowlat_watch_seconds_total ")
        );
    }

    #[test]
    fn other_hosts_reach_it_only_on_demand() {
        let error = Exporter::bind("0.0.0.0:0".parse().unwrap(), false).unwrap_err().to_string();
        assert!(error.contains("other hosts can reach it") && error.contains("--listen-anyway"), "{error}");
        assert!(Exporter::bind("127.0.0.1:0".parse().unwrap(), false).is_ok());
        assert!(Exporter::bind("[::1]:0".parse().unwrap(), false).is_ok_and(|e| e.address().port() != 0));
    }

    #[test]
    fn a_long_request_is_refused_and_the_next_client_is_answered() {
        let exporter = Exporter::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let stop = AtomicBool::new(false);
        let ask = |request: &[u8]| {
            let mut client = TcpStream::connect(exporter.address()).unwrap();
            // The server may answer and close before it has read everything.
            let _ = client.write_all(request);
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer);
            String::from_utf8(answer).unwrap()
        };
        thread::scope(|scope| {
            scope.spawn(|| exporter.serve(&stop, &Watch::default));
            ask(&vec![b'x'; 4 * REQUEST_MAX]);
            // A client that sends nothing and leaves.
            drop(TcpStream::connect(exporter.address()).unwrap());
            let answer = ask(b"GET /metrics HTTP/1.1\r\n\r\n");
            // Relaxed: the flag orders nothing.
            stop.store(true, Ordering::Relaxed);
            assert!(
                answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("lowlat_build_info"),
                "{answer}"
            );
        });
    }

    /// A watch whose metrics do not fit into the buffers of a connection.
    fn large() -> Watch {
        Watch::new(Subject { version: "x".repeat(16 << 20), ..Subject::default() })
    }

    /// A client that has asked for metrics and read the first byte, so the server sends.
    fn reader(exporter: &Exporter) -> TcpStream {
        let mut client = TcpStream::connect(exporter.address()).unwrap();
        set_socket_recv_buffer_size(&client, 64 << 10).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        client.read_exact(&mut [0]).unwrap();
        client
    }

    #[test]
    fn a_slow_client_does_not_hold_the_server() {
        let exporter = Exporter::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let (stop, is_served) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| exporter.serve(&stop, &large));
            let (mut slow, is_done) = (reader(&exporter), &is_served);
            let began = Instant::now();
            scope.spawn(move || {
                let mut part = vec![0; 32 << 10];
                // At this rate, the whole answer takes about 50 seconds. Relaxed: the flag orders nothing.
                while !is_done.load(Ordering::Relaxed) && slow.read(&mut part).is_ok_and(|length| length > 0)
                {
                    thread::sleep(Duration::from_millis(100));
                }
            });
            reader(&exporter);
            let waited = began.elapsed();
            // Relaxed: the flags order nothing.
            is_served.store(true, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
            assert!(waited < 5 * REQUEST_TIME, "{waited:?}");
        });
    }

    #[test]
    fn stop_ends_an_answer_that_no_client_reads() {
        let exporter = Exporter::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let server = scope.spawn(|| exporter.serve(&stop, &large));
            let _client = reader(&exporter);
            let began = Instant::now();
            // Relaxed: the flag orders nothing.
            stop.store(true, Ordering::Relaxed);
            server.join().unwrap();
            assert!(began.elapsed() < REQUEST_TIME / 2, "{:?}", began.elapsed());
        });
    }

    #[test]
    fn a_failure_to_accept_does_not_use_a_cpu() {
        // Accepting from a socket that does not listen fails, and polling it returns at once.
        let deaf = TcpListener::from(socket(AddressFamily::INET, SocketType::STREAM, None).unwrap());
        assert!(!is_no_client(&deaf.accept().unwrap_err()));
        let exporter = Exporter { listener: deaf, address: "127.0.0.1:0".parse().unwrap() };
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let server = scope.spawn(|| {
                exporter.serve(&stop, &Watch::default);
                Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
            });
            thread::sleep(4 * LOOK_EVERY);
            // Relaxed: the flag orders nothing.
            stop.store(true, Ordering::Relaxed);
            let used = server.join().unwrap();
            assert!(used < LOOK_EVERY / 2, "{used:?}");
        });
    }
}
