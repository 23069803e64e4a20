//! Records a short run of one CPU with its trace, for tests of attribution: the decoded trace, and the gaps
//! that the sampler saw. Names of threads other than ours and the kernel's are anonymized.
//!
//! As root: `cargo run --release -p lowlat-jitter-run --example record_run -- fixtures/trace/run.json.gz 1`

use flate2::{Compression, write::GzEncoder};
use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::Root;
use lowlat_host_run::affinity::pin_to;
use lowlat_jitter_run::tracefs::{CpuPipe, TraceOptions, Tracefs, Tracing, function_names};
use lowlat_jitter_run::{
    clock::TickScale,
    jitter::{Companion, JitterOptions, Lane, Started, run},
};
use lowlat_trace::{Decoder, TickMap, TraceClock, TraceEvent, TraceNames};
use std::{
    error::Error,
    fs::File,
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const DURATION: Duration = Duration::from_millis(400);
const THRESHOLD_NS: u64 = 1_000;
/// Length and interval of the load.
const LOAD_SPIN: Duration = Duration::from_micros(300);
const LOAD_SLEEP: Duration = Duration::from_millis(20);

struct Recording {
    tracing: Tracing,
    pipe: CpuPipe,
    decoder: Option<Decoder>,
    events: Vec<TraceEvent>,
    spans: Vec<(u64, u64)>,
    epoch: u64,
    sampler_tid: i32,
    scale: Option<TickScale>,
}

impl Companion for Recording {
    fn start(&mut self, started: &Started, lanes: &[Lane]) {
        self.sampler_tid = lanes.first().map_or(0, |lane| lane.thread_id);
        self.scale = Some(started.scale);
        self.decoder = Some(self.tracing.decoder(TickMap::identity(started.scale.hz())));
        for event in ["exceptions/page_fault_user", "exceptions/page_fault_kernel"] {
            let own = format!("common_pid == {}", self.sampler_tid);
            self.tracing.set_filter(event, &own).expect("the kernel filters page faults");
        }
        self.tracing.recording.set_on(true).expect("the trace begins");
    }

    fn collect(&mut self, epoch: u64, lanes: &mut [Lane]) {
        self.epoch = epoch;
        for lane in lanes {
            let spans = &mut self.spans;
            lane.ring.drain(|before, now| spans.push((before, now)));
        }
        if let Some(decoder) = &mut self.decoder {
            while !self.pipe.drain(decoder, &mut self.events).expect("the trace is read").is_empty {
                self.events.reserve(1 << 16);
            }
        }
    }

    fn finish(&mut self, _: &[Lane]) {
        self.tracing.recording.set_on(false).expect("the trace ends");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: record_run FILE CPU")?;
    let cpu: CpuId = arguments.next().ok_or("usage: record_run FILE CPU")?.parse()?;
    let tracefs = Arc::new(Tracefs::find()?);
    let tracing = Tracing::start(
        &tracefs,
        &TraceOptions {
            cpus: CpuSet::of(cpu),
            buffer_kb_per_cpu: 8_192,
            memory_kb_max: 1 << 20,
            clock: TraceClock::X86Tsc,
        },
    )?;
    let pipe = tracing.recording.pipes()?.pop().ok_or("no pipe")?;
    let mut recording = Recording {
        tracing,
        pipe,
        decoder: None,
        events: Vec::with_capacity(1 << 18),
        spans: Vec::with_capacity(1 << 16),
        epoch: 0,
        sampler_tid: 0,
        scale: None,
    };
    let options =
        JitterOptions { threshold_ns: Some(THRESHOLD_NS), ..JitterOptions::new(CpuSet::of(cpu), DURATION) };
    let (stop, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let load = thread::Builder::new().name("load".into()).spawn_scoped(scope, || load(cpu, &is_over))?;
        let done = run(&Root::live(), &options, &stop, &|_| {}, Some(&mut recording));
        is_over.store(true, Ordering::Relaxed);
        load.join().map_err(|_| "the load died")?;
        done?;
        Ok::<(), Box<dyn Error>>(())
    })?;
    write(&file, recording)
}

/// A thread that takes the CPU now and then.
fn load(cpu: CpuId, is_over: &AtomicBool) {
    pin_to(&CpuSet::of(cpu)).expect("the CPU exists");
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        while began.elapsed() < LOAD_SPIN {}
        thread::sleep(LOAD_SLEEP);
    }
}

fn write(file: &str, recording: Recording) -> Result<(), Box<dyn Error>> {
    let decoder = recording.decoder.ok_or("the run did not start")?;
    let mut names = decoder.names.clone();
    function_names(&decoder.functions)?.add_to(&mut names);
    make_neutral(&mut names, recording.sampler_tid);
    let run = serde_json::json!({
        "hz": recording.scale.map_or(0, |scale| scale.hz()),
        "epoch": recording.epoch,
        "sampler_tid": recording.sampler_tid,
        "spans": recording.spans,
        "names": names,
        "events": recording.events,
    });
    let mut packed = GzEncoder::new(File::create(file)?, Compression::best());
    packed.write_all(&serde_json::to_vec(&run)?)?;
    packed.finish()?;
    println!("{} events, {} interruptions", recording.events.len(), recording.spans.len());
    Ok(())
}

/// The kernel's own threads have well-known names; others may reveal something.
fn make_neutral(names: &mut TraceNames, sampler_tid: i32) {
    const KNOWN: [&str; 10] = [
        "load",
        "kworker/",
        "ksoftirqd/",
        "migration/",
        "rcu_",
        "kcompactd",
        "kswapd",
        "kdamond",
        "swapper",
        "lowlat",
    ];
    for (tid, thread) in &mut names.threads {
        if *tid != sampler_tid && !KNOWN.iter().any(|known| thread.comm.starts_with(known)) {
            thread.comm = "somebody".into();
        }
    }
}
