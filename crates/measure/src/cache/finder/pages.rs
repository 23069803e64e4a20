//! Samples of writes to the pages of a program.

use super::nanoseconds;
use lowlat_cache::finder::{FinderRecord, PAGE_BYTES, Samples, Thread, Unwatched, UnwatchedKind};
use lowlat_host::Reading;
use lowlat_sys::{
    Root,
    watch::{Mapping, PageWatch, TraceEvent, Tracer, WatchError, Write, WrittenPages, mappings},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    os::fd::OwnedFd,
    thread,
    time::{Duration, Instant},
};

/// Memory that is protected at once, in bytes.
const CHUNK_BYTES: u64 = 64 << 20;
/// How long a chunk stays protected.
const WINDOW: Duration = Duration::from_millis(1);
/// How long the first write to a page waits, for those of other threads to the same page.
const HOLD: Duration = Duration::from_micros(30);
/// How long a single page stays protected without a write.
const PAGE_WINDOW: Duration = Duration::from_micros(300);
/// Samples of one page in a row.
const BURST: usize = 8;
/// Pages that several threads write to, sampled one by one after each chunk.
const PAGES_PER_CHUNK: usize = 8;
/// The program runs at least this many times as long as it waited for a sample.
const PAUSE_FACTOR: u32 = 4;
/// Shortest pause, so that the program is elsewhere at the next sample.
const PAUSE_MIN: Duration = Duration::from_micros(200);
/// Time between two looks at the program's mappings.
const LOOK: Duration = Duration::from_secs(1);

/// A program whose pages are watched.
pub struct Watched<'a> {
    root: &'a Root,
    pid: u32,
    tracer: Tracer,
    watch: PageWatch,
    /// Of memory of files, for which the kernel only notes which pages were written.
    data: Option<Data>,
    chunks: Vec<Range<u64>>,
    next_chunk: usize,
    next_page: usize,
    looked: Instant,
    stalled: Duration,
    threads: BTreeMap<u32, String>,
    refused: BTreeMap<u64, u64>,
    /// The mappings at the last look.
    pub mappings: Vec<Mapping>,
    /// Whether the program has ended.
    pub has_ended: bool,
    /// Whether the program has replaced itself by another.
    pub is_replaced: bool,
}

impl<'a> Watched<'a> {
    pub fn attach(root: &'a Root, pid: u32) -> Result<Self, WatchError> {
        let (tracer, [fd, noting]) = Tracer::attach(root, pid)?;
        let mut watched = Self {
            root,
            pid,
            tracer,
            watch: PageWatch::new(fd)?,
            data: Data::new(noting, pid),
            chunks: Vec::new(),
            next_chunk: 0,
            next_page: 0,
            looked: Instant::now(),
            stalled: Duration::ZERO,
            threads: BTreeMap::new(),
            refused: BTreeMap::new(),
            mappings: Vec::new(),
            has_ended: false,
            is_replaced: false,
        };
        watched.look();
        Ok(watched)
    }

    /// Watches the program that has replaced the first one.
    pub fn begin_again(&mut self) -> Result<(), WatchError> {
        self.is_replaced = false;
        let [fd, noting] = self.tracer.make_again(self.root)?;
        self.watch = PageWatch::new(fd)?;
        self.data = Data::new(noting, self.pid);
        self.refused.clear();
        self.look();
        Ok(())
    }

    /// Handles what happened to the program's threads. No page is protected now.
    pub fn attend(&mut self) {
        while let Some(event) = self.tracer.event() {
            let ended = match event {
                TraceEvent::Ending(tid) => self.tracer.let_end(tid),
                other => Some(other),
            };
            match ended {
                Some(TraceEvent::Ended) => self.has_ended = true,
                Some(TraceEvent::Replaced) => self.is_replaced = true,
                _ => {}
            }
        }
        if self.looked.elapsed() > LOOK {
            self.look();
        }
    }

    /// Reads mappings and threads, and registers new memory.
    fn look(&mut self) {
        self.looked = Instant::now();
        if let Reading::Known(tids) = self.root.list(&format!("/proc/{}/task", self.pid)) {
            for tid in tids {
                let name = self.root.read(&format!("/proc/{}/task/{tid}/comm", self.pid)).into_known();
                if let (Ok(tid), Some(name)) = (tid.parse(), name) {
                    self.threads.insert(tid, name);
                }
            }
        }
        let Reading::Known(all) = mappings(self.root, self.pid) else { return };
        if all.is_empty() {
            return;
        }
        self.chunks.clear();
        for mapping in all.iter().filter(|mapping| is_watchable(mapping)) {
            let range = mapping.start..mapping.end;
            // What is already registered stays so.
            if self.watch.register(&range).is_err() {
                self.refused.insert(range.start, mapping.bytes());
                continue;
            }
            self.refused.remove(&range.start);
            let starts = (range.start..range.end).step_by(usize::try_from(CHUNK_BYTES).unwrap_or(usize::MAX));
            self.chunks.extend(starts.map(|start| start..range.end.min(start + CHUNK_BYTES)));
        }
        if let Some(data) = &mut self.data {
            data.register(&all);
        }
        self.mappings = all;
    }

    /// Notes the pages of files' data that were written since the last call.
    pub fn note(&mut self, samples: &mut Samples) {
        if let Some(data) = &mut self.data {
            data.written().into_iter().for_each(|page| samples.note(page));
        }
    }

    /// The threads that run.
    pub fn tids(&self) -> Vec<u32> {
        self.tracer.threads()
    }

    /// Takes samples: of one chunk, and of pages that several threads write to.
    pub fn sample(&mut self, samples: &mut Samples) {
        self.attend();
        let mut waited = Duration::ZERO;
        if let Some(chunk) = self.chunks.get(self.next_chunk % self.chunks.len().max(1)).cloned() {
            self.next_chunk = (self.next_chunk + 1) % self.chunks.len();
            waited += self.window(&chunk, samples);
        }
        let shared = samples.shared_pages();
        for _ in 0..PAGES_PER_CHUNK.min(shared.len()) {
            self.next_page = (self.next_page + 1) % shared.len();
            let page = shared[self.next_page];
            waited += self.burst(page, samples);
        }
        self.stalled += waited;
        thread::sleep(PAUSE_MIN.max(waited * PAUSE_FACTOR));
    }

    /// Protects a range for a moment; returns how long writes waited.
    fn window(&self, range: &Range<u64>, samples: &mut Samples) -> Duration {
        let mut waited = Duration::ZERO;
        if self.watch.arm(range).is_ok() {
            let begun = Instant::now();
            while let Some(left) = WINDOW.checked_sub(begun.elapsed()) {
                if !self.watch.wait(left) {
                    break;
                }
                waited += self.gather(samples);
            }
        }
        // Also of a part, if the rest was unmapped.
        self.watch.release(range);
        waited
    }

    /// Protects one page again and again.
    fn burst(&self, page: u64, samples: &mut Samples) -> Duration {
        let range = page..page + PAGE_BYTES;
        let mut waited = Duration::ZERO;
        for _ in 0..BURST {
            if self.watch.arm(&range).is_err() || !self.watch.wait(PAGE_WINDOW) {
                break;
            }
            waited += self.gather(samples);
        }
        self.watch.release(&range);
        waited
    }

    /// Takes the writes that wait, and lets them continue.
    fn gather(&self, samples: &mut Samples) -> Duration {
        let begun = Instant::now();
        let mut writes: Vec<Write> = Vec::new();
        self.watch.writes(&mut writes);
        while let Some(left) = HOLD.checked_sub(begun.elapsed()) {
            if !self.watch.wait(left) {
                break;
            }
            self.watch.writes(&mut writes);
        }
        let pages: BTreeSet<u64> = writes.iter().map(|write| write.page()).collect();
        for page in pages {
            self.watch.release(&(page..page + PAGE_BYTES));
        }
        let waited = begun.elapsed();
        for write in writes {
            samples.add(write.tid, write.address);
        }
        waited
    }

    /// Adds what is known of the program.
    pub fn report(&self, record: &mut FinderRecord) {
        record.stalled_ns += nanoseconds(self.stalled) + self.tracer.stopped_ns;
        record.threads =
            self.threads.iter().map(|(tid, name)| Thread { tid: *tid, name: name.clone() }).collect();
        record.program =
            self.root.read_link(&format!("/proc/{}/exe", self.pid)).into_known().unwrap_or_default();
        record.watched_bytes = self.chunks.iter().map(|chunk| chunk.end - chunk.start).sum();
        let sum = |kind, is_of: &dyn Fn(&Mapping) -> bool| {
            let of_kind = self.mappings.iter().filter(|mapping| mapping.is_writable() && is_of(mapping));
            Unwatched { kind, bytes: of_kind.map(Mapping::bytes).sum() }
        };
        let is_noted = |of: &Mapping| {
            self.data.as_ref().is_some_and(|data| data.ranges.iter().any(|range| range.start == of.start))
        };
        let is_missed = |of: &Mapping| is_data(of) && !is_noted(of);
        record.watched_bytes +=
            self.mappings.iter().filter(|of| is_noted(of)).map(Mapping::bytes).sum::<u64>();
        let refused = Unwatched { kind: UnwatchedKind::Refused, bytes: self.refused.values().sum() };
        let all =
            [sum(UnwatchedKind::Shared, &Mapping::is_shared), sum(UnwatchedKind::Data, &is_missed), refused];
        record.unwatched = all.into_iter().filter(|of| of.bytes > 0).collect();
    }
}

/// Initialized data of the program and its libraries.
struct Data {
    watch: PageWatch,
    pages: WrittenPages,
    ranges: Vec<Range<u64>>,
    /// Ranges whose earlier writes are already left out.
    begun: BTreeSet<u64>,
}

impl Data {
    /// `None` before Linux 6.7.
    fn new(fd: OwnedFd, pid: u32) -> Option<Self> {
        let (watch, pages) = (PageWatch::noting(fd).ok()?, WrittenPages::open(pid).ok()?);
        Some(Self { watch, pages, ranges: Vec::new(), begun: BTreeSet::new() })
    }

    fn register(&mut self, all: &[Mapping]) {
        let data = all.iter().filter(|mapping| is_data(mapping)).map(|mapping| mapping.start..mapping.end);
        self.ranges = data.filter(|range| self.watch.register(range).is_ok()).collect();
    }

    fn written(&mut self) -> Vec<u64> {
        let mut written = Vec::new();
        for range in &self.ranges {
            let Ok(stretches) = self.pages.take(range) else { continue };
            if !self.begun.insert(range.start) {
                let step = usize::try_from(PAGE_BYTES).unwrap_or(usize::MAX);
                written.extend(stretches.into_iter().flat_map(|of| of.step_by(step)));
            }
        }
        written
    }
}

/// Memory of a file that the program has written.
fn is_data(mapping: &Mapping) -> bool {
    mapping.is_writable() && !mapping.is_shared() && mapping.inode != 0 && mapping.dirty_kib > 0
}

/// Private memory without a file that the program has written.
fn is_watchable(mapping: &Mapping) -> bool {
    mapping.is_writable() && !mapping.is_shared() && mapping.inode == 0 && mapping.dirty_kib > 0
}
