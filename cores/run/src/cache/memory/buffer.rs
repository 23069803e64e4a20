//! Memory of one node, in pages of one size.

use crate::{cache::link, launch::allocate_on, watch::mappings};
use lowlat_cache::memory::Pages;
use lowlat_host_run::Root;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::{
    io,
    ptr::{NonNull, null_mut},
    slice, thread,
};

/// include/uapi/asm-generic/mman-common.h; musl has no name for it.
const MADV_COLLAPSE: libc::c_int = 25;

/// A cache line that names the next one.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Line {
    /// Offset of the next line from the ring's first, in bytes.
    next: usize,
    pub rest: [u64; 7],
}

impl Line {
    /// A line beside the rings.
    pub fn filled(word: u64) -> Self {
        Self { next: 0, rest: [word; 7] }
    }
}

/// Lines in rings, in random order, and lines beside them.
pub struct Buffer {
    lines: NonNull<Line>,
    count: usize,
    /// Lines of each ring, from the first line on.
    rings: Vec<usize>,
    /// Share of the memory in huge pages, 0 to 1.
    pub huge_share: f64,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Fills this node's memory, or any node's if none is named, with rings of these sizes in bytes and `rest` bytes of
    /// other lines.
    ///
    /// # Errors
    /// The system's error if the memory cannot be had.
    pub fn new(root: &Root, node: Option<u32>, rings: &[u64], rest: u64, pages: Pages) -> io::Result<Self> {
        let lines = |bytes: u64| usize::try_from(bytes).map_or(usize::MAX, |bytes| bytes / size_of::<Line>());
        let rings: Vec<usize> = rings.iter().map(|bytes| lines(*bytes)).collect();
        let count = rings.iter().fold(lines(rest), |sum, ring| sum.saturating_add(*ring));
        let fill = || -> io::Result<Self> {
            // The policy is the thread's, and so ends with it.
            node.map_or(Ok(()), allocate_on)?;
            let mut buffer = Self::map(count, rings, pages)?;
            buffer.fill();
            Ok(buffer)
        };
        let joined = thread::scope(|scope| scope.spawn(fill).join());
        let mut buffer =
            joined.unwrap_or_else(|_| Err(io::Error::other("the thread that fills it failed")))?;
        let share = |buffer: &Self| {
            let smaps = root.read("/proc/self/smaps").into_known().unwrap_or_default();
            huge_share(&smaps, buffer.lines.addr().get()).unwrap_or(0.0)
        };
        buffer.huge_share = share(&buffer);
        if pages == Pages::Huge && buffer.huge_share < 1.0 {
            buffer.collapse();
            buffer.huge_share = share(&buffer);
        }
        Ok(buffer)
    }

    fn map(count: usize, rings: Vec<usize>, pages: Pages) -> io::Result<Self> {
        let length = count.checked_mul(size_of::<Line>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe {
            mmap_anonymous(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let lines = NonNull::new(start.cast::<Line>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // From here on, dropping the value unmaps.
        let buffer = Self { lines, count, rings, huge_share: 0.0 };
        let advice = match pages {
            Pages::Small => Advice::LinuxNoHugepage,
            Pages::Huge => Advice::LinuxHugepage,
        };
        // SAFETY: the range is the mapping above; neither advice changes its contents.
        let advised = unsafe { madvise(start, length, advice) };
        match advised {
            // A kernel without transparent huge pages has small ones.
            Err(error) if pages == Pages::Huge => Err(error.into()),
            _ => Ok(buffer),
        }
    }

    /// Asks the kernel to join small pages, which it had to give where memory is in pieces. Kernels before 6.1 cannot.
    fn collapse(&self) {
        let length = self.count * size_of::<Line>();
        // SAFETY: the range is the mapping of this value; the advice keeps its contents.
        unsafe { libc::madvise(self.lines.as_ptr().cast(), length, MADV_COLLAPSE) };
    }

    /// Makes the rings, and touches the rest.
    fn fill(&mut self) {
        let (rings, rest) = self.split_mut();
        for ring in rings {
            link(ring, |line| &mut line.next, |place| place * size_of::<Line>());
        }
        rest.fill(Line::filled(1));
    }

    fn split_mut(&mut self) -> (Vec<&mut [Line]>, &mut [Line]) {
        // SAFETY: the mapping holds `count` lines, is zeroed or filled, every value is valid, it is aligned to a page, and
        // borrowed mutably through `self`.
        let mut rest = unsafe { slice::from_raw_parts_mut(self.lines.as_ptr(), self.count) };
        let mut rings = Vec::with_capacity(self.rings.len());
        for count in &self.rings {
            let (ring, others) = rest.split_at_mut((*count).min(rest.len()));
            rings.push(ring);
            rest = others;
        }
        (rings, rest)
    }

    /// The rings, and the lines beside them, which may be written.
    pub fn split(&mut self) -> (Vec<Ring<'_>>, &mut [Line]) {
        let (rings, rest) = self.split_mut();
        (rings.into_iter().map(|lines| Ring { lines }).collect(), rest)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map`, of this length, and no borrow of it outlives this value. An error
        // leaves it mapped, which harms nobody.
        let _ = unsafe { munmap(self.lines.as_ptr().cast(), self.count * size_of::<Line>()) };
    }
}

/// Lines that each name the next one; the last names the first.
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    lines: &'a [Line],
}

impl<'a> Ring<'a> {
    pub fn len(self) -> u64 {
        self.lines.len() as u64
    }

    /// `N` chases through the ring, each as far behind the one before: a line that one has loaded is loaded by the next
    /// only after as many loads as the ring has lines.
    pub fn chase<const N: usize>(self) -> Chase<'a, N> {
        let mut places = [0; N];
        let mut walk = Chase { ring: self, places: [0] };
        for place in &mut places {
            [*place] = walk.places;
            if N > 1 {
                walk.advance(self.len() / N as u64);
            }
        }
        Chase { ring: self, places }
    }
}

/// Positions of chases through one ring.
#[derive(Clone, Copy)]
pub struct Chase<'a, const N: usize> {
    ring: Ring<'a>,
    /// Offsets of lines, in bytes: 0, or read from a line.
    places: [usize; N],
}

impl<'a, const N: usize> Chase<'a, N> {
    pub fn ring(&self) -> Ring<'a> {
        self.ring
    }

    /// `M` of them, as far apart as they can be.
    pub fn some<const M: usize>(&self) -> Chase<'a, M> {
        let mut places = [0; M];
        for (place, from) in places.iter_mut().zip(self.places.iter().step_by((N / M.max(1)).max(1))) {
            *place = *from;
        }
        Chase { ring: self.ring, places }
    }

    /// Lets each go some steps. Each load waits for the one before it in the same chase.
    #[inline(never)]
    pub fn advance(&mut self, steps: u64) {
        let lines = self.ring.lines;
        if lines.is_empty() {
            return;
        }
        let first = lines.as_ptr();
        let mut places = self.places;
        for _ in 0..steps {
            for place in &mut places {
                // SAFETY: 0, and what `Buffer::fill` wrote to every line of a ring, are offsets of lines of the same
                // ring, which the borrow keeps alive and unchanged.
                *place = unsafe { (*first.byte_add(*place)).next };
            }
        }
        self.places = places;
    }
}

/// Share in huge pages of the mapping that holds an address, as /proc/PID/smaps reports (proc_pid_smaps(5)).
fn huge_share(smaps: &str, address: usize) -> Option<f64> {
    let mapping = mappings::parse(smaps).into_iter().find(|of| of.has(address as u64))?;
    (mapping.resident_kib > 0).then(|| mapping.huge_kib as f64 / mapping.resident_kib as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ring_holds_all_its_lines() {
        let mut buffer =
            Buffer::new(&Root::live(), None, &[64 * 2_048, 64 * 100], 4_096, Pages::Small).unwrap();
        let (rings, rest) = buffer.split();
        assert_eq!((rings.len(), rest.len()), (2, 64));
        for (ring, count) in rings.into_iter().zip([2_048, 100]) {
            let mut chase = ring.chase::<1>();
            let mut seen = vec![false; count];
            for _ in 0..count {
                let place = chase.places[0] / 64;
                assert!(!std::mem::replace(&mut seen[place], true), "{place} twice");
                chase.advance(1);
            }
            assert_eq!(chase.places, [0]);
            // The second starts where the first will be after half the ring.
            let mut both = ring.chase::<2>();
            let [first, second] = both.places;
            both.advance(count as u64 / 2);
            assert_eq!(both.places, [second, first]);
        }
    }

    #[test]
    fn an_empty_ring_is_not_followed() {
        let mut buffer = Buffer::new(&Root::live(), None, &[0], 4_096, Pages::Small).unwrap();
        let (rings, _) = buffer.split();
        rings[0].chase::<4>().advance(9);
    }

    #[test]
    fn the_share_of_huge_pages_is_that_of_the_mapping() {
        let smaps = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
Rss:                4096 kB
AnonHugePages:      2048 kB
VmFlags: rd wr mr mw me ac nh sd
7f0000400000-7f0000500000 rw-p 00000000 00:00 0
Rss:                   0 kB
AnonHugePages:         0 kB
";
        assert_eq!(huge_share(smaps, 0x7f00_0020_0000), Some(0.5));
        assert_eq!(huge_share(smaps, 0x7f00_0040_0000), None);
        assert_eq!(huge_share(smaps, 0x1000), None);
    }
}
