//! Follows streams in shared memory, and their successors.

use super::{RecordError, Recorded, Recorder};
use crate::layout::GapReason;
use lowlat_ipc::{
    region::Region,
    stream::{Read, Reader, Segment},
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Records of one stream taken per turn.
const TURN: usize = 512;
/// Polls without a record before the follower sleeps.
const LOOKS: u32 = 200;
/// Duration of a sleep: what is published meanwhile must fit into a fraction of a ring.
const SLEEP: Duration = Duration::from_micros(200);
/// Interval of checks of the stop condition.
const ASK: Duration = Duration::from_millis(1);
/// Unchanged polls at the end before a stream is left. One may fall between a record and the fence after it.
const IDLE_MAX: u32 = 2;

pub struct Source<R> {
    /// Its name in the recording.
    pub name: String,
    /// Name of the schema of its payloads; empty if unknown.
    pub schema: String,
    /// Reader at the first record to take. Use [`Reader::from_start`] to take everything available.
    pub reader: Reader<R>,
}

struct Followed<R> {
    reader: Reader<R>,
    number: u32,
    name: String,
    /// The epoch of the next segment, while it does not exist yet.
    waits_for: Option<u64>,
}

/// Finds the segment of a stream (by name) with this epoch, or a later one if that no longer exists; `None` if
/// there is none yet.
pub type Successor<R> = Box<dyn FnMut(&str, u64) -> Option<Segment<R>> + Send>;

/// Records every record of some streams.
pub struct Follower<R> {
    recorder: Recorder,
    followed: Vec<Followed<R>>,
    successor: Successor<R>,
    payload: Vec<u8>,
    taken: u64,
}

impl<R: Region> Follower<R> {
    /// A follower of these streams. `successor` is called for the next segment when a writer was replaced.
    pub fn new(
        recorder: Recorder,
        sources: Vec<Source<R>>,
        successor: Successor<R>,
    ) -> Result<Self, RecordError> {
        let mut follower = Self { recorder, followed: Vec::new(), successor, payload: Vec::new(), taken: 0 };
        sources.into_iter().try_for_each(|source| follower.add(source))?;
        Ok(follower)
    }

    /// Adds a stream to record.
    pub fn add(&mut self, source: Source<R>) -> Result<(), RecordError> {
        let segment = source.reader.segment();
        // From the start of its first segment a stream is recorded completely: overwritten records are a gap.
        let is_whole = segment.epoch() == 1 && source.reader.position() == 0;
        let first = is_whole.then(|| segment.first_sequence());
        let number = self.recorder.add_stream(&source.name, segment.stream(), &source.schema, first)?;
        if is_whole && segment.tail() > segment.capacity_bytes() {
            self.recorder.expect_gap(number, GapReason::NotRecording);
        }
        self.followed.push(Followed { reader: source.reader, number, name: source.name, waits_for: None });
        Ok(())
    }

    /// Positions reached in the streams.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Result so far, without what was written.
    pub fn recorded(&self) -> Recorded {
        self.recorder.recorded()
    }

    /// Takes available records, up to a limit, and returns their number. Does not wait for records; waits for
    /// the disk only if all blocks are full.
    pub fn poll(&mut self) -> Result<usize, RecordError> {
        let mut taken = 0;
        for followed in &mut self.followed {
            taken += followed.take(&mut self.recorder, &mut self.payload, &mut self.successor)?;
        }
        self.recorder.flush_old()?;
        self.taken += crate::bytes::wide(taken);
        Ok(taken)
    }

    /// Follows until `stop`, then takes everything published up to that moment, and ends the recording.
    pub fn run(self, stop: &AtomicBool) -> Result<Recorded, RecordError> {
        // Relaxed: a lone flag; `finish` finds everything published before it was raised by the tails.
        self.run_until(|_| Ok(stop.load(Ordering::Relaxed)))
    }

    /// Like [`Follower::run`], until `is_over` returns true. It is called about every millisecond, and may add
    /// streams.
    pub fn run_until<E: From<RecordError>>(
        mut self,
        mut is_over: impl FnMut(&mut Self) -> Result<bool, E>,
    ) -> Result<Recorded, E> {
        let (mut looks, mut asked) = (0, Instant::now());
        loop {
            if asked.elapsed() >= ASK {
                if is_over(&mut self)? {
                    return Ok(self.finish()?);
                }
                asked = Instant::now();
            }
            if self.poll()? > 0 {
                looks = 0;
            } else if looks < LOOKS {
                looks += 1;
                lowlat_ipc::relax();
            } else {
                thread::sleep(SLEEP);
            }
        }
    }

    /// Takes everything published up to now, also in segments that replaced others, and ends the recording.
    pub fn finish(mut self) -> Result<Recorded, RecordError> {
        let mut rests: Vec<_> = self.followed.iter().map(Remainder::of).collect();
        loop {
            self.poll()?;
            let mut is_due = false;
            for (followed, rest) in self.followed.iter().zip(&mut rests) {
                is_due |= rest.is_due(followed);
            }
            if !is_due {
                return self.recorder.stop();
            }
        }
    }
}

/// State of a stream at the end, while its remaining records are taken.
struct Remainder {
    epoch: u64,
    /// Read once per segment, so that a publisher that continues does not delay the end.
    tail: u64,
    /// Position of the reader, and whether it waited for the next segment.
    seen: (u64, bool),
    /// Polls since these last changed.
    idle: u32,
}

impl Remainder {
    fn of<R: Region>(followed: &Followed<R>) -> Self {
        let segment = followed.reader.segment();
        Self { epoch: segment.epoch(), tail: segment.tail(), seen: followed.place(), idle: 0 }
    }

    /// Returns true if more may follow after a poll of the stream: below the tail, or in a next segment.
    fn is_due<R: Region>(&mut self, followed: &Followed<R>) -> bool {
        let segment = followed.reader.segment();
        if segment.epoch() != self.epoch {
            *self = Self::of(followed);
        } else if followed.place() == self.seen {
            self.idle += 1;
        } else {
            (self.seen, self.idle) = (followed.place(), 0);
        }
        // The next segment may be unknown, and a damaged tail may announce records that never come.
        self.idle < IDLE_MAX && (followed.reader.position() < self.tail || segment.successor().is_some())
    }
}

impl<R: Region> Followed<R> {
    /// Position in its segment, and whether it waits for the next one.
    fn place(&self) -> (u64, bool) {
        (self.reader.position(), self.waits_for.is_some())
    }

    fn take(
        &mut self,
        recorder: &mut Recorder,
        payload: &mut Vec<u8>,
        successor: &mut Successor<R>,
    ) -> Result<usize, RecordError> {
        if let Some(epoch) = self.waits_for {
            let Some(segment) = successor(&self.name, epoch) else { return Ok(0) };
            self.reader = Reader::from_start(segment);
            self.waits_for = None;
            recorder.expect_gap(self.number, GapReason::BetweenSegments);
        }
        let epoch = self.reader.segment().epoch();
        for taken in 0..TURN {
            match self.reader.next(payload) {
                Read::Record(record) => recorder.record(self.number, epoch, &record, payload)?,
                Read::Nothing => return Ok(taken),
                // The recorder detects the jump itself; this tells it the reason.
                Read::Gap { .. } => {}
                Read::Damaged { .. } => recorder.expect_gap(self.number, GapReason::DamagedInMemory),
                Read::Ended { successor } => {
                    self.waits_for = Some(successor);
                    return Ok(taken);
                }
            }
        }
        Ok(TURN)
    }
}
