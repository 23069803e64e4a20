//! The complete plan of a captured host, with the steps that a real host gets.

use super::super::*;
use super::bench::{Bench, differences, is_root};
use crate::steps;
use lowlat_plan::outcome::Fate;
use lowlat_undo::Faults;

#[test]
fn the_whole_plan_goes_on_and_comes_off_over_reboots() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new();
    bench.plan = bench.whole_plan();
    bench.put_units();
    let mut site = bench.site(Faults::none());
    site.prepare = steps::prepare;
    let start = bench.files();
    let outcome = bench.apply(&site, ApplyOptions::default()).unwrap();
    assert_eq!(outcome.changes.len(), bench.plan.changes.len());
    assert!(outcome.count(Fate::Done) > 30, "{outcome:#?}");
    for change in outcome.changes.iter().filter(|change| change.fate == Fate::Refused) {
        assert!(change.reasons.iter().all(|why| why.contains("running host")), "{change:?}");
    }
    let applied = bench.files();
    let ready =
        Ready::new(&site, &site.snapshot(), bench.plan.clone(), PlanFrom::File, ApplyOptions::default());
    let again = ready.unwrap().carry_out(&site, &site.snapshot(), &mut |_| ()).unwrap();
    assert!(!again.is_changed, "{again:#?}");
    assert_eq!(differences(&applied, &bench.files()), Vec::<String>::new());

    bench.reboot(&start);
    apply_again(&site).unwrap();
    let ours = |line: &String| !line.starts_with("proc/cmdline") && !line.contains("boot_id");
    let left = differences(&applied, &bench.files());
    assert!(!left.iter().any(ours), "{left:#?}");
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(report.is_complete() && report.needs_reboot, "{report:#?}");
    let left = differences(&start, &bench.files());
    assert!(!left.iter().any(ours), "{left:#?}");
}
