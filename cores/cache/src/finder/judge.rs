//! Judgement of the counts of a line's words.

use super::{
    FieldCount, FinderRecord, Meeting,
    fields::{Field, fields},
};
use std::collections::{BTreeMap, BTreeSet};

/// Fewest windows in which two threads meet.
const TOGETHER_MIN: u64 = 3;
/// Least share of the windows of the rarer thread in which it meets the other. Threads that own a line in turns meet
/// where their turns touch: in a smaller share, if a turn takes more than some milliseconds.
const TOGETHER_SHARE_MIN: f64 = 0.15;

/// Ways in which threads share a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// Threads wait for writes to fields that they do not use.
    False,
    /// One thread does so, and also uses a field that another one writes.
    Mixed,
    /// They use the same fields.
    True,
}

/// A line that several threads use at the same time, and one of them writes.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedLine {
    /// First address of the line.
    pub line: u64,
    pub sharing: Sharing,
    /// Fields in use, in the order of addresses.
    pub fields: Vec<Field>,
}

impl SharedLine {
    /// Accesses of all threads per second, as far as they were counted.
    fn per_second(&self) -> f64 {
        let users = self.fields.iter().flat_map(|field| &field.users);
        users.filter_map(|user| user.pace).map(|pace| pace.per_second).sum()
    }
}

impl Meeting {
    /// True if the threads use the line at the same time, and not in turns.
    pub fn is_enough(&self) -> bool {
        self.together >= TOGETHER_MIN && self.together as f64 >= self.windows as f64 * TOGETHER_SHARE_MIN
    }
}

impl FinderRecord {
    /// Shared lines: false sharing first, and in each kind the busiest first.
    pub fn findings(&self) -> Vec<SharedLine> {
        let mut lines: BTreeMap<u64, Vec<&FieldCount>> = BTreeMap::new();
        for count in &self.counts {
            lines.entry(self.line_of(count.address)).or_default().push(count);
        }
        let mut meetings: BTreeMap<u64, BTreeSet<[u32; 2]>> = BTreeMap::new();
        for of in self.meetings.iter().filter(|of| of.is_enough()) {
            meetings.entry(of.line).or_default().extend([of.tids, [of.tids[1], of.tids[0]]]);
        }
        let findings = lines.into_iter().filter_map(|(line, counts)| {
            let fields = fields(&counts, self.hit_ns);
            Some(SharedLine { line, sharing: sharing(&fields, meetings.get(&line)?)?, fields })
        });
        let mut findings: Vec<SharedLine> = findings.collect();
        findings.sort_by(|a, b| a.sharing.cmp(&b.sharing).then(b.per_second().total_cmp(&a.per_second())));
        findings
    }
}

/// `None` if no thread waits for another one's writes. `meetings` has the pairs of threads that use the line at the
/// same time.
fn sharing(fields: &[Field], meetings: &BTreeSet<[u32; 2]>) -> Option<Sharing> {
    let all: BTreeSet<u32> = fields.iter().flat_map(Field::tids).collect();
    let (mut waiting, mut has_common) = (BTreeSet::new(), false);
    for field in fields {
        let users = field.tids();
        for writer in field.writers() {
            for tid in all.iter().filter(|tid| meetings.contains(&[writer, **tid])) {
                if users.contains(tid) {
                    has_common = true;
                } else {
                    waiting.insert(*tid);
                }
            }
        }
    }
    match (waiting.len(), has_common) {
        (0, false) => None,
        (0, true) => Some(Sharing::True),
        (1, true) => Some(Sharing::Mixed),
        _ => Some(Sharing::False),
    }
}

/// Fewest close writes in a mapping.
const CLOSE_WRITES_MIN: u64 = 3;

/// A part of a mapping in which a hot line may move, as the slots of a ring do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// First address of the first line.
    pub start: u64,
    /// Address after the last line.
    pub end: u64,
    /// Lines in which it was seen.
    pub lines: usize,
    /// Writes of two threads to one line that waited at the same time.
    pub count: u64,
    pub tids: BTreeSet<u32>,
}

impl FinderRecord {
    /// Returns the places where threads wrote different words of a line at the same time, and counting did not show it.
    /// Threads that were only ever seen on one and the same CPU do not conflict.
    pub fn suspects(&self) -> Vec<Suspect> {
        let counted: BTreeSet<u64> = self.findings().iter().map(|finding| finding.line).collect();
        let mut all: BTreeMap<u64, Suspect> = BTreeMap::new();
        let mut lines: BTreeSet<u64> = BTreeSet::new();
        for of in self.close_writes.iter().filter(|of| !counted.contains(&of.line) && self.can_meet(of.tids))
        {
            let (start, end) = (of.line, of.line + self.line_bytes);
            let new = Suspect { start, end, lines: 0, count: 0, tids: BTreeSet::new() };
            let suspect = all.entry(of.mapping).or_insert(new);
            (suspect.start, suspect.end) = (suspect.start.min(start), suspect.end.max(end));
            suspect.lines += usize::from(lines.insert(of.line));
            suspect.count += of.count;
            suspect.tids.extend(of.tids);
        }
        all.into_values().filter(|suspect| suspect.count >= CLOSE_WRITES_MIN).collect()
    }

    /// True if two threads ran on different CPUs, as far as is known.
    fn can_meet(&self, tids: [u32; 2]) -> bool {
        let cpus = |tid| {
            let thread = self.threads.iter().find(|thread| thread.tid == tid);
            thread.map(|thread| thread.cpus.clone()).unwrap_or_default()
        };
        let [a, b] = tids.map(cpus);
        a.is_empty() || b.is_empty() || a.iter().chain(&b).collect::<BTreeSet<_>>().len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{CloseWrites, Thread},
        *,
    };

    /// Counts of a thread that reads and writes.
    fn count(address: u64, bytes: u64, tid: u32, writes: u64) -> FieldCount {
        FieldCount { address, bytes, tid, accesses: writes, writes, ..FieldCount::default() }
    }

    fn reads(address: u64, tid: u32) -> FieldCount {
        FieldCount { writes: 0, ..count(address, 8, tid, 16) }
    }

    fn record(counts: &[FieldCount], meetings: &[(u64, [u32; 2], u64, u64)]) -> FinderRecord {
        let meeting = |of: &(u64, [u32; 2], u64, u64)| Meeting {
            line: of.0,
            tids: of.1,
            together: of.2,
            windows: of.3,
        };
        let meetings = meetings.iter().map(meeting).collect();
        FinderRecord {
            counts: counts.to_vec(),
            meetings,
            hit_ns: 10_000,
            line_bytes: 64,
            ..FinderRecord::default()
        }
    }

    /// With threads 1 to 3 that use all lines all of the time.
    fn findings(counts: &[FieldCount]) -> Vec<SharedLine> {
        let lines: BTreeSet<u64> = counts.iter().map(|count| count.address & !63).collect();
        let pairs = [[1, 2], [1, 3], [2, 3]];
        let meetings: Vec<_> =
            lines.iter().flat_map(|line| pairs.map(|pair| (*line, pair, 40, 48))).collect();
        record(counts, &meetings).findings()
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
    fn readers_count_where_another_field_is_written() {
        let found = findings(&[
            // Settings that two threads read, beside a count of a third.
            count(0x40, 8, 1, 16),
            reads(0x48, 2),
            reads(0x50, 3),
            // A value that one writes and another reads.
            count(0x80, 8, 1, 16),
            reads(0x80, 2),
            // Only read.
            reads(0xc0, 1),
            reads(0xc8, 2),
            // One thread waits for a field that it does not use, and for one that it reads.
            count(0x100, 8, 1, 16),
            reads(0x100, 2),
            count(0x108, 8, 1, 16),
        ]);
        let kinds: Vec<(u64, Sharing)> = found.iter().map(|of| (of.line, of.sharing)).collect();
        assert_eq!(kinds, [(0x40, Sharing::False), (0x100, Sharing::Mixed), (0x80, Sharing::True)]);
    }

    #[test]
    fn threads_that_never_meet_do_not_share() {
        let counts = [count(0x40, 8, 1, 16), count(0x48, 8, 2, 16)];
        for (meetings, is_found) in [
            // Not counted.
            (vec![], false),
            // On the same CPU, or at other times.
            (vec![(0x40, [1, 2], 0, 48)], false),
            // They meet only where their turns touch.
            (vec![(0x40, [1, 2], 3, 26)], false),
            (vec![(0x40, [1, 2], 2, 2)], false),
            // One is slow: the other always runs when it writes.
            (vec![(0x40, [1, 2], 12, 12)], true),
            (vec![(0x40, [2, 1], 12, 48)], true),
            // Of another line, of other threads.
            (vec![(0x80, [1, 2], 48, 48), (0x40, [1, 3], 48, 48)], false),
        ] {
            assert_eq!(!record(&counts, &meetings).findings().is_empty(), is_found, "{meetings:?}");
        }
    }

    #[test]
    fn bytes_split_a_word_that_two_threads_write() {
        let mut counts = vec![count(0x40, 8, 1, 16), count(0x40, 8, 2, 16)];
        let fields = |found: &[SharedLine]| -> Vec<(u64, u64)> {
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
    fn a_rate_is_per_wall_time_and_more_where_counting_was_cut() {
        let of = |window_count, window_ns, is_cut| {
            let mut counts = [count(0x40, 8, 1, 16), count(0x48, 8, 2, 16)];
            (counts[0].window_count, counts[0].window_ns, counts[0].is_cut) =
                (window_count, window_ns, is_cut);
            let found = record(&counts, &[(0x40, [1, 2], 20, 20)]).findings();
            found[0].fields[0].users[0].pace.map(|pace| (pace.per_second, pace.is_more))
        };
        let ns = 20_000_000;
        assert_eq!(of(0, 0, false), None);
        assert_eq!(of(20, ns, false), Some((1_000.0, false)), "0.2 ms of 20 were breakpoints");
        assert_eq!(of(16, ns, true), Some((800.0, true)), "a burst: at least so many");
        assert_eq!(of(1_000, ns, false), Some((50_000.0, true)), "breakpoints took half of the time");
    }

    fn suspects(close: &[(u64, [u32; 2], u64)], cpus: [&[u32]; 2]) -> Vec<Suspect> {
        let close = close.iter().map(|(line, tids, count)| {
            let (line, tids, count) = (*line, *tids, *count);
            CloseWrites { line, mapping: line & !0xffff, tids, count }
        });
        let thread = |tid, cpus: &[u32]| Thread { tid, name: String::new(), cpus: cpus.to_vec() };
        let record = FinderRecord {
            line_bytes: 64,
            close_writes: close.collect(),
            threads: vec![thread(1, cpus[0]), thread(2, cpus[1])],
            ..FinderRecord::default()
        };
        record.suspects()
    }

    #[test]
    fn a_line_that_moves_is_suspected() {
        let ring: Vec<(u64, [u32; 2], u64)> = (0..4).map(|slot| (0x10_000 + slot * 256, [1, 2], 1)).collect();
        let found = suspects(&ring, [&[0], &[1]]);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].start, found[0].end, found[0].lines, found[0].count),
            (0x10_000, 0x10_340, 4, 4)
        );
        assert_eq!(suspects(&ring[..2], [&[0], &[1]]), [], "too few");
        let far = [(0x10_000, [1, 2], 3), (0x90_000, [1, 2], 2)];
        assert_eq!(suspects(&far, [&[], &[]]).len(), 1, "two mappings, and too few in the second");
    }

    #[test]
    fn threads_on_one_cpu_are_never_suspected() {
        let ring = [(0x10_000, [1, 2], 9)];
        assert_eq!(suspects(&ring, [&[3], &[3]]), []);
        assert_eq!(suspects(&ring, [&[3], &[3, 4]]).len(), 1);
    }
}
