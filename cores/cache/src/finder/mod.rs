//! Lines that threads of a program share: which, and whether they share the values or only the lines.
//!
//! First, samples of writes ([`Samples`]) show lines that are written often. Breakpoints on their words then count
//! which thread reads and writes which word, and in which short windows. [`FinderRecord::findings`] judges the counts,
//! and [`FinderRecord::suspects`] the samples of lines that were hot for too short a time.

mod fields;
mod judge;
pub mod names;
mod quarter;
mod samples;

pub use fields::{AccessRate, Field, User, fields};
pub use judge::Suspect;
pub use judge::{SharedLine, Sharing};
pub use quarter::Quarter;
pub use samples::{Candidate, PAGE_BYTES, Samples, WORD_BYTES, turn};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a cache line if the host does not report them.
pub const LINE_BYTES: u64 = 64;

/// Record of the accesses of a program's threads to memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FinderRecord {
    pub pid: u32,
    /// The file of the program.
    pub program: String,
    /// Time for which it was watched, in nanoseconds.
    pub watched_ns: u64,
    /// Upper limit of the time that its threads waited for lowlat, by stops of every kind, in nanoseconds.
    pub stalled_ns: u64,
    /// Cost of a breakpoint's hit on this host, in nanoseconds.
    pub hit_ns: u64,
    /// Bytes of a cache line.
    pub line_bytes: u64,
    /// Processes that were watched, beginning with the first one of the run.
    pub processes: Vec<u32>,
    /// Processes of the run that could not be watched.
    pub missed_process_count: u64,
    /// Its threads, also those that ended.
    pub threads: Vec<Thread>,
    /// Number of writes that were caught.
    pub caught_count: u64,
    /// Pages that writes were caught on.
    pub page_count: u64,
    /// Lines whose words were counted.
    pub counted_line_count: u64,
    /// Lines that might be shared, and that time did not suffice to count.
    pub uncounted_line_count: u64,
    /// Writable memory that could not be watched, in bytes.
    pub unwatched: Vec<Unwatched>,
    /// Counts of the words of lines.
    pub counts: Vec<FieldCount>,
    /// Threads that used a line in the same short windows.
    pub meetings: Vec<Meeting>,
    /// Writes of two threads to different words of a line that were caught at the same time.
    pub close_writes: Vec<CloseWrites>,
    /// Names of what is at counted addresses.
    pub places: Vec<Place>,
    /// Names of the code that wrote.
    pub code: Vec<Code>,
    pub end: End,
}

/// Reason why the watching ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The time for watching was over.
    #[default]
    Time,
    /// The user stopped the watching.
    Interrupted,
    /// The program ended during the watching.
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    pub tid: u32,
    pub name: String,
    /// CPUs that it was seen on.
    pub cpus: Vec<u32>,
}

/// Memory that could not be watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unwatched {
    pub kind: UnwatchedKind,
    pub bytes: u64,
}

/// Kinds of memory that cannot be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnwatchedKind {
    /// Memory that other processes map too, whose threads were not watched.
    Shared,
    /// Memory mapped from a file.
    Data,
    /// Transparent huge pages, which an older kernel would split.
    Huge,
    Hugetlb,
    /// The kernel refused the request to watch it.
    Refused,
}

/// Accesses of a thread to some bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FieldCount {
    /// First address. The bits from 48 on are the number of the process in `processes`, except of memory that they
    /// share.
    pub address: u64,
    /// Bytes: a word, or a part of a word that several threads use.
    pub bytes: u64,
    pub tid: u32,
    /// Number of its reads and writes.
    pub accesses: u64,
    pub writes: u64,
    /// Address after an instruction that was seen; 0 if unknown.
    pub code: u64,
    /// Its writes in windows whose times did not depend on them; its reads, if it does not write the bytes.
    pub window_count: u64,
    /// The windows together, in nanoseconds of wall time.
    pub window_ns: u64,
    /// True if counting stopped before a window's end, so that there were more.
    pub is_cut: bool,
}

/// Two threads that used a line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Meeting {
    /// First address of the line.
    pub line: u64,
    pub tids: [u32; 2],
    /// Windows in which both used it, on different CPUs, and one of them wrote.
    pub together: u64,
    /// Windows in which the one that used it in fewer did, while the other one was on another CPU.
    pub windows: u64,
}

/// Writes of two threads to different words of a line that waited at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CloseWrites {
    /// First address of the line.
    pub line: u64,
    /// First address of the mapping that it is in.
    pub mapping: u64,
    pub tids: [u32; 2],
    pub count: u64,
}

/// The name of what is at an address.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    pub address: u64,
    /// The name: `stats.sent`, "heap", "stack".
    pub name: String,
    /// True if the name is a variable of the program.
    pub is_variable: bool,
}

/// The name of an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Code {
    pub address: u64,
    /// The function; the file's name if it is unknown.
    pub function: String,
    /// `sender.c:41`; empty without debug information.
    pub line: String,
}

/// First bit of the number of the process in an address.
pub const PROCESS_SHIFT: u32 = 48;

/// Returns an address without the number of the process.
pub fn plain(address: u64) -> u64 {
    address & ((1 << PROCESS_SHIFT) - 1)
}

impl FinderRecord {
    /// The line of an address.
    pub fn line_of(&self, address: u64) -> u64 {
        let bytes = if self.line_bytes.is_power_of_two() { self.line_bytes } else { LINE_BYTES };
        address & !(bytes - 1)
    }

    /// True if something was not checked, so that "none" is not certain.
    pub fn is_partial(&self) -> bool {
        let is_left = self.uncounted_line_count + self.missed_process_count > 0;
        is_left || !self.unwatched.is_empty() || self.is_too_short()
    }

    /// True if the program ended before any line was counted.
    pub fn is_too_short(&self) -> bool {
        self.end == End::Ended && self.counted_line_count == 0
    }

    /// The name of a thread.
    pub fn thread_name(&self, tid: u32) -> &str {
        self.threads.iter().find(|thread| thread.tid == tid).map_or("", |thread| &thread.name)
    }

    /// Returns the place at an address.
    pub fn place(&self, address: u64) -> Option<&Place> {
        self.places.iter().find(|place| place.address == address)
    }

    /// The name of an instruction.
    pub fn code_at(&self, address: u64) -> Option<&Code> {
        self.code.iter().find(|code| code.address == address)
    }

    /// Share of the time that the program waited for lowlat, at most.
    pub fn stalled_share(&self) -> f64 {
        if self.watched_ns == 0 { 0.0 } else { (self.stalled_ns as f64 / self.watched_ns as f64).min(1.0) }
    }
}
