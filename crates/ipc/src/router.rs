//! From one publisher to exactly the subscribers that want a record.

use crate::{
    doorbell::Park,
    inbox::Inbox,
    index_ring::Pusher,
    interest::{Interest, SUBSCRIBERS_MAX},
    region::Region,
};

/// How a publisher reaches one subscriber.
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
    /// Of those, how many slept and were woken: one system call each.
    pub woken: u32,
    /// Subscribers whose ring was full. They find the gap by the sequence, and it is counted in their ring.
    pub refused: u32,
}

/// The subscribers of one publisher.
#[derive(Debug)]
pub struct Router<R> {
    interest: Interest<R>,
    links: Vec<Option<Link<R>>>,
}

impl<R: Region> Router<R> {
    /// A publisher that reaches nobody yet.
    pub fn new(interest: Interest<R>) -> Self {
        let links = (0..SUBSCRIBERS_MAX).map(|_| None).collect();
        Self { interest, links }
    }

    /// Connects a subscriber, in place of one of the same number; false when no subscriber can have that number.
    pub fn connect(&mut self, subscriber: u32, link: Link<R>) -> bool {
        self.set(subscriber, Some(link))
    }

    /// Forgets a subscriber.
    pub fn disconnect(&mut self, subscriber: u32) -> bool {
        self.set(subscriber, None)
    }

    fn set(&mut self, subscriber: u32, link: Option<Link<R>>) -> bool {
        let place = usize::try_from(subscriber).ok().and_then(|at| self.links.get_mut(at));
        place.map(|place| *place = link).is_some()
    }

    /// Gives the position of a published record to every subscriber that wants its instrument, and wakes those that
    /// sleep. All are given it before the first is woken, since a wake costs the publisher a system call, and who
    /// spins should not wait for it.
    #[inline]
    pub fn deliver(&mut self, instrument: u32, position: u64, park: &impl Park) -> Delivered {
        let mut delivered = Delivered::default();
        let links = &mut self.links;
        self.interest.each(instrument, |subscriber| {
            let Some(Some(link)) = usize::try_from(subscriber).ok().and_then(|at| links.get_mut(at)) else {
                return;
            };
            if link.ring.push(position) {
                delivered.subscribers += 1;
            } else {
                delivered.refused += 1;
            }
        });
        self.interest.each(instrument, |subscriber| {
            let Some(Some(link)) = usize::try_from(subscriber).ok().and_then(|at| links.get(at)) else {
                return;
            };
            delivered.woken += u32::from(link.inbox.notify(link.stream, park));
        });
        delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        doorbell::{Futex, Waited},
        inbox, index_ring, interest,
        region::Memfd,
        stream::{Owner, Reader, Segment, Stamp, Writer},
    };
    use std::{sync::Arc, thread, time::Duration};

    /// More than all that a test publishes, so that a thread that gets no CPU for long is not lapped.
    const CAPACITY: u64 = 1 << 18;
    const LONG: Duration = Duration::from_secs(30);

    fn memory(bytes: u64) -> Arc<Memfd> {
        Arc::new(Memfd::create("lowlat-test", bytes).unwrap())
    }

    /// What one subscriber holds: its inbox, its ring, and the stream.
    struct Subscriber {
        inbox: Inbox<Arc<Memfd>>,
        ring: index_ring::Taker<Arc<Memfd>>,
        reader: Reader<Arc<Memfd>>,
    }

    fn connect(router: &mut Router<Arc<Memfd>>, number: u32, segment: &Arc<Memfd>) -> Subscriber {
        let (inbox, ring) = (memory(inbox::BYTES), memory(index_ring::bytes(1024)));
        let link = Link {
            ring: index_ring::create(Arc::clone(&ring), 1024).unwrap(),
            inbox: Inbox::new(Arc::clone(&inbox)).unwrap(),
            stream: 0,
        };
        assert!(router.connect(number, link));
        Subscriber {
            inbox: Inbox::new(inbox).unwrap(),
            ring: index_ring::open(ring).unwrap(),
            reader: Reader::from_now(Segment::open(Arc::clone(segment)).unwrap()),
        }
    }

    type Shared = Arc<Memfd>;

    fn publisher(instruments: u32) -> (Shared, Writer<Shared>, Shared, Router<Shared>) {
        let segment = memory(Segment::<Memfd>::bytes(CAPACITY));
        let made = Segment::create(Arc::clone(&segment), CAPACITY, 1, 1, 0, Owner::default()).unwrap();
        let table = memory(interest::bytes(instruments));
        let router = Router::new(Interest::create(Arc::clone(&table), instruments).unwrap());
        (segment, Writer::new(made), table, router)
    }

    #[test]
    fn only_who_is_interested_is_given_a_record_or_woken() {
        let (segment, mut writer, table, mut router) = publisher(2);
        let (mut one, mut other) = (connect(&mut router, 0, &segment), connect(&mut router, 700, &segment));
        let table = Interest::open(table).unwrap();
        assert!(table.set(0, Some(0), true) && table.set(700, Some(1), true));
        let published = writer.publish(&Stamp { instrument: 1, ..Stamp::default() }, b"for 700").unwrap();
        let delivered = router.deliver(1, published.position, &Futex);
        assert_eq!(delivered, Delivered { subscribers: 1, woken: 0, refused: 0 }, "nobody slept");
        assert!(!one.inbox.is_ready() && one.ring.take().is_none());
        let mut streams = Vec::new();
        assert_eq!(other.inbox.take_ready(|stream| streams.push(stream)), 1);
        let mut payload = Vec::new();
        let record = other.reader.read_at(other.ring.take().unwrap(), &mut payload).unwrap();
        assert_eq!(
            (streams.as_slice(), record.stamp.instrument, payload.as_slice()),
            (&[0][..], 1, &b"for 700"[..])
        );
        // A subscriber that is gone costs nothing.
        table.forget(700);
        assert_eq!(router.deliver(1, published.position, &Futex), Delivered::default());
        assert!(router.disconnect(0) && !router.disconnect(SUBSCRIBERS_MAX));
    }

    /// Twelve sleeping subscribers of an instrument each: every record wakes the one it is for, and no other.
    #[test]
    fn a_parked_subscriber_is_woken_for_its_own_records_alone() {
        const SUBSCRIBERS: u32 = 12;
        const ROUNDS: u64 = 200;
        let (segment, mut writer, table, mut router) = publisher(SUBSCRIBERS);
        let table = Interest::open(table).unwrap();
        let subscribers: Vec<_> = (0..SUBSCRIBERS)
            .map(|number| {
                let mut subscriber = connect(&mut router, number, &segment);
                assert!(table.set(number, Some(number), true));
                thread::spawn(move || {
                    let (mut seen, mut payload) = (0, Vec::new());
                    while seen < ROUNDS {
                        assert_ne!(subscriber.inbox.wait(&Futex, LONG), Waited::TimedOut);
                        subscriber.inbox.take_ready(|_| ());
                        while let Some(position) = subscriber.ring.take() {
                            let record =
                                subscriber.reader.read_at(position, &mut payload).expect("not lapped");
                            assert_eq!((record.stamp.instrument, record.stamp.cause), (number, seen));
                            seen += 1;
                        }
                    }
                    subscriber.inbox.woken_and_missed()
                })
            })
            .collect();
        for round in 0..ROUNDS {
            for instrument in 0..SUBSCRIBERS {
                let stamp = Stamp { instrument, cause: round, ..Stamp::default() };
                let published = writer.publish(&stamp, b"").unwrap();
                let delivered = router.deliver(instrument, published.position, &Futex);
                assert_eq!((delivered.subscribers, delivered.refused), (1, 0));
            }
            // So that most of them sleep again.
            if round % 16 == 0 { thread::sleep(Duration::from_millis(5)) } else { thread::yield_now() }
        }
        for subscriber in subscribers {
            let (woken, missed) = subscriber.join().unwrap();
            assert!(woken <= ROUNDS, "at most one wake a record: {woken}");
            assert_eq!(missed, 0);
        }
    }
}
