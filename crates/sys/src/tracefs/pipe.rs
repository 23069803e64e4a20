//! The binary buffer of one CPU.

use super::files::SharedFile;
use lowlat_host::CpuId;
use lowlat_trace::{CpuCursor, Decoder, TraceEvent};
use std::io::{self, Read};

/// The trace of one CPU: `per_cpu/cpuN/trace_pipe_raw`.
///
/// It is read without waiting, and never polled: with a waiter the kernel would send the traced CPU an interrupt of
/// its own (irq_work) to wake it. Reading takes a lock that only other readers take, so the traced CPU does not wait.
#[derive(Debug)]
pub struct CpuPipe {
    cpu: CpuId,
    file: SharedFile,
    buffer: Box<[u8]>,
    cursor: CpuCursor,
}

/// What reading a pipe came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Sub-buffers that were read.
    pub page_count: u32,
    /// Whether the pipe was empty in the end; otherwise the events' vector is full and there is more.
    pub is_empty: bool,
}

impl CpuPipe {
    pub(super) fn new(cpu: CpuId, file: SharedFile, page_bytes: usize) -> Self {
        Self { cpu, file, buffer: vec![0; page_bytes].into_boxed_slice(), cursor: CpuCursor::default() }
    }

    /// The CPU.
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// How many events were read and lost so far.
    pub fn cursor(&self) -> &CpuCursor {
        &self.cursor
    }

    /// Room that one sub-buffer's events need at most: a vector with less capacity gets nothing.
    pub fn events_max(&self) -> usize {
        Decoder::events_max(self.buffer.len())
    }

    /// Appends this CPU's events, in rising time, until the pipe is empty or `events` might have to grow.
    ///
    /// # Errors
    /// What the kernel says of the read, or that the instance was removed.
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

    /// Gives this CPU's sub-buffers as they come, until the pipe is empty or `keep` says no.
    ///
    /// # Errors
    /// What the kernel says of the read, or that the instance was removed.
    pub fn drain_raw(&mut self, mut keep: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
        while let Some(bytes) = self.read()? {
            if !keep(self.buffer.get(..bytes).unwrap_or(&[])) {
                break;
            }
        }
        Ok(())
    }

    /// Reads the next sub-buffer, of which the kernel may have filled a part only; `None` when there is nothing.
    fn read(&mut self) -> io::Result<Option<usize>> {
        loop {
            match self.file.with(|mut file| file.read(&mut self.buffer)) {
                Ok(0) => return Ok(None),
                Ok(bytes) => return Ok(Some(bytes)),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
    }
}

/// What the kernel counts of one CPU's buffer (`per_cpu/cpuN/stats`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PipeStats {
    /// Events in the buffer, not yet read.
    pub entry_count: u64,
    /// Events that were overwritten before they were read.
    pub overrun_count: u64,
    /// Events that were dropped because writing them came round to one that was not yet finished.
    pub commit_overrun_count: u64,
    /// Events that were dropped because the buffer was full and not to be overwritten.
    pub dropped_count: u64,
    /// Events that were read.
    pub read_count: u64,
}

impl PipeStats {
    /// Reads the text of a `stats` file; lines that are not known are passed over, missing ones count as none.
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

    /// Events that were lost in any way.
    pub fn lost_count(&self) -> u64 {
        self.overrun_count.saturating_add(self.commit_overrun_count).saturating_add(self.dropped_count)
    }
}
