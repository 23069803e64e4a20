//! The master's record of a node, kept across restarts.

use super::options::{NodeStatus, Standing};
use lowlat_ipc::{
    doorbell::Futex,
    inbox::Inbox,
    interest::Interest,
    layout::KIND_ABANDONED,
    stream::{Owner, Read, Reader, Record, Segment},
};
use lowlat_node::{COUNT_MAX, Counters, Figures, Keys, Memory, ORDERS_PREFIX, Overrun, Reads, Wait, Writes};
use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::OwnedFd,
    slice,
};

/// The stream of a node.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) writes: Writes,
    pub(super) segment: Memory,
    pub(super) table: Memory,
    /// Sequence of the first record of its segment.
    pub(super) first_sequence: u64,
    /// Abandoned markers before that record.
    pub(super) markers: u64,
    /// The segment is sealed and may be shared. Before that, its writer could punch holes into it.
    pub(super) is_shared: bool,
}

/// What is known of a stream without its memory.
#[derive(Debug, Clone)]
pub(super) struct PastStream {
    pub(super) name: String,
    pub(super) next_sequence: u64,
    /// Records of all its writers, without markers.
    pub(super) published: u64,
}

/// Totals under a number that now has another name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Inherited {
    pub(super) published: u64,
    pub(super) read: u64,
    pub(super) lost: u64,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) role: String,
    pub(super) epoch: u64,
    pub(super) owner: Owner,
    pub(super) pidfd: Option<OwnedFd>,
    pub(super) standing: Standing,
    /// When it was admitted, ns.
    pub(super) admitted_ns: u64,
    /// Its present process has mapped its memory.
    pub(super) is_mapped: bool,
    pub(super) wait: Wait,
    pub(super) reads: Vec<Reads>,
    pub(super) strategies: Vec<u32>,
    /// `None` once its memory was given back ([`Member::retire`]).
    pub(super) inbox: Option<Memory>,
    pub(super) counters: Option<Counters>,
    /// Totals of the earlier processes under its number.
    pub(super) past: Figures,
    pub(super) stream: Option<Stream>,
    /// Its last stream, once its memory was given back.
    pub(super) past_stream: Option<PastStream>,
    /// What others published and counted under its number before it had this name.
    pub(super) inherited: Inherited,
    pub(super) connection: Option<u64>,
    /// Publishers that must connect it before it has joined, and since when it waits for each, ns.
    pub(super) waits: BTreeMap<u32, u64>,
    /// Bits of its inbox by publisher, kept across restarts.
    pub(super) places: BTreeMap<u32, u32>,
    /// For streams whose records are not kept for it: the first record that it has not read, by writer.
    pub(super) unread: BTreeMap<u32, u64>,
}

impl Member {
    /// True if its process is running.
    pub(super) fn is_there(&self) -> bool {
        self.standing.is_there()
    }

    /// True if it has joined and not ended.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.standing, Standing::Running | Standing::Silent)
    }

    /// Rings its bell for stream number `place`.
    pub(super) fn notify(&self, place: u32) {
        if let Some(inbox) = self.inbox.as_ref().and_then(|memory| Inbox::new(&**memory)) {
            inbox.notify(place, &Futex);
        }
    }

    pub(super) fn figures(&self) -> Figures {
        let Some((inbox, counters)) = self.inbox.as_ref().zip(self.counters.as_ref()) else {
            return self.past;
        };
        let (woken, missed) = Inbox::new(&**inbox).map_or((0, 0), |inbox| inbox.woken_and_missed());
        let mut now = counters.figures();
        if woken.max(missed) <= COUNT_MAX {
            (now.woken, now.missed) = (woken, missed);
        } else {
            now.implausible += 1;
        }
        self.past.plus(now)
    }

    pub(super) fn status(&self) -> NodeStatus {
        NodeStatus {
            number: self.number,
            name: self.name.clone(),
            role: self.role.clone(),
            epoch: self.epoch,
            owner: self.owner,
            wait: self.wait,
            standing: self.standing,
            figures: self.figures(),
            is_sender: self.stream_name().is_some_and(|stream| stream.starts_with(ORDERS_PREFIX)),
        }
    }

    /// Time since its last heartbeat, ns; 0 once its memory was given back.
    pub(super) fn silence_ns(&self, now_ns: u64) -> u64 {
        let last_ns = self.counters.as_ref().map_or(now_ns, Counters::heartbeat_ns);
        now_ns.saturating_sub(last_ns)
    }

    /// The stream that it writes, or wrote before it left.
    pub(super) fn stream_name(&self) -> Option<&str> {
        let past = self.past_stream.as_ref().map(|past| past.name.as_str());
        self.stream.as_ref().map(|stream| stream.writes.stream.as_str()).or(past)
    }

    /// Records in its stream, of all writers; `None` without one.
    pub(super) fn published(&self) -> Option<u64> {
        let past = self.past_stream.as_ref().map(|past| past.published);
        self.stream.as_ref().map(|stream| stream.published(self.epoch)).or(past)
    }

    /// True if it has left and nothing of it is kept but figures: its number may get another name.
    pub(super) fn is_retired(&self) -> bool {
        self.standing == Standing::Left && self.inbox.is_none()
    }

    /// Gives back the memory of one that has left, and keeps its figures.
    pub(super) fn retire(&mut self) {
        self.past = self.figures();
        if let Some(stream) = self.stream.take() {
            let (next_sequence, published) = (stream.next_sequence(), stream.published(self.epoch));
            self.past_stream = Some(PastStream { name: stream.writes.stream, next_sequence, published });
        }
        (self.inbox, self.counters) = (None, None);
        self.places.clear();
        self.unread.clear();
    }

    /// Policy for records of the stream that it is too slow for, from the first of its `Reads` that matches.
    pub(super) fn overrun(&self, stream: &str) -> Overrun {
        let reads = self.reads.iter().find(|reads| matches(&reads.streams, stream));
        reads.map_or_else(Overrun::default, |reads| reads.overrun)
    }

    /// Records of the stream that it wants; `None` if it does not read it.
    pub(super) fn wants(&self, stream: &str) -> Option<Keys> {
        let mut wanted: Option<Vec<u32>> = None;
        for reads in self.reads.iter().filter(|reads| matches(&reads.streams, stream)) {
            let keys = match &reads.keys {
                Keys::All => return Some(Keys::All),
                Keys::Only(keys) => keys.as_slice(),
                Keys::Own => slice::from_ref(&self.number),
                Keys::Strategies => &self.strategies,
            };
            wanted.get_or_insert_default().extend_from_slice(keys);
        }
        wanted.map(Keys::Only)
    }
}

/// True if a pattern (a name, or a prefix and a star) matches a stream.
pub(super) fn matches(pattern: &str, stream: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == stream, |start| stream.starts_with(start))
}

impl Stream {
    /// Seals the segment, which its writer has mapped, so that it can be shared. The error is a sentence for
    /// the writer.
    pub(super) fn share(&mut self) -> Result<(), String> {
        self.segment.seal_writes().map_err(|error| error.to_string())?;
        // The writer could punch holes until now, and an access to a hole can end a process.
        if !self.segment.is_whole().map_err(|error| error.to_string())? {
            return Err(format!("stream {}: pages of its segment are missing", self.writes.stream));
        }
        self.is_shared = true;
        Ok(())
    }

    /// The segment; `None` before it is shared, or if its header is damaged.
    pub(super) fn opened(&self) -> Option<Segment<&lowlat_node::MemoryBehind>> {
        let segment = self.is_shared.then(|| Segment::open(&*self.segment))?;
        segment.ok()
    }

    /// True if its interest table has all these keys.
    pub(super) fn has(&self, keys: &Keys) -> bool {
        let Keys::Only(keys) = keys else { return true };
        keys.iter().all(|key| *key < self.writes.keys)
    }

    pub(super) fn interest(&self) -> Option<Interest<&lowlat_node::MemoryBehind>> {
        Interest::open(&*self.table)
    }

    /// Sets a subscriber's interests to exactly these. Interests that remain are never interrupted.
    pub(super) fn set_wanted(&self, subscriber: u32, keys: &Keys) -> bool {
        let Some(interest) = self.interest() else { return false };
        match keys {
            Keys::All => {
                interest.set(subscriber, None, true);
                true
            }
            // `Member::wants` has replaced them with numbers.
            Keys::Own | Keys::Strategies => false,
            Keys::Only(keys) => {
                let keys: BTreeSet<u32> = keys.iter().copied().collect();
                let is_right = keys.iter().all(|key| interest.set(subscriber, Some(*key), true));
                for key in (0..interest.instruments()).filter(|key| !keys.contains(key)) {
                    interest.set(subscriber, Some(key), false);
                }
                interest.set(subscriber, None, false);
                is_right
            }
        }
    }

    /// The last complete record; `None` in an empty or damaged segment.
    pub(super) fn last(&self) -> Option<Record> {
        Reader::last(self.opened()?)
    }

    /// Number of wanted records from this sequence up to, but not including, that position, where the writer
    /// had reached `to_sequence`. Overwritten records all count if everything is wanted, and not at all
    /// otherwise, because their keys are unknown.
    pub(super) fn count(&self, from_sequence: u64, to_position: u64, to_sequence: u64, wanted: &Keys) -> u64 {
        let Some(segment) = self.opened() else { return 0 };
        let first = segment.first_sequence();
        let keys = match wanted {
            Keys::Only(keys) => keys,
            Keys::All => {
                // A successor writer starts with the abandoned marker, which no reader counts.
                let is_abandoned = segment.epoch() > 1 && to_position > 0 && from_sequence <= first;
                return to_sequence.saturating_sub(from_sequence).saturating_sub(u64::from(is_abandoned));
            }
            // `Member::wants` has replaced them with numbers.
            Keys::Own | Keys::Strategies => return 0,
        };
        let looks = segment.capacity_bytes() / 64 + 64;
        let (mut reader, mut payload, mut count) = (Reader::from_start(segment), Vec::new(), 0);
        for _ in 0..looks {
            match reader.next(&mut payload) {
                Read::Record(record) if record.position >= to_position => break,
                Read::Record(record) => {
                    let is_wanted = keys.contains(&record.stamp.instrument);
                    let is_abandoned = record.stamp.kind == KIND_ABANDONED;
                    count += u64::from(is_wanted && !is_abandoned && record.sequence >= from_sequence);
                }
                Read::Gap { .. } | Read::Damaged { .. } => {}
                Read::Nothing | Read::Ended { .. } => break,
            }
        }
        count
    }

    /// Sequence of the record at a position; `None` if it was overwritten.
    pub(super) fn sequence_at(&self, position: u64) -> Option<u64> {
        let reader = Reader::from_now(self.opened()?);
        Some(reader.read_at(position, &mut Vec::new())?.sequence)
    }

    /// Records of all its writers, without markers. `epoch` is that of the last one.
    pub(super) fn published(&self, epoch: u64) -> u64 {
        let next = self.next_sequence();
        let has_marker = epoch > 1 && next > self.first_sequence;
        next.saturating_sub(1 + self.markers + u64::from(has_marker))
    }

    /// Sequence of the stream's next record.
    pub(super) fn next_sequence(&self) -> u64 {
        self.last().map_or(self.first_sequence, |last| last.sequence.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_ipc::{
        interest,
        region::Memfd,
        stream::{Stamp, Writer},
    };
    use std::sync::Arc;

    const CAPACITY_BYTES: u64 = 4096;

    /// The stream of a first or later process under its name, with its writer.
    fn stream(epoch: u64, first_sequence: u64) -> (Stream, Writer<Memory>) {
        let memory = |bytes| Arc::new(Memfd::create_usual("lowlat-test", bytes).unwrap());
        let segment = memory(Segment::<Memory>::bytes(CAPACITY_BYTES));
        let owner = Owner::default();
        let made = Segment::create(segment.clone(), CAPACITY_BYTES, 0, epoch, first_sequence, owner).unwrap();
        let writes = Writes::new("s", CAPACITY_BYTES, 1);
        let table = memory(interest::bytes(1));
        (Stream { writes, segment, table, first_sequence, markers: 0, is_shared: true }, Writer::new(made))
    }

    /// Also where the writer is at the end of a lap, whose first record counts as overwritten.
    #[test]
    fn the_next_sequence_continues_after_any_number_of_records() {
        for bytes in [0, 1, 64, 200, 448] {
            let (stream, mut writer) = stream(1, 7);
            for count in 0..200 {
                assert_eq!(stream.next_sequence(), 7 + count, "{bytes} bytes");
                writer.publish(&Stamp::default(), &vec![1; bytes]).unwrap();
            }
        }
    }

    #[test]
    fn missed_records_are_counted_at_any_position() {
        let (stream, mut writer) = stream(2, 7);
        writer.publish_abandoned(&Stamp::default()).unwrap();
        for count in 0..200_u64 {
            let (position, sequence) = (writer.segment().tail(), writer.next_sequence());
            let counted = |from| stream.count(from, position, sequence, &Keys::All);
            // Number 7 is the abandoned marker; earlier ones were missed in a segment that no longer exists.
            assert_eq!([3, 7, 8, 9].map(counted), [4 + count, count, count, count.saturating_sub(1)]);
            writer.publish(&Stamp::default(), &[1; 64]).unwrap();
        }
    }
}
