//! The slowest round trips and their causes.

use super::Part;
use lowlat_host::CpuId;
use serde::{Deserialize, Serialize};
use std::fmt;

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
