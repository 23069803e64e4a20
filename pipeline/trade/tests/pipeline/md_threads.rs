//! md with a thread for each instrument, and followers.

use super::{answered, area, master, start_strategy};
use crate::master_thread::until;
use crate::pipeline::threads::{RING_BYTES, STRATEGIES, start_td};
use lowlat_node::{Counters, Wait, strategy::OnEachRecord};
use lowlat_trade::{
    roles,
    run::tally::{self, Tally},
    scenario::Scenario,
};
use std::thread;

/// Each instrument publishes this many quotes, 2 ms apart.
const RECORDS: u64 = 40;

fn scenario(records_per_instrument: u64, interval_ns: u64) -> Scenario {
    let name = String::new();
    Scenario {
        name,
        instruments: STRATEGIES,
        records_per_instrument,
        interval_ns,
        start_delay_ns: 250_000,
        instruments_with_one_more: 0,
    }
}

#[test]
fn threads_of_md_publish_every_quote_and_followers_read_all() {
    let master = master();
    let quotes = u64::from(STRATEGIES) * RECORDS;
    let node = master.join(&roles::md::join(STRATEGIES, RING_BYTES, Wait::Parked));
    let md = thread::spawn(move || roles::md_threads::run(node, &scenario(RECORDS, 2_000_000), 1).unwrap());
    let follower = master.join(&roles::follower::join(0));
    let follower = thread::spawn(move || roles::follower::run(follower).unwrap());
    let td = start_td(&master);
    let strategies: Vec<_> =
        (0..STRATEGIES).map(|number| start_strategy(&master, number, OnEachRecord::of(number))).collect();
    master.begin();
    assert_eq!(md.join().unwrap().quotes, quotes);
    until("all orders are answered", || answered(&master) == quotes);
    let tally = Tally::new(area(&master, tally::MD_AREA)).unwrap();
    assert_eq!(tally.scheduled(), Some(quotes));
    // From the first quote of the first instrument to the last of the last; none is early.
    let least_ns = (RECORDS - 1) * 2_000_000 + u64::from(STRATEGIES - 1) * 250_000;
    assert!(tally.published_ns().is_some_and(|ns| ns > least_ns / 2), "{:?}", tally.published_ns());
    master.with(|master, _| master.stop());
    // Quote, order, accept and fill.
    let done = follower.join().unwrap();
    assert_eq!((done.read, done.lost), (4 * quotes, 0));
    assert_eq!(td.join().unwrap().orders, quotes);
    for strategy in strategies {
        strategy.join().unwrap();
    }
}

#[test]
fn threads_of_md_end_when_they_are_stopped() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let master = master();
    let node = master.join(&roles::md::join(STRATEGIES, RING_BYTES, Wait::Parked));
    let md = thread::spawn(move || roles::md_threads::run(node, &scenario(2, HOUR_NS), 1).unwrap());
    master.begin();
    let published = || master.with(|master, _| master.counters("md").map_or(0, Counters::published));
    until("the first quotes are published", || published() == u64::from(STRATEGIES));
    master.with(|master, _| master.stop());
    assert_eq!(md.join().unwrap().quotes, u64::from(STRATEGIES));
}
