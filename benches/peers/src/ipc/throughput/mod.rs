//! Messages per second from one process to one, four or eight others, all of them spinning.
//!
//! The writer sends as fast as it can for a time, and every reader counts what it gets. Each message starts with its
//! number; what a reader did not get is lost. Transports differ in what they do with a slow reader: lowlat, ringfire and
//! iceoryx2 lose, Aeron waits.

mod ends;

use super::{
    handover,
    trial::memory::{Cutter, Part},
};
use crate::rounds::Ratio;
use anyhow::{Context, bail, ensure};
use lowlat_ipc::{
    region::{Access, Memfd, Region},
    stream::Segment,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io::Read,
    os::fd::BorrowedFd,
    path::PathBuf,
    process::{Child, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Bytes of a ring: of lowlat's segment, and of the messages that the others may hold.
const RING_BYTES: u64 = 4 << 20;

/// Words of the memory that all processes of a run share.
const READY: usize = 0;
const START: usize = 16;
/// Number of messages sent + 1, once the writer has ended.
const SENT: usize = 32;

/// A transport from one process to many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rival {
    /// lowlat-ipc: a stream that its readers follow, as nodes that spin do
    Lowlat,
    /// ringfire, which overwrites what a slow reader has not read
    Ringfire,
    /// iceoryx2, publish and subscribe
    Iceoryx2,
    /// Aeron over IPC, which waits for the slowest reader
    Aeron,
}

impl Rival {
    const ALL: [Self; 4] = [Self::Lowlat, Self::Ringfire, Self::Iceoryx2, Self::Aeron];

    fn name(self) -> &'static str {
        match self {
            Self::Lowlat => "lowlat",
            Self::Ringfire => "ringfire",
            Self::Iceoryx2 => "iceoryx2",
            Self::Aeron => "aeron",
        }
    }

    /// Why it takes no part here.
    fn missing(self) -> Option<&'static str> {
        match self {
            Self::Iceoryx2 if cfg!(not(feature = "iceoryx2")) => Some("build with --features iceoryx2"),
            Self::Aeron if cfg!(not(feature = "aeron")) => Some("build with --features aeron"),
            _ => None,
        }
    }
}

/// Messages per second.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Numbers of readers
    #[arg(long, value_delimiter = ',', default_value = "1,4,8")]
    readers: Vec<u32>,
    /// Bytes of a message
    #[arg(long, value_delimiter = ',', default_value = "64,256", value_parser = clap::builder::PossibleValuesParser::new(["64", "256"]))]
    bytes: Vec<String>,
    /// Rounds, each of one run of every transport
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Time for which the writer sends, in milliseconds
    #[arg(long, default_value_t = 1_000)]
    millis: u64,
    /// Only these transports
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Rival>,
    /// Prints a JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// One process of a run.
#[derive(Debug, clap::Args)]
pub struct ProcessArguments {
    #[arg(long, value_enum)]
    rival: Rival,
    /// Number of readers, for the writer; 0: a reader
    #[arg(long)]
    readers: u32,
    #[arg(long)]
    bytes: u32,
    #[arg(long)]
    millis: u64,
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    parent: i32,
}

/// What one process counted.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Counted {
    messages: u64,
    elapsed_s: f64,
}

/// Figures of one run.
#[derive(Debug, Clone, Serialize)]
struct Figures {
    sent_per_s: f64,
    /// The mean of the readers.
    received_per_s: f64,
    /// Share of the messages that a reader lost, the mean of the readers.
    lost_share: f64,
}

/// One run of a transport.
#[derive(Debug, Serialize)]
struct Run {
    rival: Rival,
    readers: u32,
    bytes: u32,
    round: u32,
    #[serde(flatten)]
    figures: Figures,
}

/// The memory of a run, as each process opens it.
pub struct Shared {
    memory: Arc<Memfd>,
}

impl Shared {
    fn bytes() -> u64 {
        let mut cutter = Cutter::default();
        cutter.cut(4096);
        cutter.cut(Segment::<Part>::bytes(RING_BYTES));
        cutter.bytes()
    }

    /// lowlat's segment.
    pub fn segment(&self) -> Part {
        let mut cutter = Cutter::default();
        cutter.cut(4096);
        Part::new(&self.memory, &cutter.cut(Segment::<Part>::bytes(RING_BYTES)))
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.memory.words()[at]
    }

    /// A reader or the writer is there. Returns once all are.
    pub fn ready(&self) {
        // Pairs with the parent's load: what was opened before is there.
        self.word(READY).fetch_add(1, Ordering::AcqRel);
        while self.word(START).load(Ordering::Acquire) == 0 {
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// The number of messages sent, once the writer has ended.
    pub fn sent(&self) -> Option<u64> {
        self.word(SENT).load(Ordering::Acquire).checked_sub(1)
    }
}

/// Runs one process, as a child.
pub fn play(arguments: &ProcessArguments) -> anyhow::Result<()> {
    handover::follow_parent(arguments.parent)?;
    let memory = handover::take(1)?.remove(0);
    let shared = Shared { memory: Arc::new(Memfd::open(memory, Access::Write)?) };
    let (folder, readers) = (arguments.folder.as_path(), arguments.readers);
    let time = Duration::from_millis(arguments.millis);
    let counted = match arguments.bytes {
        64 => ends::run::<8>(arguments.rival, &shared, folder, readers, time)?,
        256 => ends::run::<32>(arguments.rival, &shared, folder, readers, time)?,
        other => bail!("--bytes {other}: expected 64 or 256"),
    };
    println!("{}", serde_json::to_string(&counted)?);
    Ok(())
}

/// Runs all rounds and prints the results.
pub fn run(arguments: &Arguments, stop: &AtomicBool) -> anyhow::Result<()> {
    ensure!(!arguments.readers.contains(&0), "--readers 0: expected at least one");
    let takes_part = |rival: &Rival| arguments.only.is_empty() || arguments.only.contains(rival);
    let (here, absent): (Vec<_>, Vec<_>) =
        Rival::ALL.into_iter().filter(takes_part).partition(|rival| rival.missing().is_none());
    for rival in absent {
        eprintln!("{} left out: {}", rival.name(), rival.missing().unwrap_or_default());
    }
    let mut runs = Vec::new();
    for bytes in &arguments.bytes {
        let bytes: u32 = bytes.parse()?;
        for readers in arguments.readers.iter().copied() {
            for round in 0..arguments.rounds {
                // The transport that runs first changes from round to round.
                let first = usize::try_from(round)? % here.len().max(1);
                for rival in here.iter().copied().cycle().skip(first).take(here.len()) {
                    match run_one(rival, readers, bytes, arguments.millis, stop) {
                        Ok(figures) => runs.push(Run { rival, readers, bytes, round, figures }),
                        Err(error) if stop.load(Ordering::Relaxed) => return Err(error),
                        Err(error) => eprintln!("{}, {readers} readers: {error:#}", rival.name()),
                    }
                }
            }
            if !arguments.json {
                print(&runs, readers, bytes, &here);
            }
        }
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&runs)?);
    }
    Ok(())
}

/// The processes of a run; killed when dropped.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // A child that has already ended is no error.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn run_one(
    rival: Rival,
    readers: u32,
    bytes: u32,
    millis: u64,
    stop: &AtomicBool,
) -> anyhow::Result<Figures> {
    let shared = Shared { memory: Arc::new(Memfd::create("lowlat-peers", Shared::bytes())?) };
    let folder = tempfile::Builder::new().prefix("lowlat-peers-").tempdir_in("/dev/shm");
    let folder = folder.context("no temporary folder in /dev/shm")?;
    let _remains = super::one_way::Remains(folder.path());
    let mut processes = Processes(Vec::new());
    let path = folder.path().to_str().context("the temporary folder's name is no text")?;
    let mut start = |of: u32| -> anyhow::Result<()> {
        let words = [
            "ipc",
            "throughput-process",
            "--rival",
            rival.name(),
            "--readers",
            &of.to_string(),
            "--bytes",
            &bytes.to_string(),
            "--millis",
            &millis.to_string(),
            "--folder",
            path,
        ]
        .map(str::to_owned);
        let memory: [BorrowedFd<'_>; 1] = [shared.memory.writer_fd()];
        processes.0.push(handover::start(&words, &memory, Stdio::piped())?);
        Ok(())
    };
    start(readers)?;
    for _ in 0..readers {
        start(0)?;
    }
    let patience = Duration::from_secs(30) + Duration::from_millis(millis);
    let begun = Instant::now();
    while shared.word(READY).load(Ordering::Acquire) < u64::from(readers) + 1 {
        check(&mut processes, stop, begun, patience)?;
    }
    shared.word(START).store(1, Ordering::Release);
    while processes.0.iter_mut().any(|child| child.try_wait().is_ok_and(|status| status.is_none())) {
        check(&mut processes, stop, begun, patience)?;
    }
    let mut counted = Vec::new();
    for child in &mut processes.0 {
        let mut text = String::new();
        child.stdout.take().context("no output")?.take(1 << 16).read_to_string(&mut text)?;
        counted
            .push(serde_json::from_str::<Counted>(&text).with_context(|| format!("its figures: {text:?}"))?);
    }
    let [writer, received @ ..] = counted.as_slice() else { bail!("no figures") };
    let mean = |of: &dyn Fn(&Counted) -> f64| received.iter().map(of).sum::<f64>() / f64::from(readers);
    let sent = writer.messages as f64;
    ensure!(sent > 0.0, "nothing was sent");
    Ok(Figures {
        sent_per_s: sent / writer.elapsed_s,
        received_per_s: mean(&|reader| reader.messages as f64 / writer.elapsed_s),
        lost_share: mean(&|reader| 1.0 - reader.messages as f64 / sent),
    })
}

fn check(
    processes: &mut Processes,
    stop: &AtomicBool,
    begun: Instant,
    patience: Duration,
) -> anyhow::Result<()> {
    ensure!(!stop.load(Ordering::Relaxed), "interrupted");
    ensure!(begun.elapsed() < patience, "no end within {patience:?}");
    for child in &mut processes.0 {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "a process ended with {status}");
        }
    }
    thread::sleep(Duration::from_millis(1));
    Ok(())
}

/// Prints the medians of one load, and lowlat's ratio to each other transport.
fn print(runs: &[Run], readers: u32, bytes: u32, here: &[Rival]) {
    println!("{readers} readers, {bytes} bytes: million messages per second, medians");
    let mut by_rival: BTreeMap<Rival, Vec<&Run>> = BTreeMap::new();
    for run in runs.iter().filter(|run| (run.readers, run.bytes) == (readers, bytes)) {
        by_rival.entry(run.rival).or_default().push(run);
    }
    let median = |rival: Rival, of: &dyn Fn(&Figures) -> f64| {
        let mut values: Vec<f64> = by_rival.get(&rival)?.iter().map(|run| of(&run.figures)).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    for rival in here.iter().copied() {
        let figure = |of: &dyn Fn(&Figures) -> f64| median(rival, of).unwrap_or(f64::NAN);
        println!(
            "  {:<9} sent {:>7.2}  received {:>7.2} by each  lost {:>5.1} %",
            rival.name(),
            figure(&|figures| figures.sent_per_s / 1e6),
            figure(&|figures| figures.received_per_s / 1e6),
            figure(&|figures| figures.lost_share * 100.0)
        );
    }
    let of_round = |rival: Rival, round: u32| {
        let found = by_rival.get(&rival)?.iter().find(|run| run.round == round)?;
        Some(found.figures.received_per_s)
    };
    for other in here.iter().copied().filter(|rival| *rival != Rival::Lowlat) {
        let rounds = runs.iter().map(|run| run.round).max().unwrap_or(0);
        let pairs: Vec<_> = (0..=rounds)
            .filter_map(|round| Some((of_round(Rival::Lowlat, round)?, of_round(other, round)?)))
            .collect();
        if let Some(ratio) = Ratio::of(&pairs) {
            println!("  received, lowlat / {}: {}", other.name(), ratio.text());
        }
    }
}
