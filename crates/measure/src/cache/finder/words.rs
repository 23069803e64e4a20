//! Counts of writes to the words of lines.

use lowlat_cache::finder::{Candidate, FieldCount, FinderRecord, Samples, WORD_BYTES};
use lowlat_sys::{
    Root,
    task_stat::TaskStat,
    watch::{BREAKPOINTS_MAX, Breakpoints, Count, Spot},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    hint::black_box,
    io,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Writes of a thread to a word after which its breakpoint stops.
const WRITES_MAX: i32 = 16;
/// Running time in which a thread's writes are counted, and the same for lines that nobody was seen to write to.
const RUN_NS: u64 = 3_000_000;
const RUN_SHORT_NS: u64 = 2_000_000;
/// How long a thread that waits for a CPU gets for that.
const WINDOW_MAX: Duration = Duration::from_millis(60);
/// How long a thread that sleeps gets.
const WINDOW_MIN: Duration = Duration::from_millis(5);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(1);
/// Threads of a line whose writes are counted.
const THREADS_MAX: usize = 16;
/// Tries of a line that threads may share.
const TRIES_MAX: u32 = 3;
/// Writes that show the cost of one.
const CALIBRATION_WRITES: u64 = 100;
/// Fewest writes of a word by a thread for its bytes to be counted.
const WRITES_MIN: u64 = 2;

/// Cost of a breakpoint's hit, in nanoseconds.
pub fn hit_ns() -> io::Result<u64> {
    let word = AtomicU64::new(0);
    let spot = Spot { address: std::ptr::from_ref(&word).addr() as u64, bytes: 8 };
    let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let mut costs = Vec::new();
    for _ in 0..3 {
        let breakpoints = Breakpoints::start(&[tid], &[spot], i32::MAX)?;
        let begun = Instant::now();
        for _ in 0..CALIBRATION_WRITES {
            // Relaxed: of one thread.
            black_box(&word).fetch_add(1, Ordering::Relaxed);
        }
        costs.push(super::nanoseconds(begun.elapsed()) / CALIBRATION_WRITES);
        drop(breakpoints);
    }
    costs.sort_unstable();
    Ok(costs[1].max(1))
}

/// Lines whose words are counted.
pub struct Words<'a> {
    root: &'a Root,
    hit_ns: u64,
    line_bytes: u64,
    /// Lines to count, the most promising last.
    queue: Vec<Candidate>,
    tries: BTreeMap<u64, u32>,
    counts: BTreeMap<(Spot, u32), Counted>,
    stalled_ns: u64,
}

/// Counts of all tries.
#[derive(Default)]
struct Counted {
    writes: u64,
    time_ns: u64,
    /// How often each instruction wrote.
    code: BTreeMap<u64, u64>,
}

impl<'a> Words<'a> {
    pub fn new(root: &'a Root, hit_ns: u64, line_bytes: u64) -> Self {
        Self {
            root,
            hit_ns,
            line_bytes,
            queue: Vec::new(),
            tries: BTreeMap::new(),
            counts: BTreeMap::new(),
            stalled_ns: 0,
        }
    }

    /// Chooses lines by the samples: those tried least often, and of these the most promising first.
    pub fn choose(&mut self, samples: &Samples, tids: &[u32]) {
        let shared = self.shared_lines();
        let mut queue = samples.candidates(self.line_bytes, THREADS_MAX, tids);
        let tries = |line: u64| self.tries.get(&line).copied().unwrap_or(0);
        queue.retain(|of| {
            let most = if of.seen > 0 { TRIES_MAX } else { 2 };
            tries(of.line) < most && !shared.contains(&of.line)
        });
        queue.sort_by_key(|of| tries(of.line));
        queue.reverse();
        self.queue = queue;
    }

    /// Counts the next line; `false` if none is left.
    pub fn count_next(&mut self) -> io::Result<bool> {
        let Some(candidate) = self.queue.pop() else { return Ok(false) };
        *self.tries.entry(candidate.line).or_default() += 1;
        let words = spots(candidate.line, self.line_bytes, 8);
        let ran_ns = if candidate.seen > 0 { RUN_NS } else { RUN_SHORT_NS };
        for group in words.chunks(BREAKPOINTS_MAX) {
            self.count(&candidate.tids, group, ran_ns)?;
        }
        for word in words {
            let writers = self.writers(word);
            if writers.len() > 1 {
                self.refine(word, &writers)?;
            }
        }
        Ok(true)
    }

    /// Counts the parts of a word that several threads write to, since they may write to different parts.
    fn refine(&mut self, word: Spot, writers: &[u32]) -> io::Result<()> {
        let halves = spots(word.address, WORD_BYTES, 2);
        for _ in 0..TRIES_MAX {
            self.count(writers, &halves, RUN_NS)?;
            let seen: BTreeSet<u32> = halves.iter().flat_map(|half| self.writers(*half)).collect();
            if writers.iter().all(|tid| seen.contains(tid)) {
                break;
            }
        }
        let mut common = halves.into_iter().filter(|half| self.writers(*half).len() > 1);
        // More than one are a value of four or eight bytes.
        if let (Some(half), None) = (common.next(), common.next()) {
            self.count(writers, &spots(half.address, half.bytes.into(), 1), RUN_NS)?;
        }
        Ok(())
    }

    fn count(&mut self, tids: &[u32], spots: &[Spot], ran_ns: u64) -> io::Result<()> {
        lowlat_sys::open_files::allow((tids.len() * spots.len()) as u64);
        let breakpoints = Breakpoints::start(tids, spots, WRITES_MAX)?;
        self.wait(&breakpoints, ran_ns);
        let counts = breakpoints.finish();
        let of_thread = |tid: &u32| -> u64 {
            counts.iter().filter(|count| count.tid == *tid).map(|count| count.writes * self.hit_ns).sum()
        };
        self.stalled_ns += tids.iter().map(of_thread).max().unwrap_or(0);
        for count in counts {
            self.add(count);
        }
        Ok(())
    }

    /// Waits until every thread has run for a while, or sleeps.
    fn wait(&self, breakpoints: &Breakpoints, ran_ns: u64) {
        let begun = Instant::now();
        while begun.elapsed() < WINDOW_MAX {
            thread::sleep(LOOK);
            let pending = breakpoints.pending(ran_ns);
            let is_ready = |tid: &u32| {
                let stat = TaskStat::read(self.root, &format!("/proc/{tid}/stat"));
                stat.known().is_some_and(|stat| stat.state == 'R')
            };
            if pending.is_empty() || (begun.elapsed() > WINDOW_MIN && !pending.iter().any(is_ready)) {
                return;
            }
        }
    }

    fn add(&mut self, count: Count) {
        let counted = self.counts.entry((count.spot, count.tid)).or_default();
        counted.writes += count.writes;
        counted.time_ns += count.time_ns;
        for code in count.code {
            *counted.code.entry(code).or_default() += 1;
        }
    }

    /// Threads that write to a word.
    fn writers(&self, spot: Spot) -> Vec<u32> {
        let of_spot = self.counts.range((spot, 0)..=(spot, u32::MAX));
        of_spot.filter(|(_, counted)| counted.writes >= WRITES_MIN).map(|((_, tid), _)| *tid).collect()
    }

    fn shared_lines(&self) -> BTreeSet<u64> {
        let mut threads: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        for ((spot, tid), counted) in &self.counts {
            if counted.writes >= WRITES_MIN {
                threads.entry(spot.address & !(self.line_bytes - 1)).or_default().insert(*tid);
            }
        }
        threads.into_iter().filter(|(_, tids)| tids.len() > 1).map(|(line, _)| line).collect()
    }

    /// Lines that several threads write to.
    pub fn shared_line_count(&self) -> usize {
        self.shared_lines().len()
    }

    /// Adds the counts of shared lines.
    pub fn report(&self, record: &mut FinderRecord) {
        let shared = self.shared_lines();
        let is_shared = |spot: &Spot| shared.contains(&(spot.address & !(self.line_bytes - 1)));
        let counts = self.counts.iter().filter(|((spot, _), counted)| counted.writes > 0 && is_shared(spot));
        record.counts = counts
            .map(|((spot, tid), counted)| FieldCount {
                address: spot.address,
                bytes: spot.bytes.into(),
                tid: *tid,
                writes: counted.writes,
                time_ns: counted.time_ns,
                code: counted.code.iter().max_by_key(|(_, count)| **count).map_or(0, |(code, _)| *code),
            })
            .collect();
        record.counted_line_count = self.tries.len() as u64;
        let is_left = |of: &&Candidate| (of.seen > 0 || of.is_noted) && !self.tries.contains_key(&of.line);
        record.uncounted_line_count = self.queue.iter().filter(is_left).count() as u64;
        record.stalled_ns += self.stalled_ns;
    }
}

fn spots(start: u64, bytes: u64, each: u8) -> Vec<Spot> {
    let places = (start..start + bytes).step_by(each.into());
    places.map(|address| Spot { address, bytes: each }).collect()
}
