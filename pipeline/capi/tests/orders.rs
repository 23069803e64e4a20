//! Orders and their changes, and what td's ledger has of them, called like from C.
#![allow(clippy::borrow_as_ptr, reason = "as C gives addresses")]

use crate::master_thread::{self, MasterThread, until};
use crate::nodes::{c_path, join, options, reads_of, strategy_options, words};
use lowlat_capi::*;
use lowlat_ipc::region::Region as _;
use lowlat_node::{Wait, ledger, records};
use lowlat_trade::{
    roles::{
        self,
        td::{TdDone, TdOptions},
    },
    td::{BookRules, Limits, Matching, Rules},
};
use std::{
    ffi::{CStr, c_void},
    ptr,
    sync::atomic::Ordering,
    thread::{self, JoinHandle},
};

/// Starts a td whose orders the quotes fill; nobody queues ahead of them.
pub fn start_td_of_quotes(master: &MasterThread) -> JoinHandle<TdDone> {
    let matching = Matching::Quotes(BookRules { queue_per_mille: 0, ..BookRules::default() });
    let rules = Rules { instruments: 4, matching, limits: Limits::default() };
    let node = master.join(&roles::td::join(1 << 20, &rules, Wait::Parked));
    thread::spawn(move || roles::td::run(node, &TdOptions { rules, gateway: None }).unwrap())
}

/// What a handler has read.
#[derive(Default)]
struct Seen {
    has_begun: bool,
    answers: Vec<Answer>,
    orders: Vec<Order>,
}

impl Seen {
    /// (number, outcome, price, quantity) of each answer from this one on.
    fn answers_from(&self, first: usize) -> Vec<(u64, u32, i64, u32)> {
        let answers = self.answers.iter().skip(first);
        answers.map(|answer| (answer.order_number, answer.outcome, answer.price, answer.quantity)).collect()
    }
}

unsafe extern "C" fn see(user: *mut c_void, node: *mut Node, event: *const Event) {
    // SAFETY: `poll` passes a `Seen`, and the library an event, with a record if it is of one.
    let (seen, event) = unsafe { (&mut *user.cast::<Seen>(), &*event) };
    seen.has_begun |= event.kind == LOWLAT_EVENT_BEGIN;
    // SAFETY: as above; NULL if the event is not of a record.
    let Some(record) = (unsafe { event.record.as_ref() }) else { return };
    let (mut answer, mut order, mut count) = (Answer::default(), Order::default(), usize::MAX);
    // SAFETY: the record is valid in the handler, the node is the one that is polled, and the rest is local.
    unsafe {
        if record.stamp.kind == LOWLAT_KIND_ORDER {
            assert_eq!(lowlat_order_of(record, &mut order), Status::Ok);
            seen.orders.push(order);
        } else {
            assert_eq!(lowlat_answer_of(record, &mut answer), Status::Ok);
            seen.answers.push(answer);
            let looked = lowlat_open_orders(node, ptr::null_mut(), 0, &mut count);
            assert_eq!(looked, if count == 0 { Status::Ok } else { Status::TooMany }, "in a handler");
        }
    }
}

fn poll_until(node: *mut Node, seen: &mut Seen, what: &str, is_so: impl Fn(&Seen) -> bool) {
    until(what, || {
        // SAFETY: the node lives, and what was seen outlives the call.
        unsafe {
            assert_eq!(lowlat_wait(node, lowlat_now_ns() + 20_000_000), Status::Ok);
            assert_eq!(lowlat_poll(node, Some(see), ptr::from_mut(seen).cast(), ptr::null_mut()), Status::Ok);
        }
        is_so(seen)
    });
}

fn open_orders(node: *mut Node) -> Vec<OpenOrder> {
    let (mut orders, mut count) = ([OpenOrder::default(); 4], 0);
    // SAFETY: the node lives, and the rest is local.
    assert_eq!(unsafe { lowlat_open_orders(node, orders.as_mut_ptr(), 4, &mut count) }, Status::Ok);
    orders[..count].to_vec()
}

fn positions(node: *mut Node) -> Vec<(u32, i64)> {
    let (mut positions, mut count) = ([Position::default(); 4], 0);
    // SAFETY: the node lives, and the rest is local.
    assert_eq!(unsafe { lowlat_positions(node, positions.as_mut_ptr(), 4, &mut count) }, Status::Ok);
    positions[..count].iter().map(|position| (position.instrument, position.quantity)).collect()
}

fn join_as_strategy(socket: &CStr) -> *mut Node {
    let mut node = ptr::null_mut();
    let options = StrategyNodeOptions { wait: LOWLAT_WAIT_PARKED, ..strategy_options(socket, c"s") };
    // SAFETY: all is local, and outlives the call.
    assert_eq!(unsafe { lowlat_join_strategy(&options, &mut node) }, Status::Ok);
    node
}

#[test]
fn orders_rest_are_changed_and_looked_up() {
    let master = MasterThread::start(|options| options.areas = roles::areas());
    let socket = c_path(&master.socket());
    let td = start_td_of_quotes(&master);
    let md = join(&NodeOptions { writes: c"md".as_ptr(), ..options(&socket, c"md") }).unwrap();
    let requests = reads_of(c"orders.*".as_ptr());
    let reader = NodeOptions { reads: &raw const requests, reads_count: 1, ..options(&socket, c"reader") };
    let (reader, node) = (join(&reader).unwrap(), join_as_strategy(&socket));
    master.begin();
    let (mut at_md, mut at_reader, mut seen) = (Seen::default(), Seen::default(), Seen::default());
    poll_until(md, &mut at_md, "md begins", |seen| seen.has_begun);
    poll_until(node, &mut seen, "the strategy begins", |seen| seen.has_begun);

    let mut order = Order { instrument: 1, price: 100, quantity: 5, ..Order::default() };
    // SAFETY: here and below: the node lives, and the rest is local.
    assert_eq!(unsafe { lowlat_send_order(node, ptr::null(), &mut order) }, Status::Ok);
    let number = order.number;
    poll_until(node, &mut seen, "it is accepted", |seen| !seen.answers.is_empty());
    assert_eq!(seen.answers_from(0), [(number, LOWLAT_OUTCOME_ACCEPTED, 100, 5)]);
    let resting =
        OpenOrder { number, price: 100, quantity: 5, filled: 0, instrument: 1, side: LOWLAT_SIDE_BUY };
    // td enters it after its answer.
    until("it is entered", || open_orders(node) == [resting]);
    assert_eq!(positions(node), []);
    let mut count = 7;
    // SAFETY: as above.
    unsafe {
        assert_eq!(lowlat_open_orders(node, ptr::null_mut(), 0, &mut count), Status::TooMany);
        let text = words(lowlat_last_error());
        assert!(count == 1 && text.contains("cannot copy 1 orders: the array has space for 0"), "{text}");
        assert_eq!(lowlat_open_orders(node, ptr::null_mut(), 1, &mut count), Status::Argument);
        assert_eq!(lowlat_positions(node, ptr::null_mut(), 0, ptr::null_mut()), Status::Argument);
    }

    // SAFETY: as above.
    assert_eq!(unsafe { lowlat_replace_order(node, ptr::null(), 1, number, 101, 7) }, Status::Ok);
    poll_until(node, &mut seen, "it is replaced", |seen| seen.answers.len() > 1);
    assert_eq!(seen.answers_from(1), [(number, LOWLAT_OUTCOME_REPLACED, 101, 7)]);
    until("the change is entered", || {
        open_orders(node) == [OpenOrder { price: 101, quantity: 7, ..resting }]
    });

    let r#type = LOWLAT_TYPE_IMMEDIATE_OR_CANCEL;
    let mut at_once = Order { side: LOWLAT_SIDE_SELL, price: 200, quantity: 3, r#type, ..order };
    // SAFETY: as above.
    assert_eq!(unsafe { lowlat_send_order(node, ptr::null(), &mut at_once) }, Status::Ok);
    poll_until(node, &mut seen, "the other is cancelled", |seen| seen.answers.len() > 3);
    let of_it =
        [LOWLAT_OUTCOME_ACCEPTED, LOWLAT_OUTCOME_CANCELLED].map(|outcome| (number + 1, outcome, 200, 3));
    assert_eq!(seen.answers_from(2), of_it);

    // Somebody sells 4 where it buys.
    let stamp = RecordStamp {
        kind: LOWLAT_KIND_QUOTE,
        schema: LOWLAT_SCHEMA,
        instrument: 1,
        ..RecordStamp::default()
    };
    let payload = records::Quote { ask: 101, ask_size: 4, ..records::Quote::default() }.encode();
    // SAFETY: as above.
    let published =
        unsafe { lowlat_publish(md, &stamp, payload.as_ptr().cast(), payload.len(), ptr::null_mut()) };
    assert_eq!(published, Status::Ok);
    poll_until(node, &mut seen, "it is filled", |seen| seen.answers.len() > 4);
    assert_eq!(seen.answers_from(4), [(number, LOWLAT_OUTCOME_FILLED, 101, 4)]);
    until("the fill is entered", || positions(node) == [(1, 4)]);
    assert_eq!(open_orders(node), [OpenOrder { price: 101, quantity: 7, filled: 4, ..resting }]);

    // SAFETY: as above.
    unsafe {
        assert_eq!(lowlat_cancel_order(node, ptr::null(), 1, number), Status::Ok);
        assert_eq!(lowlat_cancel_order(node, ptr::null(), 1, number), Status::Ok);
    }
    poll_until(node, &mut seen, "it is cancelled", |seen| seen.answers.len() > 6);
    let unknown = LOWLAT_OUTCOME_NOT_CHANGED + 6;
    assert_eq!(seen.answers_from(5), [(number, LOWLAT_OUTCOME_CANCELLED, 101, 3), (number, unknown, 0, 0)]);
    until("the end is entered", || open_orders(node).is_empty());
    assert_eq!(positions(node), [(1, 4)]);

    poll_until(reader, &mut at_reader, "all requests are read", |seen| seen.orders.len() > 4);
    let requests: Vec<_> =
        at_reader.orders.iter().map(|order| (order.number, order.action, order.r#type)).collect();
    let (new, replace, cancel) = (LOWLAT_ACTION_NEW, LOWLAT_ACTION_REPLACE, LOWLAT_ACTION_CANCEL);
    let expected = [
        (number, new, 0),
        (number, replace, 0),
        (number + 1, new, r#type),
        (number, cancel, 0),
        (number, cancel, 0),
    ];
    assert_eq!(requests, expected);

    // SAFETY: all live, and are not used any more.
    unsafe {
        for node in [md, reader, node] {
            assert_eq!(lowlat_leave(node), Status::Ok);
        }
    }
    master.with(|master, _| master.stop());
    assert_eq!(td.join().unwrap().orders, 5);
}

#[test]
fn a_ledger_in_the_middle_of_a_change_is_reported() {
    let master = MasterThread::start(|options| options.areas = roles::areas());
    let socket = c_path(&master.socket());
    let td = master.join(&master_thread::join("td", master_thread::writes("td", 4), vec![]));
    let words_of_it = td.area(ledger::AREA).unwrap().words();
    let node = join_as_strategy(&socket);
    words_of_it[ledger::words::CHANGES].store(1, Ordering::Release);
    // SAFETY: the node lives, and the rest is local.
    assert_eq!(unsafe { lowlat_open_orders(node, ptr::null_mut(), 0, &mut 0) }, Status::LedgerBusy);
    assert!(words(lowlat_last_error()).contains("hint: try again"), "{}", words(lowlat_last_error()));
    words_of_it[ledger::words::CHANGES].store(2, Ordering::Release);
    assert_eq!(open_orders(node), []);
    // SAFETY: it is not used any more.
    assert_eq!(unsafe { lowlat_leave(node) }, Status::Ok);

    words_of_it[0].store(7, Ordering::Release);
    let node = join_as_strategy(&socket);
    // SAFETY: as above.
    unsafe {
        assert_eq!(lowlat_positions(node, ptr::null_mut(), 0, &mut 0), Status::Unusable);
        assert!(words(lowlat_last_error()).contains("cannot use the ledger"));
        assert_eq!(lowlat_leave(node), Status::Ok);
    }
}
