//! Records of a recording as Arrow record batches, which pyarrow, pandas, polars and duckdb use without a copy.

use crate::{
    events::{Damage, Lost},
    journal::{Reading, Selection},
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, DictionaryArray, Float64Array, Int32Array, PrimitiveArray,
    RecordBatch, RecordBatchReader, StringArray, TimestampNanosecondArray,
    ffi_stream::FFI_ArrowArrayStream,
    types::{UInt16Type, UInt32Type, UInt64Type},
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, SchemaRef};
use lowlat_journal::read::{Gap, JournalRead, Merge, Record, Recording};
use lowlat_node::records::{Answer, Order, Origin, Outcome, Quote, SCHEMA, Side, kind};
use pyo3::{IntoPyObjectExt, exceptions::PyValueError, prelude::*, types::PyCapsule};
use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, sync_channel},
    },
    thread,
};

/// Rows of a batch: columns are made of them while they are in a CPU's cache.
const ROWS: usize = 16 << 10;
/// Batches that are read before they are asked for.
const AHEAD: usize = 1;
/// Payload bytes that end a batch early. With the longest payload, offsets still fit into 31 bits.
const PAYLOADS_BYTES: usize = 32 << 20;
/// Largest number of events in `missing`.
const MISSING_MAX: usize = 10_000;

/// Decoded payloads of the rows of a batch.
enum Payloads {
    Quotes(Vec<Quote>),
    Orders(Vec<Order>),
    Answers(Vec<Answer>),
    Bytes { ends: Vec<i32>, bytes: Vec<u8> },
}

impl Payloads {
    /// Without rows; for a record's kind by its name, or for all kinds.
    fn of(kind: Option<&str>) -> PyResult<Self> {
        Ok(match kind {
            Some("quote") => Self::Quotes(Vec::with_capacity(ROWS)),
            Some("order") => Self::Orders(Vec::with_capacity(ROWS)),
            Some("answer") => Self::Answers(Vec::with_capacity(ROWS)),
            None => Self::Bytes { ends: vec![0], bytes: Vec::new() },
            Some(other) => {
                let text = format!("kind {other:?}: expected \"quote\", \"order\", \"answer\" or None");
                return Err(PyValueError::new_err(text));
            }
        })
    }

    /// Adds the payload of a record; returns false if it is of another kind.
    fn push(&mut self, record: &Record, payload: &[u8]) -> bool {
        fn add<T, E>(rows: &mut Vec<T>, is_kind: bool, decoded: impl FnOnce() -> Result<T, E>) -> bool {
            let row = if is_kind { decoded().ok() } else { None };
            let is_added = row.is_some();
            rows.extend(row);
            is_added
        }
        let stamp = &record.record.stamp;
        let is = |kind| stamp.kind == kind && stamp.schema == SCHEMA;
        match self {
            Self::Quotes(rows) => add(rows, is(kind::QUOTE), || Quote::decode(payload)),
            Self::Orders(rows) => add(rows, is(kind::ORDER), || Order::decode(payload)),
            Self::Answers(rows) => add(rows, is(kind::ANSWER), || Answer::decode(payload)),
            Self::Bytes { ends, bytes } => {
                bytes.extend_from_slice(payload);
                ends.push(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
                true
            }
        }
    }

    fn is_full(&self) -> bool {
        matches!(self, Self::Bytes { bytes, .. } if bytes.len() >= PAYLOADS_BYTES)
    }

    fn into_columns(self) -> Vec<Column> {
        match self {
            Self::Quotes(rows) => quote_columns(&rows),
            Self::Orders(rows) => order_columns(&rows),
            Self::Answers(rows) => answer_columns(&rows),
            Self::Bytes { ends, bytes } => {
                let ends = OffsetBuffer::new(ends.into());
                vec![("payload", Arc::new(BinaryArray::new(ends, bytes.into(), None)), false)]
            }
        }
    }
}

/// Name, values, and whether some may be null.
type Column = (&'static str, ArrayRef, bool);

fn whole<P: ArrowPrimitiveType, T>(
    name: &'static str,
    rows: &[T],
    value: impl Fn(&T) -> P::Native,
) -> Column {
    let values: Vec<P::Native> = rows.iter().map(value).collect();
    (name, Arc::new(PrimitiveArray::<P>::new(values.into(), None)), false)
}

/// Numbers of which 0 stands for none.
fn known<T>(name: &'static str, rows: &[T], value: impl Fn(&T) -> u64) -> Column {
    let values: Vec<u64> = rows.iter().map(value).collect();
    let nulls: NullBuffer = values.iter().map(|value| *value > 0).collect();
    (name, Arc::new(PrimitiveArray::<UInt64Type>::new(values.into(), Some(nulls))), true)
}

/// Ten-thousandths as a floating-point number of the instrument's currency.
fn prices<T>(name: &'static str, rows: &[T], value: impl Fn(&T) -> i64) -> Column {
    let values: Vec<f64> = rows.iter().map(|row| value(row) as f64 / 1e4).collect();
    (name, Arc::new(Float64Array::from(values)), false)
}

/// Texts, each once, and per row its place among them.
fn words<T, K: Copy>(
    name: &'static str,
    rows: &[T],
    key: impl Fn(&T) -> K,
    number: impl Fn(K) -> u64,
    word: impl Fn(K) -> String,
) -> Column {
    // By number, as many streams and few others have one.
    let (mut seen, mut places): (Vec<K>, Vec<Option<i32>>) = (Vec::new(), Vec::new());
    let place = |row: &T| {
        let key = key(row);
        let at = usize::try_from(number(key)).unwrap_or(0);
        if at >= places.len() {
            places.resize(at + 1, None);
        }
        *places[at].get_or_insert_with(|| {
            seen.push(key);
            i32::try_from(seen.len() - 1).unwrap_or(i32::MAX)
        })
    };
    let places: Int32Array = rows.iter().map(place).collect::<Vec<_>>().into();
    let words: StringArray = seen.into_iter().map(|key| Some(word(key))).collect();
    (name, Arc::new(DictionaryArray::new(places, Arc::new(words))), false)
}

fn sides<T>(rows: &[T], side: impl Fn(&T) -> Side) -> Column {
    words("side", rows, side, |side| side as u64, |side| side.word().to_owned())
}

fn record_columns(rows: &[Record], recording: &Recording) -> Vec<Column> {
    vec![
        words(
            "stream",
            rows,
            |row| row.stream,
            u64::from,
            |stream| stream_name(recording, stream).to_owned(),
        ),
        whole::<UInt64Type, _>("epoch", rows, |row| row.epoch),
        whole::<UInt64Type, _>("position_bytes", rows, |row| row.record.position),
        whole::<UInt64Type, _>("sequence", rows, |row| row.record.sequence),
        whole::<UInt16Type, _>("kind", rows, |row| row.record.stamp.kind),
        whole::<UInt16Type, _>("schema", rows, |row| row.record.stamp.schema),
        whole::<UInt32Type, _>("instrument", rows, |row| row.record.stamp.instrument),
        whole::<UInt32Type, _>("source", rows, |row| row.record.stamp.source),
        whole::<UInt64Type, _>("generated_ns", rows, |row| row.record.stamp.generated),
        wall_times("generated_at", rows, recording.realtime_offset_ns()),
        whole::<UInt64Type, _>("trigger_ns", rows, |row| row.record.stamp.trigger),
        whole::<UInt64Type, _>("cause_sequence", rows, |row| row.record.stamp.cause),
    ]
}

/// Times of day in UTC; null without a clock.
fn wall_times(name: &'static str, rows: &[Record], offset_ns: Option<i128>) -> Column {
    let offset = offset_ns.and_then(|offset| i64::try_from(offset).ok());
    let time = |row: &Record| row.record.stamp.generated.checked_add_signed(offset?)?.try_into().ok();
    let times: TimestampNanosecondArray = rows.iter().map(time).collect();
    (name, Arc::new(times.with_timezone("UTC")), true)
}

fn quote_columns(rows: &[Quote]) -> Vec<Column> {
    let columns = vec![
        whole::<UInt64Type, _>("scheduled_ns", rows, |row| row.scheduled_ns),
        prices("bid", rows, |row| row.bid),
        prices("ask", rows, |row| row.ask),
        prices("last", rows, |row| row.last),
        whole::<UInt32Type, _>("bid_size", rows, |row| row.bid_size),
        whole::<UInt32Type, _>("ask_size", rows, |row| row.ask_size),
    ];
    [columns, origin_columns(rows, |row| row.origin)].concat()
}

fn order_columns(rows: &[Order]) -> Vec<Column> {
    let columns = vec![
        whole::<UInt64Type, _>("scheduled_ns", rows, |row| row.scheduled_ns),
        whole::<UInt64Type, _>("received_ns", rows, |row| row.received_ns),
        whole::<UInt64Type, _>("order_number", rows, |row| row.number),
        sides(rows, |row| row.side),
        prices("price", rows, |row| row.price),
        whole::<UInt32Type, _>("quantity", rows, |row| row.quantity),
        words("action", rows, |row| row.action, |action| action as u64, |action| action.word().to_owned()),
        words("order_type", rows, |row| row.order_type, |of| of as u64, |of| of.word().to_owned()),
    ];
    [columns, origin_columns(rows, |row| row.origin)].concat()
}

fn answer_columns(rows: &[Answer]) -> Vec<Column> {
    vec![
        whole::<UInt64Type, _>("received_ns", rows, |row| row.received_ns),
        whole::<UInt64Type, _>("order_number", rows, |row| row.order_number),
        sides(rows, |row| row.side),
        prices("price", rows, |row| row.price),
        whole::<UInt32Type, _>("quantity", rows, |row| row.quantity),
        words("outcome", rows, |row| row.outcome, Outcome::code, Outcome::text),
        whole::<UInt32Type, _>("order_instrument", rows, |row| row.instrument),
    ]
}

fn origin_columns<T>(rows: &[T], origin: impl Fn(&T) -> Origin) -> Vec<Column> {
    vec![
        known("packet_ns", rows, |row| origin(row).packet_ns),
        known("feed_sequence", rows, |row| origin(row).sequence),
    ]
}

/// What is missing among the records read so far.
type Missing = Arc<Mutex<Vec<JournalRead>>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves what they hold consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rows of a batch before they are columns.
struct Rows {
    records: Vec<Record>,
    payloads: Payloads,
}

impl Rows {
    /// Without rows, of records of this kind.
    fn of(kind: Option<&str>) -> PyResult<Self> {
        Ok(Self { records: Vec::with_capacity(ROWS), payloads: Payloads::of(kind)? })
    }

    /// Reads rows until they are a batch, or the recording has no more.
    fn fill(&mut self, merge: &mut Merge<'_>, payload: &mut Vec<u8>, missing: &Missing) {
        while self.records.len() < ROWS && !self.payloads.is_full() {
            match merge.next(payload) {
                JournalRead::Record(record) => {
                    if self.payloads.push(&record, payload) {
                        self.records.push(record);
                    }
                }
                JournalRead::Nothing | JournalRead::Ended => break,
                read => {
                    let mut missing = locked(missing);
                    if missing.len() < MISSING_MAX {
                        missing.push(read);
                    }
                }
            }
        }
    }

    fn into_batch(self, recording: &Recording) -> Result<RecordBatch, ArrowError> {
        let records = record_columns(&self.records, recording);
        RecordBatch::try_from_iter_with_nullable(records.into_iter().chain(self.payloads.into_columns()))
    }
}

/// Makes batch after batch of the rows that a second thread reads.
struct BatchReader {
    rows: Receiver<Rows>,
    recording: Arc<Recording>,
    schema: SchemaRef,
}

/// Reads rows of this kind in a thread that ends with them, or when they are not wanted any more.
fn read(mut reading: Reading, kind: Option<String>, missing: Missing) -> io::Result<Receiver<Rows>> {
    let (to, rows) = sync_channel(AHEAD);
    let run = move || {
        let mut payload = Vec::new();
        reading.with_dependent_mut(|_, merge| {
            while let Ok(mut rows) = Rows::of(kind.as_deref()) {
                rows.fill(merge, &mut payload, &missing);
                if rows.records.is_empty() || to.send(rows).is_err() {
                    break;
                }
            }
        });
    };
    thread::Builder::new().name("lowlat-batches".to_owned()).spawn(run)?;
    Ok(rows)
}

impl Iterator for BatchReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.recv().ok().map(|rows| rows.into_batch(&self.recording))
    }
}

impl RecordBatchReader for BatchReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Records of a recording in columns, for pyarrow, pandas, polars, duckdb and whatever else takes Arrow streams. Each
/// use reads the recording again.
#[pyclass(frozen, module = "lowlat")]
pub struct Batches {
    selection: Selection,
    kind: Option<String>,
    /// Of the last use.
    missing: Mutex<Missing>,
}

impl Batches {
    pub fn new(selection: Selection, kind: Option<String>) -> PyResult<Self> {
        Payloads::of(kind.as_deref())?;
        Ok(Self { selection, kind, missing: Mutex::default() })
    }
}

#[pymethods]
impl Batches {
    /// A stream of record batches by Arrow's C interface. A requested schema is ignored.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface asks for best effort, and the columns are what they are.
        let _ = requested_schema;
        let missing = Missing::default();
        *locked(&self.missing) = Arc::clone(&missing);
        let recording = Arc::clone(&self.selection.recording);
        let none = Rows::of(self.kind.as_deref())?.into_batch(&recording);
        let schema = none.map_err(|error| PyValueError::new_err(error.to_string()))?.schema();
        let rows = read(self.selection.read(), self.kind.clone(), missing)?;
        let reader = BatchReader { rows, recording, schema };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// Lost and Damage in place of records in the last use so far; the first 10,000.
    #[getter]
    fn missing(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let missing = Arc::clone(&locked(&self.missing));
        let event = |read: &JournalRead| match read {
            JournalRead::Gap(gap) => Some(lost(&self.selection.recording, gap).into_py_any(py)),
            JournalRead::Damaged(damage) => Some(Damage { text: damage.to_string() }.into_py_any(py)),
            _ => None,
        };
        locked(&missing).iter().filter_map(event).collect()
    }
}

fn stream_name(recording: &Recording, stream: u32) -> &str {
    let entry = usize::try_from(stream).ok().and_then(|at| recording.streams().get(at));
    entry.map_or("", |entry| entry.name.as_str())
}

/// Lost records, with the reason.
pub fn lost(recording: &Recording, gap: &Gap) -> Lost {
    let stream = stream_name(recording, gap.stream).into();
    Lost { stream, count: gap.count(), why: Some(gap.why().to_owned()) }
}
