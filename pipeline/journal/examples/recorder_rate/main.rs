//! Capacity and cost of a recorder: one thread publishes on a schedule, another records, a third writes. The
//! ways to write and to sync take turns, so that other load affects all alike; with `search` the rate rises
//! until records are lost.
//!
//! cargo run --release -p lowlat-journal --example recorder_rate -- --help
//!
//! A publisher that lost its CPU catches up by at most 100 ms of records, so `published/s` is the load that the
//! recorder had. CPU columns are per thread and per record; `disk waits` is the time that the follower was
//! blocked because all blocks were full.

mod run;

use clap::{Parser, builder::PossibleValuesParser, value_parser};
use lowlat_journal::record::{SyncPolicy, WriteMethod};
use run::{Outcome, Task};
use std::{error::Error, path::PathBuf, time::Duration};

const POLICIES: [(&str, SyncPolicy); 3] = [
    ("none", SyncPolicy::None),
    ("interval", SyncPolicy::Interval(Duration::from_secs(1))),
    ("each", SyncPolicy::Each),
];
const WRITES: [(&str, WriteMethod); 2] = [("direct", WriteMethod::Direct), ("cached", WriteMethod::Cached)];
/// Steps between a rate that works and one that does not.
const HALVINGS: u32 = 3;
/// Attempts at a rate until its publisher keeps pace.
const TRIES: u32 = 3;
/// Upper limit of a search.
const RATE_MAX: u64 = 64_000_000;

/// Measure the capacity and cost of a recorder
#[derive(Debug, Parser)]
struct Arguments {
    /// Records per second; with --search the first rate
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..=RATE_MAX))]
    rate: u64,
    /// Payload of each record, bytes
    #[arg(long, default_value_t = 64)]
    payload_bytes: usize,
    /// Duration of each run, seconds
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u64).range(1..))]
    seconds: u64,
    /// Number of runs of each way
    #[arg(long, default_value_t = 1)]
    rounds: u64,
    /// Stall of the disk for which the recorder has blocks, milliseconds
    #[arg(long, default_value_t = 500)]
    stall_ms: u64,
    /// Raise the rate until records are lost
    #[arg(long)]
    search: bool,
    /// Ways to sync [default: all]
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(names(&POLICIES)))]
    sync: Vec<String>,
    /// Ways to write [default: all]
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(names(&WRITES)))]
    writes: Vec<String>,
    /// Directories to create, record into and remove [default: one in memory and one among the temporary files]
    folders: Vec<PathBuf>,
}

impl Arguments {
    fn task(&self) -> Task {
        Task {
            rate: self.rate,
            payload_bytes: self.payload_bytes,
            duration: Duration::from_secs(self.seconds),
            stall: Duration::from_millis(self.stall_ms),
            ..Task::default()
        }
    }

    fn folders(&self) -> Vec<PathBuf> {
        if !self.folders.is_empty() {
            return self.folders.clone();
        }
        let name = format!("lowlat-recorder-rate-{}", std::process::id());
        vec![PathBuf::from("/dev/shm").join(&name), std::env::temp_dir().join(&name)]
    }
}

fn names<T>(all: &'static [(&'static str, T)]) -> impl Iterator<Item = &'static str> {
    all.iter().map(|(name, _)| *name)
}

/// The selected values, or all if none was selected.
fn chosen<T>(all: &'static [(&'static str, T)], asked: &[String]) -> Vec<&'static (&'static str, T)> {
    all.iter().filter(|(name, _)| asked.is_empty() || asked.iter().any(|asked| asked == name)).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = Arguments::parse();
    let (task, policies, writes) =
        (given.task(), chosen(&POLICIES, &given.sync), chosen(&WRITES, &given.writes));
    println!(
        "{} records/s, {} bytes of payload, {} s each; blocks for {} ms, and a ring of {} MiB",
        task.rate,
        task.payload_bytes,
        task.duration.as_secs(),
        task.stall.as_millis(),
        run::CAPACITY_BYTES >> 20
    );
    println!(
        "sync     writes  published/s      kept      lost   MB/s  publisher follower writing  disk waits     late  folder"
    );
    for folder in given.folders() {
        for round in 0..given.rounds {
            let mut ways: Vec<_> = policies
                .iter()
                .flat_map(|policy| writes.iter().map(move |writes| (**policy, **writes)))
                .collect();
            // In alternating direction, so that no way is always first.
            if round % 2 == 1 {
                ways.reverse();
            }
            for ((policy, sync), (way, writes)) in ways {
                let task = Task { sync, writes, folder: folder.clone(), ..task.clone() };
                let show = |outcome: &Outcome| print(policy, way, &task, outcome);
                if given.search {
                    println!("{policy:8} {way:6}  {}", search(&task, &show)?);
                } else {
                    show(&run::run(&task)?);
                }
            }
        }
    }
    Ok(())
}

/// Result of a run at a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rate {
    Kept,
    Lost,
    /// The publisher did not keep pace, so the run does not measure the recorder.
    NotReached,
}

/// The highest rate without loss, and what happened above it, in words.
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
    let why = if above.1 == Rate::Lost { "lost some" } else { "was too fast for the publisher" };
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
