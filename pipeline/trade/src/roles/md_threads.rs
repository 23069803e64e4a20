//! md with a thread for each instrument, as the Kungfu report's md: each sleeps until its next quote is due, and
//! all write one stream under one lock. For comparison only: [`super::md`] does the same in one loop.

use super::{hear, md};
use crate::{
    md::{Lateness, Walk},
    run::tally::{self, Tally},
    scenario::Scenario,
};
use lowlat_node::{Memory, Node, Refusal, clock::now_ns};
use rustix::thread::set_current_timer_slack;
use std::{
    num::NonZeroU64,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Scope, Thread},
    time::Duration,
};

/// Additional delay before the first quote, for the start of each thread.
const LEAD_NS_EACH: u64 = 100_000;
/// Interval at which the master's messages are handled.
const LISTEN: Duration = Duration::from_millis(50);

/// State that the threads share, one at a time.
struct Desk {
    node: Node,
    tally: Option<Tally<Memory>>,
    walk: Walk,
    lateness: Lateness,
    open: u32,
    failure: Option<Refusal>,
}

/// The desk, and whether publishing has ended.
struct Shared {
    desk: Mutex<Desk>,
    is_over: AtomicBool,
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        // Acquire: pairs with the store in `run`; what ended publishing is visible.
        self.is_over.load(Ordering::Acquire)
    }
}

/// Publishes all quotes of a scenario from the begin message on, and returns at the end or when it is stopped. The
/// same seed gives the same quotes as in one loop.
pub fn run(node: Node, scenario: &Scenario, seed: u64) -> Result<Lateness, Refusal> {
    let tally = node.area(tally::MD_AREA).cloned().and_then(Tally::new);
    if let Some(tally) = &tally {
        tally.set_scheduled(scenario.records());
    }
    let mut walk = Walk::new(seed, scenario.instruments);
    // A predecessor published round after round; its threads may have changed the order of the last few.
    let (published, instruments) = (node.published(), u64::from(scenario.instruments.max(1)));
    let done = |instrument: u32| {
        let more = u64::from(u64::from(instrument) < published % instruments);
        (published / instruments + more).min(scenario.records_of(instrument))
    };
    for instrument in 0..scenario.instruments {
        (0..done(instrument)).for_each(|_| _ = walk.quote(instrument, 0));
    }
    let (lateness, open) = (Lateness::default(), scenario.instruments);
    let desk = Mutex::new(Desk { node, tally, walk, lateness, open, failure: None });
    let shared = Shared { desk, is_over: AtomicBool::new(false) };
    if wait_for_begin(&shared) {
        let start_ns = now_ns() + md::LEAD_NS + LEAD_NS_EACH * u64::from(scenario.instruments);
        thread::scope(|scope| {
            let threads: Vec<Thread> = (0..scenario.instruments)
                .map(|of| start(scope, &shared, scenario, start_ns, (of, done(of))))
                .collect();
            while listen(&shared) {
                thread::park_timeout(LISTEN);
            }
            // Release: pairs with the load in `Shared::is_over`.
            shared.is_over.store(true, Ordering::Release);
            threads.iter().for_each(Thread::unpark);
        });
    }
    let desk = shared.desk.into_inner().unwrap_or_else(PoisonError::into_inner);
    match desk.failure {
        Some(failure) => Err(failure),
        None => desk.node.result(desk.lateness),
    }
}

/// Returns whether publishing may begin; not if the node is stopped before.
fn wait_for_begin(shared: &Shared) -> bool {
    let mut desk = shared.desk();
    loop {
        desk.node.wait(None);
        match hear(&mut desk.node) {
            (_, true) => return false,
            (true, false) => return true,
            (false, false) => {}
        }
    }
}

/// Handles the master's messages. Returns whether quotes are left to publish.
fn listen(shared: &Shared) -> bool {
    let mut desk = shared.desk();
    let is_over = desk.open == 0 || desk.failure.is_some();
    // A heartbeat.
    desk.node.wait(Some(now_ns()));
    let (_, must_stop) = hear(&mut desk.node);
    !is_over && !must_stop
}

/// Starts the thread of an instrument.
fn start<'s>(
    scope: &'s Scope<'s, '_>,
    shared: &'s Shared,
    scenario: &'s Scenario,
    start_ns: u64,
    (instrument, done): (u32, u64),
) -> Thread {
    let caller = thread::current();
    let body = move || {
        // Sleeps should end on time, not up to 50 µs later. If this is refused, the default slack remains.
        set_current_timer_slack(NonZeroU64::new(1)).ok();
        let first_ns = start_ns.saturating_add(scenario.start_delay_ns.saturating_mul(u64::from(instrument)));
        for number in 0..scenario.records_of(instrument) - done {
            let due_ns = first_ns.saturating_add(scenario.interval_ns.saturating_mul(number));
            if !sleep_until(shared, due_ns) {
                return;
            }
            publish(shared, scenario.interval_ns, instrument, due_ns);
        }
        let mut desk = shared.desk();
        desk.open -= 1;
        if desk.open == 0 {
            caller.unpark();
        }
    };
    scope.spawn(body).thread().clone()
}

/// Returns whether the time was reached; not if publishing has ended.
fn sleep_until(shared: &Shared, due_ns: u64) -> bool {
    while !shared.is_over() {
        let left_ns = due_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            return true;
        }
        thread::park_timeout(Duration::from_nanos(left_ns));
    }
    false
}

fn publish(shared: &Shared, interval_ns: u64, instrument: u32, due_ns: u64) {
    let mut desk = shared.desk();
    let Desk { node, tally, walk, lateness, failure, .. } = &mut *desk;
    if failure.is_some() {
        return;
    }
    let quote = walk.quote(instrument, due_ns);
    match md::publish(node, instrument, &quote) {
        Ok(at_ns) => {
            if let Some(tally) = tally {
                tally.published(at_ns);
            }
            let late_ns = at_ns.saturating_sub(due_ns);
            lateness.quotes += 1;
            lateness.behind += u64::from(late_ns >= interval_ns);
            lateness.sum_ns = lateness.sum_ns.saturating_add(late_ns);
            lateness.max_ns = lateness.max_ns.max(late_ns);
        }
        Err(error) => *failure = Some(error),
    }
}
