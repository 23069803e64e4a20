//! A log that has grown over thousands of boots is written anew: what is in force, and nothing of what is over.
//!
//! The new segment says that it continues nothing, and its number is the highest; so from the moment of its renaming
//! it is the first of the log, and those before it are not looked at any more. They are removed after that is durable, and so
//! are contents that no entry names. A crash between leaves files that the next opening removes.

use super::{
    Entry, Event, Faults, HostError, LogMark, LoggedState, PrivateDirectory, Progress, Record, UndoLog,
    expire::UNKNOWN_BOOT,
    history::{History, PlanEntry},
    record,
    segment::{self, Before, Header, Scan},
};
use std::collections::BTreeSet;

/// A log smaller than this is left alone.
const LOG_BYTES_MIN: u64 = 256 << 10;
/// A log is written anew when that makes it smaller by this factor.
const GAIN_MIN: u64 = 4;

/// The bytes of a segment that stands for the whole log; none where it is not to be written anew: a plan is under
/// way, a part of the log cannot be trusted (that is evidence), or too little would be gained.
pub(super) fn compacted(scan: &Scan, history: &History) -> Option<Vec<u8>> {
    let is_busy = history.plans.iter().any(|plan| plan.is_open);
    if is_busy || scan.damage.is_some() || scan.total_bytes < LOG_BYTES_MIN {
        return None;
    }
    let bytes = segment_of(scan, history)?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    (length <= segment::READ_BYTES_MAX && length.saturating_mul(GAIN_MIN) <= scan.total_bytes)
        .then_some(bytes)
}

/// Writes the segment, complete and durable.
pub(super) fn write(
    dir: &PrivateDirectory,
    scan: &Scan,
    bytes: &[u8],
    faults: &Faults,
) -> Result<(), HostError> {
    match scan.highest.checked_add(1) {
        Some(number) => dir.write(faults, &segment::name(number), bytes),
        None => Ok(()),
    }
}

/// Removes segments that a later one stands for. What cannot be removed is tried again at the next opening.
pub(super) fn remove_stale(dir: &PrivateDirectory, scan: &Scan, faults: &Faults) {
    // The oldest one first: what is left of them is no log of its own.
    for number in &scan.stale {
        let _ = dir.remove(faults, &segment::name(*number));
    }
}

impl UndoLog {
    /// Removes contents that no entry names any more.
    pub(super) fn drop_contents(&mut self) {
        let entries = self.history.entries.iter();
        let named: BTreeSet<&str> = entries.flat_map(states).filter_map(content).collect();
        self.store.keep_only(&self.writer.faults, |name| named.contains(name));
    }
}

fn states(entry: &Entry) -> Vec<&LoggedState> {
    let left = match &entry.progress {
        Progress::Intended => None,
        Progress::Done(state) | Progress::Left(state) => Some(state),
    };
    [&entry.old, &entry.new].into_iter().chain(left).collect()
}

fn content(state: &LoggedState) -> Option<&str> {
    match state {
        LoggedState::File { sha256, .. } => Some(sha256),
        _ => None,
    }
}

/// A whole segment: where the log ended that it replaces, so that a mark of that one still fits; then every plan that has
/// something in force, and its steps in the order in which they were begun.
fn segment_of(scan: &Scan, history: &History) -> Option<Vec<u8>> {
    let header = Header { before: Before::Sound, continues: 0, trusted_bytes: 0, first_sequence: 1 };
    let mut bytes = header.encode();
    let LogMark { sequence, digest } = scan.chain.mark();
    let replaced = Record {
        plan: String::new(),
        boot: UNKNOWN_BOOT.to_owned(),
        unix_ms: 0,
        event: Event::Compacted { sequence, digest },
    };
    for (sequence, record) in (1u64..).zip([replaced].into_iter().chain(records_of(history))) {
        bytes.extend(record::encode(sequence, &record)?);
    }
    Some(bytes)
}

pub(super) fn records_of(history: &History) -> Vec<Record> {
    let plans: Vec<(&PlanEntry, &Entry)> = history
        .plans
        .iter()
        .filter_map(|plan| Some((plan, history.entries.iter().find(|entry| entry.plan == plan.id)?)))
        .collect();
    let frame = |(plan, first): &(&PlanEntry, &Entry), event: Event| Record {
        plan: plan.id.clone(),
        boot: first.boot.clone(),
        unix_ms: plan.unix_ms,
        event,
    };
    let begins = plans.iter().map(|plan| frame(plan, Event::Begin));
    let ends = plans.iter().map(|plan| frame(plan, Event::End));
    begins.chain(history.entries.iter().flat_map(records_of_entry)).chain(ends).collect()
}

fn records_of_entry(entry: &Entry) -> Vec<Record> {
    let step = entry.step.clone();
    let result = match &entry.progress {
        Progress::Intended => None,
        Progress::Done(read_back) => Some(Event::Done { step: step.clone(), read_back: read_back.clone() }),
        Progress::Left(present) => Some(Event::Failed {
            step: step.clone(),
            reason: "told in a part of the log that is no more".to_owned(),
            present: Some(present.clone()),
        }),
    };
    let intend = Event::Intend {
        step,
        target: entry.target.clone(),
        old: entry.old.clone(),
        new: entry.new.clone(),
        directories: entry.directories.clone(),
        again: false,
    };
    let record =
        |event| Record { plan: entry.plan.clone(), boot: entry.boot.clone(), unix_ms: entry.unix_ms, event };
    [Some(intend), result].into_iter().flatten().map(record).collect()
}
