//! Selection of records of a recording.

use super::{payload, show};
use anyhow::{Context, ensure};
use clap::Args;
use jiff::Timestamp;
use lowlat_journal::read::{JournalRead, Merge, Record, Recording};
use std::{ops::RangeInclusive, path::PathBuf};

#[derive(Debug, Args)]
pub struct Select {
    /// Directory of the recording
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Stream to read, or a prefix: orders.*; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub stream: Vec<String>,
    /// Only records of this instrument; may be repeated
    #[arg(long, value_name = "N")]
    instrument: Vec<u32>,
    /// Only records of this kind: quote, order, answer, or a number; may be repeated
    #[arg(long, value_name = "KIND", value_parser = payload::kind)]
    kind: Vec<u16>,
    /// Skip records generated before this time: 2026-01-02T09:30:00Z, or ns of the stream's clock
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Moment>,
    /// Stop at records generated at or after this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Moment>,
}

/// A time as users give it.
#[derive(Debug, Clone, Copy)]
enum Moment {
    OfDay(Timestamp),
    Ns(u64),
}

fn moment(text: &str) -> Result<Moment, String> {
    let expected = || format!("\"{text}\": expected a time such as 2026-01-02T09:30:00Z, or a number of ns");
    text.parse().map(Moment::Ns).or_else(|_| text.parse().map(Moment::OfDay)).map_err(|_| expected())
}

impl Select {
    /// Opens the recording, whose clocks the times need.
    pub fn open(&self) -> anyhow::Result<Selection<'_>> {
        let recording = Recording::open(&self.folder)?;
        let in_ns = |moment: Moment| {
            let time = match moment {
                Moment::Ns(ns) => return Ok(ns),
                Moment::OfDay(time) => time,
            };
            let offset = recording.realtime_offset_ns().with_context(|| {
                format!("cannot find {time}: no file of the recording tells its time of day\nhint: give a number of ns")
            })?;
            let ns = (time.as_nanosecond() - offset).max(0);
            anyhow::Ok(u64::try_from(ns).unwrap_or(u64::MAX))
        };
        let (from_ns, to_ns) = (self.since.map(in_ns).transpose()?, self.until.map(in_ns).transpose()?);
        if let (Some(from), Some(to)) = (from_ns, to_ns) {
            ensure!(from < to, "--since is not before --until\nhint: swap them");
        }
        Ok(Selection { select: self, recording, from_ns, to_ns })
    }
}

/// A selection of records of an open recording.
pub struct Selection<'s> {
    select: &'s Select,
    pub recording: Recording,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
}

impl Selection<'_> {
    /// Numbers of the selected streams.
    pub fn streams(&self) -> anyhow::Result<Vec<u32>> {
        if self.select.stream.is_empty() {
            return Ok((0..).take(self.recording.streams().len()).collect());
        }
        self.recording.choose(&self.select.stream).context("--stream")
    }

    /// The streams in order of time, for [`Selection::next`].
    pub fn merge(&self) -> anyhow::Result<Merge<'_>> {
        let mut merge = Merge::new(&self.recording, &self.streams()?);
        if let Some(from) = self.from_ns {
            merge.seek_time(from);
        }
        Ok(merge)
    }

    /// The next selected record. Gaps and damage are never skipped: what is missing may have been selected.
    pub fn next(&self, merge: &mut Merge<'_>, payload: &mut Vec<u8>) -> JournalRead {
        loop {
            match merge.next(payload) {
                JournalRead::Record(record) if self.is_behind(record.record.stamp.generated) => {
                    return JournalRead::Ended;
                }
                JournalRead::Record(record) if !self.takes(&record, payload) => {}
                read => return read,
            }
        }
    }

    /// True if a record is of a selected kind and instrument.
    pub fn takes(&self, record: &Record, payload: &[u8]) -> bool {
        let Select { instrument, kind, .. } = self.select;
        let number = || payload::instrument(show::schema(self.recording.streams(), record), record, payload);
        (kind.is_empty() || kind.contains(&record.record.stamp.kind))
            && (instrument.is_empty() || instrument.contains(&number()))
    }

    /// True if any of these times is in the selection.
    pub fn is_within(&self, times: &RangeInclusive<u64>) -> bool {
        self.from_ns.is_none_or(|from| *times.end() >= from) && !self.is_behind(*times.start())
    }

    /// True if a time is past the end of the selection.
    pub fn is_behind(&self, generated: u64) -> bool {
        self.to_ns.is_some_and(|to| generated >= to)
    }
}
