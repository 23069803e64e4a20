//! The summary: one row per field, one value per core.

use crate::{JitterCpu, JitterRecord, StudyError, lengths_of};
use hdrhistogram::Histogram;
use lowlat_host::CpuId;
use std::fmt::{self, Display, Formatter, Write as _};

/// Summary as sysjitter prints it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SysjitterSummary {
    /// One per measured core, in the order they were asked for.
    pub cores: Vec<SysjitterCore>,
    /// True if it has the rows of `--verbose`.
    pub is_verbose: bool,
}

/// One column of the summary. Lengths are 0 if there was no interruption.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SysjitterCore {
    pub core: CpuId,
    pub threshold_ns: u64,
    /// The counter's frequency, not the core's clock.
    pub cpu_mhz: u64,
    pub runtime_ns: u64,
    pub runtime_s: f64,
    pub interruption_count: u64,
    pub interruptions_per_s: f64,
    pub length_ns_min: u64,
    /// `int_median(ns)`: the sorted length at index n / 2.
    pub length_ns_median: u64,
    pub length_ns_mean: u64,
    /// `int_90(ns)`: the sorted length at index n * 0.9, rounded down; the others accordingly.
    pub length_ns_p90: u64,
    pub length_ns_p99: u64,
    pub length_ns_p99_9: u64,
    pub length_ns_p99_99: u64,
    pub length_ns_p99_999: u64,
    pub length_ns_max: u64,
    pub length_ns_total: u64,
    /// `int_total(%)`, to three digits: the share of the runtime.
    pub total_percent: f64,
    /// `frc_start`: the counter's first reading; 0 if unknown.
    pub start_ticks: u64,
    /// `frc_stop`: the counter's last reading.
    pub stop_ticks: u64,
}

/// One row: its name, and the place of its value in a core.
pub(super) struct Row {
    pub name: &'static str,
    pub place: fn(&mut SysjitterCore) -> Place<'_>,
}

/// The value of a core in a row.
pub(super) enum Place<'a> {
    Core(&'a mut CpuId),
    Whole(&'a mut u64),
    ThreeDigits(&'a mut f64),
    Hex(&'a mut u64),
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(core) => write!(f, "{core}"),
            Self::Whole(value) => write!(f, "{value}"),
            Self::ThreeDigits(value) => write!(f, "{value:.3}"),
            Self::Hex(value) => write!(f, "{value:x}"),
        }
    }
}

const fn row(name: &'static str, place: fn(&mut SysjitterCore) -> Place<'_>) -> Row {
    Row { name, place }
}

/// The rows in sysjitter's order. The last [`VERBOSE_ROWS`] only with `--verbose`.
pub(super) const ROWS: [Row; 20] = [
    row("core_i", |core| Place::Core(&mut core.core)),
    row("threshold(ns)", |core| Place::Whole(&mut core.threshold_ns)),
    row("cpu_mhz", |core| Place::Whole(&mut core.cpu_mhz)),
    row("runtime(ns)", |core| Place::Whole(&mut core.runtime_ns)),
    row("runtime(s)", |core| Place::ThreeDigits(&mut core.runtime_s)),
    row("int_n", |core| Place::Whole(&mut core.interruption_count)),
    row("int_n_per_sec", |core| Place::ThreeDigits(&mut core.interruptions_per_s)),
    row("int_min(ns)", |core| Place::Whole(&mut core.length_ns_min)),
    row("int_median(ns)", |core| Place::Whole(&mut core.length_ns_median)),
    row("int_mean(ns)", |core| Place::Whole(&mut core.length_ns_mean)),
    row("int_90(ns)", |core| Place::Whole(&mut core.length_ns_p90)),
    row("int_99(ns)", |core| Place::Whole(&mut core.length_ns_p99)),
    row("int_999(ns)", |core| Place::Whole(&mut core.length_ns_p99_9)),
    row("int_9999(ns)", |core| Place::Whole(&mut core.length_ns_p99_99)),
    row("int_99999(ns)", |core| Place::Whole(&mut core.length_ns_p99_999)),
    row("int_max(ns)", |core| Place::Whole(&mut core.length_ns_max)),
    row("int_total(ns)", |core| Place::Whole(&mut core.length_ns_total)),
    row("int_total(%)", |core| Place::ThreeDigits(&mut core.total_percent)),
    row("frc_start", |core| Place::Hex(&mut core.start_ticks)),
    row("frc_stop", |core| Place::Hex(&mut core.stop_ticks)),
];

/// Rows that only `--verbose` adds.
pub(super) const VERBOSE_ROWS: usize = 2;

impl Display for SysjitterSummary {
    /// Writes the text as sysjitter prints it.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let hidden = if self.is_verbose { 0 } else { VERBOSE_ROWS };
        for row in ROWS.iter().take(ROWS.len() - hidden) {
            write!(f, "{}:", row.name)?;
            for mut core in self.cores.iter().copied() {
                write!(f, " {}", (row.place)(&mut core))?;
            }
            f.write_char('\n')?;
        }
        Ok(())
    }
}

/// Returns the summary of a record as sysjitter prints it; `is_verbose` adds the counter's first and last
/// reading.
///
/// # Errors
/// [`StudyError`] if a CPU's histogram cannot be decoded or does not match its count.
pub fn summary(record: &JitterRecord, is_verbose: bool) -> Result<String, StudyError> {
    let cores = record.cpus.iter().map(|cpu| core_of(record, cpu)).collect::<Result<_, _>>()?;
    Ok(SysjitterSummary { cores, is_verbose }.to_string())
}

fn core_of(record: &JitterRecord, cpu: &JitterCpu) -> Result<SysjitterCore, StudyError> {
    let lengths = lengths_of(cpu)?;
    let count = cpu.interruption_count;
    let runtime_s = cpu.runtime_ns as f64 / 1e9;
    let per_runtime = |part: f64| if cpu.runtime_ns > 0 { part / runtime_s } else { 0.0 };
    let mut core = SysjitterCore {
        core: cpu.cpu,
        threshold_ns: record.threshold_ns,
        cpu_mhz: super::raw::mhz_of(record.counter_hz),
        runtime_ns: cpu.runtime_ns,
        runtime_s,
        interruption_count: count,
        interruptions_per_s: per_runtime(count as f64),
        length_ns_mean: cpu.interruption_ns_total.checked_div(count).unwrap_or(0),
        length_ns_total: cpu.interruption_ns_total,
        total_percent: per_runtime(cpu.interruption_ns_total as f64 / 1e7),
        start_ticks: cpu.start_ticks,
        stop_ticks: cpu.stop_ticks,
        ..SysjitterCore::default()
    };
    if let Some(lengths) = lengths {
        put_lengths(&mut core, cpu, &lengths);
    }
    Ok(core)
}

fn put_lengths(core: &mut SysjitterCore, cpu: &JitterCpu, lengths: &Histogram<u64>) {
    let max = cpu.interruption_ns_max;
    core.length_ns_max = max;
    // Old records of lowlat have the shortest length only in the histogram.
    let min = if cpu.interruption_ns_min > 0 { cpu.interruption_ns_min } else { lengths.min_nz() };
    core.length_ns_min = min.min(max);
    let at = |part: u64, of: u64| {
        let rank = u128::from(cpu.interruption_count) * u128::from(part) / u128::from(of);
        length_at(lengths, rank).clamp(core.length_ns_min, max.max(core.length_ns_min))
    };
    core.length_ns_median = at(1, 2);
    core.length_ns_p90 = at(9, 10);
    core.length_ns_p99 = at(99, 100);
    core.length_ns_p99_9 = at(999, 1_000);
    core.length_ns_p99_99 = at(9_999, 10_000);
    core.length_ns_p99_999 = at(99_999, 100_000);
}

/// Upper edge of the cell with the length at this index of the sorted lengths.
fn length_at(lengths: &Histogram<u64>, rank: u128) -> u64 {
    let mut below = 0;
    for cell in lengths.iter_recorded() {
        below += u128::from(cell.count_at_value());
        if below > rank {
            return cell.value_iterated_to();
        }
    }
    lengths.max()
}
