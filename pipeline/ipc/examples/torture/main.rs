//! Publishers and subscribers as threads and processes, with policies, joins, leaves, stops and kills that
//! follow from the seed. Each subscriber knows what it must get, and fails the run if it gets anything else.
//!
//! cargo run --release -p lowlat-ipc --example torture -- --seconds 60 --seed 7

mod publisher;
mod round;
mod run;
mod subscriber;

use std::{
    env,
    process::ExitCode,
    time::{Duration, Instant, SystemTime},
};

fn option(name: &str) -> Option<u64> {
    let mut arguments = env::args().skip_while(|argument| argument != name);
    let text = arguments.nth(1)?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: found {text:?}, expected a number")))
}

fn main() -> ExitCode {
    run::play_if_started_so();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    let seconds = option("--seconds").unwrap_or(10);
    let mut seed = option("--seed").unwrap_or_else(|| u64::from(now));
    let (start, mut rounds, mut sum) = (Instant::now(), 0, run::Sum::default());
    println!("seed {seed}");
    while start.elapsed().as_secs() < seconds {
        match run::round(seed, Duration::from_millis(1_500)) {
            Ok(round) => sum.add(round),
            Err(error) => {
                eprintln!("round {rounds}: {error}");
                return ExitCode::FAILURE;
            }
        }
        rounds += 1;
        seed = run::next(seed);
    }
    println!("{rounds} rounds: {sum:?}");
    // Information only: how much was tried, not how fast anything is.
    println!("{:.0} records a second", sum.published as f64 / start.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}
