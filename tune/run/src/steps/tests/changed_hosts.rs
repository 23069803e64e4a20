//! Interfaces and units: queues are changed first, and missing targets are reported.

use super::{
    super::*,
    host::{Host, HostWithRole, plan_of},
};
use lowlat_host::Profile;
use lowlat_settings::change::nic;
use lowlat_undo::{OnFailure, PrivateDirectory};

fn apply(host: &Host, plan: &Plan, part: Part) -> Preparation {
    let mut log = host.log();
    let preparation = prepare(plan, &host.snapshot(), &log, part).unwrap();
    let steps: Vec<UndoStep> = preparation.steps.iter().map(|prepared| prepared.step.clone()).collect();
    log.apply(&format!("{part:?}"), &steps, OnFailure::SkipRefused).unwrap();
    preparation
}

#[test]
fn queues_come_first_or_are_told() {
    let Some(host) = Host::captured("epyc-7f32-stock") else { return };
    let start = host.tree();
    let plan = HostWithRole::of(host.snapshot(), Profile::Trading).plan();
    let queues = plan.changes.iter().position(|change| change.target.kind().facts().part == Part::Queues);
    let queues = queues.expect("the captured card has more queues than housekeeping CPUs");
    let early = apply(&host, &plan, Part::RunTime);
    let [left] = &early.left[..] else { panic!("{:?}", early.left) };
    assert_eq!(left.change, queues);
    assert!(left.reason.contains("still has 8 queues (combined) instead of 2"), "{}", left.reason);
    assert!(host.log().rollback_where(|_| true).is_complete());
    let first = apply(&host, &plan, Part::Queues);
    let default = plan.changes.iter().position(|change| change.target == Target::DefaultIrqAffinity);
    let changes: Vec<usize> = first.steps.iter().map(|prepared| prepared.change).collect();
    assert_eq!(changes, [default.unwrap(), queues], "interrupts that come with queues take the mask");
    assert_eq!(apply(&host, &plan, Part::RunTime).left, []);
    assert!(host.log().rollback_where(|_| true).is_complete());
    assert_eq!(host.tree(), start);
}

#[test]
fn a_ring_that_lost_packets_is_planned_set_and_restored() {
    let Some(host) = Host::captured("epyc-7f32-stock") else { return };
    host.put("/sys/class/net/ens2/statistics/rx_missed_errors", "17|");
    let start = host.tree();
    let desk = HostWithRole::of(host.snapshot(), Profile::Trading);
    assert_eq!(
        desk.verdicts()["nic.rings"].1,
        "ens2: 256 of 4096 | 17 packets were lost because no descriptor was free"
    );
    let plan = desk.plan();
    let ring = nic::RINGS.of("ens2", "rx");
    let planned = plan.changes.iter().find(|change| change.target == ring).expect("the ring");
    assert_eq!((planned.before.text(), planned.after.as_str()), ("256", "4096"));
    let preparation = apply(&host, &plan, Part::RunTime);
    assert!(preparation.steps.iter().any(|prepared| prepared.step.id == "nic-rings ens2 rx"));
    let now = host.snapshot();
    assert_eq!(ring.kind().present(&now).text(), "4096");
    assert_eq!(plan.drift(&now), []);
    assert_eq!(
        HostWithRole::of(now, Profile::Trading).verdicts()["nic.rings"].0,
        lowlat_settings::Verdict::Good
    );
    assert!(host.log().rollback_where(|_| true).is_complete());
    assert_eq!(host.tree(), start);
}

#[test]
fn a_unit_or_an_interface_that_is_gone_is_left() {
    let Some(host) = Host::captured("epyc-7f32-stock") else { return };
    let nic = "ens9".to_owned();
    let plan = plan_of(vec![
        (Target::Service { unit: "never.service".to_owned() }, "inactive, disabled"),
        (nic::FEATURE.of(nic.clone(), "rx-lro"), "off"),
        (nic::CHANNELS.of(nic, "combined"), "2"),
    ]);
    let preparation = prepare(&plan, &host.snapshot(), &host.log(), Part::RunTime).unwrap();
    let left: Vec<&str> = preparation.left.iter().map(|left| left.reason.as_str()).collect();
    assert_eq!(left, ["never.service no longer exists", "interface ens9 no longer exists"]);
    assert_eq!(prepare(&plan, &host.snapshot(), &host.log(), Part::Queues).unwrap().left.len(), 1);
    assert_eq!(prepare(&plan, &host.snapshot(), &host.log(), Part::Files).unwrap(), Preparation::default());
}

/// An unregistered kind is a bug of the program.
#[test]
fn a_kind_without_a_target_is_an_error() {
    let host = Host::of(&[]);
    let dir = tempfile::tempdir().unwrap();
    let log = UndoLog::open(
        PrivateDirectory::create(dir.path(), &[]).unwrap(),
        lowlat_undo::Writer::below(&host.root).unwrap(),
        |_| true,
    )
    .unwrap();
    let plan = plan_of(vec![(Target::Service { unit: "x.service".to_owned() }, "inactive")]);
    assert!(prepare(&plan, &host.snapshot(), &log, Part::RunTime).is_err());
}
