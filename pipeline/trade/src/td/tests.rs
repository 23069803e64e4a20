use super::{ledger::BYTES, *};
use lowlat_ipc::{interest::SUBSCRIBERS_MAX, region::Heap, stream::Stamp};
use lowlat_node::{
    STRATEGIES_MAX,
    records::{Answer, Order, Outcome, Quote, Reject, Side},
    testing as crash,
};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

const TD: u32 = 7;

fn rules() -> Rules {
    Rules { instruments: 4, fills: 1, limits: Limits::default() }
}

fn order(number: u64) -> ReadOrder {
    let order = Order { number, price: 100, quantity: 2, ..Order::default() };
    let stamp = Stamp { source: 3, instrument: 1, generated: 50, ..Stamp::default() };
    ReadOrder { writer: 3, sequence: number, stamp, order }
}

fn answers_of(exchange: &mut Exchange<Heap>, taken: &ReadOrder) -> Vec<(Stamp, Answer)> {
    match exchange.begin(TD, taken, 60, 0) {
        Decision::Answers(pending) => {
            let answers = pending.answers().collect();
            assert!(exchange.finish(&pending));
            answers
        }
        other => panic!("{other:?}"),
    }
}

fn exchange(rules: Rules) -> Exchange<Heap> {
    Exchange::new(Heap::zeroed(BYTES), 1, rules).unwrap()
}

fn outcomes(answers: &[(Stamp, Answer)]) -> Vec<Outcome> {
    answers.iter().map(|(_, answer)| answer.outcome).collect()
}

#[test]
fn an_order_is_accepted_and_filled() {
    let mut exchange = exchange(rules());
    let answers = answers_of(&mut exchange, &order(1));
    assert_eq!(outcomes(&answers), [Outcome::Accepted, Outcome::Filled]);
    let (stamp, fill) = answers[1];
    assert_eq!((stamp.instrument, stamp.source, stamp.trigger, stamp.cause), (3, TD, 50, 1));
    assert_eq!((fill.order_number, fill.quantity, fill.price, fill.instrument), (1, 2, 100, 1));
    assert_eq!(fill.received_ns, 60);
    assert_eq!((exchange.ledger().last_number(3), exchange.ledger().position(3, 1)), (1, 2));
    let mut sell = order(2);
    sell.order.side = Side::Sell;
    sell.order.quantity = 5;
    answers_of(&mut exchange, &sell);
    assert_eq!(exchange.ledger().position(3, 1), -3);
    assert_eq!(exchange.begin(TD, &sell, 0, 0), Decision::Known, "read again");
}

#[test]
fn invalid_orders_are_rejected_with_the_reason() {
    let limits = Limits {
        quantity_max: Some(10),
        price_max_ten_thousandths: Some(1000),
        price_deviation_max_per_mille: Some(100),
        position_max: Some(12),
        open_orders_max: None,
    };
    let mut exchange = exchange(Rules { limits, ..rules() });
    exchange.on_quote(2, &Quote { bid: 99, ask: 101, ..Quote::default() });
    exchange.on_quote(99, &Quote::default());
    // A withdrawn side leaves the middle.
    exchange.on_quote(2, &Quote { bid: 0, ask: 101, ..Quote::default() });
    let mut number = 0;
    let mut with = |change: &dyn Fn(&mut ReadOrder)| {
        number += 1;
        let mut taken = order(number);
        change(&mut taken);
        taken.sequence = number;
        let answers = answers_of(&mut exchange, &taken);
        assert!(answers.len() == 1 || matches!(answers[0].1.outcome, Outcome::Accepted));
        answers[0].1.outcome
    };
    let rejected = Outcome::Rejected;
    assert_eq!(with(&|_| ()), Outcome::Accepted);
    assert_eq!(with(&|taken| taken.order.price = 0), rejected(Reject::BadPrice));
    assert_eq!(with(&|taken| taken.order.price = -5), rejected(Reject::BadPrice));
    assert_eq!(with(&|taken| taken.order.price = 1001), rejected(Reject::BadPrice));
    let at = |price| move |taken: &mut ReadOrder| (taken.stamp.instrument, taken.order.price) = (2, price);
    assert_eq!(with(&at(110)), Outcome::Accepted);
    assert_eq!(with(&at(111)), rejected(Reject::BadPrice));
    assert_eq!(with(&at(89)), rejected(Reject::BadPrice));
    assert_eq!(with(&|taken| taken.stamp.instrument = 4), rejected(Reject::UnknownInstrument));
    assert_eq!(with(&|taken| taken.order.quantity = 0), rejected(Reject::BadQuantity));
    assert_eq!(with(&|taken| taken.order.quantity = 11), rejected(Reject::BadQuantity));
    assert_eq!(with(&|taken| taken.order.number = 1), rejected(Reject::DuplicateNumber));
    assert_eq!(with(&|taken| taken.order.number = 0), rejected(Reject::DuplicateNumber));
    assert_eq!(with(&|taken| taken.order.quantity = 10), Outcome::Accepted, "2 + 10 = 12");
    assert_eq!(with(&|_| ()), rejected(Reject::OverLimit));
    let sell = |taken: &mut ReadOrder| (taken.order.side, taken.order.quantity) = (Side::Sell, 10);
    assert_eq!(with(&sell), Outcome::Accepted);
}

#[test]
fn orders_that_stay_open_are_counted() {
    let limits = Limits { open_orders_max: Some(2), ..Limits::default() };
    let mut exchange = exchange(Rules { fills: 0, limits, ..rules() });
    assert_eq!(outcomes(&answers_of(&mut exchange, &order(1))), [Outcome::Accepted]);
    assert_eq!(outcomes(&answers_of(&mut exchange, &order(2))), [Outcome::Accepted]);
    assert_eq!(outcomes(&answers_of(&mut exchange, &order(3))), [Outcome::Rejected(Reject::OverLimit)]);
    assert_eq!((exchange.ledger().open_orders(3), exchange.ledger().position(3, 1)), (2, 0));
}

#[test]
fn orders_of_unknown_strategies_are_distinguished() {
    let mut exchange = exchange(rules());
    let mut taken = order(1);
    taken.stamp.source = STRATEGIES_MAX;
    assert_eq!(exchange.begin(TD, &taken, 0, 0), Decision::NoStrategy);
    // A host has more strategies than there are nodes.
    taken.stamp.source = STRATEGIES_MAX - 1;
    let unknown_node = ReadOrder { writer: SUBSCRIBERS_MAX, ..taken };
    assert_eq!(exchange.begin(TD, &unknown_node, 0, 0), Decision::NoStrategy);
    assert_eq!(outcomes(&answers_of(&mut exchange, &taken)), [Outcome::Accepted, Outcome::Filled]);
    assert_eq!(exchange.ledger().last_number(STRATEGIES_MAX - 1), taken.order.number);
}

#[test]
fn a_replaced_td_answers_no_more() {
    let region = Arc::new(Heap::zeroed(BYTES));
    let mut old = Exchange::new(Arc::clone(&region), 1, rules()).unwrap();
    let Decision::Answers(pending) = old.begin(TD, &order(1), 0, 0) else { panic!() };
    let new = Exchange::new(region, 2, rules()).unwrap();
    assert!(!old.finish(&pending));
    assert_eq!(old.begin(TD, &order(2), 0, 0), Decision::Fenced);
    assert_eq!(new.recover(TD, 1).unwrap().unwrap().answers().count(), 1, "the fill is left");
}

#[test]
fn invalid_memory_is_refused_as_a_ledger() {
    let error = Exchange::new(Heap::zeroed(64), 1, rules()).unwrap_err().to_string();
    assert!(error.contains("found 64 bytes"), "{error}");
    let heap = Heap::zeroed(BYTES);
    lowlat_ipc::region::Region::words(&heap)[0].store(5, std::sync::atomic::Ordering::Relaxed);
    let error = Exchange::new(heap, 1, rules()).unwrap_err().to_string();
    assert!(error.contains("found 0x5"), "{error}");
}

/// td as a process: it dies wherever a test wants, and its successor continues.
fn td_process(
    ledger: &Arc<Heap>,
    epoch: u64,
    rules: &Rules,
    orders: &[ReadOrder],
    from: &mut usize,
    stream: &mut Vec<(Stamp, Answer)>,
) {
    let mut exchange = Exchange::new(Arc::clone(ledger), epoch, rules.clone()).unwrap();
    let next = |stream: &Vec<_>| u64::try_from(stream.len()).unwrap();
    let publish = |stream: &mut Vec<_>, pending: Pending| {
        for answer in pending.answers() {
            crash::step();
            stream.push(answer);
            crash::step();
        }
    };
    if let Some(pending) = exchange.recover(TD, next(stream)).unwrap() {
        publish(stream, pending);
        assert!(exchange.finish(&pending));
    }
    while let Some(taken) = orders.get(*from) {
        match exchange.begin(TD, taken, 9, next(stream)) {
            Decision::Answers(pending) => {
                // ReadOrder from its ring: the successor does not read it again.
                *from += 1;
                publish(stream, pending);
                assert!(exchange.finish(&pending));
            }
            Decision::Known => *from += 1,
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// td dies repeatedly, each time some steps later in its work, and restarts with orders that it may or may
    /// not have read before. Each order is answered once, and its fills add up to it.
    #[test]
    fn each_order_is_answered_exactly_once_whenever_td_dies(
        shape in proptest::collection::vec((0_u32..3, 0_u32..5, 0_u32..20, any::<bool>()), 1..12),
        crashes in proptest::collection::vec((0_u64..40, 0_usize..4), 0..30),
        fills in 0_u32..4,
    ) {
        let mut numbers = BTreeMap::<u32, u64>::new();
        let mut sequences = BTreeMap::<u32, u64>::new();
        let orders: Vec<_> = shape.iter().map(|&(strategy, instrument, quantity, is_sell)| {
            // Two of three strategies share a stream, as in a strategy host.
            let writer = strategy.min(1);
            let number = numbers.entry(strategy).or_default();
            let sequence = sequences.entry(writer).or_default();
            *number += 1;
            *sequence += 1;
            let side = if is_sell { Side::Sell } else { Side::Buy };
            ReadOrder {
                writer, sequence: *sequence,
                stamp: Stamp { source: strategy, instrument, generated: *number, ..Stamp::default() },
                order: Order { number: *number, price: 5, quantity, side, ..Order::default() },
            }
        }).collect();
        let limits = Limits { position_max: Some(30), ..Limits::default() };
        let rules = Rules { fills, limits, ..rules() };
        let ledger = Arc::new(Heap::zeroed(BYTES));
        let (mut stream, mut from) = (Vec::new(), 0);
        let mut epoch = 0;
        for (steps, again) in crashes {
            epoch += 1;
            crash::after(steps, || td_process(&ledger, epoch, &rules, &orders, &mut from, &mut stream));
            // Some orders are repeated.
            from = from.saturating_sub(again);
        }
        td_process(&ledger, epoch + 1, &rules, &orders, &mut from, &mut stream);
        let mut expected_positions = BTreeMap::<(u32, u32), i64>::new();
        for taken in &orders {
            let of_order: Vec<_> = stream
                .iter()
                .filter(|(stamp, answer)| stamp.instrument == taken.stamp.source && answer.order_number == taken.order.number)
                .map(|(_, answer)| *answer)
                .collect();
            let decisions = of_order.iter().filter(|answer| answer.outcome != Outcome::Filled).count();
            prop_assert_eq!(decisions, 1, "{:?}", of_order);
            let filled: u32 = of_order.iter().filter(|answer| answer.outcome == Outcome::Filled).map(|answer| answer.quantity).sum();
            let is_accepted = of_order[0].outcome == Outcome::Accepted;
            let expected = if is_accepted && fills > 0 { taken.order.quantity } else { 0 };
            prop_assert_eq!(filled, expected);
            let signed = if taken.order.side == Side::Sell { -i64::from(filled) } else { i64::from(filled) };
            *expected_positions.entry((taken.stamp.source, taken.stamp.instrument)).or_default() += signed;
        }
        let exchange = Exchange::new(ledger, epoch + 2, rules).unwrap();
        for ((strategy, instrument), position) in expected_positions {
            prop_assert_eq!(exchange.ledger().position(strategy, instrument), position);
        }
        prop_assert_eq!(exchange.recover(TD, 0).unwrap(), None);
        let rejected = stream.iter().filter(|(_, answer)| matches!(answer.outcome, Outcome::Rejected(_))).count();
        let [answered, rejected, fills] =
            [orders.len(), rejected, stream.len() - orders.len()].map(|count| u64::try_from(count).unwrap());
        let totals = exchange.ledger().totals();
        prop_assert_eq!(totals, ledger::Totals { answered, rejected, fills });
        prop_assert_eq!(exchange.ledger().answered_of(0) + exchange.ledger().answered_of(1), totals.answered);
    }

    #[test]
    fn parts_sum_up(quantity in 1_u32..1000, fills in 1_u32..16) {
        let mut exchange = exchange(Rules { fills, ..rules() });
        let mut taken = order(1);
        taken.order.quantity = quantity;
        let answers = answers_of(&mut exchange, &taken);
        let parts: Vec<_> = answers[1..].iter().map(|(_, answer)| answer.quantity).collect();
        prop_assert_eq!(parts.iter().sum::<u32>(), quantity);
        prop_assert!(parts.iter().all(|part| *part > 0));
        prop_assert_eq!(parts.len(), usize::try_from(fills.min(quantity)).unwrap());
    }
}

/// One order with three fills: td dies at every single step, and at every pair of steps.
#[test]
fn td_may_die_at_any_step() {
    let rules = Rules { fills: 2, ..rules() };
    let orders = [order(1), order(2)];
    let mut deaths = 0;
    for first in 0..90 {
        for second in [0, 1, 5, 11, 20, 24, 26, 29, 31, 33, 1000] {
            let ledger = Arc::new(Heap::zeroed(BYTES));
            let (mut stream, mut from) = (Vec::new(), 0);
            for (epoch, steps) in [(1, first), (2, second), (3, 1_000_000)] {
                let lived = crash::after(steps, || {
                    td_process(&ledger, epoch, &rules, &orders, &mut from, &mut stream);
                });
                deaths += u64::from(!lived);
            }
            let expected = [Outcome::Accepted, Outcome::Filled, Outcome::Filled].repeat(2);
            assert_eq!(outcomes(&stream), expected, "{first} {second}");
        }
    }
    assert!(deaths > 500, "deaths: {deaths}");
}
