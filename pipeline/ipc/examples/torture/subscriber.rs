//! A subscriber: compares what it gets with what it must get.

use super::{
    publisher::mix_of,
    round::{CAPACITY_BYTES, Memory, PUBLISHERS, Plan, Policy, word},
};
use lowlat_ipc::{
    doorbell::{Futex, Waited},
    inbox::Inbox,
    index_ring::{self, RingGap, Taken, Taker},
    latest::{self, LatestTaker},
    region::Memfd,
    stream::{Reader, Segment},
    waiter::{Mode, SpinPolicy, Waiter},
};
use std::{sync::atomic::Ordering, time::Duration};

type Shared = &'static Memfd;

enum Intake {
    Ring(Taker<Shared>),
    Latest(LatestTaker<Shared>),
}

/// A subscriber's state for one publisher.
struct PublisherState {
    memory: &'static Memory,
    plan: Plan,
    publisher: u64,
    subscriber: u64,
    policy: Policy,
    way: Intake,
    reader: Reader<Shared>,
    payload: Vec<u8>,
    /// The first record not accounted for.
    next: u64,
    /// It replaced a process that was killed, and has got nothing yet.
    is_new: bool,
    /// It checks only the order.
    is_loose: bool,
    evicted: bool,
}

impl PublisherState {
    fn new(memory: &'static Memory, plan: Plan, publisher: u64, subscriber: u64, is_second: bool) -> Self {
        let policy = plan.policy(publisher, subscriber);
        let way = memory.way(publisher, subscriber);
        let way = match policy {
            Policy::Conflate => Intake::Latest(latest::open(way).unwrap()),
            _ => Intake::Ring(index_ring::open(way).unwrap()),
        };
        let word = |what| memory.of_subscriber(publisher, subscriber, what).load(Ordering::Acquire);
        Self {
            memory,
            plan,
            publisher,
            subscriber,
            policy,
            way,
            reader: Reader::from_start(Segment::open(memory.segment(publisher)).unwrap()),
            payload: Vec::with_capacity(4096),
            next: word(word::NEXT),
            is_new: is_second,
            is_loose: plan.comes_and_goes(subscriber),
            evicted: word(word::EVICTED) != 0,
        }
    }

    fn count(&self, what: usize, count: u64) {
        self.memory.of_subscriber(self.publisher, self.subscriber, what).fetch_add(count, Ordering::Relaxed);
    }

    fn told_up_to(&mut self, next: u64) {
        self.next = next;
        self.memory.of_subscriber(self.publisher, self.subscriber, word::NEXT).store(next, Ordering::Release);
    }

    fn next_wanted(&self) -> u64 {
        self.plan.next_wanted(self.publisher, self.subscriber, self.next)
    }

    /// Takes everything available; returns the number of items.
    fn drain(&mut self) -> Result<u64, String> {
        let mut count = 0;
        while !self.evicted {
            let taken = match &mut self.way {
                Intake::Latest(table) => table.take().map(Taken::Entry),
                Intake::Ring(ring) if self.policy == Policy::Credit => ring.hold(),
                Intake::Ring(ring) => ring.next(),
            };
            let Some(taken) = taken else { break };
            count += 1;
            match taken {
                Taken::Entry(position) => self.entry(position)?,
                Taken::Gap(gap) => self.gap(gap)?,
                Taken::Evicted { first } => self.evicted(first)?,
            }
            if let Intake::Ring(ring) = &mut self.way {
                ring.release();
            }
        }
        Ok(count)
    }

    fn entry(&mut self, position: u64) -> Result<(), String> {
        let Some(record) = self.reader.read_at(position, &mut self.payload) else {
            let behind = self.reader.segment().tail().saturating_sub(position);
            if self.policy == Policy::Credit || behind < CAPACITY_BYTES / 2 {
                return Err(format!("the record at {position} is missing, {behind} bytes behind the newest"));
            }
            self.count(word::LOST, 1);
            if !self.is_loose && !self.is_new && self.policy != Policy::Conflate {
                self.told_up_to(self.next_wanted() + 1);
            }
            return Ok(());
        };
        let number = record.stamp.cause;
        let is_whole = record.sequence == number
            && record.stamp.trigger == mix_of(number)
            && record.stamp.instrument == self.plan.instrument(self.publisher, number)
            && self.payload.len() == self.plan.payload_bytes(self.publisher, number)
            && self.payload.iter().all(|byte| u64::from(*byte) == number % 251);
        if !is_whole {
            return Err(format!("record {number} is torn: {record:?}"));
        }
        if self.plan.wanted(self.subscriber) >> record.stamp.instrument & 1 == 0 {
            return Err(format!("unwanted record {record:?}"));
        }
        self.count(word::TAKEN, 1);
        let expected = self.next_wanted();
        let is_expected = match self.policy {
            // The previous one may have been reported to, but not released by, the predecessor.
            Policy::Credit if self.is_new && number < self.next => true,
            Policy::Credit if self.is_new && !self.is_loose => number == expected,
            _ if self.is_loose || self.is_new || self.policy == Policy::Conflate => number >= self.next,
            _ => number == expected,
        };
        if !is_expected {
            return Err(format!("expected record {expected}, got {number}; {} were reported", self.next));
        }
        self.is_new = false;
        self.told_up_to(self.next.max(number + 1));
        Ok(())
    }

    fn gap(&mut self, gap: RingGap) -> Result<(), String> {
        if self.policy != Policy::Gap {
            return Err(format!("a gap by policy {:?}: {gap:?}", self.policy));
        }
        self.count(word::LOST, gap.count);
        if self.is_loose || self.is_new {
            return if gap.count > 0 { Ok(()) } else { Err("an empty gap".to_owned()) };
        }
        let first = self.next_wanted();
        for _ in 0..gap.count {
            self.told_up_to(self.next_wanted() + 1);
        }
        for (position, number) in [(gap.first, first), (gap.last, self.next - 1)] {
            if let Some(record) = self.reader.read_at(position, &mut self.payload)
                && record.stamp.cause != number
            {
                return Err(format!("{gap:?} has an end at record {number}, but found {record:?}"));
            }
        }
        Ok(())
    }

    fn evicted(&mut self, first: u64) -> Result<(), String> {
        if self.policy != Policy::Evict {
            return Err(format!("evicted by policy {:?}", self.policy));
        }
        let expected = self.next_wanted();
        if let Some(record) = self.reader.read_at(first, &mut self.payload)
            && record.stamp.cause != expected
            && !self.is_loose
            && !self.is_new
        {
            return Err(format!("evicted from {} on, expected {expected}", record.stamp.cause));
        }
        self.evicted = true;
        self.count(word::EVICTED, 1);
        Ok(())
    }

    /// After the publisher has ended and nothing is left.
    fn finish(&mut self) -> Result<(), String> {
        let word = |what| self.memory.of_publisher(self.publisher, what).load(Ordering::Acquire);
        let (done, published) = (word(word::DONE), word(word::PUBLISHED));
        if let Intake::Latest(table) = &self.way {
            self.memory
                .of_subscriber(self.publisher, self.subscriber, word::CONFLATED)
                .store(table.conflated(), Ordering::Relaxed);
        }
        let is_exact = !self.is_loose && !self.is_new && !self.evicted && done == 1;
        let next = self.next_wanted();
        let is_complete = match self.policy {
            // The newest record that it wants is the newest of its instrument.
            _ if next >= published => true,
            // Unless the ring of the segment has lapped it since.
            Policy::Conflate => {
                self.memory.of_subscriber(self.publisher, self.subscriber, word::LOST).load(Ordering::Relaxed)
                    > 0
            }
            _ => false,
        };
        if is_exact && !is_complete {
            return Err(format!("record {next} of {published} was not reported ({:?})", self.policy));
        }
        // Everything appended before a kill was delivered, except for the last record.
        if self.policy == Policy::Credit
            && done == 2
            && !self.is_loose
            && !self.is_new
            && next + 1 < published
        {
            return Err(format!("record {next} of {published} was committed, then lost"));
        }
        Ok(())
    }
}

pub fn run(memory: &'static Memory, plan: Plan, subscriber: u64, generation: u64) -> Result<(), String> {
    let inbox = Inbox::new(memory.inbox(subscriber)).unwrap();
    let modes = [Mode::Fast, Mode::Parked, Mode::Parked, Mode::Adaptive(SpinPolicy::new(20_000))];
    let mut random = plan.random(200 + subscriber + (generation << 8));
    let mut waiter = Waiter::new(modes[usize::try_from(random() % 4).unwrap()]);
    let mut from: Vec<_> = (0..PUBLISHERS)
        .map(|publisher| PublisherState::new(memory, plan, publisher, subscriber, generation > 0))
        .collect();
    // The policies are made for slow ones.
    let is_slow = random().is_multiple_of(3);
    let named = |publisher: u64, error: String| {
        let policy = plan.policy(publisher, subscriber);
        format!(
            "seed {}: publisher {publisher} to subscriber {subscriber}, start {generation}, {policy:?}: {error}",
            plan.seed
        )
    };
    loop {
        let is_done = (0..PUBLISHERS)
            .all(|publisher| memory.of_publisher(publisher, word::DONE).load(Ordering::Acquire) != 0);
        inbox.take_ready(|_| ());
        let mut count = 0;
        for from in &mut from {
            count += from.drain().map_err(|error| named(from.publisher, error))?;
        }
        if count > 0 {
            if is_slow {
                std::thread::sleep(Duration::from_micros(random() % 3_000));
            }
            continue;
        }
        if is_done {
            break;
        }
        // Long, so that a slow participant on a busy machine does not count as a missed wake.
        if waiter.wait(&inbox, &Futex, Duration::from_secs(2)) == Waited::TimedOut {
            std::thread::yield_now();
        }
    }
    from.iter_mut().try_for_each(|from| from.finish().map_err(|error| named(from.publisher, error)))
}
