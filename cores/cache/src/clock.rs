//! The clock of each core while all of them are busy: which limit of the clock every core can keep.

use super::quantile;
use lowlat_host::CpuId;
use serde::{Deserialize, Serialize};

/// Widest range of a clock that counts as steady, in percent of the median.
const STEADY_PERCENT_MAX: f64 = 1.0;

/// Fewest figures of a CPU that show whether its clock moves: those of a second.
const FIGURES_MIN: usize = 10;

/// The steps in which firmware takes limits of the clock.
const LIMIT_STEP_MHZ: f64 = 25.0;

lowlat_host::measurement! {
    /// Clocks of a host.
    ClockMeasurement { record: ClockRecord, kind: "clock", command: "cache clock" }
}

/// The clocks of the measured CPUs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClockRecord {
    pub duration_ns: u64,
    /// Length of the interval of each figure.
    pub interval_ns: u64,
    /// One per measured CPU, in order.
    pub cpus: Vec<CpuClock>,
    /// CPUs that could not be measured, one sentence each.
    pub left_out: Vec<String>,
}

/// The clock of one CPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuClock {
    pub cpu: CpuId,
    /// The highest clock according to its frequency driver, if it has one.
    pub hardware_mhz_max: Option<f64>,
    /// Its clock in each interval, in time order. An interval in which it seldom ran has none.
    pub mhz: Vec<f64>,
}

/// The range of one CPU's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockRange {
    pub mhz_min: f64,
    /// The median over the intervals.
    pub mhz: f64,
    pub mhz_max: f64,
}

impl ClockRange {
    /// The width of the range, in percent of the median.
    pub fn spread_percent(&self) -> f64 {
        (self.mhz_max - self.mhz_min) / self.mhz * 100.0
    }

    /// True if the clock hardly moved.
    pub fn is_steady(&self) -> bool {
        self.spread_percent() <= STEADY_PERCENT_MAX
    }
}

impl CpuClock {
    /// The range over all intervals; `None` without any.
    pub fn range(&self) -> Option<ClockRange> {
        let mhz = quantile(self.mhz.clone(), 0.5).filter(|mhz| *mhz > 0.0)?;
        Some(ClockRange {
            mhz_min: quantile(self.mhz.clone(), 0.0)?,
            mhz,
            mhz_max: quantile(self.mhz.clone(), 1.0)?,
        })
    }
}

impl ClockRecord {
    /// The clock that every CPU kept in every interval; `None` if nothing was measured.
    pub fn mhz_kept(&self) -> Option<f64> {
        self.cpus.iter().filter_map(CpuClock::range).map(|range| range.mhz_min).reduce(f64::min)
    }

    /// The highest limit that every CPU kept, as firmware takes it. A clock within a thousandth of a step's multiple
    /// counts as that multiple.
    pub fn limit_mhz(&self) -> Option<f64> {
        self.mhz_kept().map(|mhz| (mhz * 1.001 / LIMIT_STEP_MHZ).floor() * LIMIT_STEP_MHZ)
    }

    /// True if the clock of each CPU hardly moved; `None` if a CPU has too few figures for that.
    pub fn is_steady(&self) -> Option<bool> {
        if self.cpus.iter().filter_map(CpuClock::range).any(|range| !range.is_steady()) {
            return Some(false);
        }
        let is_known = |cpu: &CpuClock| cpu.mhz.len() >= FIGURES_MIN;
        (!self.cpus.is_empty() && self.cpus.iter().all(is_known)).then_some(true)
    }

    /// CPUs that seem faster than their driver's maximum: there an addition does not take one cycle, or the driver is
    /// wrong about the maximum.
    pub fn too_fast(&self) -> Vec<CpuId> {
        let is_too_fast = |cpu: &&CpuClock| match (cpu.range(), cpu.hardware_mhz_max) {
            (Some(range), Some(most)) => range.mhz > most * 1.02,
            _ => false,
        };
        self.cpus.iter().filter(is_too_fast).map(|cpu| cpu.cpu).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(clocks: &[&[f64]]) -> ClockRecord {
        let cpus =
            (0..).zip(clocks).map(|(cpu, mhz)| CpuClock { cpu, mhz: mhz.to_vec(), ..CpuClock::default() });
        ClockRecord { cpus: cpus.collect(), ..ClockRecord::default() }
    }

    #[test]
    fn the_limit_is_what_the_slowest_core_kept() {
        let boosted = record(&[&[3_893.0, 3_900.0, 3_871.0], &[3_820.0, 3_899.0, 3_899.0]]);
        assert_eq!(boosted.mhz_kept(), Some(3_820.0));
        assert_eq!(boosted.limit_mhz(), Some(3_800.0));
        assert_eq!(boosted.is_steady(), Some(false), "the second varies by 2 %");
        let held = record(&[&[3_699.2; 10], &[3_700.1; 10]]);
        assert_eq!(held.limit_mhz(), Some(3_700.0));
        assert_eq!(held.is_steady(), Some(true));
    }

    #[test]
    fn few_figures_show_no_steady_clock() {
        for few in [&[&[3_700.0_f64; 1][..], &[3_700.0; 10]][..], &[&[3_700.0; 9][..]], &[]] {
            assert_eq!(record(few).is_steady(), None, "{few:?}");
        }
    }

    #[test]
    fn nothing_measured_gives_no_figure() {
        assert_eq!((record(&[]).limit_mhz(), record(&[&[]]).mhz_kept()), (None, None));
    }

    #[test]
    fn a_clock_above_the_drivers_maximum_is_named() {
        let mut record = record(&[&[3_900.0], &[3_900.0]]);
        record.cpus[0].hardware_mhz_max = Some(3_900.0);
        record.cpus[1].hardware_mhz_max = Some(3_700.0);
        assert_eq!(record.too_fast(), [1]);
    }
}
