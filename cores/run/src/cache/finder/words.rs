//! Counts of reads and writes of the words of lines.

use super::{nanoseconds, pages::Watched};
use crate::watch::{BREAKPOINTS_MAX, Breakpoints, Counted, Probe, Spot, WatchedAccess};
use lowlat_cache::finder::{Candidate, FieldCount, FinderRecord, Meeting, Samples, WORD_BYTES, fields, turn};
use std::{
    collections::{BTreeMap, BTreeSet},
    hint::black_box,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Accesses of a thread to a word after which its breakpoint stops.
const ACCESSES_MAX: usize = 8;
/// Accesses of a thread to all of its fields after which its breakpoints stop in a window.
const WINDOW_ACCESSES_MAX: usize = 16;
/// Time for which words are counted at once.
const COUNTED: Duration = Duration::from_millis(3);
/// Windows in which the threads of a line are counted, and the length of one. Its start and length do not depend on
/// what is counted.
const WINDOWS: usize = 24;
const WINDOW: Duration = Duration::from_micros(250);
/// Threads of a line whose accesses are counted at the same time.
const THREADS_MAX: usize = 16;
/// Tries of a line that threads may share, of one that only its neighbours suggest, and of one whose threads were not
/// yet seen to use it at the same time: they may share a CPU for a while.
const TRIES_MAX: usize = 4;
const NEIGHBOUR_TRIES_MAX: usize = 2;
const PACES_MAX: usize = 12;
/// Writes that show the cost of one, and how often it is measured.
const CALIBRATION_WRITES: u64 = 20;
const CALIBRATIONS: usize = 15;

/// Cost of a breakpoint's hit, in nanoseconds.
pub fn hit_ns() -> io::Result<u64> {
    let word = AtomicU64::new(0);
    let spot = Spot { address: std::ptr::from_ref(&word).addr() as u64, bytes: 8 };
    let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let mut costs = Vec::new();
    for _ in 0..CALIBRATIONS {
        let breakpoints = Breakpoints::start(&[Probe { tid, spot, access: WatchedAccess::Write }], i32::MAX)?;
        let begun = Instant::now();
        for _ in 0..CALIBRATION_WRITES {
            // Relaxed: of one thread.
            black_box(&word).fetch_add(1, Ordering::Relaxed);
        }
        costs.push(nanoseconds(begun.elapsed()) / CALIBRATION_WRITES);
        drop(breakpoints);
    }
    costs.sort_unstable();
    Ok(costs[CALIBRATIONS / 2].max(1))
}

/// Lines whose words are counted. Addresses are those of the record.
#[derive(Default)]
pub struct Words {
    hit_ns: u64,
    line_bytes: u64,
    /// Lines to count, the most promising last.
    queue: Vec<Candidate>,
    running: Vec<u32>,
    tries: BTreeMap<u64, usize>,
    /// Lines that are promising, and whose threads have not all had their turn.
    left: BTreeSet<u64>,
    counts: BTreeMap<(Spot, u32), FieldCount>,
    meetings: BTreeMap<(u64, [u32; 2]), Meeting>,
    /// The threads of each line whose windows were counted.
    paced: BTreeMap<u64, BTreeSet<u32>>,
}

impl Words {
    pub fn new(hit_ns: u64, line_bytes: u64) -> Self {
        Self { hit_ns, line_bytes, ..Self::default() }
    }

    /// Chooses lines by the samples: those tried least often, and of these the most promising first. Threads that do
    /// not run use no line.
    pub fn choose(&mut self, samples: &Samples, running: Vec<u32>) {
        self.running = running;
        let mut queue = samples.candidates();
        let tries = |words: &Self, line: u64| words.tries.get(&line).copied().unwrap_or(0);
        queue.retain(|of| {
            let turns = turn(&of.tids, &self.running, 0, THREADS_MAX).1;
            if of.is_promising() && tries(self, of.line) < turns {
                self.left.insert(of.line);
            } else {
                self.left.remove(&of.line);
            }
            let wanted = match (self.paced.contains_key(&of.line), of.is_promising()) {
                (true, _) if self.has_met(of.line) => 1,
                (true, _) => PACES_MAX,
                (_, true) => TRIES_MAX,
                _ => NEIGHBOUR_TRIES_MAX,
            };
            tries(self, of.line) < turns.max(wanted)
        });
        queue.sort_by_key(|of| tries(self, of.line));
        queue.reverse();
        self.queue = queue;
    }

    /// Counts the next line; `false` if none is left.
    pub fn count_next(&mut self, watched: &mut Watched) -> io::Result<bool> {
        let Some(candidate) = self.queue.pop() else { return Ok(false) };
        let line = candidate.line;
        let tries = self.tries.entry(line).or_default();
        let (tids, turns) = turn(&candidate.tids, &self.running, *tries, THREADS_MAX);
        *tries += 1;
        if *tries >= turns {
            self.left.remove(&line);
        }
        let words = spots(line, self.line_bytes, 8);
        if tids.len() > 1 {
            for group in words.chunks(BREAKPOINTS_MAX) {
                self.count(watched, tids.iter().copied(), group, WatchedAccess::Any)?;
            }
        }
        if self.users(&words).len() < 2 {
            return Ok(true);
        }
        for group in words.chunks(BREAKPOINTS_MAX) {
            self.count(watched, self.users(group), group, WatchedAccess::Write)?;
        }
        let mut is_written = false;
        for word in words {
            let users = self.users(&[word]);
            let has_writer = self.of(word).any(|count| count.writes > 0);
            is_written |= has_writer;
            if users.len() > 1 && has_writer {
                self.refine(watched, word, &users)?;
            }
        }
        if is_written {
            self.pace(watched, line)?;
        }
        Ok(true)
    }

    /// Counts the parts of a word that several threads use, since they may use different parts.
    fn refine(&mut self, watched: &mut Watched, word: Spot, users: &BTreeSet<u32>) -> io::Result<()> {
        let halves = spots(word.address, WORD_BYTES, 2);
        for _ in 0..TRIES_MAX {
            self.count_both(watched, users, &halves)?;
            if self.users(&halves).is_superset(users) {
                break;
            }
        }
        let mut common = halves.into_iter().filter(|half| self.users(&[*half]).len() > 1);
        // More than one are a value of four or eight bytes.
        if let (Some(half), None) = (common.next(), common.next()) {
            self.count_both(watched, users, &spots(half.address, half.bytes.into(), 1))?;
        }
        Ok(())
    }

    fn count_both(&mut self, watched: &mut Watched, tids: &BTreeSet<u32>, spots: &[Spot]) -> io::Result<()> {
        self.count(watched, tids.iter().copied(), spots, WatchedAccess::Any)?;
        self.count(watched, tids.iter().copied(), spots, WatchedAccess::Write)
    }

    fn count(
        &mut self,
        watched: &mut Watched,
        tids: impl IntoIterator<Item = u32>,
        spots: &[Spot],
        access: WatchedAccess,
    ) -> io::Result<()> {
        let wanted = tids
            .into_iter()
            .take(THREADS_MAX)
            .flat_map(|tid| spots.iter().map(move |spot| (tid, *spot, access)));
        for ((tid, spot, _), count) in self.observe(watched, wanted.collect(), ACCESSES_MAX, COUNTED)?.1 {
            let counted = self.counted(tid, spot);
            match access {
                WatchedAccess::Any => counted.accesses += count.count,
                WatchedAccess::Write => counted.writes += count.count,
            }
            if let (Some((code, _)), Some(process)) = (count.hits.last(), watched.process_of(tid)) {
                counted.code = process.tagged(*code);
            }
        }
        Ok(())
    }

    /// Sets breakpoints for a while, where the threads' processes have that memory. Returns how long in nanoseconds,
    /// and what they counted.
    fn observe(
        &self,
        watched: &mut Watched,
        wanted: Vec<Wanted>,
        most: usize,
        time: Duration,
    ) -> io::Result<(u64, Vec<(Wanted, Counted)>)> {
        let local = |(tid, spot, access): Wanted| {
            let address = watched.process_of(tid)?.local(spot.address)?;
            Some(((tid, spot, access), Probe { tid, spot: Spot { address, ..spot }, access }))
        };
        let (wanted, probes): (Vec<Wanted>, Vec<Probe>) = wanted.into_iter().filter_map(local).unzip();
        lowlat_host_run::open_files::allow(probes.len() as u64);
        let breakpoints = Breakpoints::start(&probes, i32::try_from(most).unwrap_or(i32::MAX))?;
        let begun = Instant::now();
        watched.pause(time, true);
        let window_ns = nanoseconds(begun.elapsed());
        let counts = breakpoints.finish().into_iter().map(|count| (wanted[count.probe], count));
        let counts: Vec<(Wanted, Counted)> = counts.collect();
        let mut of_thread: BTreeMap<u32, u64> = BTreeMap::new();
        for ((tid, ..), count) in &counts {
            *of_thread.entry(*tid).or_default() += count.count * self.hit_ns;
        }
        // The thread that was hit most.
        watched.add_stalled(of_thread.into_values().max().unwrap_or(0));
        watched.rest();
        Ok((window_ns, counts))
    }

    /// Counts the fields of a line in short windows, which show how often each is used, and by which threads at the
    /// same time.
    fn pace(&mut self, watched: &mut Watched, line: u64) -> io::Result<()> {
        let last = Spot { address: line + self.line_bytes - 1, bytes: u8::MAX };
        let counts = self.counts.range((Spot { address: line, bytes: 0 }, 0)..=(last, u32::MAX));
        let mut of_thread: BTreeMap<u32, Vec<(u64, Wanted)>> = BTreeMap::new();
        for field in fields(&counts.map(|(_, count)| count).collect::<Vec<_>>(), self.hit_ns) {
            // Parts of a word were counted by two bytes, or by one.
            let bytes = if field.bytes == WORD_BYTES { 8 } else { 1 + u8::from(field.bytes > 1) };
            let spot = Spot { address: field.address, bytes };
            for user in field.users {
                let access = if user.is_writer { WatchedAccess::Write } else { WatchedAccess::Any };
                of_thread.entry(user.tid).or_default().push((user.accesses, (user.tid, spot, access)));
            }
        }
        let tids: BTreeSet<u32> = of_thread.keys().copied().collect();
        let is_paced = self.paced.get(&line).is_some_and(|paced| paced.is_superset(&tids));
        if tids.len() < 2 || (is_paced && self.has_met(line)) {
            return Ok(());
        }
        // The busiest fields of the busiest threads first.
        let mut all: Vec<Vec<(u64, Wanted)>> = of_thread.into_values().collect();
        for of in &mut all {
            of.sort_by_key(|of| std::cmp::Reverse(of.0));
        }
        all.sort_by_key(|of| std::cmp::Reverse(of[0].0));
        all.truncate(THREADS_MAX);
        let each = (THREADS_MAX / all.len()).clamp(1, BREAKPOINTS_MAX);
        for pass in 0..all.iter().map(Vec::len).max().unwrap_or(0).div_ceil(each) {
            let part = all.iter().flat_map(|of| of.iter().skip(pass * each).take(each).map(|of| of.1));
            self.windows(watched, line, part.collect(), WINDOW_ACCESSES_MAX / each)?;
        }
        self.paced.insert(line, tids);
        Ok(())
    }

    fn windows(
        &mut self,
        watched: &mut Watched,
        line: u64,
        mut part: Vec<Wanted>,
        most: usize,
    ) -> io::Result<()> {
        // CPUs that each thread was last seen on, and windows in which one was seen while another was on another CPU.
        let mut last: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut apart: BTreeMap<[u32; 2], u64> = BTreeMap::new();
        let mut together: BTreeMap<[u32; 2], u64> = BTreeMap::new();
        for _ in 0..WINDOWS {
            if watched.is_over() || watched.is_replaced {
                self.left.insert(line);
                break;
            }
            // Another one is the first to be counted.
            part.rotate_left(1);
            // CPUs of each thread, and whether it wrote.
            let mut seen: BTreeMap<u32, (BTreeSet<u32>, bool)> = BTreeMap::new();
            let (window_ns, counts) = self.observe(watched, part.clone(), most, WINDOW)?;
            for ((tid, spot, access), count) in counts {
                let counted = self.counted(tid, spot);
                counted.window_count += count.count;
                counted.window_ns += window_ns;
                counted.is_cut |= count.count >= most as u64;
                if count.count > 0 {
                    let of = seen.entry(tid).or_default();
                    of.0.extend(count.hits.iter().map(|(_, cpu)| *cpu));
                    of.1 |= access == WatchedAccess::Write;
                }
            }
            last.extend(seen.iter().map(|(tid, (cpus, _))| (*tid, cpus.clone())));
            for (tid, (cpus, is_writer)) in &seen {
                let is_apart = |(other, beside): &(&u32, &BTreeSet<u32>)| {
                    *other != tid && cpus.union(beside).count() > 1
                };
                for (other, _) in last.iter().filter(is_apart) {
                    *apart.entry([*tid, *other]).or_default() += 1;
                    if seen.get(other).is_some_and(|(_, is_other_writer)| *is_writer || *is_other_writer) {
                        *together.entry([*tid, *other]).or_default() += 1;
                    }
                }
            }
        }
        for (tids, windows) in apart.iter().filter(|(tids, _)| tids[0] < tids[1]) {
            let meeting = self.meetings.entry((line, *tids)).or_default();
            (meeting.line, meeting.tids) = (line, *tids);
            meeting.together += together.get(tids).copied().unwrap_or(0);
            meeting.windows += apart.get(&[tids[1], tids[0]]).copied().unwrap_or(0).min(*windows);
        }
        Ok(())
    }

    fn counted(&mut self, tid: u32, spot: Spot) -> &mut FieldCount {
        let new =
            FieldCount { address: spot.address, bytes: spot.bytes.into(), tid, ..FieldCount::default() };
        self.counts.entry((spot, tid)).or_insert(new)
    }

    /// Returns whether threads were seen to use a line at the same time.
    fn has_met(&self, line: u64) -> bool {
        self.meetings.range((line, [0; 2])..(line + 1, [0; 2])).any(|(_, meeting)| meeting.is_enough())
    }

    fn of(&self, spot: Spot) -> impl Iterator<Item = &FieldCount> {
        self.counts.range((spot, 0)..=(spot, u32::MAX)).map(|(_, count)| count)
    }

    /// Threads that use any of some spots.
    fn users(&self, spots: &[Spot]) -> BTreeSet<u32> {
        let of = spots.iter().flat_map(|spot| self.of(*spot));
        of.filter(|count| count.is_used()).map(|count| count.tid).collect()
    }

    /// Lines that several threads use.
    pub fn shared_line_count(&self) -> usize {
        self.paced.len()
    }

    /// Adds the counts of shared lines.
    pub fn report(&self, record: &mut FinderRecord) {
        let is_paced = |count: &&FieldCount| self.paced.contains_key(&record.line_of(count.address));
        record.counts = self.counts.values().filter(is_paced).cloned().collect();
        record.meetings = self.meetings.values().cloned().collect();
        record.counted_line_count = self.tries.len() as u64;
        record.uncounted_line_count = self.left.len() as u64;
    }
}

/// A breakpoint at an address of the record.
type Wanted = (u32, Spot, WatchedAccess);

fn spots(start: u64, bytes: u64, each: u8) -> Vec<Spot> {
    let places = (start..start + bytes).step_by(each.into());
    places.map(|address| Spot { address, bytes: each }).collect()
}
