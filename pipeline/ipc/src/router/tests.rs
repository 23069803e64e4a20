//! Selection of the subscribers that get a record, and of those that are woken.

use super::*;
use crate::{
    atomics::AtomicU32,
    doorbell::{Futex, Waited},
    inbox, index_ring,
    index_ring::Taken,
    interest, latest, layout,
    stream::{Owner, Reader, Segment, Stamp, Writer},
};
// Miri does not support memfd.
#[cfg(miri)]
use crate::region::Heap as Memory;
#[cfg(not(miri))]
use crate::region::Memfd as Memory;
use std::{sync::Arc, thread, time::Duration};

/// More than any test publishes, so that a thread that is delayed for long is not lapped.
const CAPACITY: u64 = 1 << 18;
const LONG: Duration = Duration::from_secs(30);

fn memory(bytes: u64) -> Arc<Memory> {
    #[cfg(miri)]
    return Arc::new(Memory::zeroed(bytes));
    #[cfg(not(miri))]
    Arc::new(Memory::create("lowlat-test", bytes).unwrap())
}

/// A subscriber's inbox, ring and stream.
struct Subscriber {
    inbox: Inbox<Arc<Memory>>,
    ring: index_ring::Taker<Arc<Memory>>,
    reader: Reader<Arc<Memory>>,
}

fn connect(router: &mut Router<Arc<Memory>>, number: u32, segment: &Arc<Memory>) -> Subscriber {
    let (inbox, ring) = (memory(inbox::BYTES), memory(index_ring::bytes(1024)));
    let pusher = index_ring::create(Arc::clone(&ring), 1024).unwrap();
    let woken = Inbox::new(Arc::clone(&inbox)).unwrap();
    assert!(router.connect(number, Delivery::Gap(pusher), woken, 0));
    Subscriber {
        inbox: Inbox::new(inbox).unwrap(),
        ring: index_ring::open(ring).unwrap(),
        reader: Reader::from_now(Segment::open(Arc::clone(segment)).unwrap()),
    }
}

type Shared = Arc<Memory>;

fn publisher(instruments: u32) -> (Shared, Writer<Shared>, Shared, Router<Shared>) {
    let segment = memory(Segment::<Memory>::bytes(CAPACITY));
    let made = Segment::create(Arc::clone(&segment), CAPACITY, 1, 1, 0, Owner::default()).unwrap();
    let table = memory(interest::bytes(instruments));
    let router = Router::new(Interest::create(Arc::clone(&table), instruments).unwrap());
    (segment, Writer::new(made), table, router)
}

#[test]
fn only_interested_subscribers_get_a_record_or_a_wake() {
    let (segment, mut writer, table, mut router) = publisher(2);
    let (mut one, mut other) = (connect(&mut router, 0, &segment), connect(&mut router, 700, &segment));
    let table = Interest::open(table).unwrap();
    assert!(table.set(0, Some(0), true) && table.set(700, Some(1), true));
    let published = writer.publish(&Stamp { instrument: 1, ..Stamp::default() }, b"for 700").unwrap();
    let delivered = router.deliver(1, published.position, &Futex);
    assert_eq!(
        delivered,
        DeliveryCounts { subscribers: 1, ..DeliveryCounts::default() },
        "no subscriber slept"
    );
    assert!(!one.inbox.is_ready() && one.ring.take().is_none());
    let mut streams = Vec::new();
    assert_eq!(other.inbox.take_ready(|stream| streams.push(stream)), 1);
    let mut payload = Vec::new();
    let record = other.reader.read_at(other.ring.take().unwrap(), &mut payload).unwrap();
    assert_eq!(
        (streams.as_slice(), record.stamp.instrument, payload.as_slice()),
        (&[0][..], 1, &b"for 700"[..])
    );
    // A disconnected subscriber costs nothing.
    table.forget(700);
    assert_eq!(router.deliver(1, published.position, &Futex), DeliveryCounts::default());
    assert!(router.disconnect(0) && !router.disconnect(SUBSCRIBERS_MAX));
}

/// Twelve sleeping subscribers with one instrument each: every record wakes only its subscriber.
#[test]
fn a_parked_subscriber_is_woken_only_for_its_own_records() {
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
                        let record = subscriber.reader.read_at(position, &mut payload).expect("not lapped");
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
        // So that most of them fall asleep again.
        if round % 16 == 0 { thread::sleep(Duration::from_millis(5)) } else { thread::yield_now() }
    }
    for subscriber in subscribers {
        let (woken, missed) = subscriber.join().unwrap();
        assert!(woken <= ROUNDS, "at most one wake per record: {woken}");
        assert_eq!(missed, 0);
    }
}

#[test]
fn records_without_a_wake_are_woken_for_with_the_next_record() {
    /// Counts wakes, of a sleeper that is only marked as one.
    #[derive(Default)]
    struct Counting(AtomicU32);
    impl Park for Counting {
        fn sleep(&self, _word: &AtomicU32, _value: u32, _longest: Duration) {}
        fn wake(&self, _word: &AtomicU32) {
            // Relaxed: of one thread.
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (segment, mut writer, table, mut router) = publisher(3);
    let table = Interest::open(table).unwrap();
    let subscribers = [0, 1, 700].map(|number| connect(&mut router, number, &segment));
    for (instrument, number) in [(0, 0), (0, 1), (1, 1), (2, 700)] {
        assert!(table.set(number, Some(instrument), true));
    }
    let park = Counting::default();
    // What a subscriber stores before it sleeps.
    let sleep = |subscriber: &Subscriber| subscriber.inbox.set_parked();
    subscribers.iter().for_each(sleep);
    let mut publish = |instrument, wakes: bool| {
        let stamp = Stamp { instrument, ..Stamp::default() };
        let park = wakes.then_some(&park);
        router.publish_waking(&mut writer, &stamp, b"", park).unwrap().1.woken
    };
    assert_eq!(publish(0, false), 0);
    assert!(subscribers[0].inbox.is_ready(), "one that runs sees the record");
    assert_eq!(publish(1, false), 0);
    assert_eq!(publish(2, true), 3, "subscribers 0 and 1 of the records before, and 700");
    assert_eq!(park.0.load(Ordering::Relaxed), 3);
    subscribers.iter().for_each(sleep);
    assert_eq!(publish(2, true), 1, "nobody is left over");
    assert_eq!(publish(0, false), 0);
    assert!(router.disconnect(0));
    let published = writer.publish(&Stamp::default(), b"").unwrap();
    assert_eq!(router.deliver(2, published.position, &park).woken, 1, "1; 700 runs, and 0 has gone");
}

/// A subscriber with the policy that `overrun` builds from its memory, and the other end of that memory.
fn connect_as(
    router: &mut Router<Shared>,
    number: u32,
    table: &Interest<Shared>,
    entries: u64,
    overrun: impl FnOnce(Pusher<Shared>) -> Delivery<Shared>,
) -> (Inbox<Shared>, index_ring::Taker<Shared>) {
    let (inbox, ring) = (memory(inbox::BYTES), memory(index_ring::bytes(entries)));
    let pusher = index_ring::create(Arc::clone(&ring), entries).unwrap();
    assert!(router.connect(number, overrun(pusher), Inbox::new(Arc::clone(&inbox)).unwrap(), 0));
    assert!(table.set(number, None, true));
    (Inbox::new(inbox).unwrap(), index_ring::open(ring).unwrap())
}

#[test]
fn each_policy_applies_at_its_limit() {
    let (_, mut writer, table, mut router) = publisher(2);
    let table = Interest::open(table).unwrap();
    let (inbox, mut gap) = connect_as(&mut router, 1, &table, 4, Delivery::Gap);
    let (_, mut evict) =
        connect_as(&mut router, 2, &table, 8, |ring| Delivery::Evict { ring, behind_max: 5 });
    let latest = memory(latest::bytes(2));
    let putter = latest::create(Arc::clone(&latest), 2).unwrap();
    assert!(router.connect(3, Delivery::Conflate(putter), Inbox::new(memory(inbox::BYTES)).unwrap(), 0));
    assert!(table.set(3, None, true));
    let mut positions = Vec::new();
    let mut sum = DeliveryCounts::default();
    for number in 0..10 {
        let stamp = Stamp { instrument: number % 2, ..Stamp::default() };
        let (published, delivered) = router.publish(&mut writer, &stamp, b"", &Futex).unwrap();
        positions.push(published.position);
        sum.subscribers += delivered.subscribers;
        sum.conflated += delivered.conflated;
        sum.refused += delivered.refused;
        sum.evicted += delivered.evicted;
    }
    assert_eq!(
        sum,
        DeliveryCounts {
            subscribers: 4 + 6 + 10,
            conflated: 8,
            refused: 6,
            evicted: 1,
            ..DeliveryCounts::default()
        }
    );
    assert!(inbox.is_ready());
    assert_eq!((0..4).map_while(|_| gap.take()).collect::<Vec<_>>(), positions[..4]);
    let lost = index_ring::RingGap { count: 6, first: positions[4], last: positions[9] };
    assert_eq!(gap.next(), Some(Taken::Gap(lost)));
    assert_eq!((0..6).map_while(|_| evict.take()).collect::<Vec<_>>(), positions[..6]);
    assert_eq!(evict.next(), Some(Taken::Evicted { first: positions[6] }));
    assert_eq!(router.evicted().iter().collect::<Vec<_>>(), [2]);
    let mut latest = latest::open(latest).unwrap();
    assert_eq!((latest.take(), latest.take(), latest.take()), (Some(positions[8]), Some(positions[9]), None));
    // A subscriber that reconnects gets what is published from then on.
    let (_, mut evict) =
        connect_as(&mut router, 2, &table, 8, |ring| Delivery::Evict { ring, behind_max: 5 });
    let (published, _) = router.publish(&mut writer, &Stamp::default(), b"", &Futex).unwrap();
    assert_eq!((evict.take(), router.evicted().is_empty()), (Some(published.position), true));
}

#[test]
fn without_credit_nothing_is_appended() {
    let (segment, mut writer, table, mut router) = publisher(2);
    let table = Interest::open(table).unwrap();
    let (_, mut ring) = connect_as(&mut router, 9, &table, 2, Delivery::Credit);
    let publish = |router: &mut Router<Shared>, writer: &mut Writer<Shared>| {
        router.publish(writer, &Stamp::default(), b"order", &Futex)
    };
    assert!(publish(&mut router, &mut writer).is_ok() && publish(&mut router, &mut writer).is_ok());
    assert_eq!(publish(&mut router, &mut writer), Err(PublishError::NoCredit { subscriber: 9 }));
    assert_eq!(writer.next_sequence(), 2);
    assert!(matches!(ring.hold(), Some(Taken::Entry(_))));
    assert!(publish(&mut router, &mut writer).is_err(), "it has not released its records");
    ring.release();
    assert!(publish(&mut router, &mut writer).is_ok());
    drop(segment);
    // A disconnected subscriber blocks nothing.
    assert!(publish(&mut router, &mut writer).is_err());
    router.disconnect(9);
    assert!(publish(&mut router, &mut writer).is_ok());
}

/// A restarted subscriber has a new ring, and first reads the records pending in its old rings.
#[test]
fn a_new_ring_gives_no_credit_for_records_pending_in_old_ones() {
    let capacity_bytes = layout::CAPACITY_BYTES_MIN;
    let segment = memory(Segment::<Memory>::bytes(capacity_bytes));
    let made = Segment::create(Arc::clone(&segment), capacity_bytes, 1, 1, 0, Owner::default()).unwrap();
    let mut writer = Writer::new(made);
    let table = memory(interest::bytes(1));
    let mut router = Router::new(Interest::create(Arc::clone(&table), 1).unwrap());
    let table = Interest::open(table).unwrap();
    let refused = Err(PublishError::NoCredit { subscriber: 9 });
    let mut publish = |router: &mut Router<Shared>| -> Result<u64, PublishError> {
        Ok(router.publish(&mut writer, &Stamp::default(), b"order", &Futex)?.0.position)
    };
    let mut fill = |router: &mut Router<Shared>| -> Vec<u64> {
        let positions = std::iter::from_fn(|| publish(router).ok()).collect();
        assert_eq!(publish(router), refused);
        positions
    };
    let reader = Reader::from_start(Segment::open(segment).unwrap());
    let read = |ring: &mut index_ring::Taker<Shared>, expected: &[u64]| {
        for position in expected {
            assert_eq!(ring.hold(), Some(Taken::Entry(*position)));
            assert!(reader.read_at(*position, &mut Vec::new()).is_some(), "{position} was overwritten");
            ring.release();
        }
        assert_eq!(ring.hold(), None);
    };
    let (_, mut first) = connect_as(&mut router, 9, &table, 1024, Delivery::Credit);
    let in_first = fill(&mut router);
    assert!(in_first.len() > 10);
    let (_, mut second) = connect_as(&mut router, 9, &table, 1024, Delivery::Credit);
    assert!(fill(&mut router).is_empty(), "the first is not read");
    let (before, rest) = in_first.split_at(in_first.len() / 2);
    for position in before {
        assert_eq!(first.next(), Some(Taken::Entry(*position)));
    }
    let in_second = fill(&mut router);
    assert!(!in_second.is_empty());
    // Once more, with two rings that are not read to the end.
    let (_, mut third) = connect_as(&mut router, 9, &table, 1024, Delivery::Credit);
    assert!(fill(&mut router).is_empty());
    read(&mut first, rest);
    let in_third = fill(&mut router);
    assert!(!in_third.is_empty());
    read(&mut second, &in_second);
    read(&mut third, &in_third);
    assert!(fill(&mut router).len() > 10, "all of the ring is free again");
    // Unread records of a disconnected subscriber, in any ring, block nothing.
    let (_, _fourth) = connect_as(&mut router, 9, &table, 1024, Delivery::Credit);
    assert!(fill(&mut router).is_empty());
    assert!(router.disconnect(9));
    (0..100).for_each(|_| _ = publish(&mut router).unwrap());
}

/// Records of other instruments are also refused if they would overwrite a record that the subscriber has not
/// read. So every position that it gets can be read, however small the segment.
#[test]
fn unread_records_are_not_overwritten() {
    let capacity_bytes = layout::CAPACITY_BYTES_MIN;
    let segment = memory(Segment::<Memory>::bytes(capacity_bytes));
    let made = Segment::create(Arc::clone(&segment), capacity_bytes, 1, 1, 0, Owner::default()).unwrap();
    let mut writer = Writer::new(made);
    let table = Interest::create(memory(interest::bytes(2)), 2).unwrap();
    let wants = memory(interest::bytes(2));
    let mut router = Router::new(Interest::create(Arc::clone(&wants), 2).unwrap());
    let (_, mut ring) = connect_as(&mut router, 0, &table, 1024, Delivery::Credit);
    assert!(Interest::open(wants).unwrap().set(0, Some(1), true));
    let reader = Reader::from_start(Segment::open(segment).unwrap());
    let (mut given, mut read, mut refused, mut payload) = (0, 0, 0, Vec::new());
    for number in 0..20_000_u32 {
        let stamp = Stamp { instrument: u32::from(number % 5 == 0), cause: given, ..Stamp::default() };
        let bytes = vec![0; usize::try_from(number * 37 % 400).unwrap()];
        match router.publish(&mut writer, &stamp, &bytes, &Futex) {
            Ok((_, delivered)) => given += u64::from(delivered.subscribers),
            Err(PublishError::NoCredit { subscriber: 0 }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        if number % 7 == 0
            && let Some(Taken::Entry(position)) = ring.hold()
        {
            let record = reader.read_at(position, &mut payload).expect("not overwritten");
            assert_eq!(record.stamp.cause, read);
            read += 1;
            ring.release();
        }
    }
    assert!(given > 100 && refused > 100, "{given} given, {refused} refused");
}

/// One record for twelve sleeping subscribers, with and without a helper, which sleeps or spins: all are woken.
#[test]
fn a_helper_makes_all_wakes_handed_to_it() {
    const SUBSCRIBERS: u32 = 12;
    const ROUNDS: u64 = 60;
    let (_, mut writer, table, mut router) = publisher(1);
    let table = Interest::open(table).unwrap();
    let subscribers: Vec<_> = (0..SUBSCRIBERS)
        .map(|number| {
            let (inbox, mut ring) = connect_as(&mut router, number, &table, 1024, Delivery::Gap);
            thread::spawn(move || {
                let mut seen = 0;
                while seen < ROUNDS {
                    assert_ne!(inbox.wait(&Futex, LONG), Waited::TimedOut);
                    inbox.take_ready(|_| ());
                    seen += std::iter::from_fn(|| ring.take()).map(|_| 1).sum::<u64>();
                }
                inbox.woken_and_missed()
            })
        })
        .collect();
    let (mut woken, mut handed_over) = (0, 0);
    for round in 0..ROUNDS {
        let helper = match round % 15 {
            0 => Some(None),
            5 => Some(WakeHelper::start(2, HelperMode::Park, || ()).ok()),
            10 => Some(WakeHelper::start(2, HelperMode::Spin, || ()).ok()),
            _ => None,
        };
        if let Some(helper) = helper {
            router.set_wake_helper(helper);
        }
        thread::sleep(Duration::from_millis(3));
        let (_, delivered) = router.publish(&mut writer, &Stamp::default(), b"", &Futex).unwrap();
        assert!(delivered.handed_over == 0 || delivered.woken > 2);
        woken += u64::from(delivered.woken);
        handed_over += delivered.handed_over;
    }
    let counts: Vec<_> = subscribers.into_iter().map(|subscriber| subscriber.join().unwrap()).collect();
    assert_eq!(counts.iter().map(|(_, missed)| missed).sum::<u64>(), 0);
    assert_eq!(counts.iter().map(|(woken, _)| woken).sum::<u64>(), woken);
    assert!(handed_over > 0, "most slept, most of the time");
}
