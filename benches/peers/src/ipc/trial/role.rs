//! Roles of the processes of a trial.

use anyhow::{bail, ensure};
use lowlat_pipeline::{Mode, PipelineParameters, ProcessRole};

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Subject {
    /// A model of Kungfu's notification.
    KungfuModel,
    /// lowlat-ipc without lowlat's runtime.
    IpcStar,
    /// One ring and one futex a process.
    Floor,
}

/// Task of a process in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Passes the model's notices on.
    Master,
    /// Stores what other processes publish.
    Cached,
    Md,
    /// Takes orders and answers them.
    Td,
    /// The strategy with this number.
    Strategy(u32),
    /// All strategies in one process that spins.
    Host,
}

impl Role {
    /// Returns its role in pins and figures.
    fn role(self) -> ProcessRole {
        match self {
            Self::Master => ProcessRole::Master,
            Self::Cached => ProcessRole::Cached,
            Self::Md => ProcessRole::Md,
            Self::Td => ProcessRole::Td,
            Self::Strategy(_) => ProcessRole::Strategies,
            Self::Host => ProcessRole::Host,
        }
    }

    pub fn name(self) -> &'static str {
        self.role().name()
    }

    /// The CPUs of the role; empty if it is not pinned.
    pub fn cpus(self, parameters: &PipelineParameters) -> Vec<u32> {
        let pinned = parameters.pins.get(&self.role()).map(Vec::as_slice).unwrap_or_default();
        match self {
            Self::Host => parameters.host_core.into_iter().collect(),
            // Strategies take the CPUs of their list in turn.
            Self::Strategy(number) => {
                let at = usize::try_from(number).unwrap_or(0).checked_rem(pinned.len());
                at.and_then(|at| pinned.get(at)).copied().into_iter().collect()
            }
            _ => pinned.to_vec(),
        }
    }
}

impl Subject {
    /// Returns its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::KungfuModel => "kungfu-model",
            Self::IpcStar => "ipc-star",
            Self::Floor => "floor",
        }
    }

    /// Roles of all processes, with those first that others need.
    pub fn roles(self, parameters: &PipelineParameters) -> anyhow::Result<Vec<Role>> {
        ensure!(
            !matches!(parameters.mode, Mode::Adaptive | Mode::Mixed),
            "{} waits spinning or parked: take --mode fast, parked or platform-fast",
            self.name()
        );
        let mut roles = match self {
            Self::KungfuModel => vec![Role::Master, Role::Cached],
            Self::IpcStar | Self::Floor => Vec::new(),
        };
        roles.extend([Role::Md, Role::Td]);
        match (self, parameters.host_core) {
            (Self::KungfuModel, Some(_)) => {
                bail!("Kungfu runs a process for each strategy: leave --host-cpu out")
            }
            (Self::Floor, Some(_)) => {
                bail!("the floor has a process for each strategy: leave --host-cpu out")
            }
            (_, Some(_)) => roles.push(Role::Host),
            (_, None) => roles.extend((0..parameters.strategies).map(Role::Strategy)),
        }
        Ok(roles)
    }
}
