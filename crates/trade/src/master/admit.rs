//! Taking a node in: its number, its memory, its links both ways.

use super::{
    Happened, Master, Standing,
    connection::Phase,
    links::Way,
    member::{Member, Stream},
};
use crate::{
    address::is_name,
    clock::now_ns,
    control::{self, CONTROL_STREAM, ToNode},
    node::{COUNTERS_BYTES, Counters, Figures, Join, Keys, Memory, Writes},
};
use lowlat_ipc::{
    inbox, index_ring,
    interest::{self, Interest, SUBSCRIBERS_MAX},
    liveness::Life,
    stream::{Owner, Segment},
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::{BTreeMap, BTreeSet};

/// Entries of a ring for a subscriber that wants everything, at most.
const ENTRIES_ALL_MAX: u64 = 1 << 16;
/// Entries of a ring for one that wants some instruments, at most.
const ENTRIES_SOME_MAX: u64 = 1 << 12;
/// Bytes of the usual record: header and one line.
const RECORD_BYTES: u64 = 128;
/// Rows of an interest table at most: a million instruments.
const KEYS_MAX: u32 = 1 << 20;

impl Master {
    /// Takes a node in. The error is a sentence for it.
    pub(super) fn admit(&mut self, id: u64, owner: Owner, join: &Join) -> Result<(), String> {
        let known = self.check(join)?;
        let number = match known {
            Some(number) => number,
            None => {
                u32::try_from(self.members.len()).ok().filter(|number| *number < SUBSCRIBERS_MAX).ok_or_else(
                    || format!("{SUBSCRIBERS_MAX} nodes have joined, and no more can; start another master"),
                )?
            }
        };
        let failed = |error: lowlat_ipc::region::RegionError| error.to_string();
        let inbox = self.maker.make(&format!("inbox.{}", join.name), inbox::BYTES).map_err(failed)?;
        let counters = self.maker.make(&format!("counters.{}", join.name), COUNTERS_BYTES).map_err(failed)?;
        let before = known.and_then(|number| self.member(number));
        let epoch = before.map_or(1, |member| member.epoch + 1);
        let past = before.map_or_else(Figures::default, Member::figures);
        let places = before.map_or_else(BTreeMap::new, |member| member.places.clone());
        let unread = before.map_or_else(BTreeMap::new, |member| member.unread.clone());
        let stream = match &join.writes {
            Some(writes) => Some(self.make_stream(number, epoch, owner, writes)?),
            None => None,
        };
        let member = Member {
            number,
            name: join.name.clone(),
            role: join.role.clone(),
            epoch,
            owner,
            pidfd: pidfd(owner),
            standing: Standing::Joining,
            wait: join.wait,
            reads: join.reads.clone(),
            inbox: inbox.clone(),
            counters: Counters::begun(counters.clone(), now_ns()),
            past,
            stream,
            connection: Some(id),
            waits: BTreeSet::new(),
            places,
            unread,
        };
        let mut memory = vec![inbox, counters, self.page.clone()];
        memory.extend(member.stream.iter().flat_map(|stream| [stream.segment.clone(), stream.table.clone()]));
        match self.member_mut(number) {
            Some(place) => *place = member,
            None => self.members.push(member),
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.phase = Phase::Member(number);
        }
        let without_master = self.options.without_master;
        self.tell(
            number,
            &ToNode::Welcome { version: control::VERSION, number, epoch, without_master },
            memory,
        );
        for (name, area) in self.areas.clone() {
            self.tell(number, &ToNode::Area { name }, vec![area]);
        }
        self.link_as_writer(number)?;
        self.link_as_reader(number)?;
        self.finish_join(number);
        Ok(())
    }

    /// Whether the node can be taken; its number when its name is known.
    fn check(&mut self, join: &Join) -> Result<Option<u32>, String> {
        for (what, name) in [("node", &join.name), ("role", &join.role)] {
            if !is_name(name) {
                return Err(format!("{what} {name:?} is no name"));
            }
        }
        let known = self.members.iter().find(|member| member.name == join.name);
        let (known, is_there) = (known.map(|member| member.number), known.is_some_and(Member::is_there));
        if let (Some(number), true) = (known, is_there) {
            let owner = self.member(number).map(|member| member.owner).unwrap_or_default();
            if owner.life() != Life::Dead {
                return Err(format!(
                    "process {} has this name, and lives; take another name, or end it",
                    owner.pid
                ));
            }
            self.bury(number, "its process is gone", Standing::Dead);
        }
        let Some(writes) = &join.writes else { return Ok(known) };
        if !is_name(&writes.stream) {
            return Err(format!("stream {:?} is no name", writes.stream));
        }
        if !(1..=KEYS_MAX).contains(&writes.keys) {
            return Err(format!(
                "stream {} of {} keys; expected 1 to {KEYS_MAX}",
                writes.stream, writes.keys
            ));
        }
        for other in self.members.iter().filter(|other| Some(other.number) != known) {
            if other.stream.as_ref().is_some_and(|stream| stream.writes.stream == writes.stream) {
                return Err(format!(
                    "stream {} is node {}'s; a stream has one writer: take another name",
                    writes.stream, other.name
                ));
            }
        }
        Ok(known)
    }

    /// A segment for this process, and the interest table that the stream has, or a new one.
    fn make_stream(
        &mut self,
        number: u32,
        epoch: u64,
        owner: Owner,
        writes: &Writes,
    ) -> Result<Stream, String> {
        let before = self.member(number).and_then(|member| member.stream.as_ref());
        let first_sequence = before.map_or(1, Stream::next_sequence);
        let table = before
            .filter(|stream| stream.writes.keys == writes.keys && stream.writes.stream == writes.stream)
            .map(|stream| stream.table.clone());
        let capacity = writes.capacity_bytes;
        // A capacity that no ring can have is refused before memory of that size is asked for.
        if !(lowlat_ipc::layout::CAPACITY_BYTES_MIN..=lowlat_ipc::layout::CAPACITY_BYTES_MAX)
            .contains(&capacity)
        {
            return Err(format!("stream {}: a ring of {capacity} bytes", writes.stream));
        }
        let bytes = Segment::<Memory>::bytes(capacity);
        let segment = self.maker.make(&writes.stream, bytes).map_err(|error| error.to_string())?;
        Segment::create(segment.clone(), capacity, number, epoch, first_sequence, owner)
            .map_err(|error| format!("stream {}: {error}", writes.stream))?;
        let table = if let Some(table) = table {
            table
        } else {
            let name = format!("interest.{}", writes.stream);
            let bytes = interest::bytes(writes.keys);
            let table = self.maker.make(&name, bytes).map_err(|error| error.to_string())?;
            Interest::create(table.clone(), writes.keys).ok_or("interest table")?;
            table
        };
        Ok(Stream { writes: writes.clone(), segment, table })
    }

    /// Links a node with those who read its stream.
    fn link_as_writer(&mut self, number: u32) -> Result<(), String> {
        let Some(name) = self.stream_name(number) else { return Ok(()) };
        let readers: Vec<(u32, Keys)> = self
            .members
            .iter()
            .filter(|member| member.number != number && self.is_served(member))
            .filter_map(|member| member.wants(&name).map(|keys| (member.number, keys)))
            .collect();
        for (reader, keys) in readers {
            let way = self.add_way(number, reader, &keys)?;
            self.tell_in(number, reader, &way);
            self.tell_out(number, reader, &way);
            // Connected before anything is published: the node gets all of it before it knows that it has joined.
            self.want(number, reader, &keys)?;
        }
        Ok(())
    }

    /// Links a node with those whose streams it reads.
    fn link_as_reader(&mut self, number: u32) -> Result<(), String> {
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
            // What is left of before comes first.
            let old = self.links.get(writer, number).map_or_else(Vec::new, |link| link.ways.clone());
            for way in &old {
                self.tell_in(writer, number, way);
            }
            if !self.member(writer).is_some_and(Member::is_there) {
                continue;
            }
            let way = self.add_way(writer, number, &keys)?;
            self.tell_in(writer, number, &way);
            self.tell_out(writer, number, &way);
            if self.has_begun {
                // Records may come at any moment: wanted once the writer has connected it.
                if let Some(member) = self.member_mut(number) {
                    member.waits.insert(writer);
                }
            } else {
                self.want(writer, number, &keys)?;
                self.tell_missed(writer, number, 0, &keys);
            }
        }
        Ok(())
    }

    /// Whether records are kept for a node.
    fn is_served(&self, member: &Member) -> bool {
        let keeps = self.options.dead_readers == super::DeadReaders::Keep;
        member.is_there() || (keeps && member.standing == Standing::Dead)
    }

    fn add_way(&mut self, writer: u32, reader: u32, keys: &Keys) -> Result<Way, String> {
        let stream = self.member(writer).and_then(|member| member.stream.as_ref()).ok_or("no stream")?;
        let most = if *keys == Keys::All { ENTRIES_ALL_MAX } else { ENTRIES_SOME_MAX };
        let entries = (stream.writes.capacity_bytes / RECORD_BYTES).next_power_of_two().clamp(32, most);
        let segment = stream.segment.clone();
        let ring = self
            .maker
            .make(&format!("ring.{writer}-{reader}"), index_ring::bytes(entries))
            .map_err(|error| error.to_string())?;
        index_ring::create(ring.clone(), entries).ok_or("ring")?;
        self.generation += 1;
        let way = Way { segment, ring, entries, generation: self.generation, from: None };
        self.place(writer, reader)?;
        self.links.entry(writer, reader).push(way.clone());
        Ok(way)
    }

    /// The bit of a stream in the inbox of its reader.
    fn place(&mut self, writer: u32, reader: u32) -> Result<u32, String> {
        let member = self.member_mut(reader).ok_or("gone")?;
        if let Some(place) = member.places.get(&writer) {
            return Ok(*place);
        }
        let place = u32::try_from(member.places.len()).unwrap_or(u32::MAX);
        if place >= CONTROL_STREAM {
            return Err(format!("node {} reads more than {CONTROL_STREAM} streams", member.name));
        }
        member.places.insert(writer, place);
        Ok(place)
    }

    fn tell_in(&mut self, writer: u32, reader: u32, way: &Way) {
        let (Some(stream), Ok(place)) = (self.stream_name(writer), self.place(writer, reader)) else {
            return;
        };
        let message = ToNode::In { place, stream, writer };
        self.tell(reader, &message, vec![way.segment.clone(), way.ring.clone()]);
    }

    fn tell_out(&mut self, writer: u32, reader: u32, way: &Way) {
        let Ok(place) = self.place(writer, reader) else { return };
        let Some(inbox) = self.member(reader).map(|member| member.inbox.clone()) else { return };
        let Way { entries, generation, .. } = *way;
        let message = ToNode::Out { subscriber: reader, place, entries, generation };
        self.tell(writer, &message, vec![way.ring.clone(), inbox]);
    }

    /// Sets what a reader wants of a writer's stream.
    fn want(&mut self, writer: u32, reader: u32, keys: &Keys) -> Result<(), String> {
        let name = self.member(reader).map_or_else(String::new, |member| member.name.clone());
        let Some(stream) = self.member(writer).and_then(|member| member.stream.as_ref()) else {
            return Ok(());
        };
        if stream.set_wanted(reader, keys) {
            return Ok(());
        }
        Err(format!(
            "node {name} wants a key of stream {} that it has not: its keys are 0 to {}",
            stream.writes.stream,
            stream.writes.keys - 1
        ))
    }

    /// Tells a reader how many records went by, up to a position of the writer's segment.
    fn tell_missed(&mut self, writer: u32, reader: u32, position: u64, keys: &Keys) {
        let unread = self.member_mut(reader).and_then(|member| member.unread.remove(&writer));
        let stream = self.member(writer).and_then(|member| member.stream.as_ref());
        let Some((unread, stream)) = unread.zip(stream) else { return };
        let count = stream.count(unread, position, keys);
        if let (true, Ok(place)) = (count > 0, self.place(writer, reader)) {
            self.tell(reader, &ToNode::Missed { place, count }, Vec::new());
        }
    }

    /// A writer has connected a reader.
    pub(super) fn linked(&mut self, writer: u32, reader: u32, generation: u64, position: u64) {
        let Some(link) = self.links.get_mut(writer, reader) else { return };
        let Some(way) = link.ways.iter_mut().find(|way| way.generation == generation) else { return };
        way.from = Some(position);
        let is_last = link.ways.last().is_some_and(|way| way.generation == generation);
        let is_waited_for = self.member(reader).is_some_and(|member| member.waits.contains(&writer));
        if !(is_last && is_waited_for) {
            return;
        }
        let name = self.stream_name(writer).unwrap_or_default();
        let keys = self.member(reader).and_then(|member| member.wants(&name));
        let result = keys.map_or(Ok(()), |keys| {
            self.tell_missed(writer, reader, position, &keys);
            self.want(writer, reader, &keys)
        });
        if let Some(member) = self.member_mut(reader) {
            member.waits.remove(&writer);
        }
        match (result, self.member(reader).and_then(|member| member.connection)) {
            (Err(reason), Some(id)) => {
                let name = self.member(reader).map_or_else(String::new, |member| member.name.clone());
                self.refuse(id, &name, &reason);
            }
            _ => self.finish_join(reader),
        }
    }

    /// Says that it has joined once nothing is waited for.
    pub(super) fn finish_join(&mut self, number: u32) {
        let Some(member) = self.member_mut(number) else { return };
        if member.standing != Standing::Joining || !member.waits.is_empty() {
            return;
        }
        member.standing = Standing::Running;
        let (name, epoch) = (member.name.clone(), member.epoch);
        self.tell(number, &ToNode::Joined, Vec::new());
        if self.has_begun {
            self.tell(number, &ToNode::Begin, Vec::new());
        }
        self.happened.push(Happened::Joined { name, epoch });
    }

    fn stream_name(&self, number: u32) -> Option<String> {
        Some(self.member(number)?.stream.as_ref()?.writes.stream.clone())
    }
}

fn pidfd(owner: Owner) -> Option<std::os::fd::OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(owner.pid).ok()?)?;
    let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // The id may have come again between the look and here.
    (owner.life() != Life::Dead).then_some(fd)
}
