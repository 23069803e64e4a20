//! One record of the log: its bytes, and what it says.
//! The bytes: format.md.

use super::{Comparison, FileState, FileTime, State, hash};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes before the payload.
pub(super) const HEAD_BYTES: usize = 20;
/// Bytes of a payload at most.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The plan it belongs to.
    pub plan: String,
    /// The boot it was written in, /proc/sys/kernel/random/boot_id; "unknown" where there is none.
    pub boot: String,
    /// When it was written, milliseconds since 1970. For people only; nothing is decided by it.
    pub unix_ms: u64,
    /// What happened.
    pub event: Event,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The plan is begun, or taken up again.
    Begin,
    /// The step is about to change the host. Durable before the host is touched.
    Intend {
        /// The step's id.
        step: String,
        /// What it changes.
        target: TargetSpec,
        /// What is there now; or what was there before the earlier entry whose place this takes.
        old: LoggedState,
        /// What will be there.
        new: LoggedState,
        /// Directories that the step will make, outermost first.
        directories: Vec<String>,
        /// Whether this takes the place of an earlier entry of the same step, whose change is no longer there.
        again: bool,
    },
    /// The step has changed the host, and what was read back is what was wanted.
    Done {
        /// The step's id.
        step: String,
        /// What was read back.
        read_back: LoggedState,
    },
    /// The step failed.
    Failed {
        /// The step's id.
        step: String,
        /// Why.
        reason: String,
        /// What it left, when the old state could not be restored at once.
        present: Option<LoggedState>,
    },
    /// The host is again as before the step.
    Undone {
        /// The step's id.
        step: String,
    },
    /// The host was started again, which has taken the change away; nothing was touched.
    Expired {
        /// The step's id.
        step: String,
    },
    /// Nothing more of the plan is under way.
    End,
    /// The log was written anew, and this is its first record: where the log that it replaces ended.
    Compacted {
        /// [`LogMark::sequence`](super::LogMark::sequence) of that log.
        sequence: u64,
        /// [`LogMark::digest`](super::LogMark::digest) of it.
        digest: String,
    },
}

/// What a step changes, so that another process can undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// The kind, by [`Target::kind`](super::Target::kind): "value", "file".
    pub kind: String,
    /// Which one; for "value" and "file" the path.
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
}

/// A [`State`] as the log has it: contents of files are kept beside the log, by their hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoggedState {
    /// Nothing is there.
    Absent,
    /// A value.
    Value(String),
    /// A regular file.
    File {
        /// SHA-256 of its bytes, and the name they are kept by.
        sha256: String,
        /// Its length.
        bytes: u64,
        /// Permission bits.
        mode: u32,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Time of the last change; none for a file that was yet to be written.
        mtime: Option<FileTime>,
        /// Extended attributes, their values in hexadecimal.
        xattrs: BTreeMap<String, String>,
    },
    /// A symbolic link.
    Link {
        /// Where to.
        to: String,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// The link's own time.
        mtime: Option<FileTime>,
    },
}

impl LoggedState {
    /// What the log says of `state`. Its content, if any, must be in the store.
    pub(super) fn of(state: &State) -> Self {
        match state {
            State::Absent => Self::Absent,
            State::Value(text) => Self::Value(text.clone()),
            State::Link { to, uid, gid, mtime } => {
                Self::Link { to: to.clone(), uid: *uid, gid: *gid, mtime: *mtime }
            }
            State::File(file) => Self::File {
                sha256: hash::of(&file.bytes),
                bytes: u64::try_from(file.bytes.len()).unwrap_or(u64::MAX),
                mode: file.mode,
                uid: file.uid,
                gid: file.gid,
                mtime: file.mtime,
                xattrs: file.xattrs.iter().map(|(name, value)| (name.clone(), hash::hex(value))).collect(),
            },
        }
    }

    /// Whether `present` is this state, by `comparison`. Of a file the bytes count alone, of a link its text.
    pub fn describes(&self, present: &State, comparison: Comparison) -> bool {
        match (self, present) {
            (Self::File { sha256, .. }, State::File(file)) => *sha256 == hash::of(&file.bytes),
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
            Self::Link { to, uid, gid, mtime } => {
                State::Link { to: to.clone(), uid: *uid, gid: *gid, mtime: *mtime }
            }
            Self::File { sha256, mode, uid, gid, mtime, xattrs, .. } => State::File(FileState {
                bytes: content(sha256)?,
                mode: *mode,
                uid: *uid,
                gid: *gid,
                mtime: *mtime,
                xattrs: xattrs
                    .iter()
                    .filter_map(|(name, value)| Some((name.clone(), hash::unhex(value)?)))
                    .collect(),
            }),
        })
    }
}

/// The bytes of a record; `None` when it is longer than a record may be.
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

/// What the bytes at some place of a segment are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// A good record, and its length with head.
    Record(Box<Record>, usize),
    /// The end: no byte follows.
    End,
    /// A record that was being written when the power or the process went.
    Torn,
    /// What was never written so: the words say what is wrong.
    Damaged(&'static str),
}

/// Reads the record at the start of `bytes`.
pub(super) fn decode(bytes: &[u8], sequence: u64) -> Decoded {
    if bytes.is_empty() {
        return Decoded::End;
    }
    // A file system may have made the file longer before the bytes came: all zeros were never a record.
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
        return Decoded::Damaged("the checksum of a record's head is wrong");
    }
    if number != sequence {
        return Decoded::Damaged("a sequence number is not the next one");
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > PAYLOAD_BYTES_MAX {
        return Decoded::Damaged("a record is longer than records can be");
    }
    let Some(payload) = rest.get(..length) else { return Decoded::Torn };
    if crc32fast::hash(payload) != payload_crc {
        return Decoded::Damaged("the checksum of a record is wrong");
    }
    match serde_json::from_slice(payload) {
        Ok(record) => Decoded::Record(Box::new(record), HEAD_BYTES + length),
        Err(_) => Decoded::Damaged("a record says what this version does not know"),
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
