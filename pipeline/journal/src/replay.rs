//! Replays a recording at its original pace, or another one.

use crate::read::{JournalRead, Record};
use lowlat_ipc::{
    layout,
    region::Region,
    stream::{PublishError, Writer},
};
use serde::Serialize;
use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplaySpeed {
    /// Multiple of the original speed; above 0.
    Times(f64),
    /// At full speed, without pauses.
    Max,
}

#[derive(Debug, Clone, PartialEq, Serialize, Default)]
#[non_exhaustive]
pub struct Replayed {
    pub records: u64,
    /// Number of records missing from the recording.
    pub lost: u64,
    /// Missing records that were published while no recorder ran, or deleted with the oldest files.
    pub missed: u64,
    /// Damaged places and missing files.
    pub damages: u64,
    /// Time from the first to the last generation time, ns.
    pub recorded_ns: u64,
    /// Duration of the replay, ns.
    pub took_ns: u64,
    /// Largest delay of a record against its schedule, ns; 0 at full speed, which has none.
    pub late_ns_max: u64,
    /// The replay was stopped early.
    pub is_stopped: bool,
}

impl Replayed {
    /// Returns true if nothing is damaged, and no record is missing that was published while a recorder ran and not deleted.
    pub fn is_complete(&self) -> bool {
        self.damages == 0 && self.lost == self.missed
    }
}

/// The longest sleep between checks of the stop flag.
const SLEEP_MAX: Duration = Duration::from_millis(50);
/// Time that is spun rather than slept: sleeps end late by about as much.
const SPIN: Duration = Duration::from_micros(80);

/// Passes every record of `next` (a merge or a reader) to `take` when it is due. Gaps and damage are passed on
/// at once, in order. `take` may end the replay.
pub fn replay(
    mut next: impl FnMut(&mut Vec<u8>) -> JournalRead,
    speed: ReplaySpeed,
    stop: &AtomicBool,
    mut take: impl FnMut(&JournalRead, &[u8]) -> ControlFlow<()>,
) -> Replayed {
    let (mut replayed, mut payload) = (Replayed::default(), Vec::new());
    let started = Instant::now();
    let mut first = None;
    loop {
        // Relaxed: a lone flag.
        if stop.load(Ordering::Relaxed) {
            replayed.is_stopped = true;
            break;
        }
        let read = next(&mut payload);
        match &read {
            JournalRead::Ended | JournalRead::Nothing => break,
            JournalRead::Gap(gap) => {
                replayed.lost = replayed.lost.saturating_add(gap.count());
                replayed.missed = replayed.missed.saturating_add(gap.missed());
            }
            JournalRead::Damaged(_) => replayed.damages += 1,
            JournalRead::Record(record) => {
                let generated = record.record.stamp.generated;
                let since = generated.saturating_sub(*first.get_or_insert(generated));
                replayed.recorded_ns = replayed.recorded_ns.max(since);
                if let Some(due) = due(since, speed) {
                    if !wait_until(started, due, stop) {
                        replayed.is_stopped = true;
                        break;
                    }
                    let late = nanoseconds(started.elapsed().saturating_sub(due));
                    replayed.late_ns_max = replayed.late_ns_max.max(late);
                }
                replayed.records += 1;
            }
        }
        if take(&read, &payload).is_break() {
            replayed.is_stopped = true;
            break;
        }
    }
    replayed.took_ns = nanoseconds(started.elapsed());
    replayed
}

/// Publishes one record into a stream with its original stamp; its times are those of the recording.
pub fn publish<R: Region>(
    writer: &mut Writer<R>,
    record: &Record,
    payload: &[u8],
) -> Result<(), PublishError> {
    let stamp = &record.record.stamp;
    if stamp.kind == layout::KIND_ABANDONED {
        writer.publish_abandoned(stamp).map(drop)
    } else {
        writer.publish(stamp, payload).map(drop)
    }
}

/// When a record is due after the start; `None` at full speed.
fn due(since_ns: u64, speed: ReplaySpeed) -> Option<Duration> {
    match speed {
        ReplaySpeed::Max => None,
        ReplaySpeed::Times(times) => {
            let seconds = since_ns as f64 / 1e9 / times;
            // A speed that makes it endless equals the longest possible wait.
            Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
        }
    }
}

/// Returns false if it was stopped.
fn wait_until(started: Instant, due: Duration, stop: &AtomicBool) -> bool {
    loop {
        let left = due.saturating_sub(started.elapsed());
        if left.is_zero() {
            return true;
        }
        // Relaxed: a lone flag.
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        if left > SPIN {
            thread::sleep(left.saturating_sub(SPIN).min(SLEEP_MAX));
        } else {
            lowlat_ipc::relax();
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        read::{Merge, Recording},
        testing::{Maker, options, payload, record},
    };
    use lowlat_ipc::{
        region::Heap,
        stream::{self, Owner, Reader, Segment},
    };
    use std::sync::Arc;

    fn recording(folder: &std::path::Path) -> Recording {
        let mut maker = Maker::new(folder, options(), &["one"]);
        maker.records(0, 0..20);
        maker.gap(0, 20, 30);
        maker.records(0, 30..40);
        maker.files.finish().unwrap();
        Recording::open(folder).unwrap()
    }

    #[test]
    fn a_replay_into_memory_equals_the_recording() {
        let folder = tempfile::TempDir::new().unwrap();
        let recording = recording(folder.path());
        let heap = Arc::new(Heap::zeroed(Segment::<Heap>::bytes(1 << 16)));
        let owner = Owner::default();
        let mut writer = Writer::new(Segment::create(Arc::clone(&heap), 1 << 16, 1, 1, 0, owner).unwrap());
        let mut merge = Merge::of_all(&recording);
        let stop = AtomicBool::new(false);
        let replayed = replay(
            |payload| merge.next(payload),
            ReplaySpeed::Max,
            &stop,
            |read, payload| {
                if let JournalRead::Record(record) = read {
                    publish(&mut writer, record, payload).unwrap();
                }
                ControlFlow::Continue(())
            },
        );
        assert_eq!((replayed.records, replayed.lost, replayed.recorded_ns), (30, 10, 390));
        let mut reader = Reader::from_start(Segment::open(heap).unwrap());
        let mut bytes = Vec::new();
        for sequence in (0..20).chain(30..40) {
            let stream::Read::Record(found) = reader.next(&mut bytes) else { panic!("{sequence}") };
            assert_eq!((found.stamp, &bytes), (record(0, sequence).stamp, &payload(0, sequence)));
        }
    }

    #[test]
    fn records_are_not_replayed_early() {
        let folder = tempfile::TempDir::new().unwrap();
        let recording = recording(folder.path());
        let mut merge = Merge::of_all(&recording);
        // 390 ns at a 50,000th of the original speed are 19.5 ms.
        let started = Instant::now();
        let mut early = 0;
        let replayed = replay(
            |payload| merge.next(payload),
            ReplaySpeed::Times(1.0 / 50_000.0),
            &AtomicBool::new(false),
            |read, _| {
                if let JournalRead::Record(record) = read {
                    let due = Duration::from_nanos(record.record.stamp.generated * 50_000);
                    // Less a microsecond, because the replay started a little later than this test.
                    early += u32::from(started.elapsed() + Duration::from_micros(1) < due);
                }
                ControlFlow::Continue(())
            },
        );
        assert_eq!((early, replayed.records, replayed.is_stopped), (0, 30, false));
        assert!(replayed.took_ns >= 19_500_000);
        let stopped = replay(
            |_| JournalRead::Ended,
            ReplaySpeed::Max,
            &AtomicBool::new(true),
            |_, _| ControlFlow::Break(()),
        );
        assert!(stopped.is_stopped);
    }
}
