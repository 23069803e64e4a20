//! Metrics over HTTP: a server that answers GET /metrics and nothing else.
//!
//! It answers one client at a time. A request is bounded in size and time, so a client can delay others by
//! [`REQUEST_TIME`] and do no more.

use anyhow::{Context, bail};
use lowlat_watch_report::{Watch, classic, open_metrics};
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::Timespec,
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// Longest request with its header, in bytes. Prometheus sends a few hundred.
const REQUEST_MAX: usize = 8 << 10;
/// Time to receive a request, and to take the answer.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// Longest time until a raised stop flag is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(250);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// A listening server.
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
    pub fn serve(&self, stop: &AtomicBool, watch: &dyn Fn() -> Watch) {
        let wait = Timespec::try_from(LOOK_EVERY).ok();
        while !stop.load(Ordering::Relaxed) {
            let mut listening = [PollFd::new(&self.listener, PollFlags::IN)];
            // A signal ends the wait early.
            let _ = poll(&mut listening, wait.as_ref());
            if let Ok((client, _)) = self.listener.accept() {
                // A client that breaks off gets no answer.
                let _ = answer_client(client, watch);
            }
        }
    }
}

fn answer_client(mut client: TcpStream, watch: &dyn Fn() -> Watch) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(REQUEST_TIME))?;
    let answer = match receive(&mut client)? {
        Some(request) => answer(&request, watch),
        None => plain("431 Request Header Fields Too Large", "the request is too long"),
    };
    let Answer { status, kind, body } = answer;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes())?;
    client.write_all(body.as_bytes())
}

/// Receives a request up to the empty line behind its header. `None` if it is too long.
fn receive(client: &mut TcpStream) -> io::Result<Option<String>> {
    let until = Instant::now() + REQUEST_TIME;
    let (mut request, mut part) = (Vec::new(), [0; 1 << 10]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > REQUEST_MAX {
            return Ok(None);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut part)? {
            0 => break,
            length => request.extend_from_slice(part.get(..length).unwrap_or_default()),
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
    use std::thread;

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
            stop.store(true, Ordering::Relaxed);
            assert!(
                answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("lowlat_build_info"),
                "{answer}"
            );
        });
    }
}
