//! `lowlat pipeline run --feed --gateway` and `lowlat pipeline exchange` from their users' view.

mod itch;
mod planted;
mod veth;

use crate::common::running::Running;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read},
    net::UdpSocket,
    process::{Command, ExitStatus, Output, Stdio},
    thread,
};
use tempfile::TempDir;

/// A command of lowlat that prints JSON, in a namespace if one is named.
fn lowlat(namespace: Option<&str>, arguments: &[&str]) -> Command {
    let mut command = match namespace {
        None => Command::new(crate::common::binary()),
        Some(name) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", name]).arg(crate::common::binary());
            command
        }
    };
    command.args(arguments).arg("--json").env("NO_COLOR", "1");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A simulated exchange that accepts orders.
struct Exchange {
    running: Running,
    /// Its address, as a pipeline's argument.
    gateway: String,
}

impl Exchange {
    fn start(namespace: Option<&str>, address: &str, arguments: &[&str]) -> Self {
        let gateway = format!("tcp:{address}:0");
        let asked = [&["pipeline", "exchange", "--gateway", &gateway], arguments].concat();
        let mut child = lowlat(namespace, &asked).spawn().unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        talk.read_line(&mut line).unwrap();
        let gateway = line.trim().strip_prefix("accepting orders at ").expect(&line).to_owned();
        // It must not block because nobody reads its further output.
        thread::spawn(move || talk.read_to_end(&mut Vec::new()));
        Self { running: Running(Some(child)), gateway }
    }

    /// Its document and exit status, after it has ended.
    fn end(mut self) -> (Value, ExitStatus) {
        let mut child = self.running.0.take().unwrap();
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        (serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")), child.wait().unwrap())
    }
}

/// A run of the pipeline.
fn run(namespace: Option<&str>, arguments: &[&str]) -> (Value, Output) {
    let runs = TempDir::new().unwrap();
    let asked = [&["pipeline", "run", "--force"], arguments].concat();
    let output = lowlat(namespace, &asked).env("XDG_RUNTIME_DIR", runs.path()).output().unwrap();
    let document =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (document, output)
}

fn number(document: &Value, path: &str) -> u64 {
    document.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} of {document:.3000}"))
}

fn warnings(document: &Value) -> String {
    let warnings = document["warnings"].as_array().unwrap().iter().filter_map(Value::as_str);
    warnings.collect::<Vec<_>>().join("\n")
}

/// A port that is free now.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Checks that every message is accounted for and every order answered, and that parts add up.
fn check_sums(document: &Value, exchange: &Value) {
    let received = number(document, "/wire/feed/received");
    let missing = number(document, "/wire/feed/missing");
    assert_eq!(received + missing, number(exchange, "/published"), "{}", warnings(document));
    let published = number(document, "/wire/feed/published");
    assert_eq!(published + number(document, "/wire/feed/foreign"), received);
    assert_eq!(number(document, "/ticks_published"), published);
    let orders = number(document, "/orders");
    assert_eq!(number(document, "/answers"), orders);
    let sent = number(document, "/wire/gateway/sent");
    assert_eq!(sent + number(document, "/wire/gateway/unsent"), orders, "no order was over a limit");
    assert_eq!(number(exchange, "/orders"), sent);
    assert_eq!(number(document, "/wire/gateway/accepted"), number(exchange, "/accepted"));
    assert_eq!(number(document, "/wire/gateway/fills"), number(exchange, "/fills"));
    let measured = number(document, "/wire/gateway/measured");
    assert_eq!(measured + number(document, "/wire/gateway/unstamped"), sent);
    assert!(measured > 0 && number(document, "/wire/gateway/adding_up") * 100 >= measured * 99);
    assert_eq!(number(document, "/wire/stages/tick_to_trade/count"), measured);
}

#[test]
fn a_run_with_an_exchange_is_measured_from_packet_to_packet() {
    let feed = format!("udp:127.0.0.1:{}", free_port());
    let asked = ["--feed", &feed, "--instruments", "4", "--rate", "2000", "--duration", "1s"];
    let exchange = Exchange::start(None, "127.0.0.1", &asked);
    let gateway = exchange.gateway.clone();
    let asked = ["--strategies", "3", "--feed", &feed, "--gateway", &gateway, "--duration", "30s"];
    let (document, output) = run(None, &asked);
    let (exchange, status) = exchange.end();
    check_sums(&document, &exchange);
    assert_eq!(number(&exchange, "/published"), 2000);
    assert_eq!(number(&document, "/wire/feed/foreign"), 500, "the run has 3 of 4 instruments");
    assert!(warnings(&document).contains("500 quotes were of instruments that the run does not have"));
    assert!(
        warnings(&document).contains("arrived over lo") && warnings(&document).contains("The orders pass lo")
    );
    // Each quote was an order, unless a strategy lost it.
    assert_eq!(number(&document, "/orders") + number(&document, "/lost"), 1500);
    assert!(number(&exchange, "/quote_to_order/count") == number(&document, "/orders") && status.success());
    let is_whole = number(&document, "/wire/feed/missing") + number(&document, "/lost") == 0;
    assert_eq!(output.status.success(), is_whole, "{}", warnings(&document));
}

#[test]
fn datagrams_that_the_kernel_drops_are_told_from_the_network_s() {
    let feed = format!("udp:127.0.0.1:{}", free_port());
    let asked = ["--feed", &feed, "--instruments", "2", "--rate", "200000", "--duration", "1s"];
    let exchange = Exchange::start(None, "127.0.0.1", &asked);
    let gateway = exchange.gateway.clone();
    let asked = [
        "--strategies",
        "2",
        "--feed",
        &feed,
        "--feed-buffer",
        "1K",
        "--quotes-per-order",
        "1000",
        "--gateway",
        &gateway,
        "--duration",
        "30s",
    ];
    let (document, output) = run(None, &asked);
    let (exchange, _) = exchange.end();
    check_sums(&document, &exchange);
    let missing = number(&document, "/wire/feed/missing");
    assert!(missing > 0 && number(&document, "/wire/feed/socket_drops") > 0, "{}", warnings(&document));
    assert_eq!(number(&document, "/wire/feed/missing_in_socket"), missing, "loopback loses nothing");
    assert_eq!(output.status.code(), Some(1));
    assert!(warnings(&document).contains("raise --feed-buffer"), "{}", warnings(&document));
}
