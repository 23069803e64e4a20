//! Records the trace fixtures: real sub-buffers of one CPU under an artificial workload, and the formats
//! needed to read them. Run as root: `cargo run -p lowlat-jitter-run --example record_trace -- DIRECTORY [CPU]`.
//!
//! Names of threads other than the kernel's and the workload's are replaced before anything is written.

use flate2::{Compression, write::GzEncoder};
use lowlat_host::CpuSet;
use lowlat_jitter_run::tracefs::{CpuPipe, TraceOptions, Tracefs, Tracing};
use lowlat_trace::{EventFormat, Field, Page, PageLayout, TRACEPOINTS, TraceClock};
use rustix::thread::CpuSet as Affinity;
use std::{
    error::Error,
    fs::{self, File},
    hint::black_box,
    io::{self, Read as _, Write as _},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Sub-buffers kept from each recording.
const PAGES_MAX: usize = 6;
/// Threads whose names are kept.
const NEUTRAL: [&str; 10] = [
    "swapper/",
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "rcu",
    "kcompactd",
    "khugepaged",
    "busy",
    "sleeper",
    "flusher",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("name the directory to write to")?;
    let cpu = arguments.next().map_or(Ok(1), |text| text.parse::<u32>())?;
    let directory = Path::new(&directory);
    fs::create_dir_all(directory)?;
    let tracefs = Arc::new(Tracefs::find()?);
    let (formats, switch, layout) = formats()?;
    write_gz(&directory.join("formats.txt.gz"), formats.as_bytes())?;

    let stop = Arc::new(AtomicBool::new(false));
    let workload = workload(cpu, &stop);
    // The second is read only after the buffer has overflowed, repeatedly.
    for (name, is_overflowing) in [("busy-cpu", false), ("overflow", true)] {
        let options = TraceOptions {
            cpus: CpuSet::of(cpu),
            buffer_kb_per_cpu: 64,
            memory_kb_max: 64 << 10,
            clock: TraceClock::X86Tsc,
        };
        let tracing = Tracing::start(&tracefs, &options)?;
        let mut pipe = tracing.recording.pipes()?.pop().ok_or("no pipe")?;
        tracing.recording.set_on(true)?;
        let mut pages = Vec::new();
        while pages.len() < PAGES_MAX {
            let lost_count = tracing.stats(cpu)?.overrun_count;
            while is_overflowing && tracing.stats(cpu)?.overrun_count < lost_count + 100 {
                thread::sleep(Duration::from_millis(20));
            }
            read(&mut pipe, &layout, pages.len() + if is_overflowing { 2 } else { PAGES_MAX }, &mut pages)?;
        }
        tracing.recording.finish()?;
        for page in &mut pages {
            make_neutral(page, &layout, &switch);
        }
        write_gz(&directory.join(format!("{name}.bin.gz")), &pages.concat())?;
        eprintln!("{name}: {} sub-buffers", pages.len());
    }
    stop.store(true, Ordering::Relaxed);
    for thread in workload {
        thread.join().map_err(|_| "a thread of the workload failed")?;
    }
    Ok(())
}

/// Returns the formats as one text, with a line "== name" before each, and those that the recording itself
/// needs.
fn formats() -> Result<(String, EventFormat, PageLayout), Box<dyn Error>> {
    let base = Path::new("/sys/kernel/tracing/events");
    let mut text = String::new();
    let mut add = |name: &str, file: &Path| -> io::Result<String> {
        // The headers answer only one read.
        let mut bytes = vec![0; 64 << 10];
        let count = File::open(file)?.read(&mut bytes)?;
        bytes.truncate(count);
        let format = String::from_utf8(bytes).map_err(io::Error::other)?;
        text.extend(["== ", name, "\n", &format]);
        Ok(format)
    };
    let layout = PageLayout::parse(&add("header_page", &base.join("header_page"))?)?;
    add("header_event", &base.join("header_event"))?;
    let mut switch = None;
    for tracepoint in TRACEPOINTS {
        let path = tracepoint.path();
        if let Ok(format) = add(&path, &base.join(&path).join("format"))
            && tracepoint.name == "sched_switch"
        {
            switch = Some(EventFormat::parse(&path, &format)?);
        }
    }
    Ok((text, switch.ok_or("no sched_switch")?, layout))
}

/// Starts threads that give the CPU something to trace until `stop` is set.
fn workload(cpu: u32, stop: &Arc<AtomicBool>) -> Vec<thread::JoinHandle<()>> {
    let start = |name: &str, cpu: Option<u32>, turn: fn()| {
        let stop = Arc::clone(stop);
        let body = move || {
            if let Some(cpu) = cpu {
                let mut affinity = Affinity::new();
                affinity.set(cpu as usize);
                if let Err(error) = rustix::thread::sched_setaffinity(None, &affinity) {
                    eprintln!("cannot pin to CPU {cpu}: {error}");
                }
            }
            // Relaxed: nothing else depends on it.
            while !stop.load(Ordering::Relaxed) {
                turn();
            }
        };
        thread::Builder::new().name(name.into()).spawn(body).expect("a thread can be started")
    };
    vec![
        start("busy", Some(cpu), || _ = black_box((0..100_000_u64).map(black_box).sum::<u64>())),
        start("sleeper", Some(cpu), || {
            thread::sleep(Duration::from_millis(1));
            // Fresh pages: a fault for each.
            drop(black_box(vec![1_u8; 1 << 18]));
        }),
        // Freeing memory makes the other CPUs of the process flush their TLBs.
        start("flusher", None, || {
            drop(black_box(vec![1_u8; 1 << 20]));
            thread::sleep(Duration::from_millis(2));
        }),
    ]
}

/// Reads sub-buffers until `count` have been read.
fn read(
    pipe: &mut CpuPipe,
    layout: &PageLayout,
    count: usize,
    pages: &mut Vec<Vec<u8>>,
) -> Result<(), Box<dyn Error>> {
    while pages.len() < count {
        thread::sleep(Duration::from_millis(100));
        let mut damage = None;
        pipe.drain_raw(|bytes| {
            match Page::parse(bytes, layout) {
                Ok(page) if page.entries().next().is_some() => pages.push(bytes.to_vec()),
                Ok(_) => {}
                Err(error) => damage = Some(error),
            }
            pages.len() < count && damage.is_none()
        })?;
        if let Some(damage) = damage {
            return Err(damage.into());
        }
    }
    Ok(())
}

/// Replaces the names of all other threads.
fn make_neutral(bytes: &mut [u8], layout: &PageLayout, switch: &EventFormat) {
    let comms: Vec<&Field> =
        ["prev_comm", "next_comm"].iter().filter_map(|name| switch.field(name)).collect();
    let start = bytes.as_ptr().addr();
    let mut private = Vec::new();
    if let Ok(page) = Page::parse(bytes, layout) {
        for entry in page.entries().flatten() {
            let is_switch = entry.record.starts_with(&switch.id.to_ne_bytes());
            for comm in comms.iter().filter(|_| is_switch) {
                let name = String::from_utf8_lossy(comm.text(entry.record).unwrap_or_default()).into_owned();
                if !NEUTRAL.iter().any(|neutral| name.starts_with(neutral)) {
                    private.push((entry.record.as_ptr().addr() - start + comm.offset, comm.size));
                }
            }
        }
    }
    for (at, size) in private {
        let other = b"other".iter().copied().chain(std::iter::repeat(0));
        bytes[at..at + size].iter_mut().zip(other).for_each(|(byte, new)| *byte = new);
    }
}

fn write_gz(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut encoder = GzEncoder::new(File::create(path)?, Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish().map(drop)
}
