//! The state of a target before and after a step.

use lowlat_host::CpuSet;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Maximum size of a stored file in bytes. The largest are kernel images with their initial RAM disk.
pub const FILE_BYTES_MAX: u64 = 128 << 20;
/// Maximum size of a value in bytes; the kernel's own attributes are at most a page.
pub const VALUE_BYTES_MAX: u64 = 64 << 10;

/// Seconds and nanoseconds since 1970, as the file system stores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTime {
    /// Whole seconds since 1970-01-01, negative before.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanoseconds: i64,
}

/// A regular file: its content and metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    pub bytes: Vec<u8>,
    /// Permission bits, at most 0o7777.
    pub mode: u32,
    /// Owner, as a user ID.
    pub uid: u32,
    pub gid: u32,
    /// Modification time. `None` in a wanted state means the time of writing.
    pub mtime: Option<FileTime>,
    /// Extended attributes that could be read. A file that replaces another keeps its attributes.
    pub xattrs: BTreeMap<String, Vec<u8>>,
}

impl FileState {
    /// A file owned by root with these bytes and mode, like most files in /etc.
    pub fn of_root(bytes: impl Into<Vec<u8>>, mode: u32) -> Self {
        Self { bytes: bytes.into(), mode, uid: 0, gid: 0, mtime: None, xattrs: BTreeMap::new() }
    }
}

/// The state of a place. Absence is a separate state, different from an empty file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Absent,
    /// A value as text, without the newline that the kernel adds.
    Value(String),
    File(FileState),
    /// - `to`: target, as written in the link.
    /// - `uid`: owner, as a user ID.
    /// - `mtime`: the link's own time. `None` in a wanted state means the time of writing.
    /// - `context`: its label of SELinux, if it could be read.
    Link {
        to: String,
        uid: u32,
        gid: u32,
        mtime: Option<FileTime>,
        context: Option<String>,
    },
}

impl State {
    /// The text of a value.
    pub fn into_value(self) -> Option<String> {
        if let Self::Value(text) = self { Some(text) } else { None }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => write!(f, "absent"),
            Self::Value(text) => match text.trim_end().split_once('\n') {
                Some((line, more)) => write!(f, "{line:?} (and {} more lines)", more.lines().count()),
                None => write!(f, "{:?}", text.trim_end()),
            },
            Self::File(file) => {
                let (mode, uid, gid, length) = (file.mode, file.uid, file.gid, file.bytes.len());
                write!(f, "a file of {length} bytes, mode {mode:04o}, owner {uid}:{gid}")
            }
            Self::Link { to, .. } => write!(f, "a link to {to}"),
        }
    }
}

/// When two states count as the same. It is data, not a function, because the rollback happens in another
/// process, which has only the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// Character by character, without trailing white space.
    #[default]
    Exact,
    /// Word by word; the kernel separates words with spaces or tabs ("4096 87380" in tcp_rmem).
    Words,
    /// As integers, decimal or with 0x.
    Number,
    /// As CPU lists: "0-3" equals "0,1,2,3".
    CpuList,
    /// As CPU masks: "ff" equals "00000000,000000ff".
    CpuMask,
    /// The word in brackets, of several: "never" equals "always madvise [never]".
    Choice,
    /// Word by word up to the shorter length: "SCHED_FIFO 2" equals "SCHED_FIFO 2 reset-on-fork". Additional
    /// words are kept for restoring but not compared.
    Leading,
    /// As states of a systemd unit, "active, enabled", by their first lines. The run state counts only as up
    /// (active, activating, reloading, refreshing) or down (inactive, failed, deactivating, maintenance); the
    /// second word counts if both have one. A missing unit is down and disabled.
    Service,
    /// As a TuneD profile and its mode (auto, manual, unset), "virtual-guest auto". A mode missing in one of
    /// them is not compared.
    Profile,
}

impl Comparison {
    /// True if `a` and `b` mean the same. Text in another format is compared character by character.
    pub fn same_text(self, a: &str, b: &str) -> bool {
        let (a, b) = (a.trim_end(), b.trim_end());
        match self {
            Self::Exact => a == b,
            Self::Words => a.split_whitespace().eq(b.split_whitespace()),
            Self::Number => is_same(a, b, number),
            Self::CpuList => is_same(a, b, |text| CpuSet::parse_list(text).ok()),
            Self::CpuMask => is_same(a, b, |text| CpuSet::parse_mask(text).ok()),
            Self::Choice => chosen(a) == chosen(b),
            Self::Leading => {
                let mut pairs = a.split_whitespace().zip(b.split_whitespace()).peekable();
                a == b || (pairs.peek().is_some() && pairs.all(|(a, b)| a == b))
            }
            Self::Service => Pair::of_service(a).same(&Pair::of_service(b)),
            Self::Profile => Pair::of_profile(a).same(&Pair::of_profile(b)),
        }
    }

    /// True if two states are the same for apply and rollback. For files, bytes, mode and owner count. Times do not
    /// (touching a file does not change it), nor do extended attributes (neither does relabelling).
    pub fn same(self, a: &State, b: &State) -> bool {
        match (a, b) {
            (State::Absent, State::Absent) => true,
            (State::Value(a), State::Value(b)) => self.same_text(a, b),
            (State::File(a), State::File(b)) => {
                (&a.bytes, a.mode, a.uid, a.gid) == (&b.bytes, b.mode, b.uid, b.gid)
            }
            (State::Link { to: a, .. }, State::Link { to: b, .. }) => a == b,
            (State::Absent, State::Value(text)) | (State::Value(text), State::Absent) => {
                self == Self::Service && Pair::of_service(text).same(&Pair::of_service(NO_SERVICE))
            }
            _ => false,
        }
    }

    /// True if `present` lies between `a` and `b`. A unit's run state and its enablement are two things, and so are a
    /// profile and its mode. A crash, or an earlier step (a stopped socket also stops its service), may leave one
    /// changed and the other not. Other comparisons have no intermediate state.
    pub fn is_between(self, present: &State, a: &State, b: &State) -> bool {
        let (State::Value(present), State::Value(a), State::Value(b)) = (present, a, b) else { return false };
        let pair = match self {
            Self::Service => Pair::of_service,
            Self::Profile => Pair::of_profile,
            _ => return false,
        };
        let (present, a, b) = (pair(present), pair(a), pair(b));
        let is_one_of = |word: Option<&str>| {
            word.is_none() || a.second.is_none() || b.second.is_none() || [a.second, b.second].contains(&word)
        };
        (present.first == a.first || present.first == b.first) && is_one_of(present.second)
    }
}

/// The state that a missing unit counts as.
const NO_SERVICE: &str = "inactive, disabled";

/// A state with two parts, the second of which may be missing.
#[derive(Debug, PartialEq, Eq)]
struct Pair<'a> {
    first: Vec<&'a str>,
    second: Option<&'a str>,
}

impl<'a> Pair<'a> {
    /// The run state of a unit (up, down, or the word itself if it is not systemd's), and its enablement.
    fn of_service(text: &'a str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let (run, enablement) = match line.split_once(',') {
            Some((run, enablement)) => (run.trim(), Some(enablement.trim())),
            None => (line.trim(), None),
        };
        let run = match run {
            "active" | "activating" | "reloading" | "refreshing" => "up",
            "inactive" | "failed" | "deactivating" | "maintenance" => "down",
            other => other,
        };
        Self { first: vec![run], second: enablement }
    }

    /// The words of a profile, and its mode.
    fn of_profile(text: &'a str) -> Self {
        let mut first: Vec<&str> = text.split_whitespace().collect();
        let is_mode = |word: &&str| matches!(*word, "auto" | "manual" | "unset");
        let second = if first.len() > 1 { first.pop_if(|word| is_mode(word)) } else { None };
        Self { first, second }
    }

    fn same(&self, other: &Self) -> bool {
        let second = self.second.zip(other.second);
        self.first == other.first && second.is_none_or(|(a, b)| a == b)
    }
}

fn is_same<T: PartialEq>(a: &str, b: &str, parse: impl Fn(&str) -> Option<T>) -> bool {
    a == b || parse(a).is_some_and(|a| parse(b) == Some(a))
}

fn number(text: &str) -> Option<i128> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The word in brackets, or the whole text if there are none. It is also what must be written to choose it.
pub(super) fn chosen(text: &str) -> &str {
    let inner = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    inner.unwrap_or(text).trim()
}

/// Returns what an attribute that shows `choices` ("always madvise [never]") shows after choosing `word`; `None` if it
/// shows no choices, or `word` is not one of them.
pub(super) fn with_choice(choices: &str, word: &str) -> Option<String> {
    let is_one = |name: &str| name.trim_matches(['[', ']']) == word;
    if !choices.contains('[') || !choices.split_whitespace().any(is_one) {
        return None;
    }
    let shown = choices.split_inclusive(char::is_whitespace).map(|piece| {
        let name = piece.trim_end();
        let space = piece.strip_prefix(name).unwrap_or_default();
        let name = name.trim_matches(['[', ']']);
        if name == word { format!("[{name}]{space}") } else { format!("{name}{space}") }
    });
    Some(shown.collect())
}
