//! A sub-buffer of the kernel's ring buffer, as read from `per_cpu/cpuN/trace_pipe_raw` (kernel doc:
//! Documentation/trace/ring-buffer-design.rst, and `events/header_page` and `events/header_event` of the
//! host).
//!
//! ```text
//! head:   time stamp u64 | commit u32 or u64: bytes of entries, bit 31 (and all above) events lost
//!         before, bit 30 their count follows the entries
//! entry:  type_len 5 bits, time_delta 27 bits | array of u32 …
//!   type_len 1…28  record of that many u32
//!   0              array[0] is the length in bytes, itself included; the record follows
//!   29             time_delta 0: nothing follows in this sub-buffer; else array[0] bytes to skip
//!   30             array[0] << 27 | time_delta is added to the time
//!   31             array[0] << 27 | time_delta are the low 59 bits of the time
//! ```
//! Numbers are in this machine's byte order: a trace is read where it is recorded.

use super::PageLayout;
use super::format::native_number;
use thiserror::Error;

/// Bits of a time stamp in a time_stamp entry.
const STAMP_BITS: u32 = 59;
const STAMP_MASK: u64 = (1 << STAMP_BITS) - 1;
/// Bits of a time_delta; longer ones need a time_extend.
const DELTA_BITS: u32 = 27;
const EVENTS_MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// Bits of the commit word for the length. The kernel adds bit 31 as a negative number, so that in a 64-bit
/// word the whole upper half is set as well.
const LENGTH_MASK: u64 = MISSED_STORED - 1;
/// The shortest entry with a record: its header and one u32.
const ENTRY_BYTES_MIN: usize = 8;

/// One sub-buffer of the ring buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page<'a> {
    /// The trace clock at its first entry, before that entry's delta.
    pub stamp: u64,
    pub missed: MissedEvents,
    data: &'a [u8],
}

/// Events that the kernel overwrote before they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissedEvents {
    Nothing,
    Count(u64),
    /// Some; the kernel does not report how many.
    Some,
}

/// An error in a sub-buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("trace sub-buffer at byte {offset}: found {found:#x}, expected {expected}")]
pub struct PageError {
    /// Offset from the first entry, or for the header from the start.
    pub offset: usize,
    pub found: u64,
    pub expected: &'static str,
}

/// A record with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Time by the trace's clock.
    pub stamp: u64,
    /// The record: `common_type` and so on, up to 3 bytes of padding at its end.
    pub record: &'a [u8],
}

impl<'a> Page<'a> {
    /// Maximum number of records in a sub-buffer of this size.
    pub const fn entries_max(page_bytes: usize) -> usize {
        page_bytes / ENTRY_BYTES_MIN
    }

    /// Parses the header of a sub-buffer.
    ///
    /// # Errors
    /// [`PageError`] if it ends inside its header, or has more committed bytes than its size.
    pub fn parse(bytes: &'a [u8], layout: &PageLayout) -> Result<Self, PageError> {
        let cut = |expected| PageError { offset: bytes.len(), found: bytes.len() as u64, expected };
        let number = |offset: usize, size: usize| {
            bytes.get(offset..offset.saturating_add(size)).and_then(|bytes| native_number(bytes, false))
        };
        let stamp = number(layout.timestamp_offset, 8).ok_or_else(|| cut("a complete time stamp"))?;
        let commit =
            number(layout.commit_offset, layout.commit_size).ok_or_else(|| cut("a complete commit word"))?;
        let body = bytes.get(layout.data_offset..).ok_or_else(|| cut("a complete header"))?;
        let length = usize::try_from(commit & LENGTH_MASK).unwrap_or(usize::MAX);
        let data = body.get(..length).ok_or(PageError {
            offset: layout.commit_offset,
            found: commit,
            expected: "no more committed bytes than the size of the sub-buffer",
        })?;
        // The count is stored after the entries in an unsigned long, which is as wide as the commit word.
        let stored = body
            .get(length..length.saturating_add(layout.commit_size))
            .filter(|_| commit & MISSED_STORED != 0);
        let missed = match (commit & EVENTS_MISSED != 0, stored.and_then(|bytes| native_number(bytes, false)))
        {
            (false, _) => MissedEvents::Nothing,
            (true, Some(count)) if count > 0 => MissedEvents::Count(count),
            (true, _) => MissedEvents::Some,
        };
        Ok(Self { stamp, missed, data })
    }

    /// The records, in the order in which they were written. Iteration ends after an error.
    pub fn entries(&self) -> Entries<'a> {
        Entries { data: self.data, at: 0, stamp: self.stamp }
    }
}

/// Iterator over a sub-buffer's records.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    data: &'a [u8],
    at: usize,
    stamp: u64,
}

impl<'a> Entries<'a> {
    /// The u32 at `at`, which advances past it.
    fn word(&mut self) -> Result<u32, PageError> {
        let bytes = self.data.get(self.at..).and_then(|rest| rest.first_chunk::<4>());
        let rest = self.data.len().saturating_sub(self.at);
        let bytes =
            bytes.ok_or(PageError { offset: self.at, found: rest as u64, expected: "4 more bytes" })?;
        self.at += 4;
        Ok(u32::from_ne_bytes(*bytes))
    }

    /// The next `length` bytes; `at` advances past them and the padding to 4 bytes.
    fn take(&mut self, length: usize) -> Result<&'a [u8], PageError> {
        let end = self.at.checked_add(length);
        let bytes = end.and_then(|end| self.data.get(self.at..end)).ok_or(PageError {
            offset: self.at,
            found: length as u64,
            expected: "an entry that ends within the committed bytes",
        })?;
        self.at += length.next_multiple_of(4);
        Ok(bytes)
    }

    /// The record of the next entry, if it has one.
    fn step(&mut self) -> Result<Option<&'a [u8]>, PageError> {
        let head = self.word()?;
        let delta = u64::from(entry_delta(head));
        match entry_type(head) {
            0 => {
                let offset = self.at;
                let length = self.word()?;
                // The length includes its own 4 bytes.
                let rest = (length as usize).checked_sub(4).ok_or(PageError {
                    offset,
                    found: u64::from(length),
                    expected: "a length of at least its own 4 bytes",
                })?;
                self.stamp = self.stamp.wrapping_add(delta);
                Ok(Some(self.take(rest)?))
            }
            29 if delta == 0 => {
                self.at = self.data.len();
                Ok(None)
            }
            29 => {
                let length = self.word()?;
                self.take((length as usize).saturating_sub(4))?;
                // 1 means 0 here: a discarded entry must not look like the padding at the end.
                self.stamp = self.stamp.wrapping_add(if delta == 1 { 0 } else { delta });
                Ok(None)
            }
            30 => {
                let high = u64::from(self.word()?);
                self.stamp = self.stamp.wrapping_add(high << DELTA_BITS | delta);
                Ok(None)
            }
            31 => {
                let low = u64::from(self.word()?) << DELTA_BITS | delta;
                self.stamp = with_high_bits(low, self.stamp);
                Ok(None)
            }
            words => {
                self.stamp = self.stamp.wrapping_add(delta);
                Ok(Some(self.take(words as usize * 4)?))
            }
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, PageError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Every iteration advances `at` by at least 4 bytes, so this ends.
        while self.at < self.data.len() {
            match self.step() {
                Ok(Some(record)) => return Some(Ok(Entry { stamp: self.stamp, record })),
                Ok(None) => {}
                Err(error) => {
                    self.at = self.data.len();
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// The type in an entry's header. C compilers allocate bit fields from the low end on little-endian machines
/// and from the high end on big-endian ones.
const fn entry_type(head: u32) -> u32 {
    if cfg!(target_endian = "little") { head & 31 } else { head >> DELTA_BITS }
}

const fn entry_delta(head: u32) -> u32 {
    if cfg!(target_endian = "little") { head >> 5 } else { head & ((1 << DELTA_BITS) - 1) }
}

/// The time with `low` as its low 59 bits that is nearest to the previous one: the upper bits are those of
/// the previous time, plus one if the lower ones have wrapped since.
fn with_high_bits(low: u64, before: u64) -> u64 {
    let stamp = before & !STAMP_MASK | low;
    if stamp < before && before - stamp > 1 << (STAMP_BITS - 1) {
        stamp.wrapping_add(1 << STAMP_BITS)
    } else {
        stamp
    }
}
