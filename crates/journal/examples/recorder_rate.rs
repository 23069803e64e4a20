//! How much a recorder costs and keeps: one thread publishes at a given rate, another records. Takes the rate in records
//! a second (0: as fast as it goes), the payload's bytes, seconds, and a folder (default: a new one beside this one's
//! target).
//!
//! cargo run --release -p lowlat-journal --example recorder_rate -- 1000000 64 5

use lowlat_ipc::{
    region::Memfd,
    stream::{Owner, Reader, Segment, Stamp, Writer},
};
use lowlat_journal::{
    read::{Recording, verify},
    record::{Follower, Options, Recorder, Source, SyncPolicy},
};
use rustix::time::{ClockId, clock_gettime};
use std::{
    error::Error,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// 64 MiB: half a second of a million records a second.
const CAPACITY_BYTES: u64 = 64 << 20;

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (rate, payload_bytes, seconds) = (number(1_000_000)?, number(64)?, number(5)?);
    let folder = arguments.next().map_or_else(
        || std::env::temp_dir().join(format!("lowlat-recorder-rate-{}", std::process::id())),
        PathBuf::from,
    );
    let memory = Arc::new(Memfd::create("recorder-rate", Segment::<Memfd>::bytes(CAPACITY_BYTES))?);
    let segment = Segment::create(Arc::clone(&memory), CAPACITY_BYTES, 1, 1, 0, Owner::default())?;
    let mut writer = Writer::new(segment);
    let reader = Reader::from_start(Segment::open(memory)?);
    let options = Options { sync: SyncPolicy::None, ..Options::default() };
    let opened = Recorder::open(&folder, options)?;
    let source = Source { name: "rate".to_owned(), schema: String::new(), reader };
    let follower = Follower::new(opened, vec![source], Box::new(|_, _| None))?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = std::thread::spawn(move || {
        let outcome = follower.run(&stopped);
        (outcome, cpu_time(ClockId::ThreadCPUTime))
    });

    let payload = vec![7; usize::try_from(payload_bytes)?];
    let published = publish(&mut writer, &payload, rate, Duration::from_secs(seconds))?;
    let publisher_cpu = cpu_time(ClockId::ThreadCPUTime);
    // Relaxed: a lone flag.
    stop.store(true, Ordering::Relaxed);
    let (outcome, follower_cpu) = thread.join().map_err(|_| "the recorder panicked")?;
    let recorded = outcome?;
    let all_cpu = cpu_time(ClockId::ProcessCPUTime);

    let per_record = |cpu: Duration, count: u64| cpu.as_nanos() as f64 / count.max(1) as f64;
    let kept = recorded.written.records;
    println!(
        "published {} in {:.3} s: {:.0} a second",
        published.count,
        published.took.as_secs_f64(),
        published.count as f64 / published.took.as_secs_f64()
    );
    println!(
        "kept {}, lost {} in {} gaps, {:.1} MB written in {} files",
        recorded.written.records,
        recorded.lost,
        recorded.gaps,
        recorded.written.bytes as f64 / 1e6,
        recorded.written.files
    );
    println!("waited for the disk {} times, {:.3} s in all", recorded.waits, recorded.waited.as_secs_f64());
    let writing = all_cpu.saturating_sub(follower_cpu).saturating_sub(publisher_cpu);
    println!(
        "CPU a record kept: publisher {:.0} ns (it spins for its pace), follower {:.0} ns, writing thread {:.0} ns",
        per_record(publisher_cpu, published.count),
        per_record(follower_cpu, kept),
        per_record(writing, kept)
    );
    let report = verify(&Recording::open(&folder)?, true, &mut |_, _| ());
    println!("read back {}, damaged {}", report.records(), report.damage_count);
    if recorded.written.records + recorded.lost != published.count
        || report.records() != recorded.written.records
    {
        return Err("records are unaccounted for".into());
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

struct Published {
    count: u64,
    took: Duration,
}

fn publish(
    writer: &mut Writer<Arc<Memfd>>,
    payload: &[u8],
    rate: u64,
    duration: Duration,
) -> Result<Published, Box<dyn Error>> {
    let begun = Instant::now();
    let mut count = 0;
    loop {
        let elapsed = begun.elapsed();
        if elapsed >= duration {
            return Ok(Published { count, took: elapsed });
        }
        let now = u64::try_from(elapsed.as_nanos())?;
        let due = if rate == 0 { count + 1000 } else { now.saturating_mul(rate / 1000) / 1_000_000 };
        while count < due {
            let stamp = Stamp { kind: 1, schema: 1, generated: now, trigger: now, ..Stamp::default() };
            writer.publish(&stamp, payload)?;
            count += 1;
        }
        std::hint::spin_loop();
    }
}
