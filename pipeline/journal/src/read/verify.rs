//! Checks every byte of a recording.

#[cfg(test)]
mod tests;

use super::{
    Block, Gap, Recording,
    file::{DataFile, FileEnd},
    index::IndexOrigin,
    inspect::Inspector,
    recording::streams_of,
};
use crate::{
    damage::{DamagedPlace, Problem},
    layout::{BlockHead, BlockKind},
};
use serde::Serialize;
use std::{collections::BTreeMap, path::PathBuf};

/// Largest number of damaged places and gaps kept individually; all are counted.
const KEPT_MAX: usize = 10_000;

/// Report on one data file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileReport {
    pub file: PathBuf,
    pub bytes: u64,
    /// Number of blocks of all kinds.
    pub blocks: u64,
    /// Readable records of the file.
    pub records: u64,
    /// The file ends as its writer intended.
    pub has_end: bool,
    /// Problem of its index file, which costs time but no record; `None` if it is valid or not needed.
    pub index_problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct StreamReport {
    /// Its number in the recording.
    pub stream: u32,
    pub name: String,
    /// Name of the schema of its payloads; empty if unknown.
    pub schema: String,
    /// Readable records of the stream.
    pub records: u64,
    /// Sequence of the first record; `None` without records.
    pub first_sequence: Option<u64>,
    /// Sequence of the last record.
    pub last_sequence: Option<u64>,
    /// Earliest generation time, ns.
    pub generated_min: Option<u64>,
    /// Latest generation time, ns.
    pub generated_max: Option<u64>,
    /// Bytes of its blocks, including heads.
    pub bytes: u64,
    /// Number of times that its writer was replaced.
    pub epochs: u64,
    pub gaps: GapTotal,
}

/// Totals of gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct GapTotal {
    pub gaps: u64,
    /// Records missing in the gaps.
    pub records: u64,
    /// Missing records that were published while no recorder ran, or deleted with the oldest files.
    pub missed: u64,
}

impl GapTotal {
    fn add(&mut self, gap: &Gap) {
        self.gaps += 1;
        self.records = self.records.saturating_add(gap.count());
        self.missed = self.missed.saturating_add(gap.missed());
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct JournalVerification {
    pub folder: PathBuf,
    /// Its number in hexadecimal; `None` if unreadable.
    pub recording: Option<String>,
    /// A recorder is writing it.
    pub is_live: bool,
    /// What the streams' times need for the time of day, ns since 1970 in UTC; `None` if no file has a clock.
    pub realtime_offset_ns: Option<i128>,
    /// Every record was checked, not only the heads of blocks.
    pub is_whole: bool,
    pub files: Vec<FileReport>,
    pub streams: Vec<StreamReport>,
    /// The first gaps, up to a limit.
    pub gaps: Vec<Gap>,
    /// The first damaged places, up to a limit.
    pub damages: Vec<DamagedPlace>,
    /// Number of damaged places, including those beyond the limit.
    pub damage_count: u64,
}

impl JournalVerification {
    /// Number of readable records in all streams.
    pub fn records(&self) -> u64 {
        self.streams.iter().map(|stream| stream.records).sum()
    }

    /// Totals of the gaps of all streams.
    pub fn gap_total(&self) -> GapTotal {
        self.streams.iter().fold(GapTotal::default(), |total, stream| GapTotal {
            gaps: total.gaps + stream.gaps.gaps,
            records: total.records.saturating_add(stream.gaps.records),
            missed: total.missed.saturating_add(stream.gaps.missed),
        })
    }

    /// Returns true if nothing is damaged, and no record is missing that was published while a recorder ran and not
    /// deleted on purpose.
    pub fn is_complete(&self) -> bool {
        let gaps = self.gap_total();
        self.damage_count == 0 && gaps.records == gaps.missed
    }

    fn damaged(&mut self, damage: DamagedPlace) {
        self.damage_count += 1;
        if self.damages.len() < KEPT_MAX {
            self.damages.push(damage);
        }
    }
}

/// State of a stream during the verification.
#[derive(Debug, Default)]
struct StreamProgress {
    report: StreamReport,
    expected: Option<u64>,
    epoch: Option<u64>,
}

/// Verifies a recording: with `is_whole` every record of every block, otherwise only the heads. `progress` gets
/// bytes done and total bytes.
pub fn verify(
    recording: &Recording,
    is_whole: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> JournalVerification {
    let mut verifier = Verifier {
        out: JournalVerification {
            folder: recording.folder().to_owned(),
            recording: recording.number().map(|number| format!("{number:016x}")),
            is_live: recording.is_live(),
            realtime_offset_ns: recording.realtime_offset_ns(),
            is_whole,
            ..JournalVerification::default()
        },
        seen: BTreeMap::new(),
        block: Block::default(),
    };
    (0..)
        .zip(recording.streams())
        .filter_map(|(stream, _)| recording.deleted(stream))
        .for_each(|gap| verifier.lost(gap));
    let total = recording.files().iter().map(|file| file.bytes).sum();
    let (mut done, mut inspector) = (0, Inspector::new(recording));
    for (at, start) in recording.files().iter().enumerate() {
        let damages = inspector.next_file().unwrap_or_default();
        match recording.open_file(at) {
            Ok(file) => {
                verifier.file(recording, at, &file, damages, &mut |bytes| progress(done + bytes, total));
            }
            Err(_) => damages.into_iter().for_each(|damage| verifier.out.damaged(damage)),
        }
        done += start.bytes;
        progress(done, total);
    }
    inspector.next_file().into_iter().flatten().for_each(|damage| verifier.out.damaged(damage));
    verifier.finish(recording)
}

struct Verifier {
    out: JournalVerification,
    seen: BTreeMap<u32, StreamProgress>,
    block: Block,
}

impl Verifier {
    /// Verifies a file, whose other damage is known.
    fn file(
        &mut self,
        recording: &Recording,
        at: usize,
        file: &DataFile,
        damages: Vec<DamagedPlace>,
        progress: &mut dyn FnMut(u64),
    ) {
        // Uses the same blocks as readers, so that the counts match what they read.
        let index = recording.index(at, file);
        let has_end = matches!(index.scan.end, FileEnd::Ended { .. });
        let index_problem = match &index.origin {
            IndexOrigin::Rebuilt(problem) => Some(problem.clone()),
            IndexOrigin::Missing if has_end => Some("it is missing".to_owned()),
            _ => None,
        };
        self.out.files.push(FileReport {
            file: file.path.clone(),
            bytes: file.bytes,
            blocks: crate::bytes::wide(index.scan.blocks.len()),
            records: 0,
            has_end,
            index_problem,
        });
        let mut damages = damages.into_iter().peekable();
        for head in &index.scan.blocks {
            let is_due = |damage: &DamagedPlace| damage.file != file.path || damage.offset <= head.offset;
            while let Some(damage) = damages.next_if(is_due) {
                self.out.damaged(damage);
            }
            match head.kind {
                BlockKind::Records | BlockKind::Gap => self.of_stream(file, head),
                BlockKind::Manifest => self.begin_streams(file, head),
                BlockKind::End => {}
            }
            progress(head.offset);
        }
        damages.for_each(|damage| self.out.damaged(damage));
    }

    /// Applies a list of streams, which contains the first sequence of each.
    fn begin_streams(&mut self, file: &DataFile, head: &BlockHead) {
        for (stream, entry) in (0_u32..).zip(streams_of(file, head).unwrap_or_default()) {
            let seen = self.seen.entry(stream).or_default();
            seen.expected = seen.expected.or(entry.next());
        }
    }

    fn of_stream(&mut self, file: &DataFile, head: &BlockHead) {
        let stream = head.stream;
        let expected = self.seen.entry(stream).or_default().expected;
        if let Some(expected) = expected.filter(|expected| head.first_sequence < *expected) {
            let problem = Problem::Order { stream, found: head.first_sequence, expected };
            self.out.damaged(file.damage(head.offset, head.bytes(), problem));
            return;
        }
        if let Some(from) = expected.filter(|expected| head.first_sequence > *expected) {
            self.lost(Gap { stream, from, to: head.first_sequence, reason: None });
        }
        let behind = head.last_sequence + 1;
        let lost = if head.kind == BlockKind::Gap {
            self.lost(Gap::of(head));
            0
        } else {
            let good = self.read(file, head);
            self.count(head, good);
            // Records lost in a damaged block are reported with the next one.
            self.block_lost(head)
        };
        if let Some(seen) = self.seen.get_mut(&stream) {
            seen.expected = Some(behind - lost);
        }
    }

    /// Unreadable records of the present block.
    fn block_lost(&self, head: &BlockHead) -> u64 {
        self.seen
            .get(&head.stream)
            .and_then(|seen| seen.report.last_sequence)
            .filter(|last| *last >= head.first_sequence)
            .map_or_else(|| u64::from(head.records), |last| head.last_sequence - last)
    }

    /// Reads a whole block, and returns the number of intact records; from its head, if heads are enough.
    fn read(&mut self, file: &DataFile, head: &BlockHead) -> u32 {
        if !self.out.is_whole {
            return head.records;
        }
        let mut records = 0;
        if let Some(damage) = self.block.load(file, head) {
            self.out.damaged(damage);
        }
        while let Some(read) = self.block.next(file) {
            match read {
                Ok(_) => records += 1,
                Err(damage) => self.out.damaged(damage),
            }
        }
        records
    }

    fn count(&mut self, head: &BlockHead, records: u32) {
        if let Some(file) = self.out.files.last_mut() {
            file.records += u64::from(records);
        }
        let seen = self.seen.entry(head.stream).or_default();
        if seen.epoch != Some(head.epoch) {
            seen.epoch = Some(head.epoch);
            seen.report.epochs += 1;
        }
        let report = &mut seen.report;
        report.bytes += head.bytes();
        if records == 0 {
            return;
        }
        report.records += u64::from(records);
        report.first_sequence.get_or_insert(head.first_sequence);
        report.last_sequence = Some(head.first_sequence + u64::from(records) - 1);
        let min = report.generated_min.unwrap_or(u64::MAX).min(head.generated_min);
        report.generated_min = Some(min);
        report.generated_max = Some(report.generated_max.unwrap_or(0).max(head.generated_max));
    }

    fn lost(&mut self, gap: Gap) {
        self.seen.entry(gap.stream).or_default().report.gaps.add(&gap);
        if self.out.gaps.len() < KEPT_MAX {
            self.out.gaps.push(gap);
        }
    }

    fn finish(mut self, recording: &Recording) -> JournalVerification {
        for (number, stream) in (0_u32..).zip(recording.streams()) {
            let expected = self.seen.get(&number).and_then(|seen| seen.expected);
            if let (Some(from), Some(to)) = (expected, stream.next())
                && from < to
            {
                self.lost(Gap { stream: number, from, to, reason: None });
            }
            let mut report = self.seen.remove(&number).unwrap_or_default().report;
            report.stream = number;
            report.name.clone_from(&stream.name);
            report.schema.clone_from(&stream.schema);
            self.out.streams.push(report);
        }
        for (number, seen) in self.seen {
            let name = format!("stream-{number}");
            self.out.streams.push(StreamReport { stream: number, name, ..seen.report });
        }
        self.out
    }
}
