//! Memory of finding causes: trace, attribution and groups of a simulated day.

use crate::allocator::asked;
use lowlat_host::{CpuId, CpuSet};
use lowlat_jitter::{
    attribution::AttributionPlan, attribution::CauseNames, attribution::CpuAttributor,
    attribution::GroupFinder, attribution::GroupPlan, attribution::Hit, attribution::Sleep,
};
use lowlat_trace::{
    CpuCursor, Decoder, FUNCTIONS_MAX, IRQS_MAX, THREADS_MAX, TickMap, TraceEvent, TraceFormats,
};
use std::{collections::BTreeSet, fmt::Write as _};

const HZ: u64 = 1_000_000_000;
const EPOCH: u64 = 5 * HZ;
const SECONDS: u64 = 86_400;
/// Per CPU and second; a real host has many times as many, for which nothing else happens.
const INTERRUPTIONS_PER_S: u64 = 1;
const SAMPLER: i32 = 1_000_000;
const CPUS: [CpuId; 2] = [2, 3];
const PAGE_BYTES: usize = 4_096;
/// More of each kind than names fit.
const KINDS: u64 = 6_000;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
const HEADER_EVENT: &str = "type_len : 5 bits\ntime_delta : 27 bits\narray : 32 bits\npadding : type == 29\n\
    time_extend : type == 30\ntime_stamp : type == 31\ndata max type_len == 28\n";

/// Declaration and size of a field.
type Field = (&'static str, u32);
/// Id, path, and the fields after the common ones.
type Event = (u16, &'static str, &'static [Field]);

const EVENTS: &[Event] = &[
    (1, "irq_vectors/local_timer_entry", &[("int vector", 4)]),
    (2, "irq_vectors/local_timer_exit", &[("int vector", 4)]),
    (3, "timer/hrtimer_expire_entry", &[("void * hrtimer", 8), ("s64 now", 8), ("void * function", 8)]),
    (4, "timer/hrtimer_expire_exit", &[("void * hrtimer", 8)]),
    (
        5,
        "sched/sched_switch",
        &[
            ("char prev_comm[16]", 16),
            ("pid_t prev_pid", 4),
            ("int prev_prio", 4),
            ("char next_comm[16]", 16),
            ("pid_t next_pid", 4),
            ("int next_prio", 4),
        ],
    ),
    (6, "irq/irq_handler_entry", &[("int irq", 4), ("__data_loc char[] name", 4)]),
    (7, "irq/irq_handler_exit", &[("int irq", 4), ("int ret", 4)]),
    (8, "signal/signal_deliver", &[("int sig", 4)]),
];

fn formats() -> TraceFormats {
    let format = |(id, _, fields): &Event| {
        let common = "field:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;";
        let mut text = format!("name: made\nID: {id}\nformat:\n\t{common}\n");
        let mut offset = 8;
        for (field, size) in *fields {
            let signed = u8::from(field.starts_with("int") || field.starts_with("pid_t"));
            writeln!(text, "\tfield:{field};\toffset:{offset};\tsize:{size};\tsigned:{signed};").unwrap();
            offset += size;
        }
        text
    };
    let of = |path: &str| EVENTS.iter().find(|event| event.1 == path).map(format);
    let formats = TraceFormats::parse(HEADER_PAGE, HEADER_EVENT, "", |tracepoint| of(&tracepoint.path()));
    let formats = formats.unwrap();
    assert_eq!((formats.present.len(), formats.unusable.len()), (EVENTS.len(), 0), "{:?}", formats.unusable);
    formats
}

/// A sub-buffer that is reused.
struct Page(Vec<u8>);

impl Page {
    fn begin(&mut self, stamp: u64) {
        self.0.clear();
        self.0.extend(stamp.to_ne_bytes());
        self.0.extend([0; 8]);
    }

    /// An entry `delta` after the previous one, with this thread on the CPU.
    fn add(&mut self, delta: u32, id: u16, thread: i32, fields: &[&[u8]]) {
        let record = 8 + fields.iter().map(|field| field.len()).sum::<usize>();
        let head = if cfg!(target_endian = "little") { delta << 5 } else { delta };
        self.0.extend(head.to_ne_bytes());
        self.0.extend((u32::try_from(record).unwrap() + 4).to_ne_bytes());
        self.0.extend(id.to_ne_bytes());
        self.0.extend([0; 2]);
        self.0.extend(thread.to_ne_bytes());
        for field in fields {
            self.0.extend(*field);
        }
    }

    /// All of it; `is_missed`: an unknown number of events before it was overwritten.
    fn end(&mut self, is_missed: bool) -> &[u8] {
        let committed = (self.0.len() - 16) as u64 | u64::from(is_missed) << 31;
        self.0[8..16].copy_from_slice(&committed.to_ne_bytes());
        self.0.resize(PAGE_BYTES, 0);
        &self.0
    }

    /// Contents of the `n`th interruption: a timer, a device, another thread, a signal.
    fn interruption(&mut self, n: u64) {
        let kind = n % KINDS;
        let (thread, irq) = (i32::try_from(kind).unwrap() + 1, i32::try_from(kind).unwrap());
        let function = 0xffff_ffff_8100_0000 + kind * 16;
        let (none, eight) = ([0; 4], [0; 8]);
        let switch = |page: &mut Self, from: i32, to: i32| {
            let (name, prio) = (b"some-thread\0\0\0\0\0", 120_i32.to_ne_bytes());
            page.add(100, 5, from, &[name, &from.to_ne_bytes(), &prio, name, &to.to_ne_bytes(), &prio]);
        };
        self.add(100, 1, SAMPLER, &[&none]);
        self.add(100, 3, SAMPLER, &[&eight, &eight, &function.to_ne_bytes()]);
        self.add(100, 4, SAMPLER, &[&eight]);
        self.add(100, 2, SAMPLER, &[&none]);
        switch(self, SAMPLER, thread);
        let place = (8 << 16 | 16_u32).to_ne_bytes();
        self.add(100, 6, thread, &[&irq.to_ne_bytes(), &place, b"device0\0"]);
        self.add(100, 7, thread, &[&irq.to_ne_bytes(), &none]);
        if !n.is_multiple_of(7) {
            switch(self, thread, SAMPLER);
        }
        self.add(100, 8, SAMPLER, &[&10_i32.to_ne_bytes()]);
    }
}

struct Side {
    cpu: CpuId,
    cursor: CpuCursor,
    attributor: CpuAttributor,
}

/// Everything that finds causes in a run.
struct Search {
    page: Page,
    decoder: Decoder,
    events: Vec<TraceEvent>,
    sides: Vec<Side>,
    groups: GroupFinder,
}

impl Search {
    fn new() -> Self {
        let side = |cpu| {
            let plan = AttributionPlan {
                cpu,
                sampler_tid: SAMPLER,
                hz: HZ,
                epoch_ticks: EPOCH,
                slack_ticks: 2_000,
                worst_count: 64,
                first_count: 64,
                events_max: 4_096,
                ..AttributionPlan::default()
            };
            Side { cpu, cursor: CpuCursor::default(), attributor: CpuAttributor::new(plan) }
        };
        let plan =
            GroupPlan { cpus: CPUS.into_iter().collect(), hz: HZ, epoch_ticks: EPOCH, window_ticks: 1_000 };
        Self {
            page: Page(Vec::with_capacity(PAGE_BYTES)),
            decoder: Decoder::new(&formats(), TickMap::identity(HZ)),
            events: Vec::with_capacity(2 * Decoder::events_max(PAGE_BYTES)),
            sides: CPUS.map(side).into(),
            groups: GroupFinder::new(&plan),
        }
    }

    /// One second, with `n` the number of interruptions of each CPU before it.
    fn second(&mut self, second: u64, mut n: u64, count: u64, moved: &CpuSet) {
        for place in 0..count {
            let before = EPOCH + second * HZ + place * (HZ / count);
            let now = before + 2_000 + n * 7_919 % 100_000;
            for side in &mut self.sides {
                self.page.begin(before);
                self.page.interruption(n);
                self.events.clear();
                self.decoder.page(&mut side.cursor, self.page.end(n.is_multiple_of(1_000)), &mut self.events);
                side.attributor.push_events(&self.events);
                let key = side.attributor.attribute(before, now).key();
                side.attributor.pass(now);
                self.groups.push(Hit { cpu: side.cpu, before, now, key });
                self.groups.pass(side.cpu, now);
            }
            self.groups.judge();
            n += 1;
        }
        for side in &mut self.sides {
            side.attributor.close_window(moved.contains(side.cpu));
        }
        self.groups.close_window(moved);
    }

    /// Events of one CPU outside any interruption, more than can be queued.
    fn flood(&mut self, second: u64, count: u32) {
        let Some(side) = self.sides.first_mut() else { return };
        for n in 0..count {
            self.page.begin(EPOCH + second * HZ + HZ / 4 + u64::from(n) * 10_000);
            for _ in 0..100 {
                self.page.add(50, 2, SAMPLER, &[&[0; 4]]);
            }
            self.events.clear();
            self.decoder.page(&mut side.cursor, self.page.end(false), &mut self.events);
            side.attributor.push_events(&self.events);
        }
    }
}

#[test]
fn a_day_of_causes_allocates_nothing() {
    let mut search = Search::new();
    let (moved, quiet) = (CpuSet::of(CPUS[1]), CpuSet::new());
    // Until every table is full; what does not fit is reported by kind.
    search.second(0, 0, KINDS + 1, &quiet);
    let (threads, irqs) = (search.decoder.names.threads.len(), search.decoder.names.irqs.len());
    assert_eq!((threads, irqs, search.decoder.functions.len()), (THREADS_MAX, IRQS_MAX, FUNCTIONS_MAX));

    let mut n = KINDS + 1;
    let (asked, ()) = asked(|| {
        for second in 1..SECONDS {
            search.second(second, n, INTERRUPTIONS_PER_S, if second % 60 == 0 { &moved } else { &quiet });
            n += INTERRUPTIONS_PER_S;
            if second % 10_000 == 0 {
                search.flood(second, 100);
            }
        }
    });
    assert_eq!((asked.allocations, asked.bytes_max), (0, 0));

    let own_tids = BTreeSet::new();
    let names = CauseNames { names: &search.decoder.names, own_tids: &own_tids, sleep: Sleep::Never };
    let groups = search.groups.finish(SECONDS * HZ, &names);
    assert_eq!(groups.sizes.iter().map(|size| (size.cpu_count, size.count)).collect::<Vec<_>>(), [(2, n)]);
    assert!(search.decoder.counts.missed_switch_count > 0, "missing switches cost no memory either");
    for side in search.sides {
        let (_, lost) = side.attributor.event_counts();
        assert!(side.cpu != CPUS[0] || lost > 0, "more arrived than can be queued, without costing memory");
        let causes = side.attributor.finish(&search.decoder.names, 0);
        assert_eq!((causes.attributed_count, causes.kernel_count), (n, n));
        assert_eq!((causes.worst.len(), causes.first.len()), (64, 64));
    }
}
