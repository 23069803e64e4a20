//! What the processes of a trial tell each other besides what is measured.
//!
//! ```text
//! words
//!   0  phase: 0 assembling, 1 running, 2 over
//!  16  start of the schedule, ns
//!  32  quotes published (md)
//!  48  orders read (td)
//!  64  answers given (td)
//!  80  one slot of 16 words for each process: see `slot`
//! ```

use super::memory::Part;
use lowlat_ipc::region::Region;
use std::sync::atomic::{AtomicU64, Ordering};

const PHASE: usize = 0;
const START: usize = 16;
const SLOTS: usize = 80;
const SLOT_WORDS: usize = 16;

/// Counters that one process alone writes.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub enum Count {
    /// Quotes that md published.
    Published = 32,
    /// Orders that td read.
    Orders = 48,
    /// Answers that td gave.
    Answers = 64,
}

/// Words of a process's slot.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub enum Slot {
    /// 1: has all it needs.
    Ready,
    /// Answers that it read.
    Answers,
    /// Records that it lost.
    Lost,
    /// CPU time, ns.
    CpuNs,
    /// Switches because it waited.
    Voluntary,
    /// Switches because something else ran.
    Involuntary,
    /// Page faults without a disk.
    MinorFaults,
    /// Page faults with one.
    MajorFaults,
    /// 1: the words above are final.
    Reported,
}

/// Where a trial stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Phase {
    /// Processes start.
    Assembling,
    /// The schedule runs.
    Running,
    /// Everybody ends.
    Over,
}

/// The board.
#[derive(Debug, Clone)]
pub struct Board {
    part: Part,
}

impl Board {
    /// Bytes for so many processes.
    pub fn bytes(processes: usize) -> u64 {
        u64::try_from((SLOTS + processes * SLOT_WORDS) * 8).unwrap_or(u64::MAX)
    }

    /// The board in zeroed memory, or as others use it.
    pub fn new(part: Part) -> Self {
        Self { part }
    }

    // All of the board's words are stored with release and loaded with acquire: who sees a word sees what its writer
    // did before. None is on a path whose time is measured, but for the phase, which nobody writes meanwhile.
    fn load(&self, at: usize) -> u64 {
        self.part.words().get(at).map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.part.words().get(at)
    }

    fn store(&self, at: usize, value: u64) {
        if let Some(word) = self.word(at) {
            word.store(value, Ordering::Release);
        }
    }

    /// Where the trial stands.
    #[inline]
    pub fn phase(&self) -> Phase {
        match self.load(PHASE) {
            0 => Phase::Assembling,
            1 => Phase::Running,
            _ => Phase::Over,
        }
    }

    /// Parent: begins the schedule.
    pub fn run(&self, start_ns: u64) {
        self.store(START, start_ns);
        self.store(PHASE, Phase::Running as u64);
    }

    /// Parent: ends the trial.
    pub fn end(&self) {
        self.store(PHASE, Phase::Over as u64);
    }

    /// When the first quote is due.
    pub fn start_ns(&self) -> u64 {
        self.load(START)
    }

    /// A counter.
    pub fn count(&self, count: Count) -> u64 {
        self.load(count as usize)
    }

    /// Sets a counter; its one writer alone may.
    pub fn set_count(&self, count: Count, value: u64) {
        self.store(count as usize, value);
    }

    /// A word of a process's slot.
    pub fn slot(&self, process: usize, slot: Slot) -> u64 {
        self.load(SLOTS + process * SLOT_WORDS + slot as usize)
    }

    /// Sets a word of a process's slot; that process alone may.
    pub fn set_slot(&self, process: usize, slot: Slot, value: u64) {
        self.store(SLOTS + process * SLOT_WORDS + slot as usize, value);
    }
}

const _: () = assert!((Slot::Reported as usize) < SLOT_WORDS && (Count::Answers as usize) < SLOTS);
