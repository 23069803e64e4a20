//! Memory of one node, in pages of one size.

use lowlat_cache::memory::Pages;
use lowlat_sys::{Root, launch::allocate_on};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::{
    io,
    ptr::{NonNull, null_mut},
    slice, thread,
};

/// A cache line that names the next one.
#[repr(C, align(64))]
struct Line {
    next: u64,
    rest: [u64; 7],
}

/// Lines in a ring: each of the first half names another one, in random order.
pub struct Buffer {
    lines: NonNull<Line>,
    count: usize,
    /// Share in huge pages.
    pub huge_share: f64,
}

// SAFETY: the mapping belongs to this value alone, and after `new` nobody writes to it.
unsafe impl Send for Buffer {}
// SAFETY: as above: threads only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Fills `bytes` of this node's memory; of any node if none is named.
    ///
    /// # Errors
    /// The system's error if the memory cannot be had.
    pub fn new(root: &Root, node: Option<u32>, bytes: usize, pages: Pages) -> io::Result<Self> {
        let fill = || -> io::Result<Self> {
            // The policy is the thread's, and so ends with it.
            node.map_or(Ok(()), allocate_on)?;
            let mut buffer = Self::map(bytes, pages)?;
            buffer.link();
            Ok(buffer)
        };
        let joined = thread::scope(|scope| scope.spawn(fill).join());
        let mut buffer =
            joined.unwrap_or_else(|_| Err(io::Error::other("the thread that fills it failed")))?;
        let smaps = root.read("/proc/self/smaps").into_known().unwrap_or_default();
        buffer.huge_share = huge_share(&smaps, buffer.lines.addr().get()).unwrap_or(0.0);
        Ok(buffer)
    }

    fn map(bytes: usize, pages: Pages) -> io::Result<Self> {
        let count = bytes / size_of::<Line>();
        let length = count * size_of::<Line>();
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe {
            mmap_anonymous(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let lines = NonNull::new(start.cast::<Line>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // From here on, dropping the value unmaps.
        let buffer = Self { lines, count, huge_share: 0.0 };
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

    /// Makes one ring of the first half, by Sattolo's algorithm, and touches the second.
    fn link(&mut self) {
        // SAFETY: the mapping holds `count` lines, is zeroed, for which every value is valid, aligned to a page, and
        // borrowed mutably through `self`.
        let lines = unsafe { slice::from_raw_parts_mut(self.lines.as_ptr(), self.count) };
        let (ring, rest) = lines.split_at_mut(self.count / 2);
        for (line, place) in ring.iter_mut().zip(0..) {
            line.next = place;
        }
        let mut random = fastrand::Rng::with_seed(7);
        for place in (1..ring.len()).rev() {
            let other = random.usize(..place);
            let (low, high) = ring.split_at_mut(place);
            if let (Some(low), Some(high)) = (low.get_mut(other), high.first_mut()) {
                std::mem::swap(&mut low.next, &mut high.next);
            }
        }
        for line in rest {
            line.rest[0] = 1;
        }
    }

    fn lines(&self) -> &[Line] {
        // SAFETY: the mapping holds `count` initialized lines, lives as long as `self`, and nobody writes to it.
        unsafe { slice::from_raw_parts(self.lines.as_ptr(), self.count) }
    }

    /// Follows the ring for some steps, and returns the place it came to. Each load waits for the one before.
    #[inline(never)]
    pub fn chase(&self, from: usize, steps: u64) -> usize {
        let ring = self.lines();
        let mut place = from;
        for _ in 0..steps {
            place = ring.get(place).map_or(0, |line| usize::try_from(line.next).unwrap_or(0));
        }
        place
    }

    /// Parts of the second half, one for each reader.
    pub fn parts(&self, readers: usize) -> Vec<Part<'_>> {
        let half = self.lines().get(self.count / 2..).unwrap_or_default();
        let size = half.len().div_ceil(readers.max(1)).max(1);
        half.chunks(size).map(Part).collect()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map`, of this length, and no borrow of it outlives this value. An error
        // leaves it mapped, which harms nobody.
        let _ = unsafe { munmap(self.lines.as_ptr().cast(), self.count * size_of::<Line>()) };
    }
}

/// Lines that one thread reads in order.
pub struct Part<'a>(&'a [Line]);

/// Lines read between two looks at the clock: 64 KiB.
const LINES_PER_LOOK: usize = 1_024;

impl Part<'_> {
    /// Reads over and over until told to stop, and returns the bytes that were read.
    pub fn read_until(&self, is_over: impl Fn() -> bool) -> u64 {
        let mut bytes = 0;
        let mut sum: u64 = 0;
        loop {
            for lines in self.0.chunks(LINES_PER_LOOK) {
                if is_over() {
                    // Nobody may leave the loads out.
                    std::hint::black_box(sum);
                    return bytes;
                }
                for line in lines {
                    sum = line
                        .rest
                        .iter()
                        .fold(sum.wrapping_add(line.next), |sum, word| sum.wrapping_add(*word));
                }
                bytes += size_of_val(lines) as u64;
            }
            if self.0.is_empty() {
                return 0;
            }
        }
    }
}

/// Share in huge pages of the mapping that holds an address, as /proc/PID/smaps tells (proc_pid_smaps(5)).
fn huge_share(smaps: &str, address: usize) -> Option<f64> {
    let range = |line: &str| -> Option<(usize, usize)> {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
    };
    let holds = |line: &&str| range(line).is_some_and(|(start, end)| (start..end).contains(&address));
    let mut lines =
        smaps.lines().skip_while(|line| !holds(line)).skip(1).take_while(|line| range(line).is_none());
    let mut kib = |name: &str| -> Option<f64> {
        let line = lines.find_map(|line| line.strip_prefix(name))?;
        line.strip_suffix("kB")?.trim().parse().ok()
    };
    // In the kernel's order.
    let (resident, huge) = (kib("Rss:")?, kib("AnonHugePages:")?);
    (resident > 0.0).then_some(huge / resident)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn the_ring_holds_every_line_of_the_first_half() {
        let buffer = Buffer::new(&Root::live(), None, 4_096 * 64, Pages::Small).unwrap();
        let half = 2_048;
        let mut place = 0;
        let mut seen = vec![false; half];
        for _ in 0..half {
            assert!(!std::mem::replace(&mut seen[place], true), "{place} twice");
            place = buffer.chase(place, 1);
        }
        assert_eq!(place, 0);
        assert_eq!(buffer.chase(0, half as u64), 0);
    }

    #[test]
    fn readers_share_the_second_half() {
        let buffer = Buffer::new(&Root::live(), None, 4_096 * 64, Pages::Small).unwrap();
        let parts = buffer.parts(3);
        assert_eq!(parts.iter().map(|part| part.0.len()).sum::<usize>(), 2_048);
        let looks = Cell::new(0);
        let bytes = parts[0].read_until(|| looks.replace(looks.get() + 1) == 3);
        assert_eq!(bytes, 3 * 683 * 64);
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
