//! Tables are read back by the libraries that their users have.

use super::*;
use crate::{
    read::Merge,
    testing::{Maker, options, payload},
};
use std::collections::HashMap;

/// Decodes the payloads of stream 0 only.
struct First;

impl PayloadDecoder for First {
    fn columns(&self) -> &'static [ExportColumn] {
        const COLUMNS: [ExportColumn; 3] = [
            ExportColumn { name: "price", kind: ColumnKind::TenThousandths },
            ExportColumn { name: "size", kind: ColumnKind::Unsigned },
            ExportColumn { name: "side", kind: ColumnKind::Text },
        ];
        &COLUMNS
    }

    fn decode(&self, schema: &str, record: &Record, payload: &[u8], cells: &mut [Cell]) -> bool {
        assert_eq!(schema, "test");
        let sequence = record.record.sequence;
        cells[0] = Cell::TenThousandths(i64::try_from(sequence).unwrap() - 12_345);
        cells[1] = Cell::Unsigned(u64::MAX - sequence);
        if payload.len() > 3 {
            cells[2] = Cell::Text("buy, \"or\" sell".to_owned());
        }
        record.stream == 0
    }
}

fn exported(
    make: impl FnOnce(&mut Vec<u8>, &[ExportColumn]) -> Result<Exported, ExportError>,
) -> (Vec<u8>, Exported) {
    let mut bytes = Vec::new();
    let exported = make(&mut bytes, &columns(&First)).unwrap();
    (bytes, exported)
}

fn recording() -> (tempfile::TempDir, Recording) {
    let folder = tempfile::TempDir::new().unwrap();
    let mut maker = Maker::new(folder.path(), options(), &["one", "two"]);
    maker.records(0, 0..20);
    maker.gap(0, 20, 25);
    maker.records(1, 0..15);
    maker.files.finish().unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    (folder, recording)
}

/// Expected cells of a record's row, as text.
fn wanted(stream: u32, sequence: u64) -> HashMap<&'static str, String> {
    let bytes = payload(stream, sequence);
    let mut row = HashMap::from([
        ("stream", ["one", "two"][stream as usize].to_owned()),
        ("epoch", "1".to_owned()),
        ("sequence", sequence.to_string()),
        ("generated_ns", (10 * sequence + u64::from(stream)).to_string()),
        // 1 us later, by the clocks in the head of the file.
        ("generated_at", format!("1970-01-01T00:00:00.{:09}Z", 1_000 + 10 * sequence + u64::from(stream))),
        ("payload_bytes", bytes.len().to_string()),
    ]);
    if stream == 0 {
        row.insert("price", decimal(i64::try_from(sequence).unwrap() - 12_345));
        row.insert("size", (u64::MAX - sequence).to_string());
        row.insert("payload_hex", String::new());
        row.insert("side", if bytes.len() > 3 { "buy, \"or\" sell".to_owned() } else { String::new() });
    } else {
        row.insert("payload_hex", hex_of(&bytes));
        row.insert("price", String::new());
    }
    row
}

fn compare(rows: &[HashMap<String, String>]) {
    let mut order: Vec<(u32, u64)> = (0..20).map(|at| (0, at)).chain((0..15).map(|at| (1, at))).collect();
    order.sort_by_key(|(stream, sequence)| 10 * sequence + u64::from(*stream));
    assert_eq!(rows.len(), order.len());
    for (row, (stream, sequence)) in rows.iter().zip(order) {
        for (name, value) in wanted(stream, sequence) {
            assert_eq!(row[name], value, "{name} of {stream} {sequence}");
        }
    }
}

#[cfg(feature = "csv")]
#[test]
fn csv_is_read_back() {
    let (_folder, recording) = recording();
    let mut merge = Merge::of_all(&recording);
    let (bytes, exported) = exported(|out, columns| {
        let table = Box::new(CsvTable::new(out, columns).unwrap());
        export(&recording, |payload| merge.next(payload), &First, table, &mut |_| true)
    });
    assert_eq!((exported.rows, exported.decoded, exported.lost), (35, 20, 5));
    let mut reader = ::csv::Reader::from_reader(&bytes[..]);
    let rows: Vec<HashMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
    compare(&rows);
}

/// A head without the time of day makes no time up.
#[cfg(feature = "csv")]
#[test]
fn an_unknown_time_of_day_is_an_empty_cell() {
    let (folder, recording) = recording();
    let path = folder.path().join(crate::layout::data_name(1));
    let head = crate::layout::FileHead { realtime_ns: 0, ..recording.files()[0].head.unwrap() };
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[..crate::layout::FILE_HEAD_BYTES].copy_from_slice(&head.encode());
    std::fs::write(&path, bytes).unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    let mut merge = Merge::of_all(&recording);
    let (bytes, exported) = exported(|out, columns| {
        let table = Box::new(CsvTable::new(out, columns).unwrap());
        export(&recording, |payload| merge.next(payload), &First, table, &mut |_| true)
    });
    assert_eq!((exported.rows, exported.damages), (35, 0));
    let mut reader = ::csv::Reader::from_reader(&bytes[..]);
    let rows: Vec<HashMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
    assert!(rows.iter().all(|row| row["generated_at"].is_empty() && !row["generated_ns"].is_empty()));
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_is_read_back() {
    use ::parquet::{
        file::reader::{FileReader, SerializedFileReader},
        record::Field,
    };
    let (_folder, recording) = recording();
    let mut merge = Merge::of_all(&recording);
    let (bytes, exported) = exported(|out, columns| {
        let table = Box::new(ParquetTable::new(out, columns).unwrap());
        export(&recording, |payload| merge.next(payload), &First, table, &mut |_| true)
    });
    assert_eq!((exported.rows, exported.decoded), (35, 20));
    let mut file = tempfile::tempfile().unwrap();
    io::Write::write_all(&mut file, &bytes).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<HashMap<String, String>> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            let text = |field: &Field| match field {
                Field::Null => String::new(),
                Field::Str(text) => text.clone(),
                Field::ULong(value) => value.to_string(),
                // A timestamp in nanoseconds.
                Field::Long(ns) => instant((*ns).into()).unwrap(),
                Field::Double(value) => format!("{value:.4}"),
                other => panic!("{other:?}"),
            };
            row.unwrap().get_column_iter().map(|(name, field)| (name.clone(), text(field))).collect()
        })
        .collect();
    compare(&rows);
}

#[test]
fn prices_are_exact() {
    assert_eq!(
        [0, 1, -1, 12_345, i64::MIN].map(decimal),
        ["0.0000", "0.0001", "-0.0001", "1.2345", "-922337203685477.5808"]
    );
}
