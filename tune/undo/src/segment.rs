//! The files that contain the records, and which of them form the log. The format: format.md.

use super::{
    History, HostError, PrivateDirectory,
    mark::Chain,
    record::{self, Decoded, u32_at, u64_at},
};
use std::{collections::BTreeMap, io};
use thiserror::Error;

/// Bytes before the first record.
pub(super) const HEADER_BYTES: usize = 32;
/// Size at which a segment is followed by another.
pub(super) const SEGMENT_BYTES_MAX: u64 = 1 << 20;
/// Maximum size of a segment that replaces all before it, and maximum read of any segment. Other segments end
/// with the record that passes [`SEGMENT_BYTES_MAX`].
pub(super) const READ_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of all segments; more cannot be the log of a host.
const LOG_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of segments in a directory.
const SEGMENTS_MAX: usize = 100_000;
const MAGIC: &[u8] = b"LLUNDO";
const VERSION: u8 = 1;

/// Damage in the log that a segment continues, as stated in the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EarlierLog {
    Sound = 0,
    Damaged = 1,
    Accepted = 2,
}

/// The start of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) before: EarlierLog,
    pub(super) continues: u32,
    pub(super) trusted_bytes: u64,
    pub(super) first_sequence: u64,
}

impl SegmentHeader {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([VERSION, self.before as u8]);
        bytes.extend(self.continues.to_le_bytes());
        bytes.extend(self.trusted_bytes.to_le_bytes());
        bytes.extend(self.first_sequence.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..HEADER_BYTES)?;
        let is_ours = head.starts_with(MAGIC) && head.get(6) == Some(&VERSION);
        if !is_ours || head.get(..28).map(crc32fast::hash) != u32_at(head, 28) {
            return None;
        }
        let before = match head.get(7)? {
            0 => EarlierLog::Sound,
            1 => EarlierLog::Damaged,
            2 => EarlierLog::Accepted,
            _ => return None,
        };
        let continues = u32_at(head, 8)?;
        Some(Self { before, continues, trusted_bytes: u64_at(head, 12)?, first_sequence: u64_at(head, 20)? })
    }
}

/// A position from which on the log cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the undo log is damaged: {what}, in {segment} at byte {offset}; later records there are not used")]
pub struct LogDamage {
    /// File name of the damaged segment.
    pub segment: String,
    /// Offset in the segment, in bytes.
    pub offset: u64,
    pub what: String,
}

/// The end of a record that was being written when the process ended or the power failed. Its step had not
/// started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{segment}: {bytes} bytes of a record truncated by a crash at byte {offset}; they are not used")]
pub struct TornTail {
    /// File name of its segment.
    pub segment: String,
    /// Offset of the torn record.
    pub offset: u64,
    pub bytes: u64,
}

/// Everything valid in a log's directory.
#[derive(Debug, Default)]
pub struct Inspection {
    pub history: History,
    /// Bytes of all segment files.
    pub(super) total_bytes: u64,
    /// Segments that a later one replaces: leftovers of a compaction interrupted by a crash.
    pub(super) stale: Vec<u32>,
    /// The last segment of the log, or 0.
    pub(super) segment: u32,
    /// Size of its valid part.
    pub(super) good_bytes: u64,
    /// True if the last segment ends there.
    pub(super) is_whole: bool,
    /// The highest number of any segment file.
    pub(super) highest: u32,
    pub(super) next_sequence: u64,
    /// Digests of the records, for marks.
    pub(super) chain: Chain,
    /// A record at the end of the log that a crash truncated.
    pub torn: Option<TornTail>,
    /// Start of the untrusted part of the log.
    pub damage: Option<LogDamage>,
}

/// File name of a segment.
pub(super) fn name(number: u32) -> String {
    format!("segment-{number:08}")
}

impl Inspection {
    pub(super) fn empty() -> Self {
        Self { next_sequence: 1, is_whole: true, ..Self::default() }
    }
}

/// Reads the log in `dir`.
pub(super) fn scan(dir: &PrivateDirectory) -> Result<Inspection, HostError> {
    let (mut files, mut total) = (BTreeMap::new(), 0u64);
    for file_name in dir.names()? {
        let number = file_name.strip_prefix("segment-").and_then(|number| number.parse::<u32>().ok());
        let Some(number) = number.filter(|n| *n > 0 && name(*n) == file_name) else { continue };
        let Some(bytes) = dir.read(&file_name, READ_BYTES_MAX)? else { continue };
        total += length(&bytes);
        // The headers of all segments decide which ones form the log.
        files.insert(number, bytes);
        if files.len() > SEGMENTS_MAX || total > LOG_BYTES_MAX {
            let bound = format!(
                "more than {SEGMENTS_MAX} segments or {LOG_BYTES_MAX} bytes; move the directory away"
            );
            let path = dir.path().display().to_string();
            return Err(HostError::io("read", &path, io::Error::other(bound)));
        }
    }
    let mut scan = chain(&files);
    scan.total_bytes = total;
    Ok(scan)
}

/// Follows the segments from the first one.
fn chain(files: &BTreeMap<u32, Vec<u8>>) -> Inspection {
    let highest = files.keys().next_back().copied().unwrap_or(0);
    let mut scan = Inspection { highest, ..Inspection::empty() };
    while let Some((number, header)) = successor(files, &scan) {
        if scan.segment == 0 && header.before == EarlierLog::Sound {
            scan.stale = files.range(..number).map(|(number, _)| *number).collect();
        }
        scan.take(number, header, files.get(&number).map(Vec::as_slice).unwrap_or_default());
    }
    // Segments after the last valid one were part of the log, or were about to be.
    for (number, bytes) in files.range(scan.segment + 1..) {
        let is_cut = bytes.len() < HEADER_BYTES || bytes.iter().all(|b| *b == 0);
        let segment = name(*number);
        if is_cut {
            scan.torn = Some(TornTail { segment, offset: 0, bytes: length(bytes) });
            scan.is_whole = false;
        } else if scan.damage.is_none() {
            let what = match SegmentHeader::decode(bytes) {
                Some(_) => "this segment continues more than remains of the previous one",
                None => "this segment does not start like one of this version",
            };
            scan.damage = Some(LogDamage { segment, offset: 0, what: what.to_owned() });
        }
    }
    scan
}

/// The segment that continues after `scan`: the latest of those that continue no more than the valid part.
fn successor(files: &BTreeMap<u32, Vec<u8>>, scan: &Inspection) -> Option<(u32, SegmentHeader)> {
    let later = files.range(scan.segment + 1..).rev();
    later
        .filter_map(|(number, bytes)| Some((*number, SegmentHeader::decode(bytes)?)))
        .find(|(_, h)| h.continues == scan.segment && h.trusted_bytes == scan.good_bytes)
}

impl Inspection {
    fn take(&mut self, number: u32, header: SegmentHeader, bytes: &[u8]) {
        match header.before {
            EarlierLog::Sound | EarlierLog::Accepted => self.damage = None,
            EarlierLog::Damaged if self.damage.is_some() => {}
            EarlierLog::Damaged => {
                let what = "this segment states that earlier records are lost".to_owned();
                self.damage = Some(LogDamage { segment: name(number), offset: 0, what });
            }
        }
        (self.torn, self.is_whole) = (None, true);
        self.segment = number;
        if header.first_sequence != self.next_sequence {
            self.end_damaged(0, "its first sequence number is not the next one");
            return;
        }
        let mut at = HEADER_BYTES;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            self.good_bytes = u64::try_from(at).unwrap_or(u64::MAX);
            match record::decode(rest, self.next_sequence) {
                Decoded::Record(record, length) => {
                    self.chain.push(&record.event, rest.get(..length).unwrap_or_default());
                    self.history.fold(*record);
                    self.next_sequence += 1;
                    at += length;
                }
                Decoded::End => return,
                Decoded::Torn => {
                    self.is_whole = false;
                    self.torn = Some(TornTail {
                        segment: name(number),
                        offset: self.good_bytes,
                        bytes: length(rest),
                    });
                    return;
                }
                Decoded::Damaged(what) => return self.end_damaged(self.good_bytes, what),
            }
        }
    }

    fn end_damaged(&mut self, offset: u64, what: &str) {
        self.is_whole = false;
        self.good_bytes = offset;
        self.damage = Some(LogDamage { segment: name(self.segment), offset, what: what.to_owned() });
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
