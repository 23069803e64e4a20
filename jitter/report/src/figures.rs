//! Figures for tables and charts: a document's jitter record with its study.

use hdrhistogram::Histogram;
use lowlat_host::{Allocation, CpuId, histogram, statistics::RateInterval};
use lowlat_host_report::cpu_parts::{CpuPart, CpuParts};
use lowlat_jitter::{
    CpuStudy, JitterCpu, JitterMeasurement, JitterRecord, JitterStudy, Percentile, ReadinessPoint,
    RemedyContext, study_damaged, study_with,
};
use lowlat_settings::audit::Audit;
use std::borrow::Cow;

/// A jitter measurement with the run and the host that it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct JitterRun<'a> {
    /// `None` if jitter was not measured.
    pub measurement: Option<&'a JitterMeasurement>,
    pub context: RemedyContext<'a>,
    pub audit: &'a Audit,
    pub readiness: &'a [ReadinessPoint],
    pub is_interrupted: bool,
    /// True if `lowlat jitter` made the run, false if the measurement is a part of another one.
    pub is_own: bool,
}

/// Jitter record with its study.
#[derive(Debug)]
pub struct Jitter<'a> {
    pub record: &'a JitterRecord,
    /// Study, with the record's CPUs in the same order.
    pub study: Cow<'a, JitterStudy>,
}

impl<'a> Jitter<'a> {
    /// Returns the record of a run, or `None` if jitter was not measured.
    ///
    /// Uses its own study, unless it belongs to another record. Then the record is studied again.
    pub fn of(run: &JitterRun<'a>) -> Option<Self> {
        let JitterMeasurement { record, study, .. } = run.measurement?;
        let own = study.as_ref().filter(|own| is_study_of(own, record));
        let fresh = || {
            let context = &run.context;
            study_with(record, Some(context)).unwrap_or_else(|_| study_damaged(record, Some(context)))
        };
        let study = own.map_or_else(|| Cow::Owned(fresh()), Cow::Borrowed);
        Some(Self { record, study })
    }

    /// Returns the figures of every CPU, in the record's order.
    pub fn cpus(&'a self, parts: &CpuParts<'_>) -> Vec<CpuFigures<'a>> {
        let both = self.record.cpus.iter().zip(&self.study.cpus);
        both.map(|(record, study)| CpuFigures {
            record,
            study,
            part: parts.get(record.cpu),
            lengths: lengths_of(record),
        })
        .collect()
    }
}

/// Returns whether a study belongs to this record.
fn is_study_of(study: &JitterStudy, record: &JitterRecord) -> bool {
    let is_same = |(studied, recorded): (&CpuStudy, &JitterCpu)| {
        studied.cpu == recorded.cpu && studied.count == recorded.interruption_count
    };
    study.threshold_ns == record.threshold_ns
        && study.cpus.len() == record.cpus.len()
        && study.cpus.iter().zip(&record.cpus).all(is_same)
}

/// Jitter of one CPU in figures.
#[derive(Debug)]
pub struct CpuFigures<'a> {
    pub record: &'a JitterCpu,
    pub study: &'a CpuStudy,
    pub part: CpuPart,
    /// Lengths, or why they are unavailable.
    pub lengths: Result<Histogram<u64>, String>,
}

/// Number of interruptions below which a rate is shown with its interval.
pub const ROUGH_BELOW: u64 = 100;

impl CpuFigures<'_> {
    /// Returns a percentile over the interruptions, if there are enough of them.
    pub fn percentile(&self, quantile: f64) -> Option<u64> {
        percentile(&self.study.percentiles, quantile)
    }

    /// Returns a percentile over time, if the record has it.
    pub fn time_percentile(&self, quantile: f64) -> Option<u64> {
        percentile(&self.study.time_percentiles, quantile)
    }

    /// Returns the share of time that interruptions took.
    pub fn lost_percent(&self) -> Option<f64> {
        self.study.lost_share.map(|share| share * 100.0)
    }
}

/// Returns the percentile for a quantile from a list.
pub fn percentile(percentiles: &[Percentile], quantile: f64) -> Option<u64> {
    percentiles.iter().find(|of| (of.quantile - quantile).abs() < 1e-9).map(|of| of.length_ns)
}

/// Returns the lengths of one CPU. A histogram whose count differs from the record's is an error.
fn lengths_of(record: &JitterCpu) -> Result<Histogram<u64>, String> {
    if record.histogram.is_empty() {
        return Err("the record has no histogram".to_owned());
    }
    let lengths = histogram::decode(&record.histogram).map_err(|error| error.to_string())?;
    if lengths.len() == record.interruption_count {
        Ok(lengths)
    } else {
        let (counted, held) = (record.interruption_count, lengths.len());
        Err(format!("the record counts {counted} interruptions, but its histogram contains {held}"))
    }
}

/// Sums over the CPUs for trading, or over all if none of those was measured.
#[derive(Debug, Clone, Copy)]
pub struct Side {
    /// Interruptions per second of each CPU.
    pub rate: RateInterval,
    /// Interruptions on any of them.
    pub count: u64,
    /// Share of their time that interruptions took.
    pub lost_percent: f64,
    pub cpu_count: usize,
    /// True if only CPUs chosen for isolation are included.
    pub is_isolated: bool,
}

impl Side {
    /// Sums up a record, or returns `None` if it has no samples.
    pub fn of(record: &JitterRecord, allocation: &Allocation) -> Option<Self> {
        let (is_isolated, chosen) = for_trading(record, allocation);
        let sum =
            |of: fn(&JitterCpu) -> u64| chosen.iter().fold(0u64, |sum, cpu| sum.saturating_add(of(cpu)));
        let runtime_s = sum(|cpu| cpu.runtime_ns) as f64 / 1e9;
        let count = sum(|cpu| cpu.interruption_count);
        Some(Self {
            rate: RateInterval::of(count, runtime_s)?,
            count,
            lost_percent: (sum(|cpu| cpu.interruption_ns_total) as f64 / 1e7 / runtime_s).min(100.0),
            cpu_count: chosen.len(),
            is_isolated,
        })
    }
}

/// The CPUs chosen for isolation, or all if none of those was measured; `true` if there are such.
fn for_trading<'a>(record: &'a JitterRecord, allocation: &Allocation) -> (bool, Vec<&'a JitterCpu>) {
    let is_chosen = |cpu: &&JitterCpu| allocation.isolated.contains(cpu.cpu);
    let is_isolated = record.cpus.iter().any(|cpu| is_chosen(&cpu));
    (is_isolated, record.cpus.iter().filter(|cpu| !is_isolated || is_chosen(cpu)).collect())
}

/// Longest interruption of a run, on the CPUs for trading if any of them was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Longest {
    /// Length; `None` if there was no interruption.
    pub length_ns: Option<u64>,
    pub cpu: CpuId,
    /// True if only CPUs chosen for isolation were searched.
    pub is_isolated: bool,
}

impl Longest {
    /// Searches a record, or returns `None` if no CPU was measured.
    pub fn of(record: &JitterRecord, allocation: &Allocation) -> Option<Self> {
        let (is_isolated, chosen) = for_trading(record, allocation);
        let worst = chosen.iter().max_by_key(|cpu| (cpu.interruption_ns_max, std::cmp::Reverse(cpu.cpu)))?;
        let length_ns = (worst.interruption_count > 0).then_some(worst.interruption_ns_max);
        Some(Self { length_ns, cpu: worst.cpu, is_isolated })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::HostSnapshot;
    use lowlat_jitter::study;

    fn cpu(count: u64) -> JitterCpu {
        let mut lengths = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).unwrap();
        lengths.record_n(1_000, count).unwrap();
        JitterCpu {
            interruption_count: count,
            interruption_ns_max: 1_000,
            interruption_ns_total: 1_000 * count,
            runtime_ns: 1_000_000_000,
            histogram: histogram::encode(&lengths),
            ..JitterCpu::default()
        }
    }

    fn jitter(cpus: Vec<JitterCpu>) -> JitterRecord {
        JitterRecord { threshold_ns: 100, duration_ns: 1_000_000_000, cpus, ..JitterRecord::default() }
    }

    /// The figures of the first CPU of a record that has no study.
    fn with_first<T>(record: &JitterRecord, look: impl Fn(&CpuFigures<'_>) -> T) -> T {
        let study = study(record).unwrap_or_else(|_| study_damaged(record, None));
        let jitter = Jitter { record, study: Cow::Owned(study) };
        look(&jitter.cpus(&CpuParts::of(&HostSnapshot::default(), &Allocation::default()))[0])
    }

    #[test]
    fn percentiles_need_enough_interruptions() {
        for (count, quantile, is_carried) in
            [(5, 0.5, false), (6, 0.5, true), (367, 0.99, false), (368, 0.99, true)]
        {
            let found = with_first(&jitter(vec![cpu(count)]), |figures| figures.percentile(quantile));
            assert_eq!(found, is_carried.then_some(1_000), "{count} {quantile}");
        }
    }

    #[test]
    fn a_damaged_histogram_loses_only_its_percentiles() {
        let damaged = JitterCpu { cpu: 1, histogram: "x".into(), ..cpu(5_000) };
        let record = jitter(vec![damaged, JitterCpu { cpu: 2, ..cpu(4_000) }]);
        let found = with_first(&record, |of| (of.percentile(0.5), of.study.length_ns_max, of.study.count));
        assert_eq!(found, (None, Some(1_000), 5_000));
        let study = study_damaged(&record, None);
        assert_eq!(percentile(&study.cpus[1].percentiles, 0.5), Some(1_000), "the sound CPU keeps its own");
        assert_eq!((study.all.count, study.all.worst_cpu, study.all.core_seconds), (9_000, Some(1), 2.0));
        assert!(study.all.percentiles.is_empty());
    }

    #[test]
    fn histograms_with_a_different_count_are_errors() {
        let record = jitter(vec![JitterCpu { interruption_count: 4_999, ..cpu(5_000) }]);
        let error = with_first(&record, |figures| figures.lengths.as_ref().err().cloned().unwrap());
        assert_eq!(error, "the record counts 4999 interruptions, but its histogram contains 5000");
    }

    #[test]
    fn a_study_of_another_record_is_ignored() {
        let record = jitter(vec![cpu(10)]);
        let own = study(&record).unwrap();
        assert!(is_study_of(&own, &record));
        assert!(!is_study_of(&own, &jitter(vec![cpu(11)])));
        assert!(!is_study_of(&own, &jitter(vec![cpu(10), cpu(10)])));
    }
}
