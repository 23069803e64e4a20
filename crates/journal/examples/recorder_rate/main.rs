//! What a recorder keeps and costs: one thread publishes by a schedule, another records, a third writes. Each way to
//! write and to sync takes its turn, so that what else the machine does hits all alike; with `search` the rate goes up
//! until records are lost.
//!
//! cargo run --release -p lowlat-journal --example recorder_rate -- [rate=1000000] [payload=64] [seconds=3] [rounds=1]
//!     [stall_ms=500] [search] [direct|cached] [none|interval|each] [FOLDER...]
//!
//! Folders are made new; by default one in memory and one among the temporary files. A publisher that was off its CPU
//! makes up for 100 ms at most, so `published/s` is what the recorder had to take. CPU is of the thread alone, per record
//! that it handled; `disk waits` is how long the follower stood still since all blocks were full.

mod run;

use lowlat_journal::record::{SyncPolicy, Writes};
use run::{Outcome, Task};
use std::{error::Error, path::PathBuf, time::Duration};

const POLICIES: [(&str, SyncPolicy); 3] = [
    ("none", SyncPolicy::None),
    ("interval", SyncPolicy::Interval(Duration::from_secs(1))),
    ("each", SyncPolicy::Each),
];
const WRITES: [(&str, Writes); 2] = [("direct", Writes::Direct), ("cached", Writes::Cached)];
/// Steps between a rate that is kept and one that is not.
const HALVINGS: u32 = 3;
/// Runs at a rate until its publisher keeps its pace.
const TRIES: u32 = 3;
/// No search goes beyond this rate.
const RATE_MAX: u64 = 64_000_000;

struct Arguments {
    task: Task,
    rounds: u64,
    is_search: bool,
    policies: Vec<(&'static str, SyncPolicy)>,
    writes: Vec<(&'static str, Writes)>,
    folders: Vec<PathBuf>,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let task = Task {
        rate: 1_000_000,
        payload_bytes: 64,
        duration: Duration::from_secs(3),
        stall: Duration::from_millis(500),
        ..Task::default()
    };
    let mut given = Arguments {
        task,
        rounds: 1,
        is_search: false,
        policies: Vec::new(),
        writes: Vec::new(),
        folders: Vec::new(),
    };
    for word in std::env::args().skip(1) {
        let task = &mut given.task;
        if let Some(known) = POLICIES.iter().find(|(name, _)| *name == word) {
            given.policies.push(*known);
        } else if let Some(known) = WRITES.iter().find(|(name, _)| *name == word) {
            given.writes.push(*known);
        } else if word == "search" {
            given.is_search = true;
        } else if let Some((name, value)) = word.split_once('=') {
            match name {
                "rate" => task.rate = value.parse()?,
                "payload" => task.payload_bytes = value.parse()?,
                "seconds" => task.duration = Duration::from_secs(value.parse()?),
                "stall_ms" => task.stall = Duration::from_millis(value.parse()?),
                "rounds" => given.rounds = value.parse()?,
                _ => {
                    return Err(
                        format!("{word:?} is none of rate, payload, seconds, stall_ms, rounds").into()
                    );
                }
            }
        } else {
            given.folders.push(PathBuf::from(word));
        }
    }
    if given.task.rate == 0 || given.task.duration.is_zero() {
        return Err("rate and seconds must be above 0".into());
    }
    if given.policies.is_empty() {
        given.policies = POLICIES.to_vec();
    }
    if given.writes.is_empty() {
        given.writes = WRITES.to_vec();
    }
    if given.folders.is_empty() {
        let name = format!("lowlat-recorder-rate-{}", std::process::id());
        given.folders = vec![PathBuf::from("/dev/shm").join(&name), std::env::temp_dir().join(&name)];
    }
    Ok(given)
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = arguments()?;
    println!(
        "{} records/s, {} bytes of payload, {} s each; blocks for {} ms, and a ring of {} MiB",
        given.task.rate,
        given.task.payload_bytes,
        given.task.duration.as_secs(),
        given.task.stall.as_millis(),
        run::CAPACITY_BYTES >> 20
    );
    println!(
        "sync     writes  published/s      kept      lost   MB/s  publisher follower writing  disk waits     late  folder"
    );
    for folder in &given.folders {
        for round in 0..given.rounds {
            let mut ways: Vec<_> = given
                .policies
                .iter()
                .flat_map(|policy| given.writes.iter().map(move |writes| (*policy, *writes)))
                .collect();
            // Forth and back, so that nobody always comes first.
            if round % 2 == 1 {
                ways.reverse();
            }
            for ((policy, sync), (way, writes)) in ways {
                let task = Task { sync, writes, folder: folder.clone(), ..given.task.clone() };
                let show = |outcome: &Outcome| print(policy, way, &task, outcome);
                if given.is_search {
                    println!("{policy:8} {way:6}  {}", search(&task, &show)?);
                } else {
                    show(&run::run(&task)?);
                }
            }
        }
    }
    Ok(())
}

/// What a rate came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rate {
    Kept,
    Lost,
    /// The publisher did not keep its pace, which says nothing of the recorder.
    NotReached,
}

/// The highest rate of which all was kept, and what stood above it, in words.
fn search(task: &Task, show: &impl Fn(&Outcome)) -> Result<String, Box<dyn Error>> {
    let at = |rate: u64| -> Result<Rate, Box<dyn Error>> {
        for _ in 0..TRIES {
            let outcome = run::run(&Task { rate, ..task.clone() })?;
            show(&outcome);
            match outcome.lost {
                0 if outcome.published_per_s() > 0.95 * rate as f64 => return Ok(Rate::Kept),
                0 => {}
                _ => return Ok(Rate::Lost),
            }
        }
        Ok(Rate::NotReached)
    };
    let (mut kept, mut above) = (0, (task.rate, Rate::Kept));
    while kept < RATE_MAX {
        above.1 = at(above.0)?;
        if above.1 != Rate::Kept {
            break;
        }
        kept = above.0;
        above.0 *= 2;
    }
    for _ in 0..HALVINGS {
        let between = kept.midpoint(above.0);
        match at(between)? {
            Rate::Kept => kept = between,
            other => above = (between, other),
        }
    }
    let why = if above.1 == Rate::Lost { "lost some" } else { "was too much for the publisher" };
    Ok(format!("kept all of {kept} records/s; {} {why}", above.0))
}

fn print(policy: &str, way: &str, task: &Task, outcome: &Outcome) {
    let per_record =
        |cpu: Duration, count: u64| format!("{:.0} ns", cpu.as_nanos() as f64 / count.max(1) as f64);
    println!(
        "{policy:8} {way:6}  {:>11.0} {:>9} {:>9} {:>6.1}  {:>9} {:>8} {:>7}  {:>10} {:>8}  {}",
        outcome.published_per_s(),
        outcome.kept,
        outcome.lost,
        outcome.bytes as f64 / 1e6 / outcome.took.as_secs_f64(),
        per_record(outcome.publisher_cpu, outcome.published),
        per_record(outcome.follower_cpu, outcome.kept),
        per_record(outcome.writing_cpu, outcome.kept),
        format!("{:.0} ms", outcome.waited.as_secs_f64() * 1e3),
        format!("{:.0} ms", outcome.late_max.as_secs_f64() * 1e3),
        task.folder.display(),
    );
}
