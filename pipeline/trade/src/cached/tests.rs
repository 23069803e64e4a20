use super::*;
use lowlat_node::{
    records::{Answer, Order, OrderAction, Outcome, Quote, Reject, Side},
    state::{Payload, Position, Progress, RecordSeen, State},
};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Filled quantity and progress of each order of a strategy in the last run, and whether its record was seen.
fn orders_in(store: &Path, strategy: u32) -> Vec<(u32, String, bool)> {
    let store = rusqlite::Connection::open(store).unwrap();
    let wanted = "select filled, progress, is_seen from orders where strategy = ? and run = (select max(run) from runs)";
    let mut statement = store.prepare(wanted).unwrap();
    let rows = statement.query_map([strategy], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn quote(sequence: u64, instrument: u32, bid: i64) -> RecordSeen<'static> {
    let what = Payload::Quote(Quote { bid, ..Quote::default() });
    RecordSeen { stream: "md", sequence, generated_ns: 5, key: instrument, source: 1, what }
}

fn order(sequence: u64, strategy: u32, number: u64, quantity: u32) -> RecordSeen<'static> {
    let what = Payload::Order(Order { number, quantity, price: 10, ..Order::default() });
    let stream = ["orders.0", "orders.1", "orders.2"][usize::try_from(strategy).unwrap()];
    RecordSeen { stream, sequence, generated_ns: 6, key: 4, source: strategy, what }
}

fn answer(
    sequence: u64,
    strategy: u32,
    order_number: u64,
    outcome: Outcome,
    quantity: u32,
) -> RecordSeen<'static> {
    let what = Payload::Answer(Answer {
        order_number,
        outcome,
        received_ns: 7,
        price: 10,
        quantity,
        instrument: 4,
        side: Side::Buy,
    });
    RecordSeen { stream: "td", sequence, generated_ns: 8, key: strategy, source: 9, what }
}

fn some_records() -> [RecordSeen<'static>; 8] {
    [
        quote(1, 4, 100),
        quote(2, 5, 200),
        quote(3, 4, 101),
        order(1, 2, 1, 5),
        answer(1, 2, 1, Outcome::Accepted, 5),
        answer(2, 2, 1, Outcome::Filled, 3),
        order(2, 2, 2, 1),
        answer(3, 2, 2, Outcome::Rejected(Reject::BadPrice), 1),
    ]
}

#[test]
fn the_state_holds_the_latest_of_everything() {
    let mut state = State::default();
    assert!(some_records().iter().all(|record| state.apply(record)));
    assert_eq!(state.quote(4).unwrap().quote.bid, 101);
    let orders: Vec<_> =
        state.orders(2).map(|(number, order)| (number, order.progress, order.filled)).collect();
    assert_eq!(orders, [(1, Progress::Accepted, 3), (2, Progress::Rejected, 0)]);
    assert_eq!(state.positions(2).collect::<Vec<_>>(), [(4, &Position { quantity: 3, cost: 30 })]);
    let before = state.clone();
    assert!(!some_records().iter().any(|record| state.apply(record)), "again");
    assert_eq!(state, before);
    assert_eq!((state.unsaved(), state.last_sequence("td")), (8, Some(3)));
    state.saved();
    assert_eq!(state.orders(2).map(|(number, _)| number).collect::<Vec<_>>(), [1], "the open one is kept");
    // A second order with a used number changes nothing of the first.
    state.apply(&answer(4, 2, 1, Outcome::Rejected(Reject::DuplicateNumber), 5));
    assert_eq!(state.orders(2).next().unwrap().1.progress, Progress::Accepted);
}

/// Also in the store, from which a strategy's successor learns it.
#[test]
fn changed_orders_and_lost_answers_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached.sqlite");
    let (mut cached, _) = Cached::open(&path).unwrap();
    let state = &mut cached.state;
    for number in 1..=4 {
        state.apply(&order(number, 2, number, 5));
        state.apply(&answer(number, 2, number, Outcome::Accepted, 5));
    }
    let mut cancel = order(5, 2, 1, 0);
    cancel.what = Payload::Order(Order { number: 1, action: OrderAction::Cancel, ..Order::default() });
    state.apply(&cancel);
    state.apply(&answer(5, 2, 2, Outcome::Cancelled, 2));
    state.apply(&answer(6, 2, 3, Outcome::Replaced, 9));
    state.apply(&answer(7, 2, 1, Outcome::NotChanged(Reject::UnknownOrder), 0));
    state.apply(&answer(8, 2, 9, Outcome::NotChanged(Reject::UnknownOrder), 0));
    let seen = |state: &State| -> Vec<_> {
        state.orders(2).map(|(number, order)| (number, order.progress, order.quantity)).collect()
    };
    let [accepted, cancelled] = [Progress::Accepted, Progress::Cancelled];
    assert_eq!(seen(state), [(1, accepted, 5), (2, cancelled, 5), (3, accepted, 9), (4, accepted, 5)]);
    state.lose_answers();
    state.apply(&answer(20, 2, 4, Outcome::Cancelled, 5));
    cached.flush().unwrap();
    drop(cached);
    let stored = Store::open_read_only(&path).unwrap().load().unwrap();
    assert_eq!(seen(&stored), [(1, Progress::Unknown, 5), (3, Progress::Unknown, 9)]);
    assert!(stored.orders(2).all(|(_, order)| order.is_open()));
}

#[test]
fn an_answer_may_come_before_its_order() {
    let mut state = State::default();
    state.apply(&answer(1, 1, 1, Outcome::Accepted, 5));
    state.apply(&order(1, 1, 1, 5));
    assert_eq!(state.orders(1).next().unwrap().1.progress, Progress::Accepted);
}

/// The same with a save, or a death, between the two: the order's own record resets nothing.
#[test]
fn an_order_read_after_all_its_answers_is_still_filled() {
    for dies in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cached.sqlite");
        let (mut cached, _) = Cached::open(&path).unwrap();
        cached.state.apply(&answer(1, 1, 1, Outcome::Accepted, 5));
        cached.state.apply(&answer(2, 1, 1, Outcome::Filled, 5));
        cached.flush().unwrap();
        if dies {
            cached = Cached::open(&path).unwrap().0;
        }
        cached.state.apply(&order(1, 1, 1, 5));
        cached.flush().unwrap();
        assert_eq!(cached.state.orders(1).count(), 0, "nothing more follows");
        assert_eq!(orders_in(&path, 1), [(5, "accepted".to_owned(), true)]);
    }
}

/// A run may last for months: its open orders and the last ones stay.
#[test]
fn finished_orders_are_forgotten_after_a_thousand_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached.sqlite");
    let (mut cached, _) = Cached::open(&path).unwrap();
    let mut sequence = 0;
    for number in 1..=2500 {
        cached.state.apply(&order(number, 1, number, 5));
        // The second one stays open.
        let filled = Some((Outcome::Filled, 5)).filter(|_| number != 2);
        for (outcome, quantity) in [(Outcome::Accepted, 5)].into_iter().chain(filled) {
            sequence += 1;
            cached.state.apply(&answer(sequence, 1, number, outcome, quantity));
        }
        if number % 500 == 0 {
            cached.flush().unwrap();
        }
    }
    let orders = orders_in(&path, 1);
    assert_eq!((orders.len(), orders[0].0), (1001, 0), "the open one and the last thousand");
    assert_eq!(cached.state.orders(1).map(|(number, _)| number).collect::<Vec<_>>(), [2]);
    assert_eq!(cached.state.positions(1).next().unwrap().1.quantity, 2499 * 5);
}

#[test]
fn saved_state_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached.sqlite");
    let (mut cached, opened) = Cached::open(&path).unwrap();
    assert_eq!(opened, None);
    for record in &some_records() {
        cached.state.apply(record);
    }
    cached.flush().unwrap();
    assert_eq!(cached.state.unsaved(), 0);
    cached.state.apply(&quote(4, 4, 999));
    // Not saved: the process dies.
    assert_eq!(orders_in(&path, 2).len(), 2, "all orders are in the store");
    drop(cached);
    let (mut cached, opened) = Cached::open(&path).unwrap();
    assert_eq!(opened, None);
    assert_eq!(cached.state.quote(4).unwrap().quote.bid, 101);
    assert_eq!(cached.state.orders(2).map(|(number, _)| number).collect::<Vec<_>>(), [1]);
    assert_eq!(cached.state.positions(2).next().unwrap().1.quantity, 3);
    assert!(!cached.state.apply(&some_records()[5]), "a repeated fill is recognized");
    assert!(cached.state.apply(&quote(4, 4, 999)), "unsaved records are applied when read again");
}

#[test]
fn a_new_run_starts_with_the_positions_of_the_previous_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached.sqlite");
    for run in 1..4 {
        let (mut cached, _) = Cached::open(&path).unwrap();
        cached.state.begin_run();
        assert!(some_records().iter().all(|record| cached.state.apply(record)), "sequences restart");
        cached.flush().unwrap();
        assert_eq!(cached.state.positions(2).next().unwrap().1.quantity, 3 * run);
        assert_eq!(orders_in(&path, 2).len(), 2);
    }
}

/// Numbers of strategies follow the order of joining; their names and positions do not.
#[test]
fn positions_follow_the_strategy_s_name_from_run_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached.sqlite");
    let of = |node: &'static str, source: u32, sequence: u64| RecordSeen {
        stream: node,
        source,
        ..order(sequence, 0, sequence, 5)
    };
    let (momentum, carry) = ("orders.momentum", "orders.carry");
    for (run, [first, second]) in [[momentum, carry], [carry, momentum]].into_iter().enumerate() {
        let (mut cached, _) = Cached::open(&path).unwrap();
        cached.state.begin_run();
        cached.state.reserved = 2;
        // One fill is read, and saved, before the order that names the strategy.
        let number = |node| if node == first { 2 } else { 3 };
        cached.state.apply(&answer(1, number(momentum), 1, Outcome::Filled, 7));
        cached.state.apply(&answer(2, 1, 1, Outcome::Filled, 9));
        cached.flush().unwrap();
        let (mut cached, _) = Cached::open(&path).unwrap();
        cached.state.reserved = 2;
        cached.state.apply(&of(first, 2, 1));
        cached.state.apply(&of(second, 3, 1));
        cached.state.apply(&answer(3, number(carry), 1, Outcome::Filled, 1));
        cached.flush().unwrap();
        let runs = i64::try_from(run).unwrap() + 1;
        let stored = Store::open_read_only(&path).unwrap().load().unwrap();
        let found: Vec<_> =
            stored.positions.iter().map(|((name, _), of)| (name.as_str(), of.quantity)).collect();
        assert_eq!(found, [("carry", runs), ("momentum", 7 * runs), ("s1", 9 * runs)]);
        let of_number = |strategy| stored.positions(strategy).next().unwrap().1.quantity;
        assert_eq!((of_number(number(carry)), of_number(number(momentum))), (runs, 7 * runs));
    }
}

#[test]
fn a_damaged_file_is_set_aside_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached.sqlite");
    std::fs::write(&path, b"this is no database, and long enough to be told from an empty one").unwrap();
    let (mut cached, opened) = Cached::open(&path).unwrap();
    let to = opened.unwrap();
    assert!(to.to_string_lossy().ends_with("cached.sqlite.damaged-1") && to.exists());
    for record in &some_records() {
        cached.state.apply(record);
    }
    cached.flush().unwrap();
    drop(cached);
    // Damage in the middle: pages of the tables, after the first page.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let (cached, opened) = Cached::open(&path).unwrap();
    assert!(opened.unwrap().to_string_lossy().ends_with(".damaged-2"));
    assert!(cached.state.quote(4).is_none());
}

#[test]
fn files_of_other_programs_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.sqlite");
    let theirs = rusqlite::Connection::open(&path).unwrap();
    theirs.execute_batch("create table t (x); insert into t values (1);").unwrap();
    let error = Cached::open(&path).unwrap_err().to_string();
    assert!(error.contains("database of another program"), "{error}");
    let path = folder.path().join("later.sqlite");
    drop(Cached::open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = Cached::open(&path).unwrap_err().to_string();
    assert!(error.contains("found tables of version 99, expected 2"), "{error}");
    let error = Cached::open(Path::new("/nonexistent/x.sqlite")).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/x.sqlite: "), "{error}");
}

#[test]
fn a_full_disk_and_a_lock_are_reported_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached.sqlite");
    let (mut cached, _) = Cached::open(&path).unwrap();
    // SQLite's own limit simulates the full disk.
    cached.store.connection().pragma_update(None, "max_page_count", 1).unwrap();
    (0..5000)
        .for_each(|number| _ = cached.state.apply(&quote(number + 1, u32::try_from(number).unwrap(), 1)));
    let error = cached.flush().unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert_eq!(cached.state.unsaved(), 5000);
    cached.store.connection().pragma_update(None, "max_page_count", 1 << 20).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let error = cached.flush().unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    other.execute_batch("rollback").unwrap();
    cached.flush().unwrap();
    assert_eq!(Store::open_read_only(&path).unwrap().load().unwrap().quote(4999).unwrap().sequence, 5000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Any records, with saves and deaths at any point: positions equal the sums of fills.
    #[test]
    fn positions_are_sums_of_fills(
        fills in proptest::collection::vec((0_u32..3, 0_u32..4, 0_u32..100, any::<bool>(), 0_u8..8), 1..40),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cached.sqlite");
        let (mut cached, _) = Cached::open(&path).unwrap();
        let mut expected = BTreeMap::<(u32, u32), Position>::new();
        let mut all = Vec::new();
        for (sequence, (strategy, instrument, quantity, is_sell, then)) in (1..).zip(fills) {
            let mut record = answer(sequence, strategy, sequence, Outcome::Filled, quantity);
            let price = i64::try_from(sequence).unwrap() * 7;
            let side = if is_sell { Side::Sell } else { Side::Buy };
            if let Payload::Answer(answer) = &mut record.what {
                *answer = Answer { price, instrument, side, ..*answer };
            }
            let signed = i64::from(quantity) * if is_sell { -1 } else { 1 };
            let position = expected.entry((strategy, instrument)).or_default();
            position.quantity += signed;
            position.cost += i128::from(signed) * i128::from(price);
            all.push(record);
            cached.state.apply(&record);
            match then {
                0 | 1 => cached.flush().unwrap(),
                2 => {
                    // Death: the streams return again what they have.
                    drop(cached);
                    cached = Cached::open(&path).unwrap().0;
                    for record in &all {
                        cached.state.apply(record);
                    }
                }
                _ => {}
            }
        }
        for ((strategy, instrument), position) in expected {
            let found = cached.state.positions(strategy).find(|(found, _)| *found == instrument).unwrap().1;
            prop_assert_eq!(*found, position);
        }
    }
}
