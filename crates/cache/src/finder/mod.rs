//! Lines that threads of a program share: which, and whether they share the values or only the lines.
//!
//! First, samples of writes ([`Samples`]) show pages that several threads write. Breakpoints on the words of their lines
//! then count which thread writes which word, and [`FinderRecord::findings`] judges the counts.

mod judge;
pub mod names;
mod samples;

pub use judge::{Field, Finding, Sharing, Writer};
pub use samples::{Candidate, PAGE_BYTES, Samples, WORD_BYTES};

use serde::{Deserialize, Serialize};

/// Bytes of a cache line where the host does not say.
pub const LINE_BYTES: u64 = 64;

/// What was seen of a program.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FinderRecord {
    /// The process.
    pub pid: u32,
    /// The program's file.
    pub program: String,
    /// How long it was watched, in nanoseconds.
    pub watched_ns: u64,
    /// How long its threads waited for lowlat: at most, in nanoseconds.
    pub stalled_ns: u64,
    /// Cost of a breakpoint's hit on this host, in nanoseconds.
    pub hit_ns: u64,
    /// Bytes of a cache line.
    pub line_bytes: u64,
    /// Whether the processor fetches lines in pairs.
    pub fetches_pairs: bool,
    /// Its threads, also those that ended.
    pub threads: Vec<Thread>,
    /// Writes to private memory that were caught.
    pub caught_count: u64,
    /// Pages that writes were caught on.
    pub page_count: u64,
    /// Pages that several threads wrote to.
    pub shared_page_count: u64,
    /// Lines whose words were counted.
    pub counted_line_count: u64,
    /// Lines that might be shared, and that time did not suffice to count.
    pub uncounted_line_count: u64,
    /// Writable memory that was watched, in bytes.
    pub watched_bytes: u64,
    /// Writable memory that could not be watched, in bytes.
    pub unwatched: Vec<Unwatched>,
    /// Counts of the words of lines.
    pub counts: Vec<FieldCount>,
    /// Names of what is at counted addresses.
    pub places: Vec<Place>,
    /// Names of the code that wrote.
    pub code: Vec<Code>,
    /// How the watching ended.
    pub end: End,
}

/// Why the watching ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Its time was over.
    #[default]
    Time,
    /// The user stopped it.
    Interrupted,
    /// The program ended.
    Ended,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
}

/// Memory that could not be watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unwatched {
    /// What it is.
    pub kind: UnwatchedKind,
    /// Its size.
    pub bytes: u64,
}

/// Kinds of memory that cannot be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnwatchedKind {
    /// Shared with other processes.
    Shared,
    /// Initialized data of a file.
    Data,
    /// The kernel refused it.
    Refused,
}

/// Writes of a thread to some bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldCount {
    /// First address.
    pub address: u64,
    /// Bytes: a word, or one byte of a word that several threads write.
    pub bytes: u64,
    /// The thread.
    pub tid: u32,
    /// Its writes.
    pub writes: u64,
    /// Running time of the thread in which they were counted, in nanoseconds.
    pub time_ns: u64,
    /// Address of the instruction that wrote most often; 0 if unknown.
    pub code: u64,
}

/// The name of what is at an address.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// The address.
    pub address: u64,
    /// `stats.sent`, "heap", "stack".
    pub name: String,
    /// Whether the name is a variable of the program.
    pub is_variable: bool,
}

/// The name of an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Code {
    /// The address.
    pub address: u64,
    /// The function; the file's name if it is unknown.
    pub function: String,
    /// `sender.c:41`; empty without debug information.
    pub line: String,
}

impl FinderRecord {
    /// The line of an address.
    pub fn line_of(&self, address: u64) -> u64 {
        let bytes = if self.line_bytes.is_power_of_two() { self.line_bytes } else { LINE_BYTES };
        address & !(bytes - 1)
    }

    /// The name of a thread.
    pub fn thread_name(&self, tid: u32) -> &str {
        self.threads.iter().find(|thread| thread.tid == tid).map_or("", |thread| &thread.name)
    }

    /// What is at an address.
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
