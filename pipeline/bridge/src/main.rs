//! `lowlat-bridge`: streams of one host's trading run in another's, over Aeron.
#![forbid(unsafe_code)]

mod cli;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Carry streams of one host's trading run to another host, over Aeron
#[derive(Debug, Parser)]
#[command(
    name = "lowlat-bridge",
    version,
    after_help = "docs/bridge.md explains when to use it, and how losses are reported."
)]
struct Arguments {
    #[command(subcommand)]
    command: BridgeCommand,
}

#[derive(Debug, Subcommand)]
enum BridgeCommand {
    /// Run Aeron's media driver, one per host; any other driver of Aeron works too
    Driver(cli::driver::DriverArgs),
    /// Send streams of this host's run
    Send(cli::send::SendArgs),
    /// Publish streams of another host in this host's run
    Receive(cli::receive::ReceiveArgs),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        BridgeCommand::Driver(arguments) => cli::driver::run(&arguments),
        BridgeCommand::Send(arguments) => cli::send::run(&arguments),
        BridgeCommand::Receive(arguments) => cli::receive::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
