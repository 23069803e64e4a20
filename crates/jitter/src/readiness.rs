//! Whether a host is quiet enough to be measured, as the guide asks before it starts (guide 57037 section 5.2.1).

mod facts;
mod judge;
mod texts;

pub use facts::{BUSY_KEPT_MAX, BusyThread, BusyThreads, CpuClock, ProfileFacts, ReadinessFacts, SwapFacts};
pub use judge::judge;

use serde::{Deserialize, Serialize};

/// One thing that was looked at before the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReadinessPoint {
    /// Stable name: "load", "affinity", "profile", "swap", "governor", "busy_threads".
    pub id: String,
    /// Whether the host is ready in this.
    pub state: ReadinessState,
    /// What was seen, in a few words.
    pub observed: String,
    /// What to do about it; empty when ready.
    pub action: String,
    /// Whether a measurement of isolated CPUs should not begin before it is so.
    pub is_blocking: bool,
}

/// Whether the host is ready in one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadinessState {
    /// As it should be.
    Ready,
    /// Not so.
    NotReady,
    /// Could not be told.
    #[default]
    NotKnown,
}

impl ReadinessPoint {
    /// Whether a measurement of isolated CPUs should wait for this point. What could not be told holds up nothing.
    pub fn blocks(&self) -> bool {
        self.is_blocking && self.state == ReadinessState::NotReady
    }
}
