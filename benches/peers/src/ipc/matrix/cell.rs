//! One cell: a load and a way to wait, and what that means for each contestant.

use lowlat_pipeline::{Mode, Pins, PipelineParameters, ProcessRole};
use serde::Serialize;

/// Program or model that takes part in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    /// The model of Kungfu's notification.
    KungfuModel,
    /// lowlat-ipc alone, without lowlat's runtime.
    IpcStar,
    /// Bare processes with one ring and one futex each.
    Floor,
    /// lowlat's runtime, with `lowlat pipeline run`.
    Lowlat,
}

impl Contestant {
    /// Returns its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::KungfuModel => "kungfu-model",
            Self::IpcStar => "ipc-star",
            Self::Floor => "floor",
            Self::Lowlat => "lowlat",
        }
    }
}

/// How the processes of a cell wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// All sleep
    Parked,
    /// md and td spin, strategies sleep
    PlatformFast,
    /// All spin
    Fast,
    /// All strategies in one process that spins; Kungfu, which has no such thing, parked
    Host,
}

/// One combination of load, waiting mode and pinning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cell {
    pub strategies: u32,
    /// Quotes per second over all instruments.
    pub rate_per_s: f64,
    pub waiting: Waiting,
    /// Every role is pinned to CPUs.
    pub is_pinned: bool,
}

impl Cell {
    /// Returns a heading for reports.
    pub fn title(&self) -> String {
        let waiting = match self.waiting {
            Waiting::Parked => "parked",
            Waiting::PlatformFast => "platform-fast",
            Waiting::Fast => "fast",
            Waiting::Host => "strategy host",
        };
        let pinned = if self.is_pinned { "pinned" } else { "not pinned" };
        format!("{} strategies, {} quotes/s, {waiting}, {pinned}", self.strategies, self.rate_per_s)
    }

    /// Returns a reason not to run it on these CPUs, if there is one.
    pub fn senseless(&self, cpus: &[u32]) -> Option<String> {
        let count = cpus.len();
        // md and td, in addition to the strategies. The model's master and cached sleep, which favours the model.
        let spinning = usize::try_from(self.strategies).unwrap_or(usize::MAX).saturating_add(2);
        match self.waiting {
            Waiting::Fast if spinning > count => {
                Some(format!("{spinning} processes would spin on {count} CPUs"))
            }
            Waiting::Host | Waiting::PlatformFast if count < 2 => {
                Some("who spins would keep the others from the only CPU".to_owned())
            }
            _ if self.is_pinned && count < 2 => Some("there is one CPU to pin to".to_owned()),
            _ => None,
        }
    }

    /// Returns a caveat for readers of its figures, if any.
    pub fn remark(&self, cpus: &[u32]) -> Option<&'static str> {
        match self.waiting {
            Waiting::PlatformFast if cpus.len() < 3 => Some(
                "md and td spin, and there is no third CPU: they take turns with each other or the strategies",
            ),
            Waiting::Host if cpus.len() < 3 => {
                Some("the host spins; md and td sleep, for want of a third CPU")
            }
            _ => None,
        }
    }

    /// Returns the parameters of a contestant's run.
    pub fn parameters(&self, contestant: Contestant, cpus: &[u32], duration_s: f64) -> PipelineParameters {
        let is_hosted = self.waiting == Waiting::Host && contestant != Contestant::KungfuModel;
        let mode = match self.waiting {
            Waiting::PlatformFast => Mode::PlatformFast,
            Waiting::Fast => Mode::Fast,
            Waiting::Host if is_hosted && cpus.len() >= 3 => Mode::PlatformFast,
            Waiting::Parked | Waiting::Host => Mode::Parked,
        };
        PipelineParameters {
            strategies: self.strategies,
            rate_per_s: self.rate_per_s,
            mode,
            duration_s,
            pins: if self.is_pinned { pins(cpus, contestant, is_hosted) } else { Pins::new() },
            host_core: if is_hosted { cpus.last().copied() } else { None },
            may_use_huge_pages: true,
            has_md_threads: false,
            strategy_cost_ns: 0,
        }
    }
}

/// The platform on the first CPUs, strategies on the rest.
fn pins(cpus: &[u32], contestant: Contestant, is_hosted: bool) -> Pins {
    let at = |place: usize| cpus.get(place).copied().into_iter().collect::<Vec<_>>();
    let (md, td, others, rest) = match cpus.len() {
        0 | 1 => return Pins::new(),
        2 => (at(0), at(0), at(0), 1),
        3 => (at(0), at(1), at(0), 2),
        _ => (at(0), at(1), at(2), 3),
    };
    let mut pins = Pins::from([(ProcessRole::Md, md), (ProcessRole::Td, td)]);
    // A host has a dedicated CPU.
    if !is_hosted {
        pins.insert(ProcessRole::Strategies, cpus.get(rest..).unwrap_or_default().to_vec());
    }
    if !matches!(contestant, Contestant::IpcStar | Contestant::Floor) {
        pins.insert(ProcessRole::Master, others.clone());
        pins.insert(ProcessRole::Cached, others);
    }
    pins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(strategies: u32, waiting: Waiting) -> Cell {
        Cell { strategies, rate_per_s: 80.0, waiting, is_pinned: true }
    }

    #[test]
    fn spinning_needs_cpus() {
        assert!(cell(80, Waiting::Fast).senseless(&[0, 1]).is_some());
        assert_eq!(cell(8, Waiting::Fast).senseless(&(0..16).collect::<Vec<_>>()), None);
        assert_eq!(cell(80, Waiting::Parked).senseless(&[0, 1]), None);
        assert!(cell(80, Waiting::Parked).senseless(&[5]).is_some());
    }

    #[test]
    fn kungfu_has_no_host() {
        let cell = cell(8, Waiting::Host);
        let of = |contestant, cpus: &[u32]| {
            let parameters = cell.parameters(contestant, cpus, 1.0);
            (parameters.mode, parameters.host_core)
        };
        assert_eq!(of(Contestant::KungfuModel, &[0, 1, 2]), (Mode::Parked, None));
        assert_eq!(of(Contestant::IpcStar, &[0, 1, 2]), (Mode::PlatformFast, Some(2)));
        assert_eq!(of(Contestant::Lowlat, &[0, 1]), (Mode::Parked, Some(1)));
    }

    #[test]
    fn platform_and_strategies_have_cpus_of_their_own() {
        let pins = cell(8, Waiting::Parked).parameters(Contestant::KungfuModel, &[0, 1, 2, 3, 4], 1.0).pins;
        assert_eq!(
            (
                &pins[&ProcessRole::Td][..],
                &pins[&ProcessRole::Strategies][..],
                &pins[&ProcessRole::Master][..]
            ),
            (&[1][..], &[3, 4][..], &[2][..])
        );
    }
}
