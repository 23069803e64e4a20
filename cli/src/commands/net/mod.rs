//! `lowlat net`: network cards and network latency.

mod choose;
mod compare;
mod nics;
pub mod pingpong;
mod prepare;
mod server;
pub mod stream;

use super::{Subcommand, examples};
use crate::exit::Exit;
use clap::{ArgMatches, FromArgMatches, Subcommand as _};
use lowlat_host::{HostSnapshot, Reading, snapshot::Nic};
use lowlat_net::sfnt::{HeaderFacts, InterfaceFacts};
use lowlat_results::ResultDocument;

pub const COMMAND: Subcommand = Subcommand { name: "net", declare: Action::augment_subcommands, run };

/// Show and prepare network interfaces, and measure network latency
#[derive(Debug, clap::Subcommand)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = examples(&[
    ("lowlat net nics", "Show every physical interface, and whether it can be measured."),
    ("lowlat net prepare enp1s0f1 --dry-run", "Show what prepares the host for an interface."),
    ("lowlat net server", "Answer clients on this host."),
    ("lowlat net pingpong client tcp 10.0.0.2 --wait spin", "Measure half round trips of every size."),
    ("lowlat net stream client udp 10.0.0.2 --p99 50us", "Find the highest rate without loss and with p99 within 50 us."),
    ("lowlat net compare -- udp 10.0.0.2 -- udp 10.0.0.2 --wait spin", "Compare two ways to wait, in turn."),
    ("lowlat net choose 10.0.0.2 --p99 20us --cpu-share 50%", "Find the cheapest way to wait for a goal."),
    ("lowlat net pingpong --import sfnt.log", "Read the output of sfnt-pingpong."),
]))]
enum Action {
    Nics(nics::NetNicsArgs),
    Prepare(prepare::NetPrepareArgs),
    Server(server::NetServerArgs),
    Pingpong(pingpong::NetPingpongArgs),
    #[command(subcommand, subcommand_required = false)]
    Stream(stream::Action),
    Compare(compare::NetCompareArgs),
    Choose(choose::NetChooseArgs),
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::Nics(arguments) => nics::run(&arguments),
        Action::Prepare(arguments) => prepare::run(&arguments),
        Action::Server(arguments) => server::run(&arguments),
        Action::Pingpong(arguments) => pingpong::run(&arguments),
        Action::Stream(stream::Action::Client(arguments)) => stream::run(&arguments),
        Action::Compare(arguments) => compare::run(&arguments),
        Action::Choose(arguments) => choose::run(&arguments),
    }
}

/// The interface of this name.
pub fn found<'a>(host: &'a HostSnapshot, name: &str) -> anyhow::Result<&'a Nic> {
    host.nics.iter().find(|nic| nic.name == name).ok_or_else(|| {
        let names: Vec<&str> = host.nics.iter().map(|nic| nic.name.as_str()).collect();
        let next = match names.as_slice() {
            [] => "no interface was found; `lowlat host show` has what could be read".to_owned(),
            names => format!("choose one of {}", names.join(", ")),
        };
        anyhow::anyhow!("cannot use interface {name}: this host has no such interface\nhint: {next}")
    })
}

/// Facts about this host for the header of sfnt-pingpong and sfnt-stream.
fn sfnt_header(document: &ResultDocument) -> HeaderFacts {
    let HostSnapshot { kernel, cpu, nics, memory, .. } = &document.snapshot;
    let text = |reading: &Reading<String>| reading.known().cloned().unwrap_or_default();
    let interface = |nic: &Nic| InterfaceFacts {
        name: nic.name.clone(),
        driver: text(&nic.driver),
        version: text(&nic.driver_version),
        bus: text(&nic.bus),
    };
    HeaderFacts {
        lowlat_version: document.lowlat_version.clone(),
        date: document.started_at.clone(),
        uname: format!("Linux {} {} {}", text(&kernel.release), text(&kernel.build), text(&kernel.machine)),
        cpu: text(&cpu.model_name),
        interfaces: nics.iter().filter(|nic| nic.driver.is_known()).map(interface).collect(),
        memory_kib: memory.total_bytes.known().map(|bytes| bytes / 1_024),
    }
}

/// The command line, for records: the path of the binary is left out.
fn command_line() -> String {
    ["lowlat".to_owned()].into_iter().chain(std::env::args().skip(1)).collect::<Vec<_>>().join(" ")
}
