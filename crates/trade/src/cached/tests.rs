use super::{
    state::{Seen, State, What},
    *,
};
use crate::records::{Answer, Order, Outcome, Quote, Reject, Side};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn quote(sequence: u64, instrument: u32, bid: i64) -> Seen<'static> {
    let what = What::Quote(Quote { bid, ..Quote::default() });
    Seen { stream: "md", sequence, generated_ns: 5, key: instrument, source: 1, what }
}

fn order(sequence: u64, strategy: u32, number: u64, quantity: u32) -> Seen<'static> {
    let what = What::Order(Order { number, quantity, price: 10, ..Order::default() });
    let stream = ["orders.0", "orders.1", "orders.2"][usize::try_from(strategy).unwrap()];
    Seen { stream, sequence, generated_ns: 6, key: 4, source: strategy, what }
}

fn answer(sequence: u64, strategy: u32, order_number: u64, outcome: Outcome, quantity: u32) -> Seen<'static> {
    let what = What::Answer(Answer {
        order_number,
        outcome,
        received_ns: 7,
        price: 10,
        quantity,
        instrument: 4,
        side: Side::Buy,
    });
    Seen { stream: "td", sequence, generated_ns: 8, key: strategy, source: 9, what }
}

fn some_records() -> [Seen<'static>; 8] {
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
fn state_is_the_latest_of_everything() {
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
    // A second order of a number that was used changes nothing of the first.
    state.apply(&answer(4, 2, 1, Outcome::Rejected(Reject::DuplicateNumber), 5));
    assert_eq!(state.orders(2).next().unwrap().1.progress, Progress::Accepted);
}

#[test]
fn an_answer_may_come_before_its_order() {
    let mut state = State::default();
    state.apply(&answer(1, 1, 1, Outcome::Accepted, 5));
    state.apply(&order(1, 1, 1, 5));
    assert_eq!(state.orders(1).next().unwrap().1.progress, Progress::Accepted);
}

#[test]
fn what_is_saved_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached.sqlite");
    let (mut cached, opened) = Cached::open(&path).unwrap();
    assert_eq!(opened, Opened::Made);
    for record in &some_records() {
        cached.apply(record);
    }
    cached.flush().unwrap();
    assert_eq!(cached.unsaved(), 0);
    cached.apply(&quote(4, 4, 999));
    // Not saved: the process dies.
    let mut reader = Store::open_read_only(&path).unwrap();
    assert_eq!(reader.load_all().unwrap().orders(2).count(), 2, "all orders are in the store");
    drop((cached, reader));
    let (mut cached, opened) = Cached::open(&path).unwrap();
    assert_eq!(opened, Opened::Found);
    assert_eq!(cached.state(4).unwrap().quote.bid, 101);
    assert_eq!(cached.orders(2).map(|(number, _)| number).collect::<Vec<_>>(), [1]);
    assert_eq!(cached.positions(2).next().unwrap().1.quantity, 3);
    assert!(!cached.apply(&some_records()[5]), "a fill that comes again is known");
    assert!(cached.apply(&quote(4, 4, 999)), "what was not saved is taken when it comes again");
}

#[test]
fn a_new_run_begins_with_the_positions_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached.sqlite");
    for run in 1..4 {
        let (mut cached, _) = Cached::open(&path).unwrap();
        cached.begin_run();
        assert!(some_records().iter().all(|record| cached.apply(record)), "sequences start again");
        cached.flush().unwrap();
        assert_eq!(cached.positions(2).next().unwrap().1.quantity, 3 * run);
        assert_eq!(Store::open_read_only(&path).unwrap().load_all().unwrap().orders(2).count(), 2);
    }
}

#[test]
fn a_damaged_file_is_set_aside_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached.sqlite");
    std::fs::write(&path, b"this is no database, and long enough to be told from an empty one").unwrap();
    let (mut cached, opened) = Cached::open(&path).unwrap();
    let Opened::SetAside { to } = opened else { panic!("{opened:?}") };
    assert!(to.to_string_lossy().ends_with("cached.sqlite.damaged-1") && to.exists());
    for record in &some_records() {
        cached.apply(record);
    }
    cached.flush().unwrap();
    drop(cached);
    // Damage in the middle: pages of the tables, behind the first one.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let (cached, opened) = Cached::open(&path).unwrap();
    assert!(matches!(opened, Opened::SetAside { to } if to.to_string_lossy().ends_with(".damaged-2")));
    assert!(cached.state(4).is_none());
}

#[test]
fn others_files_are_left_alone() {
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
    assert!(error.contains("found tables of version 99, expected 1"), "{error}");
    let error = Cached::open(Path::new("/nonexistent/x.sqlite")).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/x.sqlite: "), "{error}");
}

#[test]
fn a_full_disk_and_a_lock_are_told_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cached.sqlite");
    let (mut cached, _) = Cached::open(&path).unwrap();
    // SQLite's own limit stands for the disk.
    cached.store.connection().pragma_update(None, "max_page_count", 1).unwrap();
    (0..5000).for_each(|number| _ = cached.apply(&quote(number + 1, u32::try_from(number).unwrap(), 1)));
    let error = cached.flush().unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert_eq!(cached.unsaved(), 5000);
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

    /// Whatever comes, with saves and deaths anywhere: positions are the sums of fills.
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
            if let What::Answer(answer) = &mut record.what {
                *answer = Answer { price, instrument, side, ..*answer };
            }
            let signed = i64::from(quantity) * if is_sell { -1 } else { 1 };
            let position = expected.entry((strategy, instrument)).or_default();
            position.quantity += signed;
            position.cost += i128::from(signed) * i128::from(price);
            all.push(record);
            cached.apply(&record);
            match then {
                0 | 1 => cached.flush().unwrap(),
                2 => {
                    // Death: the streams give again what they hold.
                    drop(cached);
                    cached = Cached::open(&path).unwrap().0;
                    for record in &all {
                        cached.apply(record);
                    }
                }
                _ => {}
            }
        }
        for ((strategy, instrument), position) in expected {
            let found = cached.positions(strategy).find(|(found, _)| *found == instrument).unwrap().1;
            prop_assert_eq!(*found, position);
        }
    }
}
