//! Samples of writes: which threads write to which pages, and which lines deserve breakpoints.

use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4_096;
/// Bytes that one breakpoint watches.
pub const WORD_BYTES: u64 = 8;

/// Writes that were caught.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    pages: BTreeMap<u64, Page>,
    /// Pages that were written, by unknown threads.
    noted: BTreeSet<u64>,
    /// How many were caught.
    pub count: u64,
}

#[derive(Debug, Clone, Default)]
struct Page {
    /// Writes of each thread.
    threads: BTreeMap<u32, u64>,
    /// Threads of each word.
    words: BTreeMap<u64, BTreeSet<u32>>,
}

/// A line whose words should be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its first address.
    pub line: u64,
    /// Threads that write to its page.
    pub tids: Vec<u32>,
    /// Threads that were seen to write to the line.
    pub seen: usize,
    /// Whether its page was written by unknown threads.
    pub is_noted: bool,
}

impl Samples {
    /// Adds a write.
    pub fn add(&mut self, tid: u32, address: u64) {
        let page = self.pages.entry(address & !(PAGE_BYTES - 1)).or_default();
        *page.threads.entry(tid).or_default() += 1;
        page.words.entry(address & !(WORD_BYTES - 1)).or_default().insert(tid);
        self.count += 1;
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
        self.shared().map(|(address, _)| *address).collect()
    }

    fn shared(&self) -> impl Iterator<Item = (&u64, &Page)> {
        self.pages.iter().filter(|(_, page)| page.threads.len() > 1)
    }

    /// Lines on pages that several threads write to: first those that several threads were seen to write to, then those
    /// with one, then those of noted pages, then neighbours of the first. Each has the threads of its page that write most, up to
    /// `threads_max`; noted pages have `others`.
    pub fn candidates(&self, line_bytes: u64, threads_max: usize, others: &[u32]) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = Vec::new();
        for (address, page) in self.shared() {
            let mut tids: Vec<(u64, u32)> = page.threads.iter().map(|(tid, count)| (*count, *tid)).collect();
            tids.sort_unstable_by(|a, b| b.cmp(a));
            tids.truncate(threads_max);
            let tids: Vec<u32> = tids.into_iter().map(|(_, tid)| tid).collect();
            let lines = (0..PAGE_BYTES / line_bytes).map(|number| address + number * line_bytes);
            all.extend(lines.map(|line| {
                let words = page.words.range(line..line + line_bytes);
                let seen: BTreeSet<u32> = words.flat_map(|(_, tids)| tids.iter().copied()).collect();
                Candidate { line, tids: tids.clone(), seen: seen.len(), is_noted: false }
            }));
        }
        for page in self.noted.difference(&self.pages.keys().copied().collect()) {
            let tids: Vec<u32> = others.iter().take(threads_max).copied().collect();
            let lines = (0..PAGE_BYTES / line_bytes).map(|number| page + number * line_bytes);
            all.extend(lines.map(|line| Candidate { line, tids: tids.clone(), seen: 0, is_noted: true }));
        }
        all.sort_by_key(|candidate| std::cmp::Reverse((candidate.seen.min(2), candidate.is_noted)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_several_threads_write_come_first_and_private_pages_never() {
        let mut samples = Samples::default();
        for (tid, address) in [(1, 0x1008), (1, 0x1048), (2, 0x1050), (2, 0x1100), (3, 0x5000), (3, 0x5008)] {
            samples.add(tid, address);
        }
        assert_eq!((samples.page_count(), samples.shared_pages()), (2, vec![0x1000]));
        let candidates = samples.candidates(64, 8, &[7, 8]);
        assert_eq!(candidates.len(), 64, "lines of one page");
        let seen: Vec<(u64, usize)> = candidates.iter().map(|of| (of.line, of.seen)).take(4).collect();
        assert_eq!(seen, [(0x1040, 2), (0x1000, 1), (0x1100, 1), (0x1080, 0)]);
        assert_eq!(candidates[0].tids, [2, 1]);
        samples.note(0x9000);
        let with_noted = samples.candidates(64, 8, &[7, 8]);
        assert_eq!((with_noted.len(), with_noted[66].line, &with_noted[66].tids), (128, 0x9fc0, &vec![7, 8]));
        assert_eq!(samples.candidates(64, 1, &[])[0].tids.len(), 1);
        assert_eq!(Samples::default().candidates(64, 8, &[]), []);
    }
}
