//! The parts of one round trip.

use super::{RoundTrip, Wakes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Share of the measured time by which the sum of the parts may differ from it.
pub const SUM_TOLERANCE: f64 = 0.02;

/// A part of a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The client's `send`, until the packet is handed to the queueing discipline.
    ClientSend,
    /// The client's queueing discipline and driver.
    ClientDriver,
    /// There and back between the NICs, if both stamp packets in hardware; otherwise between the drivers.
    Wire,
    /// From the drivers to the wire and from the wire to the drivers, of both ends; only with stamps of both NICs.
    Nics,
    /// From the server's driver to its socket.
    ServerSocket,
    /// Waking the server's thread, until its receiving call has returned.
    ServerWake,
    /// The server's program, from receiving the message to sending the answer.
    Program,
    /// The server's `send`, until the packet is handed to the queueing discipline.
    ServerSend,
    /// The server's queueing discipline and driver.
    ServerDriver,
    /// From the client's driver to its socket.
    ClientSocket,
    /// Waking the client's thread, until its receiving call has returned.
    ClientWake,
}

/// Every part, in the order of time.
pub const PARTS: [Part; 11] = [
    Part::ClientSend,
    Part::ClientDriver,
    Part::Wire,
    Part::Nics,
    Part::ServerSocket,
    Part::ServerWake,
    Part::Program,
    Part::ServerSend,
    Part::ServerDriver,
    Part::ClientSocket,
    Part::ClientWake,
];

impl Part {
    /// Returns its index in [`PARTS`].
    pub fn place(self) -> usize {
        PARTS.iter().position(|part| *part == self).unwrap_or_default()
    }

    /// True if it is time on the server.
    pub fn is_server(self) -> bool {
        matches!(
            self,
            Self::ServerSocket | Self::ServerWake | Self::Program | Self::ServerSend | Self::ServerDriver
        )
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClientSend => "client: send call",
            Self::ClientDriver => "client: qdisc and driver",
            Self::Wire => "between the drivers",
            Self::Nics => "both NICs",
            Self::ServerSocket => "server: driver to socket",
            Self::ServerWake => "server: wake-up",
            Self::Program => "server: program",
            Self::ServerSend => "server: send call",
            Self::ServerDriver => "server: qdisc and driver",
            Self::ClientSocket => "client: driver to socket",
            Self::ClientWake => "client: wake-up",
        })
    }
}

/// Reason why a round trip has no parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    Missing,
    /// Stamps of one clock are out of order, or the server was busy for longer than the packet was away.
    Disordered,
}

/// The parts of one round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Split {
    ns: [u64; PARTS.len()],
}

impl Split {
    /// Splits a round trip. Where it is unknown when a thread was woken, its wake-up is within the part before.
    ///
    /// # Errors
    /// [`Flaw`] if its stamps do not allow it.
    pub fn of(exchange: &RoundTrip) -> Result<Self, Flaw> {
        let RoundTrip { client, server, .. } = exchange;
        let all = (|| {
            let near = [client.sending_ns?, client.queued_ns?, client.sent_ns?];
            let far = [server.arrived_ns?, server.received_ns?, server.sending_ns?];
            let back = [server.queued_ns?, server.sent_ns?];
            Some((near, far, back, client.arrived_ns?, client.received_ns?))
        })();
        let (near, far, back, client_arrived, client_received) = all.ok_or(Flaw::Missing)?;
        let [sending, queued, sent] = near;
        let [server_arrived, server_received, server_sending] = far;
        let [server_queued, server_sent] = back;
        let between = |from: u64, to: u64| to.checked_sub(from).ok_or(Flaw::Disordered);
        let away = between(sent, client_arrived)?;
        let at_server = between(server_arrived, server_sent)?;
        let between_drivers = between(at_server, away)?;
        let wire = match exchange.between_nics() {
            Some([Some(away), Some(at_server)]) => between(at_server, away)?.min(between_drivers),
            Some(_) => return Err(Flaw::Disordered),
            None => between_drivers,
        };
        let (server_socket, server_wake) = arrival(server_arrived, server_received, exchange.server_wake)?;
        let (client_socket, client_wake) = arrival(client_arrived, client_received, exchange.client_wake)?;
        Ok(Self {
            ns: [
                between(sending, queued)?,
                between(queued, sent)?,
                wire,
                between_drivers - wire,
                server_socket,
                server_wake,
                between(server_received, server_sending)?,
                between(server_sending, server_queued)?,
                between(server_queued, server_sent)?,
                client_socket,
                client_wake,
            ],
        })
    }

    /// The time of a part.
    pub fn ns(&self, part: Part) -> u64 {
        self.ns.get(part.place()).copied().unwrap_or_default()
    }

    /// Every part with its time.
    pub fn iter(&self) -> impl Iterator<Item = (Part, u64)> + '_ {
        PARTS.iter().copied().zip(self.ns)
    }

    /// The sum of the parts.
    pub fn sum_ns(&self) -> u64 {
        self.ns.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// True if the parts add up to the measured time within [`SUM_TOLERANCE`].
    pub fn adds_up_to(&self, measured_ns: u64) -> bool {
        self.sum_ns().abs_diff(measured_ns) as f64 <= SUM_TOLERANCE * measured_ns as f64
    }
}

/// Splits an arrival into the way to the socket and the wake-up. The kernel can start a wake-up for an earlier packet
/// of the same message.
fn arrival(arrived: u64, received: u64, wake: Wakes) -> Result<(u64, u64), Flaw> {
    let whole = received.checked_sub(arrived).ok_or(Flaw::Disordered)?;
    Ok(match wake {
        Wakes::Unknown | Wakes::Awake => (whole, 0),
        Wakes::At(at) => {
            let to_socket = at.clamp(arrived, received) - arrived;
            (to_socket, whole - to_socket)
        }
    })
}
