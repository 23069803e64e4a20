//! The measurements of a run: a list, each entry tagged with its kind.

use crate::ResultDocument;
use lowlat_cache::{
    FalseSharingMeasurement, c2c::C2cMeasurement, clock::ClockMeasurement, clusters::ClustersMeasurement,
    memory::MemoryMeasurement,
};
use lowlat_jitter::JitterMeasurement;
use lowlat_net::{
    choose::NetChoiceMeasurement, compare::NetCompareMeasurement, pingpong::PingpongMeasurement,
    stream::StreamMeasurement,
};
use lowlat_workload::WorkloadMeasurement;
use serde::{Deserialize, Serialize};

/// Declares the kinds: what each measures, its type, and the name of its accessors.
macro_rules! kinds {
    ($($(#[$meta:meta])* $variant:ident($of:ty): $name:ident),*) => {
        /// One measurement of a run: its record and results.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Measurement {
            $($(#[$meta])* $variant(Box<$of>),)*
        }

        impl Measurement {
            /// Kind of the measurement, the word of its subcommand: "jitter", "pingpong", "c2c".
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$of>::KIND,)*
                }
            }

            $(
                /// The measurement, if it is of this kind.
                pub fn $name(&self) -> Option<&$of> {
                    if let Self::$variant(of) = self { Some(of) } else { None }
                }
            )*
        }

        impl ResultDocument {
            $(
                /// The measurement of this kind, if any.
                pub fn $name(&self) -> Option<&$of> {
                    self.measurements.iter().find_map(Measurement::$name)
                }
            )*
        }

        $(
            impl From<$of> for Measurement {
                fn from(of: $of) -> Self {
                    Self::$variant(Box::new(of))
                }
            }
        )*
    };
}

kinds! {
    /// Interruptions of user threads on each CPU.
    Jitter(JitterMeasurement): jitter,
    /// Round trips between a client and a server.
    Pingpong(PingpongMeasurement): pingpong,
    /// Latencies between the cores of a host.
    C2c(C2cMeasurement): c2c,
    /// Copies of jobs packed into clusters and spread over them.
    Clusters(ClustersMeasurement): clusters,
    /// Clocks of the cores under load.
    Clock(ClockMeasurement): clock,
    /// Latency and bandwidth of memory.
    Memory(MemoryMeasurement): memory,
    /// Cost of false sharing, or where a program has it.
    #[serde(rename = "false-sharing")]
    FalseSharing(FalseSharingMeasurement): false_sharing,
    /// Programs or settings that measured round trips in turn.
    #[serde(rename = "compare")]
    NetCompare(NetCompareMeasurement): net_compare,
    /// Waiting modes tried for a goal.
    #[serde(rename = "choose")]
    NetChoice(NetChoiceMeasurement): net_choice,
    /// Messages in one direction, at rising rates.
    Stream(StreamMeasurement): stream,
    /// Workloads measured under different settings.
    Workload(WorkloadMeasurement): workload
}

impl Measurement {
    /// The jitter measurement, mutable, to study it again or to judge it.
    pub fn jitter_mut(&mut self) -> Option<&mut JitterMeasurement> {
        if let Self::Jitter(jitter) = self { Some(jitter) } else { None }
    }
}

#[cfg(test)]
mod tests;
