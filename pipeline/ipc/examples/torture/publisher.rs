//! A publisher: its records follow from the seed, so that subscribers know their contents.

use super::round::{INSTRUMENTS, Memory, PUBLISHERS, Plan, Policy, SUBSCRIBERS, word};
use lowlat_ipc::{
    doorbell::Futex,
    inbox::Inbox,
    index_ring,
    interest::Interest,
    latest,
    router::{Delivery, HelperMode, Router, WakeHelper},
    stream::{PublishError, Segment, Stamp, Writer},
};
use std::{sync::atomic::Ordering, thread, time::Duration};

/// Creates a publisher's memory, for all publishers before anything starts.
pub fn prepare(memory: &Memory, plan: Plan) {
    for publisher in 0..PUBLISHERS {
        let id = u32::try_from(publisher).unwrap();
        Segment::create(
            memory.segment(publisher),
            super::round::CAPACITY_BYTES,
            id,
            1,
            0,
            lowlat_ipc::stream::Owner::default(),
        )
        .unwrap();
        let interest = Interest::create(memory.interest(publisher), INSTRUMENTS).unwrap();
        for subscriber in 0..SUBSCRIBERS {
            let way = memory.way(publisher, subscriber);
            match plan.policy(publisher, subscriber) {
                Policy::Conflate => drop(latest::create(way, INSTRUMENTS).unwrap()),
                _ => drop(index_ring::create(way, Memory::entries()).unwrap()),
            }
            set_interest(&interest, plan, subscriber, true);
        }
    }
}

pub fn set_interest<R: lowlat_ipc::region::Region>(
    interest: &Interest<R>,
    plan: Plan,
    subscriber: u64,
    is_wanted: bool,
) {
    let wanted = plan.wanted(subscriber);
    for instrument in (0..INSTRUMENTS).filter(|instrument| wanted >> instrument & 1 == 1) {
        assert!(interest.set(u32::try_from(subscriber).unwrap(), Some(instrument), is_wanted));
    }
}

pub fn run(memory: &'static Memory, plan: Plan, publisher: u64) -> Result<(), String> {
    let mut writer = Writer::new(Segment::open(memory.segment(publisher)).unwrap());
    let mut router = Router::new(Interest::open(memory.interest(publisher)).unwrap());
    for subscriber in 0..SUBSCRIBERS {
        let way = memory.way(publisher, subscriber);
        let ring = || index_ring::create(way, Memory::entries()).unwrap();
        let overrun = match plan.policy(publisher, subscriber) {
            Policy::Gap => Delivery::Gap(ring()),
            Policy::Credit => Delivery::Credit(ring()),
            Policy::Evict => Delivery::Evict { ring: ring(), behind_max: 50 },
            Policy::Conflate => Delivery::Conflate(latest::create(way, INSTRUMENTS).unwrap()),
        };
        let inbox = Inbox::new(memory.inbox(subscriber)).unwrap();
        let number = u32::try_from(subscriber).unwrap();
        assert!(router.connect(number, overrun, inbox, u32::try_from(publisher).unwrap()));
    }
    let mut random = plan.random(100 + publisher);
    if random().is_multiple_of(3) {
        router.set_wake_helper(WakeHelper::start(2, HelperMode::Park, || ()).ok());
    }
    // It rests now and then, so that subscribers sleep: often, seldom or never.
    let rest_after = [20, 2_000, u64::MAX][usize::try_from(random() % 3).unwrap()];
    let mut number = 0;
    while !memory.is_stopping() {
        let instrument = plan.instrument(publisher, number);
        let stamp = Stamp { instrument, cause: number, trigger: mix_of(number), ..Stamp::default() };
        let bytes = plan.payload_bytes(publisher, number);
        let payload = [u8::try_from(number % 251).unwrap(); 200];
        match router.publish(&mut writer, &stamp, &payload[..bytes], &Futex) {
            Ok((record, delivered)) => {
                if record.sequence != number {
                    return Err(format!("record {number} has sequence {}", record.sequence));
                }
                number += 1;
                memory.of_publisher(publisher, word::PUBLISHED).store(number, Ordering::Release);
                if delivered.evicted > 0 && router.evicted().is_empty() {
                    return Err("an eviction was not reported".to_owned());
                }
            }
            Err(PublishError::NoCredit { subscriber }) => {
                if plan.policy(publisher, u64::from(subscriber)) != Policy::Credit {
                    return Err(format!("subscriber {subscriber} has no credit to give"));
                }
                thread::yield_now();
            }
            Err(error) => return Err(error.to_string()),
        }
        if number % rest_after == rest_after - 1 {
            thread::sleep(Duration::from_micros(random() % 2_000));
        }
    }
    memory.of_publisher(publisher, word::DONE).store(1, Ordering::Release);
    Ok(())
}

pub fn mix_of(number: u64) -> u64 {
    super::round::mix(number)
}
