//! Metrics over HTTP and in a file, read by Python's prometheus_client.

use crate::common::{binary, running::Running, text, venv::venv};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt as _;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

const PACKAGE: &str = "prometheus_client==0.23.1";

/// Parses standard input in the format of its argument, and prints the names of all samples.
const PARSE: &str = "
import sys
if sys.argv[1] == 'open':
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
else:
    from prometheus_client.parser import text_string_to_metric_families as parse
families = list(parse(sys.stdin.read()))
assert all(family.documentation for family in families)
assert all(family.type in ('counter', 'gauge') for family in families), [f.type for f in families]
print('\\n'.join(sorted({sample.name for family in families for sample in family.samples})))
";

/// The names of all samples, as Python's parser reads them; `None` if it cannot be installed.
fn parsed(test: &str, format: &str, metrics: &str) -> Option<Vec<String>> {
    let place = match venv("prometheus-client", PACKAGE) {
        Ok(place) => place,
        Err(why) => {
            eprintln!("skipped: {test}: Python's prometheus_client cannot be installed: {why}");
            return None;
        }
    };
    let mut python = Command::new(place.join("bin/python3"))
        .args(["-c", PARSE, format])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{}\n{metrics}", text(&output.stderr));
    Some(text(&output.stdout).lines().map(str::to_owned).collect())
}

fn check_samples(names: &[String]) {
    for name in
        ["lowlat_build_info", "lowlat_watch_seconds_total", "lowlat_cpu_state", "lowlat_cpu_events_total"]
    {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    let listed = include_str!("../../../jitter/report/tests/metrics.txt");
    for name in names {
        assert!(listed.lines().any(|known| known == name), "{name} is not listed");
    }
}

/// Starts an exporter on a free port, and returns its address.
fn exporter() -> (Running, String) {
    let mut child = Command::new(binary())
        .args(["watch", "--exporter", "127.0.0.1:0", "--interval", "200ms"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address =
        line.trim().strip_prefix("serving metrics at http://").and_then(|url| url.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    (Running(Some(child)), address)
}

fn get(address: &str, request: &str) -> (String, String) {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Asks until the first interval is over.
fn metrics(address: &str, accept: &str) -> (String, String) {
    loop {
        let (head, body) =
            get(address, &format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n"));
        if body.contains("lowlat_watch_last_timestamp_seconds 1") {
            return (head, body);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn end(mut running: Running) -> Option<i32> {
    let mut child: Child = running.0.take().unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait().unwrap().code()
}

#[test]
fn prometheus_reads_the_exporter() {
    let (running, address) = exporter();
    let (head, body) = metrics(&address, "application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"), "{head}");
    let (plain_head, plain) = metrics(&address, "text/plain");
    assert!(plain_head.contains("\r\nContent-Type: text/plain; version=0.0.4"), "{plain_head}");
    let (refused, _) = get(&address, "GET /etc/passwd HTTP/1.1\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 404 "), "{refused}");
    assert_eq!(end(running), Some(0));
    let test = "prometheus_reads_the_exporter";
    for (format, metrics) in [("open", &body), ("classic", &plain)] {
        if let Some(names) = parsed(test, format, metrics) {
            check_samples(&names);
        }
    }
    promtool(test, &["check", "metrics"], &plain);
}

/// One-off intruders and a watch that has ended are alerts, each on its host alone.
#[test]
fn alerts_fire() {
    promtool("alerts_fire", &["test", "rules", "tests/watch/alerts.yml"], "");
}

/// Prometheus's own linter and tester.
fn promtool(test: &str, arguments: &[&str], input: &str) {
    let started = Command::new("promtool")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut promtool = match started {
        Ok(promtool) => promtool,
        Err(error) => {
            eprintln!("skipped: {test}: promtool: {error}");
            return;
        }
    };
    promtool.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn silent_clients_delay_no_scrape() {
    let (running, address) = exporter();
    // A silent client is left after two seconds: on a stalled machine before the scrape is answered.
    let is_beside_them = (0..5).any(|_| {
        let silent: Vec<TcpStream> = (0..6).map(|_| TcpStream::connect(&address).unwrap()).collect();
        let (head, _) = get(&address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        silent.iter().all(|client| {
            client.set_nonblocking(true).unwrap();
            (&*client).read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        })
    });
    assert!(is_beside_them, "the scrape waited until the silent clients were left");
    assert_eq!(end(running), Some(0));
}

#[test]
fn node_exporter_s_textfile_is_whole_at_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lowlat.prom");
    let child = Command::new("sh")
        .args(["-c", "umask 077; exec \"$@\"", "sh"])
        .arg(binary())
        .args(["watch", "--interval", "100ms", "--textfile"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running(Some(child));
    let mut versions = std::collections::BTreeSet::new();
    while versions.len() < 4 {
        let Ok(metrics) = fs::read_to_string(&file) else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        // Every version that a reader can see contains the last metric.
        assert!(
            metrics.ends_with('\n') && metrics.contains("# TYPE lowlat_interruptions_unread_total counter"),
            "{metrics}"
        );
        versions.insert(metrics);
    }
    assert_eq!(end(running), Some(0));
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["lowlat.prom"], "nothing else is left over");
    let last = fs::read_to_string(&file).unwrap();
    if let Some(names) = parsed("node_exporter_s_textfile_is_whole_at_any_time", "classic", &last) {
        check_samples(&names);
    }
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o004, 0o004, "node_exporter runs as another user");
}
