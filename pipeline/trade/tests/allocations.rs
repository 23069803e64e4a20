//! The hot paths allocate nothing after their start.

use crate::allocator;
use lowlat_ipc::{region::Heap, stream::Stamp};
use lowlat_node::{
    ledger,
    records::{Answer, Order, Outcome, PAYLOAD_BYTES, Quote, Side},
    strategy::{AnswerSeen, Numbers, OnEachRecord, OrderSink, QuoteSeen, SendError},
};
use lowlat_trade::{
    hosting::{StrategyBudget, StrategyHost},
    md::{Feed, Pacer, PacerStep},
    scenario::Scenario,
    td::{Decision, Exchange, Limits, Matching, ReadOrder, Rules},
};
fn allocations(work: impl FnOnce()) -> u64 {
    allocator::asked(work).0.allocations
}

#[test]
fn md_allocates_nothing() {
    let scenario = Scenario::at_rate(80, 80_000.0, 0.1).unwrap();
    let mut pacer = Pacer::new(Feed::simulated(&scenario, 1), 0);
    let mut quotes = 0;
    let count = allocations(|| {
        while let PacerStep::Publish(due) = pacer.step(u64::MAX) {
            quotes += u64::from(due.quote.encode().len() == PAYLOAD_BYTES);
        }
    });
    assert_eq!((quotes, count), (scenario.records(), 0));
}

#[test]
fn td_allocates_nothing() {
    let limits = Limits { position_max: Some(1000), ..Limits::default() };
    let rules = Rules { instruments: 80, matching: Matching::AtOnce(2), limits };
    let mut exchange = Exchange::new(Heap::zeroed(ledger::BYTES), 1, rules).unwrap();
    let mut answers = 0;
    let count = allocations(|| {
        for number in 1..=1000 {
            let order = Order { number, price: 5, quantity: 3, ..Order::default() };
            let instrument = u32::try_from(number % 80).unwrap();
            let stamp = Stamp { source: instrument, instrument, ..Stamp::default() };
            let taken = ReadOrder { writer: 3, sequence: number, stamp, order };
            let Decision::Answers(pending) = exchange.begin(1, &taken, 5, answers) else { panic!() };
            answers += u64::try_from(pending.answers().count()).unwrap();
            assert!(exchange.finish(&pending));
        }
    });
    assert_eq!((answers, count), (3000, 0));
}

struct Sinks {
    numbers: Numbers,
    sent: u64,
}

impl OrderSink for Sinks {
    fn send(&mut self, _: Stamp, _: &[u8; PAYLOAD_BYTES]) -> Result<(), SendError> {
        self.sent += 1;
        Ok(())
    }

    fn number(&mut self) -> u64 {
        self.numbers.take()
    }
}

#[test]
fn a_host_allocates_nothing_even_when_queues_run_full() {
    let mut host = StrategyHost::new(StrategyBudget { queue_max: 8, ..StrategyBudget::default() });
    for number in 0..80 {
        host.add(number, &[number % 10], Box::new(OnEachRecord::default())).unwrap();
    }
    let mut sinks = Sinks { numbers: Numbers::of_turn(0), sent: 0 };
    let answer = Answer {
        order_number: 1,
        outcome: Outcome::Accepted,
        received_ns: 0,
        price: 1,
        quantity: 1,
        instrument: 0,
        side: Side::Buy,
    };
    let count = allocations(|| {
        for sequence in 0..5000 {
            let instrument = u32::try_from(sequence % 10).unwrap();
            let quote = Quote { bid: 1, ask: 2, ..Quote::default() };
            host.take_quote(&QuoteSeen::new(instrument, sequence, (0, 0), quote));
            let answered = AnswerSeen::new(sequence, (0, 0), answer);
            host.take_answer(instrument, &answered);
            host.warm();
            for _ in 0..5 {
                host.serve(&mut |_, then| then(&mut sinks), &mut || 0, &mut |_| ());
            }
        }
        while host.serve(&mut |_, then| then(&mut sinks), &mut || 0, &mut |_| ()) {}
    });
    let dropped: u64 = (0..80).map(|number| host.usage(number).unwrap().dropped).sum();
    assert!(sinks.sent > 0 && dropped > 0, "queues ran full: {dropped}");
    assert_eq!(count, 0);
}
