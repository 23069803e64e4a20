//! Threads that take the CPU from the sampler, and what runs in them.

use super::bench::*;
use crate::attribution::{AttributionPlan, Sleep};
use insta::assert_snapshot;
use lowlat_trace::{Activity, TraceStep, Vector};

const RESCHEDULE: Activity = Activity::Vector(Vector::Reschedule);
const TIMER: Activity = Activity::Vector(Vector::LocalTimer);

#[test]
fn a_kworker_with_its_function() {
    let steps = [
        (500, enter(TIMER)),
        (900, exit(TIMER)),
        (2_000, switch(SAMPLER, KWORKER)),
        (2_600, enter(VMSTAT)),
        (4_000, enter(TIMER)),
        (4_300, exit(TIMER)),
        (5_600, exit(VMSTAT)),
        (6_000, switch(KWORKER, SAMPLER)),
    ];
    assert_snapshot!(explain(&steps, &[(200, 7_000)]), @r"
    6800 ns at 200
      3100 thread kworker/3:1 (pid 41, nice 0)
      2700 work vmstat_update
      1000 local timer
        +300 local timer begins
        +700 local timer ends
        +1800 thread kworker/3:1 (pid 41, nice 0) begins
        +2400   work vmstat_update begins
        +3800     local timer begins
        +4100     local timer ends
        +5400   work vmstat_update ends
        +5800 thread kworker/3:1 (pid 41, nice 0) ends
        +5800 returns
    ");
}

#[test]
fn a_function_that_began_in_an_earlier_interruption() {
    let steps = [
        (1_000, switch(SAMPLER, KWORKER)),
        (1_200, enter(VMSTAT)),
        (2_000, switch(KWORKER, SAMPLER)),
        (9_000, switch(SAMPLER, KWORKER)),
        (9_300, enter(TIMER)),
        (9_400, exit(TIMER)),
        (9_800, exit(VMSTAT)),
        (9_900, switch(KWORKER, SAMPLER)),
    ];
    assert_snapshot!(explain(&steps, &[(500, 2_500), (8_500, 10_200)]), @r"
    2000 ns at 500
      1200 thread kworker/3:1 (pid 41, nice 0)
      800 work vmstat_update
        +500 thread kworker/3:1 (pid 41, nice 0) begins
        +700   work vmstat_update begins
        +1500   work vmstat_update ends
        +1500 thread kworker/3:1 (pid 41, nice 0) ends
        +1500 returns
    1700 ns at 8500
      900 thread kworker/3:1 (pid 41, nice 0)
      700 work vmstat_update
      100 local timer
        +500 thread kworker/3:1 (pid 41, nice 0) begins
        +500   work vmstat_update begins
        +800     local timer begins
        +900     local timer ends
        +1300   work vmstat_update ends
        +1400 thread kworker/3:1 (pid 41, nice 0) ends
        +1400 returns
    ");
}

#[test]
fn a_switch_that_was_not_reported_leaves_a_doubt() {
    let steps = [
        (1_000, switch(SAMPLER, 17)),
        (1_300, enter(SCHED)),
        (1_800, exit(SCHED)),
        // Thread 17 released the CPU at some time in between.
        (5_000, switch(KWORKER, KWORKER)),
        (5_100, enter(VMSTAT)),
        (7_000, exit(VMSTAT)),
        (7_200, switch(KWORKER, 17)),
        // To the sampler, which receives its signal.
        (8_200, switch(SAMPLER, SAMPLER)),
        (8_300, TraceStep::Point(Activity::Signal(10))),
    ];
    assert_snapshot!(explain(&steps, &[(500, 20_000)]), @r"
    19500 ns at 500
      11700 signal SIGUSR1
      4200 not traced
      1900 work vmstat_update
      900 thread ksoftirqd/3 (pid 17, nice 0)
      500 softirq SCHED
      300 thread kworker/3:1 (pid 41, nice 0)
        +500 thread ksoftirqd/3 (pid 17, nice 0) begins
        +800   softirq SCHED begins
        +1300   softirq SCHED ends
        +1300   not traced begins
        +4500   not traced ends
        +4500 thread ksoftirqd/3 (pid 17, nice 0) ends
        +4500 thread kworker/3:1 (pid 41, nice 0) begins
        +4600   work vmstat_update begins
        +6500   work vmstat_update ends
        +6700 thread kworker/3:1 (pid 41, nice 0) ends
        +6700 thread ksoftirqd/3 (pid 17, nice 0) begins
        +6700   not traced begins
        +7700   not traced ends
        +7700 thread ksoftirqd/3 (pid 17, nice 0) ends
        +7700 returns
        +7800 signal SIGUSR1 begins
    ");
}

#[test]
fn a_return_that_was_not_reported_leaves_a_doubt() {
    let steps = [
        (1_000, TraceStep::Point(Activity::Signal(10))),
        (3_000, switch(SAMPLER, 17)),
        (3_300, enter(SCHED)),
        (3_800, exit(SCHED)),
        // The sampler is back some time before it notices the interruption.
        (30_000, switch(SAMPLER, KWORKER)),
        (31_000, switch(KWORKER, SAMPLER)),
    ];
    assert_snapshot!(explain(&steps, &[(500, 20_000), (29_500, 31_500)]), @r"
    19500 ns at 500
      16200 not traced
      2500 signal SIGUSR1
      500 softirq SCHED
      300 thread ksoftirqd/3 (pid 17, nice 0)
        +500 signal SIGUSR1 begins
        +2500 signal SIGUSR1 ends
        +2500 thread ksoftirqd/3 (pid 17, nice 0) begins
        +2800   softirq SCHED begins
        +3300   softirq SCHED ends
        +3300   not traced begins
        +19500   not traced ends
    2000 ns at 29500
      2000 thread kworker/3:1 (pid 41, nice 0)
        +500 thread kworker/3:1 (pid 41, nice 0) begins
        +1500 thread kworker/3:1 (pid 41, nice 0) ends
        +1500 returns
    ");
}

#[test]
fn softirqs_in_their_thread() {
    let steps = [
        (1_000, switch(SAMPLER, KSOFTIRQD)),
        (1_200, enter(NET_RX)),
        (5_200, exit(NET_RX)),
        (5_300, switch(KSOFTIRQD, SAMPLER)),
    ];
    assert_snapshot!(explain(&steps, &[(500, 5_800)]), @r"
    5300 ns at 500
      4000 softirq NET_RX
      1300 thread ksoftirqd/3 (pid 17, nice 0)
        +500 thread ksoftirqd/3 (pid 17, nice 0) begins
        +700   softirq NET_RX begins
        +4700   softirq NET_RX ends
        +4800 thread ksoftirqd/3 (pid 17, nice 0) ends
        +4800 returns
    ");
}

#[test]
fn a_real_time_thread_that_stays_for_milliseconds() {
    let mut steps =
        vec![(1_000, enter(RESCHEDULE)), (1_200, exit(RESCHEDULE)), (1_900, switch(SAMPLER, FIFO))];
    for tick in 0..40 {
        let at = 100_000 + tick * 100_000;
        steps.extend([(at, enter(TIMER)), (at + 900, exit(TIMER))]);
    }
    // Its page faults belong to it.
    steps.push((4_200_000, TraceStep::Point(Activity::PageFault)));
    steps.push((5_001_900, switch(FIFO, SAMPLER)));
    let mut bench = Bench::new();
    bench.events(&steps);
    let main = bench.interruption(500, 5_002_500);
    assert!(main.has_event);
    let causes = bench.finish();
    let mut worst = causes.worst[0].clone();
    assert_eq!((worst.timeline.len(), worst.timeline_cut_count), (64, 22));
    worst.timeline.truncate(5);
    assert_snapshot!(text(&worst), @r"
    5002000 ns at 500
      4965300 thread md-handler (pid 2000, real-time 50)
      36000 local timer
      700 reschedule
        +500 reschedule begins
        +700 reschedule ends
        +1400 thread md-handler (pid 2000, real-time 50) begins
        +99500   local timer begins
        +100400   local timer ends
    ");
}

#[test]
fn a_stopped_sampler_leaves_the_cpu_idle() {
    let steps = [
        (1_000, enter(RESCHEDULE)),
        (1_200, exit(RESCHEDULE)),
        (3_000, switch(SAMPLER, 0)),
        (900_000, enter(RESCHEDULE)),
        (900_400, exit(RESCHEDULE)),
        (901_000, switch(0, SAMPLER)),
    ];
    assert_snapshot!(explain(&steps, &[(500, 902_000)]), @r"
    901500 ns at 500
      900400 idle: the thread was stopped or throttled
      1100 reschedule
        +500 reschedule begins
        +700 reschedule ends
        +2500 idle: the thread was stopped or throttled begins
        +899500   reschedule begins
        +899900   reschedule ends
        +900500 idle: the thread was stopped or throttled ends
        +900500 returns
    ");
}

#[test]
fn lowlats_own_threads_are_reported() {
    let steps = [(1_000, switch(SAMPLER, COLLECTOR)), (3_000, switch(COLLECTOR, SAMPLER))];
    let mut bench = Bench::new();
    bench.events(&steps);
    bench.interruption(500, 3_500);
    let causes = bench.finish();
    let own: Vec<&str> = causes
        .totals
        .iter()
        .filter(|total| total.cause.is_own)
        .map(|total| total.cause.name.as_str())
        .collect();
    assert_eq!(own, ["collector"]);
}

#[test]
fn one_thread_after_the_other() {
    let steps = [
        (1_000, switch(SAMPLER, KWORKER)),
        (1_100, enter(VMSTAT)),
        // Preempted in the middle of its work, which it then finishes.
        (2_000, switch(KWORKER, FIFO)),
        (2_500, switch(FIFO, KWORKER)),
        (2_700, exit(VMSTAT)),
        (2_800, switch(KWORKER, SAMPLER)),
    ];
    assert_snapshot!(explain(&steps, &[(500, 3_000)]), @r"
    2500 ns at 500
      1100 work vmstat_update
      900 thread kworker/3:1 (pid 41, nice 0)
      500 thread md-handler (pid 2000, real-time 50)
        +500 thread kworker/3:1 (pid 41, nice 0) begins
        +600   work vmstat_update begins
        +1500   work vmstat_update ends
        +1500 thread kworker/3:1 (pid 41, nice 0) ends
        +1500 thread md-handler (pid 2000, real-time 50) begins
        +2000 thread md-handler (pid 2000, real-time 50) ends
        +2000 thread kworker/3:1 (pid 41, nice 0) begins
        +2000   work vmstat_update begins
        +2200   work vmstat_update ends
        +2300 thread kworker/3:1 (pid 41, nice 0) ends
        +2300 returns
    ");
}

#[test]
fn a_switch_back_whose_switch_away_was_not_seen() {
    assert_snapshot!(explain(&[(2_000, switch(FIFO, SAMPLER))], &[(500, 2_300)]), @r"
    1800 ns at 500
      1800 thread md-handler (pid 2000, real-time 50)
        +0 thread md-handler (pid 2000, real-time 50) begins
        +1500 thread md-handler (pid 2000, real-time 50) ends
        +1500 returns
    ");
    let steps = [(2_000, switch(FIFO, KWORKER)), (2_200, switch(KWORKER, SAMPLER))];
    assert_snapshot!(explain(&steps, &[(500, 2_300)]), @r"
    1800 ns at 500
      1500 thread md-handler (pid 2000, real-time 50)
      300 thread kworker/3:1 (pid 41, nice 0)
        +0 thread md-handler (pid 2000, real-time 50) begins
        +1500 thread md-handler (pid 2000, real-time 50) ends
        +1500 thread kworker/3:1 (pid 41, nice 0) begins
        +1700 thread kworker/3:1 (pid 41, nice 0) ends
        +1700 returns
    ");
}

#[test]
fn after_a_loss_the_scheduler_says_who_ran() {
    let steps = [
        (1_000, TraceStep::Lost(3)),
        (1_400, enter(TIMER)),
        (1_600, exit(TIMER)),
        (2_000, switch(FIFO, SAMPLER)),
    ];
    assert_snapshot!(explain(&steps, &[(500, 2_300)]), @r"
    1800 ns at 500
      900 not traced
      700 thread md-handler (pid 2000, real-time 50)
      200 local timer
        +500 lost
        +900 local timer begins
        +1100 local timer ends
        +1100 thread md-handler (pid 2000, real-time 50) begins
        +1500 thread md-handler (pid 2000, real-time 50) ends
        +1500 returns
    ");
}

/// One interruption, with a timer in it, that starts while another thread runs.
fn asleep_since_before(sleep: Sleep) -> String {
    let mut bench = Bench::with(AttributionPlan { sleep, ..plan(EPOCH) });
    let steps = [
        (1_000, switch(SAMPLER, KWORKER)),
        (20_000, enter(TIMER)),
        (21_000, exit(TIMER)),
        (40_000, switch(KWORKER, SAMPLER)),
    ];
    bench.events(&steps).interruption(4_000, 41_000);
    let causes = bench.finish();
    let parts = causes.worst[0].parts.iter().map(|part| format!("{} {}", part.ns, part.cause.label()));
    parts.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_thread_that_sleeps_was_preceded_by_whatever_ran() {
    let sampler = asleep_since_before(Sleep::Never);
    assert!(sampler.contains("unexplained"), "nobody else was running: {sampler}");
    let sleeper = asleep_since_before(Sleep::Messages);
    assert!(
        sleeper.starts_with("35000 thread kworker/3:1") || sleeper.starts_with("36000 thread kworker/3:1"),
        "{sleeper}"
    );
    assert!(!sleeper.contains("unexplained"), "{sleeper}");
}

/// A timer is due while another thread runs, expires late, and wakes the measured thread.
#[test]
fn a_thread_that_a_timer_wakes_was_delayed_by_what_took_longer_than_a_switch() {
    const WAKE: Activity = Activity::Hrtimer(0xffff_ffff_8110_0400);
    let woken = |by: i32, expires: i64, leaves: i64| {
        let mut bench = Bench::with(AttributionPlan { sleep: Sleep::Timer, ..plan(EPOCH) });
        let steps = [
            (1_000, switch(SAMPLER, by)),
            (expires, enter(TIMER)),
            (expires + 200, enter(WAKE)),
            (expires + 700, exit(WAKE)),
            (expires + 900, exit(TIMER)),
            (leaves, switch(by, SAMPLER)),
        ];
        let now = u64::try_from(leaves).unwrap() + 400;
        bench.events(&steps).interruption(4_000, now);
        let causes = bench.finish();
        assert_eq!(causes.totals.iter().map(|total| total.ns_total).sum::<u64>(), now - 4_000);
        let parts = causes.worst[0].parts.iter().map(|part| format!("{} {}", part.ns, part.cause.label()));
        parts.collect::<Vec<_>>().join(", ")
    };
    let timer = "local timer (0xffffffff81100400), 500 hrtimer 0xffffffff81100400";
    assert_eq!(woken(KWORKER, 6_000, 8_000), format!("3900 {timer}"), "the thread gave way at once");
    // It kept interrupts off for 26 us more than an entry takes, or did not give way.
    let late = woken(KWORKER, 40_000, 42_000);
    assert_eq!(late, format!("26000 thread kworker/3:1 (pid 41, nice 0), 11900 {timer}"));
    let kept = woken(KWORKER, 6_000, 90_000);
    assert_eq!(kept, format!("73100 thread kworker/3:1 (pid 41, nice 0), 12800 {timer}"));
    let idle = woken(0, 90_000, 92_000);
    assert_eq!(idle, format!("76000 idle: the processor had to wake, 11900 {timer}"));
}
