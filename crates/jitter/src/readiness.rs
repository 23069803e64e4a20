//! Whether a host is quiet enough for a measurement, as the guide checks first (guide 57037 section 5.2.1).

mod facts;
mod judge;
mod texts;

pub use facts::{BUSY_KEPT_MAX, BusyThread, BusyThreads, CpuClock, ProfileFacts, ReadinessFacts, SwapFacts};
pub use judge::judge;

use serde::{Deserialize, Serialize};

/// One point checked before the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadinessPoint {
    /// Stable name: "load", "affinity", "profile", "swap", "governor", "busy_threads".
    pub id: String,
    /// Whether the host is ready.
    pub state: ReadinessState,
    /// What was seen, in a few words.
    pub observed: String,
    /// What to do about it; empty if ready.
    pub action: String,
    /// Whether a measurement of isolated CPUs should wait until the host is ready.
    pub is_blocking: bool,
}

/// Whether the host is ready, for one point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReadinessState {
    /// Ready.
    Ready,
    /// Not ready.
    NotReady,
    /// Could not be determined.
    #[default]
    NotKnown,
}

impl ReadinessPoint {
    /// Whether a measurement of isolated CPUs should wait for this point. Unknown points never block.
    pub fn blocks(&self) -> bool {
        self.is_blocking && self.state == ReadinessState::NotReady
    }
}
