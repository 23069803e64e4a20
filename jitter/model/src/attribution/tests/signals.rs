//! Signals to the sampler, and the assignment of entry and exit time.

use super::bench::*;
use crate::CauseKind;
use insta::assert_snapshot;
use lowlat_trace::{Activity, Hold, TraceStep, Vector};

const TIMER: Activity = Activity::Vector(Vector::LocalTimer);
const ALARM: TraceStep = TraceStep::Point(Activity::Signal(14));

#[test]
fn a_handler_has_all_the_time_that_it_runs() {
    let steps = [
        (500, enter(TIMER)),
        (600, enter(TICK)),
        (900, exit(Activity::Hrtimer(0))),
        (1_000, exit(TIMER)),
        (1_400, ALARM),
        // The handler touches new memory and is interrupted.
        (2_000, TraceStep::Point(Activity::PageFault)),
        (30_000, enter(NVME)),
        (31_000, exit(NVME)),
        (31_000, enter(SCHED)),
        (31_500, exit(SCHED)),
    ];
    assert_snapshot!(explain(&steps, &[(200, 80_000)]), @r"
    79800 ns at 200
      77100 signal SIGALRM
      1000 irq 47 nvme0q3
      900 local timer (tick_nohz_handler)
      500 softirq SCHED
      300 hrtimer tick_nohz_handler
        +300 local timer (tick_nohz_handler) begins
        +400   hrtimer tick_nohz_handler begins
        +700   hrtimer tick_nohz_handler ends
        +800 local timer (tick_nohz_handler) ends
        +1200 signal SIGALRM begins
        +1800   page fault happens
        +29800   irq 47 nvme0q3 begins
        +30800   irq 47 nvme0q3 ends
        +30800   softirq SCHED begins
        +31300   softirq SCHED ends
    ");
}

#[test]
fn a_stopped_thread_leaves_its_time_to_others() {
    let steps = [
        (500, TraceStep::Point(Activity::Signal(19))),
        (1_500, switch(SAMPLER, 0)),
        (90_000, enter(TIMER)),
        (91_000, exit(TIMER)),
        (100_000, switch(0, KWORKER)),
        (102_000, switch(KWORKER, SAMPLER)),
        (102_300, TraceStep::Point(Activity::Signal(18))),
    ];
    assert_snapshot!(explain(&steps, &[(200, 103_000)]), @r"
    102800 ns at 200
      97500 idle: the thread was stopped or throttled
      2000 thread kworker/3:1 (pid 41, nice 0)
      1600 signal SIGSTOP
      1000 local timer
      700 signal SIGCONT
        +300 signal SIGSTOP begins
        +1300 signal SIGSTOP ends
        +1300 idle: the thread was stopped or throttled begins
        +89800   local timer begins
        +90800   local timer ends
        +99800 idle: the thread was stopped or throttled ends
        +99800 thread kworker/3:1 (pid 41, nice 0) begins
        +101800 thread kworker/3:1 (pid 41, nice 0) ends
        +101800 returns
        +101800 signal SIGSTOP begins
        +102100 signal SIGSTOP ends
        +102100 signal SIGCONT begins
    ");
}

/// A thread that could not run lost nothing to the thread that ran then, or to the interrupts on top of that.
#[test]
fn a_thread_that_could_not_run_blames_nobody() {
    let leaves = |hold| TraceStep::Switch { from: SAMPLER, to: FIFO, hold: Some(hold) };
    let meanwhile = |hold| {
        vec![
            (500, leaves(hold)),
            (20_000, enter(TIMER)),
            (21_000, exit(TIMER)),
            (50_000, switch(FIFO, KWORKER)),
            (60_000, enter(Activity::Work(0xffff_ffff_8100_0010))),
            (61_000, switch(KWORKER, FIFO)),
            (101_000, switch(FIFO, SAMPLER)),
        ]
    };
    for (hold, name) in [
        (Hold::Stopped, "stopped (SIGSTOP)"),
        (Hold::Traced, "stopped (ptrace)"),
        (Hold::Limit, "throttled (real-time limit)"),
        (Hold::Quota, "throttled (CPU quota)"),
        (Hold::Blocked, "blocked in the kernel"),
    ] {
        let text = explain(&meanwhile(hold), &[(200, 101_500)]);
        assert!(text.contains(&format!("{name}\n")) && !text.contains("md-handler"), "{text}");
    }
}

#[test]
fn a_handler_continues_after_another_thread() {
    let steps = [
        (500, ALARM),
        (20_000, switch(SAMPLER, KWORKER)),
        // Not the sampler's.
        (21_000, TraceStep::Point(Activity::Signal(10))),
        (25_000, switch(KWORKER, SAMPLER)),
        (70_000, switch(SAMPLER, FIFO)),
        (71_000, switch(FIFO, SAMPLER)),
    ];
    assert_snapshot!(explain(&steps, &[(200, 90_000), (91_000, 92_000)]), @r"
    89800 ns at 200
      83800 signal SIGALRM
      5000 thread kworker/3:1 (pid 41, nice 0)
      1000 thread md-handler (pid 2000, real-time 50)
        +300 signal SIGALRM begins
        +19800 signal SIGALRM ends
        +19800 thread kworker/3:1 (pid 41, nice 0) begins
        +20800   signal SIGUSR1 happens
        +24800 thread kworker/3:1 (pid 41, nice 0) ends
        +24800 returns
        +24800 signal SIGALRM begins
        +69800 signal SIGALRM ends
        +69800 thread md-handler (pid 2000, real-time 50) begins
        +70800 thread md-handler (pid 2000, real-time 50) ends
        +70800 returns
        +70800 signal SIGALRM begins
    1000 ns at 91000
      1000 unexplained
    ");
}

#[test]
fn after_a_loss_no_handler_is_known_to_run() {
    let steps = [
        (500, ALARM),
        (20_000, switch(SAMPLER, KWORKER)),
        (21_000, TraceStep::Lost(1)),
        (22_000, switch(KWORKER, SAMPLER)),
    ];
    assert_snapshot!(explain(&steps, &[(200, 24_000)]), @r"
    23800 ns at 200
      19800 signal SIGALRM
      3000 thread kworker/3:1 (pid 41, nice 0)
      1000 not traced
        +300 signal SIGALRM begins
        +19800 signal SIGALRM ends
        +19800 thread kworker/3:1 (pid 41, nice 0) begins
        +19800 thread kworker/3:1 (pid 41, nice 0) ends
        +20800 lost
        +20800 thread kworker/3:1 (pid 41, nice 0) begins
        +21800 thread kworker/3:1 (pid 41, nice 0) ends
        +21800 returns
    ");
}

#[test]
fn a_cpu_that_idles_beside_a_thread_at_its_limit_is_not_idle_for_nobody() {
    let limit = TraceStep::Switch { from: SAMPLER, to: KWORKER, hold: Some(Hold::Limit) };
    let steps = [
        // Before a limit was seen, the reason is not known.
        (1_000, switch(SAMPLER, KWORKER)),
        (2_000, switch(KWORKER, 0)),
        (3_000, switch(0, SAMPLER)),
        (11_000, limit),
        (12_000, switch(KWORKER, SAMPLER)),
        (21_000, switch(SAMPLER, KWORKER)),
        (22_000, switch(KWORKER, 0)),
        (23_000, switch(0, SAMPLER)),
    ];
    let found = ways(&steps, &[(1_000, 3_000), (11_000, 12_000), (21_000, 23_000)]);
    let wanted = [
        way("thread kworker/3:1 (pid 41, nice 0)", 2_000, 0),
        way("throttled (real-time limit)", 2_000, 0),
        way("idle: the thread was stopped or throttled", 1_000, 0),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn what_the_samplers_own_class_costs_is_counted_apart() {
    let held = |at: i64| {
        let leave = TraceStep::Switch { from: SAMPLER, to: KWORKER, hold: Some(Hold::Limit) };
        [(at, leave), (at + 50_000, switch(KWORKER, SAMPLER))]
    };
    let mut bench = Bench::new();
    bench.events(&[held(1_000), held(101_000)].concat());
    bench.events(&[(300_000, enter(NVME)), (302_000, exit(NVME))]);
    for (before, now) in [(900, 51_100), (100_900, 151_200), (299_900, 302_100)] {
        bench.interruption(before, now);
    }
    let holds = bench.finish().own_holds.unwrap();
    assert_eq!((holds.count, holds.ns_total, holds.others_ns_max), (2, 50_200 + 50_300, 2_200));
    let lengths = lowlat_host::histogram::decode(&holds.histogram).unwrap();
    assert_eq!((lengths.len(), lengths.count_at(50_200), lengths.count_at(50_300)), (2, 1, 1));

    // If some interruptions never arrived here, the longest of the others is not known.
    let mut bench = Bench::new();
    bench.events(&held(1_000));
    bench.interruption(900, 51_100);
    bench.attributor.note_ring_lost(1);
    assert_eq!(bench.finish().own_holds, None);
}

/// Label, total time, and entry and exit time for each cause of a stream.
fn ways(steps: &[(i64, TraceStep)], interruptions: &[(u64, u64)]) -> Vec<(String, u64, u64)> {
    let mut bench = Bench::new();
    bench.events(steps);
    for (before, now) in interruptions {
        bench.interruption(*before, *now);
    }
    let totals = bench.finish().totals;
    totals.iter().map(|total| (total.cause.label(), total.ns_total, total.entry_exit_ns)).collect()
}

fn way(label: &str, ns_total: u64, entry_exit_ns: u64) -> (String, u64, u64) {
    (label.to_owned(), ns_total, entry_exit_ns)
}

#[test]
fn a_gap_belongs_to_what_is_next_to_it() {
    let steps = [
        // 300 of entry, 500 of exit.
        (500, enter(TIMER)),
        (1_000, exit(TIMER)),
        (1_500, enter(NVME)),
        (2_500, exit(NVME)),
        // 700 of entry to the thread that the scheduler chose, 100 of exit.
        (3_200, switch(SAMPLER, KWORKER)),
        (5_200, switch(KWORKER, SAMPLER)),
        (5_300, enter(TIMER)),
        (5_400, exit(TIMER)),
        // 40 of exit at the end; in another interruption 30 around an NMI.
        (6_020, TraceStep::Took(Activity::Nmi, 10)),
    ];
    let wanted = [
        way("thread kworker/3:1 (pid 41, nice 0)", 2_800, 800),
        way("local timer", 1_440, 840),
        way("irq 47 nvme0q3", 1_000, 0),
        way("NMI", 40, 30),
    ];
    assert_eq!(ways(&steps, &[(200, 5_440), (6_000, 6_040)]), wanted);
}

#[test]
fn what_is_beyond_the_bound_is_nobodys() {
    let steps = [(15_000, enter(NVME)), (16_000, exit(NVME))];
    let wanted = [way("irq 47 nvme0q3", 21_000, 20_000), way("unexplained", 8_000, 0)];
    assert_eq!(ways(&steps, &[(1_000, 30_000)]), wanted);
}

#[test]
fn without_an_activity_the_way_stands_for_itself() {
    let mut bench = Bench::new();
    bench.events(&[(1_000, switch(SAMPLER, SAMPLER))]);
    assert_eq!(bench.attributor.waiting_count(), 1);
    let main = bench.interruption(500, 1_500);
    assert_eq!(bench.attributor.waiting_count(), 0);
    assert!(main.has_event && main.named.is_none());
    let totals = bench.finish().totals;
    let all: Vec<_> =
        totals.iter().map(|total| (total.cause.kind, total.ns_total, total.entry_exit_ns)).collect();
    assert_eq!(all, [(CauseKind::EntryExit, 1_000, 1_000)]);
}
