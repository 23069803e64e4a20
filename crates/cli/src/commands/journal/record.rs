//! `lowlat journal record`: a node of the pipeline that reads every stream and publishes nothing.

use super::{payload, runs};
use crate::{
    arguments::duration,
    output::{self, Exit},
    progress::Progress,
    signals,
};
use clap::{Args, ValueEnum};
use lowlat_ipc::{
    region::Memfd,
    stream::{Reader, Segment},
};
use lowlat_journal::record::{Follower, Options, Recorder, Source, SyncPolicy, Writes};
use lowlat_report::JournalRecorded;
use lowlat_trade::node::{Ended, Event, Join, Keys, Node, Overrun, Reads};
use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How often streams that are new, and writers' successors, are looked for: their rings hold what comes meanwhile.
const LOOK: Duration = Duration::from_millis(20);
/// How often progress is shown.
const SHOW: Duration = Duration::from_millis(250);
/// When --sync interval waits for the disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct Record {
    /// Name of the run, its folder, or its master's socket [default: the only one that runs]
    #[arg(long, value_name = "NAME|SOCKET")]
    run: Option<String>,
    /// Folder of the recording; one that is there is gone on with
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Only this stream, or those that begin so: orders.*; may be given again [default: all]
    #[arg(long, alias = "streams", value_name = "NAME")]
    stream: Vec<String>,
    /// When the disk is waited for: never, each second, after each block
    #[arg(long, value_enum, default_value_t = SyncWord::Interval)]
    sync: SyncWord,
    /// How bytes go there: past the page cache, where the file system can, or through it
    #[arg(long, value_enum, default_value_t = WritesWord::Direct)]
    writes: WritesWord,
    /// Memory for what comes while the disk stalls, MiB: 64 hold half a second of a million usual records a second
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1024))]
    buffer_mib: u64,
    /// Size of a data file, MiB; it is reserved when the file is begun
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    file_mib: u64,
    /// End after this time: 10s, 5m [default: when the pipeline ends, or with Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    duration: Option<Duration>,
    /// Name of this node of the pipeline; two recorders need two
    #[arg(long, value_name = "NAME", default_value = "recorder")]
    name: String,
    /// Print what was recorded as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SyncWord {
    None,
    Interval,
    Each,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WritesWord {
    Direct,
    Cached,
}

type Memory = Arc<Memfd>;
/// Segments that take the place of others, by their stream, oldest first.
type Successors = Arc<Mutex<BTreeMap<String, VecDeque<Segment<Memory>>>>>;

/// Why a recording ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Pipeline,
    Duration,
    Signal,
}

pub fn run(arguments: &Record) -> anyhow::Result<Exit> {
    let stop = signals::stop_flag()?;
    let socket = runs::socket(arguments.run.as_deref())?;
    // Before the pipeline is asked: a folder that cannot be written costs nobody anything.
    let opened = Recorder::open(&arguments.out, options(arguments))?;
    let mut session = Session::join(arguments, &socket, &stop)?;
    let successors = Arc::clone(&session.successors);
    let follower = Follower::new(
        opened,
        Vec::new(),
        Box::new(move |name, epoch| {
            // A panic elsewhere leaves a list that is as right as before.
            let mut successors = successors.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = successors.get_mut(name)?;
            while waiting.front().is_some_and(|segment| segment.epoch() < epoch) {
                waiting.pop_front();
            }
            waiting.pop_front()
        }),
    )?;
    let recorded = follower.run_until(|follower| session.turn(follower))?;
    session.progress.finish();
    let (ended, fenced) = (session.end, session.node.ended() == Some(Ended::Fenced));
    let shown = JournalRecorded {
        folder: arguments.out.display().to_string(),
        streams: session.epochs.len(),
        records: recorded.written.records,
        skipped: recorded.skipped,
        gaps: recorded.gaps,
        lost: recorded.lost,
        missed: recorded.missed,
        files: recorded.written.files,
        bytes: recorded.written.bytes,
        took_ns: u64::try_from(session.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
        disk_waits: recorded.waits,
        disk_waited_ns: u64::try_from(recorded.waited.as_nanos()).unwrap_or(u64::MAX),
        ended: match ended {
            End::Pipeline if fenced => "the master gave this process up",
            End::Pipeline => "the pipeline ended",
            End::Duration => "the time was over",
            End::Signal => "it was asked to",
        },
    };
    if arguments.json {
        output::print_json(&shown)?;
    } else {
        output::print(&lowlat_report::journal_recorded_text(&shown, output::width()))?;
    }
    Ok(match ended {
        _ if recorded.lost > recorded.missed || fenced => Exit::Findings,
        End::Signal if arguments.duration.is_some() => Exit::Interrupted,
        _ => Exit::Clean,
    })
}

fn options(arguments: &Record) -> Options {
    let options = Options {
        file_bytes_max: arguments.file_mib << 20,
        sync: match arguments.sync {
            SyncWord::None => SyncPolicy::None,
            SyncWord::Interval => SyncPolicy::Interval(SYNC_INTERVAL),
            SyncWord::Each => SyncPolicy::Each,
        },
        writes: match arguments.writes {
            WritesWord::Direct => Writes::Direct,
            WritesWord::Cached => Writes::Cached,
        },
        ..Options::default()
    };
    // So much in a second of a stall.
    options.riding_out(Duration::from_secs(1), arguments.buffer_mib << 20)
}

/// This process in the pipeline.
struct Session<'a> {
    node: Node,
    successors: Successors,
    /// The latest epoch of each stream that is known.
    epochs: BTreeMap<String, u64>,
    progress: Progress,
    stop: &'a AtomicBool,
    begun: Instant,
    duration: Option<Duration>,
    looked: Option<Instant>,
    shown: Instant,
    end: End,
}

impl<'a> Session<'a> {
    fn join(arguments: &Record, socket: &std::path::Path, stop: &'a AtomicBool) -> anyhow::Result<Self> {
        let patterns =
            if arguments.stream.is_empty() { vec!["*".to_owned()] } else { arguments.stream.clone() };
        // With no key at all: it reads the segments by itself, and no publisher has any work with it.
        let reads = |streams| Reads { streams, keys: Keys::Only(Vec::new()), overrun: Overrun::default() };
        let join = Join {
            name: arguments.name.clone(),
            role: "recorder".to_owned(),
            reads: patterns.into_iter().map(reads).collect(),
            ..Join::default()
        };
        Ok(Self {
            node: Node::join(socket, &join)?,
            successors: Successors::default(),
            epochs: BTreeMap::new(),
            progress: Progress::new(),
            stop,
            begun: Instant::now(),
            duration: arguments.duration,
            looked: None,
            shown: Instant::now(),
            end: End::Pipeline,
        })
    }

    /// Looks after everything but records; true when it is over.
    fn turn(&mut self, follower: &mut Follower<Memory>) -> anyhow::Result<bool> {
        // Relaxed: a lone flag.
        let mut is_over = if self.stop.load(Ordering::Relaxed) {
            self.end = End::Signal;
            true
        } else if self.duration.is_some_and(|duration| self.begun.elapsed() >= duration) {
            self.end = End::Duration;
            true
        } else {
            false
        };
        // Once more at the end: a stream that came since the last look is recorded as well.
        if !is_over && self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return Ok(false);
        }
        self.looked = Some(Instant::now());
        self.node.poll(&mut |_, event| is_over |= matches!(event, Event::Stop));
        // Until a time that is over: it only shows its master that it lives.
        self.node.wait(Some(0));
        self.find_segments(follower)?;
        if self.shown.elapsed() >= SHOW {
            self.shown = Instant::now();
            let lost = follower.recorded().lost;
            let streams = self.epochs.len();
            let (records, seconds) = (follower.taken(), self.begun.elapsed().as_secs());
            self.progress.say(format!("{seconds} s: {records} records of {streams} streams, {lost} lost"));
        }
        Ok(is_over)
    }

    /// Follows streams that are new, and keeps the segments that take the place of others.
    fn find_segments(&mut self, follower: &mut Follower<Memory>) -> anyhow::Result<()> {
        for (stream, segment) in self.node.segments() {
            let (name, epoch) = (stream.as_str().to_owned(), segment.epoch());
            match self.epochs.insert(name.clone(), epoch) {
                None => {
                    let reader = Reader::from_start(segment);
                    follower.add(Source { name, schema: payload::NAME.to_owned(), reader })?;
                }
                Some(known) if epoch > known => {
                    let mut successors = self.successors.lock().unwrap_or_else(PoisonError::into_inner);
                    successors.entry(name).or_default().push_back(segment);
                }
                // An older one that is not read to its end by the node, whose rings nobody reads.
                Some(known) => _ = self.epochs.insert(name, known.max(epoch)),
            }
        }
        Ok(())
    }
}
