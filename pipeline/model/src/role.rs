//! Roles of the processes of a run.

use crate::{Mode, PipelineParameters};
use lowlat_host::CpuId;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Role of a process of a run, in the order of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessRole {
    /// Keeps the latest state of every stream.
    Cached,
    /// Reads every record and keeps nothing.
    Follower,
    /// Runs all strategies in one process.
    Host,
    Master,
    Md,
    /// md and td in one process and one loop.
    Platform,
    Recorder,
    /// One strategy.
    Strategies,
    Td,
}

/// CPUs of pinned roles: those of `strategies` in turn, one of any other role.
pub type Pins = BTreeMap<ProcessRole, Vec<CpuId>>;

impl ProcessRole {
    /// Roles that can be pinned.
    pub const PINNED: [Self; 7] =
        [Self::Master, Self::Cached, Self::Recorder, Self::Md, Self::Td, Self::Platform, Self::Strategies];

    /// Name in pins, documents and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Follower => "follower",
            Self::Host => "host",
            Self::Master => "master",
            Self::Md => "md",
            Self::Platform => "platform",
            Self::Recorder => "recorder",
            Self::Strategies => "strategies",
            Self::Td => "td",
        }
    }

    /// True if a process of this role never sleeps. A strategy beside a host has been moved out of it and sleeps,
    /// because it has no dedicated CPU.
    pub fn spins(self, parameters: &PipelineParameters) -> bool {
        let mode = parameters.mode;
        match self {
            Self::Md | Self::Platform => {
                matches!(mode, Mode::Fast | Mode::Mixed | Mode::PlatformFast) && !parameters.has_md_threads
            }
            Self::Td => matches!(mode, Mode::Fast | Mode::PlatformFast),
            Self::Strategies => mode == Mode::Fast && parameters.host_core.is_none(),
            Self::Host => true,
            Self::Cached | Self::Follower | Self::Master | Self::Recorder => false,
        }
    }
}

impl fmt::Display for ProcessRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
