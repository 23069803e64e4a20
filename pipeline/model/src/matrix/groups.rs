//! The set-ups in which the matrix runs its scenarios.

use crate::Mode;

/// Strategies of every group but those of a single strategy.
pub const STRATEGIES: u32 = 80;
/// Processes of the platform beside the strategies, as in the report: master, cached, md, td and
/// [`FOLLOWERS`].
pub const PLATFORM_PROCESSES: u32 = 4 + FOLLOWERS;
/// Processes that read every record: they stand for the two of the report's platform that it does not name.
pub const FOLLOWERS: u32 = 2;

/// One load of the matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario {
    /// The report's number, from 1; 0 for a scenario that a file describes.
    pub number: u8,
    /// Quotes per second over all instruments.
    pub rate_per_s: f64,
}

/// Rates of the report's loads, by number.
pub const RATES_PER_S: [f64; 12] = [0.2, 1.0 / 3.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 80.0, 800.0, 8000.0];

/// Placement of processes on CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinning {
    /// The kernel places all processes.
    Nothing,
    /// master, cached, md and td, as in the report.
    Platform,
    /// The platform, so that CPUs are left; the kernel places the strategies.
    StrategiesAnywhere,
    /// The platform as before; strategies on the CPUs that it leaves.
    StrategiesApart,
    /// The platform as before; strategies on the CPUs that it leaves on all NUMA nodes.
    AcrossNodes,
    /// The platform as before; strategies on every CPU of md's NUMA node, the platform's too.
    OneNode,
    /// Writer and reader on the two nearest cores.
    Near,
    /// Writer and reader on the two farthest cores, under different last-level caches.
    Far,
}

/// A set-up in which scenarios are run.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Group {
    /// The letter that its rows begin with.
    pub letter: char,
    /// Description in a few words.
    pub name: &'static str,
    pub strategies: u32,
    pub mode: Mode,
    pub pinning: Pinning,
    /// True if memory comes from the pool of huge pages.
    pub needs_huge_pages: bool,
    /// True if one process runs all strategies, on a dedicated CPU.
    pub has_host: bool,
    /// True if md and td are one process.
    pub is_colocated: bool,
    /// True if the report has a table of it.
    pub is_in_report: bool,
    /// Numbers of its scenarios, from 1.
    pub scenarios: &'static [u8],
}

pub(super) const ALL: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const SOME: &[u8] = &[4, 7, 10, 11, 12];
/// Those at which the report draws its findings, and above.
const BUSY: &[u8] = &[10, 11, 12];
const BASE: Group = Group {
    letter: 'A',
    name: "parked, not pinned, 4 KiB pages",
    strategies: STRATEGIES,
    mode: Mode::Parked,
    pinning: Pinning::Nothing,
    needs_huge_pages: false,
    has_host: false,
    is_colocated: false,
    is_in_report: true,
    scenarios: ALL,
};
const BESIDE: Group = Group { pinning: Pinning::Platform, is_in_report: false, scenarios: SOME, ..BASE };
const SINGLE: Group = Group { strategies: 1, scenarios: ALL, ..BESIDE };
const FAST: Group = Group { mode: Mode::Fast, scenarios: ALL, ..BESIDE };
const FINDING: Group = Group { scenarios: BUSY, ..BESIDE };
/// Two processes that spin: the platform and a strategy.
const PAIR: Group = Group { strategies: 1, mode: Mode::Fast, is_colocated: true, ..FINDING };

/// Every group. A new one is a line here; the last ones belong to a finding each ([`super::FINDINGS`]).
pub const GROUPS: &[Group] = &[
    BASE,
    Group { letter: 'B', name: "parked, not pinned, huge pages", needs_huge_pages: true, ..BASE },
    Group { letter: 'C', name: "parked, platform pinned, 4 KiB pages", pinning: Pinning::Platform, ..BASE },
    Group {
        letter: 'D',
        name: "parked, platform pinned, huge pages",
        pinning: Pinning::Platform,
        needs_huge_pages: true,
        ..BASE
    },
    Group { letter: 'S', name: "one strategy, parked, platform pinned", ..SINGLE },
    Group { letter: 'T', name: "one strategy, parked, not pinned", pinning: Pinning::Nothing, ..SINGLE },
    Group { letter: 'F', name: "every process fast, platform pinned", ..FAST },
    Group { letter: 'G', name: "every process fast, not pinned", pinning: Pinning::Nothing, ..FAST },
    Group {
        letter: 'R',
        name: "the report's mixed mode: md and td fast, strategies parked",
        mode: Mode::PlatformFast,
        ..BESIDE
    },
    Group {
        letter: 'M',
        name: "lowlat's mixed mode: md fast, td and strategies parked",
        mode: Mode::Mixed,
        ..BESIDE
    },
    Group { letter: 'H', name: "platform parked, one strategy host that spins", has_host: true, ..BESIDE },
    Group {
        letter: 'P',
        name: "md and td in one process, which spins beside one strategy host",
        mode: Mode::Fast,
        has_host: true,
        is_colocated: true,
        ..BESIDE
    },
    Group { letter: 'K', name: "two that spin, on the nearest cores", pinning: Pinning::Near, ..PAIR },
    Group { letter: 'J', name: "two that spin, not pinned", pinning: Pinning::Nothing, ..PAIR },
    Group { letter: 'L', name: "two that spin, under different caches", pinning: Pinning::Far, ..PAIR },
    Group {
        letter: 'O',
        name: "strategies off the platform's CPUs",
        pinning: Pinning::StrategiesApart,
        ..FINDING
    },
    Group {
        letter: 'Q',
        name: "strategies anywhere, the same platform",
        pinning: Pinning::StrategiesAnywhere,
        ..FINDING
    },
    Group {
        letter: 'X',
        name: "strategies across NUMA nodes, off the platform's CPUs",
        pinning: Pinning::AcrossNodes,
        ..FINDING
    },
    Group {
        letter: 'Y',
        name: "strategies on md's NUMA node alone, the platform's CPUs too",
        pinning: Pinning::OneNode,
        ..FINDING
    },
];
