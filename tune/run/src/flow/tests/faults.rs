//! Crashes and full disks at the operations of an apply.

use super::super::*;
use super::bench::{Bench, differences, is_root};
use crate::units;
use lowlat_undo::Faults;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// Distance of the tested operations. The log's own tests visit each one; these visit the boundaries between its plans.
const STRIDE: usize = 11;

fn within() -> ApplyOptions {
    let confirm_within = Some(std::time::Duration::from_secs(600));
    ApplyOptions { confirm_within, ..ApplyOptions::default() }
}

#[test]
fn after_a_crash_anywhere_both_ways_are_open() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let start = bench.files();
    let mut is_over = false;
    for at in (0..).step_by(STRIDE).take_while(|_| true) {
        for is_finished in [false, true] {
            let faults = Faults::crash_at(at);
            let crashed = bench.apply(&bench.site(faults.clone()), within());
            is_over = faults.count() <= at;
            assert_eq!(crashed.is_ok(), is_over, "operation {at}: {crashed:?}");
            let site = bench.site(Faults::none());
            if is_finished {
                let outcome = bench.apply(&site, within());
                outcome.unwrap_or_else(|error| panic!("operation {at}: {error}"));
                assert!(site.state.in_force().unwrap().unwrap().0.is_complete, "operation {at}");
                assert!(bench.text("boot/grub/grub.cfg").contains("nohz_full="), "operation {at}");
            }
            let report = rollback(&site, &RollbackRequest::default()).unwrap();
            assert!(report.is_complete(), "operation {at}: {report:#?}");
            assert_eq!(differences(&start, &bench.files()), Vec::<String>::new(), "operation {at}");
            assert!(site.state.in_force().unwrap().is_none(), "operation {at}");
        }
        if is_over {
            break;
        }
    }
    assert!(is_over);
}

#[test]
fn a_disk_that_fills_up_anywhere_leaves_nothing_half_done() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let start = bench.files();
    let (mut failed, mut kept, mut is_over) = (0, 0, false);
    for at in (0..).step_by(STRIDE) {
        let faults = Faults::full_from(at);
        let applied = bench.apply(&bench.site(faults.clone()), within());
        is_over |= faults.count() <= at;
        if let Err(error) = applied {
            failed += 1;
            let error = error.to_string();
            assert!(error.contains("space"), "operation {at}: {error}");
            // A full disk may prevent restoring an old content. That must be reported, and the log must keep it.
            let is_back = differences(&start, &bench.files()).is_empty();
            kept += u32::from(!is_back);
            assert!(
                is_back || error.contains("some changes could not be rolled back"),
                "operation {at}: {error}"
            );
        }
        let site = bench.site(Faults::none());
        assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete(), "operation {at}");
        assert_eq!(differences(&start, &bench.files()), Vec::<String>::new(), "operation {at}");
        if is_over {
            break;
        }
    }
    assert!(failed > 10 && kept < failed, "{failed} failed, {kept} of them kept something");
}

/// The host has priority over the log: restored values are reported, also to systemd, even if the log could not record
/// them.
#[test]
fn what_a_full_disk_keeps_out_of_the_log_is_told_all_the_same() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let start = bench.files();
    bench.apply(&bench.site(Faults::none()), ApplyOptions::default()).unwrap();
    bench.calls();
    let outcome = rollback(&bench.site(Faults::full_from(0)), &RollbackRequest::default()).unwrap();
    assert!(outcome.notes.iter().any(|note| note.contains("not recorded")), "{outcome:#?}");
    let unit = units::path(units::APPLY);
    assert!(!bench.tree().join(unit.trim_start_matches('/')).exists());
    assert!(outcome.restored.iter().any(|restored| restored.name == unit), "{outcome:#?}");
    let calls = bench.calls();
    for call in ["daemon-reload".to_owned(), format!("stop {}", units::APPLY)] {
        assert!(calls.contains(&call), "{call}: {calls:?}");
    }
    // When there is space again, the remaining changes are restored and recorded.
    let outcome = rollback(&bench.site(Faults::none()), &RollbackRequest::default()).unwrap();
    assert!(outcome.is_complete(), "{outcome:#?}");
    assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
    let again = rollback(&bench.site(Faults::none()), &RollbackRequest::default()).unwrap();
    assert_eq!((again.restored.len(), again.unchanged_count), (0, 0), "{again:#?}");
}

/// If a rollback is killed after it removed unit files and before it notified systemd, the next one notifies it.
#[test]
fn what_a_killed_rollback_did_not_tell_systemd_the_next_one_tells() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let start = bench.files();
    let unit = bench.tree().join(units::path(units::APPLY).trim_start_matches('/'));
    let is_active = || bench.manager.active.lock().unwrap().contains_key(units::APPLY);
    let killed = || {
        bench.manager.dies.store(true, Ordering::Relaxed);
        let site = bench.site(Faults::none());
        let back = || rollback(&site, &RollbackRequest::default()).map(drop);
        let ended = catch_unwind(AssertUnwindSafe(back));
        bench.manager.dies.store(false, Ordering::Relaxed);
        assert!(ended.is_err(), "it came to its end: {ended:?}");
        assert!(!unit.exists() && is_active(), "the file is gone, and systemd does not know");
    };
    for _ in 0..2 {
        bench.apply(&bench.site(Faults::none()), ApplyOptions::default()).unwrap();
        killed();
        bench.calls();
        let report = rollback(&bench.site(Faults::none()), &RollbackRequest::default()).unwrap();
        assert!(report.is_complete(), "{report:#?}");
        assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
        assert!(!is_active());
        assert_eq!(bench.calls(), ["daemon-reload", "restart irqbalance.service", "stop lowlat.service"]);
        rollback(&bench.site(Faults::none()), &RollbackRequest::default()).unwrap();
        assert!(bench.calls().is_empty(), "once is enough");
    }
    // A unit that a later apply created again is not stopped because of an earlier rollback.
    bench.apply(&bench.site(Faults::none()), ApplyOptions::default()).unwrap();
    killed();
    let site = bench.site(Faults::none());
    bench.apply(&site, ApplyOptions::default()).unwrap();
    rollback(&site, &RollbackRequest { scope: RollbackScope::RunTime, ..RollbackRequest::default() })
        .unwrap();
    assert!(unit.exists() && is_active(), "{:?}", bench.calls());
    rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(!is_active());
}
