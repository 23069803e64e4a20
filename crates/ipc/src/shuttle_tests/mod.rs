//! Rings, streams, router and bells of real size under many schedules drawn at random.
//!
//! Shuttle takes every access for sequentially consistent: what is found here is a wrong order of steps. Orderings that
//! are too weak are for loom, Miri and the thread sanitizer.
//!
//! A schedule that fails is printed, and run again with `shuttle::replay`.

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

/// How long each test tries schedules of each of the two kinds.
const SECONDS: u64 = 5;
/// Schedules between two looks at the time.
const BATCH: usize = 100;
/// Changes of priority among the threads of one schedule of the second kind.
const CHANGES_MAX: usize = 4;

/// Runs a model under schedules of two kinds: each step is anybody's, and threads with priorities that change a few
/// times. LOWLAT_SHUTTLE_SECONDS is how long each kind takes.
fn explore(model: impl Fn() + Clone + Send + Sync + 'static) {
    let seconds = std::env::var("LOWLAT_SHUTTLE_SECONDS").map_or(SECONDS, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("LOWLAT_SHUTTLE_SECONDS: found {text:?}, expected seconds, as 60"))
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

/// A number below `end` that belongs to the schedule.
fn draw(end: u64) -> u64 {
    thread_rng().gen_range(0..end)
}

/// Leaves the others their turn for a while, mostly a short one.
fn nap() {
    let longest = 1 << draw(7);
    (0..draw(longest)).for_each(|_| thread::yield_now());
}
