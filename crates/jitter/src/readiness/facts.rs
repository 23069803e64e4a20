//! What is looked at before a measurement.

use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_settings::{Layer, Verdict, audit::Audit};

/// Busy threads that are kept by name on each side, those that used most.
pub const BUSY_KEPT_MAX: usize = 64;

/// The host shortly before a measurement, out of one look of a fraction of a second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadinessFacts {
    /// The CPUs that will be measured.
    pub measured: CpuSet,
    /// CPUs for all else: housekeeping, none of them measured. Empty when every CPU is measured.
    pub housekeeping: CpuSet,
    /// CPUs that this process may use.
    pub own_cpus: Reading<CpuSet>,
    /// Load averages over 1, 5 and 15 minutes (/proc/loadavg).
    pub load_average: Reading<[f64; 3]>,
    /// How the rows of the audit stand that make the profile.
    pub profile: ProfileFacts,
    /// Pages swapped during the look.
    pub swap: SwapFacts,
    /// How the measured CPUs are clocked; none when the host has no frequency scaling.
    pub clocks: Vec<CpuClock>,
    /// Threads that used CPU time during the look.
    pub busy: Reading<BusyThreads>,
    /// How long the look took.
    pub look_ms: u64,
}

/// The rows of an audit that make a profile: what the boot loader passed on, and TuneD.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileFacts {
    /// The profile.
    pub name: String,
    /// Rows that are as the profile wants them.
    pub good_count: usize,
    /// Ids of the rows at fault, worst first.
    pub faults: Vec<String>,
    /// Ids of the rows that could not be told.
    pub unknown: Vec<String>,
}

impl ProfileFacts {
    /// The rows of an audit.
    pub fn of(audit: &Audit) -> Self {
        let mut facts = Self { name: audit.profile.to_string(), ..Self::default() };
        let rows = audit.findings.iter().filter(|finding| {
            finding.layer == Layer::Boot
                || finding.id == "readiness.tuned"
                || finding.id.split('.').take(2).eq(["service", "tuned"])
        });
        for finding in rows {
            match finding.verdict {
                Verdict::Good => facts.good_count += 1,
                Verdict::Unknown => facts.unknown.push(finding.id.clone()),
                Verdict::NotApplicable => {}
                _ => facts.faults.push(finding.id.clone()),
            }
        }
        facts
    }
}

/// Pages that were swapped during the look (/proc/vmstat).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SwapFacts {
    /// Pages read back (pswpin).
    pub in_pages: Reading<u64>,
    /// Pages written out (pswpout).
    pub out_pages: Reading<u64>,
}

/// How one CPU is clocked (/sys/devices/system/cpu/cpuN/cpufreq).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuClock {
    /// The CPU.
    pub cpu: CpuId,
    /// scaling_governor.
    pub governor: Reading<String>,
    /// scaling_cur_freq when the look began and when it ended.
    pub khz: [Reading<u64>; 2],
    /// scaling_min_freq and scaling_max_freq: when they are equal the governor has no choice.
    pub limits_khz: [Reading<u64>; 2],
}

/// Threads that used CPU time during the look, ours left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusyThreads {
    /// On measured CPUs: the [`BUSY_KEPT_MAX`] that used most.
    pub measured: Vec<BusyThread>,
    /// How many on measured CPUs there were.
    pub measured_count: usize,
    /// On other CPUs: the [`BUSY_KEPT_MAX`] that used most.
    pub elsewhere: Vec<BusyThread>,
    /// How many on other CPUs there were.
    pub elsewhere_count: usize,
    /// Why some threads were not looked at; empty when all were.
    pub unseen: String,
}

/// A thread that used CPU time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusyThread {
    /// Process id.
    pub pid: i32,
    /// Thread id; that of a process with one thread is its pid.
    pub tid: i32,
    /// Its name, control characters made visible.
    pub comm: String,
    /// The CPU on which it was seen.
    pub cpu: CpuId,
    /// CPU time that it used, in steps of the kernel's clock tick (10 ms on nearly all kernels).
    pub used_ms: u64,
    /// Whether it is one of the kernel's own.
    pub is_kernel: bool,
}
