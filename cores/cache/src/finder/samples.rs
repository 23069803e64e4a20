//! Samples of writes: which threads write to which pages, and which lines deserve breakpoints.

use super::CloseWrites;
use std::collections::{BTreeMap, BTreeSet};

pub const PAGE_BYTES: u64 = 4_096;
/// Bytes that one breakpoint watches.
pub const WORD_BYTES: u64 = 8;

/// Fewest caught writes of one thread to a line before its readers are counted.
const HOT_WRITES_MIN: u64 = 2;
/// Lines, each with two threads, of which writes at the same time are noted.
const CLOSE_MAX: usize = 1 << 14;
/// Threads that are counted in every turn: those that write most.
const ALWAYS_COUNTED: usize = 4;

/// Caught writes, by page and line.
#[derive(Debug, Default)]
pub struct Samples {
    line_bytes: u64,
    pages: BTreeMap<u64, Page>,
    /// Pages that were written, by unknown threads.
    noted: BTreeSet<u64>,
    /// Lines in which threads wrote different words at the same time.
    close: BTreeMap<(u64, [u32; 2]), u64>,
    /// Number of writes that were caught.
    pub count: u64,
}

#[derive(Debug, Clone, Default)]
struct Page {
    /// Number of writes of each thread.
    threads: BTreeMap<u32, u64>,
    /// Writes of each thread to each word.
    words: BTreeMap<u64, BTreeMap<u32, u64>>,
}

/// A line whose words should be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// First address of the line.
    pub line: u64,
    /// Threads that write to the line, then those that write to its page: in each part, the busiest first.
    pub tids: Vec<u32>,
    /// Priority for counting: at most 1 if it is only a neighbour of others, or was written once.
    pub promise: u64,
}

impl Candidate {
    /// True if it is more than a neighbour, so that nothing is known of it without a count.
    pub fn is_promising(&self) -> bool {
        self.promise > 1
    }
}

impl Samples {
    /// Creates an empty set for lines of `line_bytes` bytes, a power of two.
    pub fn new(line_bytes: u64) -> Self {
        Self { line_bytes, ..Self::default() }
    }

    /// Adds writes that waited at the same time: threads and addresses.
    pub fn add(&mut self, writes: &[(u32, u64)]) {
        for (tid, address) in writes {
            let page = self.pages.entry(address & !(PAGE_BYTES - 1)).or_default();
            *page.threads.entry(*tid).or_default() += 1;
            *page.words.entry(address & !(WORD_BYTES - 1)).or_default().entry(*tid).or_default() += 1;
            self.count += 1;
        }
        let line_of = |address: u64| address & !(self.line_bytes - 1);
        for (number, (tid, address)) in writes.iter().enumerate() {
            for (other, beside) in &writes[number + 1..] {
                let is_apart = tid != other && address / WORD_BYTES != beside / WORD_BYTES;
                if is_apart && line_of(*address) == line_of(*beside) && self.close.len() < CLOSE_MAX {
                    let tids = [*tid.min(other), *tid.max(other)];
                    *self.close.entry((line_of(*address), tids)).or_default() += 1;
                }
            }
        }
    }

    /// Adds a page that was written by unknown threads.
    pub fn note(&mut self, page: u64) {
        self.noted.insert(page);
    }

    /// Pages that were written to.
    pub fn page_count(&self) -> usize {
        self.pages.len() + self.noted.len()
    }

    /// Pages that several threads write to.
    pub fn shared_pages(&self) -> Vec<u64> {
        let shared = self.pages.iter().filter(|(_, page)| page.threads.len() > 1);
        shared.map(|(address, _)| *address).collect()
    }

    /// Writes of different threads to different words of a line at the same time. `mapping` returns the first address
    /// of the mapping of a line.
    pub fn close_writes(&self, mapping: impl Fn(u64) -> u64) -> Vec<CloseWrites> {
        let close = |((line, tids), count): (&(u64, [u32; 2]), &u64)| CloseWrites {
            line: *line,
            mapping: mapping(*line),
            tids: *tids,
            count: *count,
        };
        self.close.iter().map(close).collect()
    }

    /// Lines to count, the most promising first: those that several threads were seen to write to, those that one
    /// writes often on pages that several write to, those of noted pages, those that one thread writes often and others
    /// may read, then the other lines of pages that several threads write to.
    pub fn candidates(&self) -> Vec<Candidate> {
        let line_bytes = self.line_bytes;
        let lines = |page: u64| (0..PAGE_BYTES / line_bytes).map(move |number| page + number * line_bytes);
        let mut all: Vec<Candidate> = Vec::new();
        for (address, page) in &self.pages {
            let is_shared = page.threads.len() > 1;
            all.extend(lines(*address).filter_map(|line| {
                let mut writes: BTreeMap<u32, u64> = BTreeMap::new();
                for (tid, count) in page.words.range(line..line + line_bytes).flat_map(|(_, tids)| tids) {
                    *writes.entry(*tid).or_default() += count;
                }
                let promise = match (writes.len(), is_shared) {
                    (2.., _) => 5,
                    (1, _) if writes.values().sum::<u64>() >= HOT_WRITES_MIN => 2 + 2 * u64::from(is_shared),
                    (1, true) => 1,
                    (0, true) => 0,
                    _ => return None,
                };
                let mut tids: Vec<u32> = page.threads.keys().copied().collect();
                let key = |tid: &u32| (writes.get(tid).copied().unwrap_or(0), page.threads[tid]);
                tids.sort_by_key(|tid| std::cmp::Reverse(key(tid)));
                Some(Candidate { line, tids, promise })
            }));
        }
        for page in self.noted.iter().filter(|page| !self.pages.contains_key(page)) {
            all.extend(lines(*page).map(|line| Candidate { line, tids: Vec::new(), promise: 3 }));
        }
        all.sort_by_key(|candidate| std::cmp::Reverse(candidate.promise));
        all
    }
}

/// The threads to count in a turn, up to `threads_max`, and the number of turns in which every one was counted: first
/// `writers`, the busiest of them always, then `others`.
pub fn turn(writers: &[u32], others: &[u32], turn: usize, threads_max: usize) -> (Vec<u32>, usize) {
    let mut all = writers.to_vec();
    all.extend(others.iter().filter(|tid| !writers.contains(tid)));
    if all.len() <= threads_max {
        return (all, 1);
    }
    let rest = all.split_off(ALWAYS_COUNTED.min(writers.len()).min(threads_max - 1));
    let each = threads_max - all.len();
    let turns = rest.len().div_ceil(each);
    all.extend(rest.chunks(each).nth(turn % turns).unwrap_or_default());
    (all, turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_several_threads_write_come_first_and_private_pages_last_or_never() {
        let mut samples = Samples::new(64);
        for (tid, address) in
            [(1, 0x1008), (1, 0x1048), (2, 0x1050), (2, 0x1100), (2, 0x1110), (3, 0x5000), (3, 0x5048)]
        {
            samples.add(&[(tid, address)]);
        }
        assert_eq!((samples.page_count(), samples.shared_pages()), (2, vec![0x1000]));
        let candidates = samples.candidates();
        assert_eq!(candidates.len(), 64, "lines of one page");
        let seen: Vec<(u64, u64)> = candidates.iter().map(|of| (of.line, of.promise)).take(4).collect();
        assert_eq!(seen, [(0x1040, 5), (0x1100, 4), (0x1000, 1), (0x1080, 0)]);
        assert_eq!(
            (candidates[2].tids.as_slice(), candidates[1].tids.as_slice()),
            (&[1, 2][..], &[2, 1][..])
        );
        samples.note(0x9000);
        samples.add(&[(3, 0x5008)]);
        let more = samples.candidates();
        assert_eq!(more.len(), 129);
        assert_eq!(
            (more[65].line, more[65].promise, more[66].line, more[66].promise),
            (0x9fc0, 3, 0x5000, 2)
        );
        assert_eq!(Samples::new(64).candidates(), []);
    }

    #[test]
    fn writes_to_one_line_at_the_same_time_are_noted() {
        let mut samples = Samples::new(64);
        samples.add(&[(2, 0x1008), (1, 0x1010), (3, 0x1040), (2, 0x1018)]);
        samples.add(&[(1, 0x1008), (2, 0x100c)]);
        samples.add(&[(1, 0x1008)]);
        samples.add(&[(2, 0x1010)]);
        let close = CloseWrites { line: 0x1000, mapping: 7, tids: [1, 2], count: 2 };
        assert_eq!(samples.close_writes(|_| 7), [close]);
        let wide = CloseWrites { line: 0x1000, mapping: 7, tids: [1, 3], count: 1 };
        samples.line_bytes = 128;
        samples.add(&[(1, 0x1010), (3, 0x1040)]);
        assert!(samples.close_writes(|_| 7).contains(&wide), "lines of 128 bytes");
    }

    #[test]
    fn every_thread_has_its_turn() {
        for (writers, others, threads_max) in
            [(0, 3, 16), (2, 200, 16), (40, 60, 16), (1, 0, 16), (5, 16, 16), (9, 9, 2)]
        {
            let writers: Vec<u32> = (1..=writers).collect();
            let others: Vec<u32> = (1..=others).map(|number| number + 1_000).chain(writers.clone()).collect();
            let turns = turn(&writers, &others, 0, threads_max).1;
            let mut seen = BTreeSet::new();
            for number in 0..turns {
                let (tids, _) = turn(&writers, &others, number, threads_max);
                assert!(tids.len() <= threads_max);
                seen.extend(tids);
            }
            assert_eq!(seen, others.iter().copied().collect(), "{} {threads_max}", others.len());
            assert!(
                writers.first().is_none_or(|first| turn(&writers, &others, 1, threads_max).0.contains(first))
            );
        }
    }
}
