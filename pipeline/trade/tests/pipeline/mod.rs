//! The whole pipeline: a master with md, td, cached and strategies, each with a node.

mod custom;
mod exchange;
mod md_threads;
mod numbers;
mod pairs;
mod threads;

use crate::master_thread::{LONG, MasterThread, until};
use lowlat_ipc::{region::Memfd, stream::Stamp};
use lowlat_node::{
    Strategies, Wait,
    ledger::{AREA, Ledger},
    records::{Answer, Order, Outcome, SCHEMA, Side, kind},
    state::{Payload, RecordSeen},
    strategy::{AnswerSeen, OnEachRecord, Orders, QuoteSeen, Strategy},
};
use lowlat_trade::{
    cached::{Cached, Store},
    hosting::{StrategyBudget, StrategyHost},
    master::Happened,
    roles,
    run::tally::{self, Tally},
    stages::{Stage, StageRecorder},
};
use std::{
    collections::BTreeMap,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use threads::{Md, QUOTES, RING_BYTES, STRATEGIES, start_md, start_platform, start_strict_td, start_td};

fn master() -> MasterThread {
    MasterThread::start(|options| options.areas = roles::areas())
}

fn area(master: &MasterThread, name: &'static str) -> Arc<Memfd> {
    master.with(move |master, _| Arc::clone(master.area(name).unwrap()))
}

/// Filled quantity and progress of each order of a strategy in the last run, and whether its record was seen.
fn orders_in(store: &Path, strategy: u32) -> Vec<(u32, String, bool)> {
    let store = rusqlite::Connection::open(store).unwrap();
    let wanted = "select filled, progress, is_seen from orders where strategy = ? and run = (select max(run) from runs)";
    let mut statement = store.prepare(wanted).unwrap();
    let rows = statement.query_map([strategy], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn answered(master: &MasterThread) -> u64 {
    Ledger::look(area(master, AREA)).unwrap().totals().answered
}

fn read_by(master: &MasterThread, role: &'static str) -> u64 {
    master.with(move |master, _| {
        master.nodes().iter().filter(|node| node.role == role).map(|node| node.figures.read).sum()
    })
}

/// Checks the figures of a run without deaths.
fn check_run(master: &MasterThread) {
    let stages = StageRecorder::new(area(master, roles::STAGES_AREA)).unwrap();
    for stage in Stage::ALL {
        assert_eq!(stages.histogram(stage).len(), QUOTES, "{stage:?}");
    }
    for node in master.with(|master, _| master.nodes()) {
        let figures = node.figures;
        assert_eq!((figures.lost, figures.refused, figures.missed), (0, 0, 0), "{} {figures:?}", node.name);
    }
    assert_eq!(answered(master), QUOTES);
    let [md_tally, td_tally] =
        [tally::MD_AREA, tally::TD_AREA].map(|name| Tally::new(area(master, name)).unwrap());
    assert_eq!((md_tally.scheduled(), td_tally.refused()), (Some(QUOTES), [0, 0]));
}

#[test]
fn every_quote_causes_an_order_and_every_order_an_answer() {
    let master = master();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("cached.sqlite");
    let md = start_md(&master);
    let td = start_td(&master);
    let node = master.join(&roles::cached::join());
    let path = store.clone();
    let cached =
        thread::spawn(move || roles::cached::run(node, &path, STRATEGIES, &mut |note| panic!("{note}")));
    let strategies: Vec<_> = (0..STRATEGIES)
        .map(|number| {
            let name = format!("s{number}");
            let join = lowlat_node::strategy::join(
                &name,
                "strategy",
                Strategies::Only(vec![number]),
                &[number],
                RING_BYTES,
                Wait::Parked,
            );
            let node = master.join(&join);
            thread::spawn(move || {
                let mut strategy = OnEachRecord::of(number);
                let done = lowlat_node::strategy::run(node, number, &mut strategy).unwrap();
                (done, strategy)
            })
        })
        .collect();
    master.begin();
    // One quote, one accept and one fill each.
    until("all answers are read", || read_by(&master, "strategy") == 3 * QUOTES);
    until("cached has everything", || read_by(&master, "cached") == 4 * QUOTES);
    master.with(|master, _| master.stop());
    let lateness: Md = md.join().unwrap();
    assert_eq!(lateness.quotes, QUOTES);
    let td = td.join().unwrap();
    assert_eq!(
        (td.orders, td.rejected, td.known, td.missing, td.lost, td.not_orders),
        (QUOTES, 0, 0, 0, 0, 0)
    );
    let each = QUOTES / u64::from(STRATEGIES);
    for strategy in strategies {
        let (done, strategy) = strategy.join().unwrap();
        assert_eq!((done.quotes, done.answers, done.lost), (each, 2 * each, 0));
        assert_eq!((strategy.sent, strategy.unsent, strategy.answered), (each, 0, each));
    }
    check_run(&master);
    let cached = cached.join().unwrap().unwrap();
    assert_eq!((cached.applied, cached.known, cached.others, cached.lost), (4 * QUOTES, 0, 0, 0));
    let state = Store::open_read_only(&store).unwrap().load().unwrap();
    for number in 0..STRATEGIES {
        assert!(state.quote(number).is_some());
        assert_eq!(
            orders_in(&store, number),
            vec![(1, "accepted".to_owned(), true); usize::try_from(each).unwrap()]
        );
        assert_eq!(state.orders(number).count(), 0, "none of them may still change");
        // It buys and sells in turn.
        let (_, position) = state.positions(number).next().unwrap();
        assert_eq!(position.quantity, i64::from(!each.is_multiple_of(2)));
    }
}

/// A strategy in a separate thread.
fn start_strategy(
    master: &MasterThread,
    number: u32,
    mut strategy: impl Strategy + 'static,
) -> thread::JoinHandle<lowlat_node::strategy::StrategyDone> {
    let name = format!("s{number}");
    let join = lowlat_node::strategy::join(
        &name,
        "strategy",
        Strategies::Only(vec![number]),
        &[number],
        RING_BYTES,
        Wait::Parked,
    );
    let node = master.join(&join);
    thread::spawn(move || lowlat_node::strategy::run(node, number, &mut strategy).unwrap())
}

#[test]
fn md_and_td_give_the_same_result_in_one_loop() {
    for wait in [Wait::Parked, Wait::Fast] {
        let master = master();
        let platform = start_platform(&master, wait);
        let strategies: Vec<_> =
            (0..STRATEGIES).map(|number| start_strategy(&master, number, OnEachRecord::of(number))).collect();
        master.begin();
        // It ends when its schedule has ended, and td continues.
        master.expect("md leaves", |happened| matches!(happened, Happened::Left { name } if name == "md"));
        until("all answers are read", || read_by(&master, "strategy") == 3 * QUOTES);
        master.with(|master, _| master.stop());
        let (md, td) = platform.join().unwrap();
        assert_eq!((md.quotes, td.orders, td.missing, td.lost), (QUOTES, QUOTES, 0, 0));
        for strategy in strategies {
            strategy.join().unwrap();
        }
        check_run(&master);
    }
}

/// Sends at ten times the price.
struct FarOff;

impl Strategy for FarOff {
    fn on_quote(&mut self, orders: &mut Orders<'_>, seen: &QuoteSeen) {
        orders.send(seen.instrument, Side::Buy, seen.quote.ask * 10, 1).unwrap();
    }

    fn on_answer(&mut self, _: &mut Orders<'_>, _: &AnswerSeen) {}
}

#[test]
fn prices_are_checked_against_the_market_that_td_reads() {
    let master = master();
    let md = start_md(&master);
    let td = start_strict_td(&master, 100);
    let near = start_strategy(&master, 0, OnEachRecord::of(0));
    let far = start_strategy(&master, 1, FarOff);
    master.begin();
    md.join().unwrap();
    let each = QUOTES / u64::from(STRATEGIES);
    until("all orders are answered", || answered(&master) == 2 * each);
    master.with(|master, _| master.stop());
    let td = td.join().unwrap();
    // An order may be read before the first quote of its instrument.
    assert!((each - 1..=each).contains(&td.rejected), "{td:?}");
    near.join().unwrap();
    far.join().unwrap();
}

/// Computes for a long time.
struct Slow;

impl Strategy for Slow {
    fn on_quote(&mut self, _: &mut Orders<'_>, _: &QuoteSeen) {
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_host_asks_its_master_to_move_out_a_slow_strategy() {
    let master = master();
    let md = start_md(&master);
    let node = master.join(&lowlat_node::strategy::join(
        "host",
        "host",
        Strategies::Only(vec![1]),
        &[1],
        RING_BYTES,
        Wait::Parked,
    ));
    let host = thread::spawn(move || {
        let budget = StrategyBudget { call_ns_max: 1_000_000, overruns_max: 20, ..StrategyBudget::default() };
        let mut host = StrategyHost::new(budget);
        host.add(1, &[1], Box::new(Slow)).unwrap();
        roles::host::run(node, &mut host, &mut |_| ()).unwrap()
    });
    master.begin();
    let said = format!("{}1", roles::host::MOVE_OUT);
    until("the master is notified", || {
        let said = said.clone();
        master.with(move |_, happened| {
            happened
                .iter()
                .any(|one| matches!(one, Happened::Said { name, text } if name == "host" && *text == said))
        })
    });
    master.with(|master, _| master.stop());
    md.join().unwrap();
    assert_eq!(host.join().unwrap().moved_out, 1);
}

#[test]
fn a_restarted_strategy_gets_its_state_from_cached() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("state");
    let (mut cached, _) = Cached::open(&store).unwrap();
    cached.state.begin_run();
    let order =
        Order { number: 1, scheduled_ns: 1, received_ns: 2, price: 100, quantity: 1, ..Order::default() };
    let seen =
        |stream, key, source, what| RecordSeen { stream, sequence: 1, generated_ns: 3, key, source, what };
    assert!(cached.state.apply(&seen("orders.s0", 0, 0, Payload::Order(order))));
    let answer = Answer {
        order_number: 1,
        outcome: Outcome::Filled,
        received_ns: 4,
        price: 100,
        quantity: 1,
        instrument: 0,
        side: Side::Buy,
    };
    assert!(cached.state.apply(&seen("td", 0, 9, Payload::Answer(answer))));
    cached.flush().unwrap();
    let master = master();
    let join = lowlat_node::strategy::join(
        "s0",
        "strategy",
        Strategies::Only(vec![0]),
        &[0],
        RING_BYTES,
        Wait::Parked,
    );
    let number = 0;
    let mut strategy = OnEachRecord::of(0);
    for is_restored in [false, true] {
        let node = master.join(&join);
        assert_eq!(lowlat_trade::cached::restore(&node, number, &store, &mut strategy).unwrap(), is_restored);
        assert_eq!(strategy.sent, u64::from(is_restored), "it next sells what was bought");
    }
}

/// After as many orders as fill a lap of its ring, or one less or more: td must not mistake its next order for
/// a known one.
#[test]
fn a_restarted_strategy_is_answered_at_any_stream_position() {
    const CAPACITY_BYTES: u64 = 4096;
    let master = master();
    let td = start_td(&master);
    master.begin();
    let join = lowlat_node::strategy::join(
        "s0",
        "strategy",
        Strategies::Only(vec![0]),
        &[0],
        CAPACITY_BYTES,
        Wait::Parked,
    );
    let stamp = Stamp { kind: kind::ORDER, schema: SCHEMA, ..Stamp::default() };
    let (mut number, lap) = (0, CAPACITY_BYTES / 128);
    for count in (lap - 3..=lap + 1).chain([2 * lap, 1]) {
        let mut strategy = master.join(&join);
        for _ in 0..count {
            number += 1;
            let order =
                Order { number, scheduled_ns: 1, received_ns: 2, price: 1, quantity: 1, ..Order::default() };
            until("there is room", || {
                // Receives td's connection.
                strategy.poll(&mut |_, _| ());
                strategy.publisher().publish(&stamp, &order.encode()).is_ok()
            });
        }
        until("all orders are answered", || answered(&master) == number);
    }
    master.with(|master, _| master.stop());
    let td = td.join().unwrap();
    assert_eq!((td.orders, td.known, td.lost), (number, 0, 0));
}

#[test]
fn a_strategy_host_gives_the_same_result_in_one_process() {
    let master = master();
    let md = start_md(&master);
    let td = start_td(&master);
    let numbers: Vec<u32> = (0..STRATEGIES).collect();
    let node = master.join(&lowlat_node::strategy::join(
        "host",
        "host",
        Strategies::Only(numbers.clone()),
        &numbers,
        RING_BYTES,
        Wait::Parked,
    ));
    let host = thread::spawn(move || {
        // A shared machine may preempt the CPU during any call.
        let budget =
            StrategyBudget { call_ns_max: u64::MAX, queue_max: 1 << 12, ..StrategyBudget::default() };
        let mut host = StrategyHost::new(budget);
        for number in numbers {
            host.add(number, &[number], Box::new(OnEachRecord::of(number))).unwrap();
        }
        let done = roles::host::run(node, &mut host, &mut |number| panic!("{number} moved out")).unwrap();
        (done, host)
    });
    master.begin();
    until("all answers are read", || read_by(&master, "host") == 3 * QUOTES);
    master.with(|master, _| master.stop());
    md.join().unwrap();
    assert_eq!(td.join().unwrap().orders, QUOTES);
    let (done, host) = host.join().unwrap();
    assert_eq!((done.records, done.lost, done.moved_out), (3 * QUOTES, 0, 0));
    for number in 0..STRATEGIES {
        let usage = host.usage(number).unwrap();
        assert_eq!((usage.calls, usage.dropped), (3 * QUOTES / u64::from(STRATEGIES), 0));
    }
    check_run(&master);
}

/// Sends an order for each quote, and counts decisions by order.
#[derive(Default)]
struct Bookkeeper {
    sender: OnEachRecord,
    decisions: BTreeMap<u64, u32>,
    filled: BTreeMap<u64, u32>,
}

impl Strategy for Bookkeeper {
    fn on_quote(&mut self, orders: &mut Orders<'_>, seen: &QuoteSeen) {
        self.sender.on_quote(orders, seen);
    }

    fn on_answer(&mut self, _: &mut Orders<'_>, seen: &AnswerSeen) {
        let is_fill = seen.answer.outcome == Outcome::Filled;
        let counted = if is_fill { &mut self.filled } else { &mut self.decisions };
        *counted.entry(seen.answer.order_number).or_default() += 1;
    }
}

const TD_SOCKET: &str = "LOWLAT_TEST_TD_SOCKET";

/// Not a test: td as a separate process, for the next test, which kills it.
#[test]
fn td_process() {
    let Some(socket) = std::env::var_os(TD_SOCKET) else { return };
    threads::run_td(Path::new(&socket));
}

fn spawn_td(master: &MasterThread) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["pipeline::td_process", "--exact"])
        .env(TD_SOCKET, master.socket())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_repeatedly_killed_td_answers_no_order_twice() {
    const KILLS: u64 = 4;
    let master = master();
    let md = start_md(&master);
    let mut td = spawn_td(&master);
    let strategies: Vec<_> = (0..STRATEGIES)
        .map(|number| {
            let name = format!("s{number}");
            let join = lowlat_node::strategy::join(
                &name,
                "strategy",
                Strategies::Only(vec![number]),
                &[number],
                RING_BYTES,
                Wait::Parked,
            );
            let node = master.join(&join);
            thread::spawn(move || {
                let mut strategy = Bookkeeper::default();
                lowlat_node::strategy::run(node, number, &mut strategy).unwrap();
                strategy
            })
        })
        .collect();
    let joined = |epoch: u64| {
        until("td has joined", || {
            master.with(move |_, happened| {
                happened.iter().any(
                    |it| matches!(it, Happened::Joined { name, epoch: of } if name == "td" && *of == epoch),
                )
            })
        });
    };
    joined(1);
    master.begin();
    for kill in 1..=KILLS {
        until("some orders are answered", || answered(&master) >= kill * QUOTES / (KILLS + 2));
        td.kill().unwrap();
        td.wait().unwrap();
        until("the master knows", || {
            master.with(move |_, happened| {
                let deaths =
                    happened.iter().filter(|it| matches!(it, Happened::Died { name, .. } if name == "td"));
                u64::try_from(deaths.count()).unwrap() == kill
            })
        });
        // Orders wait for the successor meanwhile.
        thread::sleep(Duration::from_millis(30));
        td = spawn_td(&master);
        joined(kill + 1);
    }
    // A process that died had at most one order taken from its ring and not yet in the ledger.
    until("almost all orders are answered", || answered(&master) + KILLS >= QUOTES);
    let (mut last, mut since) = (answered(&master), Instant::now());
    while last < QUOTES && since.elapsed() < Duration::from_millis(500) {
        thread::sleep(Duration::from_millis(20));
        let now = answered(&master);
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    let start = Instant::now();
    while read_by(&master, "strategy") < QUOTES + 2 * last {
        let nodes = master.with(|master, _| master.nodes());
        assert!(start.elapsed() < LONG, "{last} answered; {nodes:#?}");
        thread::sleep(Duration::from_millis(5));
    }
    master.with(|master, _| master.stop());
    md.join().unwrap();
    td.wait().unwrap();
    let (mut sent, mut decided) = (0, 0);
    for strategy in strategies {
        let strategy = strategy.join().unwrap();
        sent += strategy.sender.sent;
        decided += u64::try_from(strategy.decisions.len()).unwrap();
        assert!(strategy.decisions.values().all(|count| *count == 1), "answered twice");
        assert!(strategy.filled.values().all(|count| *count == 1), "filled twice");
        assert_eq!(strategy.decisions.len(), strategy.filled.len());
    }
    assert_eq!((sent, decided), (QUOTES, last));
}
