//! Properties that hold for any events.

use super::bench::*;
use crate::attribution::{AttributionPlan, CauseKey, CpuAttributor, KEYS_MAX};
use crate::{Cause, CauseKind, CpuCauses, Explained, Interruption, TIMELINE_STEPS_MAX, TimelineChange};
use lowlat_trace::{Activity, TraceEvent, TraceStep, Vector};
use proptest::{collection::vec, prelude::*};
use std::cmp::Reverse;
use std::collections::BTreeMap;

fn activity() -> impl Strategy<Value = Activity> {
    prop_oneof![
        Just(Activity::Nmi),
        (0_u32..5).prop_map(Activity::Irq),
        Just(Activity::Vector(Vector::LocalTimer)),
        Just(Activity::Vector(Vector::CallFunction)),
        any::<u8>().prop_map(Activity::Softirq),
        (0_u64..3).prop_map(Activity::Hrtimer),
        (0_u64..3).prop_map(Activity::Timer),
        (0_u64..3).prop_map(Activity::CallFunction),
        (0_u64..3).prop_map(Activity::Tasklet),
        (0_u64..3).prop_map(Activity::Work),
        any::<i32>().prop_map(Activity::Thread),
        Just(Activity::PageFault),
        (0_u8..3).prop_map(Activity::Signal),
    ]
}

fn thread() -> impl Strategy<Value = i32> {
    prop_oneof![Just(SAMPLER), Just(0), 1_i32..6, any::<i32>()]
}

fn step() -> impl Strategy<Value = TraceStep> {
    prop_oneof![
        4 => activity().prop_map(TraceStep::Enter),
        4 => activity().prop_map(TraceStep::Exit),
        1 => (activity(), 0_u64..5_000).prop_map(|(activity, ticks)| TraceStep::Took(activity, ticks)),
        1 => (activity(), any::<u64>()).prop_map(|(activity, ticks)| TraceStep::Took(activity, ticks)),
        1 => activity().prop_map(TraceStep::Point),
        3 => (thread(), thread()).prop_map(|(from, to)| TraceStep::Switch { from, to, hold: None }),
        1 => any::<u64>().prop_map(TraceStep::Lost),
        1 => any::<i32>().prop_map(TraceStep::Wakes),
    ]
}

/// Stamps mostly near each other and in order, sometimes anywhere.
fn events() -> impl Strategy<Value = Vec<(i64, TraceStep)>> {
    let stamp = prop_oneof![40 => -50_i64..2_000, 1 => any::<i64>()];
    vec((stamp, step()), 0..300).prop_map(|steps| {
        let mut at = 0_i64;
        steps
            .into_iter()
            .map(|(apart, step)| {
                at = at.wrapping_add(apart);
                (at, step)
            })
            .collect()
    })
}

/// Quiet time and length of each.
fn interruptions() -> impl Strategy<Value = Vec<(u64, u64)>> {
    vec((0_u64..3_000, prop_oneof![20 => 0_u64..6_000, 1 => 0_u64..1 << 40]), 1..60)
}

fn run(plan: AttributionPlan, steps: &[(i64, TraceStep)], spans: &[(u64, u64)]) -> CpuCauses {
    let mut bench = Bench::with(plan);
    bench.events(steps);
    let mut now = 0;
    for (place, (quiet, length)) in spans.iter().enumerate() {
        bench.interruption(now + quiet, now + quiet + length);
        now += quiet + length;
        if place % 7 == 6 {
            bench.attributor.close_window(place % 2 == 0);
        }
    }
    bench.finish()
}

/// The time within the interruption that a timeline assigns to each kind, without inner activities. A tick is
/// a nanosecond here.
fn claimed_by_steps(explained: &Explained) -> BTreeMap<CauseKind, u64> {
    let length = i64::try_from(explained.interruption.length_ns).unwrap();
    let mut claimed = BTreeMap::new();
    let mut open: Vec<&Cause> = Vec::new();
    let mut from = 0;
    let mut claim = |open: &[&Cause], until: i64| {
        let until = until.clamp(from, length);
        if let Some(top) = open.last() {
            *claimed.entry(top.kind).or_default() += u64::try_from(until - from).unwrap();
        }
        from = until;
    };
    for step in &explained.timeline {
        claim(&open, step.offset_ns);
        match step.change {
            TimelineChange::Begins => open.push(&step.cause),
            TimelineChange::Ends => {
                if let Some(place) = open.iter().rposition(|cause| **cause == step.cause) {
                    open.truncate(place);
                }
            }
            TimelineChange::Happens | TimelineChange::Returns | TimelineChange::Lost => {}
        }
    }
    if explained.timeline_cut_count == 0 {
        claim(&open, length);
    }
    claimed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn parts_and_totals_add_up(
        steps in events(),
        spans in interruptions(),
        epoch in prop_oneof![Just(EPOCH), Just(u64::MAX - 20_000), any::<u64>()],
        hz in prop_oneof![Just(1_000_000_000_u64), Just(2_596_132_000), Just(24_000_000), 1_u64..1 << 34],
    ) {
        let causes = run(AttributionPlan { hz, ..plan(epoch) }, &steps, &spans);
        let scale = lowlat_host::TickScale::new(hz);
        let ticks: u64 = spans.iter().map(|(_, length)| length).sum();
        prop_assert_eq!(causes.totals.iter().map(|total| total.ns_total).sum::<u64>(), scale.ns(ticks));
        prop_assert_eq!(causes.attributed_count, spans.len() as u64);
        prop_assert_eq!(causes.totals.iter().map(|total| total.main_count).sum::<u64>(), spans.len() as u64);
        for total in &causes.totals {
            prop_assert!(total.main_count <= total.count && total.count <= spans.len() as u64);
            prop_assert!(total.ns_max <= total.ns_total && total.entry_exit_ns <= total.ns_total);
            let is_kernel = total.cause.kind.is_kernel();
            prop_assert!(is_kernel || total.entry_exit_ns == 0, "{:?}", total);
        }
        for explained in causes.worst.iter().chain(&causes.first) {
            let sum: u64 = explained.parts.iter().map(|part| part.ns).sum();
            prop_assert_eq!(sum, explained.interruption.length_ns);
            prop_assert!(explained.parts.is_sorted_by_key(|part| Reverse(part.ns)));
            prop_assert!(explained.timeline.len() <= TIMELINE_STEPS_MAX);
        }
    }

    #[test]
    fn steps_never_claim_more_than_the_parts(steps in events(), spans in interruptions()) {
        let causes = run(plan(EPOCH), &steps, &spans);
        for explained in causes.worst.iter().chain(&causes.first) {
            for (kind, claimed) in claimed_by_steps(explained) {
                let held: u64 =
                    explained.parts.iter().filter(|part| part.cause.kind == kind).map(|part| part.ns).sum();
                prop_assert!(claimed <= held, "{kind:?}: steps {claimed}, parts {held}: {explained:#?}");
            }
        }
    }

    #[test]
    fn the_worst_are_the_longest_and_the_earlier_of_equals(
        steps in events(),
        lengths in vec(0_u64..20, 1..60),
    ) {
        let spans: Vec<(u64, u64)> = lengths.iter().map(|length| (100, *length)).collect();
        let causes = run(plan(EPOCH), &steps, &spans);
        let mut at_ns = 0;
        let mut all: Vec<Interruption> = Vec::new();
        for length_ns in lengths {
            at_ns += 100;
            all.push(Interruption { at_ns, length_ns });
            at_ns += length_ns;
        }
        let first: Vec<Interruption> = causes.first.iter().map(|one| one.interruption).collect();
        prop_assert_eq!(&first[..], &all[..all.len().min(4)]);
        all.sort_by_key(|one| (Reverse(one.length_ns), one.at_ns));
        all.truncate(4);
        let worst: Vec<Interruption> = causes.worst.iter().map(|one| one.interruption).collect();
        prop_assert_eq!(worst, all);
    }

    #[test]
    fn without_events_nothing_is_named(spans in interruptions()) {
        let causes = run(plan(EPOCH), &[], &spans);
        prop_assert_eq!(causes.kernel_count, 0);
        for total in &causes.totals {
            let is_unknown =
                matches!(total.cause.kind, CauseKind::Unexplained | CauseKind::FirmwareOrHypervisor);
            prop_assert!(is_unknown, "{:?}", total.cause);
        }
    }

    #[test]
    fn shifting_all_clocks_changes_nothing(steps in events(), spans in interruptions(), epoch in any::<u64>()) {
        prop_assert_eq!(run(plan(EPOCH), &steps, &spans), run(plan(epoch), &steps, &spans));
    }
}

/// Capacities of all reused memory, which must not change once everything is in use.
fn capacities_of(of: &CpuAttributor) -> Vec<usize> {
    let (replay, keeper) = (&of.replay, &of.keeper);
    let kept = keeper.worst.iter().chain(&keeper.first);
    let mut all = vec![of.queue.events.capacity(), replay.stack.capacity()];
    all.extend([replay.parts.present.capacity(), replay.timeline.steps.capacity()]);
    all.extend([keeper.worst.capacity(), keeper.ranks.capacity()]);
    all.extend([keeper.first.capacity(), keeper.sorted.capacity()]);
    all.extend(kept.flat_map(|kept| [kept.parts.capacity(), kept.steps.capacity()]));
    all
}

/// A long run with ever new threads and functions: memory does not grow.
#[test]
fn memory_is_bounded() {
    let mut bench = Bench::new();
    let mut capacities = Vec::new();
    for round in 0..5_000_u64 {
        many_causes(&mut bench, round);
        if round % 50 == 0 {
            bench.attributor.close_window(round % 100 == 0);
        }
        match round {
            4 => capacities = capacities_of(&bench.attributor),
            5.. => assert_eq!(capacities_of(&bench.attributor), capacities, "round {round}"),
            _ => {}
        }
    }
    let causes = bench.finish();
    assert!(causes.totals.len() <= KEYS_MAX + 16, "{}", causes.totals.len());
    assert_eq!((causes.worst.len(), causes.first.len()), (4, 4));
    let other = causes.totals.iter().find(|total| total.cause.label() == "thread other").unwrap();
    assert!(other.count > 3_000, "{other:?}");
}

/// A hundred new threads one after the other, some with a new function.
fn many_causes(bench: &mut Bench, round: u64) {
    let at = round * 200_000;
    for n in 0..300 {
        let tid = i32::try_from(round * 100 + n / 3).unwrap() + 10;
        let step = match n % 3 {
            0 => switch(SAMPLER, tid),
            1 => enter(Activity::Work(0x1000 + round)),
            _ => enter(NVME),
        };
        bench.events(&[(i64::try_from(at + n * 500).unwrap(), step)]);
    }
    bench.interruption(at, at + 160_000 + round % 777);
}

/// Without requests for interruptions, events are dropped and the next interruption says so.
#[test]
fn events_that_without_a_request_give_way() {
    let mut bench = Bench::new();
    for at in 0..10_000 {
        bench.events(&[(at, enter(NVME))]);
    }
    let main = bench.interruption(0, 2_000);
    assert_eq!(main.key(), CauseKey::Kind(CauseKind::NotTraced));
    let causes = bench.finish();
    assert_eq!(causes.event_count, 10_000);
    assert_eq!(causes.event_lost_count, 10_000 - 1_024 + 1);

    // If it is informed in time that nothing will come, it drops them and loses none.
    let mut bench = Bench::new();
    for at in 0..10_000_u32 {
        bench.events(&[(i64::from(at), enter(NVME))]);
        if at % 500 == 0 {
            bench.attributor.pass(EPOCH + u64::from(at));
        }
    }
    assert_eq!(bench.finish().event_lost_count, 0);
}

#[test]
fn a_clock_that_ran_backwards_takes_no_time() {
    let mut bench = Bench::new();
    bench.attributor.push_events(&[TraceEvent { ticks: EPOCH + 10, step: enter(NVME) }]);
    bench.attributor.attribute(EPOCH + 100, EPOCH + 50);
    bench.attributor.note_ring_lost(7);
    let causes = bench.finish();
    assert_eq!((causes.attributed_count, causes.ring_lost_count), (1, 7));
    assert_eq!(causes.totals.iter().map(|total| total.ns_total).sum::<u64>(), 0);
}
