//! Splits the time of a round trip into parts that add up, from the time stamps of both ends.
//!
//! Every part is a difference within one clock, so the clocks of the two hosts need not agree. The wire is what is left
//! of the client's time between its packet's departure and the answer's arrival when the server's own time between
//! arrival and departure is taken away.

mod split;
mod tally;

pub use split::{Flaw, PARTS, Part, SUM_TOLERANCE, Split};
pub use tally::{Kept, SLOWEST_MAX, Tally};

use lowlat_host::CpuId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Sources of the parts of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartsFacts {
    /// True if the kernel's trace shows when the end's thread was woken: client, server.
    pub is_traced: [bool; 2],
    /// True if both NICs stamped the packets: the wire is then between the NICs, otherwise between the drivers.
    #[serde(default)]
    pub is_by_nics: bool,
    /// Reasons why an end was not traced, and gaps in the trace, one sentence each.
    pub notes: Vec<String>,
}

/// Parts of the round trips of one size, from the rounds with time stamps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SizeParts {
    /// Round trips with time stamps.
    pub messages: u64,
    /// Those with a stamp missing.
    pub missing: u64,
    /// Those whose stamps are out of order.
    pub disordered: u64,
    /// Those whose parts add up to the measured time within 2 %.
    pub adding_up: u64,
    /// Those with all stamps, but with an unknown wake-up because trace events were lost. Their parts are not counted.
    pub untraced: u64,
    /// Parts in the order of time; wake-ups only of ends that were traced.
    pub parts: Vec<PartFigures>,
    /// Median round trip with time stamps.
    pub stamped_median_ns: u64,
    /// Median round trip of the interleaved rounds without.
    pub plain_median_ns: u64,
    /// The slowest round trips with time stamps, slowest first.
    pub slowest: Vec<SlowMessage>,
}

/// One part over all round trips of a size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartFigures {
    pub part: Part,
    pub median_ns: u64,
    /// Its 99th percentile, if the count supports it.
    pub p99_ns: Option<u64>,
    /// Its time in all round trips together.
    pub total_ns: u64,
}

impl SizeParts {
    /// Share of the round trips whose parts add up, from 0 to 1.
    pub fn share_adding_up(&self) -> f64 {
        self.adding_up as f64 / self.messages.max(1) as f64
    }

    /// A part's share of the time of all round trips, from 0 to 1.
    pub fn share_of(&self, figures: &PartFigures) -> f64 {
        let all: u64 = self.parts.iter().map(|part| part.total_ns).fold(0, u64::saturating_add);
        figures.total_ns as f64 / all.max(1) as f64
    }

    /// Ratio of the medians with and without time stamps; `None` without both.
    pub fn stamp_cost_ratio(&self) -> Option<f64> {
        let is_known = self.stamped_median_ns > 0 && self.plain_median_ns > 0;
        is_known.then(|| self.stamped_median_ns as f64 / self.plain_median_ns as f64)
    }
}

/// One of the slowest round trips.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SlowMessage {
    /// Its start, in nanoseconds since the start of the size.
    pub at_ns: u64,
    pub round_trip_ns: u64,
    /// The part that exceeded its median by most.
    pub part: Part,
    /// The time of that part.
    pub part_ns: u64,
    /// Median of that part, in nanoseconds.
    pub usual_ns: u64,
    pub cause: SlowCause,
    /// The CPU where the cause ran, if the trace shows one.
    pub cpu: Option<CpuId>,
    /// Time that the cause took within the part.
    pub cause_ns: u64,
}

/// Reason why a part of a round trip took long.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum SlowCause {
    /// The CPU left an idle state.
    IdleExit,
    /// Another thread had the CPU.
    Preempted(String),
    /// The thread could not run: stopped, throttled.
    Held(String),
    /// A softirq or tasklet, by name.
    Softirq(String),
    Timer(String),
    /// An interrupt, or a function that another CPU asked for.
    Interrupt(String),
    /// Other work of the kernel.
    Kernel(String),
    /// The hypervisor or firmware had the CPU: no event of the kernel explains the time, and steal time increased.
    Steal,
    /// The part is on the other host, whose trace is not available here.
    OtherHost,
    /// Events of the trace are missing for that time.
    NotTraced,
    /// The trace shows nothing that took the time.
    NotFound,
}

impl fmt::Display for SlowCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IdleExit => f.write_str("idle exit"),
            Self::Preempted(name) => write!(f, "preempted by {name}"),
            Self::Held(name)
            | Self::Softirq(name)
            | Self::Timer(name)
            | Self::Interrupt(name)
            | Self::Kernel(name) => f.write_str(name),
            Self::Steal => f.write_str("steal"),
            Self::OtherHost => f.write_str("on the other host"),
            Self::NotTraced => f.write_str("not traced"),
            Self::NotFound => f.write_str("not found"),
        }
    }
}

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
    fn between_nics(&self) -> Option<[Option<u64>; 2]> {
        let [(sent, back), (left, came)] =
            [&self.client, &self.server].map(|end| (end.sent_by_nic_ns, end.arrived_at_nic_ns));
        Some([back?.checked_sub(sent?), left?.checked_sub(came?)])
    }
}
