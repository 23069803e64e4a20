//! lowlat beside other people's software: programs on PATH run in turn with it, and ratios of the rounds are printed.

mod cache;
mod ipc;
mod jitter;
mod net;
mod rounds;
mod tools;

use clap::{Parser, Subcommand};

/// Compares lowlat with the programs that do the same work, in interleaved rounds.
#[derive(Debug, Parser)]
#[command(name = "lowlat-peers")]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Interruptions: beside sysjitter and oslat; wake-ups: beside cyclictest
    Jitter(jitter::Arguments),
    /// Trading processes over shared memory: beside a model of Kungfu, and transports beside other transports
    Ipc(ipc::Arguments),
    /// Round trips over sockets: beside sfnt-pingpong and sockperf
    Net(net::Arguments),
    /// Latency between cores, semaphores and messages: beside core-to-core-latency and stress-ng
    Cache(cache::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().bench {
        Bench::Jitter(arguments) => jitter::run(&arguments),
        Bench::Ipc(arguments) => ipc::run(&arguments),
        Bench::Net(arguments) => net::run(&arguments),
        Bench::Cache(arguments) => cache::run(&arguments),
    }
}
