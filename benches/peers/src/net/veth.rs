//! Waiting modes of lowlat over a virtual link between two network namespaces, whose queues the kernel can poll.

use super::programs::lowlat_server;
use crate::tools;
use anyhow::{Context, ensure};
use std::{path::Path, process::Command};

/// Address and interface of each end; the addresses are of the range for benchmarks (RFC 2544).
const INTERFACE: &str = "eth0";
const CLIENT: &str = "198.18.217.1";
const SERVER: &str = "198.18.217.2";

/// The modes, each compared with the first.
const WAITS: [&str; 4] = ["block", "busy-poll", "epoll-busy-poll --muxer epoll", "spin"];

/// Two namespaces; deleted with this.
struct Link {
    names: [String; 2],
}

/// Runs a command whose words are separated by spaces.
fn shell(line: &str) -> anyhow::Result<()> {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    let output =
        Command::new(program).args(words).output().with_context(|| format!("cannot start {program}"))?;
    ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

impl Link {
    fn new() -> anyhow::Result<Self> {
        let names = ["a", "b"].map(|end| format!("lowlat-peers-{}-{end}", std::process::id()));
        let link = Self { names };
        let [a, b] = &link.names;
        shell(&format!("ip netns add {a}"))?;
        shell(&format!("ip netns add {b}"))?;
        shell(&format!("ip -n {a} link add {INTERFACE} type veth peer name {INTERFACE} netns {b}"))?;
        for (name, address) in [(a, CLIENT), (b, SERVER)] {
            shell(&format!("ip -n {name} address add {address}/24 dev {INTERFACE}"))?;
            shell(&format!("ip -n {name} link set {INTERFACE} up"))?;
            // Without GRO a veth has no queue that can be polled; with TSO it hands packets over without one.
            shell(&format!("ip netns exec {name} ethtool -K {INTERFACE} gro on tso off"))?;
        }
        Ok(link)
    }

    fn command(&self, end: usize, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end]]).arg(program);
        command
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = shell(&format!("ip netns delete {name}"));
        }
    }
}

/// Compares the modes round by round and prints what `lowlat net compare` says.
pub fn run(arguments: &super::Arguments, client_cpu: u32, server_cpu: u32) -> anyhow::Result<()> {
    let lowlat = tools::lowlat()?;
    let link = Link::new()?;
    for transport in ["udp", "tcp"] {
        let (_server, address) = lowlat_server(&mut link.command(1, &lowlat), SERVER, &[])?;
        let sides = WAITS.map(|wait| {
            format!(
                "-- {transport} {address} --wait {wait} --sizes {} --duration {}s --client-cpu {client_cpu} \
                 --server-cpu {server_cpu}",
                arguments.size, arguments.seconds
            )
        });
        let words = format!("net compare --rounds {} {}", arguments.rounds, sides.join(" "));
        let status = link.command(0, &lowlat).args(words.split_whitespace()).status()?;
        ensure!(status.success(), "lowlat {words} ended with {status}");
    }
    Ok(())
}
