//! Finds lines that threads of a running program share.
//!
//! Write-protected pages show which threads write where, in samples; the processor's breakpoints then count which
//! thread uses which word of a line. Neither needs a performance counter, so both work in virtual machines. The program
//! waits for lowlat at each sample, each counted access and each stop of a traced thread, which is measured and
//! limited.

mod naming;
mod pages;
mod process;
mod words;

use crate::watch::WatchError;
use lowlat_cache::finder::{End, FinderRecord, LINE_BYTES, Samples};
use lowlat_host_run::Root;
use pages::Watched;
use std::{
    io,
    sync::atomic::AtomicBool,
    thread,
    time::{Duration, Instant},
};
use thiserror::Error;
use words::Words;

/// Time for which pages are sampled before lines are counted again.
const SAMPLING: Duration = Duration::from_millis(400);
/// Time for which lines are counted before pages are sampled again.
const COUNTING: Duration = Duration::from_millis(800);

/// Error that ends the search without findings.
#[derive(Debug, Error)]
pub enum FinderError {
    /// The program's memory cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error("cannot count writes with the processor's breakpoints: {source}\nhint: {hint}")]
    Breakpoints { source: io::Error, hint: &'static str },
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

/// Watches a program for some time; with `has_children`, also the processes that it starts. Ends early, with what was
/// seen, when `stop` is raised or the program ends. The program then continues as before.
///
/// # Errors
/// [`FinderError`] if the program cannot be watched; nothing of it was changed then.
pub fn run(
    root: &Root,
    pid: u32,
    has_children: bool,
    duration: Duration,
    stop: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<FinderRecord, FinderError> {
    let hit_ns = words::hit_ns().map_err(FinderError::breakpoints)?;
    // The kernel releases the program when the thread that traces it ends, however that happens.
    thread::scope(|scope| {
        let watching = scope.spawn(|| watch(root, (pid, has_children), duration, hit_ns, stop, say));
        watching.join().unwrap_or(Err(FinderError::Panicked))
    })
}

fn watch(
    root: &Root,
    (pid, has_children): (u32, bool),
    duration: Duration,
    hit_ns: u64,
    stop: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<FinderRecord, FinderError> {
    let line_bytes = line_bytes(root);
    let begun = Instant::now();
    let mut watched = Watched::attach(root, pid, has_children, begun + duration, stop)?;
    let fresh = || (Samples::new(line_bytes), Words::new(hit_ns, line_bytes));
    let (mut samples, mut words) = fresh();
    while !watched.is_over() {
        if watched.is_replaced {
            (samples, words) = fresh();
            watched.begin_again()?;
        }
        let slice = Instant::now();
        while slice.elapsed() < SAMPLING && !watched.is_replaced && !watched.is_over() {
            watched.sample(&mut samples);
        }
        say(&format!(
            "{} writes caught; {} pages and {} lines shared",
            samples.count,
            samples.shared_pages().len(),
            words.shared_line_count()
        ));
        watched.note(&mut samples);
        watched.find_children();
        words.choose(&samples, watched.running());
        let slice = Instant::now();
        while slice.elapsed() < COUNTING && !watched.is_replaced && !watched.is_over() {
            watched.attend(true);
            if !words.count_next(&mut watched).map_err(FinderError::breakpoints)? {
                break;
            }
        }
    }
    let end = match (watched.has_ended, begun.elapsed() >= duration) {
        (true, _) => End::Ended,
        (_, true) => End::Time,
        _ => End::Interrupted,
    };
    let mut record = FinderRecord {
        pid,
        watched_ns: nanoseconds(begun.elapsed()),
        hit_ns,
        line_bytes,
        caught_count: samples.count,
        page_count: samples.page_count() as u64,
        close_writes: samples.close_writes(|line| watched.mapping_of(line)),
        end,
        ..FinderRecord::default()
    };
    words.report(&mut record);
    watched.report(&mut record);
    naming::name(&mut record, &watched.processes);
    Ok(record)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Bytes of a cache line: the longest of all CPUs and caches, since a field must be alone in it everywhere.
fn line_bytes(root: &Root) -> u64 {
    let paths = root.glob("/sys/devices/system/cpu/cpu*/cache/index*/coherency_line_size");
    let bytes = paths.iter().filter_map(|path| root.read_as::<u64>(path, "a number of bytes").into_known());
    let bytes = bytes.filter(|bytes| bytes.is_power_of_two() && (16..=1_024).contains(bytes)).max();
    bytes.unwrap_or(LINE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_line_size() {
        let of = |sizes: &[(&str, &str)]| {
            let path = |place: &str| format!("sys/devices/system/cpu/{place}/coherency_line_size");
            let files = sizes.iter().map(|(place, size)| (path(place), format!("{size}\n").into_bytes()));
            line_bytes(&Root::in_memory("host", files))
        };
        assert_eq!(of(&[]), 64);
        assert_eq!(of(&[("cpu0/cache/index0", "128")]), 128);
        assert_eq!(of(&[("cpu0/cache/index0", "64"), ("cpu4/cache/index2", "128")]), 128);
        assert_eq!(of(&[("cpu0/cache/index0", "0"), ("cpu1/cache/index0", "lots")]), 64);
    }
}
