//! lowlat beside other people's software: programs on PATH run in turn with it, and ratios of the rounds are printed.

mod jitter;
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
    /// Interruptions: beside sysjitter and oslat
    Jitter(jitter::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().bench {
        Bench::Jitter(arguments) => jitter::run(&arguments),
    }
}
