//! Requests to a root and their results, kept so that a capture can return the same.

use lowlat_host::Reading;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum bytes of files kept; later ones are only named.
const BYTES_MAX: u64 = 256 << 20;
/// Maximum number of paths kept.
const PATHS_MAX: usize = 1_000_000;

/// The result of one access other than "does not exist".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome<T> {
    Value(T),
    /// It exists but has no value.
    Valueless,
    Denied,
    /// Another failure, with the system's text.
    Failed(String),
}

/// Everything that was read, by real path: absolute, without links and `..`.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// Contents of files that were read.
    pub(crate) reads: BTreeMap<String, Outcome<Vec<u8>>>,
    /// Names in directories that were listed.
    pub(crate) lists: BTreeMap<String, Outcome<Vec<String>>>,
    /// Links by their own path.
    pub(crate) links: BTreeMap<String, String>,
    /// Paths only found to exist.
    pub(crate) found: BTreeSet<String>,
    /// Paths requested, existing or not.
    #[cfg(test)]
    pub(crate) asked: BTreeSet<String>,
    bytes: u64,
    names: usize,
}

impl Recording {
    /// Notes a link; `false` if it must not be followed. /proc/self and /proc/thread-self refer to the
    /// reading process, whose number is meaningless later, so they are kept as directories.
    pub(super) fn note_link(&mut self, path: &str, target: &str) -> bool {
        if matches!(path, "/proc/self" | "/proc/thread-self") {
            return false;
        }
        if self.has_room(path) {
            self.links.insert(path.to_owned(), target.to_owned());
        }
        true
    }

    pub(super) fn note_read(&mut self, path: &str, reading: &Reading<Vec<u8>>, exists: bool) {
        #[cfg(test)]
        self.asked.insert(path.to_owned());
        if self.reads.contains_key(path) || !self.has_room(path) {
            return;
        }
        let Some(outcome) = outcome(reading, exists) else { return };
        if let Outcome::Value(bytes) = &outcome {
            let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            if self.bytes.saturating_add(size) > BYTES_MAX {
                self.found.insert(path.to_owned());
                return;
            }
            self.bytes += size;
        }
        self.reads.insert(path.to_owned(), outcome);
    }

    pub(super) fn note_list(&mut self, path: &str, reading: &Reading<Vec<String>>, exists: bool) {
        if self.lists.contains_key(path) || !self.has_room(path) {
            return;
        }
        if let Some(outcome) = outcome(reading, exists) {
            if let Outcome::Value(names) = &outcome {
                self.names += names.len();
            }
            self.lists.insert(path.to_owned(), outcome);
        }
    }

    pub(super) fn note_existence(&mut self, path: &str, exists: bool) {
        if exists && self.has_room(path) {
            self.found.insert(path.to_owned());
        }
    }

    /// A path with control characters cannot be in a list of one path per line.
    fn has_room(&self, path: &str) -> bool {
        let paths = self.reads.len() + self.lists.len() + self.links.len() + self.found.len() + self.names;
        paths < PATHS_MAX && !path.contains(char::is_control)
    }
}

fn outcome<T: Clone>(reading: &Reading<T>, exists: bool) -> Option<Outcome<T>> {
    match reading {
        Reading::Known(value) => Some(Outcome::Value(value.clone())),
        Reading::Absent => exists.then_some(Outcome::Valueless),
        Reading::Denied => Some(Outcome::Denied),
        Reading::Unparsable(why) => Some(Outcome::Failed(why.raw.clone())),
    }
}
