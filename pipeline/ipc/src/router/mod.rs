//! Delivers records of one publisher to exactly the interested subscribers.

mod overrun;
#[cfg(all(test, not(lowlat_shuttle)))]
mod tests;
mod wake_helper;

pub use overrun::Delivery;
pub use wake_helper::{HelperMode, WakeHelper};

use crate::{
    atomics::{Ordering, fence},
    doorbell::{PARKED, Park},
    inbox::Inbox,
    index_ring::Pusher,
    interest::{Interest, SUBSCRIBERS_MAX, Subscribers},
    region::Region,
    stream::{PublishError, Published, Stamp, Writer},
};
use overrun::Handed;
use std::sync::Arc;

/// Number of subscribers inspected per call of [`Router::warm`].
const WARMED_MAX: usize = 8;
/// Preallocated room for replaced rings that are not yet read to the end.
const RETIRED_USUAL: usize = 8;

/// Result of delivering one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DeliveryCounts {
    /// Subscribers that got its position.
    pub subscribers: u32,
    /// Of those, subscribers where it replaced a position that was not taken.
    pub conflated: u32,
    /// Sleeping subscribers that were woken, each with one system call.
    pub woken: u32,
    /// Of those, calls handed to the wake helper.
    pub handed_over: u32,
    /// Subscribers without room, or whose table lacks the instrument. They are notified, and count it
    /// themselves.
    pub refused: u32,
    /// Subscribers evicted for being too far behind.
    pub evicted: u32,
}

#[derive(Debug)]
struct Connected<R> {
    overrun: Delivery<R>,
    inbox: Arc<Inbox<R>>,
    stream: u32,
}

/// The subscribers of one publisher.
#[derive(Debug)]
pub struct Router<R> {
    interest: Interest<R>,
    links: Vec<Option<Connected<R>>>,
    /// Subscribers that get the records.
    connected: Subscribers,
    /// Number of words of a set that cover them.
    words: usize,
    /// Those of them that must not lose records.
    credit: Subscribers,
    /// Replaced rings of such subscribers. A restarted subscriber reads them first, so their pending records
    /// must not be overwritten either.
    retired: Vec<(u32, Pusher<R>)>,
    /// True if `credit` or `retired` is not empty.
    has_credit: bool,
    evicted: Subscribers,
    /// Subscribers of records that were published without a wake, until the next record wakes them.
    unwoken: Subscribers,
    /// True if `unwoken` is not empty.
    has_unwoken: bool,
    /// Claims up to this position overwrite nothing that a subscriber of `credit` still has to read.
    claim_max: u64,
    /// Instrument inspected by the last call of [`Router::warm`].
    warmed: u32,
    helper: Option<WakeHelper<R>>,
}

impl<R: Region> Router<R> {
    pub fn new(interest: Interest<R>) -> Self {
        let nobody = Subscribers::default();
        Self {
            interest,
            links: Vec::new(),
            connected: nobody,
            words: 0,
            credit: nobody,
            retired: Vec::with_capacity(RETIRED_USUAL),
            has_credit: false,
            evicted: nobody,
            unwoken: nobody,
            has_unwoken: false,
            claim_max: 0,
            warmed: 0,
            helper: None,
        }
    }

    /// Connects a subscriber, replacing one with the same number. `stream` is the number of this publisher's
    /// stream among the subscriber's. Returns false if no subscriber can have that number.
    pub fn connect(&mut self, subscriber: u32, overrun: Delivery<R>, inbox: Inbox<R>, stream: u32) -> bool {
        let may_lose_nothing = matches!(overrun, Delivery::Credit(_));
        // Here, not while publishing: freeing memory takes system calls.
        self.retired.retain_mut(|(_, ring)| ring.oldest().is_some());
        if may_lose_nothing
            && let Some(Connected { overrun: Delivery::Credit(mut ring), .. }) = self.take(subscriber)
            && ring.oldest().is_some()
        {
            self.retired.push((subscriber, ring));
        }
        let is_set = self.set(subscriber, Some(Connected { overrun, inbox: Arc::new(inbox), stream }));
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

    /// Lets another thread make the wakes if one record wakes many; `None` stops that.
    pub fn set_wake_helper(&mut self, helper: Option<WakeHelper<R>>) {
        self.helper = helper;
        let Some(helper) = &self.helper else { return };
        for (subscriber, link) in (0..).zip(&self.links) {
            helper.set(subscriber, link.as_ref().map(|link| &link.inbox));
        }
    }

    /// Drops the wake helper without ending its thread: a forked process does not have that thread.
    pub fn forget_wake_helper(&mut self) {
        std::mem::forget(self.helper.take());
    }

    /// Disconnects a subscriber. Returns false if its number is invalid.
    pub fn disconnect(&mut self, subscriber: u32) -> bool {
        self.connected.set(subscriber, false);
        self.credit.set(subscriber, false);
        self.retired.retain(|(of, _)| *of != subscriber);
        self.look_for_credit();
        self.set(subscriber, None)
    }

    fn set(&mut self, subscriber: u32, link: Option<Connected<R>>) -> bool {
        self.evicted.set(subscriber, false);
        self.unwoken.set(subscriber, false);
        // Its unread records are determined again at the next record.
        self.claim_max = 0;
        if let Some(helper) = &self.helper {
            helper.set(subscriber, link.as_ref().map(|link| &link.inbox));
        }
        let Some(at) = usize::try_from(subscriber).ok().filter(|_| subscriber < SUBSCRIBERS_MAX) else {
            return false;
        };
        if at >= self.links.len() {
            self.links.resize_with(at + 1, || None);
        }
        self.links[at] = link;
        true
    }

    /// Number of instruments that a subscriber may ask for.
    #[inline]
    pub fn instruments(&self) -> u32 {
        self.interest.instruments()
    }

    /// Subscribers evicted for being too far behind. They get no records, and keep their memory until they are
    /// disconnected or reconnected, because freeing memory takes system calls.
    pub fn evicted(&self) -> Subscribers {
        self.evicted
    }

    /// Appends a record and delivers it if every subscriber that must not lose records has room; otherwise the
    /// stream is unchanged.
    #[inline]
    pub fn publish<W: Region>(
        &mut self,
        writer: &mut Writer<W>,
        stamp: &Stamp,
        payload: &[u8],
        park: &impl Park,
    ) -> Result<(Published, DeliveryCounts), PublishError> {
        self.publish_waking(writer, stamp, payload, Some(park))
    }

    /// Like [`Router::publish`]. Without `park` it wakes nobody: the next record, which should follow at once, wakes the
    /// subscribers of both, so that several records to one subscriber take one system call.
    #[inline]
    pub fn publish_waking<W: Region>(
        &mut self,
        writer: &mut Writer<W>,
        stamp: &Stamp,
        payload: &[u8],
        park: Option<&impl Park>,
    ) -> Result<(Published, DeliveryCounts), PublishError> {
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

    /// Touches what the next record of some instrument needs, while the publisher is idle, to keep it in the
    /// cache. It changes nothing; each call covers the next instrument.
    pub fn warm(&mut self) {
        self.warmed = self.warmed.wrapping_add(1) % self.interest.instruments().max(1);
        let wanting = self.interest.wanting_of(self.warmed, &self.connected, self.words);
        for subscriber in wanting.iter().take(WARMED_MAX) {
            if let Some(link) = link(&mut self.links, subscriber) {
                link.overrun.warm();
                // The line with the subscriber's state, and that of its bits.
                std::hint::black_box((link.inbox.state(), link.inbox.is_ready()));
            }
        }
    }

    fn check_credit(
        &mut self,
        wanting: &Subscribers,
        claim: u64,
        capacity_bytes: u64,
    ) -> Result<(), PublishError> {
        let links = &mut self.links;
        let is_full = |subscriber| credit(links, subscriber).is_some_and(|ring| !ring.has_room());
        if let Some(subscriber) = wanting.find_below(self.words, is_full) {
            return Err(PublishError::NoCredit { subscriber });
        }
        if claim <= self.claim_max {
            return Ok(());
        }
        // Positions given from here on lie beyond the claim, less one claim step and the record itself; half
        // the ring is far less than what remains.
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

    /// Gives the position of a published record to every subscriber that wants its instrument, and wakes those
    /// that sleep. With subscribers that must not lose records, use [`Router::publish`], which checks their
    /// room before it appends.
    #[inline]
    pub fn deliver(&mut self, instrument: u32, position: u64, park: &impl Park) -> DeliveryCounts {
        let wanting = self.interest.wanting_of(instrument, &self.connected, self.words);
        self.hand_out(&wanting, instrument, position, Some(park))
    }

    /// Every subscriber gets the position before the first is woken: a wake costs the publisher a system call,
    /// and spinning subscribers should not wait for it.
    #[inline]
    fn hand_out(
        &mut self,
        wanting: &Subscribers,
        instrument: u32,
        position: u64,
        park: Option<&impl Park>,
    ) -> DeliveryCounts {
        let mut delivered = DeliveryCounts::default();
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
        // One fence for all of them. Pairs with the fence in `Inbox::take_ready_but` and, if no bit has to be
        // set, with that in `Bell::wait`: a set bit keeps its subscriber from sleeping.
        fence(Ordering::SeqCst);
        let mut has_marked = false;
        wanting.each_below(self.words, |subscriber| {
            if let Some(link) = link(&mut self.links, subscriber) {
                has_marked |= link.inbox.mark_behind_fence(link.stream);
            }
        });
        if has_marked {
            // Pairs with the fence in `Bell::wait`.
            fence(Ordering::SeqCst);
        }
        let Some(park) = park else {
            self.unwoken.add(wanting);
            self.has_unwoken = true;
            return delivered;
        };
        let with_unwoken;
        let due = if std::mem::take(&mut self.has_unwoken) {
            self.unwoken.add(wanting);
            with_unwoken = std::mem::take(&mut self.unwoken);
            &with_unwoken
        } else {
            wanting
        };
        if self.helper.is_some() {
            self.wake_by_helper(due, park, &mut delivered);
            return delivered;
        }
        wake(&self.links, self.words, due, park, &mut delivered, |_| false);
        delivered
    }

    /// Wakes subscribers, with the helper if they are many.
    #[inline(never)]
    fn wake_by_helper(&mut self, due: &Subscribers, park: &impl Park, delivered: &mut DeliveryCounts) {
        let mut helper = self.helper.as_mut().filter(|helper| {
            let sleeping = due.iter().filter(|subscriber| is_asleep(&self.links, *subscriber));
            let most = usize::try_from(helper.parked_max).unwrap_or(usize::MAX);
            sleeping.take(most.saturating_add(1)).count() > most
        });
        wake(&self.links, self.words, due, park, delivered, |subscriber| {
            helper.as_mut().is_some_and(|helper| helper.hand(subscriber))
        });
        if let Some(helper) = helper.filter(|_| delivered.handed_over > 0) {
            helper.ring();
        }
    }
}

/// Wakes those of the subscribers that sleep, except for wakes that `hand` takes.
#[inline]
fn wake<R: Region>(
    links: &[Option<Connected<R>>],
    words: usize,
    due: &Subscribers,
    park: &impl Park,
    delivered: &mut DeliveryCounts,
    mut hand: impl FnMut(u32) -> bool,
) {
    due.each_below(words, |subscriber| {
        let link = usize::try_from(subscriber).ok().and_then(|at| links.get(at)).and_then(Option::as_ref);
        let Some(link) = link.filter(|link| link.inbox.claim()) else { return };
        delivered.woken += 1;
        if hand(subscriber) {
            delivered.handed_over += 1;
        } else {
            link.inbox.wake_claimed(park);
        }
    });
}

fn is_asleep<R: Region>(links: &[Option<Connected<R>>], subscriber: u32) -> bool {
    let link = usize::try_from(subscriber).ok().and_then(|at| links.get(at)).and_then(Option::as_ref);
    link.is_some_and(|link| link.inbox.state() == PARKED)
}

fn link<R>(links: &mut [Option<Connected<R>>], subscriber: u32) -> Option<&mut Connected<R>> {
    usize::try_from(subscriber).ok().and_then(|at| links.get_mut(at)).and_then(Option::as_mut)
}

fn credit<R: Region>(links: &mut [Option<Connected<R>>], subscriber: u32) -> Option<&mut Pusher<R>> {
    link(links, subscriber).and_then(|link| link.overrun.credit())
}
