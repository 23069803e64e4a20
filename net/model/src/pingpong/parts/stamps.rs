//! Time stamps of one message.

use serde::{Deserialize, Serialize};

/// One end's stamps of a message and its answer, in nanoseconds of that host's real-time clock where nothing else is
/// said. Missing ones are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stamps {
    /// The program is about to call `send`.
    #[serde(rename = "p", skip_serializing_if = "Option::is_none")]
    pub sending_ns: Option<u64>,
    /// The packet is handed to the queueing discipline (SCM_TSTAMP_SCHED).
    #[serde(rename = "q", skip_serializing_if = "Option::is_none")]
    pub queued_ns: Option<u64>,
    /// The driver hands the packet to the device (SCM_TSTAMP_SND).
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    pub sent_ns: Option<u64>,
    /// The NIC sends the packet, in nanoseconds of its own clock.
    #[serde(rename = "S", skip_serializing_if = "Option::is_none")]
    pub sent_by_nic_ns: Option<u64>,
    /// The NIC receives a packet, in nanoseconds of its own clock.
    #[serde(rename = "A", skip_serializing_if = "Option::is_none")]
    pub arrived_at_nic_ns: Option<u64>,
    /// The driver hands a received packet to the kernel.
    #[serde(rename = "a", skip_serializing_if = "Option::is_none")]
    pub arrived_ns: Option<u64>,
    /// The receiving call has returned to the program.
    #[serde(rename = "r", skip_serializing_if = "Option::is_none")]
    pub received_ns: Option<u64>,
}

/// Time when the kernel started to wake the thread for a message, in the same clock as the end's [`Stamps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wakes {
    /// Nothing was traced, or events were lost.
    Unknown,
    /// The thread was awake: it had not gone to sleep when the message came.
    Awake,
    /// Woken at this time, in nanoseconds.
    At(u64),
}

/// Everything known of one round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Start of the measured time, in nanoseconds since the start of the size.
    pub at_ns: u64,
    /// The measured time, by the counter alone.
    pub measured_ns: u64,
    pub client: Stamps,
    pub server: Stamps,
    /// When the client's thread was woken.
    pub client_wake: Wakes,
    /// When the server's thread was woken.
    pub server_wake: Wakes,
}

impl RoundTrip {
    /// For how long the packet was away from the client's NIC, and for how long it was at the server's; the inner
    /// `None` if a NIC's stamps are out of order. `None` unless both NICs stamped it twice.
    pub(super) fn between_nics(&self) -> Option<[Option<u64>; 2]> {
        let [(sent, back), (left, came)] =
            [&self.client, &self.server].map(|end| (end.sent_by_nic_ns, end.arrived_at_nic_ns));
        Some([back?.checked_sub(sent?), left?.checked_sub(came?)])
    }
}
