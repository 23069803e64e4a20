//! Errors of ping-pong, with hints.

use super::{control::ControlError, xdp::XdpError};
use lowlat_jitter_run::clock::ClockError;
use lowlat_net::pingpong::{ScenarioError, Unsound, protocol::ProtocolError};
use std::{io, net::Ipv6Addr};
use thiserror::Error;

/// Error that prevents a measurement.
#[derive(Debug, Error)]
pub enum PingpongError {
    /// The scenario is not measurable.
    #[error("cannot measure: {0}")]
    Scenario(#[from] ScenarioError),
    #[error("cannot measure: {}\nhint: --force measures it and marks the result", sentences(.0))]
    Unsound(Vec<Unsound>),
    /// The server's name has no address.
    #[error("cannot find {name}: {source}\nhint: name the server by its address")]
    Name { name: String, source: io::Error },
    /// A link-local address without an interface, or with one that is missing.
    /// - `choices`: the address with each interface that it can have.
    #[error(
        "cannot connect to {address}: a link-local address needs an interface of this host\nhint: write {choices}"
    )]
    NoInterface { address: Ipv6Addr, choices: String },
    /// The server cannot be reached.
    #[error("cannot connect to {address}: {source}\nhint: start `lowlat net server` there")]
    Connect { address: String, source: io::Error },
    #[error("cannot measure with {address}: {source}\nhint: {}", hint_of(.source))]
    Control { address: String, source: ControlError },
    /// This end cannot use AF_XDP.
    #[error(transparent)]
    Xdp(XdpError),
    #[error("cannot listen on {address}: {source}\nhint: choose another address with --listen")]
    Listen { address: String, source: io::Error },
    /// A socket or its waiting mode cannot be set up.
    /// - `what`: transport, or muxer and waiting mode.
    #[error("cannot set up {what}: {source}\nhint: choose another transport, muxer or waiting mode")]
    SetUp { what: String, source: io::Error },
    /// A CPU cannot be used.
    #[error("cannot use CPU {0}: offline or outside of this process's cpuset\nhint: choose another CPU")]
    Cpu(u32),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}\nhint: raise the limit on threads")]
    Thread(io::Error),
    /// The ends have no counter in common.
    #[error(
        "cannot measure one-way latency: the ends run on two hosts, whose counters differ\nhint: use --latency echo"
    )]
    NoSharedCounter,
    /// The counter cannot be used.
    #[error(transparent)]
    Clock(#[from] ClockError),
}

fn sentences(unsound: &[Unsound]) -> String {
    let refused = unsound.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    refused.trim_end_matches('.').to_owned()
}

fn hint_of(error: &ControlError) -> &'static str {
    match error {
        ControlError::Protocol(ProtocolError::Version(_)) => "run the same version of lowlat on both hosts",
        ControlError::Protocol(_) | ControlError::Unexpected(_) => {
            "check that the port is that of `lowlat net server`"
        }
        ControlError::Refused(_) => "change the scenario, or wait until the server is free",
        _ => "check the server and the network between the hosts",
    }
}
