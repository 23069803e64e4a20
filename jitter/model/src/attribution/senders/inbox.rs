//! Notes on their way to one CPU.

use super::{
    SenderId,
    book::{Note, What},
};
use lowlat_host::TickScale;
use lowlat_trace::Channel;

/// Requests, and interrupts of each channel, that may wait: 40,000 a second if they are read every 25 ms.
pub const NOTES_MAX: usize = 1_024;
/// Longest time from sending to arrival. A hypervisor may hold a CPU for that long.
const UNDER_WAY_NS: u64 = 50_000_000;
/// Time for which another interrupt may still arrive after those of several senders were under way.
const DOUBT_NS: u64 = 100_000;

/// The list of requests, behind those of interrupts by channel.
const REQUESTS: usize = Channel::COUNT;

/// A request or an interrupt.
#[derive(Debug, Clone, Copy)]
struct Sent {
    ticks: u64,
    sender: SenderId,
    /// Address and function of a request.
    request: (u64, u64),
    is_taken: bool,
}

/// Notes for one CPU that have not arrived.
#[derive(Debug)]
pub(crate) struct PendingNotes {
    lists: [Vec<Sent>; REQUESTS + 1],
    /// Time until which interrupts of a channel may be late ones of several senders.
    doubt_until: [u64; Channel::COUNT],
    /// The last time span in which notes are missing.
    lost: (u64, u64),
    under_way_ticks: u64,
    doubt_ticks: u64,
}

impl PendingNotes {
    pub(crate) fn new(scale: TickScale) -> Self {
        Self {
            lists: std::array::from_fn(|_| Vec::with_capacity(NOTES_MAX)),
            doubt_until: [0; Channel::COUNT],
            lost: (0, 0),
            under_way_ticks: scale.ticks(UNDER_WAY_NS),
            doubt_ticks: scale.ticks(DOUBT_NS),
        }
    }

    /// Takes a note, in any order.
    pub(crate) fn push(&mut self, note: Note) {
        let mut sent = Sent { ticks: note.ticks, sender: note.sender, request: (0, 0), is_taken: false };
        match note.what {
            What::Request { request, function } => {
                self.make_room(REQUESTS);
                sent.request = (request, function);
                self.lists[REQUESTS].push(sent);
            }
            What::Interrupt(channel) => {
                if let Some(dropped) = self.make_room(channel as usize) {
                    self.note_lost(dropped);
                }
                self.lists[channel as usize].push(sent);
            }
            What::Lost { since } => self.note_lost((since, note.ticks)),
        }
    }

    /// Drops the oldest if a list is full. Returns when the first and the last of them were sent.
    fn make_room(&mut self, list: usize) -> Option<(u64, u64)> {
        if self.lists[list].len() < NOTES_MAX {
            return None;
        }
        self.settle();
        let waiting = &mut self.lists[list];
        let count = waiting.len().saturating_sub(NOTES_MAX - 1);
        let mut dropped = waiting.drain(..count).map(|sent| sent.ticks);
        let since = dropped.next()?;
        Some((since, dropped.next_back().unwrap_or(since)))
    }

    /// Extends the span in which notes are missing, or replaces it by a later one.
    fn note_lost(&mut self, (since, until): (u64, u64)) {
        let until_known = self.lost.1.saturating_add(self.under_way_ticks);
        let since = if since <= until_known { self.lost.0.min(since) } else { since };
        self.lost = (since, self.lost.1.max(until));
    }

    /// Sorts what was pushed, and drops what has arrived. Call it after pushing.
    pub(crate) fn settle(&mut self) {
        for list in &mut self.lists {
            list.retain(|sent| !sent.is_taken);
            list.sort_unstable_by_key(|sent| sent.ticks);
        }
    }

    /// The sender of a function that starts now, and takes its request.
    pub(crate) fn function(&mut self, now: u64, request: u64, function: u64) -> SenderId {
        let Some(place) = self.find(now, request, function) else { return SenderId::UNKNOWN };
        self.lists[REQUESTS].get_mut(place).map_or(SenderId::UNKNOWN, |found| {
            found.is_taken = true;
            found.sender
        })
    }

    /// The same, without taking it.
    pub(crate) fn peek(&self, now: u64, request: u64, function: u64) -> SenderId {
        let found = self.find(now, request, function).and_then(|place| self.lists[REQUESTS].get(place));
        found.map_or(SenderId::UNKNOWN, |found| found.sender)
    }

    /// The oldest matching request: a request is queued again only after it has been taken from the queue.
    fn find(&self, now: u64, request: u64, function: u64) -> Option<usize> {
        let since = now.saturating_sub(self.under_way_ticks);
        let requests = &self.lists[REQUESTS];
        let sent = requests.partition_point(|found| found.ticks <= now);
        let first = requests.partition_point(|found| found.ticks < since);
        let matches = |found: &Sent| !found.is_taken && found.request == (request, function);
        requests.get(first..sent)?.iter().position(matches).map(|place| first + place)
    }

    /// The sender of an interrupt that arrives now. Everything sent before has then arrived: an interrupt that
    /// is pending already is not delivered twice.
    pub(crate) fn interrupt(&mut self, now: u64, channel: Channel) -> SenderId {
        let since = now.saturating_sub(self.under_way_ticks);
        let at = channel as usize;
        let (mut sender, mut is_one) = (None, true);
        for interrupt in self.lists[at].iter_mut().take_while(|interrupt| interrupt.ticks <= now) {
            if !std::mem::replace(&mut interrupt.is_taken, true) && interrupt.ticks >= since {
                is_one &= sender.is_none_or(|sender| sender == interrupt.sender);
                sender = Some(interrupt.sender);
            }
        }
        let is_lost = self.lost.0 <= now && now <= self.lost.1.saturating_add(self.under_way_ticks);
        let is_doubtful = now < self.doubt_until[at] || (is_lost && self.lost.1 > 0);
        if !is_one {
            self.doubt_until[at] = now.saturating_add(self.doubt_ticks);
        }
        sender.filter(|_| is_one && !is_doubtful).unwrap_or(SenderId::UNKNOWN)
    }

    /// States that arrivals before this moment were missed: what was sent until then is not waited for.
    pub(crate) fn forget_until(&mut self, now: u64) {
        for list in &mut self.lists {
            list.iter_mut().take_while(|sent| sent.ticks <= now).for_each(|sent| sent.is_taken = true);
        }
    }
}
