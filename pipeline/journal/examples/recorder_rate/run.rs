//! One run: a stream in shared memory, published on a schedule and recorded.

use lowlat_ipc::{
    region::Memfd,
    stream::{Owner, Reader, Segment, Stamp, Writer},
};
use lowlat_journal::{
    layout::record_bytes,
    read::{Recording, verify},
    record::{Follower, Options, Recorder, Source, SyncPolicy, WriteMethod},
};
use rustix::time::{ClockId, clock_gettime};
use std::{
    error::Error,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// 64 MiB: half a second of a million records per second.
pub const CAPACITY_BYTES: u64 = 64 << 20;
/// Sleep of the publisher between batches.
const PACE: Duration = Duration::from_micros(200);
/// Largest delay that a late publisher catches up on.
const CATCH_UP_MAX: Duration = Duration::from_millis(100);

#[derive(Debug, Clone)]
pub struct Task {
    pub rate: u64,
    pub payload_bytes: usize,
    pub duration: Duration,
    /// Stall of the disk that the spare blocks must absorb.
    pub stall: Duration,
    pub sync: SyncPolicy,
    pub writes: WriteMethod,
    pub folder: PathBuf,
}

impl Default for Task {
    fn default() -> Self {
        Self {
            rate: 0,
            payload_bytes: 0,
            duration: Duration::ZERO,
            stall: Duration::ZERO,
            sync: SyncPolicy::None,
            writes: WriteMethod::Direct,
            folder: PathBuf::new(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Outcome {
    pub published: u64,
    pub took: Duration,
    /// Largest delay of the publisher.
    pub late_max: Duration,
    pub kept: u64,
    pub lost: u64,
    pub bytes: u64,
    pub waited: Duration,
    pub publisher_cpu: Duration,
    pub follower_cpu: Duration,
    pub writing_cpu: Duration,
}

impl Outcome {
    pub fn published_per_s(&self) -> f64 {
        self.published as f64 / self.took.as_secs_f64()
    }
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Executes the run in a new directory, which is removed afterwards.
pub fn run(task: &Task) -> Result<Outcome, Box<dyn Error>> {
    let memory = Arc::new(Memfd::create("recorder-rate", Segment::<Memfd>::bytes(CAPACITY_BYTES))?);
    let segment = Segment::create(Arc::clone(&memory), CAPACITY_BYTES, 1, 1, 0, Owner::default())?;
    let mut writer = Writer::new(segment);
    let reader = Reader::from_start(Segment::open(memory)?);
    let bytes_per_s = task.rate * u64::try_from(record_bytes(task.payload_bytes))?;
    let options = Options { sync: task.sync, writes: task.writes, ..Options::default() };
    std::fs::create_dir(&task.folder)?;
    let opened = Recorder::open(&task.folder, options.riding_out(task.stall, bytes_per_s))?;
    let source = Source { name: "rate".to_owned(), schema: String::new(), reader };
    let follower = Follower::new(opened, vec![source], Box::new(|_, _| None))?;
    // Preparing the memory is not part of the run.
    let (all_before, own_before) = (cpu_time(ClockId::ProcessCPUTime), cpu_time(ClockId::ThreadCPUTime));
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let following = thread::spawn(move || {
        let outcome = follower.run(&stopped);
        (outcome, cpu_time(ClockId::ThreadCPUTime))
    });
    let published = publish(&mut writer, &vec![7; task.payload_bytes], task.rate, task.duration);
    let publisher_cpu = cpu_time(ClockId::ThreadCPUTime).saturating_sub(own_before);
    // Relaxed: a lone flag.
    stop.store(true, Ordering::Relaxed);
    let (recorded, follower_cpu) = following.join().map_err(|_| "the recorder panicked")?;
    let (published, recorded) = (published?, recorded?);
    let all_cpu = cpu_time(ClockId::ProcessCPUTime).saturating_sub(all_before);
    let report = verify(&Recording::open(&task.folder)?, true, &mut |_, _| ());
    std::fs::remove_dir_all(&task.folder)?;
    let kept = recorded.written.records;
    if kept + recorded.lost != published.count || report.records() != kept || report.damage_count > 0 {
        return Err(
            format!("records are unaccounted for: {recorded:?}, read back {}", report.records()).into()
        );
    }
    Ok(Outcome {
        published: published.count,
        took: published.took,
        late_max: published.late_max,
        kept,
        lost: recorded.lost,
        bytes: recorded.written.bytes,
        waited: recorded.waited,
        publisher_cpu,
        follower_cpu,
        writing_cpu: all_cpu.saturating_sub(follower_cpu).saturating_sub(publisher_cpu),
    })
}

struct Published {
    count: u64,
    took: Duration,
    late_max: Duration,
}

/// Publishes what is due on the schedule, then sleeps, so that it takes no CPU time from the recorder.
fn publish(
    writer: &mut Writer<Arc<Memfd>>,
    payload: &[u8],
    rate: u64,
    duration: Duration,
) -> Result<Published, Box<dyn Error>> {
    let due_at = |elapsed: Duration| elapsed.as_nanos() * u128::from(rate) / 1_000_000_000;
    let (begun, mut count, mut late_max) = (Instant::now(), 0, Duration::ZERO);
    // The schedule's slip, if the publisher was too late to catch up.
    let (mut slipped, mut last) = (Duration::ZERO, Duration::ZERO);
    loop {
        let elapsed = begun.elapsed();
        if elapsed >= duration {
            return Ok(Published { count, took: elapsed, late_max });
        }
        let late = elapsed.saturating_sub(last).saturating_sub(PACE);
        late_max = late_max.max(late);
        slipped += late.saturating_sub(CATCH_UP_MAX);
        last = elapsed;
        let due = u64::try_from(due_at(elapsed.saturating_sub(slipped)))?;
        let now = u64::try_from(elapsed.as_nanos())?;
        while count < due {
            let stamp = Stamp { kind: 1, schema: 1, generated: now, trigger: now, ..Stamp::default() };
            writer.publish(&stamp, payload)?;
            count += 1;
        }
        thread::sleep(PACE);
    }
}
