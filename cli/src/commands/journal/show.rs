//! Records, gaps and damage of a recording, as text and JSON.

use super::payload;
use crate::output;
use lowlat_host::printable;
use lowlat_journal::{
    damage::{DamagedPlace, Problem},
    export::instant,
    layout::manifest::StreamEntry,
    read::{Gap, JournalRead, JournalVerification, Record, Recording},
};
use lowlat_pipeline_report::{JournalLine, JournalStream, JournalView};
use serde_json::{Value, json};
use std::{io::IsTerminal, path::Path};

/// Name of a stream, or its number if it has no name.
pub fn name(streams: &[StreamEntry], stream: u32) -> String {
    let entry = usize::try_from(stream).ok().and_then(|at| streams.get(at));
    entry.map_or_else(|| format!("stream-{stream}"), |entry| entry.name.clone())
}

/// Describes a gap, with the name of its stream.
pub fn gap(streams: &[StreamEntry], gap: &Gap) -> String {
    let (name, count, why) = (name(streams, gap.stream), gap.count(), gap.why());
    let records = if count == 1 { "record" } else { "records" };
    format!("{name}: {count} {records}, {} to {}: {why}", gap.from, gap.to - 1)
}

/// Describes a problem, with names of streams.
fn problem(streams: &[StreamEntry], problem: &Problem) -> String {
    match problem {
        Problem::Record { stream, sequence } => format!(
            "{}: record {sequence} is damaged; earlier records of its block are intact, later ones are lost",
            name(streams, *stream)
        ),
        Problem::Order { stream, found, expected } => format!(
            "{}: block skipped: it starts with record {found}, expected {expected} or later",
            name(streams, *stream)
        ),
        other => other.to_string(),
    }
}

/// Describes a damaged place, with its file and offset.
pub fn damage(streams: &[StreamEntry], damage: &DamagedPlace) -> String {
    format!("{} at byte {}: {}", damage.file.display(), damage.offset, problem(streams, &damage.problem))
}

/// Counts of missing records and damaged places, as the end of a sentence.
pub fn missing(lost: u64, missed: u64, damages: u64) -> String {
    let missed = if missed == 0 {
        String::new()
    } else {
        format!(" ({missed} of them published while no recorder ran)")
    };
    format!("missing {lost}{missed}, damaged places {damages}")
}

/// Notes that a recording has not ended yet.
pub fn talk_if_live(recording: &Recording) {
    if recording.is_live() {
        let shown = recording.folder().display();
        output::talk(&format!("{shown} is still being recorded; later records are left out"));
    }
}

/// Prints records, and gaps and damage between them, one line each.
pub struct Printer {
    is_json: bool,
    realtime_offset_ns: Option<i128>,
    /// Maximum line width, on a terminal.
    width: Option<usize>,
}

impl Printer {
    pub fn new(recording: &Recording, is_json: bool) -> Self {
        let width = std::io::stdout().is_terminal().then(output::width);
        Self { is_json, realtime_offset_ns: recording.realtime_offset_ns(), width }
    }

    /// The line for an item; `None` if nothing is to be shown.
    pub fn line(&self, streams: &[StreamEntry], read: &JournalRead, payload: &[u8]) -> Option<String> {
        match read {
            JournalRead::Record(record) if self.is_json => {
                Some(json_text(self.record_json(streams, record, payload)))
            }
            JournalRead::Record(record) => Some(self.record(streams, record, payload)),
            JournalRead::Gap(found) if self.is_json => Some(json_text(
                json!({"gap": {"stream": name(streams, found.stream), "from": found.from, "to": found.to, "reason": found.reason}}),
            )),
            JournalRead::Gap(found) => Some(lowlat_pipeline_report::journal_notice(&gap(streams, found))),
            JournalRead::Damaged(damage) if self.is_json => Some(json_text(json!({"damage": damage}))),
            JournalRead::Damaged(found) => {
                Some(lowlat_pipeline_report::journal_notice(&damage(streams, found)))
            }
            JournalRead::Nothing | JournalRead::Ended => None,
        }
    }

    fn record(&self, streams: &[StreamEntry], record: &Record, payload: &[u8]) -> String {
        let stamp = &record.record.stamp;
        let mut fields = vec![("instrument", stamp.instrument.to_string())];
        let schema = schema(streams, record);
        fields.extend(payload::fields(schema, record, payload));
        let line = JournalLine {
            time: self.time(stamp.generated),
            stream: name(streams, record.stream),
            sequence: record.record.sequence,
            fields,
        };
        lowlat_pipeline_report::journal_line(&line, self.width)
    }

    /// Time of day in UTC with nanoseconds, if the recording has it.
    fn time(&self, generated: u64) -> String {
        let time = self.realtime_offset_ns.and_then(|offset| instant(i128::from(generated) + offset));
        time.unwrap_or_else(|| format!("{generated} ns"))
    }

    fn record_json(&self, streams: &[StreamEntry], record: &Record, payload: &[u8]) -> Value {
        let stamp = &record.record.stamp;
        let fields: serde_json::Map<String, Value> =
            payload::fields(schema(streams, record), record, payload)
                .into_iter()
                .map(|(name, value)| (name.to_owned(), Value::String(value)))
                .collect();
        json!({
            "stream": name(streams, record.stream),
            "epoch": record.epoch,
            "sequence": record.record.sequence,
            "position_bytes": record.record.position,
            "time": self.time(stamp.generated),
            "generated_ns": stamp.generated,
            "trigger_ns": stamp.trigger,
            "cause_sequence": stamp.cause,
            "kind": stamp.kind,
            "schema": stamp.schema,
            "instrument": stamp.instrument,
            "source": stamp.source,
            "payload": fields,
        })
    }
}

/// Returns a line of JSON, as a document of its own.
pub fn json_text(mut line: Value) -> String {
    line["document"] = "lowlat-journal-line".into();
    line["schema_version"] = 1.into();
    printable::json(&line.to_string()).into_owned()
}

/// Name of the schema of a record's stream; empty if unknown.
pub fn schema<'a>(streams: &'a [StreamEntry], record: &Record) -> &'a str {
    let entry = usize::try_from(record.stream).ok().and_then(|at| streams.get(at));
    entry.map_or("", |entry| entry.schema.as_str())
}

/// A recording as the report shows it.
pub fn view(recording: &Recording, known: &JournalVerification) -> JournalView {
    let gaps = known.gap_total();
    let file_name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    JournalView {
        folder: known.folder.display().to_string(),
        is_live: known.is_live,
        is_checked: known.is_whole,
        files: known.files.len(),
        bytes: known.files.iter().map(|file| file.bytes).sum(),
        streams: known
            .streams
            .iter()
            .map(|stream| JournalStream {
                name: stream.name.clone(),
                records: stream.records,
                sequences: stream.first_sequence.zip(stream.last_sequence),
                gaps: stream.gaps.gaps,
                lost: stream.gaps.records,
                bytes: stream.bytes,
                length_ns: stream.generated_min.zip(stream.generated_max).map(|(min, max)| max - min),
            })
            .collect(),
        gaps: known.gaps.iter().map(|found| gap(recording.streams(), found)).collect(),
        damages: known
            .damages
            .iter()
            .map(|damage| {
                let place = format!("{}, byte {}", file_name(&damage.file), damage.offset);
                (place, problem(recording.streams(), &damage.problem))
            })
            .collect(),
        damage_count: known.damage_count,
        missing: gaps.records - gaps.missed,
        index_problems: known
            .files
            .iter()
            .filter_map(|file| {
                let problem = file.index_problem.as_ref()?;
                Some(format!("{}: {problem}; the data file is scanned instead", file_name(&file.file)))
            })
            .collect(),
    }
}
