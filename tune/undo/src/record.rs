//! One record of the log: its bytes and meaning. The format: format.md.

use super::{
    Comparison, FileState, FileTime, HostError, State,
    store::{hash_of, hex, unhex},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Length of a record's header, in bytes.
pub(super) const HEAD_BYTES: usize = 20;
/// Maximum size of a payload in bytes.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The plan that it belongs to.
    pub plan: String,
    /// The boot in which it was written, /proc/sys/kernel/random/boot_id; "unknown" if there is none.
    pub boot: String,
    /// Time of writing in milliseconds since 1970. Informational only.
    pub unix_ms: u64,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The plan is started or resumed.
    Begin,
    /// The step is about to change the host. Durable before the host is changed.
    Intend {
        step: String,
        target: TargetSpec,
        /// Current state, or the state before the earlier entry that this one replaces.
        old: LoggedState,
        new: LoggedState,
        /// Directories that the step will create, outermost first.
        directories: Vec<String>,
        /// True if this replaces an earlier entry of the same step, whose change no longer exists.
        again: bool,
    },
    /// The step has changed the host, and the wanted state was read back.
    Done { step: String, read_back: LoggedState },
    /// `present`: the remaining state, if the old state could not be restored at once.
    Failed { step: String, reason: String, present: Option<LoggedState> },
    /// The host has the state from before the step.
    Undone { step: String },
    /// A restart of the host reverted the change; nothing was touched.
    Expired { step: String },
    /// The plan is no longer in progress.
    End,
    /// The first record of a compacted log: the end of the log that it replaces.
    /// - `sequence`: [`LogMark::sequence`](super::LogMark::sequence) of that log.
    /// - `digest`: [`LogMark::digest`](super::LogMark::digest) of it.
    Compacted { sequence: u64, digest: String },
}

/// The target of a step, described so that another process can roll it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// The kind, by [`Target::kind`](super::Target::kind): "value", "file".
    pub kind: String,
    /// Identifier within the kind; for "value" and "file" the path.
    pub name: String,
    /// When two of its states count as the same.
    pub comparison: Comparison,
}

impl TargetSpec {
    /// An attribute of the kernel: sysfs, procfs, debugfs.
    pub fn value(path: impl Into<String>, comparison: Comparison) -> Self {
        Self { kind: "value".to_owned(), name: path.into(), comparison }
    }

    /// A regular file, a link, or their absence.
    pub fn file(path: impl Into<String>) -> Self {
        Self { kind: "file".to_owned(), name: path.into(), comparison: Comparison::Exact }
    }

    /// The text that the target is to have, if it can only have texts.
    pub fn wanted_value<'a>(&self, to: &'a State) -> Result<&'a str, HostError> {
        match to {
            State::Value(text) => Ok(text),
            _ => Err(HostError::wrong_state(&self.kind, &self.name, to)),
        }
    }
}

/// A [`State`] as stored in the log: file contents are stored beside the log, by their hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoggedState {
    Absent,
    Value(String),
    File {
        /// SHA-256 of its bytes, which is also the name of the stored content.
        sha256: String,
        /// Length of its content in bytes.
        bytes: u64,
        /// Permission bits, at most 0o7777.
        mode: u32,
        uid: u32,
        gid: u32,
        /// Modification time; `None` for a file that is not yet written.
        mtime: Option<FileTime>,
        /// Extended attributes, with values in hexadecimal.
        xattrs: BTreeMap<String, String>,
    },
    /// - `mtime`: modification time of the link itself.
    /// - `context`: its label of SELinux.
    Link {
        to: String,
        uid: u32,
        gid: u32,
        mtime: Option<FileTime>,
        context: Option<String>,
    },
}

impl LoggedState {
    /// Converts `state` for the log. Its content, if any, must be in the store.
    pub(super) fn of(state: &State) -> Self {
        match state {
            State::Absent => Self::Absent,
            State::Value(text) => Self::Value(text.clone()),
            State::Link { to, uid, gid, mtime, context } => {
                Self::Link { to: to.clone(), uid: *uid, gid: *gid, mtime: *mtime, context: context.clone() }
            }
            State::File(file) => Self::File {
                sha256: hash_of(&file.bytes),
                bytes: u64::try_from(file.bytes.len()).unwrap_or(u64::MAX),
                mode: file.mode,
                uid: file.uid,
                gid: file.gid,
                mtime: file.mtime,
                xattrs: file.xattrs.iter().map(|(name, value)| (name.clone(), hex(value))).collect(),
            },
        }
    }

    /// True if `present` is this state, by `comparison`. For a file only the bytes count, for a link only its target.
    pub fn describes(&self, present: &State, comparison: Comparison) -> bool {
        match (self, present) {
            (Self::File { sha256, .. }, State::File(file)) => *sha256 == hash_of(&file.bytes),
            (Self::Link { to, .. }, State::Link { to: now, .. }) => to == now,
            (Self::Value(text), State::Value(_)) => comparison.same(&State::Value(text.clone()), present),
            (Self::Absent, State::Absent) => true,
            _ => false,
        }
    }

    /// The state, with the content that `content` finds by hash.
    pub(super) fn restore<E>(&self, content: impl FnOnce(&str) -> Result<Vec<u8>, E>) -> Result<State, E> {
        Ok(match self {
            Self::Absent => State::Absent,
            Self::Value(text) => State::Value(text.clone()),
            Self::Link { to, uid, gid, mtime, context } => {
                State::Link { to: to.clone(), uid: *uid, gid: *gid, mtime: *mtime, context: context.clone() }
            }
            Self::File { sha256, mode, uid, gid, mtime, xattrs, .. } => State::File(FileState {
                bytes: content(sha256)?,
                mode: *mode,
                uid: *uid,
                gid: *gid,
                mtime: *mtime,
                xattrs: xattrs
                    .iter()
                    .filter_map(|(name, value)| Some((name.clone(), unhex(value)?)))
                    .collect(),
            }),
        })
    }
}

/// Encodes a record; `None` if it exceeds the maximum length.
pub(super) fn encode(sequence: u64, record: &Record) -> Option<Vec<u8>> {
    let payload = serde_json::to_vec(record).ok().filter(|p| p.len() <= PAYLOAD_BYTES_MAX)?;
    let length = u32::try_from(payload.len()).ok()?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(crc32fast::hash(&payload).to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(payload);
    Some(bytes)
}

/// Result of decoding the bytes at a position of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// A valid record, and its length including the header.
    Record(Box<Record>, usize),
    /// The end: no byte follows.
    End,
    /// A record that was being written when the power failed or the process ended.
    Torn,
    /// Bytes that were never written like this, with a description of the fault.
    Damaged(&'static str),
}

/// Reads the record at the start of `bytes`.
pub(super) fn decode(bytes: &[u8], sequence: u64) -> Decoded {
    if bytes.is_empty() {
        return Decoded::End;
    }
    // A file system may have extended the file before the bytes arrived: all zeros were never a record.
    let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES).filter(|_| bytes.iter().any(|b| *b != 0))
    else {
        return Decoded::Torn;
    };
    let (Some(length), Some(number), Some(payload_crc), Some(head_crc)) =
        (u32_at(head, 0), u64_at(head, 4), u32_at(head, 12), u32_at(head, 16))
    else {
        return Decoded::Torn;
    };
    if head.get(..16).map(crc32fast::hash) != Some(head_crc) {
        return Decoded::Damaged("the checksum of a record's header is wrong");
    }
    if number != sequence {
        return Decoded::Damaged("a sequence number is not the next one");
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > PAYLOAD_BYTES_MAX {
        return Decoded::Damaged("a record exceeds the maximum length");
    }
    let Some(payload) = rest.get(..length) else { return Decoded::Torn };
    if crc32fast::hash(payload) != payload_crc {
        return Decoded::Damaged("the checksum of a record is wrong");
    }
    match serde_json::from_slice(payload) {
        Ok(record) => Decoded::Record(Box::new(record), HEAD_BYTES + length),
        Err(_) => Decoded::Damaged("a record contains something that this version does not know"),
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
