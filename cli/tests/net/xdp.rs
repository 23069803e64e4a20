//! AF_XDP between two network namespaces, as users start it.

use crate::common;
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const ADDRESS: &str = "10.214.72.2";

/// Two namespaces with a veth pair; deleted with this.
struct Pair([String; 2]);

fn ip(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    if output.status.success() { Ok(common::text(&output.stdout)) } else { Err(common::text(&output.stderr)) }
}

impl Pair {
    fn new() -> Result<Self, String> {
        let pair = Self(["a", "b"].map(|end| format!("lowlat-cli-{}-{end}", std::process::id())));
        let [a, b] = &pair.0;
        ip(&["netns", "add", a])?;
        ip(&["netns", "add", b])?;
        ip(&["-n", a, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b])?;
        for (name, address) in pair.0.iter().zip(["10.214.72.1", ADDRESS]) {
            ip(&["-n", name, "address", "add", &format!("{address}/24"), "dev", "eth0"])?;
            ip(&["-n", name, "link", "set", "eth0", "up"])?;
        }
        Ok(pair)
    }

    fn start(&self, end: usize, arguments: &[&str]) -> Child {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[end]]).arg(common::binary()).arg("net").args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("ip starts")
    }

    /// Waits until an end has an XDP program, or has none.
    fn wait_for(&self, end: usize, has_program: bool) {
        let start = Instant::now();
        let has = || ip(&["-n", &self.0[end], "link", "show", "eth0"]).unwrap().contains("prog/xdp");
        while has() != has_program {
            assert!(start.elapsed() < Duration::from_secs(60), "end {end}: a program: {}", has());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

#[test]
fn a_killed_client_leaves_no_program_on_its_interface_and_none_on_the_server_s() {
    let test = "a_killed_client_leaves_no_program";
    if ip(&["netns", "list"]).is_err() || !rustix::process::geteuid().is_root() {
        eprintln!("skipped: {test}: needs root and ip(8)");
        return;
    }
    let pair = match Pair::new() {
        Ok(pair) => pair,
        Err(why) => {
            eprintln!("skipped: {test}: {why}");
            return;
        }
    };
    let mut server = pair.start(1, &["server", "--listen", ADDRESS]);
    let mut line = String::new();
    BufReader::new(server.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on "), "{line}");
    let mut client =
        pair.start(0, &["pingpong", "client", "xdp", ADDRESS, "--sizes", "32", "--duration", "60s"]);
    pair.wait_for(0, true);
    pair.wait_for(1, true);
    // SIGKILL; `ip netns exec` has become the client.
    client.kill().unwrap();
    client.wait().unwrap();
    pair.wait_for(0, false);
    pair.wait_for(1, false);
    server.kill().unwrap();
    server.wait().unwrap();
}
