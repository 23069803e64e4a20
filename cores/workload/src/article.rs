//! Published gains of the KeyarchOS article on Intel Xeon 6 (2025-03-21), and what part of them placement and idle
//! states explain.

use crate::{Cell, Idle, Place, Policy, Setting, Verdict, WorkloadRecord, verdict};
use lowlat_host::statistics::MedianInterval;

/// Copies of the article's runs of SPEC CPU.
const SPEC_COPIES: &[u32] = &[4, 16, 32, 64];
/// Copies of nginx' workers and wrk's threads; the published gain is at 32.
const NGINX_COPIES: &[u32] = &[4, 16, 32];
/// Few and many processes; the article says "high load" only.
const LOAD_COPIES: &[u32] = &[4, 16];
/// Share of a gain from which it counts as explained.
const WHOLE: f64 = 0.9;
/// Share from which it counts as mostly explained.
const MOST: f64 = 0.5;

/// One published gain with the workloads that repeat it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// Its name on the command line.
    pub key: &'static str,
    pub title: &'static str,
    /// Its place in the article.
    pub figure: &'static str,
    /// The gain as a factor.
    pub factor: f64,
    /// The gain as it was published.
    pub text: &'static str,
    /// Workloads with their numbers of copies. Those of other programs come last.
    pub rows: &'static [(&'static str, &'static [u32])],
    pub places: &'static [Place],
}

/// Places of work that is done alone.
const ALONE: &[Place] = &[Place::Kernel, Place::Pack, Place::Spread];

/// Every published gain, in the order of the article.
pub const PUBLISHED: &[Published] = &[
    Published {
        key: "spec-base",
        title: "SPEC CPU base, 4 to 64 copies",
        figure: "figure 3",
        factor: 1.23,
        text: "up to +23 %",
        rows: &[("integer-base", SPEC_COPIES), ("floating-base", SPEC_COPIES), ("cache-base", SPEC_COPIES)],
        places: ALONE,
    },
    Published {
        key: "spec-peak",
        title: "SPEC CPU peak, 4 to 64 copies",
        figure: "figure 3",
        factor: 1.29,
        text: "up to +29 %",
        rows: &[("integer-peak", SPEC_COPIES), ("floating-peak", SPEC_COPIES), ("cache-peak", SPEC_COPIES)],
        places: ALONE,
    },
    Published {
        key: "nginx",
        title: "nginx over HTTPS with wrk, Transfer/sec at 32 threads",
        figure: "figure 4",
        factor: 1.0813,
        text: "+8.13 %",
        rows: &[("nginx", NGINX_COPIES)],
        places: &Place::ALL,
    },
    Published {
        key: "semaphores",
        title: "stress-ng Semaphores",
        figure: "figure 5",
        factor: 2.29,
        text: "2.29x",
        rows: &[
            ("sem-posix", LOAD_COPIES),
            ("sem-posix-pause", LOAD_COPIES),
            ("sem-sysv", LOAD_COPIES),
            ("stress-ng-sem", &[4]),
            ("stress-ng-sem-sysv", &[4]),
        ],
        places: &Place::ALL,
    },
    Published {
        key: "messages",
        title: "stress-ng System V Message Passing",
        figure: "figure 5",
        factor: 2.75,
        text: "2.75x",
        rows: &[("msg-sysv", LOAD_COPIES), ("stress-ng-msg", &[4])],
        places: &Place::ALL,
    },
    Published {
        key: "pipe",
        title: "UnixBench Pipe-based Context Switching",
        figure: "figure 5",
        factor: 12.21,
        text: "12.21x",
        rows: &[("pipe", &[1]), ("unixbench-context1", &[1])],
        places: &Place::ALL,
    },
];

/// Returns the published gain with this key.
pub fn published(key: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|one| one.key == key)
}

impl Published {
    /// Settings that are compared: each place with idle states allowed, then without.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        let of = |idle| {
            self.places.iter().map(move |place| Setting { place: *place, idle, policy: Policy::default() })
        };
        Idle::ALL.into_iter().flat_map(of)
    }

    /// Returns the part of the gain that the settings explain, for each workload and number of copies measured.
    pub fn explained(&self, record: &WorkloadRecord) -> Vec<ExplainedGain> {
        let of = |(workload, copies): (&'static str, u32)| ExplainedGain::of(self, record, workload, copies);
        self.rows
            .iter()
            .flat_map(|(workload, copies)| copies.iter().map(|copies| (*workload, *copies)))
            .filter_map(of)
            .collect()
    }
}

/// A setting that is faster than another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    pub fast: Setting,
    pub slow: Setting,
    /// Rate of the faster divided by that of the slower, with its interval.
    pub ratio: MedianInterval,
}

/// Part of a published gain that placement and idle states explain in one workload.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedGain {
    pub workload: &'static str,
    pub copies: u32,
    /// Fastest against slowest place, idle states allowed; `None` if no difference is shown.
    pub placement: Option<Factor>,
    /// Without against with idle states in one place, where that is largest; `None` if no difference is shown.
    pub idle: Option<Factor>,
    /// Fastest against slowest of all settings; `None` if no difference is shown.
    pub both: Option<Factor>,
    /// Share of the published gain that `both` explains, 0 to 1, of its logarithm.
    pub share: f64,
}

/// Part of a gain that is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// No difference is shown.
    Nothing,
    Some,
    Most,
    All,
}

impl Part {
    /// The part of a share.
    pub fn of(share: f64) -> Self {
        match share {
            share if share >= WHOLE => Self::All,
            share if share >= MOST => Self::Most,
            share if share > 0.0 => Self::Some,
            _ => Self::Nothing,
        }
    }
}

impl Factor {
    /// Share of a published factor that this one explains: the ratio of the logarithms, at most 1. Factors of causes
    /// multiply, so their logarithms add up.
    pub fn share(&self, published: f64) -> f64 {
        (self.ratio.median.ln() / published.ln()).clamp(0.0, 1.0)
    }
}

impl ExplainedGain {
    /// `None` if fewer than two settings were measured.
    fn of(gain: &Published, record: &WorkloadRecord, workload: &'static str, copies: u32) -> Option<Self> {
        let measured = |setting: Setting| {
            let cell = record.find(workload, copies, setting)?;
            record.rate(cell).map(|_| (setting, cell))
        };
        let all: Vec<(Setting, usize)> = gain.settings().filter_map(measured).collect();
        if all.len() < 2 {
            return None;
        }
        let allowed: Vec<(Setting, usize)> =
            all.iter().filter(|(setting, _)| setting.idle == Idle::Allowed).copied().collect();
        let idle = all.iter().filter(|(setting, _)| setting.idle == Idle::None).filter_map(|fast| {
            let slow = allowed.iter().find(|(setting, _)| setting.place == fast.0.place)?;
            factor(record, *fast, *slow)
        });
        let placement = extremes(record, &allowed);
        let idle = idle.max_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median));
        let both = extremes(record, &all);
        let share = both.map_or(0.0, |of| of.share(gain.factor));
        Some(Self { workload, copies, placement, idle, both, share })
    }

    pub fn part(&self) -> Part {
        Part::of(self.share)
    }
}

/// The fastest cell against the slowest.
fn extremes(record: &WorkloadRecord, cells: &[(Setting, usize)]) -> Option<Factor> {
    let rate = |(_, cell): &(Setting, usize)| record.rate(*cell).map_or(0.0, |rate| rate.median);
    let fast = cells.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let slow = cells.iter().min_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    factor(record, *fast, *slow)
}

/// A factor whose whole interval is above 1. A setting under which nothing was counted shows none.
fn factor(record: &WorkloadRecord, fast: (Setting, usize), slow: (Setting, usize)) -> Option<Factor> {
    let ratio = record.ratio(fast.1, slow.1)?;
    let is_shown = verdict(&ratio) == Verdict::Faster && ratio.median < crate::UNBOUNDED;
    is_shown.then_some(Factor { fast: fast.0, slow: slow.0, ratio })
}

/// Setting of the cell that ratios of the article's tables refer to: what a stock host does.
pub fn baseline(cell: &Cell) -> Setting {
    Setting { place: Place::Kernel, idle: Idle::Allowed, ..cell.setting }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CellRun;

    /// A record of the pipe test with these rates, and noise.
    fn record(rates: &[(Place, Idle, f64)]) -> WorkloadRecord {
        let cell = |(place, idle, _): &(Place, Idle, f64)| Cell {
            workload: "pipe".into(),
            copies: 1,
            setting: Setting { place: *place, idle: *idle, policy: Policy::Other },
            ..Cell::default()
        };
        let noise =
            |round: u32, cell: usize| 1.0 + 0.01 * f64::from((round + u32::try_from(cell).unwrap()) % 3);
        let runs = (0..7).flat_map(|round| {
            rates.iter().enumerate().map(move |(cell, (_, _, per_s))| CellRun {
                round,
                cell: u32::try_from(cell).unwrap(),
                per_s: per_s * noise(round, cell),
                ..CellRun::default()
            })
        });
        WorkloadRecord {
            cells: rates.iter().map(cell).collect(),
            runs: runs.collect(),
            ..WorkloadRecord::default()
        }
    }

    #[test]
    fn the_pipe_test_is_explained_by_place_and_idle_states() {
        let record = record(&[
            (Place::Kernel, Idle::Allowed, 45_000.0),
            (Place::One, Idle::Allowed, 450_000.0),
            (Place::Spread, Idle::Allowed, 46_000.0),
            (Place::Kernel, Idle::None, 350_000.0),
            (Place::One, Idle::None, 450_000.0),
        ]);
        let gain = published("pipe").unwrap();
        let explained = gain.explained(&record);
        let [pipe] = explained.as_slice() else { panic!("{explained:?}") };
        let placement = pipe.placement.unwrap();
        assert_eq!((placement.fast.place, placement.slow.place), (Place::One, Place::Kernel));
        assert!((placement.ratio.median - 10.0).abs() < 0.3, "{placement:?}");
        let idle = pipe.idle.unwrap();
        assert_eq!((idle.fast.place, idle.fast.idle), (Place::Kernel, Idle::None));
        assert!((idle.ratio.median - 7.7).abs() < 0.3, "{idle:?}");
        assert_eq!(pipe.part(), Part::All);
        assert!((placement.share(12.21) - 0.92).abs() < 0.02);
    }

    #[test]
    fn noise_explains_nothing() {
        let record = record(&[
            (Place::Kernel, Idle::Allowed, 45_000.0),
            (Place::One, Idle::Allowed, 45_100.0),
            (Place::Kernel, Idle::None, 44_900.0),
        ]);
        let explained = published("pipe").unwrap().explained(&record);
        assert!(explained[0].both.is_none() && explained[0].part() == Part::Nothing, "{explained:?}");
        assert!(published("pipe").unwrap().explained(&WorkloadRecord::default()).is_empty());
    }

    #[test]
    fn keys_are_unique_and_gains_are_gains() {
        for one in PUBLISHED {
            assert_eq!(published(one.key), Some(one));
            assert!(one.factor > 1.0 && one.places.first() == Some(&Place::Kernel));
        }
    }
}
