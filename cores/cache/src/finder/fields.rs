//! Fields of a line, by the counts of its words and their parts.

use super::{FieldCount, samples::WORD_BYTES};
use std::collections::{BTreeMap, BTreeSet};

/// Fewest accesses of a thread that count. A single one may come from the program's start or end.
const ACCESSES_MIN: u64 = 2;
/// Largest share of the windows that breakpoints may take for a rate to mean something.
const HITS_SHARE_MAX: f64 = 0.2;

/// Bytes with the same users.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// First address of the bytes.
    pub address: u64,
    /// Bytes: where exact bytes were counted, those used; else a word, in which the field is.
    pub bytes: u64,
    pub users: Vec<User>,
}

/// A thread that uses a field.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    pub tid: u32,
    pub is_writer: bool,
    /// Number of its accesses so far.
    pub accesses: u64,
    /// The instruction; 0 if unknown.
    pub code: u64,
    /// Rate at which it writes the field, or reads it if it does not write it. `None` if that was not counted.
    pub pace: Option<AccessRate>,
}

/// Accesses per second of wall time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AccessRate {
    pub per_second: f64,
    /// True if the actual rate is higher: counting was cut, or breakpoints took too much of the time.
    pub is_more: bool,
}

impl FieldCount {
    /// True if the thread uses the bytes.
    pub fn is_used(&self) -> bool {
        self.accesses.max(self.writes) >= ACCESSES_MIN
    }

    fn pace(&self, hit_ns: u64) -> Option<AccessRate> {
        let waited_ns = self.window_count.saturating_mul(hit_ns) as f64;
        let window_ns = self.window_ns as f64;
        (self.window_ns > 0).then(|| AccessRate {
            per_second: self.window_count as f64 * 1e9 / window_ns,
            is_more: self.is_cut || waited_ns > window_ns * HITS_SHARE_MAX,
        })
    }
}

impl Field {
    pub fn tids(&self) -> BTreeSet<u32> {
        self.users.iter().map(|user| user.tid).collect()
    }

    pub fn writers(&self) -> BTreeSet<u32> {
        self.users.iter().filter(|user| user.is_writer).map(|user| user.tid).collect()
    }

    /// Its users, and which of them write.
    pub(super) fn uses(&self) -> BTreeSet<(u32, bool)> {
        self.users.iter().map(|user| (user.tid, user.is_writer)).collect()
    }
}

/// The fields of one line, in the order of addresses. Neighbouring parts of a word with the same users are joined. A
/// spot whose parts were counted is left to them, unless a user of it was seen in none of them.
pub fn fields(counts: &[&FieldCount], hit_ns: u64) -> Vec<Field> {
    let mut spots: BTreeMap<(u64, u64), Vec<&FieldCount>> = BTreeMap::new();
    for count in counts.iter().filter(|count| count.is_used()) {
        spots.entry((count.address, count.bytes)).or_default().push(count);
    }
    let tids = |counts: &[&FieldCount]| counts.iter().map(|count| count.tid).collect::<BTreeSet<u32>>();
    // From words to bytes, so that a part only counts inside a spot that is left to its parts.
    let mut sizes: Vec<u64> = spots.keys().map(|of| of.1).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    for size in sizes {
        let wide: Vec<u64> = spots.keys().filter(|of| of.1 == size).map(|of| of.0).collect();
        for address in wide {
            let is_part = |of: &(u64, u64)| of.1 < size && (address..address + size).contains(&of.0);
            let parts: BTreeSet<u32> =
                spots.iter().filter(|(of, _)| is_part(of)).flat_map(|(_, counts)| tids(counts)).collect();
            if parts.is_superset(&tids(&spots[&(address, size)])) {
                spots.remove(&(address, size));
            } else {
                spots.retain(|of, _| !is_part(of));
            }
        }
    }
    let mut fields: Vec<Field> = Vec::new();
    for ((address, bytes), counts) in spots {
        let user = |count: &&FieldCount| User {
            tid: count.tid,
            is_writer: count.writes >= ACCESSES_MIN,
            accesses: count.accesses.max(count.writes),
            code: count.code,
            pace: count.pace(hit_ns),
        };
        let field = Field { address, bytes, users: counts.iter().map(user).collect() };
        match fields.last_mut() {
            // Parts of a word; whole words stay apart.
            Some(last)
                if bytes < WORD_BYTES
                    && last.address + last.bytes == address
                    && word(last.address) == word(address)
                    && last.uses() == field.uses() =>
            {
                last.bytes += bytes;
            }
            _ => fields.push(field),
        }
    }
    fields
}

fn word(address: u64) -> u64 {
    address & !(WORD_BYTES - 1)
}
