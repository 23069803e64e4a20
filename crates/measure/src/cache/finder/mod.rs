//! Finds lines that threads of a running program share.
//!
//! Write-protected pages show which threads write where, in samples; the processor's breakpoints then count which thread
//! writes which word of a line. Neither needs a performance counter, so both work in virtual machines. The program waits
//! for lowlat at each sample and each counted write, which is measured and limited.

mod naming;
mod pages;
mod words;

use lowlat_cache::finder::{End, FinderRecord, LINE_BYTES, Samples};
use lowlat_sys::{Root, watch::WatchError};
use pages::Watched;
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use thiserror::Error;
use words::Words;

/// How long pages are sampled before lines are counted again.
const SAMPLING: Duration = Duration::from_millis(400);
/// How long lines are counted before pages are sampled again.
const COUNTING: Duration = Duration::from_millis(800);

/// Why nothing was found out.
#[derive(Debug, Error)]
pub enum FinderError {
    /// The program's memory cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// No breakpoints.
    #[error("cannot count writes with the processor's breakpoints: {source}\nhint: {hint}")]
    Breakpoints {
        /// The system's error.
        source: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// The watching thread died.
    #[error("cannot watch the program: the watching thread panicked\nhint: report this as a bug")]
    Panicked,
}

impl FinderError {
    fn breakpoints(source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::PermissionDenied => "run as root, or set kernel.perf_event_paranoid to 2 or less",
            io::ErrorKind::StorageFull => "end the debugger or profiler that uses the breakpoints",
            _ => "use a kernel with CONFIG_HAVE_HW_BREAKPOINT",
        };
        Self::Breakpoints { source, hint }
    }
}

/// Watches a program for some time. Ends early, with what was seen, when `stop` is raised or the program ends; it runs on
/// as before.
///
/// # Errors
/// [`FinderError`] if the program cannot be watched; nothing of it was changed then.
pub fn run(
    root: &Root,
    pid: u32,
    duration: Duration,
    stop: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<FinderRecord, FinderError> {
    let hit_ns = words::hit_ns().map_err(FinderError::breakpoints)?;
    // The kernel lets go of the program when the thread that traces it ends, however that happens.
    thread::scope(|scope| {
        let watching = scope.spawn(|| watch(root, pid, duration, hit_ns, stop, say));
        watching.join().unwrap_or(Err(FinderError::Panicked))
    })
}

fn watch(
    root: &Root,
    pid: u32,
    duration: Duration,
    hit_ns: u64,
    stop: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<FinderRecord, FinderError> {
    let line_bytes = line_bytes(root);
    let mut watched = Watched::attach(root, pid)?;
    let begun = Instant::now();
    let (mut samples, mut words) = (Samples::default(), Words::new(root, hit_ns, line_bytes));
    // Relaxed: set by the signal handler; orders nothing.
    let is_over =
        |watched: &Watched| watched.has_ended || begun.elapsed() >= duration || stop.load(Ordering::Relaxed);
    while !is_over(&watched) {
        if watched.is_replaced {
            (samples, words) = (Samples::default(), Words::new(root, hit_ns, line_bytes));
            watched.begin_again()?;
        }
        let slice = Instant::now();
        while slice.elapsed() < SAMPLING && !watched.is_replaced && !is_over(&watched) {
            watched.sample(&mut samples);
        }
        say(&format!(
            "{} writes caught; {} pages and {} lines shared",
            samples.count,
            samples.shared_pages().len(),
            words.shared_line_count()
        ));
        watched.note(&mut samples);
        words.choose(&samples, &watched.tids());
        let slice = Instant::now();
        while slice.elapsed() < COUNTING && !watched.is_replaced && !is_over(&watched) {
            watched.attend();
            if !words.count_next().map_err(FinderError::breakpoints)? {
                break;
            }
        }
    }
    let watched_ns = nanoseconds(begun.elapsed());
    let end = match (watched.has_ended, begun.elapsed() >= duration) {
        (true, _) => End::Ended,
        (_, true) => End::Time,
        _ => End::Interrupted,
    };
    let mut record = FinderRecord {
        pid,
        watched_ns,
        hit_ns,
        line_bytes,
        fetches_pairs: fetches_pairs(root),
        caught_count: samples.count,
        page_count: samples.page_count() as u64,
        shared_page_count: samples.shared_pages().len() as u64,
        end,
        ..FinderRecord::default()
    };
    words.report(&mut record);
    watched.report(&mut record);
    naming::name(&mut record, &watched.mappings);
    Ok(record)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn line_bytes(root: &Root) -> u64 {
    let path = "/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size";
    let bytes = root.read_as::<u64>(path, "a number of bytes").into_known();
    bytes.filter(|bytes| bytes.is_power_of_two() && (16..=1_024).contains(bytes)).unwrap_or(LINE_BYTES)
}

/// Intel's processors fetch the other line of a pair of 128 bytes too.
fn fetches_pairs(root: &Root) -> bool {
    root.read("/proc/cpuinfo").into_known().is_some_and(|text| text.contains("GenuineIntel"))
}
