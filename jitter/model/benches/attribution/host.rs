//! A host of many CPUs, all of them measured.

use criterion::{BenchmarkId, Criterion, Throughput};
use lowlat_host::CpuSet;
use lowlat_jitter::attribution::{AttributionPlan, CpuAttributor, GroupFinder, GroupPlan, Hit, SenderBook};
use lowlat_trace::{Activity, Channel, Level, Send, SendStep, Targets, TraceEvent, TraceStep, Vector};
use serde::Deserialize;
use std::{hint::black_box, io::Read as _, path::Path};

const CPUS: [u32; 4] = [1, 64, 256, 1_024];
/// Length of a round of the collector.
const ROUND_NS: u64 = 25_000_000;
/// Broadcasts to all CPUs in a round, each from another CPU.
const BROADCASTS: u64 = 16;
const SENDER: i32 = 812;
const CALL: Activity = Activity::Vector(Vector::CallFunction);
const FUNCTION: u64 = 0xffff_ffff_8110_0200;
const CALLSITE: u64 = 0xffff_ffff_8120_0010;

/// A recorded CPU, as in `fixtures/trace/run.json.gz`.
#[derive(Deserialize)]
struct Recorded {
    hz: u64,
    epoch: u64,
    sampler_tid: i32,
    spans: Vec<(u64, u64)>,
    events: Vec<TraceEvent>,
}

impl Recorded {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/trace/run.json.gz");
        let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The first round of it, with stamps from 0.
    fn round(&self) -> (Vec<TraceEvent>, Vec<(u64, u64)>) {
        let length = self.hz / 1_000 * (ROUND_NS / 1_000_000);
        let spans = self.spans.iter().map(|(before, now)| (before - self.epoch, now - self.epoch));
        let events = self.events.iter().filter(|event| event.ticks >= self.epoch);
        let events = events.map(|event| TraceEvent { ticks: event.ticks - self.epoch, ..*event });
        let spans = spans.take_while(|(_, now)| *now < length).collect();
        (events.take_while(|event| event.ticks < length).collect(), spans)
    }
}

/// A host with all its state.
struct Host {
    attributors: Vec<CpuAttributor>,
    groups: GroupFinder,
    book: SenderBook,
    mask: Vec<u8>,
    round: (Vec<TraceEvent>, Vec<(u64, u64)>),
    length: u64,
    began: u64,
}

impl Host {
    fn new(recorded: &Recorded, count: u32) -> Self {
        let cpus: CpuSet = (0..count).collect();
        let attributor = |cpu| {
            let plan = AttributionPlan {
                cpu,
                sampler_tid: recorded.sampler_tid,
                hz: recorded.hz,
                slack_ticks: recorded.hz / 500_000,
                worst_count: 64,
                first_count: 64,
                events_max: 3_125,
                ..AttributionPlan::default()
            };
            CpuAttributor::new(plan).with_senders()
        };
        let plan = GroupPlan {
            cpus: cpus.clone(),
            hz: recorded.hz,
            epoch_ticks: 0,
            window_ticks: recorded.hz / 1_000_000,
        };
        Self {
            attributors: cpus.iter().map(attributor).collect(),
            groups: GroupFinder::new(&plan),
            book: SenderBook::new(&cpus),
            mask: vec![0xff; count.div_ceil(8) as usize],
            round: recorded.round(),
            length: recorded.hz / 1_000 * (ROUND_NS / 1_000_000),
            began: 0,
        }
    }

    /// Events of a round: those of each CPU, and those of the senders.
    fn events(&self) -> u64 {
        let broadcasts = BROADCASTS * (4 + 1) + 1;
        self.attributors.len() as u64 * (self.round.0.len() as u64 + broadcasts)
    }

    /// One round of the collector: what was sent, then what arrived.
    fn round(&mut self) {
        let (began, gap) = (self.began, self.length / (BROADCASTS + 1));
        let moments: Vec<u64> = (1..=BROADCASTS).map(|n| began + n * gap).collect();
        for (from, at) in (0_u32..).zip(&moments) {
            self.broadcast(from, *at);
        }
        self.attributors.iter_mut().for_each(CpuAttributor::settle_notes);
        for (cpu, attributor) in (0_u32..).zip(&mut self.attributors) {
            let (events, spans) = &self.round;
            let shifted = |event: &TraceEvent| TraceEvent { ticks: event.ticks + began, ..*event };
            let mut events = events.iter().map(shifted).peekable();
            let mut spans = spans.iter().map(|(before, now)| (before + began, now + began)).peekable();
            for at in &moments {
                while let Some(event) = events.next_if(|event| event.ticks < *at) {
                    attributor.push_events(&[event]);
                }
                attributor.push_events(&arrival(*at + 1_000, u64::from(cpu)));
            }
            events.for_each(|event| attributor.push_events(&[event]));
            let mut hit = |before, now| {
                let key = attributor.attribute(before, now).key();
                self.groups.push(Hit { cpu, before, now, key });
            };
            for at in &moments {
                while let Some((before, now)) = spans.next_if(|(_, now)| now < at) {
                    hit(before, now);
                }
                hit(*at + 500, *at + 2_500);
            }
            spans.for_each(|(before, now)| hit(before, now));
            attributor.pass(began + self.length);
            self.groups.pass(cpu, began + self.length);
        }
        self.groups.judge();
        self.began += self.length;
    }

    /// A function is queued for each CPU, then one interrupt goes to all.
    fn broadcast(&mut self, from: u32, at: u64) {
        let count = u32::try_from(self.attributors.len()).unwrap_or(0);
        let (book, attributors) = (&mut self.book, &mut self.attributors);
        let mut take = |step: SendStep<'_>| {
            let send = Send { ticks: at, thread: SENDER, level: Level::Thread, step };
            book.take(from, &send, |cpu, note| attributors[cpu as usize].take_note(note));
        };
        for cpu in 0..count {
            let request = u64::from(cpu);
            take(SendStep::Queues { cpu, function: FUNCTION, request, callsite: CALLSITE });
        }
        take(SendStep::Sends {
            targets: Targets::Mask(&self.mask),
            channel: Some(Channel::Call),
            callsite: CALLSITE,
            callback: 1,
        });
        self.book.end(from, |cpu, note| self.attributors[cpu as usize].take_note(note));
    }
}

/// The four events of an interrupt that runs a function.
fn arrival(at: u64, request: u64) -> [TraceEvent; 4] {
    let steps = [
        TraceStep::Enter(CALL),
        TraceStep::Called { function: FUNCTION, request },
        TraceStep::Exit(Activity::CallFunction(FUNCTION)),
        TraceStep::Exit(CALL),
    ];
    let mut ticks = at;
    steps.map(|step| {
        ticks += 100;
        TraceEvent { ticks, step }
    })
}

/// Cost per event by number of CPUs.
pub fn hosts(criterion: &mut Criterion) {
    let recorded = Recorded::read();
    let mut group = criterion.benchmark_group("host");
    group.sample_size(10);
    for count in CPUS {
        let mut host = Host::new(&recorded, count);
        group.throughput(Throughput::Elements(host.events()));
        group.bench_function(BenchmarkId::new("a round of all CPUs, per event", count), |bencher| {
            bencher.iter(|| host.round());
        });
        black_box(host.groups.late_count());
    }
    group.finish();
}
