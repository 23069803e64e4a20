//! One side of a comparison: its runs, reduced to the compared CPUs, and their sums.

use super::{Figures, dispersion};
use lowlat_host::{CPU_ID_MAX, CpuId, CpuSet, histogram, statistics::RateInterval};
use lowlat_jitter::{JitterCpu, JitterRecord, JitterStudy, StudyError, study};
use std::collections::BTreeMap;

pub(super) struct Side {
    pub(super) runs: Vec<JitterRecord>,
    pub(super) studies: Vec<JitterStudy>,
    /// Interruptions of each CPU of each run at the common threshold.
    counts: Vec<BTreeMap<CpuId, u64>>,
    threshold_ns: u64,
}

impl Side {
    /// The runs reduced to `cpus`; all of their CPUs if that is empty.
    pub(super) fn of(runs: &[&JitterRecord], cpus: &CpuSet, threshold_ns: u64) -> Result<Self, StudyError> {
        let runs: Vec<JitterRecord> = runs.iter().map(|run| cut(run, cpus)).collect();
        let studies = runs.iter().map(study).collect::<Result<Vec<_>, _>>()?;
        let counts = runs.iter().map(|run| counts_of(run, threshold_ns)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { runs, studies, counts, threshold_ns })
    }

    /// CPUs that occur in any run.
    pub(super) fn cpus(&self) -> CpuSet {
        self.runs.iter().flat_map(|run| &run.cpus).map(|cpu| cpu.cpu).collect()
    }

    /// The records of one CPU, or of all.
    fn of_cpu(&self, cpu: Option<CpuId>) -> impl Iterator<Item = &JitterCpu> {
        let all = self.runs.iter().flat_map(|run| &run.cpus);
        all.filter(move |found| cpu.is_none_or(|wanted| found.cpu == wanted))
    }

    /// Figures of one CPU, or of all.
    pub(super) fn figures(&self, cpu: Option<CpuId>) -> Figures {
        let sum =
            |field: fn(&JitterCpu) -> u64| -> u128 { self.of_cpu(cpu).map(|c| u128::from(field(c))).sum() };
        let runtime_ns = sum(|c| c.runtime_ns);
        let core_seconds = runtime_ns as f64 / 1e9;
        let is_meant = |at: &CpuId| cpu.is_none_or(|wanted| *at == wanted);
        let counts = self.counts.iter().flatten().filter(|(at, _)| is_meant(at));
        let count: u128 = counts.map(|(_, count)| u128::from(*count)).sum();
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let is_own_threshold = self.runs.iter().all(|run| run.threshold_ns == self.threshold_ns);
        let longest = self.of_cpu(cpu).map(|c| c.interruption_ns_max).max();
        Figures {
            count,
            core_seconds,
            rate: RateInterval::of(count, core_seconds),
            lost_share: (is_own_threshold && runtime_ns > 0)
                .then(|| (sum(|c| c.interruption_ns_total) as f64 / runtime_ns as f64).min(1.0)),
            length_ns_max: longest.filter(|_| count > 0),
        }
    }

    /// Dispersion of one CPU's interruptions, or of all together; `None` if no run has the common threshold.
    /// Interruptions below it are in the series of a run with a lower one, and many regular short ones hide bursts of
    /// long ones.
    pub(super) fn dispersion(&self, cpu: Option<CpuId>) -> Option<f64> {
        let runs = || self.runs.iter().filter(|run| run.threshold_ns == self.threshold_ns);
        match cpu {
            None => dispersion::of_all(runs()),
            Some(wanted) => {
                dispersion::of_cpu(runs().flat_map(|run| &run.cpus).filter(|of| of.cpu == wanted))
            }
        }
    }

    /// Sampled time over all CPUs.
    pub(super) fn core_seconds(&self) -> f64 {
        self.of_cpu(None).map(|cpu| cpu.runtime_ns as f64 / 1e9).sum()
    }
}

/// The CPUs of a record; numbers beyond the limit of a set are left out.
pub(super) fn cpus_of(run: &JitterRecord) -> CpuSet {
    run.cpus.iter().map(|cpu| cpu.cpu).filter(|cpu| *cpu <= CPU_ID_MAX).collect()
}

/// The CPUs that every run measured.
pub(super) fn common_cpus<'r>(runs: impl Iterator<Item = &'r JitterRecord>) -> CpuSet {
    runs.map(cpus_of).reduce(|common, cpus| common.intersection(&cpus)).unwrap_or_default()
}

/// True if a CPU is one of the compared ones; every CPU is if `cpus` is empty.
pub(super) fn is_compared(cpu: CpuId, cpus: &CpuSet) -> bool {
    cpu <= CPU_ID_MAX && (cpus.is_empty() || cpus.contains(cpu))
}

/// The record with the compared CPUs; a CPU that occurs in it twice counts once.
fn cut(run: &JitterRecord, cpus: &CpuSet) -> JitterRecord {
    let mut seen = CpuSet::new();
    let mut is_kept = |cpu: CpuId| is_compared(cpu, cpus) && seen.insert(cpu);
    let mut cut = run.clone();
    cut.cpus.retain(|cpu| is_kept(cpu.cpu));
    if let Some(causes) = &mut cut.causes {
        causes.cpus.retain(|cpu| seen.contains(cpu.cpu));
    }
    cut
}

/// Interruptions of each CPU that were at least this long. A threshold above the record's own is looked up in
/// the histogram, whose cells have three significant digits.
fn counts_of(run: &JitterRecord, threshold_ns: u64) -> Result<BTreeMap<CpuId, u64>, StudyError> {
    let count_of = |cpu: &JitterCpu| {
        if run.threshold_ns == threshold_ns || cpu.interruption_count == 0 {
            return Ok((cpu.cpu, cpu.interruption_count));
        }
        let lengths = histogram::decode(&cpu.histogram)
            .map_err(|source| StudyError::Histogram { cpu: cpu.cpu, source })?;
        Ok((cpu.cpu, lengths.count_between(threshold_ns, u64::MAX)))
    };
    run.cpus.iter().map(count_of).collect()
}
