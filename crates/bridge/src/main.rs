//! `lowlat-bridge`: streams of one host's trading run in another's, over Aeron.
#![forbid(unsafe_code)]

mod cli;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Carries streams of one host's trading run to another host, over Aeron.
#[derive(Debug, Parser)]
#[command(
    name = "lowlat-bridge",
    version,
    after_help = "docs/bridge.md tells when to use it, and what is lost and told."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run Aeron's media driver, one on each host; any other driver of Aeron does as well
    Driver(cli::driver::Arguments),
    /// Send streams of this host's run
    Send(cli::send::Arguments),
    /// Publish streams of another host in this host's run
    Receive(cli::receive::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Driver(arguments) => cli::driver::run(&arguments),
        Command::Send(arguments) => cli::send::run(&arguments),
        Command::Receive(arguments) => cli::receive::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
