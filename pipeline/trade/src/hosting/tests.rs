use super::*;
use lowlat_ipc::stream::Stamp;
use lowlat_node::{
    records::{Answer, Outcome, PAYLOAD_BYTES, Quote, Side},
    strategy::{Orders, SendError, Strategy},
};
use proptest::prelude::*;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

/// A clock that only advances during work.
type Clock = Arc<AtomicU64>;
/// Delivered items: strategy, sequence.
type Delivered = Arc<Mutex<Vec<(u32, u64)>>>;

/// Takes as long per call as `costs` defines for the record's sequence.
struct Worker {
    clock: Clock,
    told: Delivered,
    costs: Vec<u64>,
    lost: Arc<AtomicU64>,
}

impl Strategy for Worker {
    fn on_quote(&mut self, orders: &mut Orders<'_>, seen: &QuoteSeen) {
        self.told.lock().unwrap().push((orders.strategy(), seen.sequence));
        let at = usize::try_from(seen.sequence).unwrap() % self.costs.len();
        self.clock.fetch_add(self.costs[at], Ordering::Relaxed);
        orders.send(seen.instrument, Side::Buy, seen.quote.ask, 1).unwrap();
    }

    fn on_answer(&mut self, orders: &mut Orders<'_>, seen: &AnswerSeen) {
        self.told.lock().unwrap().push((orders.strategy(), 1_000_000 + seen.sequence));
    }

    fn on_gap(&mut self, _: &mut Orders<'_>, gap: StrategyGap) {
        let (StrategyGap::Quotes(count) | StrategyGap::Answers(count) | StrategyGap::Others(count)) = gap;
        self.lost.fetch_add(count, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Sinks {
    sent: Vec<Stamp>,
}

impl OrderSink for Sinks {
    fn send(&mut self, stamp: Stamp, _: &[u8; PAYLOAD_BYTES]) -> Result<(), SendError> {
        self.sent.push(stamp);
        Ok(())
    }

    fn number(&mut self) -> u64 {
        u64::try_from(self.sent.len()).unwrap() + 1
    }
}

struct HostBench {
    host: StrategyHost,
    clock: Clock,
    told: Delivered,
    lost: Vec<Arc<AtomicU64>>,
    sinks: Sinks,
    moved: Vec<u32>,
}

impl HostBench {
    /// Strategy `n` wants the instruments `wants[n]`, and has number `10 + n`.
    fn new(budget: StrategyBudget, wants: &[&[u32]], costs: &[Vec<u64>]) -> Self {
        let (clock, told) = (Clock::default(), Delivered::default());
        let (mut host, mut lost) = (StrategyHost::new(budget), Vec::new());
        for ((number, instruments), costs) in (10..).zip(wants).zip(costs) {
            let own = Arc::new(AtomicU64::new(0));
            let worker = Worker {
                clock: Arc::clone(&clock),
                told: Arc::clone(&told),
                costs: costs.clone(),
                lost: Arc::clone(&own),
            };
            host.add(number, instruments, Box::new(worker)).unwrap();
            lost.push(own);
        }
        Self { host, clock, told, lost, sinks: Sinks::default(), moved: Vec::new() }
    }

    fn serve(&mut self) -> bool {
        let clock = Arc::clone(&self.clock);
        let mut now = || clock.load(Ordering::Relaxed);
        let moved = &mut self.moved;
        self.host.serve(&mut |_, then| then(&mut self.sinks), &mut now, &mut |number| moved.push(number))
    }

    fn told(&self) -> Vec<(u32, u64)> {
        self.told.lock().unwrap().clone()
    }
}

fn quote(instrument: u32, sequence: u64) -> QuoteSeen {
    QuoteSeen::new(instrument, sequence, (5, 6), Quote { scheduled_ns: 4, ..Quote::default() })
}

fn answer(sequence: u64) -> AnswerSeen {
    let answer = Answer {
        order_number: 1,
        outcome: Outcome::Accepted,
        received_ns: 0,
        price: 1,
        quantity: 1,
        instrument: 0,
        side: Side::Buy,
    };
    AnswerSeen::new(sequence, (7, 8), answer)
}

#[test]
fn each_strategy_gets_what_it_wants_and_nothing_else() {
    let mut bench =
        HostBench::new(StrategyBudget::default(), &[&[0, 1, 1], &[1], &[]], &[vec![1], vec![1], vec![1]]);
    bench.host.take_quote(&quote(1, 1));
    bench.host.take_quote(&quote(0, 2));
    bench.host.take_quote(&quote(9, 3));
    bench.host.take_answer(12, &answer(4));
    bench.host.take_answer(99, &answer(5));
    while bench.serve() {}
    assert_eq!(bench.told(), [(10, 1), (11, 1), (12, 1_000_004), (10, 2)]);
    let sent: Vec<_> =
        bench.sinks.sent.iter().map(|stamp| (stamp.source, stamp.cause, stamp.trigger)).collect();
    assert_eq!(sent, [(10, 1, 5), (11, 1, 5), (10, 2, 5)]);
    assert_eq!(bench.host.usage(10).unwrap().calls, 2);
    assert_eq!(bench.host.usage(1), None);
    let double = bench.host.add(10, &[], Box::new(lowlat_node::strategy::OnEachRecord::default()));
    assert!(double.unwrap_err().to_string().starts_with("strategy number 10 is already in the host\n"));
}

#[test]
fn warming_reaches_every_strategy_in_turn_and_changes_nothing() {
    let mut bench =
        HostBench::new(StrategyBudget::default(), &[&[0], &[1], &[0, 5]], &[vec![1], vec![1], vec![1]]);
    let turn = |bench: &mut HostBench| (0..4).map(|_| bench.host.warm()).collect::<Vec<_>>();
    assert_eq!(turn(&mut bench), [Some(10), Some(11), Some(12), Some(10)]);
    assert!(!bench.host.is_ready() && !bench.serve() && bench.told().is_empty());
    // Also those with pending items.
    bench.host.take_quote(&quote(0, 1));
    bench.host.take_quote(&quote(0, 2));
    turn(&mut bench);
    while bench.serve() {}
    assert_eq!(bench.told(), [(10, 1), (12, 1), (10, 2), (12, 2)]);
    assert_eq!(StrategyHost::new(StrategyBudget::default()).warm(), None);
}

#[test]
fn a_full_queue_reports_a_gap_after_its_items() {
    let budget = StrategyBudget { queue_max: 2, ..StrategyBudget::default() };
    let mut bench = HostBench::new(budget, &[&[0]], &[vec![1]]);
    (0..5).for_each(|sequence| bench.host.take_quote(&quote(0, sequence)));
    while bench.serve() {}
    bench.host.take_gap(StrategyGap::Answers(7));
    while bench.serve() {}
    assert_eq!(bench.told(), [(10, 0), (10, 1)]);
    assert_eq!(bench.lost[0].load(Ordering::Relaxed), 3 + 7);
    assert_eq!(bench.host.usage(10).unwrap().dropped, 3);
}

#[test]
fn a_strategy_that_overruns_too_often_is_moved_out() {
    let budget = StrategyBudget { call_ns_max: 10, overruns_max: 3, window_calls: 5, queue_max: 100 };
    let mut bench = HostBench::new(budget, &[&[0], &[0]], &[vec![11], vec![10]]);
    (0..6).for_each(|sequence| bench.host.take_quote(&quote(0, sequence)));
    while bench.serve() {}
    assert_eq!(bench.moved, [10]);
    let usage = bench.host.usage(10).unwrap();
    assert_eq!((usage.calls, usage.overruns, usage.dropped, usage.is_moved_out), (3, 3, 3, true));
    assert_eq!(bench.host.usage(11).unwrap().calls, 6, "a strategy within its budget stays");
    bench.host.take_quote(&quote(0, 7));
    bench.host.take_answer(10, &answer(8));
    while bench.serve() {}
    assert_eq!(bench.host.usage(10).unwrap().calls, 3);
    assert_eq!(bench.host.numbers().collect::<Vec<_>>(), [11]);
}

#[test]
fn occasional_overruns_are_tolerated() {
    let budget = StrategyBudget { call_ns_max: 10, overruns_max: 2, window_calls: 4, queue_max: 100 };
    let mut bench = HostBench::new(budget, &[&[0]], &[vec![11, 0, 0, 0]]);
    (0..40).for_each(|sequence| bench.host.take_quote(&quote(0, sequence)));
    while bench.serve() {}
    assert_eq!((bench.moved.len(), bench.host.usage(10).unwrap().overruns), (0, 10));
}

/// Sets its timer to the time that a quote's sequence says.
struct Alarm(Delivered);

impl Strategy for Alarm {
    fn on_quote(&mut self, orders: &mut Orders<'_>, seen: &QuoteSeen) {
        orders.set_timer(seen.sequence);
    }

    fn on_timer(&mut self, orders: &mut Orders<'_>, due_ns: u64) {
        self.0.lock().unwrap().push((orders.strategy(), due_ns));
    }
}

#[test]
fn each_strategy_has_its_timer() {
    let (told, mut sinks) = (Delivered::default(), Sinks::default());
    let mut host = StrategyHost::new(StrategyBudget::default());
    for number in [4, 5] {
        host.add(number, &[number], Box::new(Alarm(Arc::clone(&told)))).unwrap();
    }
    let mut serve = |host: &mut StrategyHost| {
        while host.serve(&mut |_, then| then(&mut sinks), &mut || 0, &mut |_| ()) {}
    };
    for (instrument, at_ns) in [(4, 300), (5, 200), (4, 100)] {
        host.take_quote(&quote(instrument, at_ns));
        serve(&mut host);
    }
    assert_eq!(host.timer_ns(), 100, "the last one set counts");
    for (now_ns, next_ns) in [(99, 100), (100, 200), (199, 200), (500, u64::MAX)] {
        host.take_timers(now_ns);
        serve(&mut host);
        assert_eq!(host.timer_ns(), next_ns);
    }
    assert_eq!(*told.lock().unwrap(), [(4, 100), (5, 200)], "each once");
}

proptest! {
    /// On a simulated clock: whatever arrives and however long calls take, no strategy is served twice while
    /// another waits, and every item is delivered, in order per strategy.
    #[test]
    fn nobody_starves(
        costs in proptest::collection::vec(proptest::collection::vec(0_u64..1000, 1..5), 2..8),
        steps in proptest::collection::vec((0_u32..8, 0_usize..4), 1..200),
    ) {
        let budget = StrategyBudget { overruns_max: u32::MAX, queue_max: 1000, ..StrategyBudget::default() };
        let wants: Vec<Vec<u32>> = (0..8).map(|number| vec![number]).collect();
        let wants: Vec<&[u32]> = wants.iter().take(costs.len()).map(Vec::as_slice).collect();
        let mut bench = HostBench::new(budget, &wants, &costs);
        let count = u32::try_from(costs.len()).unwrap();
        let mut sent = vec![Vec::new(); costs.len()];
        // Since when each waits, in calls, and how often others were served meanwhile.
        let mut passed = vec![BTreeCount::default(); costs.len()];
        let mut serve = |bench: &mut HostBench, sent: &[Vec<u64>], seen: &mut Vec<usize>| -> Result<bool, TestCaseError> {
            let before = bench.told().len();
            let is_served = bench.serve();
            let told = bench.told();
            if let Some((number, _)) = told.get(before) {
                let who = usize::try_from(number - 10).unwrap();
                for (other, passed) in passed.iter_mut().enumerate() {
                    let is_waiting = sent[other].len() > seen[other];
                    if other == who || !is_waiting {
                        passed.clear();
                    } else {
                        prop_assert!(passed.add(who) <= 1, "{who} was served twice while {other} waited");
                    }
                }
                seen[who] += 1;
            }
            Ok(is_served)
        };
        let mut seen = vec![0; costs.len()];
        for (sequence, (instrument, serves)) in (0..).zip(steps) {
            let instrument = instrument % count;
            bench.host.take_quote(&quote(instrument, sequence));
            sent[usize::try_from(instrument).unwrap()].push(sequence);
            for _ in 0..serves {
                serve(&mut bench, &sent, &mut seen)?;
            }
        }
        while serve(&mut bench, &sent, &mut seen)? {}
        for (number, sent) in (10..).zip(&sent) {
            let told: Vec<_> = bench.told().iter().filter(|(who, _)| *who == number).map(|(_, sequence)| *sequence).collect();
            prop_assert_eq!(&told, sent);
        }
        let worked: u64 = (10..10 + count).map(|number| bench.host.usage(number).unwrap().sum_ns).sum();
        prop_assert_eq!(worked, bench.clock.load(Ordering::Relaxed), "all time is attributed");
    }
}

#[derive(Debug, Clone, Default)]
struct BTreeCount(std::collections::BTreeMap<usize, u32>);

impl BTreeCount {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn add(&mut self, who: usize) -> u32 {
        let count = self.0.entry(who).or_default();
        *count += 1;
        *count
    }
}
