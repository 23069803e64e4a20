//! Compaction: a log that has grown over thousands of boots is rewritten with only its active entries.
//!
//! The new segment states that it continues nothing, and its number is the highest. So once renamed it is the
//! first of the log, and earlier ones are ignored. They are removed after that is durable, and so are
//! contents that no entry refers to. A crash in between leaves files that the next opening removes.

use super::{
    Entry, Event, Faults, History, HostError, Inspection, LogMark, LoggedState, PlanEntry, PrivateDirectory,
    Progress, Record, UndoLog,
    expire::UNKNOWN_BOOT,
    record,
    segment::{self, EarlierLog, SegmentHeader},
};
use std::collections::BTreeSet;

/// A smaller log is not compacted.
const LOG_BYTES_MIN: u64 = 256 << 10;
/// A log is compacted if that reduces its size by this factor.
const GAIN_MIN: u64 = 4;

/// The bytes of a segment that replaces the whole log. `None` if it must not be compacted: a plan is in
/// progress, a part of the log is untrusted (that is evidence), or the gain is too small.
pub(super) fn compacted(scan: &Inspection) -> Option<Vec<u8>> {
    let is_busy = scan.history.plans.iter().any(|plan| plan.is_open);
    if is_busy || scan.damage.is_some() || scan.total_bytes < LOG_BYTES_MIN {
        return None;
    }
    let bytes = segment_of(scan)?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    (length <= segment::READ_BYTES_MAX && length.saturating_mul(GAIN_MIN) <= scan.total_bytes)
        .then_some(bytes)
}

/// Writes the segment, completely and durably.
pub(super) fn write(
    dir: &PrivateDirectory,
    scan: &Inspection,
    bytes: &[u8],
    faults: &Faults,
) -> Result<(), HostError> {
    match scan.highest.checked_add(1) {
        Some(number) => dir.write(faults, &segment::name(number), bytes),
        None => Ok(()),
    }
}

/// Removes segments that a later one replaces. What cannot be removed is tried again at the next opening.
pub(super) fn remove_stale(dir: &PrivateDirectory, scan: &Inspection, faults: &Faults) {
    // The oldest one first, so that the remaining ones never form a log.
    for number in &scan.stale {
        let _ = dir.remove(faults, &segment::name(*number));
    }
}

impl UndoLog {
    /// Removes contents that no entry refers to any more.
    pub(super) fn drop_contents(&mut self) {
        let entries = self.scan.history.entries.iter();
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

/// A complete segment: the end of the log that it replaces, so that a mark of that one still matches; then
/// every plan with active steps, and its steps in their original order.
fn segment_of(scan: &Inspection) -> Option<Vec<u8>> {
    let header =
        SegmentHeader { before: EarlierLog::Sound, continues: 0, trusted_bytes: 0, first_sequence: 1 };
    let mut bytes = header.encode();
    let LogMark { sequence, digest } = scan.chain.mark();
    let replaced = Record {
        plan: String::new(),
        boot: UNKNOWN_BOOT.to_owned(),
        unix_ms: 0,
        event: Event::Compacted { sequence, digest },
    };
    for (sequence, record) in (1u64..).zip([replaced].into_iter().chain(records_of(&scan.history))) {
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
            reason: "recorded in a part of the log that no longer exists".to_owned(),
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
