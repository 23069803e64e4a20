//! Publishers and subscribers that are stopped and killed (SIGKILL) at random moments: the survivors keep every
//! guarantee. The rounds are those of the example `torture`, which can play them for longer.
#![cfg(not(any(lowlat_loom, miri)))]

#[path = "../examples/torture/publisher.rs"]
mod publisher;
#[path = "../examples/torture/round.rs"]
mod round;
#[path = "../examples/torture/run.rs"]
mod run;
#[path = "../examples/torture/subscriber.rs"]
mod subscriber;

use std::time::{Duration, SystemTime};

/// Not a test, but one process of a round.
#[test]
fn process_of_a_round() {
    run::play_if_started_so();
}

#[test]
fn survivors_get_a_full_account() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    let given =
        std::env::var("LOWLAT_SEED").ok().map(|text| text.parse::<u64>().expect("LOWLAT_SEED: a number"));
    let mut seed = given.unwrap_or_else(|| u64::from(now));
    let mut sum = run::Sum::default();
    for _ in 0..4 {
        eprintln!("LOWLAT_SEED={seed}");
        sum.add(run::round(seed, Duration::from_millis(700)).unwrap());
        seed = run::next(seed);
    }
    eprintln!("{sum:?}");
    assert!(sum.taken > 0);
}
