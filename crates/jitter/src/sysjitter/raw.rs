//! The raw file of one core: a header, and one row per interruption.

use super::SysjitterError;
use lowlat_host::CpuId;
use std::iter::Peekable;

/// The header of a raw file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawHead {
    /// The counter's frequency. The file contains whole MHz, which reading returns.
    pub counter_hz: u64,
    /// `threshold`.
    pub threshold_ns: u64,
    /// `n_interruptions`: number of rows.
    pub interruption_count: u64,
    /// `total_interruption`, in ticks of the counter. Missing in a file without interruptions.
    pub interruption_ticks: u64,
    /// `total_runtime`, in ticks of the counter.
    pub runtime_ticks: u64,
    /// Order of the rows.
    pub order: RawOrder,
}

/// Order of the rows of a raw file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RawOrder {
    /// By time.
    #[default]
    Time,
    /// By length, shortest first (`--sort`); the rows lack the time since the previous one.
    Length,
}

/// One interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawRow {
    /// Its end, since the start of the run: sysjitter takes time stamps after the gap.
    pub end_ns: u64,
    /// Time since the end of the previous one, in whole microseconds; 0 in the first row. `None` in a file in
    /// order of length.
    pub delta_us: Option<u64>,
    /// Its length, in ticks of the counter.
    pub ticks: u64,
    /// Its length.
    pub length_ns: u64,
}

impl RawRow {
    /// A row of a file in time order; `previous_end_ns` is the [`RawRow::end_ns`] of the previous row.
    pub fn timed(end_ns: u64, previous_end_ns: Option<u64>, ticks: u64, length_ns: u64) -> Self {
        let delta_us = previous_end_ns.map_or(0, |previous| end_ns.saturating_sub(previous) / 1_000);
        Self { end_ns, delta_us: Some(delta_us), ticks, length_ns }
    }
}

/// A raw file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawFile {
    /// Its head.
    pub head: RawHead,
    /// Its rows.
    pub rows: Vec<RawRow>,
}

/// Name of the raw file of a CPU: `PREFIX.05` if the highest measured CPU has two digits.
pub fn raw_file_name(prefix: &str, cpu: CpuId, cpu_max: CpuId) -> String {
    let width = cpu_max.to_string().len();
    format!("{prefix}.{cpu:0width$}")
}

/// Whole MHz, the nearest.
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
    let titles = match head.order {
        RawOrder::Time => {
            "#      Timestamp      delta   <== interruption =>\n#         (nsec)     (usec)   (cycles)     (nsec)\n"
        }
        RawOrder::Length => {
            "#      Timestamp   <== interruption =>\n#         (nsec)   (cycles)     (nsec)\n"
        }
    };
    format!(
        "{start}# interruption: {percent:.6}%\n# total_interruption: {interruption_ticks} cycles\n\
         # total_runtime: {runtime_ticks} cycles\n# total_interruption: {:.9} seconds\n\
         # total_runtime: {:.9} seconds\n#\n{titles}",
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
    match delta_us {
        Some(delta_us) => format!("{end_ns:16} {delta_us:10} {ticks:10} {length_ns:10}\n"),
        None => format!("{end_ns:16} {ticks:10} {length_ns:10}\n"),
    }
}

/// Reads a raw file that sysjitter or lowlat wrote.
///
/// # Errors
/// If a line is not as expected, or the number of rows differs from the header.
pub fn parse_raw(text: &str) -> Result<RawFile, SysjitterError> {
    let mut lines = Lines { lines: text.lines().enumerate().peekable(), at: 0 };
    let mhz: u64 = lines.number("# cpu_mhz: ", "")?;
    let mut head = RawHead {
        counter_hz: mhz.saturating_mul(1_000_000),
        threshold_ns: lines.number("# threshold: ", "ns")?,
        interruption_count: lines.number("# n_interruptions: ", "")?,
        ..RawHead::default()
    };
    if head.interruption_count > 0 {
        let _: f64 = lines.number("# interruption: ", "%")?;
        head.interruption_ticks = lines.number("# total_interruption: ", " cycles")?;
        head.runtime_ticks = lines.number("# total_runtime: ", " cycles")?;
        let _: f64 = lines.number("# total_interruption: ", " seconds")?;
        let _: f64 = lines.number("# total_runtime: ", " seconds")?;
        head.order = lines.titles()?;
    }
    let rows = lines.rows(&head)?;
    Ok(RawFile { head, rows })
}

/// The lines of a raw file.
struct Lines<'a> {
    lines: Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
    /// Lines consumed.
    at: usize,
}

impl<'a> Lines<'a> {
    /// The next line with its number, or an error with what was expected.
    fn next(&mut self, expected: &str) -> Result<(usize, &'a str), SysjitterError> {
        let Some((index, line)) = self.lines.next() else {
            return Err(SysjitterError::at_end(self.at + 1, expected));
        };
        self.at = index + 1;
        Ok((self.at, line))
    }

    /// The number between two texts.
    fn number<T: std::str::FromStr>(&mut self, before: &str, after: &str) -> Result<T, SysjitterError> {
        let expected = format!("\"{before}NUMBER{after}\"");
        let (at, line) = self.next(&expected)?;
        let number = line.strip_prefix(before).and_then(|rest| rest.trim_end().strip_suffix(after));
        number.and_then(|text| text.parse().ok()).ok_or_else(|| SysjitterError::at(at, line, expected))
    }

    /// The titles of the columns, which show the order.
    fn titles(&mut self) -> Result<RawOrder, SysjitterError> {
        let mut words = Vec::new();
        for expected in ["a line with only \"#\"", "the titles of the columns", "the units of the columns"] {
            let (at, line) = self.next(expected)?;
            if !line.starts_with('#') {
                return Err(SysjitterError::at(at, line, expected));
            }
            words.push((at, line, line.split_ascii_whitespace().collect::<Vec<_>>()));
        }
        match words.as_slice() {
            [_, _, (_, _, units)] if units == &["#", "(nsec)", "(usec)", "(cycles)", "(nsec)"] => {
                Ok(RawOrder::Time)
            }
            [_, _, (_, _, units)] if units == &["#", "(nsec)", "(cycles)", "(nsec)"] => Ok(RawOrder::Length),
            [_, _, (at, line, _)] => Err(SysjitterError::at(
                *at,
                line,
                "\"# (nsec) (usec) (cycles) (nsec)\" or the same without (usec)",
            )),
            _ => Err(SysjitterError::at_end(self.at + 1, "the titles of the columns")),
        }
    }

    fn rows(&mut self, head: &RawHead) -> Result<Vec<RawRow>, SysjitterError> {
        let expected = match head.order {
            RawOrder::Time => "four whole numbers: time stamp, delta, cycles, nanoseconds",
            RawOrder::Length => "three whole numbers: time stamp, cycles, nanoseconds",
        };
        let mut rows = Vec::new();
        while self.lines.peek().is_some() {
            let (at, line) = self.next(expected)?;
            if line.trim().is_empty() {
                continue;
            }
            let row = row_of(line, head.order).ok_or_else(|| SysjitterError::at(at, line, expected))?;
            rows.push(row);
        }
        if rows.len() as u64 != head.interruption_count {
            let expected = format!("{} rows, as in the header, not {}", head.interruption_count, rows.len());
            return Err(SysjitterError::at_end(self.at + 1, expected));
        }
        Ok(rows)
    }
}

fn row_of(line: &str, order: RawOrder) -> Option<RawRow> {
    let mut numbers = line.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let end_ns = next()?;
    let delta_us = match order {
        RawOrder::Time => Some(next()?),
        RawOrder::Length => None,
    };
    let row = RawRow { end_ns, delta_us, ticks: next()?, length_ns: next()? };
    numbers.next().is_none().then_some(row)
}
