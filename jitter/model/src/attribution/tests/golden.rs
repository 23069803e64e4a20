//! Interrupts, softirqs, losses and clocks.

use super::bench::*;
use insta::assert_snapshot;
use lowlat_trace::{Activity, TraceStep, Vector};

const TIMER: Activity = Activity::Vector(Vector::LocalTimer);
const CALL: Activity = Activity::Vector(Vector::CallFunctionSingle);
const TIMER_SOFTIRQ: Activity = Activity::Softirq(1);

#[test]
fn a_timer_tick_that_raises_softirqs() {
    let steps = [
        (1_400, enter(TIMER)),
        (1_500, enter(TICK)),
        (2_300, exit(Activity::Hrtimer(0))),
        (2_600, exit(TIMER)),
        (2_700, enter(TIMER_SOFTIRQ)),
        (2_800, enter(WATCHDOG)),
        (3_000, exit(Activity::Timer(0))),
        (3_100, exit(TIMER_SOFTIRQ)),
        (3_100, enter(SCHED)),
        (3_900, exit(SCHED)),
    ];
    assert_snapshot!(explain(&steps, &[(1_000, 4_200)]), @r"
    3200 ns at 1000
      1100 softirq SCHED
      900 local timer (tick_nohz_handler)
      800 hrtimer tick_nohz_handler
      200 softirq TIMER
      200 timer watchdog_fn
        +400 local timer (tick_nohz_handler) begins
        +500   hrtimer tick_nohz_handler begins
        +1300   hrtimer tick_nohz_handler ends
        +1600 local timer (tick_nohz_handler) ends
        +1700 softirq TIMER begins
        +1800   timer watchdog_fn begins
        +2000   timer watchdog_fn ends
        +2100 softirq TIMER ends
        +2100 softirq SCHED begins
        +2900 softirq SCHED ends
    ");
}

#[test]
fn an_interrupt_of_a_timer_is_named_after_its_first_function() {
    const SLEEP: Activity = Activity::Hrtimer(0xffff_ffff_8110_0400);
    let steps = [
        // One with two functions, and one whose timer was cancelled.
        (500, enter(TIMER)),
        (600, enter(SLEEP)),
        (700, exit(SLEEP)),
        (800, enter(TICK)),
        (900, exit(TICK)),
        (1_000, exit(TIMER)),
        (1_100, enter(TIMER)),
        (1_200, exit(TIMER)),
        // On aarch64 it is a device interrupt.
        (3_200, enter(NVME)),
        (3_300, TraceStep::Took(Activity::Nmi, 50)),
        (3_400, enter(TICK)),
        (3_500, exit(TICK)),
        (3_600, exit(NVME)),
    ];
    assert_snapshot!(explain(&steps, &[(200, 1_300), (3_000, 3_700)]), @r"
    1100 ns at 200
      700 local timer (0xffffffff81100400)
      200 local timer
      100 hrtimer 0xffffffff81100400
      100 hrtimer tick_nohz_handler
        +300 local timer (0xffffffff81100400) begins
        +400   hrtimer 0xffffffff81100400 begins
        +500   hrtimer 0xffffffff81100400 ends
        +600   hrtimer tick_nohz_handler begins
        +700   hrtimer tick_nohz_handler ends
        +800 local timer (0xffffffff81100400) ends
        +900 local timer begins
        +1000 local timer ends
    700 ns at 3000
      550 local timer (tick_nohz_handler)
      100 hrtimer tick_nohz_handler
      50 NMI
        +200 local timer (tick_nohz_handler) begins
        +250   NMI begins
        +300   NMI ends
        +400   hrtimer tick_nohz_handler begins
        +500   hrtimer tick_nohz_handler ends
        +600 local timer (tick_nohz_handler) ends
    ");
}

#[test]
fn a_device_interrupt_with_its_softirq() {
    let steps = [(600, enter(NVME)), (1_600, exit(NVME)), (1_700, enter(NET_RX)), (9_700, exit(NET_RX))];
    assert_snapshot!(explain(&steps, &[(200, 10_000)]), @r"
    9800 ns at 200
      8300 softirq NET_RX
      1500 irq 47 nvme0q3
        +400 irq 47 nvme0q3 begins
        +1400 irq 47 nvme0q3 ends
        +1500 softirq NET_RX begins
        +9500 softirq NET_RX ends
    ");
}

#[test]
fn another_cpu_has_a_function_run() {
    let steps = [(500, enter(CALL)), (600, enter(FLUSH_TLB)), (1_000, exit(FLUSH_TLB)), (1_050, exit(CALL))];
    assert_snapshot!(explain(&steps, &[(200, 1_300)]), @r"
    1100 ns at 200
      700 call function single
      400 call function flush_tlb_func
        +300 call function single begins
        +400   call function flush_tlb_func begins
        +800   call function flush_tlb_func ends
        +850 call function single ends
    ");
}

#[test]
fn an_nmi_takes_its_time_out_of_the_interrupt() {
    let steps = [(500, enter(NVME)), (1_500, TraceStep::Took(Activity::Nmi, 700)), (2_000, exit(NVME))];
    assert_snapshot!(explain(&steps, &[(200, 2_300)]), @r"
    2100 ns at 200
      1400 irq 47 nvme0q3
      700 NMI
        +300 irq 47 nvme0q3 begins
        +600   NMI begins
        +1300   NMI ends
        +1800 irq 47 nvme0q3 ends
    ");
}

#[test]
fn an_nmi_of_the_sampler() {
    let steps = [(1_500, TraceStep::Took(Activity::Nmi, 700)), (1_700, TraceStep::Took(Activity::Nmi, 100))];
    assert_snapshot!(explain(&steps, &[(200, 2_300)]), @r"
    2100 ns at 200
      2100 NMI
        +600 NMI begins
        +1300 NMI ends
        +1400 NMI begins
        +1500 NMI ends
    ");
}

#[test]
fn an_interrupt_inside_a_softirq() {
    let steps = [(500, enter(NET_RX)), (900, enter(TIMER)), (1_300, exit(TIMER)), (1_800, exit(NET_RX))];
    assert_snapshot!(explain(&steps, &[(200, 2_000)]), @r"
    1800 ns at 200
      1400 softirq NET_RX
      400 local timer
        +300 softirq NET_RX begins
        +700   local timer begins
        +1100   local timer ends
        +1600 softirq NET_RX ends
    ");
}

#[test]
fn a_page_fault_lasts_to_the_end_or_the_next() {
    let steps = [
        (300, TraceStep::Point(Activity::PageFault)),
        (900, enter(TIMER)),
        (1_200, exit(TIMER)),
        (1_500, TraceStep::Point(Activity::PageFault)),
    ];
    assert_snapshot!(explain(&steps, &[(200, 2_000)]), @r"
    1800 ns at 200
      1500 page fault
      300 local timer
        +100 page fault begins
        +700   local timer begins
        +1000   local timer ends
        +1300 page fault ends
        +1300 page fault begins
    ");
}

#[test]
fn without_an_event_it_is_unexplained() {
    // The events are of an interrupt between the two, shorter than the threshold.
    let steps = [(1_200, enter(NVME)), (1_300, exit(NVME))];
    assert_snapshot!(explain(&steps, &[(300, 900), (2_000, 50_000)]), @r"
    600 ns at 300
      600 unexplained
    48000 ns at 2000
      48000 unexplained
    ");
}

#[test]
fn what_entry_and_exit_cannot_explain_is_unexplained() {
    let steps = [(400_000, enter(NVME)), (401_000, exit(NVME))];
    assert_snapshot!(explain(&steps, &[(1_000, 402_000)]), @r"
    401000 ns at 1000
      389000 unexplained
      12000 irq 47 nvme0q3
        +399000 irq 47 nvme0q3 begins
        +400000 irq 47 nvme0q3 ends
    ");
}

#[test]
fn an_exit_without_entry_counts_from_the_beginning() {
    let steps = [(900, exit(NVME)), (1_000, enter(SCHED)), (1_100, exit(SCHED))];
    assert_snapshot!(explain(&steps, &[(200, 1_300)]), @r"
    1100 ns at 200
      800 irq 47 nvme0q3
      300 softirq SCHED
        +0 irq 47 nvme0q3 begins
        +700 irq 47 nvme0q3 ends
        +800 softirq SCHED begins
        +900 softirq SCHED ends
    ");
}

#[test]
fn an_entry_without_exit_counts_to_the_end() {
    assert_snapshot!(explain(&[(500, enter(NVME))], &[(200, 1_300)]), @r"
    1100 ns at 200
      1100 irq 47 nvme0q3
        +300 irq 47 nvme0q3 begins
    ");
    // A softirq never runs on top of an interrupt, so that must have ended.
    let steps = [(500, enter(NVME)), (900, enter(SCHED)), (1_100, exit(SCHED))];
    assert_snapshot!(explain(&steps, &[(200, 1_300)]), @r"
    1100 ns at 200
      700 irq 47 nvme0q3
      400 softirq SCHED
        +300 irq 47 nvme0q3 begins
        +700 irq 47 nvme0q3 ends
        +700 softirq SCHED begins
        +900 softirq SCHED ends
    ");
}

#[test]
fn events_of_the_neighbours_are_not_its_own() {
    let steps = [
        (500, enter(NVME)),
        (900, exit(NVME)),
        // An interrupt that was shorter than the threshold.
        (1_300, enter(TIMER)),
        (1_450, exit(TIMER)),
        (1_900, enter(TIMER)),
        (2_900, exit(TIMER)),
    ];
    assert_snapshot!(explain(&steps, &[(300, 1_100), (1_500, 1_600), (1_700, 3_200)]), @r"
    800 ns at 300
      800 irq 47 nvme0q3
        +200 irq 47 nvme0q3 begins
        +600 irq 47 nvme0q3 ends
    100 ns at 1500
      100 unexplained
    1500 ns at 1700
      1500 local timer
        +200 local timer begins
        +1200 local timer ends
    ");
}

#[test]
fn clocks_may_differ_by_the_slack() {
    // Early by 150: the entry comes before the interruption.
    let steps = [(350, enter(NVME)), (1_350, exit(NVME))];
    assert_snapshot!(explain(&steps, &[(400, 1_600)]), @r"
    1200 ns at 400
      1200 irq 47 nvme0q3
        -50 irq 47 nvme0q3 begins
        +950 irq 47 nvme0q3 ends
    ");
    // Late by 150: the exit comes after it, and the next one starts clean.
    let steps = [(450, enter(NVME)), (1_450, exit(NVME)), (1_600, enter(TIMER)), (1_800, exit(TIMER))];
    assert_snapshot!(explain(&steps, &[(300, 1_300), (1_420, 1_900)]), @r"
    1000 ns at 300
      1000 irq 47 nvme0q3
        +150 irq 47 nvme0q3 begins
        +1150 irq 47 nvme0q3 ends
    480 ns at 1420
      480 local timer
        +180 local timer begins
        +380 local timer ends
    ");
}

#[test]
fn the_counter_may_wrap() {
    let mut bench = Bench::with(plan(u64::MAX - 1_000));
    bench.events(&[(600, enter(NVME)), (1_600, exit(NVME)), (1_700, enter(NET_RX)), (2_000, exit(NET_RX))]);
    bench.interruption(200, 2_500);
    let causes = bench.finish();
    assert_snapshot!(text(&causes.first[0]), @r"
    2300 ns at 200
      1500 irq 47 nvme0q3
      800 softirq NET_RX
        +400 irq 47 nvme0q3 begins
        +1400 irq 47 nvme0q3 ends
        +1500 softirq NET_RX begins
        +1800 softirq NET_RX ends
    ");
}

#[test]
fn lost_events_leave_a_hole() {
    let steps = [
        (500, enter(NVME)),
        (900, exit(NVME)),
        (3_000, TraceStep::Lost(12)),
        (3_200, exit(NET_RX)),
        (3_300, enter(SCHED)),
        (3_400, exit(SCHED)),
    ];
    assert_snapshot!(explain(&steps, &[(200, 3_600)]), @r"
    3400 ns at 200
      2100 not traced
      700 irq 47 nvme0q3
      300 softirq NET_RX
      300 softirq SCHED
        +300 irq 47 nvme0q3 begins
        +700 irq 47 nvme0q3 ends
        +2800 lost
        +2800 softirq NET_RX begins
        +3000 softirq NET_RX ends
        +3100 softirq SCHED begins
        +3200 softirq SCHED ends
    ");
}

#[test]
fn interruptions_within_a_loss_are_not_traced() {
    let steps = [
        (500, enter(NVME)),
        (900, exit(NVME)),
        (30_000, TraceStep::Lost(0)),
        (30_000, enter(TIMER)),
        (30_500, exit(TIMER)),
        (40_500, enter(TIMER)),
        (40_700, exit(TIMER)),
    ];
    let all = [(300, 1_100), (5_000, 6_000), (29_000, 31_000), (40_000, 41_000), (50_000, 51_000)];
    let mut bench = Bench::new();
    bench.events(&steps);
    for (before, now) in all {
        bench.interruption(before, now);
    }
    let causes = bench.finish();
    assert_eq!((causes.event_count, causes.event_lost_count), (6, 0));
    assert_eq!((causes.attributed_count, causes.kernel_count), (5, 3));
    let worst: String = causes.worst.iter().map(text).collect();
    assert_snapshot!(worst, @r"
    2000 ns at 29000
      1000 not traced
      1000 local timer
        +1000 lost
        +1000 local timer begins
        +1500 local timer ends
    1000 ns at 5000
      1000 not traced
        +1000 lost
    1000 ns at 40000
      1000 local timer
        +500 local timer begins
        +700 local timer ends
    1000 ns at 50000
      1000 unexplained
    ");
}
