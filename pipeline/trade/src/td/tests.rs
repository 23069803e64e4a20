use super::*;
use Outcome::{Accepted, Cancelled, Filled, NotChanged, Rejected, Replaced};
use lowlat_ipc::{interest::SUBSCRIBERS_MAX, region::Heap, stream::Stamp};
use lowlat_node::{
    STRATEGIES_MAX,
    ledger::{BYTES, Totals},
    records::{Answer, Order, OrderAction, OrderType, Outcome, Price, Quote, Reject, Side},
    testing as crash,
};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

const TD: u32 = 7;

fn rules() -> Rules {
    Rules { instruments: 4, matching: Matching::AtOnce(1), limits: Limits::default() }
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
    assert_eq!(outcomes(&answers), [Accepted, Filled]);
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
        ..Limits::default()
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
        assert!(answers.len() == 1 || matches!(answers[0].1.outcome, Accepted));
        answers[0].1.outcome
    };
    assert_eq!(with(&|_| ()), Accepted);
    assert_eq!(with(&|taken| taken.order.price = 0), Rejected(Reject::BadPrice));
    assert_eq!(with(&|taken| taken.order.price = -5), Rejected(Reject::BadPrice));
    assert_eq!(with(&|taken| taken.order.price = 1001), Rejected(Reject::BadPrice));
    let at = |price| move |taken: &mut ReadOrder| (taken.stamp.instrument, taken.order.price) = (2, price);
    assert_eq!(with(&at(110)), Accepted);
    assert_eq!(with(&at(111)), Rejected(Reject::BadPrice));
    assert_eq!(with(&at(89)), Rejected(Reject::BadPrice));
    assert_eq!(with(&|taken| taken.stamp.instrument = 4), Rejected(Reject::UnknownInstrument));
    assert_eq!(with(&|taken| taken.order.quantity = 0), Rejected(Reject::BadQuantity));
    assert_eq!(with(&|taken| taken.order.quantity = 11), Rejected(Reject::BadQuantity));
    assert_eq!(with(&|taken| taken.order.number = 1), Rejected(Reject::DuplicateNumber));
    assert_eq!(with(&|taken| taken.order.number = 0), Rejected(Reject::DuplicateNumber));
    assert_eq!(with(&|taken| taken.order.quantity = 10), Accepted, "2 + 10 = 12");
    assert_eq!(with(&|_| ()), Rejected(Reject::OverLimit));
    let sell = |taken: &mut ReadOrder| (taken.order.side, taken.order.quantity) = (Side::Sell, 10);
    assert_eq!(with(&sell), Accepted);
}

#[test]
fn orders_that_stay_open_are_counted() {
    let limits = Limits { open_orders_max: Some(2), ..Limits::default() };
    let mut exchange = exchange(Rules { matching: Matching::AtOnce(0), limits, ..rules() });
    assert_eq!(outcomes(&answers_of(&mut exchange, &order(1))), [Accepted]);
    assert_eq!(outcomes(&answers_of(&mut exchange, &order(2))), [Accepted]);
    assert_eq!(outcomes(&answers_of(&mut exchange, &order(3))), [Rejected(Reject::OverLimit)]);
    assert_eq!((exchange.ledger().open_count(3), exchange.ledger().position(3, 1)), (2, 0));
}

/// A request of strategy 3 in instrument 1, with this sequence.
fn request(sequence: u64, order: Order) -> ReadOrder {
    ReadOrder { sequence, order, ..self::order(1) }
}

fn limit(number: u64, side: Side, price: Price, quantity: u32) -> Order {
    Order { number, side, price, quantity, ..Order::default() }
}

fn quotes(limits: Limits) -> Exchange<Heap> {
    exchange(Rules { matching: Matching::Quotes(BookRules::default()), limits, ..rules() })
}

fn quote(exchange: &mut Exchange<Heap>, (bid, bid_size): (Price, u32), (ask, ask_size): (Price, u32)) {
    exchange.on_quote(1, &Quote { bid, bid_size, ask, ask_size, last: bid, ..Quote::default() });
}

/// Answers, as outcome, price and quantity.
fn briefly(answers: &[(Stamp, Answer)]) -> Vec<(Outcome, Price, u32)> {
    answers.iter().map(|(_, answer)| (answer.outcome, answer.price, answer.quantity)).collect()
}

/// As the master and td do.
fn halt<R: lowlat_ipc::region::Region>(exchange: &mut Exchange<R>, strategy: Option<u32>, is_halted: bool) {
    exchange.ledger().set_halted(strategy, is_halted);
    exchange.on_halt();
}

/// Everything that the last quote or a halt leads to.
fn next_of(exchange: &mut Exchange<Heap>) -> Vec<(Stamp, Answer)> {
    let mut all = Vec::new();
    while let Some(decision) = exchange.next(TD, 0) {
        let Decision::Answers(pending) = decision else { panic!("{decision:?}") };
        all.extend(pending.answers());
        assert!(exchange.finish(&pending));
    }
    all
}

#[test]
fn an_open_order_is_replaced_and_cancelled() {
    let mut exchange = exchange(Rules { matching: Matching::AtOnce(0), ..rules() });
    answers_of(&mut exchange, &request(1, limit(1, Side::Sell, 100, 5)));
    let change =
        |number, action, price, quantity| Order { number, action, price, quantity, ..Order::default() };
    let replace = request(2, change(1, OrderAction::Replace, 90, 4));
    let answers = answers_of(&mut exchange, &replace);
    assert_eq!(briefly(&answers), [(Replaced, 90, 4)]);
    assert_eq!((answers[0].1.side, answers[0].0.cause), (Side::Sell, 2));
    let open = exchange.ledger().open_orders(3).unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].price, open[0].quantity, open[0].left(), open[0].side), (90, 4, 4, Side::Sell));
    assert_eq!(exchange.ledger().open_orders(2).unwrap(), []);
    let wrong = [
        (change(1, OrderAction::Replace, 0, 4), Reject::BadPrice),
        (change(1, OrderAction::Replace, 90, 0), Reject::BadQuantity),
        (change(2, OrderAction::Replace, 90, 4), Reject::UnknownOrder),
        (change(2, OrderAction::Cancel, 0, 0), Reject::UnknownOrder),
    ];
    for (sequence, (order, reject)) in (3..).zip(wrong) {
        let answers = answers_of(&mut exchange, &request(sequence, order));
        assert_eq!(outcomes(&answers), [NotChanged(reject)]);
    }
    let mut elsewhere = request(8, change(1, OrderAction::Cancel, 0, 0));
    elsewhere.stamp.instrument = 2;
    assert_eq!(outcomes(&answers_of(&mut exchange, &elsewhere)), [NotChanged(Reject::UnknownOrder)]);
    let mut foreign = request(9, change(1, OrderAction::Cancel, 0, 0));
    foreign.stamp.source = 2;
    assert_eq!(outcomes(&answers_of(&mut exchange, &foreign)), [NotChanged(Reject::UnknownOrder)]);
    let answers = answers_of(&mut exchange, &request(10, change(1, OrderAction::Cancel, 0, 0)));
    assert_eq!(briefly(&answers), [(Cancelled, 90, 4)]);
    let answers = answers_of(&mut exchange, &request(11, change(1, OrderAction::Cancel, 0, 0)));
    assert_eq!(outcomes(&answers), [NotChanged(Reject::UnknownOrder)], "no longer open");
    assert_eq!((exchange.ledger().open_count(3), exchange.ledger().open_orders(3).unwrap()), (0, vec![]));
    let totals = Totals { answered: 10, ..Totals::default() };
    assert_eq!((exchange.ledger().totals(), exchange.ledger().answered_of(3)), (totals, 10));
}

#[test]
fn orders_trade_what_quotes_show() {
    let mut exchange = quotes(Limits::default());
    let of_type = |number, order_type, price, quantity| Order {
        order_type,
        ..limit(number, Side::Buy, price, quantity)
    };
    let early = request(1, of_type(1, OrderType::Market, 0, 3));
    assert_eq!(briefly(&answers_of(&mut exchange, &early)), [(Accepted, 0, 3), (Cancelled, 0, 3)]);
    quote(&mut exchange, (98, 10), (100, 8));
    let market = request(2, of_type(2, OrderType::Market, 0, 3));
    assert_eq!(briefly(&answers_of(&mut exchange, &market)), [(Accepted, 0, 3), (Filled, 100, 3)]);
    let ioc = request(3, of_type(3, OrderType::ImmediateOrCancel, 101, 7));
    let expected = [(Accepted, 101, 7), (Filled, 100, 5), (Cancelled, 101, 2)];
    assert_eq!(briefly(&answers_of(&mut exchange, &ioc)), expected);
    let too_low = request(4, of_type(4, OrderType::ImmediateOrCancel, 99, 7));
    assert_eq!(briefly(&answers_of(&mut exchange, &too_low)), [(Accepted, 99, 7), (Cancelled, 99, 7)]);
    // It waits, until the market comes to it.
    let resting = request(5, limit(5, Side::Buy, 99, 7));
    assert_eq!(briefly(&answers_of(&mut exchange, &resting)), [(Accepted, 99, 7)]);
    assert_eq!(next_of(&mut exchange), []);
    quote(&mut exchange, (98, 10), (99, 4));
    let answers = next_of(&mut exchange);
    assert_eq!(briefly(&answers), [(Filled, 99, 4)]);
    assert_eq!((answers[0].1.order_number, answers[0].0.trigger, answers[0].0.cause), (5, 50, 5));
    assert_eq!(exchange.ledger().open_orders(3).unwrap()[0].filled, 4);
    // A higher price trades at once.
    quote(&mut exchange, (98, 10), (100, 8));
    assert_eq!(next_of(&mut exchange), []);
    let replace = Order { action: OrderAction::Replace, ..limit(5, Side::Buy, 100, 9) };
    let answers = answers_of(&mut exchange, &request(6, replace));
    assert_eq!(briefly(&answers), [(Replaced, 100, 9), (Filled, 100, 5)]);
    let ledger = exchange.ledger();
    assert_eq!(
        (ledger.position(3, 1), ledger.open_count(3), ledger.positions(3).unwrap()),
        (17, 0, vec![(1, 17)])
    );
    assert_eq!(ledger.totals(), Totals { answered: 6, rejected: 0, fills: 4, cancelled: 3 });
}

#[test]
fn the_first_of_two_at_a_price_is_filled_first_and_a_larger_order_goes_behind() {
    let mut exchange = quotes(Limits::default());
    quote(&mut exchange, (90, 1), (110, 1));
    for number in [1, 2] {
        answers_of(&mut exchange, &request(number, limit(number, Side::Buy, 100, 5)));
    }
    let filled = |exchange: &mut Exchange<Heap>| -> Vec<_> {
        quote(exchange, (90, 1), (100, 3));
        next_of(exchange).iter().map(|(_, answer)| (answer.order_number, answer.quantity)).collect()
    };
    assert_eq!(filled(&mut exchange), [(1, 3)]);
    let replace = |sequence, quantity| {
        request(sequence, Order { action: OrderAction::Replace, ..limit(1, Side::Buy, 100, quantity) })
    };
    quote(&mut exchange, (90, 1), (110, 1));
    answers_of(&mut exchange, &replace(3, 4));
    assert_eq!(filled(&mut exchange), [(1, 1), (2, 2)], "smaller: it keeps its turn");
    quote(&mut exchange, (90, 1), (110, 1));
    answers_of(&mut exchange, &request(4, limit(3, Side::Buy, 100, 1)));
    let more = Order { action: OrderAction::Replace, ..limit(2, Side::Buy, 100, 6) };
    let mut behind = exchange.begin(TD, &request(5, more), 60, 77);
    let Decision::Answers(pending) = &mut behind else { panic!() };
    assert!(exchange.finish(pending));
    assert_eq!(filled(&mut exchange), [(3, 1), (2, 2)]);
}

#[test]
fn a_halted_strategy_has_no_open_orders_until_it_may_go_on() {
    let mut exchange = quotes(Limits::default());
    assert_eq!(next_of(&mut exchange), []);
    let mut other = request(1, limit(1, Side::Buy, 100, 5));
    (other.stamp.source, other.writer) = (2, 2);
    answers_of(&mut exchange, &other);
    answers_of(&mut exchange, &request(1, limit(1, Side::Buy, 100, 5)));
    halt(&mut exchange, Some(3), true);
    assert_eq!(briefly(&next_of(&mut exchange)), [(Cancelled, 100, 5)]);
    let refused = |exchange: &mut Exchange<Heap>, sequence| {
        outcomes(&answers_of(exchange, &request(sequence, limit(sequence, Side::Buy, 100, 5))))[0]
    };
    assert_eq!(refused(&mut exchange, 2), Rejected(Reject::Halted));
    halt(&mut exchange, None, true);
    assert_eq!(next_of(&mut exchange).len(), 1);
    halt(&mut exchange, Some(3), false);
    assert_eq!(refused(&mut exchange, 3), Rejected(Reject::Halted), "all are");
    halt(&mut exchange, None, false);
    assert_eq!(refused(&mut exchange, 4), Accepted);
    assert_eq!(exchange.ledger().totals(), Totals { answered: 5, rejected: 2, fills: 0, cancelled: 2 });
}

#[test]
fn limits_count_open_orders_and_seconds() {
    let limits = Limits { position_max: Some(10), orders_per_s_max: Some(4), ..Limits::default() };
    let mut exchange = quotes(limits);
    let mut sequence = 0;
    let mut at = |now_ns, order| {
        sequence += 1;
        let Decision::Answers(pending) = exchange.begin(TD, &request(sequence, order), now_ns, sequence)
        else {
            panic!()
        };
        assert!(exchange.finish(&pending));
        pending.answers().next().unwrap().1.outcome
    };
    assert_eq!(at(1, limit(1, Side::Buy, 100, 6)), Accepted);
    assert_eq!(at(1, limit(2, Side::Buy, 100, 5)), Rejected(Reject::OverLimit), "6 are open");
    assert_eq!(at(1, limit(3, Side::Sell, 120, 10)), Accepted);
    let replace = |quantity| Order { action: OrderAction::Replace, ..limit(1, Side::Buy, 100, quantity) };
    assert_eq!(at(1, replace(11)), NotChanged(Reject::OverLimit));
    assert_eq!(at(1, replace(10)), NotChanged(Reject::TooFast));
    let cancel = Order { action: OrderAction::Cancel, ..limit(3, Side::Buy, 0, 0) };
    assert_eq!(at(1, cancel), Cancelled, "always");
    assert_eq!(at(1_000_000_001, replace(10)), Replaced);
}

#[test]
fn requests_arrive_after_the_latency() {
    let book = BookRules { latency_ns: 100, ..BookRules::default() };
    let ledger = Arc::new(Heap::zeroed(BYTES));
    let rules = Rules { matching: Matching::Quotes(book), ..rules() };
    let mut exchange = Exchange::new(Arc::clone(&ledger), 1, rules.clone()).unwrap();
    let at_once =
        |number| Order { order_type: OrderType::ImmediateOrCancel, ..limit(number, Side::Buy, 100, 5) };
    exchange.on_quote(1, &Quote { ask: 90, ask_size: 5, ..Quote::default() });
    assert_eq!(exchange.begin(TD, &request(1, at_once(1)), 1000, 0), Decision::Later);
    assert_eq!(exchange.begin(TD, &request(1, at_once(1)), 1000, 0), Decision::Known);
    assert_eq!(exchange.arrives_ns(), Some(1100));
    assert_eq!(exchange.arrive(TD, 1099, 0).unwrap(), None);
    // td dies, and the market moves.
    drop(exchange);
    let mut exchange = Exchange::new(ledger, 2, rules).unwrap();
    exchange.on_quote(1, &Quote { ask: 95, ask_size: 4, ..Quote::default() });
    let Some(Decision::Answers(pending)) = exchange.arrive(TD, 1100, 0).unwrap() else { panic!() };
    let answers: Vec<_> = pending.answers().collect();
    assert!(exchange.finish(&pending));
    assert_eq!(briefly(&answers), [(Accepted, 100, 5), (Filled, 95, 4), (Cancelled, 100, 1)]);
    assert_eq!(answers[0].1.received_ns, 1000);
    assert_eq!((exchange.arrives_ns(), exchange.arrive(TD, u64::MAX, 3).unwrap()), (None, None));
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
    assert_eq!(outcomes(&answers_of(&mut exchange, &taken)), [Accepted, Filled]);
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
        let rules = Rules { matching: Matching::AtOnce(fills), limits, ..rules() };
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
            let decisions = of_order.iter().filter(|answer| answer.outcome != Filled).count();
            prop_assert_eq!(decisions, 1, "{:?}", of_order);
            let filled: u32 = of_order.iter().filter(|answer| answer.outcome == Filled).map(|answer| answer.quantity).sum();
            let is_accepted = of_order[0].outcome == Accepted;
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
        let rejected = stream.iter().filter(|(_, answer)| matches!(answer.outcome, Rejected(_))).count();
        let [answered, rejected, fills] =
            [orders.len(), rejected, stream.len() - orders.len()].map(|count| u64::try_from(count).unwrap());
        let totals = exchange.ledger().totals();
        prop_assert_eq!(totals, Totals { answered, rejected, fills, cancelled: 0 });
        prop_assert_eq!(exchange.ledger().answered_of(0) + exchange.ledger().answered_of(1), totals.answered);
    }

    #[test]
    fn parts_sum_up(quantity in 1_u32..1000, fills in 1_u32..16) {
        let mut exchange = exchange(Rules { matching: Matching::AtOnce(fills), ..rules() });
        let mut taken = order(1);
        taken.order.quantity = quantity;
        let answers = answers_of(&mut exchange, &taken);
        let parts: Vec<_> = answers[1..].iter().map(|(_, answer)| answer.quantity).collect();
        prop_assert_eq!(parts.iter().sum::<u32>(), quantity);
        prop_assert!(parts.iter().all(|part| *part > 0));
        prop_assert_eq!(parts.len(), usize::try_from(fills.min(quantity)).unwrap());
    }
}

/// Something that happens to td.
#[derive(Debug, Clone)]
enum Step {
    Request(ReadOrder),
    Quote(Price, u32),
    Halt(bool),
}

/// td with a book as a process, which dies wherever a test wants.
fn book_process(
    ledger: &Arc<Heap>,
    epoch: u64,
    rules: &Rules,
    steps: &[Step],
    from: &mut usize,
    stream: &mut Vec<(Stamp, Answer)>,
) {
    let mut exchange = Exchange::new(Arc::clone(ledger), epoch, rules.clone()).unwrap();
    let next = |stream: &Vec<_>| u64::try_from(stream.len()).unwrap();
    let publish = |exchange: &mut Exchange<Arc<Heap>>, stream: &mut Vec<_>, pending: Pending| {
        for answer in pending.answers() {
            crash::step();
            stream.push(answer);
            crash::step();
        }
        assert!(exchange.finish(&pending));
    };
    if let Some(pending) = exchange.recover(TD, next(stream)).unwrap() {
        publish(&mut exchange, stream, pending);
    }
    loop {
        let step = steps.get(*from);
        let now = step.map_or(u64::MAX, |_| u64::try_from(*from).unwrap() * 10);
        while let Some(decision) = exchange.arrive(TD, now, next(stream)).unwrap() {
            let Decision::Answers(pending) = decision else { panic!("{decision:?}") };
            publish(&mut exchange, stream, pending);
        }
        let decision = match step {
            Some(Step::Request(taken)) => Some(exchange.begin(TD, taken, now, next(stream))),
            Some(Step::Quote(price, size)) => {
                let (bid, ask) = (price - 1, price + 1);
                let quote =
                    Quote { bid, ask, last: bid, bid_size: *size, ask_size: *size, ..Quote::default() };
                exchange.on_quote(1, &quote);
                None
            }
            Some(Step::Halt(is_halted)) => {
                halt(&mut exchange, Some(0), *is_halted);
                None
            }
            None => None,
        };
        match decision {
            // Read from its ring: the successor does not read it again.
            Some(Decision::Answers(pending)) => {
                *from += 1;
                publish(&mut exchange, stream, pending);
            }
            Some(Decision::Later | Decision::Known) | None => *from += 1,
            other => panic!("{other:?}"),
        }
        while let Some(decision) = exchange.next(TD, next(stream)) {
            let Decision::Answers(pending) = decision else { panic!("{decision:?}") };
            publish(&mut exchange, stream, pending);
        }
        if step.is_none() {
            return;
        }
    }
}

fn step() -> impl Strategy<Value = (u32, u32, u32, Price, u32, bool)> {
    (0_u32..10, 0_u32..3, 1_u32..4, 95_i64..105, 0_u32..9, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Strategies send, change and cancel orders while the market moves, and td dies repeatedly. Each request is
    /// answered once, each order's fills and cancels add up, and so do positions, open orders and totals.
    #[test]
    fn the_book_balances_whenever_td_dies(
        shape in proptest::collection::vec(step(), 1..40),
        crashes in proptest::collection::vec((0_u64..90, 0_usize..4), 0..20),
        latency_ns in prop_oneof![Just(0_u64), Just(25)],
    ) {
        let mut numbers = [0_u64; 3];
        let mut sequence = 0;
        let steps: Vec<_> = shape.iter().map(|&(what, strategy, back, price, quantity, is_sell)| {
            let number = &mut numbers[usize::try_from(strategy).unwrap()];
            let action = match what {
                0 | 1 => return Step::Quote(price, quantity),
                2 if back == 1 => return Step::Halt(is_sell),
                2 | 3 => OrderAction::Cancel,
                4 => OrderAction::Replace,
                _ => OrderAction::New,
            };
            *number += u64::from(action == OrderAction::New);
            let order_number = if action == OrderAction::New { *number } else { number.saturating_sub(u64::from(back) - 1) };
            let order_type = if what < 8 { OrderType::Limit } else { OrderType::of(u64::from(what - 7)).unwrap() };
            let side = if is_sell { Side::Sell } else { Side::Buy };
            sequence += 1;
            Step::Request(ReadOrder {
                writer: 0, sequence,
                stamp: Stamp { source: strategy, instrument: 1, generated: sequence, ..Stamp::default() },
                order: Order { number: order_number, price, quantity, side, action, order_type, ..Order::default() },
            })
        }).collect();
        let book = BookRules { latency_ns, ..BookRules::default() };
        let limits = Limits { position_max: Some(30), ..Limits::default() };
        let rules = Rules { matching: Matching::Quotes(book), limits, ..rules() };
        let ledger = Arc::new(Heap::zeroed(BYTES));
        let (mut stream, mut from, mut epoch) = (Vec::new(), 0, 0);
        for (deadly, again) in crashes {
            epoch += 1;
            crash::after(deadly, || book_process(&ledger, epoch, &rules, &steps, &mut from, &mut stream));
            // Some requests are repeated; a change of the market or a halt may be, too.
            from = from.saturating_sub(again);
        }
        book_process(&ledger, epoch + 1, &rules, &steps, &mut from, &mut stream);

        let requests: Vec<_> = steps.iter().filter_map(|step| match step {
            Step::Request(taken) => Some(taken),
            _ => None,
        }).collect();
        let exchange = Exchange::new(ledger, epoch + 2, rules).unwrap();
        prop_assert_eq!(exchange.recover(TD, 0).unwrap(), None);
        let ledger = exchange.ledger();
        // Answers by the request's sequence. Fills and unasked cancels have their order's, or their replace's.
        for taken in &requests {
            let its = |outcome: Outcome| match taken.order.action {
                OrderAction::New => matches!(outcome, Accepted | Rejected(_)),
                OrderAction::Cancel => matches!(outcome, Cancelled | NotChanged(_)),
                OrderAction::Replace => matches!(outcome, Replaced | NotChanged(_)),
            };
            let count = stream.iter().filter(|(stamp, answer)| stamp.cause == taken.sequence && its(answer.outcome)).count();
            prop_assert_eq!(count, 1, "{:?}: {:?}", taken, stream);
        }
        let mut positions = [0_i64; 3];
        let mut open = [0_u64; 3];
        for taken in requests.iter().filter(|taken| taken.order.action == OrderAction::New) {
            let strategy = usize::try_from(taken.stamp.source).unwrap();
            let of_it: Vec<_> = stream.iter()
                .filter(|(stamp, answer)| (stamp.instrument, answer.order_number) == (taken.stamp.source, taken.order.number))
                .map(|(_, answer)| *answer)
                .collect();
            let sum = |of: Outcome| of_it.iter().filter(|answer| answer.outcome == of).map(|answer| answer.quantity).sum::<u32>();
            let (filled, cancelled) = (sum(Filled), sum(Cancelled));
            let replaced = of_it.iter().rev().find(|answer| answer.outcome == Replaced).map(|answer| answer.quantity);
            let quantity = replaced.unwrap_or(taken.order.quantity);
            positions[strategy] += taken.order.side.signed(filled);
            let is_open = ledger.open_orders(taken.stamp.source).unwrap().into_iter().find(|open| open.number == taken.order.number);
            let left = is_open.map_or(0, |open| open.left());
            open[strategy] += u64::from(left > 0);
            let is_accepted = of_it[0].outcome == Accepted;
            prop_assert_eq!(filled + cancelled + left, if is_accepted { quantity } else { 0 }, "{:?}: {:?}", taken, of_it);
            // Nothing follows the end of an order but refusals of changes.
            let end = of_it.iter().position(|answer| matches!(answer.outcome, Cancelled | Rejected(_)));
            let after = end.map_or(&[][..], |end| &of_it[end + 1..]);
            prop_assert!(after.iter().all(|answer| matches!(answer.outcome, NotChanged(_))), "{:?}", of_it);
        }
        for strategy in 0..3_u32 {
            let at = usize::try_from(strategy).unwrap();
            prop_assert_eq!((ledger.position(strategy, 1), ledger.open_count(strategy)), (positions[at], open[at]));
            prop_assert!(positions[at].abs() <= 30);
        }
        let Totals { answered, fills, cancelled, .. } = ledger.totals();
        prop_assert_eq!(answered, sequence);
        prop_assert_eq!(answered + fills + cancelled, u64::try_from(stream.len()).unwrap());
        prop_assert_eq!(ledger.answered_of(0), answered);
    }
}

/// One order with three fills: td dies at every single step, and at every pair of steps.
#[test]
fn td_may_die_at_any_step() {
    let rules = Rules { matching: Matching::AtOnce(2), ..rules() };
    let orders = [order(1), order(2)];
    let mut deaths = 0;
    for first in 0..120 {
        for second in [0, 1, 5, 11, 20, 24, 26, 29, 31, 33, 40, 44, 48, 1000] {
            let ledger = Arc::new(Heap::zeroed(BYTES));
            let (mut stream, mut from) = (Vec::new(), 0);
            for (epoch, steps) in [(1, first), (2, second), (3, 1_000_000)] {
                let lived = crash::after(steps, || {
                    td_process(&ledger, epoch, &rules, &orders, &mut from, &mut stream);
                });
                deaths += u64::from(!lived);
            }
            let expected = [Accepted, Filled, Filled].repeat(2);
            assert_eq!(outcomes(&stream), expected, "{first} {second}");
        }
    }
    assert!(deaths > 500, "deaths: {deaths}");
}
