//! `lowlat journal record`: a node of the pipeline that reads every stream and publishes nothing.

use super::{payload, runs};
use crate::{
    arguments::{duration, duration_within, word},
    exit::Exit,
    output,
    progress::Progress,
    signals,
};
use anyhow::bail;
use clap::Args;
use lowlat_ipc::{
    region::Memfd,
    stream::{Reader, Segment},
};
use lowlat_journal::{
    read::Recording,
    record::{
        Follower, Keep, Options, Recorder, Source, SyncPolicy, WriteMethod, compress_all, identity::Clock,
    },
};
use lowlat_node::{Event, Join, Keys, Node, NodeEnded, Reads};
use lowlat_pipeline_report::JournalRecorded;
use std::{
    collections::{BTreeMap, VecDeque},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Interval at which new streams and segments of restarted writers are searched; their rings buffer
/// the records until then.
const LOOK: Duration = Duration::from_millis(20);
/// Interval of progress lines.
const SHOW: Duration = Duration::from_millis(250);
/// Interval of syncs with --sync interval.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct Record {
    /// Run to record: its name, directory or master's socket [default: the only one that runs]
    #[arg(long, value_name = "NAME|SOCKET")]
    run: Option<String>,
    /// Directory of the recording; an existing recording is resumed
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Stream to record, or a prefix: orders.*; may be repeated [default: all]
    #[arg(long, alias = "streams", value_name = "NAME")]
    stream: Vec<String>,
    /// When to sync to the disk: never, every second, or after each block
    #[arg(long, default_value = "interval", value_parser = word(SYNCS))]
    sync: SyncPolicy,
    /// Write past the page cache where the file system supports it (direct), or through it
    #[arg(long, default_value = "direct", value_parser = word([("direct", WriteMethod::Direct), ("cached", WriteMethod::Cached)]))]
    writes: WriteMethod,
    /// Memory to buffer records while the disk stalls, MiB [64 hold half a second of a million
    /// typical records per second]
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1024))]
    buffer_mib: u64,
    #[command(flatten)]
    files: DataFileArgs,
    /// Stop after this time: 10s, 5m [default: when the pipeline ends, or on Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    duration: Option<Duration>,
    /// Recording whose times of day those of the new one continue: that of a run over it
    #[arg(long, value_name = "DIR", hide = true)]
    clock_of: Option<PathBuf>,
    /// Name of this node in the pipeline; must be unique among recorders
    #[arg(long, value_name = "NAME", default_value = "recorder")]
    name: String,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

/// Files of a recording.
#[derive(Debug, Default, Args)]
pub struct DataFileArgs {
    /// Size of a data file of the recording, MiB; reserved when the file is created [default: 1024]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    file_mib: Option<u64>,
    /// Begin a new file of the recording with each interval of the time of day in UTC: 1h, 24h
    #[arg(long, value_name = "TIME", value_parser = interval)]
    roll: Option<Duration>,
    /// Delete files whose last record is older than this when a new file begins: 72h
    #[arg(long, value_name = "TIME", value_parser = interval)]
    keep_for: Option<Duration>,
    /// Delete the oldest files so that the recording never takes more than this, MiB; at least two
    /// files fit
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=(1 << 30)))]
    keep_mib: Option<u64>,
    /// Compress files of the recording with zstd once they have ended
    #[arg(long)]
    compress: bool,
    /// Leave the last file to the run that this is a part of
    #[arg(long, hide = true)]
    leave_last: bool,
}

/// Default size of a data file, MiB.
const FILE_MIB: u64 = 1024;

fn interval(text: &str) -> Result<Duration, String> {
    let range = Duration::from_secs(1)..=Duration::from_secs(100 * 366 * 24 * 60 * 60);
    duration_within(text, range, "1s or longer")
}

impl DataFileArgs {
    /// The recorder's options.
    pub fn options(&self) -> anyhow::Result<Options> {
        let file = self.file_mib.unwrap_or(FILE_MIB);
        if let Some(keep) = self.keep_mib.filter(|keep| keep / 2 < file) {
            bail!(
                "cannot keep {keep} MiB (--keep-mib) in files of {file} MiB: two files must fit\nhint: name smaller files with --file-mib, or keep {} MiB",
                2 * file
            );
        }
        let keep = Keep { age_max: self.keep_for, bytes_max: self.keep_mib.map(|mib| mib << 20) };
        let (roll, is_compressed) = (self.roll, self.compress);
        Ok(Options { file_bytes_max: file << 20, roll, keep, is_compressed, ..Options::default() })
    }

    /// The same as arguments of `lowlat journal record`.
    pub fn words(&self) -> Vec<String> {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let all = [
            ("--file-mib", self.file_mib, ""),
            ("--roll", self.roll.map(ms), "ms"),
            ("--keep-for", self.keep_for.map(ms), "ms"),
            ("--keep-mib", self.keep_mib, ""),
        ];
        let all = all
            .into_iter()
            .filter_map(|(name, value, unit)| Some([name.to_owned(), format!("{}{unit}", value?)]));
        all.chain(self.compress.then(|| ["--compress", "--leave-last"].map(str::to_owned)))
            .flatten()
            .collect()
    }

    /// Compresses what the recorder has not, in the end. Ends early if `stop` is raised.
    pub fn compress_rest(&self, folder: &Path, stop: &AtomicBool) -> anyhow::Result<()> {
        if self.compress && !self.leave_last {
            compress_all(folder, stop)?;
        }
        Ok(())
    }
}

/// When to sync to the disk, by word.
const SYNCS: [(&str, SyncPolicy); 3] = [
    ("none", SyncPolicy::None),
    ("interval", SyncPolicy::Interval(SYNC_INTERVAL)),
    ("each", SyncPolicy::Each),
];

type Memory = Arc<Memfd>;
/// Segments that replace others, by stream, oldest first.
type Successors = Arc<Mutex<BTreeMap<String, VecDeque<Segment<Memory>>>>>;

/// Reason for the end of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Pipeline,
    Duration,
    Signal,
}

pub fn run(arguments: &Record) -> anyhow::Result<Exit> {
    let stop = signals::stop_flag()?;
    let socket = runs::socket(arguments.run.as_deref())?;
    // Before joining the pipeline: a directory that cannot be written costs the pipeline nothing.
    let opened = Recorder::open(&arguments.out, options(arguments)?)?;
    let mut session = Session::join(arguments, &socket, &stop)?;
    let successors = Arc::clone(&session.successors);
    let follower = Follower::new(
        opened,
        Vec::new(),
        Box::new(move |name, epoch| {
            // A panic elsewhere leaves the list consistent.
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
    let (ended, fenced) = (session.end, session.node.ended() == Some(NodeEnded::Fenced));
    // A second Ctrl-C leaves the rest as it is.
    stop.store(false, Ordering::Relaxed);
    arguments.files.compress_rest(&arguments.out, &stop)?;
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
            End::Pipeline if fenced => "the master dropped this process",
            End::Pipeline => "the pipeline ended",
            End::Duration => "--duration elapsed",
            End::Signal => "it was interrupted",
        },
    };
    output::print_as(arguments.json, &output::Document::of("lowlat-journal-record", &shown), |width| {
        lowlat_pipeline_report::journal_recorded_text(&shown, width)
    })?;
    Ok(match ended {
        _ if recorded.lost > recorded.missed || fenced => Exit::Findings,
        End::Signal if arguments.duration.is_some() => Exit::Interrupted,
        _ => Exit::Clean,
    })
}

fn options(arguments: &Record) -> anyhow::Result<Options> {
    let moment_ns =
        arguments.clock_of.as_deref().map(Recording::open).transpose()?.and_then(|of| of.moment_ns());
    let clock = moment_ns
        .map_or(Clock::System, |(monotonic_ns, realtime_ns)| Clock::Fixed { monotonic_ns, realtime_ns });
    let options = arguments.files.options()?;
    let options = Options { clock, sync: arguments.sync, writes: arguments.writes, ..options };
    // Bytes that may arrive during a stall.
    Ok(options.riding_out(Duration::from_secs(1), arguments.buffer_mib << 20))
}

/// This process in the pipeline.
struct Session<'a> {
    node: Node,
    successors: Successors,
    /// The latest known epoch of each stream.
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
    fn join(arguments: &Record, socket: &Path, stop: &'a AtomicBool) -> anyhow::Result<Self> {
        let patterns =
            if arguments.stream.is_empty() { vec!["*".to_owned()] } else { arguments.stream.clone() };
        // With no keys: it reads the segments directly, and no publisher does any work for it.
        let reads = |streams: &String| Reads::new(streams, Keys::Only(Vec::new()));
        let join = Join::new(&arguments.name, "recorder").reading(patterns.iter().map(reads));
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

    /// Handles everything except records. Returns true once the recording has ended.
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
        // Once more at the end, to record streams that appeared since the last check.
        if !is_over && self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return Ok(false);
        }
        self.looked = Some(Instant::now());
        self.node.poll(&mut |_, event| is_over |= matches!(event, Event::Stop));
        // With a deadline in the past: it only shows the master that this process is alive.
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

    /// Follows new streams, and keeps segments that replace others.
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
                // An older segment is not read to its end by the node: nobody reads its rings.
                Some(known) => _ = self.epochs.insert(name, known.max(epoch)),
            }
        }
        Ok(())
    }
}
