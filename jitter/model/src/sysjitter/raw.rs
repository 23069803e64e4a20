//! The raw file of one core: a header, and one row per interruption.

use lowlat_host::CpuId;

/// The header of a raw file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawHead {
    /// The counter's frequency. The file contains whole MHz, which reading returns.
    pub counter_hz: u64,
    pub threshold_ns: u64,
    /// `n_interruptions`: the number of rows.
    pub interruption_count: u64,
    /// `total_interruption`, in ticks of the counter. Missing in a file without interruptions.
    pub interruption_ticks: u64,
    /// `total_runtime`, in ticks of the counter.
    pub runtime_ticks: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawRow {
    /// Its end, since the start of the run: sysjitter takes time stamps after the gap.
    pub end_ns: u64,
    /// Time since the end of the previous one, in whole microseconds; 0 in the first row.
    pub delta_us: u64,
    /// Its length, in ticks of the counter.
    pub ticks: u64,
    pub length_ns: u64,
}

impl RawRow {
    /// A row; `previous_end_ns` is the [`RawRow::end_ns`] of the previous row.
    pub fn timed(end_ns: u64, previous_end_ns: Option<u64>, ticks: u64, length_ns: u64) -> Self {
        let delta_us = previous_end_ns.map_or(0, |previous| end_ns.saturating_sub(previous) / 1_000);
        Self { end_ns, delta_us, ticks, length_ns }
    }
}

/// Name of the raw file of a CPU: `PREFIX.05` if the highest measured CPU has two digits.
pub fn raw_file_name(prefix: &str, cpu: CpuId, cpu_max: CpuId) -> String {
    let width = cpu_max.to_string().len();
    format!("{prefix}.{cpu:0width$}")
}

/// Rounds to the nearest whole MHz.
pub(super) fn mhz_of(counter_hz: u64) -> u64 {
    counter_hz.saturating_add(500_000) / 1_000_000
}

/// The header of a raw file with its line ends. It contains the totals, so it can be written only after the
/// run.
pub fn raw_header(head: &RawHead) -> String {
    let RawHead { interruption_count: count, interruption_ticks, runtime_ticks, .. } = *head;
    let start = format!(
        "# cpu_mhz: {}\n# threshold: {}ns\n# n_interruptions: {count}\n",
        mhz_of(head.counter_hz),
        head.threshold_ns
    );
    if count == 0 {
        return start;
    }
    let percent =
        if runtime_ticks > 0 { 100.0 * interruption_ticks as f64 / runtime_ticks as f64 } else { 0.0 };
    format!(
        "{start}# interruption: {percent:.6}%\n# total_interruption: {interruption_ticks} cycles\n\
         # total_runtime: {runtime_ticks} cycles\n# total_interruption: {:.9} seconds\n\
         # total_runtime: {:.9} seconds\n#\n\
         #      Timestamp      delta   <== interruption =>\n#         (nsec)     (usec)   (cycles)     (nsec)\n",
        head.seconds(interruption_ticks),
        head.seconds(runtime_ticks)
    )
}

impl RawHead {
    /// In single precision, as sysjitter prints them; the lines in cycles are exact.
    #[allow(clippy::cast_possible_truncation)]
    fn seconds(&self, ticks: u64) -> f32 {
        if self.counter_hz == 0 { 0.0 } else { (ticks as f64 / self.counter_hz as f64) as f32 }
    }
}

/// One row with its line end.
pub fn raw_row(row: &RawRow) -> String {
    let RawRow { end_ns, delta_us, ticks, length_ns } = row;
    format!("{end_ns:16} {delta_us:10} {ticks:10} {length_ns:10}\n")
}
