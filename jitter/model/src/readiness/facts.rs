//! Facts read before a measurement.

use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_settings::{Layer, Verdict, audit::Audit};

/// Maximum number of busy threads kept on each side, the busiest first.
pub const BUSY_KEPT_MAX: usize = 64;

/// The host shortly before a measurement, observed for a fraction of a second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadinessFacts {
    /// The CPUs to be measured.
    pub measured: CpuSet,
    /// CPUs for everything else: housekeeping, none of them measured. Empty if every CPU is measured.
    pub housekeeping: CpuSet,
    /// CPUs that this process may use.
    pub own_cpus: Reading<CpuSet>,
    /// Load averages over 1, 5 and 15 minutes (/proc/loadavg).
    pub load_average: Reading<[f64; 3]>,
    /// Results of the audit rows that make up the profile.
    pub profile: ProfileFacts,
    /// Pages swapped during the observation.
    pub swap: SwapFacts,
    /// Clocks of the measured CPUs; empty if the host has no frequency scaling.
    pub clocks: Vec<FrequencyFacts>,
    /// Threads that used CPU time during the observation.
    pub busy: Reading<BusyThreads>,
    pub look_ms: u64,
}

/// The audit rows that make up a profile: boot parameters and TuneD.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileFacts {
    pub name: String,
    /// Number of rows that match the profile.
    pub good_count: usize,
    /// IDs of the rows with a fault, worst first.
    pub faults: Vec<String>,
    /// IDs of the unknown rows.
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

/// Pages swapped during the observation (/proc/vmstat).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SwapFacts {
    /// Pages read back (pswpin).
    pub in_pages: Reading<u64>,
    /// Pages written out (pswpout).
    pub out_pages: Reading<u64>,
}

/// Clock of one CPU (/sys/devices/system/cpu/cpuN/cpufreq).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrequencyFacts {
    pub cpu: CpuId,
    /// scaling_governor.
    pub governor: Reading<String>,
    /// scaling_cur_freq at the start and end of the observation.
    pub khz: [Reading<u64>; 2],
    /// scaling_min_freq and scaling_max_freq: if they are equal the governor has no choice.
    pub limits_khz: [Reading<u64>; 2],
}

/// Threads that used CPU time during the observation, without lowlat's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusyThreads {
    /// On measured CPUs: the [`BUSY_KEPT_MAX`] busiest.
    pub measured: Vec<BusyThread>,
    /// Number of threads on measured CPUs.
    pub measured_count: usize,
    /// On other CPUs: the [`BUSY_KEPT_MAX`] busiest.
    pub elsewhere: Vec<BusyThread>,
    /// Number of threads on other CPUs.
    pub elsewhere_count: usize,
    /// Reason that some threads were not read; empty if all were.
    pub unseen: String,
}

/// A thread that used CPU time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusyThread {
    pub pid: i32,
    /// Thread ID; for a process with one thread its process ID.
    pub tid: i32,
    /// Its name, with control characters made visible.
    pub comm: String,
    /// The CPU on which it was seen.
    pub cpu: CpuId,
    /// CPU time that it used, in units of the kernel's clock tick (10 ms on nearly all kernels).
    pub used_ms: u64,
    pub is_kernel: bool,
}
