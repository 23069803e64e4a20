//! The waiting modes that are tried.

use crate::pingpong::{Muxer, Scenario, Waiting};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A way to wait for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mode {
    /// Waiting mode of both ends.
    pub waiting: Waiting,
    /// True if both hosts keep their CPUs out of idle states.
    pub holds_idle: bool,
}

impl Mode {
    /// Every mode, those that leave the host alone first.
    pub const ALL: [Self; 6] = [
        Self::of(Waiting::Block, false),
        Self::of(Waiting::Block, true),
        Self::of(Waiting::BusyPoll, false),
        Self::of(Waiting::EpollBusyPoll, false),
        Self::of(Waiting::SuspendedIrq, false),
        Self::of(Waiting::Spin, false),
    ];

    const fn of(waiting: Waiting, holds_idle: bool) -> Self {
        Self { waiting, holds_idle }
    }

    /// The system call that waits in this mode.
    pub fn muxer(self) -> Muxer {
        match self.waiting {
            Waiting::EpollBusyPoll | Waiting::SuspendedIrq => Muxer::Epoll,
            Waiting::Block | Waiting::BusyPoll | Waiting::Spin => Muxer::None,
        }
    }

    /// A scenario in this mode.
    pub fn applied_to(self, scenario: &Scenario) -> Scenario {
        Scenario {
            waiting: self.waiting,
            muxer: self.muxer(),
            holds_idle: self.holds_idle,
            ..scenario.clone()
        }
    }

    /// The arguments of `lowlat net pingpong client` for this mode.
    pub fn client_arguments(self) -> String {
        let muxer =
            if self.muxer() == Muxer::None { String::new() } else { format!(" --muxer {}", self.muxer()) };
        let hold = if self.holds_idle { " --hold-idle" } else { "" };
        format!("--wait {}{muxer}{hold}", self.waiting)
    }

    /// The arguments of `lowlat run` for an application that waits in this mode.
    pub fn run_arguments(self) -> String {
        let mode = if self.waiting == Waiting::Block { "interrupt" } else { "spin" };
        let hold = if self.holds_idle { " --c-states off" } else { "" };
        format!("--mode {mode}{hold}")
    }
}

impl fmt::Display for Mode {
    /// "block", "block, no idle states".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hold = if self.holds_idle { ", no idle states" } else { "" };
        write!(f, "{}{hold}", self.waiting)
    }
}
