//! Samples of writes to the pages of a program and its children.

use super::{
    nanoseconds,
    process::{Objects, Process},
};
use crate::watch::{ProgramEvent, Tracer, WatchError, Write};
use lowlat_cache::finder::{FinderRecord, Quarter, Samples, Thread, Unwatched};
use lowlat_host::Reading;
use lowlat_host_run::{
    Root,
    task_stat::{TaskStat, children},
};
use rustix::io::Errno;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Time that a chunk stays protected.
const WINDOW: Duration = Duration::from_millis(1);
/// Time that the first write to a page waits, for those of other threads to the same page.
const HOLD: Duration = Duration::from_micros(30);
/// Time that a single page stays protected without a write.
const PAGE_WINDOW: Duration = Duration::from_micros(300);
/// Samples of one page in a row.
const BURST: usize = 8;
/// Pages that several threads write to, sampled one by one after each chunk.
const PAGES_PER_CHUNK: usize = 8;
/// The program runs at least this many times as long as it waited for a sample.
const PAUSE_FACTOR: u32 = 4;
/// Shortest pause, so that the program is elsewhere at the next sample.
const PAUSE_MIN: Duration = Duration::from_micros(200);
/// Time between two checks for stopped threads.
const POLL: Duration = Duration::from_micros(100);
/// Ends of threads in one look.
const EVENTS_MAX: usize = 8;
/// Time between two reads of the program's mappings.
const LOOK: Duration = Duration::from_secs(1);
/// Processes that are watched at the same time.
const PROCESSES_MAX: usize = 32;

/// A thread of a watched process.
#[derive(Default)]
struct WatchedThread {
    pid: u32,
    name: String,
    cpus: BTreeSet<u32>,
    /// Its running time, and how much of it was since the look before.
    ran_ns: u64,
    ran_lately_ns: u64,
}

/// A program whose pages are watched.
pub struct Watched<'a> {
    root: &'a Root,
    stop: &'a AtomicBool,
    end: Instant,
    tracer: Tracer<'a>,
    has_children: bool,
    pub processes: Vec<Process>,
    /// Processes that could not be watched.
    missed: BTreeSet<u32>,
    objects: Objects,
    threads: BTreeMap<u32, WatchedThread>,
    /// Number of the next chunk and page.
    turn: usize,
    looked: Instant,
    /// Waiting for other reasons than the tracer's stops.
    stalled_ns: u64,
    quarter: Quarter,
    accounted: (Instant, u64),
    /// The first process has ended.
    pub has_ended: bool,
    /// A process has replaced its program by another.
    pub is_replaced: bool,
}

impl<'a> Watched<'a> {
    pub fn attach(
        root: &'a Root,
        pid: u32,
        has_children: bool,
        end: Instant,
        stop: &'a AtomicBool,
    ) -> Result<Self, WatchError> {
        let mut watched = Self {
            root,
            stop,
            end,
            tracer: Tracer::new(root),
            has_children,
            processes: Vec::new(),
            missed: BTreeSet::new(),
            objects: Objects::default(),
            threads: BTreeMap::new(),
            turn: 0,
            looked: Instant::now(),
            stalled_ns: 0,
            quarter: Quarter::default(),
            accounted: (Instant::now(), 0),
            has_ended: false,
            is_replaced: false,
        };
        watched.adopt(pid)?;
        Ok(watched)
    }

    fn adopt(&mut self, pid: u32) -> Result<(), WatchError> {
        let made = self.tracer.attach(pid)?;
        let mut process = Process::new(pid, self.processes.len(), made)?;
        process.look(self.root, &mut self.objects);
        self.processes.push(process);
        Ok(())
    }

    /// Watches all again, since a program was replaced by another.
    pub fn begin_again(&mut self) -> Result<(), WatchError> {
        self.is_replaced = false;
        let first = self.processes.drain(..).next().map(|process| process.pid);
        self.objects = Objects::default();
        first.map_or(Ok(()), |pid| self.adopt(pid))?;
        self.find_children();
        Ok(())
    }

    /// True if watching is to end.
    pub fn is_over(&self) -> bool {
        // Relaxed: set by the signal handler; orders nothing.
        self.has_ended || Instant::now() >= self.end || self.stop.load(Ordering::Relaxed)
    }

    /// Handles what happened to the threads. No page is protected now.
    pub fn attend(&mut self, is_letting_go: bool) {
        // Threads may come and end without a pause.
        for _ in 0..EVENTS_MAX {
            let event = self.tracer.event(is_letting_go || self.quarter.is_used_up());
            self.account();
            let Some(event) = event else { break };
            self.handle(event);
        }
        self.has_ended |= self.processes.first().is_some_and(Process::has_ended);
    }

    fn account(&mut self) {
        let (now, stalled_ns) = (Instant::now(), self.stalled_ns + self.tracer.stopped_ns);
        self.quarter.pass(nanoseconds(now - self.accounted.0), stalled_ns - self.accounted.1);
        self.accounted = (now, stalled_ns);
    }

    fn handle(&mut self, event: ProgramEvent) {
        match event {
            ProgramEvent::Ending(tid) => self.tracer.let_end(tid),
            ProgramEvent::Replaced(_) => self.is_replaced = true,
        }
    }

    /// Lets time pass. Threads that stop in it are traced as before, or no longer.
    pub fn pause(&mut self, time: Duration, is_letting_go: bool) {
        let begun = Instant::now();
        loop {
            self.attend(is_letting_go);
            match time.checked_sub(begun.elapsed()) {
                Some(left) if !left.is_zero() && !self.is_over() => thread::sleep(left.min(POLL)),
                _ => return,
            }
        }
    }

    /// Adds time that the program waited.
    pub fn add_stalled(&mut self, waited_ns: u64) {
        self.stalled_ns += waited_ns;
    }

    /// Leaves the program alone until it has run long enough, compared with the time that it waited.
    pub fn rest(&mut self) {
        self.attend(true);
        while self.quarter.is_used_up() && !self.is_over() {
            self.pause(Duration::from_millis(1), true);
        }
    }

    /// Watches the children of the program that are new, and looks which threads run.
    pub fn find_children(&mut self) {
        let mut found: Vec<u32> = self.processes.first().map(|first| first.pid).into_iter().collect();
        let mut next = 0;
        while let Some(pid) = found.get(next).copied().filter(|_| self.has_children) {
            next += 1;
            found.extend(children(self.root, pid));
        }
        found.retain(|pid| !self.missed.contains(pid) && self.processes.iter().all(|of| of.pid != *pid));
        for pid in found {
            let is_full = self.processes.iter().filter(|of| !of.has_ended()).count() >= PROCESSES_MAX;
            // If it has ended, not much is missed.
            if is_full || self.adopt(pid).is_err_and(|error| !error.is_nothing_missed()) {
                self.missed.insert(pid);
            }
        }
        self.threads.values_mut().for_each(|thread| thread.ran_lately_ns = 0);
        for process in &self.processes {
            for path in self.root.glob(&format!("/proc/{}/task/*", process.pid)) {
                let Reading::Known(stat) = TaskStat::read(self.root, &format!("{path}/stat")) else {
                    continue;
                };
                let Some(tid) = path.rsplit('/').next().and_then(|tid| tid.parse().ok()) else { continue };
                let ran = self.root.read(&format!("{path}/schedstat")).into_known().unwrap_or_default();
                let ran_ns: u64 = ran.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
                let thread = self.threads.entry(tid).or_default();
                (thread.pid, thread.name) = (process.pid, stat.comm);
                thread.cpus.extend(stat.usage.map(|usage| usage.cpu));
                (thread.ran_lately_ns, thread.ran_ns) = (ran_ns.saturating_sub(thread.ran_ns), ran_ns);
            }
        }
    }

    /// Threads that ran lately, those that ran most first.
    pub fn running(&self) -> Vec<u32> {
        let mut all: Vec<_> = self.threads.iter().filter(|(_, thread)| thread.ran_lately_ns > 0).collect();
        all.sort_by_key(|(_, thread)| std::cmp::Reverse(thread.ran_lately_ns));
        all.into_iter().map(|(tid, _)| *tid).collect()
    }

    /// The process of a thread.
    pub fn process_of(&self, tid: u32) -> Option<&Process> {
        let pid = self.threads.get(&tid)?.pid;
        self.processes.iter().find(|process| process.pid == pid)
    }

    /// The first address of the mapping of an address; the address itself if it is no longer mapped.
    pub fn mapping_of(&self, address: u64) -> u64 {
        let mut all = self.processes.iter().filter_map(|process| {
            let local = process.local(address)?;
            let mapping = process.mappings.iter().find(|mapping| mapping.has(local))?;
            Some(process.canonical(mapping.start))
        });
        all.next().unwrap_or(address)
    }

    /// Notes the pages of files' data that were written since the last call.
    pub fn note(&mut self, samples: &mut Samples) {
        self.processes.iter_mut().for_each(|process| process.note(samples));
    }

    /// Takes samples: of one chunk, and of pages that several threads write to.
    pub fn sample(&mut self, samples: &mut Samples) {
        self.rest();
        if self.looked.elapsed() > LOOK {
            self.looked = Instant::now();
            for process in self.processes.iter_mut().filter(|process| !process.has_ended()) {
                process.look(self.root, &mut self.objects);
            }
        }
        let before_ns = self.accounted.1;
        self.turn += 1;
        let all = self.processes.iter().enumerate();
        let mut chunks =
            all.flat_map(|(at, process)| process.chunks.iter().map(move |chunk| (at, chunk.clone())));
        let count: usize = self.processes.iter().map(|process| process.chunks.len()).sum();
        let next = chunks.nth(self.turn % count.max(1));
        if let Some((at, chunk)) = next {
            self.window(at, &chunk, WINDOW, samples);
        }
        let shared = samples.shared_pages();
        for number in 0..PAGES_PER_CHUNK.min(shared.len()) {
            let page = shared[(self.turn * PAGES_PER_CHUNK + number) % shared.len()];
            for at in 0..self.processes.len() {
                let Some(page) = self.processes[at].local(page) else { continue };
                let block = self.processes[at].block(page);
                // Several samples in a row.
                (0..BURST).all(|_| self.window(at, &block, PAGE_WINDOW, samples));
            }
        }
        self.account();
        let waited = Duration::from_nanos(self.accounted.1 - before_ns);
        self.pause(PAUSE_MIN.max(waited * PAUSE_FACTOR), false);
    }

    /// Protects a range for a moment. Returns whether a write was caught, and nothing else happened.
    fn window(&mut self, at: usize, range: &Range<u64>, longest: Duration, samples: &mut Samples) -> bool {
        let process = &self.processes[at];
        if self.tracer.hold(process.pid).is_err() {
            return false;
        }
        let (mut event, before, begun) = (None, samples.count, Instant::now());
        let armed = process.watch.arm(range);
        // Since when a write may wait.
        let mut quiet = begun;
        while event.is_none() && (longest == WINDOW || samples.count == before) && armed.is_ok() {
            let Some(left) = longest.checked_sub(begun.elapsed()) else { break };
            if process.watch.wait(left.min(POLL)) {
                gather(process, samples);
                self.stalled_ns += nanoseconds(quiet.elapsed());
            }
            quiet = Instant::now();
            event = self.tracer.event(false);
        }
        // Also of a part, if the rest was unmapped.
        process.watch.release(range);
        let is_gone = armed.is_err_and(|error| error.raw_os_error() == Some(Errno::SRCH.raw_os_error()));
        self.is_replaced |= is_gone && !process.has_ended();
        let is_quiet = event.is_none();
        if let Some(event) = event {
            self.handle(event);
        }
        is_quiet && samples.count > before
    }

    /// Adds what is known of the program.
    pub fn report(&self, record: &mut FinderRecord) {
        record.stalled_ns = self.stalled_ns + self.tracer.stopped_ns;
        record.threads = self
            .threads
            .iter()
            .map(|(tid, of)| Thread {
                tid: *tid,
                name: of.name.clone(),
                cpus: of.cpus.iter().copied().collect(),
            })
            .collect();
        record.program =
            self.root.read_link(&format!("/proc/{}/exe", record.pid)).into_known().unwrap_or_default();
        record.processes = self.processes.iter().map(|process| process.pid).collect();
        record.missed_process_count = self.missed.len() as u64;
        let mappers =
            |address| self.processes.iter().filter(|process| process.local(address).is_some()).count();
        let mut unwatched = BTreeMap::new();
        self.processes.iter().for_each(|process| process.report(&mut unwatched, &mappers));
        record.unwatched = unwatched.into_iter().map(|(kind, bytes)| Unwatched { kind, bytes }).collect();
    }
}

/// Takes the writes that wait, and lets them continue.
fn gather(process: &Process, samples: &mut Samples) {
    let begun = Instant::now();
    let mut writes: Vec<Write> = Vec::new();
    process.watch.writes(&mut writes);
    while let Some(left) = HOLD.checked_sub(begun.elapsed()) {
        if !process.watch.wait(left) {
            break;
        }
        process.watch.writes(&mut writes);
    }
    let pages: BTreeSet<u64> = writes.iter().map(|write| write.page()).collect();
    for page in pages {
        process.watch.release(&process.block(page));
    }
    let of = |write: &Write| (write.tid, process.canonical(write.address));
    samples.add(&writes.iter().map(of).collect::<Vec<_>>());
}
