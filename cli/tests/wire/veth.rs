//! The exchange in one network namespace and the pipeline in another one, over multicast.

use super::{Exchange, check_sums, number, run, warnings};
use std::process::Command;

/// Two namespaces with a pair of virtual interfaces; deleted with this.
struct Pair {
    names: [String; 2],
}

const ADDRESSES: [&str; 2] = ["10.214.77.1", "10.214.77.2"];
const FEED: &str = "udp:239.214.77.1:5000";

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {}: {said}", arguments.join(" "))) }
}

impl Pair {
    fn new() -> Result<Self, String> {
        let pair = Self { names: ["a", "b"].map(|end| format!("lowlat-wire-{}-{end}", std::process::id())) };
        let [a, b] = &pair.names;
        ip(&["netns", "add", a])?;
        ip(&["netns", "add", b])?;
        ip(&["-n", a, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b])?;
        for (name, address) in pair.names.iter().zip(ADDRESSES) {
            ip(&["-n", name, "address", "add", &format!("{address}/24"), "dev", "eth0"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            ip(&["-n", name, "link", "set", "eth0", "up"])?;
        }
        Ok(pair)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "delete", name]).ok();
        }
    }
}

/// The full scale is 80 strategies and 100,000 messages a second; this is what a shared machine with two cores does in a
/// few seconds. Whatever is lost must be reported, so the sums hold at any load.
#[test]
fn nothing_is_lost_unreported_between_two_namespaces() {
    let pair = match Pair::new() {
        Ok(pair) => pair,
        Err(reason) => {
            eprintln!("skipped: nothing_is_lost_unreported_between_two_namespaces: {reason}");
            return;
        }
    };
    let [far, near] = pair.names.each_ref().map(|name| Some(name.as_str()));
    let asked = ["--feed", FEED, "--feed-interface", "eth0", "--instruments", "20"];
    let load = ["--rate", "20000", "--duration", "2s"];
    let exchange = Exchange::start(far, ADDRESSES[0], &[&asked[..], &load].concat());
    let gateway = exchange.gateway.clone();
    let asked = ["--strategies", "20", "--feed", FEED, "--feed-interface", "eth0", "--gateway", &gateway];
    let more = ["--quotes-per-order", "50", "--duration", "60s"];
    let (document, _) = run(near, &[&asked[..], &more].concat());
    let (exchange, status) = exchange.end();
    check_sums(&document, &exchange);
    assert!(status.success());
    assert_eq!(number(&exchange, "/published"), 40_000);
    assert_eq!(document.pointer("/wire/feed/is_ended"), Some(&true.into()), "{}", warnings(&document));
    assert_eq!(number(&document, "/wire/feed/foreign"), 0);
    let said = warnings(&document);
    assert!(said.contains("The exchange runs on this machine") && !said.contains(" lo,"), "{said}");
}
