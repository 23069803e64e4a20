//! Groups of interruptions on several CPUs.

use super::super::{engine::Sleep, keys::CauseKey, names::CauseNames};
use super::*;
use lowlat_trace::{Activity, TraceNames, Vector};
use proptest::prelude::*;
use std::collections::BTreeSet;

const EPOCH: u64 = u64::MAX - 5_000;
const CALL: CauseKey = CauseKey::Activity(Activity::Vector(Vector::CallFunction));
const UNEXPLAINED: CauseKey = CauseKey::Kind(CauseKind::Unexplained);

fn finder(cpus: &str) -> GroupFinder {
    let plan = GroupPlan {
        cpus: CpuSet::parse_list(cpus).unwrap(),
        hz: 1_000_000_000,
        epoch_ticks: EPOCH,
        window_ticks: 1_000,
    };
    GroupFinder::new(&plan)
}

fn hit(cpu: CpuId, at: u64, length: u64, key: CauseKey) -> Hit {
    let before = EPOCH.wrapping_add(at);
    Hit { cpu, before, now: before.wrapping_add(length), key }
}

fn finish(finder: GroupFinder, run_ticks: u64) -> JitterGroups {
    let names = TraceNames::default();
    finder.finish(run_ticks, &CauseNames { names: &names, own_tids: &BTreeSet::new(), sleep: Sleep::Never })
}

/// Per group: when each CPU was hit and for how long.
fn worst(groups: &JitterGroups) -> Vec<Vec<(CpuId, u64, u64)>> {
    let member =
        |member: &GroupMember| (member.cpu, member.interruption.at_ns, member.interruption.length_ns);
    groups.worst.iter().map(|group| group.members.iter().map(member).collect()).collect()
}

#[test]
fn a_broadcast_is_one_group() {
    let mut finder = finder("1-4");
    for cpu in 1..=4 {
        finder.push(hit(cpu, 9_000 + u64::from(cpu) * 300, 2_000, CALL));
        finder.push(hit(cpu, 50_000 * u64::from(cpu), 1_000, CALL));
    }
    finder.push(hit(4, 60_000, 5_000, CALL));
    finder.push(hit(2, 59_500, 5_000, CALL));
    let groups = finish(finder, 1_000_000);
    assert_eq!(groups.window_ns, 1_000);
    let sizes: Vec<(u32, u64)> = groups.sizes.iter().map(|size| (size.cpu_count, size.count)).collect();
    assert_eq!(sizes, [(2, 1), (4, 1)]);
    assert_eq!(
        worst(&groups),
        [
            vec![(2, 59_500, 5_000), (4, 60_000, 5_000)],
            vec![(1, 9_300, 2_000), (2, 9_600, 2_000), (3, 9_900, 2_000), (4, 10_200, 2_000)],
        ]
    );
    assert_eq!(groups.worst[0].members[0].cause.label(), "call function");
    // 2, 3, 2 and 3 interruptions on the four CPUs make 37 pairs, each with a chance of 2 us in 1 ms.
    assert!((groups.chance_pair_count - 37.0 * 2.0 / 1_000.0).abs() < 1e-12, "{groups:?}");
}

#[test]
fn one_cpu_alone_is_not_a_group_and_is_in_a_group_once() {
    let mut finder = finder("1-2");
    for at in [1_000, 1_400, 1_800] {
        finder.push(hit(1, at, 100, CALL));
    }
    finder.push(hit(2, 1_900, 100, CALL));
    finder.push(hit(2, 2_100, 100, CALL));
    let groups = finish(finder, 10_000);
    assert_eq!(worst(&groups), [vec![(1, 1_000, 100), (2, 1_900, 100)]]);
    assert_eq!(groups.sizes, [GroupSize { cpu_count: 2, count: 1 }]);
}

#[test]
fn nothing_is_judged_before_all_cpus_have_come_that_far() {
    let mut finder = finder("1-2");
    finder.push(hit(1, 5_000, 100, CALL));
    finder.pass(1, EPOCH.wrapping_add(9_000));
    finder.judge();
    finder.push(hit(2, 4_700, 100, CALL));
    finder.pass(2, EPOCH.wrapping_add(9_000));
    finder.judge();
    assert!(finder.waiting.is_empty());
    finder.push(hit(2, 8_000, 100, CALL));
    assert_eq!(finder.late_count(), 1);
    assert_eq!(worst(&finish(finder, 30_000)), [vec![(2, 4_700, 100), (1, 5_000, 100)]]);
}

#[test]
fn unexplained_members_have_the_class_of_their_window() {
    let mut finder = finder("1-2");
    let both = |finder: &mut GroupFinder, at| {
        finder.push(hit(1, at, 100, UNEXPLAINED));
        finder.push(hit(2, at, 100, UNEXPLAINED));
    };
    both(&mut finder, 10_000);
    finder.close_window(&CpuSet::default());
    both(&mut finder, 20_000);
    finder.close_window(&CpuSet::of(1));
    both(&mut finder, 30_000);
    finder.close_window(&CpuSet::default());
    let groups = finish(finder, 40_000);
    let kinds: Vec<Vec<CauseKind>> = groups
        .worst
        .iter()
        .map(|group| group.members.iter().map(|member| member.cause.kind).collect())
        .collect();
    let (firmware, unexplained) = (CauseKind::FirmwareOrHypervisor, CauseKind::Unexplained);
    assert_eq!(
        kinds,
        [vec![firmware, unexplained], vec![firmware, unexplained], vec![unexplained, unexplained]]
    );
}

#[test]
fn a_cpu_that_stands_still_does_not_fill_the_memory() {
    let mut finder = finder("1-3");
    let (capacity, count) = (finder.waiting.capacity(), 200_000);
    for n in 0..count {
        finder.push(hit(1, n * 10_000, 100, CALL));
        finder.push(hit(2, n * 10_000 + 500, 100 + n, CALL));
        finder.judge();
        if n == 0 {
            finder.pass(1, EPOCH);
        }
    }
    assert_eq!(finder.waiting.capacity(), capacity);
    // The third CPU wakes up too late.
    finder.push(hit(3, 10_000, 100, CALL));
    assert_eq!(finder.late_count(), 1);
    let groups = finish(finder, count * 10_000);
    assert_eq!(groups.sizes, [GroupSize { cpu_count: 2, count }]);
    assert_eq!(groups.worst.len(), GROUPS_WORST_MAX);
    assert_eq!(groups.worst[0].members[1].interruption.length_ns, 100 + count - 1);
}

proptest! {
    #[test]
    fn rounds_do_not_change_the_groups(
        hits in proptest::collection::vec((1_u32..5, 0_u64..900, 1_u64..2_000), 0..200),
        round in 1_usize..40,
    ) {
        let mut at_once = finder("1-4");
        let mut in_rounds = finder("1-4");
        let mut at = 0;
        for (place, (cpu, apart, length)) in hits.iter().enumerate() {
            at += apart;
            at_once.push(hit(*cpu, at, *length, CALL));
            in_rounds.push(hit(*cpu, at, *length, CALL));
            if place % round == 0 {
                for cpu in 1..5 {
                    in_rounds.pass(cpu, EPOCH.wrapping_add(at));
                }
                in_rounds.judge();
            }
        }
        let (at_once, in_rounds) = (finish(at_once, 1 << 20), finish(in_rounds, 1 << 20));
        prop_assert_eq!(&at_once, &in_rounds);
        for group in &at_once.worst {
            let cpus: BTreeSet<CpuId> = group.members.iter().map(|member| member.cpu).collect();
            prop_assert!(cpus.len() == group.members.len() && cpus.len() >= 2);
            let at: Vec<u64> = group.members.iter().map(|member| member.interruption.at_ns).collect();
            prop_assert!(at.is_sorted() && at[at.len() - 1] - at[0] <= 1_000);
        }
    }
}
