//! Lines that were hot for too short a time to be counted.

use super::FinderRecord;
use std::collections::{BTreeMap, BTreeSet};

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
    use super::super::{CloseWrites, Thread};
    use super::*;

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
