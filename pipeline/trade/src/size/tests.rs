//! Plans and runs of sizings, with invented results.

use super::*;
use crate::run::testing::Fake;
use lowlat_host::{CpuSet, Reading};
use lowlat_pipeline::ProcessRole;
use std::sync::Arc;

fn wanted() -> Wanted {
    Wanted {
        rate_per_s: 10.0,
        goal: CapacityGoal { p99_ns: 500_000.0, utilisation: 0.6 },
        mode: Mode::Parked,
        strategy_cost_ns: 0,
        strategies: Vec::new(),
        checks: vec![10, 40, 80],
        repeats: 1,
        duration: Duration::from_secs(5),
        is_forced: false,
    }
}

fn find(wanted: &Wanted, cpus: u32, runner: &mut Fake) -> SizeDocument {
    try_find(wanted, cpus, runner, &AtomicBool::new(false)).unwrap().unwrap()
}

fn facts(cpus: u32) -> RoomFacts {
    RoomFacts {
        cpus: Reading::Known(CpuSet::first(cpus)),
        other_runs: Reading::Known(vec!["process 4711 (run a)".to_owned()]),
        ..RoomFacts::default()
    }
}

fn try_with(wanted: &Wanted, facts: &RoomFacts, runner: &mut Fake) -> SizeDocument {
    let (topology, allocation) = (Topology::default(), Allocation::default());
    let stop = AtomicBool::new(false);
    let sizing = Sizing { wanted, topology: &topology, allocation: &allocation, facts, stop: &stop };
    sizing.find("made up", String::new(), runner, &mut |_, _| ()).unwrap().unwrap()
}

fn try_find(
    wanted: &Wanted,
    cpus: u32,
    runner: &mut Fake,
    stop: &AtomicBool,
) -> Result<Option<SizeDocument>, Refusal> {
    let topology = Topology { online: CpuSet::first(cpus), ..Topology::default() };
    let allocation = Allocation {
        housekeeping: CpuSet::of(0),
        isolated: CpuSet::first(cpus).difference(&CpuSet::of(0)),
        ..Allocation::default()
    };
    let facts = facts(cpus);
    let sizing = Sizing { wanted, topology: &topology, allocation: &allocation, facts: &facts, stop };
    sizing.find("made up", String::new(), runner, &mut |_, _| ())
}

#[test]
fn costs_are_measured_then_points_checked_then_cpus_proposed() {
    let mut runner = Fake::default();
    let document =
        find(&Wanted { goal: CapacityGoal { p99_ns: 5e6, utilisation: 0.6 }, ..wanted() }, 8, &mut runner);
    let asked: Vec<(u32, Mode)> = runner.asked.iter().map(|of| (of.strategies, of.mode)).collect();
    let parked = |number| (number, Mode::Parked);
    assert_eq!(asked, [parked(1), (1, Mode::Fast), parked(10), parked(40), parked(80)]);
    assert_eq!(document.checked.len(), 3);
    assert!(document.capacity.strategies > 0 && document.fit.points == 3, "{:?}", document.fit);
    assert_eq!(
        document.placement.pins[&ProcessRole::Strategies].len(),
        document.capacity.strategies as usize
    );
    let read: SizeDocument = serde_json::from_value(serde_json::to_value(&document).unwrap()).unwrap();
    assert_eq!(read.placement, document.placement);
}

#[test]
fn checks_go_in_rounds_and_every_run_does_the_strategy_s_work() {
    let mut runner = Fake::default();
    let wanted = Wanted { repeats: 2, checks: vec![40, 10], strategy_cost_ns: 20_000, ..wanted() };
    let document = find(&wanted, 8, &mut runner);
    let asked: Vec<u32> = runner.asked.iter().map(|of| of.strategies).collect();
    assert_eq!(asked, [1, 1, 40, 10, 40, 10]);
    assert!(runner.asked.iter().all(|of| of.strategy_cost_ns == 20_000));
    let checked: Vec<u32> = document.checked.iter().map(|point| point.load.strategies).collect();
    assert_eq!((checked, document.strategy_cost_ns), (vec![10, 10, 40, 40], 20_000));
    let [low, high] = document.answer.predicted_range.unwrap();
    assert!(low <= document.answer.predicted && document.answer.predicted <= high, "{:?}", document.answer);
}

#[test]
fn huge_pages_are_compared_in_turns_or_the_reason_is_given() {
    let with_pages = RoomFacts { huge_bytes_free: Reading::Known(1 << 30), ..facts(8) };
    let mut runner = Fake::default();
    let tried = try_with(&wanted(), &with_pages, &mut runner).huge_pages.unwrap();
    let asked: Vec<bool> = runner.asked.iter().skip(4).map(|of| of.may_use_huge_pages).collect();
    assert_eq!(asked, [false, true, false, true]);
    assert_eq!((tried.usual.len(), tried.huge.len(), tried.not_tried), (2, 2, None));
    let mut runner = Fake::default();
    let without = RoomFacts { huge_bytes_free: Reading::Known(0), ..facts(8) };
    let tried = try_with(&wanted(), &without, &mut runner).huge_pages.unwrap();
    assert_eq!((runner.asked.len(), tried.huge.len(), tried.strategies), (5, 0, 80));
    assert!(tried.not_tried.unwrap().ends_with("--reserve-huge-pages reserves them"));
}

#[test]
fn a_small_host_warns_that_wake_and_transfer_are_measured_as_one() {
    let group = |strategies, rate_per_s| StrategyGroup { strategies, rate_per_s };
    let strategies = vec![group(6, 10.0), group(2, 100.0)];
    let document = find(&Wanted { strategies, checks: vec![10], ..wanted() }, 2, &mut Fake::default());
    assert!(document.warnings[1].contains("too few for spinning processes"));
    assert_eq!(document.placement.groups.len(), 2);
    assert!(document.costs.transfer_ns == 0.0);
}

#[test]
fn another_running_pipeline_is_reported() {
    let document = find(&Wanted { checks: vec![10], ..wanted() }, 8, &mut Fake::default());
    assert!(document.warnings[0].starts_with("other runs: process 4711"), "{:?}", document.warnings);
}

#[test]
fn an_interrupt_before_the_costs_are_known_is_an_error() {
    let stop = Arc::new(AtomicBool::new(false));
    let stops_after = Some((1, Arc::clone(&stop)));
    let mut runner = Fake { fails_at: Some(2), stops_after, ..Fake::default() };
    assert!(try_find(&wanted(), 8, &mut runner, &stop).unwrap().is_none());
}

#[test]
fn a_failed_point_leaves_the_others() {
    let mut runner = Fake { fails_at: Some(3), ..Fake::default() };
    let document = find(&wanted(), 8, &mut runner);
    assert_eq!(document.checked.len(), 2);
    assert!(
        document.warnings.iter().any(|warning| warning.starts_with("10 strategies could not be checked"))
    );
}
