//! From one publisher to exactly the subscribers that want a record.

mod overrun;
#[cfg(all(test, not(lowlat_shuttle)))]
mod tests;
mod wake_helper;

pub use overrun::Overrun;
pub use wake_helper::{HandOver, HelperMode, WakeHelper};

use crate::{
    atomics::{Ordering, fence},
    doorbell::{Claimed, EventFd, IN_EPOLL, PARKED, Park},
    inbox::Inbox,
    index_ring::Pusher,
    interest::{Interest, SUBSCRIBERS_MAX, Subscribers},
    region::Region,
    stream::{PublishError, Published, Stamp, Writer},
};
use overrun::Handed;
use std::sync::Arc;

/// Subscribers that one call of [`Router::warm`] looks at.
const WARMED_MAX: usize = 8;
/// Rings that were replaced and are not read to their end, for which there is room from the start.
const RETIRED_USUAL: usize = 8;

/// How a publisher reaches one subscriber that is told what it is too slow for ([`Overrun::Gap`]).
#[derive(Debug)]
pub struct Link<R> {
    /// Where positions go.
    pub ring: Pusher<R>,
    /// Its inbox.
    pub inbox: Inbox<R>,
    /// Which of the subscriber's streams this one is.
    pub stream: u32,
}

/// What became of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivered {
    /// Subscribers that were given its position.
    pub subscribers: u32,
    /// Of those, at how many it took the place of a position that was not taken.
    pub conflated: u32,
    /// How many slept and were woken: one system call each.
    pub woken: u32,
    /// Of those, how many calls were left to the wake helper.
    pub handed_over: u32,
    /// Subscribers that had no room, or whose table does not have the instrument. They are told, and it is counted there.
    pub refused: u32,
    /// Subscribers that were too far behind and were given up.
    pub evicted: u32,
}

#[derive(Debug)]
struct Connected<R> {
    overrun: Overrun<R>,
    door: Arc<Door<R>>,
    stream: u32,
}

/// Where a subscriber is told that something came.
#[derive(Debug)]
struct Door<R> {
    inbox: Inbox<R>,
    /// The way to wake it in an epoll loop.
    event: Option<EventFd>,
}

impl<R: Region> Door<R> {
    #[inline]
    fn claim(&self) -> Option<Claimed> {
        self.inbox.claim(self.event.is_some())
    }

    fn wake_claimed(&self, claimed: Claimed, park: &impl Park) {
        self.inbox.wake_claimed(claimed, park, self.event.as_ref());
    }
}

/// The subscribers of one publisher.
#[derive(Debug)]
pub struct Router<R> {
    interest: Interest<R>,
    links: Vec<Option<Connected<R>>>,
    /// Those that are given records.
    connected: Subscribers,
    /// How many words of a set hold them.
    words: usize,
    /// Those of them that may lose nothing.
    credit: Subscribers,
    /// Rings of such subscribers that others have taken the place of. A subscriber that starts again reads them first, so what
    /// waits in them may be written over no more than what waits in its present one.
    retired: Vec<(u32, Pusher<R>)>,
    /// Whether there are any of either.
    has_credit: bool,
    evicted: Subscribers,
    /// Up to which claim nothing is written over that a subscriber of `credit` still has to read.
    claim_max: u64,
    /// The instrument that was looked at last by [`Router::warm`].
    warmed: u32,
    helper: Option<WakeHelper<R>>,
}

impl<R: Region> Router<R> {
    /// A publisher that reaches nobody yet.
    pub fn new(interest: Interest<R>) -> Self {
        let links = (0..SUBSCRIBERS_MAX).map(|_| None).collect();
        let nobody = Subscribers::default();
        Self {
            interest,
            links,
            connected: nobody,
            words: 0,
            credit: nobody,
            retired: Vec::with_capacity(RETIRED_USUAL),
            has_credit: false,
            evicted: nobody,
            claim_max: 0,
            warmed: 0,
            helper: None,
        }
    }

    /// Connects a subscriber with a ring and [`Overrun::Gap`], in place of one of the same number; false when no
    /// subscriber can have that number.
    pub fn connect(&mut self, subscriber: u32, link: Link<R>) -> bool {
        self.connect_as(subscriber, Overrun::Gap(link.ring), link.inbox, link.stream)
    }

    /// Connects a subscriber, in place of one of the same number; this publisher's is its stream number `stream`. False
    /// when no subscriber can have that number.
    pub fn connect_as(&mut self, subscriber: u32, overrun: Overrun<R>, inbox: Inbox<R>, stream: u32) -> bool {
        self.add(subscriber, overrun, Door { inbox, event: None }, stream)
    }

    /// [`Router::connect_as`] for a subscriber that may sleep in an epoll loop ([`Inbox::arm`]), with its event descriptor.
    pub fn connect_in_epoll(
        &mut self,
        subscriber: u32,
        overrun: Overrun<R>,
        inbox: Inbox<R>,
        stream: u32,
        event: EventFd,
    ) -> bool {
        self.add(subscriber, overrun, Door { inbox, event: Some(event) }, stream)
    }

    fn add(&mut self, subscriber: u32, overrun: Overrun<R>, door: Door<R>, stream: u32) -> bool {
        let may_lose_nothing = matches!(overrun, Overrun::Credit(_));
        // Here, and not when a record finds them so: giving memory back takes system calls.
        self.retired.retain_mut(|(_, ring)| ring.oldest().is_some());
        if may_lose_nothing
            && let Some(Connected { overrun: Overrun::Credit(mut ring), .. }) = self.take(subscriber)
            && ring.oldest().is_some()
        {
            self.retired.push((subscriber, ring));
        }
        let is_set = self.set(subscriber, Some(Connected { overrun, door: Arc::new(door), stream }));
        self.connected.set(subscriber, is_set);
        self.words = self.connected.words();
        self.credit.set(subscriber, is_set && may_lose_nothing);
        self.look_for_credit();
        is_set
    }

    fn take(&mut self, subscriber: u32) -> Option<Connected<R>> {
        usize::try_from(subscriber).ok().and_then(|at| self.links.get_mut(at)).and_then(Option::take)
    }

    fn look_for_credit(&mut self) {
        self.has_credit = !self.credit.is_empty() || !self.retired.is_empty();
    }

    /// Has another thread make the wakes, where one record wakes many; none: no more.
    pub fn set_wake_helper(&mut self, helper: Option<WakeHelper<R>>) {
        self.helper = helper;
        let Some(helper) = &self.helper else { return };
        for (subscriber, link) in (0..).zip(&self.links) {
            helper.set(subscriber, link.as_ref().map(|link| &link.door));
        }
    }

    /// Gives the wake helper up without ending its thread: for a forked process, which does not have that thread.
    pub fn forget_wake_helper(&mut self) {
        std::mem::forget(self.helper.take());
    }

    /// Forgets a subscriber.
    pub fn disconnect(&mut self, subscriber: u32) -> bool {
        self.connected.set(subscriber, false);
        self.credit.set(subscriber, false);
        self.retired.retain(|(of, _)| *of != subscriber);
        self.look_for_credit();
        self.set(subscriber, None)
    }

    fn set(&mut self, subscriber: u32, link: Option<Connected<R>>) -> bool {
        self.evicted.set(subscriber, false);
        // What it has to read is looked up with the next record.
        self.claim_max = 0;
        if let Some(helper) = &self.helper {
            helper.set(subscriber, link.as_ref().map(|link| &link.door));
        }
        let place = usize::try_from(subscriber).ok().and_then(|at| self.links.get_mut(at));
        place.map(|place| *place = link).is_some()
    }

    /// Subscribers that were too far behind and were given up. They are given nothing, and keep their memory until they
    /// are disconnected or connected anew, since giving memory back takes system calls.
    pub fn evicted(&self) -> Subscribers {
        self.evicted
    }

    /// Appends a record and delivers it, if every subscriber that may lose nothing has room for it; else the stream is
    /// as before.
    #[inline]
    pub fn publish<W: Region>(
        &mut self,
        writer: &mut Writer<W>,
        stamp: &Stamp,
        payload: &[u8],
        park: &impl Park,
    ) -> Result<(Published, Delivered), PublishError> {
        let wanting = self.interest.wanting_of(stamp.instrument, &self.connected, self.words);
        if self.has_credit {
            let bytes = u64::try_from(payload.len()).unwrap_or(u64::MAX);
            if bytes > writer.payload_bytes_max() {
                return Err(PublishError::TooLong { bytes, bytes_max: writer.payload_bytes_max() });
            }
            self.check_credit(&wanting, writer.claim_with(bytes), writer.segment().capacity_bytes())?;
        }
        let published = writer.publish_only(stamp, payload)?;
        let delivered = self.hand_out(&wanting, stamp.instrument, published.position, park);
        writer.prepare();
        Ok((published, delivered))
    }

    /// Looks at what the next record of some instrument needs, for a publisher that has nothing to do, so that it is at hand.
    /// It changes nothing; each call is for the next instrument.
    pub fn warm(&mut self) {
        self.warmed = self.warmed.wrapping_add(1) % self.interest.instruments().max(1);
        let wanting = self.interest.wanting_of(self.warmed, &self.connected, self.words);
        for subscriber in wanting.iter().take(WARMED_MAX) {
            if let Some(link) = link(&mut self.links, subscriber) {
                link.overrun.warm();
                // The line that is looked at for a sleeper, and that of its bits.
                std::hint::black_box((link.door.inbox.state(), link.door.inbox.is_ready()));
            }
        }
    }

    fn check_credit(
        &mut self,
        wanting: &Subscribers,
        claim: u64,
        capacity_bytes: u64,
    ) -> Result<(), PublishError> {
        for subscriber in wanting.and(&self.credit).iter() {
            if let Some(ring) = credit(&mut self.links, subscriber)
                && !ring.has_room()
            {
                return Err(PublishError::NoCredit { subscriber });
            }
        }
        if claim <= self.claim_max {
            return Ok(());
        }
        // What is given to them from here on stands behind the claim, less one step of it and the record itself; half
        // the ring is far less than what is left then.
        let mut claim_max = claim + capacity_bytes / 2;
        let (links, retired) = (&mut self.links, &mut self.retired);
        let active = self
            .credit
            .iter()
            .map(|subscriber| (subscriber, credit(links, subscriber).and_then(Pusher::oldest)));
        let replaced = retired.iter_mut().map(|(subscriber, ring)| (*subscriber, ring.oldest()));
        for (subscriber, oldest) in active.chain(replaced) {
            let Some(oldest) = oldest else { continue };
            let end = oldest.saturating_add(capacity_bytes);
            if claim > end {
                return Err(PublishError::NoCredit { subscriber });
            }
            claim_max = claim_max.min(end);
        }
        self.claim_max = claim_max;
        Ok(())
    }

    /// Gives the position of a published record to every subscriber that wants its instrument, and wakes those that
    /// sleep. A publisher with subscribers that may lose nothing takes [`Router::publish`], which asks before it appends.
    #[inline]
    pub fn deliver(&mut self, instrument: u32, position: u64, park: &impl Park) -> Delivered {
        let wanting = self.interest.wanting_of(instrument, &self.connected, self.words);
        self.hand_out(&wanting, instrument, position, park)
    }

    /// All are given the position before the first is woken, since a wake costs the publisher a system call, and who
    /// spins should not wait for it.
    #[inline]
    fn hand_out(
        &mut self,
        wanting: &Subscribers,
        instrument: u32,
        position: u64,
        park: &impl Park,
    ) -> Delivered {
        let mut delivered = Delivered::default();
        wanting.each_below(self.words, |subscriber| {
            let Some(link) = link(&mut self.links, subscriber) else { return };
            match link.overrun.hand(instrument, position) {
                Handed::Given => delivered.subscribers += 1,
                Handed::Conflated => {
                    delivered.subscribers += 1;
                    delivered.conflated += 1;
                }
                Handed::Refused => delivered.refused += 1,
                Handed::Evicted => {
                    delivered.evicted += 1;
                    self.connected.set(subscriber, false);
                    self.evicted.set(subscriber, true);
                }
            }
        });
        // One for all of them. Pairs with the fence in `Inbox::take_ready_but`, and, where no bit is to be set, with that in
        // `Bell::wait`: a bit that is set keeps its subscriber from sleeping.
        fence(Ordering::SeqCst);
        let mut has_marked = false;
        wanting.each_below(self.words, |subscriber| {
            if let Some(link) = link(&mut self.links, subscriber) {
                has_marked |= link.door.inbox.mark_behind_fence(link.stream);
            }
        });
        if has_marked {
            // Pairs with the fence in `Bell::wait`.
            fence(Ordering::SeqCst);
        }
        let mut helper = self.helper.as_mut().filter(|helper| {
            let sleeping = wanting.iter().filter(|subscriber| is_asleep(&self.links, *subscriber));
            let most = usize::try_from(helper.parked_max).unwrap_or(usize::MAX);
            sleeping.take(most.saturating_add(1)).count() > most
        });
        wanting.each_below(self.words, |subscriber| {
            let Some(link) = link(&mut self.links, subscriber) else { return };
            let Some(claimed) = link.door.claim() else { return };
            delivered.woken += 1;
            if helper.as_mut().is_some_and(|helper| helper.hand(subscriber, claimed)) {
                delivered.handed_over += 1;
            } else {
                link.door.wake_claimed(claimed, park);
            }
        });
        if let Some(helper) = helper.filter(|_| delivered.handed_over > 0) {
            helper.ring();
        }
        delivered
    }
}

fn is_asleep<R: Region>(links: &[Option<Connected<R>>], subscriber: u32) -> bool {
    let link = usize::try_from(subscriber).ok().and_then(|at| links.get(at)).and_then(Option::as_ref);
    link.is_some_and(|link| matches!(link.door.inbox.state(), PARKED | IN_EPOLL))
}

fn link<R>(links: &mut [Option<Connected<R>>], subscriber: u32) -> Option<&mut Connected<R>> {
    usize::try_from(subscriber).ok().and_then(|at| links.get_mut(at)).and_then(Option::as_mut)
}

fn credit<R: Region>(links: &mut [Option<Connected<R>>], subscriber: u32) -> Option<&mut Pusher<R>> {
    link(links, subscriber).and_then(|link| link.overrun.credit())
}
