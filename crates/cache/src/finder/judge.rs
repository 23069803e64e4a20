//! What the counts of a line's words show.

use super::{FieldCount, FinderRecord, samples::WORD_BYTES};
use std::collections::{BTreeMap, BTreeSet};

/// Fewest writes of a thread that count. A single one may come from the program's start or end.
const WRITES_MIN: u64 = 2;
/// Least share of the counting time in which the program really ran, for its rate to mean something.
const RUN_SHARE_MIN: f64 = 0.2;

/// How threads share a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// Each has fields of its own in it.
    False,
    /// One field belongs to one thread, another to several.
    Mixed,
    /// They write to the same fields.
    True,
}

/// A line that several threads write.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// First address of the line.
    pub line: u64,
    /// How it is shared.
    pub sharing: Sharing,
    /// What is written in it, in the order of addresses.
    pub fields: Vec<Field>,
}

/// Bytes with the same writers.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// First address.
    pub address: u64,
    /// Bytes: where exact bytes were counted, those written; else a word, in which the field is.
    pub bytes: u64,
    /// Its writers.
    pub writers: Vec<Writer>,
}

/// A thread that writes a field.
#[derive(Debug, Clone, PartialEq)]
pub struct Writer {
    /// The thread.
    pub tid: u32,
    /// Writes per second of its running time; `None` if they are too many to be counted by breakpoints.
    pub per_second: Option<f64>,
    /// The instruction that wrote; 0 if unknown.
    pub code: u64,
}

impl Field {
    fn tids(&self) -> BTreeSet<u32> {
        self.writers.iter().map(|writer| writer.tid).collect()
    }
}

impl Finding {
    /// Writes per second of all threads; threads that are too fast count as `fastest`.
    pub fn per_second(&self, fastest: f64) -> f64 {
        let writers = self.fields.iter().flat_map(|field| &field.writers);
        writers.map(|writer| writer.per_second.unwrap_or(fastest)).sum()
    }
}

impl FinderRecord {
    /// Shared lines: false sharing first, and in each kind the busiest first.
    pub fn findings(&self) -> Vec<Finding> {
        let mut lines: BTreeMap<u64, Vec<&FieldCount>> = BTreeMap::new();
        for count in self.counts.iter().filter(|count| count.writes >= WRITES_MIN) {
            lines.entry(self.line_of(count.address)).or_default().push(count);
        }
        let findings = lines.into_iter().filter_map(|(line, counts)| {
            let fields = fields(&counts, self.hit_ns);
            Some(Finding { line, sharing: sharing(&fields)?, fields })
        });
        let mut findings: Vec<Finding> = findings.collect();
        let busy = |finding: &Finding| finding.per_second(self.fastest());
        findings.sort_by(|a, b| a.sharing.cmp(&b.sharing).then(busy(b).total_cmp(&busy(a))));
        findings
    }

    /// The highest rate that breakpoints can count.
    pub fn fastest(&self) -> f64 {
        1e9 / self.hit_ns.max(1) as f64
    }
}

/// Joins neighbouring parts of a word with the same writers. A spot whose parts were counted is left to them, unless a
/// writer of it was seen in none of them.
fn fields(counts: &[&FieldCount], hit_ns: u64) -> Vec<Field> {
    let mut spots: BTreeMap<(u64, u64), Vec<&FieldCount>> = BTreeMap::new();
    for count in counts {
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
        let writers = counts.iter().map(|count| writer(count, hit_ns)).collect();
        let field = Field { address, bytes, writers };
        match fields.last_mut() {
            // Parts of a word; whole words stay apart.
            Some(last)
                if bytes < WORD_BYTES
                    && last.address + last.bytes == address
                    && word(last.address) == word(address)
                    && last.tids() == field.tids() =>
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

fn writer(count: &FieldCount, hit_ns: u64) -> Writer {
    let time = count.time_ns as f64;
    let ran = time - (count.writes * hit_ns) as f64;
    let per_second = (ran > time * RUN_SHARE_MIN).then(|| count.writes as f64 * 1e9 / ran);
    Writer { tid: count.tid, per_second, code: count.code }
}

/// `None` if one thread alone writes to the line.
fn sharing(fields: &[Field]) -> Option<Sharing> {
    let all: BTreeSet<u32> = fields.iter().flat_map(Field::tids).collect();
    if all.len() < 2 {
        return None;
    }
    let owners: BTreeSet<u32> =
        fields.iter().map(Field::tids).filter(|tids| tids.len() == 1).flatten().collect();
    let has_common = fields.iter().any(|field| field.tids().len() > 1);
    Some(match (owners.len(), has_common) {
        (0, _) => Sharing::True,
        (1, true) => Sharing::Mixed,
        _ => Sharing::False,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(address: u64, bytes: u64, tid: u32, writes: u64) -> FieldCount {
        FieldCount { address, bytes, tid, writes, time_ns: 1_000_000, code: 0 }
    }

    fn findings(counts: &[FieldCount]) -> Vec<Finding> {
        FinderRecord { counts: counts.to_vec(), hit_ns: 10_000, line_bytes: 64, ..FinderRecord::default() }
            .findings()
    }

    #[test]
    fn own_words_are_false_sharing_and_common_ones_true() {
        let found = findings(&[
            // One line, two words, two threads.
            count(0x40, 8, 1, 10),
            count(0x48, 8, 2, 16),
            // The same word.
            count(0x80, 8, 1, 16),
            count(0x80, 8, 2, 16),
            // Own lines.
            count(0xc0, 8, 1, 16),
            count(0x100, 8, 2, 16),
            // A lock of both, and a count of one.
            count(0x140, 8, 1, 16),
            count(0x140, 8, 2, 16),
            count(0x148, 8, 2, 16),
            // Written once, at the start.
            count(0x180, 8, 1, 16),
            count(0x188, 8, 2, 1),
        ]);
        let kinds: Vec<(u64, Sharing)> = found.iter().map(|of| (of.line, of.sharing)).collect();
        assert_eq!(kinds, [(0x40, Sharing::False), (0x140, Sharing::Mixed), (0x80, Sharing::True)]);
    }

    #[test]
    fn bytes_split_a_word_that_two_threads_write() {
        let mut counts = vec![count(0x40, 8, 1, 16), count(0x40, 8, 2, 16)];
        let fields = |found: &[Finding]| -> Vec<(u64, u64)> {
            found[0].fields.iter().map(|of| (of.address, of.bytes)).collect()
        };
        counts.extend([0x40, 0x42].map(|at| count(at, 2, 1, 16)));
        let found = findings(&counts);
        assert_eq!(
            (found[0].sharing, fields(&found)),
            (Sharing::True, vec![(0x40, 8)]),
            "no part has thread 2"
        );
        counts.extend([0x44, 0x46].map(|at| count(at, 2, 2, 16)));
        let found = findings(&counts);
        assert_eq!((found.len(), found[0].sharing), (1, Sharing::False));
        assert_eq!(fields(&found), [(0x40, 4), (0x44, 4)]);
        // Two flags of a byte each.
        let mut counts = vec![count(0x40, 8, 1, 16), count(0x40, 8, 2, 16)];
        counts.extend([
            count(0x44, 2, 1, 16),
            count(0x44, 2, 2, 16),
            count(0x44, 1, 1, 16),
            count(0x45, 1, 2, 16),
        ]);
        let found = findings(&counts);
        assert_eq!((found[0].sharing, fields(&found)), (Sharing::False, vec![(0x44, 1), (0x45, 1)]));
        // An eight-byte value that both write.
        let mut counts: Vec<FieldCount> = Vec::new();
        for tid in [1, 2] {
            counts.push(count(0x40, 8, tid, 16));
            counts.extend([0x40, 0x42, 0x44, 0x46].map(|at| count(at, 2, tid, 16)));
        }
        let found = findings(&counts);
        assert_eq!(
            (found[0].sharing, found[0].fields.len(), found[0].fields[0].bytes),
            (Sharing::True, 1, 8)
        );
    }

    #[test]
    fn a_rate_excludes_the_cost_of_breakpoints() {
        let found = findings(&[count(0x40, 8, 1, 10), count(0x48, 8, 2, 99)]);
        let rates: Vec<Option<f64>> = found[0].fields.iter().map(|of| of.writers[0].per_second).collect();
        // 10 in 1 ms, of which 0.1 ms were breakpoints; 99 took nearly all of the time.
        assert!(
            rates[0].is_some_and(|rate| (11_000.0..11_200.0).contains(&rate)) && rates[1].is_none(),
            "{rates:?}"
        );
    }
}
