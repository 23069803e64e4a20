//! One plan over another.

use super::super::*;
use super::bench::{Bench, differences, is_root};
use lowlat_plan::Plan;
use lowlat_settings::change::Target;
use lowlat_undo::Faults;

fn with_swappiness(plan: &Plan, value: &str) -> Plan {
    let mut plan = plan.clone();
    plan.changes.retain(|change| matches!(&change.target, Target::Sysctl { .. }));
    plan.changes.truncate(1);
    for change in &mut plan.changes {
        change.after = value.into();
    }
    plan
}

#[test]
fn going_back_to_an_earlier_plan_puts_it_in_force_again() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new();
    let site = bench.site(Faults::none());
    let start = bench.files();
    let first = bench.apply(&site, ApplyOptions::default()).unwrap().plan_id;
    let with_first = bench.files();
    let below = bench.plan.clone();
    bench.plan = with_swappiness(&below, "7");
    let second = bench.apply(&site, ApplyOptions::default()).unwrap().plan_id;
    assert_ne!(first, second);
    let (now, plan) = site.state.in_force().unwrap().unwrap();
    assert_eq!(plan.changes.len(), below.changes.len(), "the lower plan's changes are asked for still");
    assert_eq!(now.earlier.unwrap().plan_id, first);

    let back = RollbackRequest { scope: RollbackScope::To(first.clone()), ..RollbackRequest::default() };
    let report = rollback(&site, &back).unwrap();
    assert_eq!(report.in_force.as_deref(), Some(first.as_str()), "{report:#?}");
    assert_eq!(differences(&with_first, &bench.files()), Vec::<String>::new());

    // And after a reboot, where what the first plan set is gone and comes back.
    let second = bench.apply(&site, ApplyOptions::default()).unwrap().plan_id;
    bench.reboot(&start);
    apply_again(&site).unwrap();
    assert_eq!(site.state.in_force().unwrap().unwrap().0.plan_id, second);
    rollback(&site, &back).unwrap();
    let is_value = |line: &String| line.starts_with("proc/sys/vm") || line.starts_with("sys/");
    assert!(!differences(&with_first, &bench.files()).iter().any(is_value));

    let unknown =
        RollbackRequest { scope: RollbackScope::To("../../etc".into()), ..RollbackRequest::default() };
    assert!(rollback(&site, &unknown).unwrap_err().to_string().contains("cannot find plan"));
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
    assert!(site.state.in_force().unwrap().is_none());
}

#[test]
fn a_plan_that_was_tried_before_is_later_than_the_one_it_lies_over() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new();
    let site = bench.site(Faults::none());
    // So that what it makes of the other plan is itself.
    bench.plan.changes.sort_by_key(|change| !matches!(change.target, Target::Sysctl { .. }));
    let tried = bench.plan.clone();
    let first = bench.apply(&site, ApplyOptions::default()).unwrap().plan_id;
    rollback(&site, &RollbackRequest::default()).unwrap();
    bench.plan = with_swappiness(&tried, "7");
    let below = bench.apply(&site, ApplyOptions::default()).unwrap().plan_id;
    let with_below = bench.files();
    bench.plan = tried;
    assert_eq!(bench.apply(&site, ApplyOptions::default()).unwrap().plan_id, first);
    assert_ne!(bench.files(), with_below);

    let back = RollbackRequest { scope: RollbackScope::To(below.clone()), ..RollbackRequest::default() };
    let report = rollback(&site, &back).unwrap();
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(report.in_force, Some(below));
    assert_eq!(differences(&with_below, &bench.files()), Vec::<String>::new());
}

#[test]
fn a_plan_that_comes_again_over_another_goes_back_to_the_start_as_well() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new();
    let site = bench.site(Faults::none());
    let start = bench.files();
    let whole = bench.plan.clone();
    let first = bench.apply(&site, ApplyOptions::default()).unwrap().plan_id;
    let with_first = bench.files();
    let one = whole.changes.iter().find(|change| matches!(change.target, Target::Sysctl { .. })).unwrap();
    bench.plan = with_swappiness(&whole, "7");
    let second = bench.apply(&site, ApplyOptions::default()).unwrap().plan_id;
    bench.plan = with_swappiness(&whole, &one.after);
    assert_eq!(bench.apply(&site, ApplyOptions::default()).unwrap().plan_id, first);
    assert_eq!(differences(&with_first, &bench.files()), Vec::<String>::new());

    let back = RollbackRequest { scope: RollbackScope::To(second.clone()), ..RollbackRequest::default() };
    let report = rollback(&site, &back).unwrap();
    assert_eq!(report.in_force, Some(second), "{report:#?}");
    assert!(report.conflicts.is_empty() && !report.restored.is_empty(), "{report:#?}");
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
    assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
}
