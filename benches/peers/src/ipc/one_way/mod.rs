//! One message of 64 bytes from one process to another, each on a CPU of its own: half a round trip.

mod channel;
pub mod ends;
mod play;
mod report;
mod subject;

use super::{handover, trial::arguments::pin_to};
use anyhow::{Context, bail, ensure};
use channel::{Channel, Made};
use lowlat_pipeline::StageFigures;
use report::Round;
use std::{
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use subject::{Subject, Wait};

const LOOK: Duration = Duration::from_millis(5);

/// Which side of a run a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum End {
    /// Sends, and takes the time.
    Ping,
    /// Sends back what came.
    Echo,
}

/// Transports beside each other.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The CPUs of the two processes
    #[arg(long, value_delimiter = ',', default_value = "0,1")]
    cpus: Vec<u32>,
    /// Rounds, each of one run of every transport
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Round trips of a run, spinning
    #[arg(long, default_value_t = 200_000)]
    trips: u64,
    /// Round trips of a run, parked
    #[arg(long, default_value_t = 5_000)]
    parked_trips: u64,
    /// Round trips between two looks at the clock, spinning: a look takes about as long as half a trip
    #[arg(long, default_value_t = 32)]
    batch: u64,
    /// Seconds after which a run is given up
    #[arg(long, default_value_t = 20)]
    patience: u64,
    /// Only these transports, and the floors
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Subject>,
    /// Prints a JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// One side of a run.
#[derive(Debug, clap::Args)]
pub struct EndArguments {
    #[arg(long, value_enum)]
    subject: Subject,
    #[arg(long, value_enum)]
    end: End,
    #[arg(long)]
    cpu: u32,
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    trips: u64,
    #[arg(long)]
    batch: u64,
    #[arg(long)]
    parent: i32,
}

/// Runs one side, as a child process.
pub fn play(arguments: &EndArguments) -> anyhow::Result<()> {
    handover::follow_parent(arguments.parent)?;
    let descriptors = handover::take(channel::descriptor_count(arguments.subject))?;
    pin_to(&[arguments.cpu])?;
    let channel = Channel::new(arguments.end, arguments.folder.clone(), descriptors)?;
    let (trips, batch) = (arguments.trips, arguments.batch);
    ends::run(arguments.subject, channel, &play::Load { trips, warm_up: trips / 10, batch })
}

/// Runs all rounds and prints the results.
pub fn run(arguments: &Arguments, stop: &AtomicBool) -> anyhow::Result<()> {
    let [ping, echo] = arguments.cpus.as_slice() else { bail!("--cpus: expected two, such as 0,1") };
    ensure!(ping != echo, "--cpus {ping},{echo}: expected two different ones");
    ensure!(
        arguments.batch > 0 && arguments.trips >= arguments.batch && arguments.parked_trips > 0,
        "--trips {} in batches of {}: expected at least one batch",
        arguments.trips,
        arguments.batch
    );
    let takes_part = |subject: &Subject| {
        arguments.only.is_empty() || arguments.only.contains(subject) || subject.wait().floor() == *subject
    };
    let (here, absent): (Vec<_>, Vec<_>) =
        Subject::ALL.into_iter().filter(takes_part).partition(|subject| subject.missing().is_none());
    for subject in &absent {
        eprintln!("{} left out: {}", subject.name(), subject.missing().unwrap_or_default());
    }
    let mut rounds: Vec<Round> = Vec::new();
    for number in 0..arguments.rounds {
        let mut round = Round::new();
        // The subject that runs first changes from round to round.
        let first = usize::try_from(number)? % here.len();
        for subject in here.iter().cycle().skip(first).take(here.len()) {
            match run_one(arguments, *subject, stop) {
                Ok(figures) => drop(round.insert(*subject, figures)),
                Err(error) if stop.load(Ordering::Relaxed) => return Err(error),
                // The round continues without it; ratios use the rounds that have both.
                Err(error) => eprintln!("round {:>2}: {error:#}", number + 1),
            }
        }
        report::print_round(number + 1, &round);
        rounds.push(round);
    }
    report::print(&rounds, arguments.cpus.as_slice(), arguments.batch, &absent, arguments.json)
}

/// Both sides of a run; killed when dropped.
struct Sides(Vec<Child>);

impl Drop for Sides {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // A child that has already ended is no error.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn run_one(arguments: &Arguments, subject: Subject, stop: &AtomicBool) -> anyhow::Result<StageFigures> {
    let made = Made::new(subject)?;
    let folder = tempfile::Builder::new().prefix("lowlat-peers-").tempdir_in("/dev/shm");
    let folder = folder.context("no temporary folder in /dev/shm")?;
    let _remains = Remains(folder.path());
    let (trips, batch) = match subject.wait() {
        Wait::Spin => (arguments.trips, arguments.batch),
        Wait::Park => (arguments.parked_trips, 1),
    };
    let mut sides = Sides(Vec::new());
    for (end, cpu) in [End::Echo, End::Ping].into_iter().zip(arguments.cpus.iter().rev()) {
        let folder = folder.path().to_str().context("the temporary folder's name is no text")?;
        let (name, output) = match end {
            End::Ping => ("ping", Stdio::piped()),
            End::Echo => ("echo", Stdio::null()),
        };
        let words = [
            "ipc",
            "end",
            "--subject",
            subject.name(),
            "--end",
            name,
            "--cpu",
            &cpu.to_string(),
            "--folder",
            folder,
            "--trips",
            &trips.to_string(),
            "--batch",
            &batch.to_string(),
        ]
        .map(str::to_owned);
        sides.0.push(handover::start(&words, &made.descriptors(end), output)?);
    }
    let start = Instant::now();
    let mut running = true;
    while running {
        thread::sleep(LOOK);
        running = false;
        for child in &mut sides.0 {
            match child.try_wait()? {
                None => running = true,
                Some(status) => ensure!(status.success(), "{}: one side ended with {status}", subject.name()),
            }
        }
        ensure!(!stop.load(Ordering::Relaxed), "interrupted");
        let is_late = start.elapsed() > Duration::from_secs(arguments.patience);
        ensure!(
            !(running && is_late),
            "{}: no end within {} s: take fewer --trips",
            subject.name(),
            arguments.patience
        );
    }
    let mut text = String::new();
    let output = sides.0.last_mut().and_then(|ping| ping.stdout.take()).context("no output")?;
    // It has ended, so the output is complete.
    output.take(1 << 20).read_to_string(&mut text)?;
    serde_json::from_str(&text)
        .with_context(|| format!("{}: its figures cannot be read: {text:?}", subject.name()))
}

/// Returns the prefix of a run's shared memory, for libraries that create it in /dev/shm themselves.
pub fn prefix(folder: &Path) -> String {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or("lowlat-peers");
    format!("{}_", name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_"))
}

/// Shared memory that a killed process left behind under the run's name; removed when dropped.
pub struct Remains<'a>(pub &'a Path);

impl Drop for Remains<'_> {
    fn drop(&mut self) {
        let prefix = prefix(self.0);
        for entry in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                // It may already have been removed.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}
