//! Apache Parquet: typed, compressed columns for analysis tools.

use super::{Cell, ColumnKind, ExportColumn, ExportError, Table};
use ::parquet::{
    basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical},
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::Type,
};
use std::{io::Write, sync::Arc};

/// Rows per row group, which are buffered in memory.
const GROUP_ROWS: usize = 64 << 10;
/// Bytes of text that end a row group early: hexadecimal payloads may be long.
const GROUP_TEXT_BYTES: usize = 32 << 20;

/// A table as Parquet. Numbers are unsigned 64-bit integers, moments TIMESTAMP in UTC, texts UTF-8. Prices are DOUBLE, which
/// analysis tools read without an object for each; rounded to four decimals they are exact up to 100 billion.
pub struct ParquetTable<W: Write + Send> {
    out: SerializedFileWriter<W>,
    kinds: Vec<ColumnKind>,
    columns: Vec<Vec<Cell>>,
    text_bytes: usize,
}

impl<W: Write + Send> ParquetTable<W> {
    pub fn new(out: W, columns: &[ExportColumn]) -> Result<Self, ExportError> {
        let fields = columns.iter().map(|column| field(column).map(Arc::new)).collect::<Result<_, _>>();
        let schema =
            fields.and_then(|fields| Type::group_type_builder("records").with_fields(fields).build());
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let out = schema
            .and_then(|schema| SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties)))
            .map_err(error)?;
        let kinds: Vec<_> = columns.iter().map(|column| column.kind).collect();
        let columns = vec![Vec::new(); kinds.len()];
        Ok(Self { out, kinds, columns, text_bytes: 0 })
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let mut group = self.out.next_row_group()?;
        for (kind, cells) in self.kinds.iter().zip(&mut self.columns) {
            match kind {
                ColumnKind::Unsigned | ColumnKind::Instant => {
                    write::<Int64Type>(&mut group, cells, |cell| match cell {
                        Cell::Unsigned(value) => Some(value.cast_signed()),
                        Cell::Instant(ns) => Some(*ns),
                        _ => None,
                    })
                }
                ColumnKind::TenThousandths => write::<DoubleType>(&mut group, cells, |cell| match cell {
                    Cell::TenThousandths(value) => Some(*value as f64 / 1e4),
                    _ => None,
                }),
                ColumnKind::Text => write::<ByteArrayType>(&mut group, cells, |cell| match cell {
                    Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                    _ => None,
                }),
            }?;
            cells.clear();
        }
        self.text_bytes = 0;
        group.close().map(drop)
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }
}

impl<W: Write + Send> Table for ParquetTable<W> {
    fn row(&mut self, cells: &[Cell]) -> Result<(), ExportError> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            if let Cell::Text(text) = cell {
                self.text_bytes += text.len();
            }
            column.push(cell.clone());
        }
        let is_full = self.rows() >= GROUP_ROWS || self.text_bytes >= GROUP_TEXT_BYTES;
        if is_full { self.flush().map_err(error) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<(), ExportError> {
        if self.rows() > 0 {
            self.flush().map_err(error)?;
        }
        self.out.close().map(drop).map_err(error)
    }
}

fn field(column: &ExportColumn) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        ColumnKind::Unsigned => (Physical::INT64, Some(LogicalType::integer(64, false))),
        ColumnKind::Instant => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
        ColumnKind::TenThousandths => (Physical::DOUBLE, None),
        ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    Type::primitive_type_builder(column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    cells: &[Cell],
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = cells.iter().filter_map(&value).collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(value(cell).is_some())).collect();
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

fn error(error: ParquetError) -> ExportError {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(error) => ExportError::Io(*error),
            Err(other) => ExportError::Format(other.to_string()),
        },
        other => ExportError::Format(other.to_string()),
    }
}
