//! The binary buffer of one CPU.

use super::instance::SharedFile;
use lowlat_host::CpuId;
use lowlat_trace::{CpuCursor, Decoder, TraceEvent};
use std::{
    collections::VecDeque,
    io::{self, Read},
};

/// The trace of one CPU: `per_cpu/cpuN/trace_pipe_raw`.
///
/// It is read without waiting, and never polled: to wake a waiter, the kernel would interrupt the traced CPU
/// (irq_work). Reading takes a lock that only other readers take, so the traced CPU does not wait.
#[derive(Debug)]
pub struct CpuPipe {
    cpu: CpuId,
    file: SharedFile,
    buffer: Box<[u8]>,
    cursor: CpuCursor,
    /// The last sub-buffers, each filled up with zeros, and how many more are kept.
    kept: VecDeque<u8>,
    left: usize,
}

/// Result of reading a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Number of sub-buffers that were read.
    pub page_count: u32,
    /// True if the pipe was empty at the end; otherwise the events' vector is full and more events are waiting.
    pub is_empty: bool,
}

impl CpuPipe {
    pub(super) fn new(cpu: CpuId, file: SharedFile, page_bytes: usize) -> Self {
        Self {
            cpu,
            file,
            buffer: vec![0; page_bytes].into_boxed_slice(),
            cursor: CpuCursor::default(),
            kept: VecDeque::new(),
            left: 0,
        }
    }

    /// Keeps the last sub-buffers that are read from now on, as many as fit into so many bytes.
    pub fn keep(&mut self, bytes: usize) {
        (self.kept, self.left) = (VecDeque::with_capacity(bytes), usize::MAX);
    }

    /// From now on keeps sub-buffers for half of the bytes given to `keep`, so that half of the earlier ones stay.
    pub fn end_keeping(&mut self) {
        self.left = self.left.min(self.kept.capacity() / self.buffer.len() / 2);
    }

    /// The sub-buffers that were kept, each in its full size.
    pub fn kept(&self) -> Vec<u8> {
        self.kept.iter().copied().collect()
    }

    fn keep_read(&mut self, bytes: usize) {
        let Some(left) = self.left.checked_sub(1) else { return };
        let page = self.buffer.len();
        if self.kept.len() + page > self.kept.capacity() {
            self.kept.drain(..page.min(self.kept.len()));
        }
        let whole = self.kept.len() + page;
        self.kept.extend(self.buffer.get(..bytes).unwrap_or(&[]));
        self.kept.resize(whole, 0);
        self.left = left;
    }

    pub fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// Returns the size of a sub-buffer in bytes.
    pub fn page_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Number of events read and lost so far.
    pub fn cursor(&self) -> &CpuCursor {
        &self.cursor
    }

    /// Maximum number of events in one sub-buffer: a vector with less spare capacity receives nothing.
    pub fn events_max(&self) -> usize {
        Decoder::events_max(self.buffer.len())
    }

    /// Appends this CPU's events, in order of time, until the pipe is empty or `events` might have to grow.
    ///
    /// # Errors
    /// The kernel's error, or that the instance was removed.
    pub fn drain(&mut self, decoder: &mut Decoder, events: &mut Vec<TraceEvent>) -> io::Result<Drained> {
        let mut drained = Drained::default();
        while events.capacity() - events.len() >= self.events_max() {
            let Some(bytes) = self.read()? else {
                drained.is_empty = true;
                break;
            };
            decoder.page(&mut self.cursor, self.buffer.get(..bytes).unwrap_or(&[]), events);
            drained.page_count += 1;
        }
        Ok(drained)
    }

    /// Passes this CPU's sub-buffers to `keep` until the pipe is empty or `keep` returns false.
    ///
    /// # Errors
    /// The kernel's error, or that the instance was removed.
    pub fn drain_raw(&mut self, mut keep: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
        while let Some(bytes) = self.read()? {
            if !keep(self.buffer.get(..bytes).unwrap_or(&[])) {
                break;
            }
        }
        Ok(())
    }

    /// Reads the next sub-buffer, which the kernel may have filled only partly; `None` if there is none.
    fn read(&mut self) -> io::Result<Option<usize>> {
        loop {
            match self.file.with(|mut file| file.read(&mut self.buffer)) {
                Ok(0) => return Ok(None),
                Ok(bytes) => {
                    self.keep_read(bytes);
                    return Ok(Some(bytes));
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
    }
}

/// The kernel's counters of one CPU's buffer (`per_cpu/cpuN/stats`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PipeStats {
    /// Events in the buffer, not yet read.
    pub entry_count: u64,
    /// Events that were overwritten before they were read.
    pub overrun_count: u64,
    /// Events that were dropped because writing them wrapped around to an unfinished one.
    pub commit_overrun_count: u64,
    /// Events that were dropped because the buffer was full and must not be overwritten.
    pub dropped_count: u64,
    pub read_count: u64,
}

impl PipeStats {
    /// Parses the text of a `stats` file. Unknown lines are ignored, and missing ones count as 0.
    pub(super) fn parse(text: &str) -> Self {
        let mut stats = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let Ok(value) = value.trim().parse() else { continue };
            match name.trim() {
                "entries" => stats.entry_count = value,
                "overrun" => stats.overrun_count = value,
                "commit overrun" => stats.commit_overrun_count = value,
                "dropped events" => stats.dropped_count = value,
                "read events" => stats.read_count = value,
                _ => {}
            }
        }
        stats
    }

    /// Events lost for any reason.
    pub fn lost_count(&self) -> u64 {
        self.overrun_count.saturating_add(self.commit_overrun_count).saturating_add(self.dropped_count)
    }
}
