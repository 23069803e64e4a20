//! The example of pairs trading, whose signal has a stream of its own.

#[path = "../../../node/examples/pairs.rs"]
#[allow(dead_code, reason = "its main function")]
mod example;

use super::{area, master, threads};
use crate::master_thread::until;
use example::Pairs;
use lowlat_node::{
    Wait,
    ledger::{AREA, Ledger},
    strategy,
};
use lowlat_trade::{
    master::Happened,
    roles::{self, td::TdOptions},
    td::{BookRules, Limits, Matching, Rules},
};
use std::thread;
use threads::{QUOTES, RING_BYTES, STRATEGIES, start_md};

#[test]
fn pairs_are_traded_on_a_custom_stream() {
    let master = master();
    let md = start_md(&master);
    let matching = Matching::Quotes(BookRules::default());
    let rules = Rules { instruments: STRATEGIES, matching, limits: Limits::default() };
    let node = master.join(&roles::td::join(RING_BYTES, &rules, Wait::Parked));
    let td = thread::spawn(move || roles::td::run(node, &TdOptions { rules, gateway: None }).unwrap());
    let socket = master.socket();
    let signal = thread::spawn(move || example::signal(&socket, [0, 1]).map_err(|error| error.to_string()));
    master.expect("it has joined", |it| matches!(it, Happened::Joined { name, .. } if name == "signal"));
    let node = master.join(&example::join([0, 1]));
    let pairs = thread::spawn(move || {
        let (mut pairs, number) = (Pairs::new([0, 1]), node.strategies()[0]);
        strategy::run(node, number, &mut pairs).unwrap();
        pairs
    });
    master.begin();
    assert_eq!(md.join().unwrap().quotes, QUOTES);
    let ledger = Ledger::look(area(&master, AREA)).unwrap();
    until("the last trade is complete", || {
        let (waiting, nodes) = master.with(|master, _| (master.waiting("pairs"), master.nodes()));
        let sent = nodes.iter().find(|node| node.name == "pairs").map_or(0, |node| node.figures.published);
        waiting == 0 && sent > 0 && sent % 2 == 0 && ledger.totals().fills == sent
    });
    master.with(|master, _| master.stop());
    signal.join().unwrap().unwrap();
    let (pairs, td) = (pairs.join().unwrap(), td.join().unwrap());
    assert_eq!((pairs.orders, td.rejected, td.lost), (td.orders, 0, 0));
    assert!(
        pairs.positions[0].abs() <= 1 && pairs.positions[0] == -pairs.positions[1],
        "{:?}",
        pairs.positions
    );
}
