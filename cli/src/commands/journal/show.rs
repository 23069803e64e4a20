//! Records, gaps and damage of a recording, as text and JSON.

use super::payload;
use crate::output;
use lowlat_host::printable;
use lowlat_journal::{
    export::instant,
    layout::manifest::StreamEntry,
    read::{JournalRead, Record, Recording},
};
pub use lowlat_pipeline_report::{journal_damage as damage, journal_gap as gap, journal_stream_name as name};
use lowlat_pipeline_report::{journal_line, journal_notice};
use serde_json::{Value, json};
use std::io::IsTerminal;

/// Counts of missing records and damaged places, as the end of a sentence.
pub fn missing(lost: u64, missed: u64, damages: u64) -> String {
    let missed = if missed == 0 {
        String::new()
    } else {
        format!(" ({missed} of them published while no recorder ran, or deleted with the oldest files)")
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
            JournalRead::Gap(found) => Some(journal_notice(&gap(streams, found))),
            JournalRead::Damaged(damage) if self.is_json => Some(json_text(json!({"damage": damage}))),
            JournalRead::Damaged(found) => Some(journal_notice(&damage(streams, found))),
            JournalRead::Nothing | JournalRead::Ended => None,
        }
    }

    fn record(&self, streams: &[StreamEntry], record: &Record, payload: &[u8]) -> String {
        let stamp = &record.record.stamp;
        let mut fields = vec![("instrument", stamp.instrument.to_string())];
        let schema = schema(streams, record);
        fields.extend(payload::fields(schema, record, payload));
        let (time, stream) = (self.time(stamp.generated), name(streams, record.stream));
        journal_line(&time, &stream, record.record.sequence, &fields, self.width)
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
