//! Admits nodes: their number, memory and stream.

use super::{
    Access, Area, Happened, Master, Standing,
    connection::ConnectionPhase,
    member::{Inherited, Member, Stream, matches},
    memory::{ChargedTo, WrittenBy},
    ready::EventTag,
};
use lowlat_ipc::{
    inbox,
    interest::{self, Interest, SUBSCRIBERS_MAX},
    liveness::Life,
    stream::{Owner, Segment},
};
use lowlat_node::{
    COUNTERS_BYTES, Counters, Figures, Join, Memory, NodeTurn, Wait, Writes,
    address::is_name,
    clock::now_ns,
    control::{self, Lent, ToNode},
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;

/// Maximum rows of an interest table: a million instruments.
const KEYS_MAX: u32 = 1 << 20;

impl Master {
    /// Admits a node. The error is a sentence for the node.
    pub(super) fn admit(&mut self, id: u64, owner: Owner, join: &Join) -> Result<(), String> {
        let known = self.check(owner, join)?;
        let is_stepped = self.is_stepped();
        let number = match known {
            Some(number) => number,
            None => self.new_number(&join.name)?,
        };
        let strategies = self.grant(&join.name, known, &join.strategies)?;
        let whom = self.whom(number, &join.name);
        self.limit_pieces(matches!(whom, ChargedTo::Program(_)));
        let mut shared = |what: &str, bytes| {
            self.maker.make_for(whom, WrittenBy::Shared, &format!("{what}.{}", join.name), bytes)
        };
        let (inbox, counters) = (shared("inbox", inbox::BYTES)?, shared("counters", COUNTERS_BYTES)?);
        // Under this number, and under this name.
        let (of_number, before) = (self.member(number), known.and_then(|number| self.member(number)));
        let epoch = before.map_or(1, |member| member.epoch + 1);
        let past = of_number.map_or_else(Figures::default, Member::figures);
        let inherited = match (before, of_number) {
            (Some(member), _) => member.inherited,
            (None, Some(other)) => {
                Inherited { published: other.published().unwrap_or(0), read: past.read, lost: past.lost }
            }
            (None, None) => Inherited::default(),
        };
        let places = before.map_or_else(BTreeMap::new, |member| member.places.clone());
        let unread = before.map_or_else(BTreeMap::new, |member| member.unread.clone());
        let stream = match &join.writes {
            Some(writes) => Some(self.make_stream(number, &join.name, epoch, owner, writes)?),
            None => None,
        };
        let markers = stream.as_ref().map_or(0, |stream| stream.markers);
        let member = Member {
            number,
            name: join.name.clone(),
            role: join.role.clone(),
            epoch,
            owner,
            pidfd: self.ready_list.add_process(pidfd(owner), EventTag::Member(number)),
            standing: Standing::Joining,
            admitted_ns: now_ns(),
            is_mapped: false,
            // As the node itself decides.
            wait: if is_stepped { Wait::Parked } else { join.wait },
            reads: join.reads.clone(),
            strategies: strategies.clone(),
            inbox: Some(inbox.clone()),
            counters: Some(Counters::new(counters.clone())),
            past,
            stream,
            past_stream: None,
            inherited,
            connection: Some(id),
            waits: BTreeMap::new(),
            places,
            unread,
        };
        // Its silence is measured from here, although it has not polled yet.
        if let Some(counters) = &member.counters {
            counters.set_heartbeat(member.admitted_ns);
        }
        let mut memory = vec![Lent::to_write(&inbox), Lent::to_write(&counters), Lent::to_read(&self.page)];
        let own = |stream: &Stream| [Lent::to_write(&stream.segment), Lent::to_read(&stream.table)];
        memory.extend(member.stream.iter().flat_map(own));
        match self.member_mut(number) {
            Some(place) => *place = member,
            None => self.members.push(member),
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.phase = ConnectionPhase::Member(number);
        }
        let without_master = self.options.without_master;
        self.tell(
            number,
            &ToNode::Welcome { version: control::VERSION, number, epoch, without_master, markers },
            memory,
        );
        for part in self.claims.give(&strategies, number).chunks(control::TURNS_MAX) {
            self.tell(number, &ToNode::Strategies { turns: part.to_vec() }, Vec::new());
        }
        Ok(())
    }

    /// Links a node that has mapped its memory. The error is a sentence for the node.
    pub(super) fn mapped(&mut self, number: u32) -> Result<(), String> {
        let Some(member) = self.member_mut(number).filter(|member| !member.is_mapped) else {
            return Err("mapped was sent twice".to_owned());
        };
        if let Some(stream) = &mut member.stream {
            stream.share()?;
        }
        member.is_mapped = true;
        let stream = member.stream.as_ref().map(|stream| stream.writes.stream.clone());
        let access = |area: &Area| {
            let stream = stream.as_deref()?;
            let may_read = matches(&area.readers, stream).then_some(Access::Read);
            if matches(&area.streams, stream) { Some(area.access) } else { may_read }
        };
        let areas = self.areas.iter().filter_map(|(area, memory)| Some((area, access(area)?, memory)));
        let areas: Vec<_> =
            areas.map(|(area, access, memory)| (area.name.clone(), access, memory.clone())).collect();
        for (name, access, memory) in areas {
            let area = ToNode::Area { name, is_writable: access == Access::Write };
            self.tell(number, &area, vec![Lent::new(&memory, access)]);
        }
        self.link_as_writer(number)?;
        self.link_as_reader(number)?;
        self.finish_join(number);
        Ok(())
    }

    /// Number of a node with a new name: an unused one, or else that of the node that left longest ago. Numbers needed by
    /// the master's programs are reserved.
    fn new_number(&mut self, name: &str) -> Result<u32, String> {
        let awaited = if self.has_program(name) { 0 } else { self.awaited_programs() };
        let most = SUBSCRIBERS_MAX.saturating_sub(awaited);
        if let Some(number) = u32::try_from(self.members.len()).ok().filter(|number| *number < most) {
            return Ok(number);
        }
        let retired =
            self.members.iter().filter(|member| member.is_retired() && !self.has_program(&member.name));
        let oldest = retired.min_by_key(|member| member.admitted_ns).map(|member| member.number);
        let number = oldest.ok_or_else(|| {
            format!("{most} nodes have joined, which is the maximum\nhint: wait until one has left, or start another run")
        })?;
        self.claims.give_back(number);
        for member in &mut self.members {
            member.unread.remove(&number);
        }
        Ok(number)
    }

    /// Returns the account to which memory of a node is charged.
    pub(super) fn whom(&self, number: u32, name: &str) -> ChargedTo {
        if self.has_program(name) { ChargedTo::Program(number) } else { ChargedTo::Guest(number) }
    }

    /// Checks whether the node is acceptable. Returns its number if its name is known.
    fn check(&mut self, owner: Owner, join: &Join) -> Result<Option<u32>, String> {
        for (what, name) in [("node", &join.name), ("role", &join.role)] {
            if !is_name(name) {
                return Err(format!("{what} {name:?} is not a valid name"));
            }
        }
        if self.has_program(&join.name) && !self.is_program(owner.pid) {
            return Err(format!("the run starts node {} itself\nhint: use another name", join.name));
        }
        let known = self.named(&join.name);
        let running = known.filter(|member| member.is_there()).map(|member| (member.number, member.owner));
        let known = known.map(|member| member.number);
        if let Some((number, owner)) = running {
            // It may have left, or closed its connection, since this turn began.
            self.hear_out(number);
            let is_there = self.member(number).is_some_and(Member::is_there);
            if is_there && owner.life() != Life::Dead {
                return Err(format!(
                    "process {} has this name and is running\nhint: use another name, or end it",
                    owner.pid
                ));
            }
            self.bury(number, "its process has ended", Standing::Dead);
        }
        let Some(writes) = &join.writes else { return Ok(known) };
        if !is_name(&writes.stream) {
            return Err(format!("stream {:?} is not a valid name", writes.stream));
        }
        if !(1..=KEYS_MAX).contains(&writes.keys) {
            return Err(format!(
                "stream {} of {} keys; expected 1 to {KEYS_MAX}",
                writes.stream, writes.keys
            ));
        }
        for other in self.members.iter().filter(|other| Some(other.number) != known) {
            if other.stream_name() == Some(&writes.stream) {
                return Err(format!(
                    "stream {} belongs to node {}, and a stream has one writer\nhint: use another name",
                    writes.stream, other.name
                ));
            }
        }
        Ok(known)
    }

    /// A segment for this process, and the stream's interest table, which is created if it is new.
    fn make_stream(
        &mut self,
        number: u32,
        name: &str,
        epoch: u64,
        owner: Owner,
        writes: &Writes,
    ) -> Result<Stream, String> {
        let before = self.stream(number);
        let past = self.member(number).and_then(|member| member.past_stream.as_ref());
        let past_sequence = past.map_or(1, |past| past.next_sequence);
        let first_sequence = before.map_or(past_sequence, Stream::next_sequence);
        let published = self.member(number).and_then(Member::published).unwrap_or(0);
        let markers = first_sequence - 1 - published;
        let table = before
            .filter(|stream| stream.writes.keys == writes.keys && stream.writes.stream == writes.stream)
            .map(|stream| stream.table.clone());
        let capacity = writes.capacity_bytes;
        // An invalid capacity is refused before memory of that size is allocated.
        if !(lowlat_ipc::layout::CAPACITY_BYTES_MIN..=lowlat_ipc::layout::CAPACITY_BYTES_MAX)
            .contains(&capacity)
        {
            return Err(format!(
                "stream {}: a ring of {capacity} bytes\nhint: give it a capacity in bytes that is a power of two from {} to {}",
                writes.stream,
                lowlat_ipc::layout::CAPACITY_BYTES_MIN,
                lowlat_ipc::layout::CAPACITY_BYTES_MAX
            ));
        }
        let bytes = Segment::<Memory>::bytes(capacity);
        let whom = self.whom(number, name);
        let segment = self.maker.make_for(whom, WrittenBy::OneWriter, &writes.stream, bytes)?;
        Segment::create(segment.clone(), capacity, number, epoch, first_sequence, owner)
            .map_err(|error| format!("stream {}: {error}", writes.stream))?;
        let table = if let Some(table) = table {
            table
        } else {
            let name = format!("interest.{}", writes.stream);
            let bytes = interest::bytes(writes.keys);
            let table = self.maker.make_for(whom, WrittenBy::Own, &name, bytes)?;
            Interest::create(table.clone(), writes.keys).ok_or("interest table")?;
            table
        };
        Ok(Stream { writes: writes.clone(), segment, table, first_sequence, markers, is_shared: false })
    }

    /// Confirms that the node has joined, once all its publishers have connected it.
    pub(super) fn finish_join(&mut self, number: u32) {
        let is_stepped = self.is_stepped();
        let Some(member) = self.member_mut(number) else { return };
        if member.standing != Standing::Joining || !member.waits.is_empty() {
            return;
        }
        member.standing = Standing::Running;
        // Its program runs from here on.
        member.turn().filter(|_| is_stepped).iter().for_each(NodeTurn::give);
        let (name, epoch) = (member.name.clone(), member.epoch);
        self.tell(number, &ToNode::Joined, Vec::new());
        if self.has_begun {
            self.tell(number, &ToNode::Begin, Vec::new());
        }
        self.happened.push(Happened::Joined { name, epoch });
    }
}

fn pidfd(owner: Owner) -> Option<std::os::fd::OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(owner.pid).ok()?)?;
    let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // The id may have been reused between the check and here.
    (owner.life() != Life::Dead).then_some(fd)
}
