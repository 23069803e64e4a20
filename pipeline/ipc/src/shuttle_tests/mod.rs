//! Rings, streams, router and bells of real size under many randomly chosen schedules.
//!
//! Shuttle treats every access as sequentially consistent: it finds wrong orders of steps. Loom, Miri and the
//! thread sanitizer find orderings that are too weak.
//!
//! A failing schedule is printed, and can be repeated with `shuttle::replay`.

mod ring;
mod router;
mod stream;
mod takeover;

use shuttle::{
    Config, Runner,
    rand::{Rng, thread_rng},
    scheduler::{PctScheduler, RandomScheduler, Scheduler},
    thread,
};
use std::time::{Duration, Instant};

/// Duration of each test for each of the two kinds of schedules.
const SECONDS: u64 = 5;
/// Schedules between two reads of the clock.
const BATCH: usize = 100;
/// Priority changes per schedule of the second kind.
const CHANGES_MAX: usize = 4;

/// Runs a model under schedules of two kinds: random steps, and threads with priorities that change a few
/// times. LOWLAT_SHUTTLE_SECONDS sets the duration of each kind.
fn explore(model: impl Fn() + Clone + Send + Sync + 'static) {
    let seconds = std::env::var("LOWLAT_SHUTTLE_SECONDS").map_or(SECONDS, |text| {
        text.parse().unwrap_or_else(|_| {
            panic!("LOWLAT_SHUTTLE_SECONDS: found {text:?}, expected seconds, such as 60")
        })
    });
    let run = |kind: &str, scheduler: &dyn Fn() -> Box<dyn Scheduler + Send>| {
        let mut config = Config::new();
        config.silence_warnings = true;
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_secs(seconds) {
            count += Runner::new(scheduler(), config.clone()).run(model.clone());
        }
        eprintln!("{}: {count} {kind} schedules", std::thread::current().name().unwrap_or_default());
    };
    run("random", &|| Box::new(RandomScheduler::new(BATCH)));
    run("prioritised", &|| Box::new(PctScheduler::new(CHANGES_MAX, BATCH)));
}

/// A number below `end`, chosen by the schedule.
fn draw(end: u64) -> u64 {
    thread_rng().gen_range(0..end)
}

/// Yields to the other threads for a while, mostly a short one.
fn nap() {
    let longest = 1 << draw(7);
    (0..draw(longest)).for_each(|_| thread::yield_now());
}
