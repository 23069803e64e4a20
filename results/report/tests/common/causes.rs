//! Causes for the records of [`super::jitter`]: what a stock kernel does to busy and to quiet CPUs, with timelines.

use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_jitter::{
    Cause, CauseKind, CausePart, CauseSource, CauseTotal, CounterDelta, CpuCauses, Explained, Group,
    GroupMember, GroupSize, Interruption, JitterCauses, JitterCpu, JitterGroups, JitterRecord, Sender,
    SenderLevel, SenderTotal, TimelineChange, TimelineStep, TracingCost,
};

fn named(kind: CauseKind, name: &str) -> Cause {
    Cause { name: name.into(), ..Cause::of(kind) }
}

pub fn irq(number: i64, name: &str) -> Cause {
    Cause { number: Some(number), ..named(CauseKind::Irq, name) }
}

fn thread(comm: &str, pid: i64) -> Cause {
    Cause { number: Some(pid), priority: Some("nice 0".into()), ..named(CauseKind::Thread, comm) }
}

/// An activity: its start and end in thousandths of the interruption's length, its depth, its cause.
type Run = (u64, u64, u8, Cause);

/// The patterns of interruptions, each with its frequency per thousand on a busy and on a quiet CPU.
fn stories(cpu: CpuId) -> Vec<(u64, u64, Vec<Run>)> {
    use CauseKind::{CallFunction, Hrtimer, Nmi, PageFault, Softirq, Vector, Work};
    let timer = || named(Vector, "local timer");
    let worker = || thread(&format!("kworker/{cpu}:1"), 200 + i64::from(cpu));
    vec![
        (
            600,
            420,
            vec![
                (30, 480, 0, timer()),
                (90, 400, 1, named(Hrtimer, "tick_nohz_handler")),
                (500, 720, 0, named(Softirq, "RCU")),
                (730, 930, 0, named(Softirq, "SCHED")),
            ],
        ),
        (
            180,
            60,
            vec![
                (40, 420, 0, irq(36, "nvme0q3")),
                (450, 940, 0, named(Softirq, "BLOCK")),
                (600, 720, 1, timer()),
            ],
        ),
        (
            80,
            260,
            vec![
                (20, 70, 0, named(Vector, "reschedule")),
                (110, 950, 0, worker()),
                (160, 640, 1, named(Work, "vmstat_update")),
                (300, 420, 2, timer()),
                (330, 400, 3, named(Hrtimer, "tick_nohz_handler")),
                (660, 900, 1, named(Work, "lru_add_drain_per_cpu")),
            ],
        ),
        (
            60,
            160,
            vec![
                (40, 930, 0, named(Vector, "call function")),
                (120, 820, 1, named(CallFunction, "flush_tlb_func")),
            ],
        ),
        (
            50,
            20,
            vec![
                (30, 960, 0, thread("systemd-journald", 412)),
                (210, 210, 1, Cause::of(PageFault)),
                (480, 640, 1, irq(36, "nvme0q3")),
                (660, 780, 1, named(Softirq, "BLOCK")),
            ],
        ),
        (10, 10, vec![(30, 940, 0, Cause::of(Nmi))]),
        (0, 30, vec![(0, 1_000, 0, Cause::of(CauseKind::FirmwareOrHypervisor))]),
        (20, 40, vec![(0, 1_000, 0, Cause::of(CauseKind::Unexplained))]),
    ]
}

/// Returns an interruption that follows a pattern.
fn explained(interruption: Interruption, story: &[Run]) -> Explained {
    let at = |thousandth: u64| interruption.length_ns * thousandth / 1_000;
    let mut parts: Vec<CausePart> = Vec::new();
    let mut timeline = Vec::new();
    let mut outside = interruption.length_ns;
    for (place, (start, end, depth, cause)) in story.iter().enumerate() {
        let (start_ns, end_ns) = (at(*start), at(*end));
        let inside: u64 = story[place + 1..]
            .iter()
            .take_while(|inner| inner.2 > *depth)
            .filter(|inner| inner.2 == depth + 1)
            .map(|inner| at(inner.1) - at(inner.0))
            .sum();
        let ns = end_ns - start_ns - inside;
        outside -= ns;
        match parts.iter_mut().find(|part| part.cause == *cause) {
            Some(part) => part.ns += ns,
            None => parts.push(CausePart { cause: cause.clone(), ns }),
        }
        if !cause.kind.is_kernel() {
            continue;
        }
        let step = |offset_ns: u64, change| TimelineStep {
            offset_ns: offset_ns as i64,
            depth: *depth,
            change,
            cause: cause.clone(),
            sender: (cause.name == "reschedule" && change == TimelineChange::Begins).then_some(2),
        };
        if start == end {
            timeline.push(step(start_ns, TimelineChange::Happens));
        } else {
            timeline.push(step(start_ns, TimelineChange::Begins));
            timeline.push(step(end_ns, TimelineChange::Ends));
        }
    }
    if outside > 0 {
        parts.push(CausePart { cause: Cause::of(CauseKind::EntryExit), ns: outside });
    }
    // If one ends as another begins, the end comes first.
    timeline.sort_by_key(|step| (step.offset_ns, step.change != TimelineChange::Ends));
    parts.retain(|part| part.ns > 0);
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    Explained { interruption, parts, timeline, timeline_cut_count: 0 }
}

/// Explains an interruption by one of the patterns, which depends only on its time.
fn told(cpu: CpuId, is_busy: bool, hit: Interruption) -> Explained {
    let stories = stories(cpu);
    // The long interruption of the quiet CPU is caused by a worker.
    if hit.length_ns > 1_000_000 {
        return explained(hit, &stories[2].2);
    }
    let weight = |story: &(u64, u64, Vec<Run>)| if is_busy { story.0 } else { story.1 };
    let mut ticket = hit.at_ns / 7 % 1_000;
    for story in &stories {
        if ticket < weight(story) {
            return explained(hit, &story.2);
        }
        ticket -= weight(story);
    }
    explained(hit, &stories[0].2)
}

fn add(totals: &mut Vec<CauseTotal>, part: &CausePart, times: u64, is_main: bool) {
    let at = totals.iter().position(|total| total.cause == part.cause).unwrap_or_else(|| {
        totals.push(CauseTotal { cause: part.cause.clone(), ..CauseTotal::default() });
        totals.len() - 1
    });
    let total = &mut totals[at];
    total.count += times;
    total.main_count += if is_main { times } else { 0 };
    total.ns_total += part.ns * times;
    total.ns_max = total.ns_max.max(part.ns);
}

/// The causes of one CPU. The interruptions beyond the kept ones are spread evenly over the patterns.
fn one(cpu: &JitterCpu, is_busy: bool) -> CpuCauses {
    let worst: Vec<Explained> = cpu.worst.iter().map(|hit| told(cpu.cpu, is_busy, *hit)).collect();
    let first: Vec<Explained> = cpu.first.iter().map(|hit| told(cpu.cpu, is_busy, *hit)).collect();
    let mut totals = Vec::new();
    let mut add_all = |of: &Explained, times: u64| {
        for (place, part) in of.parts.iter().enumerate() {
            add(&mut totals, part, times, place == 0);
        }
    };
    for of in &worst {
        add_all(of, 1);
    }
    let kept_ns: u64 = cpu.worst.iter().map(|hit| hit.length_ns).sum();
    let (left, left_ns) = (cpu.interruption_count - worst.len() as u64, cpu.interruption_ns_total - kept_ns);
    if let Some(each_ns) = left_ns.checked_div(left) {
        for ticket in 0..50 {
            // Fifty moments spread over the tickets of `told`.
            let hit = Interruption { at_ns: ticket * 140, length_ns: each_ns };
            let times = left / 50 + u64::from(ticket < left % 50);
            if times > 0 {
                add_all(&told(cpu.cpu, is_busy, hit), times);
            }
        }
    }
    // The rounding to whole nanoseconds loses a little, which is added again.
    let sum: u64 = totals.iter().map(|total| total.ns_total).sum();
    if let Some(entry) = totals.iter_mut().find(|total| total.cause.kind == CauseKind::EntryExit) {
        entry.ns_total += cpu.interruption_ns_total - sum;
    }
    totals.sort_by_key(|total| std::cmp::Reverse(total.ns_total));
    let count = |cause: Cause, count: u64| CounterDelta { cause, count };
    CpuCauses {
        window_count: 0,
        cpu: cpu.cpu,
        attributed_count: cpu.interruption_count,
        ring_lost_count: 0,
        kernel_count: cpu.interruption_count * 96 / 100,
        kernel_ns_total: cpu.interruption_ns_total,
        kernel_unnamed_ns_total: cpu.interruption_ns_total / 80,
        event_count: cpu.interruption_count * 6,
        event_lost_count: 0,
        totals,
        worst,
        first,
        own_holds: None,
        senders: sent_to(cpu),
        counters: vec![
            count(named(CauseKind::Vector, "local timer"), cpu.interruption_count / 2),
            count(irq(36, "nvme0q3"), cpu.interruption_count / 8),
            count(named(CauseKind::Softirq, "RCU"), cpu.interruption_count / 3),
            count(named(CauseKind::Vector, "call function"), cpu.interruption_count / 9),
        ],
        smi_count: Reading::Absent,
    }
}

/// Senders of interrupts: a program that unmaps memory, a kernel thread, an interrupt that wakes a thread.
fn senders() -> Vec<Sender> {
    let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    vec![
        Sender {
            thread: Some(7_120),
            name: "GC Thread#1".into(),
            process: "java".into(),
            cpus: CpuSet::of(0),
            function: "flush_tlb_func".into(),
            path: path(&["smp_call_function_many_cond", "flush_tlb_mm_range", "__x64_sys_munmap"]),
            ..Sender::default()
        },
        Sender {
            thread: Some(31),
            name: "kworker/0:1".into(),
            cpus: CpuSet::of(0),
            function: "do_sync_core".into(),
            path: path(&["on_each_cpu_cond_mask", "static_key_enable", "netstamp_clear", "process_one_work"]),
            ..Sender::default()
        },
        Sender {
            level: SenderLevel::Interrupt,
            cpus: CpuSet::of(0),
            path: path(&[
                "__resched_curr",
                "try_to_wake_up",
                "hrtimer_wakeup",
                "asm_sysvec_apic_timer_interrupt",
            ]),
            ..Sender::default()
        },
    ]
}

/// Returns the interrupts that a CPU received; CPU 0 only sends.
fn sent_to(cpu: &JitterCpu) -> Vec<SenderTotal> {
    let count = cpu.interruption_count;
    let total = |sender, count| SenderTotal { sender, count, ns_total: count * 1_840, ns_max: 4_210 };
    let all = [(Some(0), count / 40), (Some(1), count / 90), (Some(2), count / 60), (None, count / 900)];
    let all = all.into_iter().filter(|(_, count)| cpu.cpu > 0 && *count > 0);
    all.map(|(sender, count)| total(sender, count)).collect()
}

/// Puts causes into a record; `is_busy` selects the busy CPUs.
pub fn add_to(record: &mut JitterRecord, is_busy: impl Fn(CpuId) -> bool) {
    let cpus: Vec<CpuCauses> = record.cpus.iter().map(|cpu| one(cpu, is_busy(cpu.cpu))).collect();
    record.causes = Some(JitterCauses {
        source: CauseSource::Trace,
        reason: String::new(),
        trace_clock: "x86-tsc".into(),
        groups: Some(groups(record)),
        cpus,
        cost: Some(TracingCost { event_ns: 84.2, event_ns_quartiles: (79.8, 91.4), round_count: 20 }),
        senders: Some(senders()),
        senders_reason: String::new(),
    });
}

/// The same run on a host without tracefs.
pub fn counters_only(record: &mut JitterRecord) {
    let causes = record.causes.as_mut().unwrap();
    causes.source = CauseSource::Counters;
    causes.reason = "tracefs is not mounted at /sys/kernel/tracing".into();
    causes.trace_clock.clear();
    (causes.groups, causes.cost, causes.senders) = (None, None, None);
    for cpu in &mut causes.cpus {
        (cpu.attributed_count, cpu.kernel_count, cpu.event_count) = (0, 0, 0);
        cpu.totals.clear();
        cpu.worst.clear();
        cpu.first.clear();
        cpu.senders.clear();
    }
}

/// A broadcast that hit every CPU, and one pair.
fn groups(record: &JitterRecord) -> JitterGroups {
    let flush = named(CauseKind::CallFunction, "flush_tlb_func");
    let member = |cpu: CpuId, at_ns, length_ns, cause: &Cause| GroupMember {
        cpu,
        interruption: Interruption { at_ns, length_ns },
        cause: cause.clone(),
    };
    let broadcast: Vec<GroupMember> = record
        .cpus
        .iter()
        .map(|of| {
            member(of.cpu, 12_402_118_400 + u64::from(of.cpu) * 31, 4_210 + u64::from(of.cpu) * 17, &flush)
        })
        .collect();
    let mut worst = vec![Group { members: broadcast }];
    // The longest interruption of the quiet CPU that was hit hard began as another CPU was interrupted.
    let hard = record.cpus.iter().flat_map(|of| of.worst.iter().map(move |hit| (of.cpu, *hit)));
    if let Some((cpu, hit)) = hard.max_by_key(|(_, hit)| hit.length_ns) {
        let other = u32::from(cpu == 0);
        let members = vec![
            member(cpu, hit.at_ns, hit.length_ns, &named(CauseKind::Work, "vmstat_update")),
            member(other, hit.at_ns + 412, 8_120, &named(CauseKind::Vector, "reschedule")),
        ];
        worst.insert(0, Group { members });
    }
    JitterGroups {
        window_ns: 1_000,
        sizes: vec![
            GroupSize { cpu_count: 2, count: 41 },
            GroupSize { cpu_count: 3, count: 4 },
            GroupSize { cpu_count: record.cpus.len() as u32, count: 6 },
        ],
        chance_pair_count: 1.7,
        worst,
    }
}
