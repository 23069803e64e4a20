//! What a target is before and after a step.

use lowlat_host::CpuSet;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Bytes of one file that are kept at most.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Bytes of one value at most; the kernel's own attributes end at a page.
pub const VALUE_BYTES_MAX: u64 = 64 << 10;

/// Seconds and nanoseconds since 1970, as the file system has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTime {
    /// Whole seconds since 1970-01-01, negative before.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanoseconds: i64,
}

/// A regular file: its bytes, and what stands beside them in the inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// Content, byte for byte.
    pub bytes: Vec<u8>,
    /// Permission bits, 0o7777 at most.
    pub mode: u32,
    /// Owner, a user number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Time of the last change of the content. Wanted `None`: the moment of writing.
    pub mtime: Option<FileTime>,
    /// Extended attributes that could be read. A file that replaces another takes over its attributes.
    pub xattrs: BTreeMap<String, Vec<u8>>,
}

impl FileState {
    /// A file of root's with these bytes and mode, as most files in /etc are.
    pub fn of_root(bytes: impl Into<Vec<u8>>, mode: u32) -> Self {
        Self { bytes: bytes.into(), mode, uid: 0, gid: 0, mtime: None, xattrs: BTreeMap::new() }
    }
}

/// What is in a place. That nothing is there is a state of its own, and not an empty file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing is there.
    Absent,
    /// A value as text, without the line end that the kernel adds.
    Value(String),
    /// A regular file.
    File(FileState),
    /// A symbolic link.
    Link {
        /// Where to, as it is written in the link.
        to: String,
        /// Owner, a user number.
        uid: u32,
        /// Group number.
        gid: u32,
        /// The link's own time. Wanted `None`: the moment of writing.
        mtime: Option<FileTime>,
    },
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => write!(f, "absent"),
            Self::Value(text) => match text.trim_end().split_once('\n') {
                Some((line, more)) => write!(f, "{line:?} (and {} lines more)", more.lines().count()),
                None => write!(f, "{text:?}"),
            },
            Self::File(file) => {
                let (mode, uid, gid, length) = (file.mode, file.uid, file.gid, file.bytes.len());
                write!(f, "a file of {length} bytes, mode {mode:04o}, owner {uid}:{gid}")
            }
            Self::Link { to, .. } => write!(f, "a link to {to}"),
        }
    }
}

/// When two states count as the same. It is data, not a function: the rollback happens in another process, which has
/// nothing but the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// Letter by letter.
    #[default]
    Exact,
    /// Word by word; the kernel separates with spaces or tabulators as it likes ("4096 87380" in tcp_rmem).
    Words,
    /// As whole numbers, decimal or with 0x.
    Number,
    /// As lists of CPUs: "0-3" is "0,1,2,3".
    CpuList,
    /// As masks of CPUs: "ff" is "00000000,000000ff".
    CpuMask,
    /// As a choice of several: "never" is "always madvise [never]".
    Choice,
    /// Word by word as far as both go: "SCHED_FIFO 2" is "SCHED_FIFO 2 reset-on-fork". What only one of them tells is
    /// kept for restoring and does not count.
    Leading,
    /// As states of a unit of systemd, "active, enabled", by their first lines. Of the run state it counts whether the
    /// unit is up (active, activating, reloading, refreshing) or not (inactive, failed, deactivating, maintenance); the
    /// second word counts where both have one. A unit that is not there is down and disabled.
    Service,
    /// As a profile of TuneD and its mode (auto, manual, unset), "virtual-guest auto". A mode that one of them leaves
    /// out does not count.
    Profile,
}

impl Comparison {
    /// Whether `a` and `b` mean the same. Text that does not have the form expected is compared letter by letter.
    pub fn same_text(self, a: &str, b: &str) -> bool {
        let (a, b) = (a.trim_end(), b.trim_end());
        let by = |equal: Option<bool>| equal.unwrap_or(false) || a == b;
        match self {
            Self::Exact => a == b,
            Self::Words => a.split_whitespace().eq(b.split_whitespace()),
            Self::Number => by(number(a).zip(number(b)).map(|(a, b)| a == b)),
            Self::CpuList => {
                by(CpuSet::parse_list(a).ok().zip(CpuSet::parse_list(b).ok()).map(|(a, b)| a == b))
            }
            Self::CpuMask => {
                by(CpuSet::parse_mask(a).ok().zip(CpuSet::parse_mask(b).ok()).map(|(a, b)| a == b))
            }
            Self::Choice => chosen(a) == chosen(b),
            Self::Leading => {
                let mut pairs = a.split_whitespace().zip(b.split_whitespace()).peekable();
                a == b || (pairs.peek().is_some() && pairs.all(|(a, b)| a == b))
            }
            Self::Service => Pair::of_service(a).same(&Pair::of_service(b)),
            Self::Profile => Pair::of_profile(a).same(&Pair::of_profile(b)),
        }
    }

    /// Whether two states are the same for apply and rollback. Of files bytes, mode and owner count. Times do not
    /// (touching a file does not change it), nor do extended attributes (a relabelling does not either).
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

    /// Whether `present` is on the way from `a` to `b`. A unit's run state and what starts it are two things, and so are
    /// a profile and its mode: a crash, or a step before (a stopped socket takes its service along), may leave one
    /// changed and the other not. No other comparison knows a state between.
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

/// How a unit counts that is not there.
const NO_SERVICE: &str = "inactive, disabled";

/// A state of two things, of which the second may not be told.
#[derive(Debug, PartialEq, Eq)]
struct Pair<'a> {
    first: Vec<&'a str>,
    second: Option<&'a str>,
}

impl<'a> Pair<'a> {
    /// Whether a unit is up or down, or the word itself where it is none of systemd's; and what starts it.
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

fn number(text: &str) -> Option<i128> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The word in brackets, or the whole text where there are none. Also what has to be written to choose it.
pub(super) fn chosen(text: &str) -> &str {
    let inner = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    inner.unwrap_or(text).trim()
}

/// What an attribute that shows `choices` ("always madvise [never]") shows after `word` was chosen; none when it shows
/// no choices, or `word` is none of them.
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
