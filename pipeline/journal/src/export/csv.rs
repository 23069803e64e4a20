//! Comma-separated values according to RFC 4180, with a head line.

use super::{Cell, ExportColumn, ExportError, Table, decimal, instant};
use std::io::Write;

pub struct CsvTable<W: Write> {
    out: ::csv::Writer<W>,
}

impl<W: Write> CsvTable<W> {
    /// Starts a table with its head line.
    pub fn new(out: W, columns: &[ExportColumn]) -> Result<Self, ExportError> {
        let mut out = ::csv::Writer::from_writer(out);
        out.write_record(columns.iter().map(|column| column.name)).map_err(error)?;
        Ok(Self { out })
    }
}

impl<W: Write> Table for CsvTable<W> {
    fn row(&mut self, cells: &[Cell]) -> Result<(), ExportError> {
        for cell in cells {
            match cell {
                Cell::Empty => self.out.write_field(""),
                Cell::Unsigned(value) => self.out.write_field(value.to_string()),
                Cell::Instant(ns) => self.out.write_field(instant((*ns).into()).unwrap_or_default()),
                Cell::TenThousandths(value) => self.out.write_field(decimal(*value)),
                Cell::Text(text) => self.out.write_field(text),
            }
            .map_err(error)?;
        }
        self.out.write_record(None::<&[u8]>).map_err(error)
    }

    fn finish(mut self: Box<Self>) -> Result<(), ExportError> {
        Ok(self.out.flush()?)
    }
}

fn error(error: ::csv::Error) -> ExportError {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => ExportError::Io(error),
        other => ExportError::Format(format!("{other:?}")),
    }
}
