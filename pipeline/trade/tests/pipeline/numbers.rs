//! Strategy numbers: one node each, and only its orders.

use crate::{
    master_thread::{MasterThread, until},
    pipeline::{
        master, read_by,
        threads::{QUOTES, RING_BYTES, STRATEGIES, start_md, start_td},
    },
};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{
    Node, Strategies, Wait,
    records::{Order, SCHEMA, kind},
    strategy::OnEachRecord,
};
use lowlat_trade::{master::Happened, roles};
use std::thread;

fn join(name: &str, strategies: Strategies) -> lowlat_node::Join {
    lowlat_node::strategy::join(name, "strategy", strategies, &[0], RING_BYTES, Wait::Parked)
}

fn refused(master: &MasterThread, name: &str, strategies: Strategies) -> String {
    Node::join(&master.socket(), &join(name, strategies)).unwrap_err().to_string()
}

#[test]
fn a_number_of_another_node_is_refused_with_its_name() {
    let master = master();
    let seven = || Strategies::Only(vec![7]);
    let first = master.join(&join("first", seven()));
    assert_eq!(first.strategies(), [7]);
    let error = refused(&master, "second", seven());
    assert!(error.contains("node second: strategy 7 belongs to node first"), "{error}");
    assert!(error.contains("hint: leave the number out"), "{error}");
    master.expect("the master reports the refusal", |happened| {
        matches!(happened, Happened::Refused { name, reason } if name == "second" && reason.contains("strategy 7"))
    });
    // Also after the first has ended: answers to its orders may still arrive.
    drop(first);
    assert!(refused(&master, "second", seven()).contains("belongs to node first"));
    assert_eq!(master.join(&join("first", seven())).strategies(), [7], "it restarted");
    assert!(refused(&master, "second", Strategies::Only(vec![16384])).contains("below 16384"));
}

#[test]
fn an_omitted_number_is_assigned_and_stays_with_the_node() {
    let master = MasterThread::start(|options| {
        options.areas = roles::areas();
        options.strategies_reserved = 80;
    });
    let [first, second] = ["first", "second"].map(|name| master.join(&join(name, Strategies::Free)));
    assert_eq!((first.strategies(), second.strategies()), (&[80][..], &[81][..]));
    drop((first, second));
    assert_eq!(master.join(&join("second", Strategies::Free)).strategies(), [81]);
    assert_eq!(master.join(&join("third", Strategies::Free)).strategies(), [82], "never the first's");
    let error = refused(&master, "mine", Strategies::Only(vec![7]));
    assert!(error.contains("strategy 7 belongs to the run, which has the numbers below 80"), "{error}");
}

#[test]
fn a_released_number_goes_to_the_next_node() {
    let master = master();
    let mut host = master.join(&join("host", Strategies::Only((0..700).collect())));
    assert_eq!(host.strategies().len(), 700);
    host.release(3);
    assert!(!host.strategies().contains(&3));
    let mut moved = None;
    until("the master is notified", || {
        moved = Node::join(&master.socket(), &join("s3", Strategies::Only(vec![3]))).ok();
        moved.is_some()
    });
    drop(host);
    let host = master.join(&join("host", Strategies::Only((0..700).collect())));
    assert!(host.strategies().len() == 699 && !host.strategies().contains(&3), "another node has it now");
}

#[test]
fn an_order_of_another_nodes_strategy_is_not_answered() {
    let master = master();
    let (md, td) = (start_md(&master), start_td(&master));
    let node = master.join(&lowlat_node::strategy::join(
        "s0",
        "strategy",
        Strategies::Only(vec![0]),
        &[0],
        RING_BYTES,
        Wait::Parked,
    ));
    let strategy = thread::spawn(move || {
        let mut strategy = OnEachRecord::of(0);
        let number = 0;
        (lowlat_node::strategy::run(node, number, &mut strategy).unwrap(), strategy)
    });
    let mut thief = master.join(&join("thief", Strategies::Free));
    master.begin();
    for number in 1..=10 {
        let order =
            Order { number, scheduled_ns: 1, received_ns: 2, price: 1, quantity: 1, ..Order::default() };
        let stamp = Stamp { kind: kind::ORDER, schema: SCHEMA, source: 0, ..Stamp::default() };
        thief.publisher().publish(&stamp, &order.encode()).unwrap();
    }
    let each = QUOTES / u64::from(STRATEGIES);
    until("all answers are read", || read_by(&master, "strategy") >= 3 * each);
    master.expect("td reports it", |happened| {
        matches!(happened, Happened::Said { name, text }
            if name == "td" && text.contains("orders.thief") && text.contains("strategy 0"))
    });
    md.join().unwrap();
    master.with(|master, _| master.stop());
    let td = td.join().unwrap();
    assert_eq!((td.orders, td.rejected, td.foreign), (each, 0, 10));
    let (done, strategy) = strategy.join().unwrap();
    assert_eq!((done.answers, strategy.sent, strategy.answered), (2 * each, each, each));
}
