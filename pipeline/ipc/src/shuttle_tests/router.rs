//! Two publishers, three subscribers with different overrun policies, and their bells.

use super::{draw, explore, nap};
use crate::{
    doorbell::{Futex, Waited},
    inbox::{self, Inbox},
    index_ring::{self, Taken, Taker},
    interest::{self, Interest},
    latest::{self, LatestTaker},
    layout::{self, LINE_BYTES},
    region::Heap,
    router::{Delivery, HelperMode, Router, WakeHelper},
    stream::{Owner, PublishError, Reader, Segment, Stamp, Writer},
};
use shuttle::thread;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

const PUBLISHERS: u32 = 2;
const SUBSCRIBERS: u32 = 3;
/// Records per publisher, one line each, of two alternating instruments. The segment is lapped.
const COUNT: u64 = 100;
const CAPACITY: u64 = layout::CAPACITY_BYTES_MIN;
const ENTRIES: u64 = 8;

type Shared = Arc<Heap>;

fn memory(bytes: u64) -> Shared {
    Arc::new(Heap::zeroed(bytes))
}

/// One publisher's connection to one subscriber, on the subscriber's side.
struct Connection {
    end: End,
    reader: Reader<Shared>,
    /// Positions that it must account for, in order.
    wanted: Vec<u64>,
    at: usize,
    taken: usize,
    is_over: bool,
    told: Arc<AtomicU64>,
}

/// Condition for which the publisher may wait: the subscriber has accounted for everything that it wants before this
/// number. Only for the test, so shuttle need not model it.
struct Accounted {
    wants: Option<u32>,
    before: Arc<AtomicU64>,
}

enum End {
    Ring { ring: Taker<Shared>, policy: OverrunPolicy },
    Latest(LatestTaker<Shared>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OverrunPolicy {
    Gap,
    Evict,
    Credit,
}

impl Connection {
    /// Takes everything that is available.
    fn drain(&mut self) {
        while !self.is_over && self.take() {}
    }

    fn take(&mut self) -> bool {
        match &mut self.end {
            End::Latest(latest) => {
                let Some(position) = latest.take() else { return false };
                let newer =
                    self.wanted.iter().position(|wanted| *wanted == position).expect("one of its own");
                assert!(newer >= self.at, "{position} after a newer one");
                self.at = newer + 1;
                self.taken += 1;
                self.read(position, false);
            }
            End::Ring { ring, policy } => {
                let policy = *policy;
                match ring.hold() {
                    None => return false,
                    Some(Taken::Entry(position)) => {
                        assert_eq!(self.wanted.get(self.at), Some(&position));
                        self.at += 1;
                        self.read(position, policy == OverrunPolicy::Credit);
                        if let End::Ring { ring, .. } = &mut self.end {
                            ring.release();
                        }
                    }
                    Some(Taken::Gap(gap)) => {
                        assert_eq!(policy, OverrunPolicy::Gap);
                        let end = self.at + usize::try_from(gap.count).unwrap();
                        let (first, last) = (self.wanted.get(self.at), self.wanted.get(end - 1));
                        assert_eq!((first, last), (Some(&gap.first), Some(&gap.last)));
                        self.at = end;
                    }
                    Some(Taken::Evicted { first }) => {
                        assert_eq!((policy, self.wanted.get(self.at)), (OverrunPolicy::Evict, Some(&first)));
                        self.is_over = true;
                    }
                }
            }
        }
        self.is_over |= self.at == self.wanted.len();
        let before = if self.is_over { u64::MAX } else { self.wanted[self.at] / LINE_BYTES };
        self.told.store(before, Ordering::Relaxed);
        true
    }

    fn read(&self, position: u64, is_there: bool) {
        let mut payload = Vec::new();
        let Some(record) = self.reader.read_at(position, &mut payload) else {
            assert!(!is_there, "{position} was overwritten");
            return;
        };
        let number = position / LINE_BYTES;
        assert_eq!((record.sequence, record.stamp.cause), (number, !number));
        assert_eq!(u64::from(record.stamp.instrument), number % 2);
    }
}

/// Handles records that the subscriber is too slow for, in one of the four ways.
fn connect(
    router: &mut Router<Shared>,
    subscriber: u32,
    stream: u32,
    inbox: &Shared,
    segment: &Shared,
    wants: Option<u32>,
) -> (Connection, Accounted) {
    let memory = memory(index_ring::bytes(ENTRIES));
    let ring = || index_ring::create(Arc::clone(&memory), ENTRIES).unwrap();
    let policy = match draw(4) {
        0 => Some(OverrunPolicy::Gap),
        1 => Some(OverrunPolicy::Evict),
        2 => Some(OverrunPolicy::Credit),
        _ => None,
    };
    let (overrun, end) = if let Some(policy) = policy {
        let ring = ring();
        let overrun = match policy {
            OverrunPolicy::Gap => Delivery::Gap(ring),
            OverrunPolicy::Evict => Delivery::Evict { ring, behind_max: 1 + draw(ENTRIES) },
            OverrunPolicy::Credit => Delivery::Credit(ring),
        };
        (overrun, End::Ring { ring: index_ring::open(Arc::clone(&memory)).unwrap(), policy })
    } else {
        let memory = self::memory(latest::bytes(2));
        let putter = latest::create(Arc::clone(&memory), 2).unwrap();
        (Delivery::Conflate(putter), End::Latest(latest::open(memory).unwrap()))
    };
    let inbox = Inbox::new(Arc::clone(inbox)).unwrap();
    assert!(router.connect(subscriber, overrun, inbox, stream));
    let reader = Reader::from_start(Segment::open(Arc::clone(segment)).unwrap());
    let numbers = (0..COUNT).filter(|number| wants.is_none_or(|wanted| u64::from(wanted) == number % 2));
    let wanted = numbers.map(|number| number * LINE_BYTES).collect();
    let told = Accounted { wants, before: Arc::default() };
    (
        Connection { end, reader, wanted, at: 0, taken: 0, is_over: false, told: Arc::clone(&told.before) },
        told,
    )
}

/// Publishes all records, and returns the number of wakes.
fn publish(mut router: Router<Shared>, segment: &Shared, told: &[Accounted]) -> u64 {
    let mut writer = Writer::new(Segment::open(Arc::clone(segment)).unwrap());
    let mut woken = 0;
    for number in 0..COUNT {
        let instrument = u32::try_from(number % 2).unwrap();
        let stamp = Stamp { instrument, cause: !number, ..Stamp::default() };
        woken += loop {
            match router.publish(&mut writer, &stamp, b"", &Futex) {
                Ok((published, delivered)) => {
                    assert_eq!(published.position, number * LINE_BYTES);
                    break u64::from(delivered.woken);
                }
                Err(PublishError::NoCredit { .. }) => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        };
        // Now all sleep, and no later publisher would wake a subscriber whose wake was lost.
        let is_told = |told: &Accounted| {
            let wants = told.wants.is_none_or(|wanted| wanted == instrument);
            !wants || told.before.load(Ordering::Relaxed) > number
        };
        if draw(8) == 0 {
            while !told.iter().all(is_told) {
                thread::yield_now();
            }
        } else if draw(6) == 0 {
            nap();
        }
    }
    woken
}

/// Takes until every record is accounted for. It is woken for records that arrive while it sleeps, or sleeps
/// forever.
fn subscribe(inbox: &Inbox<Shared>, ways: &mut [Connection]) {
    while ways.iter().any(|way| !way.is_over) {
        if draw(4) == 0 {
            nap();
        } else {
            assert_ne!(inbox.wait(&Futex, Duration::MAX), Waited::TimedOut);
        }
        inbox.take_ready(|stream| ways[usize::try_from(stream / STREAM_STEP).unwrap()].drain());
    }
}

/// The streams of one subscriber have bits in different words.
const STREAM_STEP: u32 = 70;

#[test]
fn shuttle_each_record_is_accounted_for_and_no_wake_is_lost() {
    explore(|| {
        let table = memory(interest::bytes(2));
        let interest = Interest::create(Arc::clone(&table), 2).unwrap();
        let mut publishers: Vec<_> = (0..PUBLISHERS)
            .map(|stream| {
                let segment = memory(Segment::<Heap>::bytes(CAPACITY));
                Segment::create(Arc::clone(&segment), CAPACITY, stream, 1, 0, Owner::default()).unwrap();
                (Router::new(Interest::open(Arc::clone(&table)).unwrap()), segment, Vec::new())
            })
            .collect();
        let subscribing: Vec<_> = (0..SUBSCRIBERS)
            .map(|subscriber| {
                let wants = (draw(3) == 0).then_some(1);
                assert!(interest.set(subscriber, wants, true));
                let bytes = memory(inbox::BYTES);
                let mut ways: Vec<_> = (0..)
                    .zip(&mut publishers)
                    .map(|(stream, (router, segment, told))| {
                        let (way, its) =
                            connect(router, subscriber, stream * STREAM_STEP, &bytes, segment, wants);
                        told.push(its);
                        way
                    })
                    .collect();
                thread::spawn(move || {
                    let inbox = Inbox::new(bytes).unwrap();
                    subscribe(&inbox, &mut ways);
                    (inbox, ways)
                })
            })
            .collect();
        let publishing: Vec<_> = publishers
            .into_iter()
            .map(|(mut router, segment, told)| {
                let has_helper = draw(3) == 0;
                thread::spawn(move || {
                    if has_helper {
                        router.set_wake_helper(WakeHelper::start(2, HelperMode::Park, || ()).ok());
                    }
                    publish(router, &segment, &told)
                })
            })
            .collect();
        let woken: u64 = publishing.into_iter().map(|publisher| publisher.join().unwrap()).sum();
        let mut counted = 0;
        for subscriber in subscribing {
            let (inbox, ways) = subscriber.join().unwrap();
            let (woken, missed) = inbox.woken_and_missed();
            assert_eq!(missed, 0);
            counted += woken;
            for way in ways {
                if let End::Latest(latest) = &way.end {
                    let conflated = usize::try_from(latest.conflated()).unwrap();
                    assert_eq!(way.taken + conflated, way.wanted.len());
                }
            }
        }
        assert_eq!(counted, woken);
    });
}
