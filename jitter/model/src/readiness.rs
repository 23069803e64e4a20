//! Checks whether a host is quiet enough for a measurement, as the guide does first (guide 57037 section 5.2.1).

mod facts;
mod judge;

pub use facts::{
    BUSY_KEPT_MAX, BusyThread, BusyThreads, FrequencyFacts, ProfileFacts, ReadinessFacts, SwapFacts,
};
pub use judge::judge;

use serde::{Deserialize, Serialize};

/// One point checked before the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReadinessPoint {
    /// Stable name: "load", "affinity", "profile", "swap", "governor", "busy_threads".
    pub id: String,
    pub state: ReadinessState,
    /// The observation, in a few words.
    pub observed: String,
    /// Advice for this host; empty if it is ready.
    pub action: String,
    /// True if a measurement of isolated CPUs should wait until the host is ready.
    pub is_blocking: bool,
}

/// Readiness of the host in one point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadinessState {
    Ready,
    NotReady,
    #[default]
    NotKnown,
}

impl ReadinessPoint {
    /// True if a measurement of isolated CPUs should wait for this point. Unknown points never block.
    pub fn blocks(&self) -> bool {
        self.is_blocking && self.state == ReadinessState::NotReady
    }
}
