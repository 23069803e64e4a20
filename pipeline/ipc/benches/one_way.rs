//! Latency of one record from a thread to a spinning thread, compared with a bare cache line. Both are measured
//! as round trips in alternating rounds, so that other load on the machine affects both. The ratio of the
//! rounds is meaningful; the absolute times hold only for this machine at this moment.

use criterion::{Criterion, criterion_group, criterion_main};
use lowlat_ipc::{
    region::Heap,
    stream::{Owner, Read, Reader, Segment, Stamp, Writer},
};
use std::{
    hint::{black_box, spin_loop},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const CAPACITY_BYTES: u64 = 1 << 20;
const TURNS: u64 = 20_000;
const ROUNDS: usize = 41;
const PAYLOAD: [u8; 48] = [7; 48];

#[repr(align(128))]
struct Line(AtomicU64);

/// Two channels to exchange numbers over, one per direction.
trait Channel: Send {
    /// Sends `number`, and waits for the answer.
    fn ask(&mut self, number: u64);
    /// Waits for `number`, and answers; returns false at the end.
    fn answer(&mut self, number: u64, is_over: &AtomicBool) -> bool;
}

struct Bare(Arc<[Line; 2]>);

impl Channel for Bare {
    fn ask(&mut self, number: u64) {
        self.0[0].0.store(number, Ordering::Release);
        while self.0[1].0.load(Ordering::Acquire) != number {
            spin_loop();
        }
    }

    fn answer(&mut self, number: u64, is_over: &AtomicBool) -> bool {
        while self.0[0].0.load(Ordering::Acquire) != number {
            if is_over.load(Ordering::Relaxed) {
                return false;
            }
            spin_loop();
        }
        self.0[1].0.store(number, Ordering::Release);
        true
    }
}

struct Stream {
    writer: Writer<Arc<Heap>>,
    reader: Reader<Arc<Heap>>,
    payload: Vec<u8>,
}

impl Stream {
    fn pair() -> (Self, Self) {
        let [there, back] = [1, 2].map(|stream| {
            let heap = Arc::new(Heap::zeroed(Segment::<Heap>::bytes(CAPACITY_BYTES)));
            let segment =
                Segment::create(Arc::clone(&heap), CAPACITY_BYTES, stream, 1, 0, Owner::default()).unwrap();
            (Writer::new(segment), Reader::from_start(Segment::open(heap).unwrap()))
        });
        let end = |writer, reader| Self { writer, reader, payload: Vec::new() };
        (end(there.0, back.1), end(back.0, there.1))
    }

    #[inline]
    fn look(&mut self) -> bool {
        let read = self.reader.next(&mut self.payload);
        black_box(&self.payload);
        matches!(read, Read::Record(_))
    }

    #[inline]
    fn send(&mut self, number: u64) {
        let stamp = Stamp { cause: number, ..Stamp::default() };
        black_box(self.writer.publish(&stamp, &PAYLOAD).is_ok());
    }
}

impl Channel for Stream {
    fn ask(&mut self, number: u64) {
        self.send(number);
        while !self.look() {
            spin_loop();
        }
    }

    fn answer(&mut self, number: u64, is_over: &AtomicBool) -> bool {
        while !self.look() {
            if is_over.load(Ordering::Relaxed) {
                return false;
            }
            spin_loop();
        }
        self.send(number);
        true
    }
}

fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    // If pinning is not permitted, the figures only spread more.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// Time of this many round trips over new channels.
fn play<W: Channel + 'static>((mut asking, mut answering): (W, W), turns: u64) -> Duration {
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let other = thread::spawn(move || {
        pin(1);
        (1..u64::MAX).take_while(|number| answering.answer(*number, &over)).count()
    });
    pin(0);
    (1..=turns / 10).for_each(|number| asking.ask(number));
    let start = Instant::now();
    (turns / 10 + 1..=turns / 10 + turns).for_each(|number| asking.ask(number));
    let elapsed = start.elapsed();
    is_over.store(true, Ordering::Relaxed);
    other.join().unwrap();
    elapsed
}

fn bare() -> (Bare, Bare) {
    let lines = Arc::new([Line(AtomicU64::new(0)), Line(AtomicU64::new(0))]);
    (Bare(Arc::clone(&lines)), Bare(lines))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Alternating rounds, and the ratios within each.
fn ratios() {
    let (mut ratios, mut line_ns, mut record_ns) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let line = play(bare(), TURNS).as_secs_f64();
        let record = play(Stream::pair(), TURNS).as_secs_f64();
        ratios.push(record / line);
        line_ns.push(line * 1e9 / TURNS as f64 / 2.0);
        record_ns.push(record * 1e9 / TURNS as f64 / 2.0);
    }
    let best = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "one way, a bare line: median {:.0} ns, least {:.0}; a record of 48 bytes: median {:.0} ns, least {:.0}",
        median(line_ns.clone()),
        best(&line_ns),
        median(record_ns.clone()),
        best(&record_ns)
    );
    println!("ratio of least: {:.2}", best(&record_ns) / best(&line_ns));
    println!("ratio to the bare line, median of {ROUNDS} rounds: {:.2}", median(ratios));
}

fn one_way(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("there_and_back");
    group.sample_size(10);
    group.bench_function("bare_line", |bencher| bencher.iter_custom(|turns| play(bare(), turns)));
    group.bench_function("record", |bencher| bencher.iter_custom(|turns| play(Stream::pair(), turns)));
    group.finish();
    // A single thread: the cost of the calls without another core.
    let (mut one, mut other) = Stream::pair();
    criterion.bench_function("publish_and_read", |bencher| {
        bencher.iter(|| {
            one.send(1);
            assert!(other.look());
        });
    });
    ratios();
}

criterion_group!(benches, one_way);
criterion_main!(benches);
