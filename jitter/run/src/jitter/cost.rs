//! Cost of tracing: two threads hand over a CPU to each other, one event per handover, with tracing on and off
//! in turn.

use super::real_time::{RealTime, RealTimePolicy};
use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::affinity::{self, AffinityError};
use lowlat_host_run::scheduling::release_threads;
use lowlat_jitter::TracingCost;
use std::{
    io,
    sync::{
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};
use thiserror::Error;

/// Handovers per thread in one round. A round is short compared with a clock tick, so most rounds contain
/// nothing else.
const HANDOVERS: u32 = 64;
/// Rounds on each side of a comparison. The fastest represents its side, because disturbances only make a round
/// longer.
const ROUNDS: u32 = 6;
/// Sides measured before tracing is switched again, which takes the kernel far longer than a side.
const SIDES: usize = 4;
const PAIRS_MAX: usize = 200;
/// No stretch of comparisons starts later than this.
const BUDGET: Duration = Duration::from_millis(180);
/// Timeout of a side, which takes well below a millisecond: if it expires, the CPU has no time for it.
const SIDE_MAX: Duration = Duration::from_millis(400);
const STACK_BYTES: usize = 128 << 10;
const NAME: &str = "lowlat-cost";

const LEADERS_TURN: u32 = 0;
const FOLLOWERS_TURN: u32 = 1;

/// Error that prevents measuring the cost of tracing.
#[derive(Debug, Error)]
pub enum CostError {
    /// The threads cannot run on the CPU.
    #[error("cannot measure the cost of tracing: {0}")]
    Pin(#[from] AffinityError),
    /// A thread cannot be started.
    #[error("cannot measure the cost of tracing: cannot start a thread ({0}); raise the limit on threads")]
    Thread(#[from] io::Error),
    /// Other threads leave no time.
    #[error("cannot measure the cost of tracing: CPU {cpu} is too busy")]
    Busy { cpu: CpuId },
    /// No comparison was completed.
    #[error("cannot measure the cost of tracing: a thread died because of a bug in lowlat; please report it")]
    Died,
}

/// Measures the cost of one trace event, on a CPU that is not measured if possible.
///
/// `switch` turns tracing on (`true`) and off. It is called from this thread, and last with `false`; the state
/// may already be the requested one. It must enable and disable the event itself
/// (events/sched/sched_switch/enable of an instance): if only tracing_on of the instance is 0, the tracepoint
/// still runs, and part of the cost is on both sides. The cost of switching is not included. In total this
/// takes about a fifth of a second, longer only if switching does.
///
/// # Errors
/// [`CostError`] if the threads cannot run on the CPU.
pub fn tracing_cost(cpu: CpuId, mut switch: impl FnMut(bool)) -> Result<TracingCost, CostError> {
    let began = Instant::now();
    let table = Table::default();
    thread::scope(|scope| {
        let end = EndOnDrop(&table);
        let (answer, answers) = mpsc::channel();
        let mut orders = Vec::new();
        for life in [lead as Life, follow as Life] {
            let (order, ordered) = mpsc::channel();
            let (table, answer) = (&table, answer.clone());
            thread::Builder::new()
                .name(NAME.to_owned())
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || sit_down(cpu, table, &ordered, &answer, life))?;
            orders.push(order);
        }
        drop(answer);
        let next = || match answers.recv_timeout(SIDE_MAX) {
            Ok(measured) => Ok(measured?),
            Err(RecvTimeoutError::Timeout) => Err(CostError::Busy { cpu }),
            Err(RecvTimeoutError::Disconnected) => Err(CostError::Died),
        };
        let mut side = || {
            orders.iter().try_for_each(|order| order.send(()).map_err(|_| CostError::Died))?;
            next()
        };
        let seated = orders.iter().try_for_each(|_| next().map(drop));
        let pairs = seated.and_then(|()| compare(began, &mut switch, &mut side));
        if matches!(pairs, Err(CostError::Busy { .. })) {
            // They can then end on a CPU that has time for them.
            release_threads(NAME);
        }
        // The threads are dropped before the orders.
        drop(end);
        switch(false);
        TracingCost::of_rounds(&pairs?).ok_or(CostError::Died)
    })
}

/// Pairs of sides, traced and not. Their order alternates, so that neither a drift nor the switching favours
/// one.
fn compare(
    began: Instant,
    switch: &mut impl FnMut(bool),
    side: &mut impl FnMut() -> Result<f64, CostError>,
) -> Result<Vec<(f64, f64)>, CostError> {
    let mut pairs = Vec::with_capacity(PAIRS_MAX);
    let mut is_traced_first = true;
    while pairs.len() < PAIRS_MAX && (pairs.is_empty() || began.elapsed() < BUDGET) {
        let mut stretch = |is_traced: bool| {
            switch(is_traced);
            let mut sides = [0.0; SIDES];
            sides.iter_mut().try_for_each(|ns| side().map(|measured| *ns = measured))?;
            Ok::<_, CostError>(sides)
        };
        let (first, second) = (stretch(is_traced_first)?, stretch(!is_traced_first)?);
        let (traced, plain) = if is_traced_first { (first, second) } else { (second, first) };
        pairs.extend(traced.into_iter().zip(plain));
        is_traced_first = !is_traced_first;
    }
    Ok(pairs)
}

/// State shared by both threads.
#[derive(Debug, Default)]
struct Table {
    /// First that of the leader, which is 0.
    turn: AtomicU32,
    is_over: AtomicBool,
}

impl Table {
    /// Yields the CPU until it is this thread's turn. Returns false at the end.
    fn wait_for(&self, turn: u32) -> bool {
        // Acquire: pairs with the Release store of `give`, so a round starts after the other thread's half of the last
        // handover.
        while self.turn.load(Ordering::Acquire) != turn {
            // Relaxed: the flag orders nothing.
            if self.is_over.load(Ordering::Relaxed) {
                return false;
            }
            thread::yield_now();
        }
        true
    }

    fn give(&self, turn: u32) {
        // Release: pairs with the Acquire load of `wait_for`.
        self.turn.store(turn, Ordering::Release);
    }
}

/// Ends the waiting of both threads, whichever leaves first and for whatever reason.
struct EndOnDrop<'a>(&'a Table);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        // Relaxed: the flag orders nothing.
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// One side: the time of a handover, in the thread that measures it.
type Life = fn(&Table) -> Option<f64>;

fn sit_down(
    cpu: CpuId,
    table: &Table,
    orders: &Receiver<()>,
    answers: &Sender<Result<f64, AffinityError>>,
    life: Life,
) {
    let _end = EndOnDrop(table);
    // Without it, other threads of the CPU would get a slice at every handover. Without permission they do.
    let _ = RealTime { policy: RealTimePolicy::Fifo, priority: 1 }.take();
    // If an answer cannot be sent, the receiver is gone; then the orders end too.
    let _ = answers.send(affinity::pin_to(&CpuSet::of(cpu)).map(|()| 0.0));
    while orders.recv().is_ok() {
        if let Some(ns) = life(table) {
            let _ = answers.send(Ok(ns));
        }
    }
}

/// Nanoseconds of a handover in the fastest round. `None` at the end.
fn lead(table: &Table) -> Option<f64> {
    let mut fastest_ns = f64::INFINITY;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..HANDOVERS {
            table.give(FOLLOWERS_TURN);
            if !table.wait_for(LEADERS_TURN) {
                return None;
            }
        }
        let ns = began.elapsed().as_nanos() as f64 / f64::from(2 * HANDOVERS);
        fastest_ns = fastest_ns.min(ns);
    }
    Some(fastest_ns)
}

fn follow(table: &Table) -> Option<f64> {
    for _ in 0..ROUNDS * HANDOVERS {
        if !table.wait_for(FOLLOWERS_TURN) {
            break;
        }
        table.give(LEADERS_TURN);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, fs};

    fn some_cpu() -> CpuId {
        affinity::current().unwrap().lowest().unwrap()
    }

    #[test]
    fn tracing_is_switched_in_turn_and_ends_off() {
        let mut switched = Vec::new();
        let cost = tracing_cost(some_cpu(), |is_on| switched.push(is_on)).unwrap();
        assert_eq!(switched.len(), 2 * (cost.round_count as usize / SIDES) + 1);
        assert_eq!((switched.first(), switched.last()), (Some(&true), Some(&false)));
        let on = switched.iter().filter(|is_on| **is_on).count();
        assert_eq!(on * SIDES, cost.round_count as usize, "as often on as off");
        let (low, high) = cost.event_ns_quartiles;
        assert!(low <= cost.event_ns && cost.event_ns <= high, "{cost:?}");
    }

    /// The pairs of a kernel on which an event takes 100 ns, and the switches of tracing.
    fn pairs_of_made_up_sides(began: Instant) -> (Vec<(f64, f64)>, Vec<bool>) {
        let (is_traced, mut switched) = (Cell::new(false), Vec::new());
        let mut switch = |is_on| {
            is_traced.set(is_on);
            switched.push(is_on);
        };
        let pairs = compare(began, &mut switch, &mut || Ok(if is_traced.get() { 300.0 } else { 200.0 }));
        (pairs.unwrap(), switched)
    }

    #[test]
    fn sides_are_paired_in_alternating_order() {
        let late = Instant::now().checked_sub(BUDGET).unwrap();
        let (pairs, switched) = pairs_of_made_up_sides(late);
        assert_eq!(pairs, [(300.0, 200.0); SIDES], "one stretch, however late it is");
        assert_eq!(switched, [true, false]);
        let (pairs, switched) = pairs_of_made_up_sides(Instant::now() + Duration::from_secs(60));
        assert_eq!(pairs, [(300.0, 200.0); PAIRS_MAX]);
        assert_eq!(switched[..6], [true, false, false, true, true, false]);
        assert!(TracingCost::of_rounds(&pairs).unwrap().event_ns_quartiles.0 > 0.0);
        let mut dying = || Err(CostError::Died);
        assert!(matches!(compare(late, &mut |_| (), &mut dying), Err(CostError::Died)));
    }

    #[test]
    fn a_missing_cpu_is_an_error() {
        let mut last = true;
        let error = tracing_cost(65_000, |is_on| last = is_on).unwrap_err();
        assert!(error.to_string().contains("cannot run on CPU 65000"), "{error}");
    }

    /// An instance of the kernel's tracer, removed on drop.
    struct Instance(String);

    impl Drop for Instance {
        fn drop(&mut self) {
            let _ = fs::remove_dir(&self.0);
        }
    }

    #[test]
    fn a_real_trace_is_measured() {
        let path = format!("/sys/kernel/tracing/instances/lowlat-cost-test-{}", std::process::id());
        if let Err(error) = fs::create_dir(&path) {
            eprintln!("skipped: a_real_trace_is_measured: {path}: {error}");
            return;
        }
        let instance = Instance(path);
        let event = format!("{}/events/sched/sched_switch/enable", instance.0);
        let cost =
            tracing_cost(some_cpu(), |is_on| fs::write(&event, if is_on { "1" } else { "0" }).unwrap())
                .unwrap();
        eprintln!("{cost:?}");
        assert!(cost.round_count > 0);
        assert_eq!(fs::read_to_string(&event).unwrap().trim(), "0");
    }
}
