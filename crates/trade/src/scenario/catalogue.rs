//! The scenarios of the Kungfu report on latency outside its fast mode, and those derived from them.
//!
//! The report ran 86 processes on 12 cores: 80 strategies, each with an instrument of its own, at 12 rates, in four
//! groups: pinned or not, with huge pages or not. Its figures are ranges of the mean over several runs on its own
//! machine (Xeon E5-2643): they say how its scenarios lie to each other, not what another machine should reach.

use super::Scenario;
use lowlat_pipeline::{Mode, PipelineParameters};
use std::collections::BTreeMap;

/// Strategies and instruments of the report.
pub const STRATEGIES: u32 = 80;

/// A group of the report's scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// `A` to `D`.
    pub letter: char,
    /// Whether master, cached, md and td have a CPU each.
    pub is_pinned: bool,
    /// Whether memory comes from reserved huge pages.
    pub may_use_huge_pages: bool,
}

/// The report's groups.
pub const GROUPS: [Group; 4] = [
    Group { letter: 'A', is_pinned: false, may_use_huge_pages: false },
    Group { letter: 'B', is_pinned: false, may_use_huge_pages: true },
    Group { letter: 'C', is_pinned: true, may_use_huge_pages: false },
    Group { letter: 'D', is_pinned: true, may_use_huge_pages: true },
];

/// The lowest and the highest mean of several runs, µs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanRange {
    /// The lowest.
    pub from_us: f64,
    /// The highest.
    pub to_us: f64,
}

/// What the report measured in one scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// Strategy wrote the order, td read it.
    pub order: MeanRange,
    /// md wrote the quote, the strategy read it.
    pub md: MeanRange,
    /// Tick to order.
    pub t2o: MeanRange,
}

/// One of the report's rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// The report's number, 1 to 12.
    pub number: u32,
    /// Between two quotes of an instrument, ns.
    pub interval_ns: u64,
    /// What the report measured, in the order of [`GROUPS`].
    pub published: [Published; 4],
}

impl Rate {
    /// Quotes per second over all instruments.
    pub fn total_per_s(&self) -> f64 {
        f64::from(STRATEGIES) * 1e9 / self.interval_ns as f64
    }

    /// The report's scenario with so many quotes of each instrument, whose starts are spread evenly.
    pub fn scenario(&self, name: &str, records_per_instrument: u64) -> Scenario {
        Scenario {
            name: name.to_owned(),
            instruments: STRATEGIES,
            records_per_instrument,
            interval_ns: self.interval_ns,
            start_delay_ns: self.interval_ns / u64::from(STRATEGIES),
        }
    }
}

const fn range(from_us: f64, to_us: f64) -> MeanRange {
    MeanRange { from_us, to_us }
}

/// A row of the report's tables: order, market data, tick to order.
const fn row(order: MeanRange, md: MeanRange, t2o: MeanRange) -> Published {
    Published { order, md, t2o }
}

/// The report's rates, with its tables A to D.
#[rustfmt::skip]
pub const RATES: [Rate; 12] = [
    Rate { number: 1, interval_ns: 400_000_000_000, published: [
        row(range(417.38, 479.45), range(446.81, 489.28), range(917.8, 1016.59)),
        row(range(410.89, 454.58), range(434.09, 453.31), range(865.39, 924.75)),
        row(range(292.68, 327.38), range(442.14, 454.69), range(798.58, 838.22)),
        row(range(320.71, 357.55), range(432.78, 454.92), range(778.53, 827.59)),
    ] },
    Rate { number: 2, interval_ns: 240_000_000_000, published: [
        row(range(435.25, 452.81), range(443.82, 499.85), range(926.26, 1001.71)),
        row(range(425.28, 433.45), range(434.05, 440.13), range(881.92, 894.6)),
        row(range(269.51, 319.42), range(414.28, 429.24), range(764.45, 833.66)),
        row(range(320.86, 342.44), range(421.12, 428.78), range(769.44, 794.38)),
    ] },
    Rate { number: 3, interval_ns: 160_000_000_000, published: [
        row(range(428.86, 448.04), range(444.53, 482.5), range(922.73, 958.58)),
        row(range(418.41, 438.94), range(432.95, 474.27), range(880.8, 916.23)),
        row(range(264.76, 322.82), range(409.88, 435.26), range(752.51, 805.74)),
        row(range(297.84, 334.32), range(406.93, 413.82), range(747.44, 777.56)),
    ] },
    Rate { number: 4, interval_ns: 80_000_000_000, published: [
        row(range(529.36, 906.2), range(438.39, 495.8), range(1014.93, 1397.09)),
        row(range(488.23, 657.66), range(429.9, 437.96), range(941.82, 1203.52)),
        row(range(505.09, 607.41), range(383.19, 390.63), range(939.72, 1050.8)),
        row(range(418.41, 727.8), range(367.78, 444.05), range(838.26, 1198.22)),
    ] },
    Rate { number: 5, interval_ns: 40_000_000_000, published: [
        row(range(492.98, 621.38), range(418.62, 425.92), range(945.7, 1074.88)),
        row(range(561.79, 686.93), range(397.84, 407.42), range(981.09, 1106.73)),
        row(range(415.72, 534.54), range(367.4, 427.78), range(862.85, 1011.42)),
        row(range(447.83, 517.94), range(352.02, 386.79), range(829.34, 930.73)),
    ] },
    Rate { number: 6, interval_ns: 20_000_000_000, published: [
        row(range(372.32, 713.26), range(394.97, 401.55), range(805.91, 1140.76)),
        row(range(471.56, 611.61), range(384.69, 390.3), range(874.39, 1013.11)),
        row(range(354.18, 534.16), range(356.85, 376.4), range(765.0, 977.09)),
        row(range(402.15, 502.56), range(349.04, 367.37), range(775.97, 890.08)),
    ] },
    Rate { number: 7, interval_ns: 10_000_000_000, published: [
        row(range(617.36, 694.51), range(386.71, 396.27), range(1040.5, 1104.32)),
        row(range(568.44, 683.8), range(375.61, 390.53), range(955.88, 1085.85)),
        row(range(375.67, 425.65), range(351.65, 383.34), range(765.71, 829.56)),
        row(range(355.52, 376.09), range(344.62, 372.64), range(714.81, 754.23)),
    ] },
    Rate { number: 8, interval_ns: 5_000_000_000, published: [
        row(range(391.61, 569.36), range(366.9, 375.26), range(786.95, 953.03)),
        row(range(561.19, 584.11), range(361.3, 372.57), range(936.65, 964.05)),
        row(range(294.63, 344.07), range(361.7, 429.18), range(718.88, 805.8)),
        row(range(307.09, 345.93), range(357.38, 478.28), range(686.91, 836.37)),
    ] },
    Rate { number: 9, interval_ns: 2_500_000_000, published: [
        row(range(391.34, 465.51), range(351.9, 365.8), range(763.37, 850.51)),
        row(range(377.92, 434.16), range(339.04, 351.65), range(728.18, 791.13)),
        row(range(297.46, 347.32), range(350.58, 503.69), range(688.93, 871.23)),
        row(range(275.22, 290.97), range(346.1, 698.46), range(637.13, 1001.0)),
    ] },
    Rate { number: 10, interval_ns: 1_000_000_000, published: [
        row(range(1532.93, 4558.28), range(1158.06, 2790.56), range(4928.12, 37_814.85)),
        row(range(1244.63, 3679.1), range(1222.05, 6967.6), range(4073.25, 25_561.59)),
        row(range(282.78, 386.57), range(360.12, 441.87), range(684.09, 808.28)),
        row(range(242.78, 307.45), range(386.73, 486.11), range(663.08, 803.48)),
    ] },
    Rate { number: 11, interval_ns: 100_000_000, published: [
        row(range(399.89, 542.72), range(349.89, 383.83), range(802.86, 915.01)),
        row(range(433.0, 487.71), range(321.44, 363.36), range(767.27, 848.65)),
        row(range(238.62, 258.59), range(224.41, 290.56), range(481.8, 567.99)),
        row(range(226.41, 239.44), range(234.97, 275.24), range(475.23, 511.87)),
    ] },
    Rate { number: 12, interval_ns: 10_000_000, published: [
        row(range(870.63, 1058.23), range(625.83, 801.14), range(1517.02, 1875.96)),
        row(range(552.73, 640.04), range(425.6, 503.89), range(987.82, 1152.98)),
        row(range(1396.87, 1565.2), range(1161.8, 1345.29), range(2604.34, 2925.68)),
        row(range(1157.09, 1981.76), range(908.82, 1369.74), range(2284.85, 3034.69)),
    ] },
];

/// Who runs the strategies of a case, and how everybody waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setup {
    /// As in the report's groups: a process for each strategy, everybody sleeps until there is something.
    AllParked,
    /// One strategy alone; the report's first look.
    OneStrategy,
    /// Everybody spins.
    AllFast,
    /// md spins, td and strategies sleep.
    Mixed,
    /// All strategies in one process, which spins.
    StrategyHost,
}

/// All set-ups, with the word that names them in a case.
pub const SETUPS: [(Setup, &str); 5] = [
    (Setup::AllParked, "parked"),
    (Setup::OneStrategy, "one-strategy"),
    (Setup::AllFast, "fast"),
    (Setup::Mixed, "mixed"),
    (Setup::StrategyHost, "host"),
];

/// One run: a rate, a group, a set-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// The rate.
    pub rate: Rate,
    /// The group.
    pub group: Group,
    /// The set-up.
    pub setup: Setup,
}

/// CPUs for the roles that a case pins. Which ones is the machine's affair.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpus {
    /// CPUs by role, as in [`PipelineParameters::pins`].
    pub pins: BTreeMap<String, Vec<u32>>,
    /// The CPU of a strategy host.
    pub host_core: u32,
}

impl Case {
    /// Every case of the report, A1 to D12.
    pub fn report() -> impl Iterator<Item = Self> {
        GROUPS.into_iter().flat_map(|group| {
            RATES.into_iter().map(move |rate| Self { rate, group, setup: Setup::AllParked })
        })
    }

    /// The case of a name: `A10`, or `A10-mixed` with one of the other set-ups.
    pub fn named(name: &str) -> Option<Self> {
        let (place, setup) = name.split_once('-').unwrap_or((name, "parked"));
        let letter = place.chars().next()?;
        let number: u32 = place.get(letter.len_utf8()..)?.parse().ok()?;
        Some(Self {
            rate: RATES.into_iter().find(|rate| rate.number == number)?,
            group: GROUPS.into_iter().find(|group| group.letter == letter)?,
            setup: SETUPS.into_iter().find_map(|(it, word)| (word == setup).then_some(it))?,
        })
    }

    /// Its name: what [`Case::named`] reads.
    pub fn name(&self) -> String {
        let place = format!("{}{}", self.group.letter, self.rate.number);
        let word = SETUPS.into_iter().find_map(|(it, word)| (it == self.setup).then_some(word));
        match self.setup {
            Setup::AllParked => place,
            _ => format!("{place}-{}", word.unwrap_or_default()),
        }
    }

    /// What the report measured; only of what it ran with 80 strategies that sleep.
    pub fn published(&self) -> Option<Published> {
        let group = GROUPS.into_iter().position(|group| group == self.group)?;
        let is_reported = self.setup == Setup::AllParked;
        self.rate.published.get(group).copied().filter(|_| is_reported)
    }

    /// What a run of it is asked to do. A group that pins nothing leaves `cpus.pins` aside.
    pub fn parameters(&self, duration_s: f64, cpus: &Cpus) -> PipelineParameters {
        let strategies = if self.setup == Setup::OneStrategy { 1 } else { STRATEGIES };
        PipelineParameters {
            strategies,
            rate_per_s: self.rate.total_per_s() * f64::from(strategies) / f64::from(STRATEGIES),
            mode: match self.setup {
                Setup::AllParked | Setup::OneStrategy => Mode::Parked,
                Setup::AllFast | Setup::StrategyHost => Mode::Fast,
                Setup::Mixed => Mode::Mixed,
            },
            duration_s,
            pins: if self.group.is_pinned { cpus.pins.clone() } else { BTreeMap::new() },
            host_core: (self.setup == Setup::StrategyHost).then_some(cpus.host_core),
            may_use_huge_pages: self.group.may_use_huge_pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_sound() {
        let names: Vec<_> = Case::report().map(|case| case.name()).collect();
        assert_eq!(names.len(), RATES.len() * GROUPS.len());
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len(), "names are unique");
        for case in Case::report() {
            assert_eq!(Case::named(&case.name()), Some(case));
            let published = case.published().unwrap();
            for range in [published.order, published.md, published.t2o] {
                assert!(range.from_us > 0.0 && range.from_us <= range.to_us, "{}", case.name());
            }
            // The stages make the whole: no mean of a whole is below the lowest mean of a part.
            assert!(published.t2o.from_us >= published.md.from_us.max(published.order.from_us));
        }
        assert!(RATES.windows(2).all(|pair| pair[0].interval_ns > pair[1].interval_ns));
        for name in ["", "A", "A13", "E1", "A1-x", "Ä1"] {
            assert_eq!(Case::named(name), None, "{name}");
        }
    }

    #[test]
    fn a_case_says_what_to_run() {
        let cpus = Cpus { pins: BTreeMap::from([("md".to_owned(), vec![6])]), host_core: 3 };
        let of = |name: &str| Case::named(name).unwrap().parameters(2.0, &cpus);
        assert!(of("A11").pins.is_empty() && !of("A11").may_use_huge_pages);
        assert_eq!(of("D11").pins, cpus.pins);
        assert!(of("D11").may_use_huge_pages && (of("D11").rate_per_s - 800.0).abs() < 1e-9);
        let one = of("A11-one-strategy");
        assert!(one.strategies == 1 && (one.rate_per_s - 10.0).abs() < 1e-9, "the same rate per instrument");
        assert_eq!((of("A1-mixed").mode, of("A1-fast").mode), (Mode::Mixed, Mode::Fast));
        assert_eq!((of("C1-host").host_core, of("C1").host_core), (Some(3), None));
        assert!(Case::named("A1-host").unwrap().published().is_none());
        let scenario = Case::named("A12").unwrap().rate.scenario("A12", 10);
        assert_eq!((scenario.start_delay_ns, scenario.records()), (125_000, 800));
    }
}
