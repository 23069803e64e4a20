//! The raw record of a jitter measurement: time taken from user threads, per CPU.

use super::JitterCauses;
use lowlat_host::{CpuId, CpuSet, Reading};
use serde::{Deserialize, Serialize};

/// What one jitter run recorded, before any study of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JitterRecord {
    /// The counter that was read: "tsc", "cntvct", "clock_monotonic_raw".
    pub counter: String,
    /// Ticks of the counter in a second.
    pub counter_hz: u64,
    /// Where the frequency comes from: "cpuid 0x15", "kernel (perf mmap)", "measured against CLOCK_MONOTONIC_RAW".
    pub counter_hz_source: String,
    /// What the counter showed when the run began, so that other logs in the same counter can be laid beside it.
    #[serde(default)]
    pub start_ticks: u64,
    /// A gap between two readings of at least this long is an interruption.
    pub threshold_ns: u64,
    /// How long it was meant to run.
    pub duration_ns: u64,
    /// Width of one entry of [`JitterCpu::seconds`]: a second, or whole seconds when the run is so long that the
    /// series would pass its bound.
    #[serde(default = "one_second")]
    pub second_ns: u64,
    /// One record per measured CPU, by rising number.
    pub cpus: Vec<JitterCpu>,
    /// CPUs that were to be measured and have no record, since their samplers died.
    #[serde(default)]
    pub missing: CpuSet,
    /// What was found out about causes; `None` in records of lowlat before it looked for them.
    #[serde(default)]
    pub causes: Option<JitterCauses>,
    /// Real-time priority of the samplers, 1 to 99 with its policy ("SCHED_FIFO 10"); `None` for ordinary threads.
    #[serde(default)]
    pub real_time: Option<String>,
    /// What makes the figures doubtful: CPU moves, steal time, a clock that is not invariant. One sentence each.
    pub warnings: Vec<String>,
}

fn one_second() -> u64 {
    1_000_000_000
}

impl JitterRecord {
    /// How long it ran, in nanoseconds: as it was meant to, or as long as its longest sampler when all ended early.
    pub fn ran_ns(&self) -> u64 {
        let longest = self.cpus.iter().map(|cpu| cpu.runtime_ns).max().unwrap_or(0);
        self.duration_ns.saturating_sub(self.missed_ns(longest))
    }

    /// What is missing of a sampler that ran that long, in nanoseconds; 0 when it is less than a hundredth.
    pub fn missed_ns(&self, runtime_ns: u64) -> u64 {
        let missed = self.duration_ns.saturating_sub(runtime_ns);
        if missed > self.duration_ns / 100 { missed } else { 0 }
    }
}

/// What one CPU's sampler recorded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JitterCpu {
    /// The CPU that the sampler was pinned to.
    pub cpu: CpuId,
    /// How long it really sampled, from its first reading of the counter to its last.
    pub runtime_ns: u64,
    /// Its first reading of the counter; 0 in records that do not carry it.
    #[serde(default)]
    pub start_ticks: u64,
    /// Its last reading of the counter; 0 in records that do not carry it.
    #[serde(default)]
    pub stop_ticks: u64,
    /// Part of [`JitterCpu::runtime_ns`] that went into recording and publishing, when the loop did not look.
    /// An interruption that falls into it is kept when it is longer than the recorder's slack (a microsecond, or the
    /// threshold when that is longer).
    #[serde(default)]
    pub recording_ns_total: u64,
    /// Median time of one turn of the sampling loop when nothing interrupts.
    pub loop_period_ns: f64,
    /// Shortest turn seen in calibration: the floor below which nothing can be told.
    pub loop_floor_ns: f64,
    /// Turns of the loop.
    pub loop_count: u64,
    /// Interruptions at or above the threshold, exact.
    pub interruption_count: u64,
    /// Time they took, exact. Each gap holds one turn of the loop as well ([`JitterCpu::loop_period_ns`]).
    pub interruption_ns_total: u64,
    /// The shortest; 0 when there was none.
    #[serde(default)]
    pub interruption_ns_min: u64,
    /// The longest.
    pub interruption_ns_max: u64,
    /// Histogram of their lengths in ns: HdrHistogram V2, deflated, base64, as its log files carry it.
    pub histogram: String,
    /// The longest interruptions, longest first.
    pub worst: Vec<Interruption>,
    /// The first interruptions, in time order.
    pub first: Vec<Interruption>,
    /// Per second of the run ([`JitterRecord::second_ns`]).
    pub seconds: Vec<JitterSecond>,
    /// Time the hypervisor took from this CPU during the run, from /proc/stat.
    pub steal_ns: Reading<u64>,
    /// Whether the thread was ever seen on another CPU. The record ends at the last reading before that.
    pub has_moved: bool,
    /// Readings of the counter below the one before; none on a sound machine.
    #[serde(default)]
    pub backward_count: u64,
}

/// One interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interruption {
    /// When it began, since the start of the run.
    pub at_ns: u64,
    /// How long it took: the gap between two readings of the counter, one turn of the loop included.
    pub length_ns: u64,
}

/// One second of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JitterSecond {
    /// Interruptions that ended in this second.
    pub count: u64,
    /// Time they took.
    pub ns_total: u64,
    /// The longest.
    pub ns_max: u64,
}
