//! Handles messages of the master in a node.

use super::{
    End, Event, Keys, MASTER_HEARTBEAT, Memory, Node, NodeEnded, Publisher, Source, Sources, StreamName,
    backlog::Backlog,
    direct, mark,
    overrun::{Overrun, Wanted},
};
use crate::control::{ReceiveOutcome, Socket, ToMaster, ToNode, WithoutMaster, parse};
use lowlat_ipc::{
    inbox::{Inbox, STREAMS_MAX},
    passing::Received,
    region::{Access, Memfd, Region},
};
use std::{
    os::fd::OwnedFd,
    sync::{Arc, atomic::Ordering},
};

/// A master without a heartbeat for this long is checked at its socket.
const SILENCE_NS: u64 = 1_000_000_000;
/// Payloads up to this size are read without allocating.
const PAYLOAD_BYTES_KEPT: usize = 1 << 20;

impl Node {
    /// Reads the socket. Returns the number of events.
    #[inline(never)]
    pub(super) fn control(&mut self, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        let mut events = 0;
        loop {
            match self.socket.receive() {
                Ok(ReceiveOutcome::Message(received)) => events += self.hear(received, take),
                Ok(ReceiveOutcome::Nothing) => break,
                Ok(ReceiveOutcome::Closed) | Err(_) => {
                    self.lose_master();
                    break;
                }
            }
        }
        self.socket.flush().ok();
        events
    }

    /// Reads why the master dropped this node, which it sends before it closes the connection.
    pub(super) fn hear_last_words(&mut self) {
        while self.end.is_none()
            && let Ok(ReceiveOutcome::Message(received)) = self.socket.receive()
        {
            self.end = match parse::<ToNode>(&received.bytes) {
                Ok(ToNode::Stop) => Some(End::Stopped),
                Ok(ToNode::Refused { reason }) => Some(End::Because(NodeEnded::Refused { reason })),
                _ => None,
            };
        }
    }

    fn hear(&mut self, received: Received, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        let Ok(message) = parse::<ToNode>(&received.bytes) else { return 0 };
        let event = match &message {
            ToNode::Begin => Event::Begin,
            ToNode::Stop => {
                self.end.get_or_insert(End::Stopped);
                self.is_told = true;
                Event::Stop
            }
            ToNode::Refused { reason } => {
                self.end.get_or_insert_with(|| End::Because(NodeEnded::Refused { reason: reason.clone() }));
                return self.stop(take);
            }
            ToNode::Command { text } => Event::Command(text),
            _ => {
                // A failed mapping is ignored; the link stays unconnected, which the master shows.
                self.link(message, received.descriptors).ok();
                return 0;
            }
        };
        take(&mut self.publisher, event);
        1
    }

    /// Connects and disconnects subscribers and streams. The error is a sentence.
    pub(super) fn link(&mut self, message: ToNode, descriptors: Vec<OwnedFd>) -> Result<(), String> {
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or("a message without its memory");
        match message {
            ToNode::In { place, stream, writer, overrun } => {
                let mut source = Source::open(next()?, next()?, overrun)?;
                if overrun == Overrun::Followed {
                    source.want(self.wanted(&stream));
                }
                let bytes = source.payload_bytes_max().min(PAYLOAD_BYTES_KEPT);
                self.payload.reserve(bytes.saturating_sub(self.payload.len()));
                let at = usize::try_from(place).ok().filter(|_| place < STREAMS_MAX);
                let at = at.ok_or("a place outside the inbox")?;
                if at >= self.incoming.len() {
                    self.incoming.resize_with(at + 1, || None);
                    self.inbox.expect_streams(place + 1);
                }
                let backlog = self.backlog(&stream);
                let name = StreamName::new(stream, writer);
                let sources = self.incoming[at]
                    .get_or_insert_with(|| Sources { backlog, ..Sources::new(name.clone()) });
                sources.push(name, source);
                // Records may have arrived before this message.
                mark(&mut self.pending, place);
                self.direct = direct::streams(self.waiting.wait, &self.incoming);
                self.followed = direct::followed(&self.incoming);
            }
            ToNode::Missed { place, count } => {
                let sources = usize::try_from(place).ok().and_then(|at| self.incoming.get_mut(at));
                if let Some(sources) = sources.and_then(Option::as_mut) {
                    sources.missed += count;
                    mark(&mut self.pending, place);
                }
            }
            ToNode::Out { subscriber, place, entries, generation, overrun } => {
                let (ring, inbox) = (map(next()?, Access::Write)?, map(next()?, Access::Write)?);
                let overrun = overrun.give(ring, entries).ok_or("a ring that is too small")?;
                let inbox = Inbox::new(inbox).ok_or("an inbox that is too small")?;
                let (position, sequence) = self
                    .publisher
                    .connect(subscriber, overrun, inbox, place)
                    .ok_or("a subscriber for a stream that is not written")?;
                let linked = ToMaster::Linked { subscriber, generation, position, sequence };
                self.socket.send(&linked, Vec::new()).ok();
            }
            ToNode::Gone { subscriber } => self.publisher.disconnect(subscriber),
            ToNode::Strategies { turns } => {
                self.strategies.extend(turns.iter().map(|(strategy, _)| strategy));
                self.turns.extend(turns);
            }
            ToNode::Area { name, is_writable } => {
                let access = if is_writable { Access::Write } else { Access::Read };
                self.areas.insert(name, map(next()?, access)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// What this node reads of a stream before its ring. A restarted process continues where its predecessor ended.
    fn backlog(&self, stream: &str) -> Option<Box<Backlog>> {
        let reads = self.reads.iter().find(|reads| reads.is_of(stream)).filter(|_| self.epoch == 1)?;
        Backlog::new(reads.from, self.wanted(stream))
    }

    /// The instruments of a stream that this node asked for.
    fn wanted(&self, stream: &str) -> Wanted {
        let mut wanted = Vec::new();
        for reads in self.reads.iter().filter(|reads| reads.is_of(stream)) {
            match &reads.keys {
                Keys::All => return Wanted::All,
                Keys::Only(keys) => wanted.extend(keys),
                Keys::Own => wanted.push(self.number),
                Keys::Strategies => wanted.extend(&self.strategies),
            }
        }
        Wanted::only(wanted.into_iter())
    }

    /// Marks the streams that it follows, whatever their next place shows.
    #[cold]
    pub(super) fn mark_followed(&mut self) {
        if let Some(pending) = self.pending.first_mut() {
            *pending |= self.followed;
        }
    }

    pub(super) fn look_for_master(&mut self, now_ns: u64) {
        if !self.has_master {
            return;
        }
        let word = self.master.words().get(MASTER_HEARTBEAT);
        // Relaxed: the word does not order other memory.
        let seen = word.map_or(0, |word| word.load(Ordering::Relaxed));
        if now_ns.saturating_sub(seen) < SILENCE_NS && !self.socket.is_waiting() {
            return;
        }
        // The next poll reads whatever is there, including a close.
        mark(&mut self.pending, crate::control::CONTROL_STREAM);
    }

    fn lose_master(&mut self) {
        self.has_master = false;
        // A master that drops a node fences it first, and one that ends asks its nodes to stop first.
        if self.without_master == WithoutMaster::Stop && !self.must_end() {
            self.end = Some(End::Because(NodeEnded::MasterGone));
        }
    }
}

/// Maps what the master sent; the error is a sentence.
pub(super) fn map(fd: OwnedFd, access: Access) -> Result<Memory, String> {
    Memfd::open(fd, access).map(Arc::new).map_err(|error| error.to_string())
}

/// Reports it if the socket fails.
pub(super) fn say(socket: &mut Socket, message: &ToMaster) -> Result<(), super::JoinError> {
    socket.send(message, Vec::new()).map(|_| ()).map_err(super::JoinError::from)
}
