//! Recorded ticks, from a CSV file, from ITCH 5.0 in a capture or a plain file, or from a recording of the pipeline.
//!
//! ```text
//! time_ns,instrument,bid,ask,last,bid_size,ask_size
//! 1700000000000000000,600000,10.01,10.02,10.01,300,500
//! ```
//!
//! The header is required; columns may be in any order. The time is one of `time_ns`, `time_us`, `time_ms`, `time_s`
//! (or `time`, which is `time_ns`), counted from any moment; lines are sorted by it. `instrument` is any word:
//! instruments are numbered as they first appear. Prices have up to 4 decimals. `last` (else the middle), `bid_size`
//! and `ask_size` (else 0) may be left out. A table of `lowlat journal export` is read too: its quotes.

mod columns;
mod itch;
mod recording;
#[cfg(test)]
mod tests;

use super::INSTRUMENTS_MAX;
use columns::{Columns, TickColumn, parse_decimal};
use flate2::read::MultiGzDecoder;
pub(crate) use itch::{not_itch, symbols_of};
use lowlat_feed::quotes::FeedQuote;
use lowlat_node::Refusal;
use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

/// Maximum number of ticks of a file: all of them are in memory before the first is published.
pub const TICKS_MAX: usize = 20_000_000;
/// Largest file that is read as a whole: a day of a large exchange has less.
const BYTES_MAX: u64 = 16 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// Time, ns after the file's first tick.
    pub after_ns: u64,
    pub quote: FeedQuote,
}

/// A file of ticks, in memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ticks {
    list: Vec<Tick>,
    names: Vec<String>,
    /// Recorded time of the first tick, ns.
    first_ns: u64,
    doubts: Vec<String>,
    findings: Vec<String>,
}

impl Ticks {
    /// Reads a recording's folder, or a file of CSV or ITCH, as its first bytes show, compressed with gzip or not.
    /// `symbols` are the instruments of ITCH; empty: the first ones of the file. `channel` is one of a capture.
    pub fn read(path: &Path, symbols: &[String], channel: Option<&str>) -> Result<Self, Refusal> {
        if path.is_dir() {
            return Self::from_recording(path, false);
        }
        let wrong = |error| unreadable(path, &error);
        let mut file = open(path).map_err(wrong)?;
        if lowlat_feed::itch::recorded(file.fill_buf().map_err(wrong)?) {
            return Self::from_itch(path, read_all(file).map_err(wrong)?, symbols, channel);
        }
        Self::from_csv(path, file)
    }

    /// Doubts about the ticks, one sentence each.
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// Gaps in a feed's sequence, one sentence each: a run with any has findings.
    pub fn findings(&self) -> &[String] {
        &self.findings
    }

    /// Parses a file's contents; `path` names the file in errors.
    pub fn from_csv(path: &Path, csv: impl Read) -> Result<Self, Refusal> {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(csv);
        let wrong = |error: csv::Error| wrong_csv(path, error);
        let columns = Columns::of(path, reader.headers().map_err(wrong)?)?;
        let mut made = TickCollector::default();
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).map_err(wrong)? {
            if !columns.is_quote(&record) {
                continue;
            }
            let line = record.position().map_or(0, csv::Position::line);
            made.take(&columns, &record).map_err(|fault| fault.at(path, line))?;
        }
        if made.ticks.is_empty() {
            let fault = Fault::new("no ticks", "a line for each tick behind the header", "check the file");
            return Err(fault.at(path, 2));
        }
        Ok(Self { list: made.ticks, names: made.names, ..Self::default() })
    }

    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The ticks, in the order of time.
    pub fn as_slice(&self) -> &[Tick] {
        &self.list
    }

    /// The instruments' names by their number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// When the first tick of a recording was written, in the recording's clock, ns.
    pub fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// Returns the time until the last tick is due at a speed, in seconds.
    pub fn duration_s(&self, speed: Speed) -> f64 {
        self.list.last().map_or(0.0, |last| speed.due_ns(last.after_ns) as f64 / 1e9)
    }
}

/// Opens a file, and decompresses it if it is packed with gzip.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    let is_packed = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(if is_packed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) })
}

/// The bytes of a file, and a sentence if they end early: compressed ones may be cut off or damaged.
pub(crate) fn read_all(file: impl Read) -> io::Result<(Vec<u8>, Option<String>)> {
    let mut bytes = Vec::new();
    match file.take(BYTES_MAX + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > BYTES_MAX => {
            Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 16 GiB"))
        }
        Err(error) if bytes.is_empty() || error.raw_os_error().is_some() => Err(error),
        end => Ok((bytes, end.err().map(|error| format!("the compressed file is damaged ({error})")))),
    }
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Refusal {
    // An error without a system code comes from gzip.
    let said = error.raw_os_error();
    let hint = said.map_or("check the file with gzip -t", |_| "check the path and its permissions");
    Refusal::new(format!("cannot read {}: {error}\nhint: {hint}", path.display()))
}

/// Time of the next tick, ns after the first; never before the previous one, even if the file's clock goes back.
fn after_ns(ticks: &[Tick], first_ns: &mut Option<u64>, time_ns: u64) -> u64 {
    let after_ns = time_ns.saturating_sub(*first_ns.get_or_insert(time_ns));
    after_ns.max(ticks.last().map_or(0, |last| last.after_ns))
}

/// A sentence for each count above 0, and one if the rest of the input was left out.
fn doubts(path: &Path, counted: &[(u64, &str)], is_full: bool) -> Vec<String> {
    let counted = counted.iter().filter(|(count, _)| *count > 0);
    let rest = is_full.then(|| format!("quotes after the first {TICKS_MAX} are left out"));
    let said = counted.map(|(count, said)| format!("{count} {said}")).chain(rest);
    said.map(|said| format!("{}: {said}.", path.display())).collect()
}

/// Speed of a replay, as a multiple of the recorded one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed(f64);

impl Default for Speed {
    /// As recorded.
    fn default() -> Self {
        Self(1.0)
    }
}

impl Speed {
    /// Parses `1` or `x1`, as they were recorded, or `2.5`.
    pub fn parse(text: &str) -> Option<Self> {
        let times: f64 = text.strip_prefix('x').unwrap_or(text).parse().ok()?;
        (times.is_finite() && times > 0.0).then_some(Self(times))
    }

    /// The multiple.
    pub fn times(self) -> f64 {
        self.0
    }

    /// Due time of a tick that was recorded this long after the first one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::float_cmp,
        reason = "a cast of floats stays in bounds; 1 is exact"
    )]
    pub fn due_ns(self, after_ns: u64) -> u64 {
        // Exact, where a float would lose nanoseconds after some months.
        if self.0 == 1.0 { after_ns } else { (after_ns as f64 / self.0) as u64 }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

/// Fault of a line, without its place.
struct Fault {
    found: String,
    expected: String,
    next_step: &'static str,
}

impl Fault {
    fn new(found: impl Into<String>, expected: impl Into<String>, next_step: &'static str) -> Self {
        Self { found: found.into(), expected: expected.into(), next_step }
    }

    fn at(self, path: &Path, line: u64) -> Refusal {
        let Self { found, expected, next_step } = self;
        Refusal::new(format!(
            "cannot read {}, line {line}: found {found}, expected {expected}\nhint: {next_step}",
            path.display()
        ))
    }
}

const CORRECT: &str = "correct the line";

/// Ticks of a file that is being read.
#[derive(Default)]
struct TickCollector {
    ticks: Vec<Tick>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    first_ns: Option<i64>,
}

impl TickCollector {
    fn take(&mut self, columns: &Columns, record: &csv::StringRecord) -> Result<(), Fault> {
        if self.ticks.len() >= TICKS_MAX {
            let expected = format!("{TICKS_MAX} ticks at most, for all are kept in memory");
            return Err(Fault::new("one tick more", expected, "split the file"));
        }
        let price = |column: TickColumn| {
            let raw = columns.get(record, column);
            raw.map(|raw| parse_decimal(raw, 4).ok_or_else(|| column.fault(raw))).transpose()
        };
        let size = |column: TickColumn| {
            let raw = columns.get(record, column);
            raw.map_or(Ok(0), |raw| raw.parse().map_err(|_| column.fault(raw)))
        };
        let after_ns = self.after_ns(columns, record)?;
        let (bid, ask) = (price(TickColumn::Bid)?, price(TickColumn::Ask)?);
        let (Some(bid), Some(ask)) = (bid, ask) else {
            return Err(Fault::new("no price", "a bid and an ask", CORRECT));
        };
        let last = price(TickColumn::Last)?.unwrap_or_else(|| bid.midpoint(ask));
        let (bid_size, ask_size) = (size(TickColumn::BidSize)?, size(TickColumn::AskSize)?);
        let instrument = self.instrument(columns.get(record, TickColumn::Instrument).unwrap_or_default())?;
        let quote = FeedQuote { instrument, bid_size, ask_size, bid, ask, last };
        self.ticks.push(Tick { after_ns, quote });
        Ok(())
    }

    fn after_ns(&mut self, columns: &Columns, record: &csv::StringRecord) -> Result<u64, Fault> {
        let raw = columns.get(record, TickColumn::Time).unwrap_or_default();
        let time_ns = parse_decimal(raw, columns.time_decimals).ok_or_else(|| TickColumn::Time.fault(raw))?;
        let first_ns = *self.first_ns.get_or_insert(time_ns);
        let after_ns = time_ns.checked_sub(first_ns).and_then(|ns| u64::try_from(ns).ok());
        let before = self.ticks.last().map_or(0, |tick| tick.after_ns);
        after_ns.filter(|after| *after >= before).ok_or_else(|| {
            let expected = "a time that is not before that of the line above it";
            Fault::new(format!("the time {raw}"), expected, "sort the file by time")
        })
    }

    /// Keeps the number of a recorded instrument; all lower ones exist too.
    fn numbered(&mut self, number: u32) -> Result<u32, Fault> {
        while u32::try_from(self.names.len()).is_ok_and(|count| count <= number) {
            self.instrument(&self.names.len().to_string())?;
        }
        Ok(number)
    }

    fn instrument(&mut self, name: &str) -> Result<u32, Fault> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        if name.is_empty() {
            return Err(Fault::new("no instrument", "its name", CORRECT));
        }
        if number >= INSTRUMENTS_MAX {
            let expected = format!("{INSTRUMENTS_MAX} instruments at most");
            return Err(Fault::new(format!("one more instrument, {name}"), expected, "split the file"));
        }
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        Ok(number)
    }
}

fn wrong_csv(path: &Path, error: csv::Error) -> Refusal {
    let line = error.position().map_or(1, csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(error) => unreadable(path, &error),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            Fault::new(format!("{len} columns"), format!("{expected_len}, as in the header"), CORRECT)
                .at(path, line)
        }
        csv::ErrorKind::Utf8 { .. } => {
            Fault::new("bytes that are no UTF-8", "text", "convert the file to UTF-8").at(path, line)
        }
        other => Fault::new(format!("{other:?}"), "a line of CSV", CORRECT).at(path, line),
    }
}
