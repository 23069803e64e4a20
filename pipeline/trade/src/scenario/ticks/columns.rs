//! Meaning of the columns of a file, and the decimal numbers in them.

use super::Fault;
use lowlat_node::Refusal;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickColumn {
    Time,
    Instrument,
    Bid,
    Ask,
    Last,
    BidSize,
    AskSize,
}

impl TickColumn {
    /// Describes the fault of a value in this column.
    pub fn fault(self, raw: &str) -> Fault {
        let expected = match self {
            Self::Time => "a number without an exponent, not finer than 1 ns",
            Self::Instrument => "its name",
            Self::Bid | Self::Ask | Self::Last => "a price with up to 4 decimals",
            Self::BidSize | Self::AskSize => "a whole number of 32 bits",
        };
        let what = NAMES.iter().find(|(_, column, _)| *column == self).map_or("", |(name, ..)| *name);
        Fault::new(format!("{what} '{raw}'"), expected, super::CORRECT)
    }
}

/// Names of columns; for those of the time, also the number of decimals that turn it into nanoseconds.
const NAMES: [(&str, TickColumn, u32); 12] = [
    ("time", TickColumn::Time, 0),
    ("time_ns", TickColumn::Time, 0),
    ("time_us", TickColumn::Time, 3),
    ("time_ms", TickColumn::Time, 6),
    ("time_s", TickColumn::Time, 9),
    ("generated_ns", TickColumn::Time, 0),
    ("instrument", TickColumn::Instrument, 0),
    ("bid", TickColumn::Bid, 0),
    ("ask", TickColumn::Ask, 0),
    ("last", TickColumn::Last, 0),
    ("bid_size", TickColumn::BidSize, 0),
    ("ask_size", TickColumn::AskSize, 0),
];
const REQUIRED: [TickColumn; 4] =
    [TickColumn::Time, TickColumn::Instrument, TickColumn::Bid, TickColumn::Ask];

/// The columns of a file.
#[derive(Debug)]
pub struct Columns {
    places: Vec<(TickColumn, usize)>,
    /// Number of decimals that turn the time into nanoseconds.
    pub time_decimals: u32,
    /// In an export of lowlat: the column with the kind of each record.
    kinds: Option<usize>,
}

impl Columns {
    /// The columns that a header names.
    pub fn of(path: &Path, header: &csv::StringRecord) -> Result<Self, Refusal> {
        let names = || NAMES.map(|(name, ..)| name).join(", ");
        let place = |name: &str| header.iter().position(|found| found == name);
        let kinds = place("generated_ns").and(place("record"));
        let mut columns = Self { places: Vec::new(), time_decimals: 0, kinds };
        for (at, name) in header.iter().enumerate() {
            let Some((_, column, decimals)) = NAMES.into_iter().find(|(known, ..)| *known == name) else {
                if columns.kinds.is_some() {
                    continue;
                }
                let found = format!("the column '{name}'");
                let next_step = "rename the column or take it out; the first line must be the header";
                return Err(Fault::new(found, format!("some of {}", names()), next_step).at(path, 1));
            };
            if columns.places.iter().any(|(known, _)| *known == column) {
                let found = format!("a second column of that kind, '{name}'");
                return Err(Fault::new(found, "each once, and one time", "take one out").at(path, 1));
            }
            columns.places.push((column, at));
            if column == TickColumn::Time {
                columns.time_decimals = decimals;
            }
        }
        let is_there = |column: &TickColumn| columns.places.iter().any(|(known, _)| known == column);
        if REQUIRED.iter().all(is_there) {
            return Ok(columns);
        }
        let found = format!("'{}'", header.iter().collect::<Vec<_>>().join(","));
        let expected = "a header with a time (time_ns, …), instrument, bid and ask";
        Err(Fault::new(found, expected, "add the header").at(path, 1))
    }

    /// True if a line holds a quote: an export also has lines of other records.
    pub fn is_quote(&self, record: &csv::StringRecord) -> bool {
        self.kinds.is_none_or(|at| record.get(at) == Some("quote"))
    }

    /// The value of a column in a line; `None` if the file has no such column.
    pub fn get<'r>(&self, record: &'r csv::StringRecord, column: TickColumn) -> Option<&'r str> {
        let (_, at) = self.places.iter().find(|(known, _)| *known == column)?;
        record.get(*at)
    }
}

/// Parses `12.5` with 4 decimals as 125000, without a float in between. `None` if it is no decimal number, has more
/// digits after the point than that (apart from zeros), or does not fit.
pub fn parse_decimal(text: &str, decimals: u32) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) || digits.ends_with('.') {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let missing = decimals.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let whole: i64 = whole.parse().ok()?;
    let fraction: i64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let size = whole
        .checked_mul(10_i64.checked_pow(decimals)?)?
        .checked_add(fraction.checked_mul(10_i64.checked_pow(missing)?)?)?;
    Some(if is_negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::parse_decimal;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact() {
        let cases = [
            ("12.5", Some(125_000)),
            ("0.0001", Some(1)),
            ("-3", Some(-30_000)),
            ("-0.5", Some(-5_000)),
            ("1.50000", Some(15_000)),
            ("0.00001", None),
            ("1e5", None),
            ("1.", None),
            (".5", None),
            ("", None),
            ("-", None),
            ("+1", None),
            ("99999999999999999999", None),
            ("nan", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_decimal(text, 4), expected, "{text}");
        }
        assert_eq!(parse_decimal("7", 0), Some(7));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number in -1_000_000_000_000_i64..1_000_000_000_000) {
            let sign = if number < 0 { "-" } else { "" };
            let size = number.unsigned_abs();
            let text = format!("{sign}{}.{:04}", size / 10_000, size % 10_000);
            prop_assert_eq!(parse_decimal(&text, 4), Some(number));
        }
    }
}
