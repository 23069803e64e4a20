//! Links publishers and subscribers: creates a ring or a table per pair, and informs both.

use super::{
    Master, Standing,
    links::{LinkChannel, ReconnectRequest},
    member::Member,
    memory::WrittenBy,
};
use lowlat_ipc::{inbox::STREAMS_MAX, liveness::Life, stream::cursor::Cursor};
use lowlat_node::{
    Keys, Overrun, Wait,
    clock::now_ns,
    control::{Lent, ToNode},
};
use std::sync::Arc;

/// Maximum entries of a ring for a subscriber that wants everything.
const ENTRIES_ALL_MAX: u64 = 1 << 16;
/// Maximum entries of a ring for a subscriber that wants some instruments.
const ENTRIES_SOME_MAX: u64 = 1 << 12;
/// Largest number of streams that a reader that spins follows itself.
const FOLLOWED_MAX: usize = 8;
/// Minimum time between two reconnections of a reader that is evicted repeatedly.
const AGAIN_NS_MIN: u64 = 100_000_000;
/// Time that a joining reader waits for a writer to poll.
const WAIT_NS_MAX: u64 = if cfg!(test) { 20_000_000 } else { 250_000_000 };
/// Bytes of a typical record: header and one line.
const RECORD_BYTES: u64 = 128;

impl Master {
    /// Links a node with the readers of its stream.
    pub(super) fn link_as_writer(&mut self, number: u32) -> Result<(), String> {
        let Some(name) = self.stream_name(number) else { return Ok(()) };
        let readers: Vec<(u32, Keys)> = self
            .members
            .iter()
            .filter(|member| member.number != number && self.is_served(member))
            .filter_map(|member| member.wants(&name).map(|keys| (member.number, keys)))
            .collect();
        for (reader, keys) in readers {
            if let Err(reason) = self.check_keys(number, reader, &keys) {
                // It may be dead, and is refused when it restarts.
                if let Some(id) = self.member(reader).and_then(|member| member.connection) {
                    self.refuse(id, &reason);
                }
                continue;
            }
            let channel = self.add_channel(number, reader, &keys, false)?;
            if self.member(reader).is_some_and(|member| member.is_mapped) {
                self.tell_in(number, reader, &channel);
            }
            if channel.overrun == Overrun::Followed {
                continue;
            }
            self.tell_out(number, reader, &channel);
            // Connected before anything is published: the node gets all of it before it learns that it has
            // joined.
            self.want(number, reader, &keys);
        }
        Ok(())
    }

    /// Links a node with the writers of the streams that it reads.
    pub(super) fn link_as_reader(&mut self, number: u32) -> Result<(), String> {
        let member = self.member(number).ok_or("gone")?;
        let writers: Vec<(u32, Keys)> = self
            .members
            .iter()
            .filter(|other| other.number != number)
            .filter_map(|other| {
                let stream = other.stream.as_ref()?;
                Some((other.number, member.wants(&stream.writes.stream)?))
            })
            .collect();
        for (writer, keys) in writers {
            self.leave_followed(writer, number);
            // Pending rings are read first. One that its writer has not connected yet follows when it has.
            let mut old = Vec::new();
            for channel in self.links.get_mut(writer, number).into_iter().flat_map(|link| &mut link.ways) {
                channel.is_told = channel.from.is_some();
                old.extend(channel.is_told.then(|| channel.clone()));
            }
            for channel in &old {
                self.tell_in(writer, number, channel);
            }
            // A writer that has not mapped its segment links its readers when it has.
            if !self.member(writer).is_some_and(|member| member.is_there() && member.is_mapped) {
                continue;
            }
            self.check_keys(writer, number, &keys)?;
            if self.is_followed_already(writer, number) {
                continue;
            }
            let channel = self.add_channel(writer, number, &keys, true)?;
            if channel.overrun == Overrun::Followed {
                self.tell_in(writer, number, &channel);
                continue;
            }
            // Interest is set before the connection, where it has no effect yet: so the first delivery follows
            // directly after the missed records, although records may arrive at any moment.
            self.want(writer, number, &keys);
            match self.links.get_mut(writer, number).map(|link| &mut link.ways[..]) {
                // Until the writer polls it writes to an earlier ring: of the predecessor, or made for this reader when the
                // writer joined. The reader leaves a ring that is empty when it is told of the next.
                Some([_, .., new]) => new.is_told = false,
                _ => self.tell_in(writer, number, &channel),
            }
            self.tell_out(writer, number, &channel);
            if !self.has_begun {
                self.tell_missed(writer, number, None, &keys);
            } else if !self.is_silent(writer)
                && let Some(member) = self.member_mut(number)
            {
                member.waits.insert(writer, now_ns());
            }
        }
        Ok(())
    }

    /// True if a node is known not to poll.
    fn is_silent(&self, number: u32) -> bool {
        self.member(number)
            .is_some_and(|member| member.standing == Standing::Silent || member.owner.life() == Life::Stopped)
    }

    /// Lets readers join whose writers have not polled in time: they get those records later.
    pub(super) fn end_waits(&mut self, now_ns: u64) {
        let is_due = |since_ns: &u64| now_ns.saturating_sub(*since_ns) >= WAIT_NS_MAX;
        let mut readers = Vec::new();
        for member in self.members.iter_mut().filter(|member| member.waits.values().any(is_due)) {
            member.waits.retain(|_, since_ns| !is_due(since_ns));
            readers.push(member.number);
        }
        for reader in readers {
            self.finish_join(reader);
        }
    }

    /// True if a joining stream should be linked to a node: the node is running, or records are kept for it. A node
    /// that has not mapped its memory learns of the ring when it has; before the begin, when nothing is published, it
    /// is linked then.
    fn is_served(&self, member: &Member) -> bool {
        (member.is_there() && (member.is_mapped || self.has_begun)) || member.standing == Standing::Dead
    }

    /// The way in which a reader gets a writer's records: one that spins follows few streams itself, unless its predecessor
    /// has a ring, which its publisher still fills.
    fn way(&self, writer: u32, reader: u32, asked: Overrun) -> Overrun {
        let Some(member) = self.member(reader) else { return asked };
        let is_few = member.reads.len() <= FOLLOWED_MAX
            && member.reads.iter().all(|reads| !reads.streams.ends_with('*'));
        let has_ring = self
            .links
            .get(writer, reader)
            .is_some_and(|link| link.ways.iter().any(|channel| channel.overrun != Overrun::Followed));
        let is_low = member.places.get(&writer).is_none_or(|place| *place < 64) && member.places.len() < 63;
        let follows = asked == Overrun::Gap && member.wait == Wait::Fast && is_few && is_low && !has_ring;
        if follows { Overrun::Followed } else { asked }
    }

    /// True if a restarted reader that spins continues in the writer's present segment.
    fn is_followed_already(&self, writer: u32, reader: u32) -> bool {
        let Some((stream, link)) = self.stream(writer).zip(self.links.get(writer, reader)) else {
            return false;
        };
        link.ways.last().is_some_and(|channel| {
            channel.overrun == Overrun::Followed && Arc::ptr_eq(&channel.segment, &stream.segment)
        })
    }

    /// A restarted reader does not spin any more: what its predecessor had not read is missed.
    fn leave_followed(&mut self, writer: u32, reader: u32) {
        let asked = self.stream(writer).and_then(|stream| {
            Some(self.member(reader)?.overrun(&stream.writes.stream).of_writer(stream.writes.gives_credit))
        });
        if asked.is_none_or(|asked| self.way(writer, reader, asked) == Overrun::Followed) {
            return;
        }
        let Some(link) = self.links.get_mut(writer, reader) else { return };
        let left = link.ways.iter().find(|channel| !channel.is_drained()).or(link.ways.last());
        let left = left.and_then(LinkChannel::followed);
        link.ways.retain(|channel| channel.overrun != Overrun::Followed);
        if let (Some((_, Some(sequence))), Some(member)) = (left, self.member_mut(reader)) {
            member.unread.insert(writer, sequence);
        }
    }

    /// `is_late`: the stream was there before its reader.
    fn add_channel(
        &mut self,
        writer: u32,
        reader: u32,
        keys: &Keys,
        is_late: bool,
    ) -> Result<LinkChannel, String> {
        let stream = self.stream(writer).ok_or("no stream")?;
        let asked = self.member(reader).ok_or("gone")?.overrun(&stream.writes.stream);
        let overrun = self.way(writer, reader, asked.of_writer(stream.writes.gives_credit));
        let first_sequence = stream.first_sequence;
        let most = if *keys == Keys::All { ENTRIES_ALL_MAX } else { ENTRIES_SOME_MAX };
        let entries = if overrun == Overrun::Conflate {
            u64::from(stream.writes.keys)
        } else {
            (stream.writes.capacity_bytes / RECORD_BYTES).next_power_of_two().clamp(32, most)
        };
        let segment = stream.segment.clone();
        // Charged to the reader, which requested it.
        let name = self.member(reader).map_or("", |member| member.name.as_str());
        let whom = self.whom(reader, name);
        let ring = self.maker.make_for(
            whom,
            WrittenBy::Shared,
            &format!("ring.{writer}-{reader}"),
            overrun.bytes(entries),
        )?;
        // Initialized here once, so that the reader can open it before its publisher has.
        let is_followed = overrun == Overrun::Followed;
        if is_followed {
            Cursor::create(ring.clone(), first_sequence, is_late).ok_or("cursor")?;
        } else {
            overrun.give(ring.clone(), entries).ok_or("ring")?;
        }
        self.generation += 1;
        let channel = LinkChannel {
            segment,
            ring,
            entries,
            overrun,
            generation: self.generation,
            from: is_followed.then_some(0),
            is_told: true,
        };
        self.place(writer, reader)?;
        self.links.entry(writer, reader).push(channel.clone());
        Ok(channel)
    }

    /// Bit of a stream in its reader's inbox, after that of its master's messages.
    fn place(&mut self, writer: u32, reader: u32) -> Result<u32, String> {
        let member = self.member_mut(reader).ok_or("gone")?;
        if let Some(place) = member.places.get(&writer) {
            return Ok(*place);
        }
        let place = u32::try_from(member.places.len() + 1).unwrap_or(u32::MAX);
        if place >= STREAMS_MAX {
            return Err(format!("node {} reads more than {} streams", member.name, STREAMS_MAX - 1));
        }
        member.places.insert(writer, place);
        Ok(place)
    }

    fn tell_in(&mut self, writer: u32, reader: u32, channel: &LinkChannel) {
        let (Some(stream), Ok(place)) = (self.stream_name(writer), self.place(writer, reader)) else {
            return;
        };
        let message = ToNode::In { place, stream, writer, overrun: channel.overrun };
        self.tell(reader, &message, vec![Lent::to_read(&channel.segment), Lent::to_write(&channel.ring)]);
    }

    fn tell_out(&mut self, writer: u32, reader: u32, channel: &LinkChannel) {
        let Ok(place) = self.place(writer, reader) else { return };
        let Some(inbox) = self.member(reader).and_then(|member| member.inbox.clone()) else { return };
        let LinkChannel { entries, generation, overrun, .. } = *channel;
        let message = ToNode::Out { subscriber: reader, place, entries, generation, overrun };
        self.tell(writer, &message, vec![Lent::to_write(&channel.ring), Lent::to_write(&inbox)]);
    }

    /// Sets what a reader wants of a writer's stream.
    fn want(&self, writer: u32, reader: u32, keys: &Keys) {
        if let Some(stream) = self.stream(writer) {
            stream.set_wanted(reader, keys);
        }
    }

    /// Checks that a stream has the keys that a reader wants. The error is a sentence for the reader.
    fn check_keys(&self, writer: u32, reader: u32, keys: &Keys) -> Result<(), String> {
        match self.stream(writer) {
            Some(stream) if !stream.has(keys) => Err(format!(
                "node {} wants a key that stream {} does not have: its keys are 0 to {}\nhint: read other instruments, or give the stream more keys",
                self.member(reader).map_or("", |member| member.name.as_str()),
                stream.writes.stream,
                stream.writes.keys - 1
            )),
            _ => Ok(()),
        }
    }

    /// Reports to a reader how many records it missed, up to a position of the writer's segment and its
    /// sequence; with `None`, up to the segment's first record.
    fn tell_missed(&mut self, writer: u32, reader: u32, to: Option<(u64, u64)>, keys: &Keys) {
        let unread = self.member_mut(reader).and_then(|member| member.unread.remove(&writer));
        let stream = self.stream(writer);
        let Some((unread, stream)) = unread.zip(stream) else { return };
        let (position, sequence) = to.unwrap_or((0, stream.first_sequence));
        let count = stream.count(unread, position, sequence, keys);
        if let (true, Ok(place)) = (count > 0, self.place(writer, reader)) {
            self.tell(reader, &ToNode::Missed { place, count }, Vec::new());
        }
    }

    /// A writer has connected a reader. `next` is the position and sequence of the reader's first record.
    pub(super) fn linked(&mut self, writer: u32, reader: u32, generation: u64, next: (u64, u64)) {
        let Some(link) = self.links.get_mut(writer, reader) else { return };
        let Some(channel) = link.ways.iter_mut().find(|channel| channel.generation == generation) else {
            return;
        };
        channel.from = Some(next.0);
        let new = (!channel.is_told).then(|| channel.clone());
        let is_last = link.ways.last().is_some_and(|channel| channel.generation == generation);
        if let Some(new) = new.filter(|_| self.member(reader).is_some_and(|member| member.is_mapped)) {
            self.tell_in(writer, reader, &new);
            let ways = self.links.get_mut(writer, reader).into_iter().flat_map(|link| &mut link.ways);
            ways.filter(|way| way.generation == generation).for_each(|way| way.is_told = true);
        }
        if !is_last {
            return;
        }
        let name = self.stream_name(writer).unwrap_or_default();
        // A reader that has joined was evicted and is reconnected.
        if let Some(keys) = self.member(reader).and_then(|member| member.wants(&name)) {
            self.tell_missed(writer, reader, Some(next), &keys);
        }
        if self.member_mut(reader).is_some_and(|member| member.waits.remove(&writer).is_some()) {
            self.finish_join(reader);
        }
    }

    /// A writer has evicted a reader, which asks to be reconnected. The request is delayed until enough time
    /// has passed since the last one; a repeated request replaces the earlier one.
    pub(super) fn again(&mut self, writer: u32, reader: u32, again: ReconnectRequest) {
        if self.links.get(writer, reader).is_some() {
            self.links.again.insert((writer, reader), again);
            self.connect_again(now_ns());
        }
    }

    /// Reconnects evicted readers, each at a limited rate. A reader without memory budget is refused.
    pub(super) fn connect_again(&mut self, now_ns: u64) {
        let is_due = |(writer, reader): &(u32, u32)| {
            let link = self.links.get(*writer, *reader);
            link.is_none_or(|link| now_ns.saturating_sub(link.again_ns) >= AGAIN_NS_MIN)
        };
        let due: Vec<(u32, u32)> = self.links.again.keys().copied().filter(is_due).collect();
        for (writer, reader) in due {
            let Some(again) = self.links.again.remove(&(writer, reader)) else { continue };
            if let Err(reason) = self.connect_one_again(writer, reader, again, now_ns)
                && let Some(id) = self.member(reader).and_then(|member| member.connection)
            {
                self.refuse(id, &reason);
            }
        }
    }

    /// Reconnects a reader that a writer evicted. Sends it the number of records it missed. The error is a
    /// sentence.
    fn connect_one_again(
        &mut self,
        writer: u32,
        reader: u32,
        ReconnectRequest { after, first }: ReconnectRequest,
        now_ns: u64,
    ) -> Result<(), String> {
        let Some(stream) = self.stream(writer) else { return Ok(()) };
        let unread = after
            .map(|after| after.saturating_add(1))
            .or_else(|| stream.sequence_at(first))
            .unwrap_or_else(|| stream.next_sequence());
        let name = stream.writes.stream.clone();
        let is_there = self.member(writer).is_some_and(|writer| writer.is_there() && writer.is_mapped);
        let end = (u64::MAX, stream.next_sequence());
        let Some(keys) = self.member(reader).and_then(|member| member.wants(&name)) else { return Ok(()) };
        let Some(link) = self.links.get_mut(writer, reader) else { return Ok(()) };
        link.again_ns = now_ns;
        // These were read to the end. The last remaining one may belong to a restarted writer.
        link.ways.retain(|channel| !channel.is_evicted());
        let is_connected = !link.ways.is_empty();
        if let Some(member) = self.member_mut(reader) {
            member.unread.entry(writer).or_insert(unread);
        }
        if !is_there || is_connected {
            // A writer that has ended connects all its readers when it restarts, from its first record on.
            // Whether it restarts is unknown, but everything it published until its end is known.
            let to = if is_there { None } else { Some(end) };
            self.tell_missed(writer, reader, to, &keys);
            return Ok(());
        }
        self.limit_pieces(false);
        let channel = self.add_channel(writer, reader, &keys, true)?;
        self.tell_in(writer, reader, &channel);
        self.tell_out(writer, reader, &channel);
        Ok(())
    }

    fn stream_name(&self, number: u32) -> Option<String> {
        self.stream(number).map(|stream| stream.writes.stream.clone())
    }
}
