//! Figures that tables and charts show, made from the raw record: nothing here that the sample count can't carry.

use hdrhistogram::Histogram;
use lowlat_model::histogram;
use lowlat_model::jitter::{Interruption, JitterCpu, JitterRecord};
use lowlat_model::statistics::{RateInterval, carries_quantile};
use lowlat_model::{Allocation, CpuId, Topology};

/// What a CPU is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuPart {
    /// Chosen for trading threads.
    Isolated,
    /// Chosen for the kernel, services and interrupts.
    Housekeeping,
    /// In neither set.
    Neither,
    /// Present but switched off.
    Offline,
}

impl CpuPart {
    /// What the CPU is for on this host.
    pub fn of(cpu: CpuId, topology: Option<&Topology>, allocation: &Allocation) -> Self {
        if topology.is_some_and(|topology| topology.offline.contains(cpu)) {
            Self::Offline
        } else if allocation.isolated.contains(cpu) {
            Self::Isolated
        } else if allocation.housekeeping.contains(cpu) {
            Self::Housekeeping
        } else {
            Self::Neither
        }
    }

    /// The word for tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::Housekeeping => "housekeeping",
            Self::Neither => "other",
            Self::Offline => "offline",
        }
    }

    /// The name of its colour.
    pub fn class(self) -> &'static str {
        match self {
            Self::Isolated => "iso",
            Self::Housekeeping => "hk",
            Self::Neither => "other",
            Self::Offline => "off",
        }
    }
}

/// One CPU's jitter in figures.
#[derive(Debug)]
pub struct CpuFigures<'a> {
    /// What was recorded.
    pub record: &'a JitterCpu,
    /// What the CPU is for.
    pub part: CpuPart,
    /// Interruptions a second; none when it did not run.
    pub rate: Option<RateInterval>,
    /// Share of the time that interruptions took.
    pub lost_percent: Option<f64>,
    /// The lengths, or why they can't be told.
    pub lengths: Result<Histogram<u64>, String>,
}

/// Below this many interruptions a rate is shown with its interval.
pub const ROUGH_BELOW: u64 = 100;

impl<'a> CpuFigures<'a> {
    /// The figures of one CPU.
    pub fn of(record: &'a JitterCpu, allocation: &Allocation) -> Self {
        let runs = record.runtime_ns > 0;
        Self {
            record,
            part: CpuPart::of(record.cpu, None, allocation),
            rate: RateInterval::of(record.interruption_count, record.runtime_ns as f64 / 1e9),
            lost_percent: runs
                .then(|| record.interruption_ns_total as f64 * 100.0 / record.runtime_ns as f64),
            lengths: lengths_of(record),
        }
    }

    /// A percentile of the lengths, when the count carries it.
    pub fn percentile(&self, quantile: f64) -> Option<u64> {
        let lengths = self.lengths.as_ref().ok()?;
        carries_quantile(lengths.len(), quantile)
            .then(|| lengths.value_at_quantile(quantile).min(self.record.interruption_ns_max))
    }

    /// The longest interruption; none when there was none.
    pub fn longest(&self) -> Option<u64> {
        (self.record.interruption_count > 0).then_some(self.record.interruption_ns_max)
    }
}

/// The lengths of one CPU. A histogram that does not hold what the record counts is told as damaged.
fn lengths_of(record: &JitterCpu) -> Result<Histogram<u64>, String> {
    if record.histogram.is_empty() {
        return Err("the record carries no histogram".to_owned());
    }
    let lengths = histogram::decode(&record.histogram).map_err(|error| error.to_string())?;
    if lengths.len() == record.interruption_count {
        Ok(lengths)
    } else {
        let (counted, held) = (record.interruption_count, lengths.len());
        Err(format!("the record counts {counted} interruptions but its histogram holds {held}"))
    }
}

/// The figures of every CPU, in the record's order.
pub fn of_record<'a>(record: &'a JitterRecord, allocation: &Allocation) -> Vec<CpuFigures<'a>> {
    record.cpus.iter().map(|cpu| CpuFigures::of(cpu, allocation)).collect()
}

/// The longest interruption of a run, on the CPUs meant for trading when any of them was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Longest {
    /// How long it took; none when no interruption was seen.
    pub length_ns: Option<u64>,
    /// Where.
    pub cpu: CpuId,
    /// Whether only CPUs chosen for isolation were looked at.
    pub is_isolated: bool,
}

impl Longest {
    /// Looks through a record; none when no CPU was measured.
    pub fn of(record: &JitterRecord, allocation: &Allocation) -> Option<Self> {
        let is_isolated = record.cpus.iter().any(|cpu| allocation.isolated.contains(cpu.cpu));
        let worst = record
            .cpus
            .iter()
            .filter(|cpu| !is_isolated || allocation.isolated.contains(cpu.cpu))
            .max_by_key(|cpu| (cpu.interruption_ns_max, std::cmp::Reverse(cpu.cpu)))?;
        let length_ns = (worst.interruption_count > 0).then_some(worst.interruption_ns_max);
        Some(Self { length_ns, cpu: worst.cpu, is_isolated })
    }
}

/// The longest interruptions over several CPUs, longest first.
pub fn worst_of<'a>(
    cpus: impl Iterator<Item = &'a JitterCpu>,
    count_max: usize,
) -> Vec<(CpuId, Interruption)> {
    let mut all: Vec<(CpuId, Interruption)> =
        cpus.flat_map(|cpu| cpu.worst.iter().map(|worst| (cpu.cpu, *worst))).collect();
    all.sort_by_key(|(cpu, worst)| (std::cmp::Reverse(worst.length_ns), worst.at_ns, *cpu));
    all.truncate(count_max);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn percentiles_stand_only_where_the_count_carries_them() {
        for (count, quantile, is_carried) in
            [(5, 0.5, false), (6, 0.5, true), (367, 0.99, false), (368, 0.99, true)]
        {
            let record = cpu(count);
            let figures = CpuFigures::of(&record, &Allocation::default());
            assert_eq!(figures.percentile(quantile), is_carried.then_some(1_000), "{count} {quantile}");
        }
    }

    #[test]
    fn a_damaged_histogram_gives_no_percentile() {
        let record = JitterCpu { histogram: "x".into(), ..cpu(5_000) };
        let figures = CpuFigures::of(&record, &Allocation::default());
        assert_eq!((figures.percentile(0.5), figures.longest()), (None, Some(1_000)));
        let record = JitterCpu { interruption_count: 4_999, ..cpu(5_000) };
        let figures = CpuFigures::of(&record, &Allocation::default());
        let error = figures.lengths.unwrap_err();
        assert_eq!(error, "the record counts 4999 interruptions but its histogram holds 5000");
    }
}
