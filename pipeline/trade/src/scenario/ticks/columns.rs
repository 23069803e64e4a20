//! Meaning of the columns of a file.

use super::Fault;
use crate::refusal::Refusal;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Time,
    Instrument,
    Bid,
    Ask,
    Last,
    BidSize,
    AskSize,
}

impl Column {
    /// Describes the fault of a value in this column.
    pub fn fault(self, raw: &str) -> Fault {
        let (what, expected) = match self {
            Self::Time => ("time", "a number without an exponent, not finer than 1 ns"),
            Self::Instrument => ("instrument", "its name"),
            Self::Bid => ("bid", "a price with up to 4 decimals"),
            Self::Ask => ("ask", "a price with up to 4 decimals"),
            Self::Last => ("last", "a price with up to 4 decimals"),
            Self::BidSize => ("bid_size", "a whole number of 32 bits"),
            Self::AskSize => ("ask_size", "a whole number of 32 bits"),
        };
        Fault::new(format!("{what} '{raw}'"), expected, super::CORRECT)
    }
}

/// Names of columns; for those of the time, also the number of decimals that turn it into nanoseconds.
const NAMES: [(&str, Column, u32); 12] = [
    ("time", Column::Time, 0),
    ("time_ns", Column::Time, 0),
    ("time_us", Column::Time, 3),
    ("time_ms", Column::Time, 6),
    ("time_s", Column::Time, 9),
    ("generated_ns", Column::Time, 0),
    ("instrument", Column::Instrument, 0),
    ("bid", Column::Bid, 0),
    ("ask", Column::Ask, 0),
    ("last", Column::Last, 0),
    ("bid_size", Column::BidSize, 0),
    ("ask_size", Column::AskSize, 0),
];
const REQUIRED: [Column; 4] = [Column::Time, Column::Instrument, Column::Bid, Column::Ask];

/// The columns of a file.
#[derive(Debug)]
pub struct Columns {
    places: Vec<(Column, usize)>,
    time_decimals: u32,
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
            if column == Column::Time {
                columns.time_decimals = decimals;
            }
        }
        let is_there = |column: &Column| columns.places.iter().any(|(known, _)| known == column);
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
    pub fn get<'r>(&self, record: &'r csv::StringRecord, column: Column) -> Option<&'r str> {
        let (_, at) = self.places.iter().find(|(known, _)| *known == column)?;
        record.get(*at)
    }

    /// Number of decimals that turn the time into nanoseconds.
    pub fn time_decimals(&self) -> u32 {
        self.time_decimals
    }
}
