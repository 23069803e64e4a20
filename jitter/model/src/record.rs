//! The raw record of a jitter measurement: time taken from user threads, per CPU.

use super::{
    GroupMember, JitterCauses, JitterStudy, OwnHolds, RemedyContext, Sender, StudyError, Warning,
    gate::GateOutcome, study_with,
};
use lowlat_host::{CpuId, CpuSet, Reading, histogram};
use serde::{Deserialize, Serialize};

/// Record of one jitter run, before any study of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JitterRecord {
    /// The counter that was read: "tsc", "cntvct", "clock_monotonic_raw".
    pub counter: String,
    /// Frequency of the counter in hertz.
    pub counter_hz: u64,
    /// Source of the frequency: "cpuid 0x15", "kernel (perf mmap)", "measured against CLOCK_MONOTONIC_RAW".
    pub counter_hz_source: String,
    /// Reading of the counter at the start of the run, so that it can be aligned with other logs of the same
    /// counter.
    pub start_ticks: u64,
    /// A gap between two readings of at least this long is an interruption.
    pub threshold_ns: u64,
    /// Requested length of the run.
    pub duration_ns: u64,
    /// A timer woke the samplers this often, and each interruption is the latency of one wake-up; `None` if they did
    /// not sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_every_ns: Option<u64>,
    /// The interruption that ended the run; `None` if none was to end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Width of one entry of [`JitterCpu::seconds`]: a second, or a number of whole seconds if the series
    /// would otherwise exceed its limit.
    pub second_ns: u64,
    /// One record per measured CPU, in order of their numbers.
    pub cpus: Vec<JitterCpu>,
    /// Share of the run in which the CPUs that were not measured ran something, lowlat's own threads included; absent
    /// if all CPUs were measured.
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub others_busy_share: Reading<f64>,
    /// CPUs without a record because their samplers died.
    pub missing: CpuSet,
    /// The causes found; `None` if none were searched for.
    pub causes: Option<JitterCauses>,
    /// Real-time priority of the samplers, 1 to 99 with its policy ("SCHED_FIFO 10"); `None` for ordinary threads.
    pub real_time: Option<String>,
    /// Doubts about the figures: moves between CPUs, steal time, a clock that is not invariant. The texts of
    /// [`Warning`], one or more sentences each.
    pub warnings: Vec<String>,
}

impl JitterRecord {
    /// Length of the run in nanoseconds: as requested, or of its longest sampler if all ended early.
    pub fn ran_ns(&self) -> u64 {
        let longest = self.cpus.iter().map(|cpu| cpu.runtime_ns).max().unwrap_or(0);
        self.duration_ns.saturating_sub(self.missed_ns(longest))
    }

    /// True if an interruption ended the run, as requested.
    pub fn was_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.hit.is_some())
    }

    pub fn warn(&mut self, warnings: impl IntoIterator<Item = Warning>) {
        self.warnings.extend(warnings.into_iter().map(|warning| warning.to_string()));
    }

    /// Missing time of a sampler that ran this long, in nanoseconds; 0 if below one percent.
    pub fn missed_ns(&self, runtime_ns: u64) -> u64 {
        let missed = self.duration_ns.saturating_sub(runtime_ns);
        if missed > self.duration_ns / 100 { missed } else { 0 }
    }
}

/// Record of one CPU's sampler.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JitterCpu {
    /// The CPU to which the sampler was pinned.
    pub cpu: CpuId,
    /// Sampled time, from its first reading of the counter to its last.
    pub runtime_ns: u64,
    /// Its first reading of the counter; 0 in records without it.
    pub start_ticks: u64,
    /// Its last reading of the counter; 0 in records without it.
    pub stop_ticks: u64,
    /// Part of [`JitterCpu::runtime_ns`] spent on recording and publishing, when the loop did not sample. An
    /// interruption in it is kept if it is longer than the recorder's slack (a microsecond, or the threshold
    /// if that is longer).
    pub recording_ns_total: u64,
    /// Median time of one iteration of the sampling loop without interruptions.
    pub loop_period_ns: f64,
    /// Shortest iteration in calibration, which is the resolution limit.
    pub loop_floor_ns: f64,
    pub loop_count: u64,
    /// Interruptions at or above the threshold, exact.
    pub interruption_count: u64,
    /// Time they took, exact. Each gap also includes one iteration of the loop
    /// ([`JitterCpu::loop_period_ns`]).
    pub interruption_ns_total: u64,
    /// The shortest; 0 if there was none.
    pub interruption_ns_min: u64,
    pub interruption_ns_max: u64,
    /// Histogram of their lengths in ns: HdrHistogram V2, deflated, base64, as in its log files.
    pub histogram: String,
    /// The longest interruptions, longest first.
    pub worst: Vec<Interruption>,
    /// The first interruptions, in time order.
    pub first: Vec<Interruption>,
    /// Per second of the run ([`JitterRecord::second_ns`]).
    pub seconds: Vec<JitterSecond>,
    /// Time that the hypervisor took from this CPU during the run, from /proc/stat.
    pub steal_ns: Reading<u64>,
    /// The sampler was found on another CPU; the record ends at the last reading before that.
    pub has_moved: bool,
    /// Readings of the counter below the previous one; 0 on a sound machine.
    pub backward_count: u64,
}

impl JitterCpu {
    /// Takes out the interruptions that the run itself caused, except from [`JitterCpu::seconds`]. `None` if its
    /// histogram does not have them; nothing changes then.
    pub fn take_out(&mut self, own: &OwnHolds) -> Option<()> {
        let mut rest = histogram::decode(&self.histogram).ok()?;
        rest.subtract(histogram::decode(&own.histogram).ok()?).ok()?;
        self.interruption_count = rest.len();
        self.interruption_ns_total = self.interruption_ns_total.saturating_sub(own.ns_total);
        self.interruption_ns_max = self.interruption_ns_max.min(own.others_ns_max);
        self.interruption_ns_min = self.interruption_ns_min.min(own.others_ns_max);
        for kept in [&mut self.worst, &mut self.first] {
            kept.retain(|one| one.length_ns <= own.others_ns_max);
        }
        self.histogram = histogram::encode(&rest);
        Some(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interruption {
    /// Start, since the start of the run.
    pub at_ns: u64,
    /// Its length: the gap between two readings of the counter, including one iteration of the loop.
    pub length_ns: u64,
}

/// One second of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JitterSecond {
    /// Interruptions that ended in this second.
    pub count: u64,
    pub ns_total: u64,
    pub ns_max: u64,
    /// Those of at least [`LONG_NS`]; `None` if they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_count: Option<u64>,
}

/// Minimum length of a long interruption: more than a trading thread loses to a timer or an IPI.
pub const LONG_NS: u64 = 10_000;

/// Request to end the run at an interruption of at least a given length, and the interruption that did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stop {
    /// The shortest interruption that ends the run.
    pub on_ns: u64,
    /// The first of them with its main cause; `None` if the run lasted until its end.
    pub hit: Option<GroupMember>,
    /// Sender that woke the thread that took the CPU, or interrupted it from another CPU; absent if there is none or
    /// the trace does not contain it, denied if the kernel hides the names of its functions, unparsable if it has none
    /// for these.
    #[serde(default)]
    pub origin: Reading<Sender>,
    /// Time of the origin since the start of the interruption; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_offset_ns: Option<i64>,
    /// Reason that the origin is unknown; empty if it is known, or if there was no interruption.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin_reason: String,
    /// The trace around the interruption as a trace.dat, which is in no document; empty if it is not wanted.
    #[serde(skip)]
    pub trace: Vec<u8>,
}

/// A record and its results.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JitterMeasurement {
    pub record: JitterRecord,
    /// The study of the record, for programs that read the document; `None` if the record is damaged.
    pub study: Option<JitterStudy>,
    /// Outcome of the given limits; `None` if none were given.
    pub gate: Option<GateOutcome>,
}

impl JitterMeasurement {
    /// The measurement's kind in a document, which is also the name of its subcommand.
    pub const KIND: &str = "jitter";

    /// Studies the record with this version's methods, replacing an earlier study.
    ///
    /// # Errors
    /// [`StudyError`] if the record is damaged; an earlier study is then kept.
    pub fn study_again(&mut self, context: &RemedyContext<'_>) -> Result<&JitterStudy, StudyError> {
        let study = study_with(&self.record, Some(context))?;
        Ok(self.study.insert(study))
    }
}

impl From<JitterRecord> for JitterMeasurement {
    fn from(record: JitterRecord) -> Self {
        Self { record, study: None, gate: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;

    fn text(lengths: &[u64]) -> String {
        let mut held = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        for length in lengths {
            held.record(*length).unwrap();
        }
        histogram::encode(&held)
    }

    #[test]
    fn what_the_run_itself_caused_is_taken_out() {
        let of = |lengths: &[u64]| JitterCpu {
            interruption_count: lengths.len() as u64,
            interruption_ns_total: lengths.iter().sum(),
            interruption_ns_min: lengths.iter().copied().min().unwrap_or(0),
            interruption_ns_max: lengths.iter().copied().max().unwrap_or(0),
            histogram: text(lengths),
            worst: lengths.iter().map(|length_ns| Interruption { at_ns: 0, length_ns: *length_ns }).collect(),
            ..JitterCpu::default()
        };
        let mut grows = Histogram::<u64>::new(3).unwrap();
        for length in [50_000_000, 50_100_000] {
            grows.record(length).unwrap();
        }
        let own = |others_ns_max| OwnHolds {
            count: 2,
            ns_total: 100_100_000,
            histogram: histogram::encode(&grows),
            others_ns_max,
        };
        let mut cpu = of(&[700, 50_000_000, 900, 50_100_000]);
        assert_eq!(cpu.take_out(&own(900)), Some(()));
        assert_eq!(cpu, of(&[700, 900]));
        assert_eq!(cpu.take_out(&own(900)), None, "they are out");
        assert_eq!(cpu, of(&[700, 900]));
        let mut cpu = of(&[50_000_000, 50_100_000]);
        assert_eq!(cpu.take_out(&own(0)), Some(()));
        assert_eq!(cpu, of(&[]));
    }
}
