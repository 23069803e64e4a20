//! A recording as a table, row by row, in constant memory.
//!
//! The first columns are common to all records: stream, epoch, position, sequence and stamp. Further columns
//! come from a [`PayloadDecoder`] of payloads; payloads that it cannot decode are exported as hexadecimal bytes.

#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "parquet")]
mod parquet;

#[cfg(feature = "csv")]
pub use csv::CsvTable;
#[cfg(feature = "parquet")]
pub use parquet::ParquetTable;

use crate::{
    damage::DamagedPlace,
    read::{Gap, JournalRead, Record, Recording},
};
use serde::Serialize;
use std::io;
use thiserror::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    Unsigned,
    /// Nanoseconds since 1970, UTC, shown as RFC 3339.
    Instant,
    /// Signed ten-thousandths, shown with four decimals: prices.
    TenThousandths,
    Text,
}

/// A column. Its name ends with its unit, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportColumn {
    pub name: &'static str,
    pub kind: ColumnKind,
}

/// One cell. An empty cell means that the record has no such field, which is not 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cell {
    #[default]
    Empty,
    Unsigned(u64),
    /// Nanoseconds since 1970, UTC.
    Instant(i64),
    /// Signed ten-thousandths, for prices.
    TenThousandths(i64),
    Text(String),
}

/// Fills columns from the payloads of records.
pub trait PayloadDecoder {
    /// The columns that it fills.
    fn columns(&self) -> &'static [ExportColumn];

    /// Fills the cells of a record, one per column, all initially empty. Returns false if it cannot decode the
    /// payload; its cells are then ignored.
    fn decode(&self, stream_schema: &str, record: &Record, payload: &[u8], cells: &mut [Cell]) -> bool;
}

const fn unsigned(name: &'static str) -> ExportColumn {
    ExportColumn { name, kind: ColumnKind::Unsigned }
}

/// Columns that every table starts with.
pub const RECORD_COLUMNS: [ExportColumn; 14] = [
    ExportColumn { name: "stream", kind: ColumnKind::Text },
    unsigned("epoch"),
    unsigned("position_bytes"),
    unsigned("sequence"),
    unsigned("kind"),
    unsigned("schema"),
    unsigned("instrument"),
    unsigned("source"),
    unsigned("generated_ns"),
    ExportColumn { name: "generated_at", kind: ColumnKind::Instant },
    unsigned("trigger_ns"),
    unsigned("cause_sequence"),
    unsigned("payload_bytes"),
    ExportColumn { name: "payload_hex", kind: ColumnKind::Text },
];

/// A table that is written row by row.
pub trait Table {
    /// Adds a row, with as many cells as the table has columns.
    fn row(&mut self, cells: &[Cell]) -> Result<(), ExportError>;

    /// Writes what is buffered and ends the table.
    fn finish(self: Box<Self>) -> Result<(), ExportError>;
}

/// Reason why a table was not written.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The system cannot write the table.
    #[error("cannot write the table: {0}\nhint: free space, or name another file")]
    Io(#[from] io::Error),
    /// An error of the format's library.
    #[error("cannot write the table: {0}")]
    Format(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
#[non_exhaustive]
pub struct Exported {
    pub rows: u64,
    /// Rows with a decoded payload.
    pub decoded: u64,
    /// Records missing from the recording.
    pub lost: u64,
    /// Missing records that were published while no recorder ran, or deleted with the oldest files.
    pub missed: u64,
    /// The first gaps, up to a limit.
    pub gaps: Vec<Gap>,
    /// Number of damaged places and missing files.
    pub damages: u64,
    /// The first damaged places and missing files, up to a limit.
    pub damaged: Vec<DamagedPlace>,
}

impl Exported {
    /// Returns true if nothing is damaged, and no record is missing that was published while a recorder ran and not deleted.
    pub fn is_complete(&self) -> bool {
        self.damages == 0 && self.lost == self.missed
    }
}

/// Largest number of gaps and damaged places listed.
const NAMED_MAX: usize = 1_000;

/// The columns of a table with this decoder.
pub fn columns(decoder: &dyn PayloadDecoder) -> Vec<ExportColumn> {
    RECORD_COLUMNS.into_iter().chain(decoder.columns().iter().copied()).collect()
}

/// Writes every record that `next` returns to a table. `seen` gets each item, and ends the export by returning
/// false.
pub fn export(
    recording: &Recording,
    mut next: impl FnMut(&mut Vec<u8>) -> JournalRead,
    decoder: &dyn PayloadDecoder,
    mut table: Box<dyn Table + '_>,
    seen: &mut dyn FnMut(&JournalRead) -> bool,
) -> Result<Exported, ExportError> {
    let (mut out, mut payload) = (Exported::default(), Vec::new());
    let mut cells = vec![Cell::Empty; columns(decoder).len()];
    loop {
        let read = next(&mut payload);
        if !seen(&read) {
            break;
        }
        match &read {
            JournalRead::Record(record) => {
                out.decoded += u64::from(fill(recording, decoder, record, &payload, &mut cells));
                table.row(&cells)?;
                out.rows += 1;
            }
            JournalRead::Gap(gap) => {
                out.lost = out.lost.saturating_add(gap.count());
                out.missed = out.missed.saturating_add(gap.missed());
                if out.gaps.len() < NAMED_MAX {
                    out.gaps.push(*gap);
                }
            }
            JournalRead::Damaged(damage) => {
                out.damages += 1;
                if out.damaged.len() < NAMED_MAX {
                    out.damaged.push((**damage).clone());
                }
            }
            JournalRead::Nothing | JournalRead::Ended => break,
        }
    }
    table.finish()?;
    Ok(out)
}

/// Fills the cells of one record. Returns whether its payload was decoded.
fn fill(
    recording: &Recording,
    decoder: &dyn PayloadDecoder,
    record: &Record,
    payload: &[u8],
    cells: &mut [Cell],
) -> bool {
    let (first, rest) = cells.split_at_mut(RECORD_COLUMNS.len().min(cells.len()));
    let at = crate::bytes::narrow(record.stream.into());
    let entry = recording.streams().get(at);
    let stamp = &record.record.stamp;
    let real_ns = recording.realtime_offset_ns().map(|offset| i128::from(stamp.generated) + offset);
    let values = [
        Cell::Text(entry.map_or_else(String::new, |entry| entry.name.clone())),
        Cell::Unsigned(record.epoch),
        Cell::Unsigned(record.record.position),
        Cell::Unsigned(record.record.sequence),
        Cell::Unsigned(stamp.kind.into()),
        Cell::Unsigned(stamp.schema.into()),
        Cell::Unsigned(stamp.instrument.into()),
        Cell::Unsigned(stamp.source.into()),
        Cell::Unsigned(stamp.generated),
        real_ns.and_then(|ns| i64::try_from(ns).ok()).map_or(Cell::Empty, Cell::Instant),
        Cell::Unsigned(stamp.trigger),
        Cell::Unsigned(stamp.cause),
        Cell::Unsigned(crate::bytes::wide(payload.len())),
    ];
    first.iter_mut().zip(values).for_each(|(cell, value)| *cell = value);
    rest.fill(Cell::Empty);
    let schema = entry.map_or("", |entry| entry.schema.as_str());
    let is_decoded = decoder.decode(schema, record, payload, rest);
    if !is_decoded {
        rest.fill(Cell::Empty);
    }
    if let Some(hex) = first.last_mut() {
        *hex = if is_decoded { Cell::Empty } else { Cell::Text(hex_of(payload)) };
    }
    is_decoded
}

/// Formats bytes as lowercase hexadecimal digits.
pub fn hex_of(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('?');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Formats nanoseconds since 1970 as RFC 3339, in UTC, with all of their digits; `None` beyond the year 9999.
pub fn instant(ns: i128) -> Option<String> {
    jiff::Timestamp::from_nanosecond(ns).ok().map(|time| format!("{time:.9}"))
}

/// Formats ten-thousandths exactly, with four decimals.
pub fn decimal(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let value = value.unsigned_abs();
    format!("{sign}{}.{:04}", value / 10_000, value % 10_000)
}

#[cfg(test)]
mod tests;
