//! The memory of one watched process.

use crate::watch::{Mapping, PageWatch, WatchError, WrittenPages, mappings};
use lowlat_cache::finder::{PAGE_BYTES, PROCESS_SHIFT, Samples, UnwatchedKind, plain};
use lowlat_host::Reading;
use lowlat_host_run::Root;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    os::fd::OwnedFd,
};

/// Memory that is protected at once, in bytes.
const CHUNK_BYTES: u64 = 64 << 20;
/// Bytes of a transparent huge page. It is protected and released as a whole, or the kernel would split it for good.
const HUGE_BYTES: u64 = 2 << 20;

/// Memory that processes share: device and inode, place in the file, and the address in the first process seen.
#[derive(Default)]
pub struct Objects(Vec<(String, u64, Range<u64>, u64)>);

pub struct Process {
    pub pid: u32,
    /// Its number in the high bits of addresses.
    tag: u64,
    fd: OwnedFd,
    pub watch: PageWatch,
    /// Memory of files, for which the kernel only notes which pages were written.
    data: Option<Data>,
    /// Its huge pages; `None` before Linux 6.7.
    pages: Option<WrittenPages>,
    pub chunks: Vec<Range<u64>>,
    /// The mappings at the last look.
    pub mappings: Vec<Mapping>,
    /// Memory that processes share: here, and its address in the record.
    shared: Vec<(Range<u64>, u64)>,
    unwatched: BTreeMap<UnwatchedKind, u64>,
}

impl Process {
    pub fn new(pid: u32, number: usize, [fd, noting]: [OwnedFd; 2]) -> Result<Self, WatchError> {
        let ended = || WatchError::ended(pid);
        let id = Pid::from_raw(pid.cast_signed()).ok_or_else(ended)?;
        let pages = WrittenPages::open(pid).ok();
        Ok(Self {
            pid,
            tag: (number as u64) << PROCESS_SHIFT,
            fd: pidfd_open(id, PidfdFlags::empty()).map_err(|_| ended())?,
            watch: PageWatch::new(fd)?,
            data: Data::new(noting, pid),
            pages: pages.filter(|pages| pages.huge(&(0..PAGE_BYTES)).is_ok()),
            chunks: Vec::new(),
            mappings: Vec::new(),
            shared: Vec::new(),
            unwatched: BTreeMap::new(),
        })
    }

    pub fn has_ended(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&now)).is_ok_and(|count| count > 0)
    }

    /// Reads the mappings, and registers new memory.
    pub fn look(&mut self, root: &Root, objects: &mut Objects) {
        let Reading::Known(all) = mappings(root, self.pid) else { return };
        if all.is_empty() {
            return;
        }
        self.chunks.clear();
        self.shared.clear();
        self.unwatched.clear();
        for mapping in all.iter().filter(|of| of.is_shared() && of.inode != 0) {
            let start = objects.address(mapping, mapping.start | self.tag);
            self.shared.push((mapping.start..mapping.end, start));
        }
        for mapping in all.iter().filter(|of| of.is_writable() && of.dirty_kib + of.hugetlb_kib > 0) {
            if let Err(kind) = self.register(mapping) {
                *self.unwatched.entry(kind).or_default() += mapping.bytes();
            }
        }
        self.mappings = all;
    }

    /// Registers a mapping; memory that is already registered stays so.
    fn register(&mut self, mapping: &Mapping) -> Result<(), UnwatchedKind> {
        let range = mapping.start..mapping.end;
        if mapping.hugetlb_kib > 0 {
            return Err(UnwatchedKind::Hugetlb);
        }
        // Huge pages of shared memory are split however they are protected.
        if mapping.huge_kib > 0 && (self.pages.is_none() || mapping.is_shared()) {
            return Err(UnwatchedKind::Huge);
        }
        if self.watch.register(&range).is_ok() {
            // At multiples, so that no huge page is in two chunks.
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min((start / CHUNK_BYTES + 1) * CHUNK_BYTES);
                self.chunks.push(start..end);
                start = end;
            }
            return Ok(());
        }
        let kind = if mapping.inode == 0 { UnwatchedKind::Refused } else { UnwatchedKind::Data };
        if self.data.as_mut().is_some_and(|data| data.register(&range)) { Ok(()) } else { Err(kind) }
    }

    /// Notes the pages of files' data that were written since the last call.
    pub fn note(&mut self, samples: &mut Samples) {
        let pages = self.data.as_mut().map(Data::written).unwrap_or_default();
        for page in pages {
            samples.note(self.canonical(page));
        }
    }

    /// Range that is protected with a page: the page, or the huge page that it is in.
    pub fn block(&self, page: u64) -> Range<u64> {
        let start = page & !(HUGE_BYTES - 1);
        let whole = start..start + HUGE_BYTES;
        let is_inside = self.chunks.iter().any(|chunk| chunk.start <= whole.start && whole.end <= chunk.end);
        let is_huge = |pages: &WrittenPages| pages.huge(&whole).is_ok_and(|huge| !huge.is_empty());
        if is_inside && self.pages.as_ref().is_some_and(is_huge) { whole } else { page..page + PAGE_BYTES }
    }

    /// The address in the record of one of this process.
    pub fn canonical(&self, address: u64) -> u64 {
        let shared = self.shared.iter().find(|(range, _)| range.contains(&address));
        shared.map_or(address | self.tag, |(range, start)| start + (address - range.start))
    }

    /// The address in this process of one in the record, if it has that memory.
    pub fn local(&self, address: u64) -> Option<u64> {
        let is_in = |(range, start): &&(Range<u64>, u64)| {
            (*start..start + (range.end - range.start)).contains(&address)
        };
        if let Some((range, start)) = self.shared.iter().find(is_in) {
            return Some(range.start + (address - start));
        }
        self.is_tagged(address)
            .then(|| plain(address))
            .filter(|local| !self.shared.iter().any(|(range, _)| range.contains(local)))
    }

    /// Returns whether an address in the record has this process's number.
    pub fn is_tagged(&self, address: u64) -> bool {
        address >> PROCESS_SHIFT == self.tag >> PROCESS_SHIFT
    }

    /// An address of this process's code, for the record.
    pub fn tagged(&self, address: u64) -> u64 {
        address | self.tag
    }

    /// Adds the bytes that are not watched. `mappers` counts the watched processes that have a shared mapping.
    pub fn report(&self, unwatched: &mut BTreeMap<UnwatchedKind, u64>, mappers: &dyn Fn(u64) -> usize) {
        // If two watched processes have it, it is assumed that no others do.
        let is_common = |of: &&Mapping| {
            of.is_shared() && of.is_writable() && of.common_kib > 0 && mappers(self.canonical(of.start)) < 2
        };
        let common = self.mappings.iter().filter(is_common).map(|of| (UnwatchedKind::Shared, of.bytes()));
        for (kind, bytes) in common.chain(self.unwatched.iter().map(|(kind, bytes)| (*kind, *bytes))) {
            *unwatched.entry(kind).or_default() += bytes;
        }
    }
}

impl Objects {
    /// The address of a shared mapping in the record: that of the first process which had the same part of the file.
    fn address(&mut self, mapping: &Mapping, own: u64) -> u64 {
        let part = mapping.offset..mapping.offset + mapping.bytes();
        let is_same = |of: &&(String, u64, Range<u64>, u64)| {
            of.0 == mapping.device
                && of.1 == mapping.inode
                && of.2.start <= part.start
                && part.start < of.2.end
        };
        if let Some(of) = self.0.iter().find(is_same) {
            return of.3 + (part.start - of.2.start);
        }
        self.0.push((mapping.device.clone(), mapping.inode, part, own));
        own
    }
}

/// Initialized data of the program and its libraries, and other files.
struct Data {
    watch: PageWatch,
    pages: WrittenPages,
    ranges: BTreeMap<u64, u64>,
    /// Ranges whose earlier writes are already left out.
    begun: BTreeSet<u64>,
}

impl Data {
    /// `None` before Linux 6.7.
    fn new(fd: OwnedFd, pid: u32) -> Option<Self> {
        let (watch, pages) = (PageWatch::noting(fd).ok()?, WrittenPages::open(pid).ok()?);
        Some(Self { watch, pages, ranges: BTreeMap::new(), begun: BTreeSet::new() })
    }

    fn register(&mut self, range: &Range<u64>) -> bool {
        let is_done = self.watch.register(range).is_ok();
        if is_done {
            self.ranges.insert(range.start, range.end);
        }
        is_done
    }

    fn written(&mut self) -> Vec<u64> {
        let mut written = Vec::new();
        for (start, end) in &self.ranges {
            let Ok(stretches) = self.pages.take(&(*start..*end)) else { continue };
            if !self.begun.insert(*start) {
                let step = usize::try_from(PAGE_BYTES).unwrap_or(usize::MAX);
                written.extend(stretches.into_iter().flat_map(|of| of.step_by(step)));
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_map_the_same_memory_have_one_address_for_it() {
        let mapping = |device: &str, inode, start, end, offset| Mapping {
            start,
            end,
            access: "rw-s".to_owned(),
            offset,
            name: String::new(),
            device: device.to_owned(),
            inode,
            dirty_kib: 4,
            common_kib: 4,
            ..Mapping::default()
        };
        let mut objects = Objects::default();
        assert_eq!(objects.address(&mapping("00:01", 7, 0x1000, 0x9000, 0), 0x1000), 0x1000);
        let second = mapping("00:01", 7, 0x5_0000, 0x5_4000, 0x2000);
        assert_eq!(objects.address(&second, 0x5_0000 | 1 << PROCESS_SHIFT), 0x3000);
        let other = 0x5_0000 | 1 << PROCESS_SHIFT;
        for different in
            [mapping("00:02", 7, 0x5_0000, 0x5_4000, 0), mapping("00:01", 8, 0x5_0000, 0x5_4000, 0)]
        {
            assert_eq!(objects.address(&different, other), other);
        }
    }
}
