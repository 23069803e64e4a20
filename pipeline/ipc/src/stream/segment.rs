//! A segment, as described by its header.

use crate::{
    atomics::{AtomicU64, Ordering},
    layout::{self, HEADER_BYTES, header, record},
    region::{CachedWords, Region},
};
use thiserror::Error;

/// The writing process. A process id alone may be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner {
    pub pid: u32,
    /// Start time in clock ticks since boot (field 22 of /proc/PID/stat).
    pub start_ticks: u64,
}

/// Reason why memory is not accepted as a segment.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SegmentError(String);

impl SegmentError {
    fn too_small(bytes: u64, needed: u64) -> Self {
        Self(format!("cannot use {bytes} bytes as a segment: it needs {needed} bytes"))
    }
}

/// A segment in memory. Its header was checked; its records are checked as they are read.
#[derive(Debug)]
pub struct Segment<R> {
    /// The header and the ring, and no further words.
    memory: CachedWords<R>,
    capacity_bytes: u64,
    stream: u32,
    epoch: u64,
    first_sequence: u64,
    owner: Owner,
}

impl<R: Region> Segment<R> {
    /// Bytes of memory of a segment whose ring has `capacity_bytes`.
    pub const fn bytes(capacity_bytes: u64) -> u64 {
        HEADER_BYTES + capacity_bytes
    }

    /// Creates a segment in zeroed memory. Other processes may map it earlier: without its magic they reject
    /// it.
    pub fn create(
        region: R,
        capacity_bytes: u64,
        stream: u32,
        epoch: u64,
        first_sequence: u64,
        owner: Owner,
    ) -> Result<Self, SegmentError> {
        check_capacity(capacity_bytes)?;
        check_size(&region, capacity_bytes)?;
        let words = region.words();
        let put = |at: usize, value: u64| {
            if let Some(word) = words.get(at) {
                word.store(value, Ordering::Relaxed);
            }
        };
        put(header::VERSION, layout::VERSION);
        put(header::BYTE_ORDER, layout::BYTE_ORDER);
        put(header::CAPACITY, capacity_bytes);
        put(header::STREAM, u64::from(stream));
        put(header::EPOCH, epoch);
        put(header::FIRST_SEQUENCE, first_sequence);
        put(header::WRITER_PID, u64::from(owner.pid));
        put(header::WRITER_START, owner.start_ticks);
        // Pairs with the load in `open`: whoever sees the magic sees the rest.
        if let Some(word) = words.get(header::MAGIC) {
            word.store(layout::MAGIC, Ordering::Release);
        }
        let memory = Self::words_of(region, capacity_bytes);
        Ok(Self { memory, capacity_bytes, stream, epoch, first_sequence, owner })
    }

    /// Opens memory that another process filled as a segment, after checking every word of its header.
    pub fn open(region: R) -> Result<Self, SegmentError> {
        let words = region.words();
        if words.len() < usize::try_from(HEADER_BYTES / layout::WORD_BYTES).unwrap_or(usize::MAX) {
            return Err(SegmentError::too_small(bytes_of(&region), HEADER_BYTES));
        }
        let get = |at: usize| words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
        // Pairs with the store at the end of `create`.
        let magic = words.get(header::MAGIC).map_or(0, |word| word.load(Ordering::Acquire));
        let wrong = |what: &str, found: u64, expected: &str| {
            SegmentError(format!(
                "cannot use the memory as a segment: {what} is {found:#x}, expected {expected}"
            ))
        };
        if magic != layout::MAGIC {
            return Err(wrong("magic", magic, "\"LLSTREAM\""));
        }
        if get(header::BYTE_ORDER) != layout::BYTE_ORDER {
            return Err(wrong("byte order", get(header::BYTE_ORDER), "that of this machine"));
        }
        if get(header::VERSION) != layout::VERSION {
            return Err(SegmentError(format!(
                "cannot read a segment of layout version {}: this program supports {}\nhint: run all processes of a pipeline with one version of lowlat",
                get(header::VERSION),
                layout::VERSION
            )));
        }
        let capacity_bytes = get(header::CAPACITY);
        check_capacity(capacity_bytes)?;
        check_size(&region, capacity_bytes)?;
        let stream = u32::try_from(get(header::STREAM))
            .map_err(|_| wrong("stream", get(header::STREAM), "a number of 32 bits"))?;
        let pid = u32::try_from(get(header::WRITER_PID))
            .map_err(|_| wrong("writer", get(header::WRITER_PID), "a process id"))?;
        let epoch = get(header::EPOCH);
        if epoch == 0 {
            return Err(wrong("epoch", 0, "1 or more"));
        }
        let first_sequence = get(header::FIRST_SEQUENCE);
        let owner = Owner { pid, start_ticks: get(header::WRITER_START) };
        let memory = Self::words_of(region, capacity_bytes);
        Ok(Self { memory, capacity_bytes, stream, epoch, first_sequence, owner })
    }

    /// The words of a segment with this capacity.
    fn words_of(region: R, capacity_bytes: u64) -> CachedWords<R> {
        let words = Self::bytes(capacity_bytes) / layout::WORD_BYTES;
        CachedWords::new(region).cut(usize::try_from(words).unwrap_or(usize::MAX))
    }

    /// Capacity of the ring, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    pub fn stream(&self) -> u32 {
        self.stream
    }

    /// Number of the segment among those of the stream, from 1.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Sequence of the first record.
    pub fn first_sequence(&self) -> u64 {
        self.first_sequence
    }

    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Position up to which records are complete.
    pub fn tail(&self) -> u64 {
        // Pairs with the store in `Writer::advance`: records below it are complete.
        self.word(header::TAIL).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Position of the last record; `None` before the first. After a read of the
    /// tail this returns the last record below the tail, or a newer one.
    pub(super) fn last(&self) -> Option<u64> {
        // Relaxed: the tail is stored after it, and the caller checks what is at the position.
        self.word(header::LAST).and_then(|word| word.load(Ordering::Relaxed).checked_sub(1))
    }

    /// Epoch of the segment that replaces this one; `None` while this is the last one.
    #[inline]
    pub fn successor(&self) -> Option<u64> {
        // Pairs with the store in `fence`: whoever sees it sees everything done before the writer was fenced
        // off.
        let epoch = self.word(header::FENCE).map_or(0, |word| word.load(Ordering::Acquire));
        (epoch > self.epoch).then_some(epoch)
    }

    /// Fences the writer off: from its next check on it cannot publish, and readers learn where to continue.
    pub fn fence(&self, successor: u64) {
        if let Some(word) = self.word(header::FENCE) {
            word.store(successor, Ordering::Release);
        }
    }

    #[inline]
    pub(super) fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.memory.words().get(at)
    }

    /// Words of the ring from `position` up to the ring's end: the head of a record, and the words after it.
    /// `None` if no head fits.
    #[inline]
    pub(super) fn record_at(&self, position: u64) -> Option<(&[AtomicU64; record::WORDS], &[AtomicU64])> {
        self.memory.words().get(self.place(position)..)?.split_first_chunk()
    }

    /// The commit word of a record at `position`.
    #[inline]
    pub(super) fn commit_at(&self, position: u64) -> Option<&AtomicU64> {
        self.memory.words().get(self.place(position) + record::COMMIT)
    }

    /// Number of the first word of a record at `position`.
    #[inline]
    fn place(&self, position: u64) -> usize {
        let place = (HEADER_BYTES + (position & (self.capacity_bytes - 1))) / layout::WORD_BYTES;
        usize::try_from(place).unwrap_or(usize::MAX)
    }

    /// Bytes from `position` to the ring's end.
    #[inline]
    pub(super) fn room(&self, position: u64) -> u64 {
        self.capacity_bytes - (position & (self.capacity_bytes - 1))
    }
}

fn bytes_of(region: &impl Region) -> u64 {
    u64::try_from(region.words().len()).unwrap_or(u64::MAX).saturating_mul(layout::WORD_BYTES)
}

fn check_capacity(bytes: u64) -> Result<(), SegmentError> {
    let (min, max) = (layout::CAPACITY_BYTES_MIN, layout::CAPACITY_BYTES_MAX);
    if bytes.is_power_of_two() && (min..=max).contains(&bytes) {
        return Ok(());
    }
    Err(SegmentError(format!(
        "cannot create a ring of {bytes} bytes: expected a power of two from {min} to {max}"
    )))
}

fn check_size(region: &impl Region, capacity_bytes: u64) -> Result<(), SegmentError> {
    let (bytes, needed) = (bytes_of(region), Segment::<&dyn Region>::bytes(capacity_bytes));
    if bytes < needed { Err(SegmentError::too_small(bytes, needed)) } else { Ok(()) }
}
