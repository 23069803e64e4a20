//! State that the processes of a trial share, in addition to what is measured.
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
    /// Number of quotes that md published.
    Published = 32,
    /// Number of orders that td read.
    Orders = 48,
    /// Number of answers that td gave.
    Answers = 64,
}

/// Words of a process's slot.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub enum Slot {
    /// 1 once the process has all it needs.
    Ready,
    /// Number of answers that it read.
    Answers,
    /// Number of records that it lost.
    Lost,
    CpuNs,
    /// Context switches because it waited.
    Voluntary,
    /// Context switches because something else ran.
    Involuntary,
    /// Page faults without a disk.
    MinorFaults,
    /// Page faults that read a disk.
    MajorFaults,
    /// 1 once the words above are final.
    Reported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Phase {
    /// Processes start and become ready.
    Assembling,
    /// md publishes by the schedule.
    Running,
    /// All processes report and end.
    Over,
}

#[derive(Debug, Clone)]
pub struct Board {
    part: Part,
}

impl Board {
    /// Bytes of a board for this many processes.
    pub fn bytes(processes: usize) -> u64 {
        u64::try_from((SLOTS + processes * SLOT_WORDS) * 8).unwrap_or(u64::MAX)
    }

    /// A board in zeroed memory, or in memory that other processes already use.
    pub fn new(part: Part) -> Self {
        Self { part }
    }

    // All of the board's words are stored with release and loaded with acquire: a process that sees a word sees what
    // its writer did before. None is on a measured path, except the phase, which does not change during the
    // measurement.
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

    #[inline]
    pub fn phase(&self) -> Phase {
        match self.load(PHASE) {
            0 => Phase::Assembling,
            1 => Phase::Running,
            _ => Phase::Over,
        }
    }

    /// For the parent: starts the schedule at this time.
    pub fn run(&self, start_ns: u64) {
        self.store(START, start_ns);
        self.store(PHASE, Phase::Running as u64);
    }

    /// For the parent: ends the trial.
    pub fn end(&self) {
        self.store(PHASE, Phase::Over as u64);
    }

    /// Returns the time at which the first quote is due.
    pub fn start_ns(&self) -> u64 {
        self.load(START)
    }

    pub fn count(&self, count: Count) -> u64 {
        self.load(count as usize)
    }

    /// Sets a counter. Only its one writer may call this.
    pub fn set_count(&self, count: Count, value: u64) {
        self.store(count as usize, value);
    }

    /// A word of a process's slot.
    pub fn slot(&self, process: usize, slot: Slot) -> u64 {
        self.load(SLOTS + process * SLOT_WORDS + slot as usize)
    }

    /// Sets a word of a process's slot. Only that process may call this.
    pub fn set_slot(&self, process: usize, slot: Slot, value: u64) {
        self.store(SLOTS + process * SLOT_WORDS + slot as usize, value);
    }
}

const _: () = assert!((Slot::Reported as usize) < SLOT_WORDS && (Count::Answers as usize) < SLOTS);
