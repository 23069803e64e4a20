//! The study of a jitter record: rates with intervals, share of time lost, and percentiles that the counts
//! support.
//!
//! Pure: an old record can be studied again without the machine that it came from.

use super::{
    Cause, JitterCpu, JitterRecord, SenderStudy,
    sender::senders_of,
    study_causes::{causes_of, shares_of},
    wait::{LostTime, time_percentiles},
};
use hdrhistogram::Histogram;
use lowlat_host::{
    CPU_ID_MAX, CpuId, CpuSet, Isolation,
    histogram::{self, HistogramError},
    statistics::{RateInterval, carries_quantile},
};
use serde::{Deserialize, Serialize};

/// The quantiles considered; [`carries_quantile`] decides which of them are included.
pub const QUANTILES: [f64; 7] = [0.5, 0.9, 0.99, 0.999, 0.999_9, 0.999_99, 0.999_999];

/// Reason that a record cannot be studied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// The histogram of one CPU cannot be decoded.
    #[error(
        "cannot read the jitter record of CPU {cpu}: {source}\nhint: measure again, or restore the document"
    )]
    Histogram { cpu: CpuId, source: HistogramError },
    /// The histogram of one CPU has another number of interruptions than its record.
    /// - `count`: the count in the record.
    /// - `held`: the count in the histogram.
    #[error(
        "cannot read the jitter record of CPU {cpu}: it counts {count} interruptions but its histogram \
         contains {held}\nhint: measure again, or restore the document"
    )]
    CountDiffers { cpu: CpuId, count: u64, held: u64 },
}

/// The results of a jitter record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JitterStudy {
    /// A gap of at least this long counted as an interruption.
    pub threshold_ns: u64,
    /// [`JitterRecord::wake_every_ns`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_every_ns: Option<u64>,
    /// Per CPU, in the record's order.
    pub cpus: Vec<CpuStudy>,
    /// CPUs without a record because their samplers died.
    pub missing: CpuSet,
    pub all: TotalStudy,
    /// Causes over all CPUs, the largest first; empty if nothing was traced.
    pub causes: Vec<CauseStudy>,
    /// Senders that interrupted the measured CPUs from other ones, those that took the most time first; empty if
    /// senders were not traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<SenderStudy>,
    /// Shares of the interruption time by kind of cause; `None` if nothing was traced.
    pub shares: Option<CauseShares>,
}

/// One cause over all CPUs. Threads with the same name count as one, whatever their number.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CauseStudy {
    /// The cause; a thread's or interrupt's number only if it is always the same.
    pub cause: Cause,
    /// CPUs on which it interrupted.
    pub cpus: CpuSet,
    /// Number of interruptions that contained it.
    pub count: u64,
    /// Interruptions in which its part was the longest.
    pub main_count: u64,
    pub ns_total: u64,
    /// Part of that for entry into the kernel and exit from it.
    pub entry_exit_ns: u64,
    /// Longest time in one interruption.
    pub ns_max: u64,
    /// For a thread, CPUs on which it may run; of several threads, on which any may. `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_cpus: Option<CpuSet>,
    /// Its share of the time of all interruptions that were traced, 0 to 1.
    pub share: f64,
    /// Interruptions that contained it, per core-second of all measured CPUs.
    pub rate: Option<RateInterval>,
    /// `None` if no remedy is known.
    pub remedy: Option<Remedy>,
}

/// Setting or program change that removes a cause.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Remedy {
    /// ID of the setting in the catalogue: "boot.isolcpus"; empty if no setting of the host removes it and
    /// the action names the program to change.
    pub setting: String,
    /// Advice for this host, one sentence: "managed interrupt: isolcpus=managed_irq".
    pub action: String,
}

/// Shares of the time of all interruptions, each 0 to 1, with a sum of 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CauseShares {
    /// Share named by a tracepoint.
    pub named: f64,
    /// Entry into the kernel and exit from it, around named activities; included in the time of the causes.
    pub entry_exit: f64,
    /// No kernel event, but a counter of firmware or hypervisor increased.
    pub firmware_or_hypervisor: f64,
    /// No kernel event, and no such counter increased or is available.
    pub unexplained: f64,
    /// Not traced, or events were lost.
    pub not_traced: f64,
}

/// The results of one CPU's record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuStudy {
    pub cpu: CpuId,
    /// The kernel's isolation of it, or that it was only chosen; `None` if neither, or if the host is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Time for which it was sampled.
    pub runtime_s: f64,
    /// Missing sampled time: its sampler was moved, or the run was cut short. 0 in studies without this
    /// value.
    pub missed_s: f64,
    /// Interruptions at or above the threshold.
    pub count: u64,
    /// Interruptions per second; `None` if nothing was sampled.
    pub rate: Option<RateInterval>,
    /// Share of the sampled time that interruptions took, 0 to 1; `None` if nothing was sampled.
    pub lost_share: Option<f64>,
    /// The longest interruption; `None` if there was none.
    pub length_ns_max: Option<u64>,
    /// Mean length; `None` if there was none.
    pub length_ns_mean: Option<f64>,
    /// Percentiles over time: how long a thread that wants the CPU at a random moment waits, which is the
    /// remainder of the interruption at that moment. Included only if the record supports them: above 0 if at
    /// least 6 interruptions are longer, 0 if even the upper 95 % limit of the time lost leaves that share of
    /// moments free. The lengths are the middles of the histogram's cells (three significant digits).
    pub time_percentiles: Vec<Percentile>,
    /// Percentiles of the lengths of the interruptions above the threshold (not of time), included only if
    /// the count supports them ([`carries_quantile`]). They are not comparable between runs with different
    /// thresholds or rates.
    pub percentiles: Vec<Percentile>,
}

/// All CPUs of a record together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TotalStudy {
    pub cpus: CpuSet,
    /// Sampled time over all CPUs.
    pub core_seconds: f64,
    pub count: u64,
    /// Interruptions per core-second; `None` if nothing was sampled.
    pub rate: Option<RateInterval>,
    /// Share of the core-seconds that interruptions took, 0 to 1; `None` if nothing was sampled.
    pub lost_share: Option<f64>,
    /// The longest interruption; `None` if there was none.
    pub length_ns_max: Option<u64>,
    /// The CPU with the longest interruption.
    pub worst_cpu: Option<CpuId>,
    /// Percentiles over the time of all CPUs, by the rule of [`CpuStudy::time_percentiles`].
    pub time_percentiles: Vec<Percentile>,
    /// Percentiles over the interruptions of all CPUs, by the same rule.
    pub percentiles: Vec<Percentile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Percentile {
    /// 0.99 for p99.
    pub quantile: f64,
    /// Its length: the upper edge of the histogram's cell (three significant digits), never above the
    /// longest; for a percentile over time, the wait.
    pub length_ns: u64,
}

/// Studies a record.
///
/// # Errors
/// [`StudyError`] if a CPU's histogram cannot be decoded or does not match its count.
pub fn study(record: &JitterRecord) -> Result<JitterStudy, StudyError> {
    let lengths: Vec<Lengths> = record.cpus.iter().map(lengths_of).collect();
    match lengths.iter().find_map(|of| of.as_ref().err()) {
        Some(error) => Err(error.clone()),
        None => Ok(study_each(record, lengths)),
    }
}

/// The lengths of a CPU; `None` if it had no interruption.
type Lengths = Result<Option<Histogram<u64>>, StudyError>;

/// Studies a record. CPUs with a damaged histogram have only their counters; then there are no percentiles over all.
pub(crate) fn study_each(record: &JitterRecord, lengths: Vec<Lengths>) -> JitterStudy {
    let cpus = record.cpus.iter().zip(&lengths).map(|(cpu, lengths)| study_cpu(cpu, record, lengths));
    let cpus = cpus.collect();
    let mut sum: Lengths = Ok(None);
    for lengths in lengths {
        sum = match (sum, lengths) {
            (Ok(Some(sum)), Ok(Some(lengths))) => Ok(Some(with(sum, &lengths))),
            (Ok(None), lengths) => lengths,
            (sum, Ok(None)) => sum,
            // One of them is damaged.
            (sum, lengths) => sum.and(lengths),
        };
    }
    JitterStudy {
        threshold_ns: record.threshold_ns,
        wake_every_ns: record.wake_every_ns,
        all: study_all(record, &sum),
        cpus,
        missing: record.missing.clone(),
        causes: causes_of(record),
        senders: senders_of(record),
        shares: shares_of(record),
    }
}

/// The decoded histogram; `None` if the CPU had no interruption and so has no histogram.
pub fn lengths_of(cpu: &JitterCpu) -> Result<Option<Histogram<u64>>, StudyError> {
    if cpu.interruption_count == 0 && cpu.histogram.is_empty() {
        return Ok(None);
    }
    let lengths =
        histogram::decode(&cpu.histogram).map_err(|source| StudyError::Histogram { cpu: cpu.cpu, source })?;
    if lengths.len() != cpu.interruption_count {
        return Err(StudyError::CountDiffers {
            cpu: cpu.cpu,
            count: cpu.interruption_count,
            held: lengths.len(),
        });
    }
    Ok(Some(lengths))
}

/// A sum with another histogram. The first one sets the sum's range; others are saturated into it.
fn with(mut sum: Histogram<u64>, lengths: &Histogram<u64>) -> Histogram<u64> {
    for value in lengths.iter_recorded() {
        sum.saturating_record_n(value.value_iterated_to(), value.count_at_value());
    }
    sum
}

fn study_cpu(cpu: &JitterCpu, record: &JitterRecord, lengths: &Lengths) -> CpuStudy {
    let runtime_s = seconds(u128::from(cpu.runtime_ns));
    let count = cpu.interruption_count;
    CpuStudy {
        cpu: cpu.cpu,
        isolation: None,
        runtime_s,
        missed_s: seconds(u128::from(record.missed_ns(cpu.runtime_ns))),
        count,
        rate: RateInterval::of(count, runtime_s),
        lost_share: share(u128::from(cpu.interruption_ns_total), u128::from(cpu.runtime_ns)),
        length_ns_max: (count > 0).then_some(cpu.interruption_ns_max),
        length_ns_mean: (count > 0).then(|| cpu.interruption_ns_total as f64 / count as f64),
        percentiles: percentiles(count, cpu.interruption_ns_max, lengths),
        time_percentiles: waits(record, lengths, cpu.interruption_ns_max, u128::from(cpu.runtime_ns)),
    }
}

fn study_all(record: &JitterRecord, lengths: &Lengths) -> TotalStudy {
    let sum =
        |field: fn(&JitterCpu) -> u64| -> u128 { record.cpus.iter().map(|cpu| u128::from(field(cpu))).sum() };
    let runtime_ns = sum(|cpu| cpu.runtime_ns);
    let count = u64::try_from(sum(|cpu| cpu.interruption_count)).unwrap_or(u64::MAX);
    let worst = record
        .cpus
        .iter()
        .filter(|cpu| cpu.interruption_count > 0)
        .max_by_key(|cpu| (cpu.interruption_ns_max, std::cmp::Reverse(cpu.cpu)));
    let length_ns_max = worst.map(|cpu| cpu.interruption_ns_max);
    TotalStudy {
        // A hostile document may name a CPU number so high that the set would take half a gigabyte.
        cpus: record.cpus.iter().map(|cpu| cpu.cpu).filter(|cpu| *cpu <= CPU_ID_MAX).collect(),
        core_seconds: seconds(runtime_ns),
        count,
        rate: RateInterval::of(count, seconds(runtime_ns)),
        lost_share: share(sum(|cpu| cpu.interruption_ns_total), runtime_ns),
        length_ns_max,
        worst_cpu: worst.map(|cpu| cpu.cpu),
        percentiles: percentiles(count, length_ns_max.unwrap_or(0), lengths),
        time_percentiles: waits(record, lengths, length_ns_max.unwrap_or(0), runtime_ns),
    }
}

fn waits(record: &JitterRecord, lengths: &Lengths, length_ns_max: u64, runtime_ns: u128) -> Vec<Percentile> {
    let Ok(lengths) = lengths else { return Vec::new() };
    let (lengths, threshold_ns) = (lengths.as_ref(), record.threshold_ns);
    time_percentiles(&LostTime { lengths, length_ns_max, threshold_ns, runtime_ns })
}

fn percentiles(count: u64, length_ns_max: u64, lengths: &Lengths) -> Vec<Percentile> {
    let Ok(Some(lengths)) = lengths else { return Vec::new() };
    QUANTILES
        .into_iter()
        .filter(|quantile| carries_quantile(count, *quantile))
        .map(|quantile| Percentile {
            quantile,
            length_ns: lengths.value_at_quantile(quantile).min(length_ns_max),
        })
        .collect()
}

fn seconds(ns: u128) -> f64 {
    ns as f64 / 1e9
}

/// A hostile document may claim more lost time than there was; the share stays at most one.
fn share(part_ns: u128, whole_ns: u128) -> Option<f64> {
    (whole_ns > 0).then(|| (part_ns as f64 / whole_ns as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn cpu(number: CpuId, seconds: u64, lengths: &[u64]) -> JitterCpu {
        let mut held = Histogram::new_with_bounds(1, 1 << 42, 3).unwrap();
        for length in lengths {
            held.record(*length).unwrap();
        }
        JitterCpu {
            cpu: number,
            runtime_ns: seconds * SECOND,
            interruption_count: lengths.len() as u64,
            interruption_ns_total: lengths.iter().sum(),
            interruption_ns_max: lengths.iter().copied().max().unwrap_or(0),
            histogram: histogram::encode(&held),
            ..JitterCpu::default()
        }
    }

    fn record(cpus: Vec<JitterCpu>) -> JitterRecord {
        JitterRecord { threshold_ns: 100, duration_ns: 610 * SECOND, cpus, ..JitterRecord::default() }
    }

    /// The result of AMD's guide: 14 cores for 610 s, ten interruptions.
    #[test]
    fn the_guides_ten_interruptions_get_an_interval() {
        let mut cpus: Vec<JitterCpu> = (1..=14).map(|number| cpu(number, 610, &[])).collect();
        for quiet in cpus.iter_mut().take(6) {
            *quiet = cpu(quiet.cpu, 610, &[250]);
        }
        cpus[10] = cpu(11, 610, &[120, 900, 130, 140]);
        let study = study(&record(cpus)).unwrap();
        assert_eq!((study.all.count, study.all.core_seconds), (10, 8_540.0));
        let rate = study.all.rate.unwrap();
        assert!((rate.per_s_low - 0.000_562).abs() < 1e-6, "{rate:?}");
        assert!((rate.per_s_high - 0.002_153).abs() < 1e-6, "{rate:?}");
        assert_eq!((study.all.worst_cpu, study.all.length_ns_max), (Some(11), Some(900)));
        let quantiles: Vec<f64> = study.all.percentiles.iter().map(|p| p.quantile).collect();
        assert_eq!(quantiles, [0.5], "ten events carry a median and no more");
        assert!(study.cpus[10].percentiles.is_empty(), "four events carry none");
        assert_eq!(study.cpus[7].length_ns_max, None);
    }

    #[test]
    fn shares_means_and_percentiles_are_of_the_lengths() {
        let lengths: Vec<u64> = (1..=1_000).map(|n| n * 1_000).collect();
        let study = study(&record(vec![cpu(3, 10, &lengths), cpu(4, 10, &[])])).unwrap();
        let first = &study.cpus[0];
        assert!((first.lost_share.unwrap() - 0.050_05).abs() < 1e-9);
        assert!((study.all.lost_share.unwrap() - 0.025_025).abs() < 1e-9);
        assert!((first.length_ns_mean.unwrap() - 500_500.0).abs() < 1e-6);
        let given: Vec<(f64, u64)> = first.percentiles.iter().map(|p| (p.quantile, p.length_ns)).collect();
        let near = |length: u64, wanted: u64| length >= wanted && length <= wanted + wanted / 500;
        assert_eq!(given.len(), 3, "{given:?}");
        assert!(
            near(given[0].1, 500_000) && near(given[1].1, 900_000) && near(given[2].1, 990_000),
            "{given:?}"
        );
        assert_eq!(study.all.percentiles, first.percentiles);
    }

    #[test]
    fn a_record_without_time_has_no_rate() {
        let study = study(&record(vec![cpu(0, 0, &[])])).unwrap();
        assert_eq!((study.cpus[0].rate, study.cpus[0].lost_share, study.all.rate), (None, None, None));
        assert_eq!(super::study(&JitterRecord::default()).unwrap().all, TotalStudy::default());
    }

    /// A run of 610 s, of which first one CPU and then all have only a part.
    #[test]
    fn what_was_not_sampled_is_reported() {
        let moved = record(vec![cpu(1, 610, &[]), cpu(2, 3, &[])]);
        let missed: Vec<f64> = study(&moved).unwrap().cpus.iter().map(|cpu| cpu.missed_s).collect();
        assert_eq!((missed, moved.ran_ns()), (vec![0.0, 607.0], 610 * SECOND));
        let cut = record(vec![cpu(1, 20, &[]), cpu(2, 19, &[])]);
        assert_eq!(cut.ran_ns(), 20 * SECOND);
        let late = record(vec![cpu(1, 609, &[])]);
        assert_eq!((late.ran_ns(), study(&late).unwrap().cpus[0].missed_s), (610 * SECOND, 0.0));
        assert_eq!(record(Vec::new()).ran_ns(), 0);
    }

    #[test]
    fn damaged_records_are_named() {
        let mut damaged = cpu(7, 1, &[200]);
        damaged.histogram = "junk".into();
        let error = study(&record(vec![damaged])).unwrap_err();
        assert!(error.to_string().starts_with("cannot read the jitter record of CPU 7: "), "{error}");
        let mut lying = cpu(8, 1, &[200]);
        lying.interruption_count = 2;
        assert_eq!(
            study(&record(vec![lying])).unwrap_err(),
            StudyError::CountDiffers { cpu: 8, count: 2, held: 1 }
        );
    }

    #[test]
    fn studies_survive_json() {
        let study = study(&record(vec![cpu(0, 1, &[100, 200, 300])])).unwrap();
        let json = serde_json::to_string(&study).unwrap();
        assert_eq!(serde_json::from_str::<JitterStudy>(&json).unwrap(), study);
    }
}
