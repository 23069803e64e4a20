//! Reads what sysjitter and lowlat wrote, for tests and the comparison with sysjitter.

use super::{
    RawHead, RawRow, SysjitterCore, SysjitterSummary,
    summary::{Place, ROWS, VERBOSE_ROWS},
};
use lowlat_host::CPU_ID_MAX;
use std::iter::Peekable;

/// Maximum number of characters of a raw line in an error.
const SHOWN_CHARS_MAX: usize = 120;

/// A line that is not in sysjitter's format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: found \"{raw}\", expected {expected}; check that the file is complete and was written by \
     sysjitter or lowlat"
)]
pub struct SysjitterError {
    /// Its number, counted from 1; one beyond the last if the text ends too early.
    pub line: usize,
    /// The line, truncated if long; "end of file" if there is none.
    pub raw: String,
    pub expected: String,
}

impl SysjitterError {
    fn at(line: usize, raw: &str, expected: impl Into<String>) -> Self {
        let shown: String = raw.chars().take(SHOWN_CHARS_MAX).collect();
        let cut = if shown.len() < raw.len() { "..." } else { "" };
        Self { line, raw: format!("{shown}{cut}"), expected: expected.into() }
    }

    fn at_end(line: usize, expected: impl Into<String>) -> Self {
        Self::at(line, "end of file", expected)
    }
}

/// Maximum number of columns; more than a CPU list can name.
const CORES_MAX: usize = CPU_ID_MAX as usize + 1;

/// Reads a value; `None` if it could not be parsed.
fn read(place: Place<'_>, text: &str) -> Option<()> {
    match place {
        Place::Core(core) => *core = text.parse().ok()?,
        Place::Whole(value) => *value = text.parse().ok()?,
        Place::ThreeDigits(value) => {
            *value = text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)?;
        }
        Place::Hex(value) => *value = u64::from_str_radix(text, 16).ok()?,
    }
    Some(())
}

/// Parses a summary as printed by sysjitter or lowlat or laid out by `column -t`.
///
/// # Errors
/// If a line is not a row of the summary, a row is repeated or missing, or a value cannot be parsed.
pub fn parse_summary(text: &str) -> Result<SysjitterSummary, SysjitterError> {
    let mut cores: Vec<SysjitterCore> = Vec::new();
    let mut seen = [false; ROWS.len()];
    let mut line_count = 0;
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        line_count = at;
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |expected: String| SysjitterError::at(at, line, expected);
        let (name, values) = line.split_once(':').ok_or_else(|| wrong("\"name: value ...\"".into()))?;
        let index = ROWS.iter().position(|row| row.name == name.trim());
        let Some((index, row)) = index.and_then(|index| Some((index, ROWS.get(index)?))) else {
            return Err(wrong(format!("one of the rows {}", names(|_| true))));
        };
        if index != 0 && seen.first() != Some(&true) {
            return Err(wrong("the row core_i before all others".into()));
        }
        match seen.get_mut(index) {
            Some(seen) if !*seen => *seen = true,
            _ => return Err(wrong(format!("the row {} only once", row.name))),
        }
        let values: Vec<&str> = values.split_ascii_whitespace().collect();
        if index == 0 {
            if values.len() > CORES_MAX {
                return Err(wrong(format!("at most {CORES_MAX} cores")));
            }
            cores = vec![SysjitterCore::default(); values.len()];
        }
        if values.len() != cores.len() {
            return Err(wrong(format!("{} values, one per core of the row core_i", cores.len())));
        }
        for (core, value) in cores.iter_mut().zip(values) {
            if read((row.place)(core), value).is_none() {
                return Err(wrong(format!("numbers (\"{value}\" is invalid in the row {})", row.name)));
            }
        }
    }
    finish(cores, &seen, line_count + 1)
}

/// Checks that all rows were present.
fn finish(
    cores: Vec<SysjitterCore>,
    seen: &[bool; ROWS.len()],
    end: usize,
) -> Result<SysjitterSummary, SysjitterError> {
    let (plain, verbose) = seen.split_at(ROWS.len() - VERBOSE_ROWS);
    let is_verbose = verbose.contains(&true);
    if plain.contains(&false) || (is_verbose && verbose.contains(&false)) {
        let needed = if is_verbose { ROWS.len() } else { plain.len() };
        let missing = names(|index| index < needed && seen.get(index) == Some(&false));
        return Err(SysjitterError::at_end(end, format!("the rows {missing}")));
    }
    Ok(SysjitterSummary { cores, is_verbose })
}

fn names(is_wanted: impl Fn(usize) -> bool) -> String {
    let wanted = ROWS.iter().enumerate().filter(|(index, _)| is_wanted(*index));
    wanted.map(|(_, row)| row.name).collect::<Vec<_>>().join(", ")
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawFile {
    pub head: RawHead,
    pub rows: Vec<RawRow>,
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
        lines.titles()?;
    }
    let rows = lines.rows(&head)?;
    Ok(RawFile { head, rows })
}

/// The lines of a raw file.
struct Lines<'a> {
    lines: Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
    /// Number of lines consumed so far.
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

    /// The titles of the columns.
    fn titles(&mut self) -> Result<(), SysjitterError> {
        let mut words = Vec::new();
        for expected in ["a line with only \"#\"", "the titles of the columns", "the units of the columns"] {
            let (at, line) = self.next(expected)?;
            if !line.starts_with('#') {
                return Err(SysjitterError::at(at, line, expected));
            }
            words.push((at, line, line.split_ascii_whitespace().collect::<Vec<_>>()));
        }
        match words.as_slice() {
            [_, _, (_, _, units)] if units == &["#", "(nsec)", "(usec)", "(cycles)", "(nsec)"] => Ok(()),
            [_, _, (at, line, _)] => {
                Err(SysjitterError::at(*at, line, "\"# (nsec) (usec) (cycles) (nsec)\""))
            }
            _ => Err(SysjitterError::at_end(self.at + 1, "the titles of the columns")),
        }
    }

    fn rows(&mut self, head: &RawHead) -> Result<Vec<RawRow>, SysjitterError> {
        let expected = "four whole numbers: time stamp, delta, cycles, nanoseconds";
        let mut rows = Vec::new();
        while self.lines.peek().is_some() {
            let (at, line) = self.next(expected)?;
            if line.trim().is_empty() {
                continue;
            }
            let row = row_of(line).ok_or_else(|| SysjitterError::at(at, line, expected))?;
            rows.push(row);
        }
        if rows.len() as u64 != head.interruption_count {
            let expected = format!("{} rows, as in the header, not {}", head.interruption_count, rows.len());
            return Err(SysjitterError::at_end(self.at + 1, expected));
        }
        Ok(rows)
    }
}

fn row_of(line: &str) -> Option<RawRow> {
    let mut numbers = line.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let row = RawRow { end_ns: next()?, delta_us: next()?, ticks: next()?, length_ns: next()? };
    numbers.next().is_none().then_some(row)
}
