//! The dead-man switch.

use super::super::*;
use super::bench::{Bench, GRUB_CFG, differences, is_root};
use crate::InForce;
use lowlat_host::Reading;
use lowlat_plan::outcome::Confirmation;
use lowlat_undo::{Faults, UndoError, UndoLog, Writer};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

fn within() -> ApplyOptions {
    ApplyOptions { confirm_within: Some(Duration::from_secs(600)), ..ApplyOptions::default() }
}

fn with_another_line(bench: &mut Bench) {
    for change in &mut bench.plan.changes {
        if let lowlat_settings::change::Target::CommandLine { tokens } = &mut change.target {
            tokens[0].value = Some("other".into());
        }
    }
}

fn ours(line: &str) -> bool {
    !line.starts_with("proc/cmdline") && !line.contains("boot_id")
}

#[test]
fn a_confirmed_plan_stays_and_the_switch_is_gone() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let site = bench.site(Faults::none());
    let start = bench.files();
    assert_eq!(confirm(&site).unwrap(), Confirmed::NothingInForce);
    bench.apply(&site, within()).unwrap();
    let calls = bench.calls();
    assert_eq!(calls.iter().position(|call| call == "start lowlat-confirm.timer"), Some(2), "{calls:?}");
    let Reading::Known(facts) = status(&site).unwrap().in_force else { panic!("nothing in force") };
    assert!(matches!(facts.confirmation, Confirmation::Waiting { within_s: 600, left_s: Some(_) }));

    // Before the reboot it is only disarmed, because it must guard the boot with the new line.
    assert_eq!(confirm(&site).unwrap(), Confirmed::UntilReboot);
    assert!(bench.files().contains_key("etc/systemd/system/lowlat-confirm.timer"));
    // If the switch fired before the confirmation, its rollback finds it disarmed and leaves it for the next boot.
    let resting = bench.files();
    assert!(rollback_unconfirmed(&site).unwrap().is_none());
    assert_eq!(differences(&resting, &bench.files()), Vec::<String>::new());
    bench.reboot(&start);
    apply_again(&site).unwrap();
    bench.calls();
    assert_eq!(confirm(&site).unwrap(), Confirmed::Now);
    assert_eq!(bench.calls(), ["stop lowlat-confirm.timer", "daemon-reload"]);
    assert_eq!(confirm(&site).unwrap(), Confirmed::Already);
    assert!(!bench.files().keys().any(|path| path.contains("lowlat-confirm")));
    // If the timer fires after the confirmation, nothing happens.
    let confirmed = bench.files();
    assert!(rollback_unconfirmed(&site).unwrap().is_none());
    assert_eq!(differences(&confirmed, &bench.files()), Vec::<String>::new());
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
    assert!(!differences(&start, &bench.files()).iter().any(|line| ours(line)));
}

#[test]
fn without_a_confirmation_all_is_taken_back_and_the_host_started_again_if_it_runs_the_line() {
    if !is_root() {
        return;
    }
    for reboots in 0..3 {
        let (bench, site, start) = Bench::applied(within());
        for _ in 0..reboots {
            bench.reboot(&start);
            apply_again(&site).unwrap();
        }
        bench.calls();
        let report = rollback_unconfirmed(&site).unwrap().unwrap();
        assert!(report.is_complete(), "{report:#?}");
        assert_eq!(report.needs_reboot, reboots > 0);
        // At the reload, a timer whose service is gone fails.
        let calls = bench.calls();
        let at = |call: &str| calls.iter().position(|made| made == call).unwrap();
        assert!(at("stop lowlat-confirm.timer") < at("daemon-reload"), "{calls:?}");
        assert!(
            !differences(&start, &bench.files()).iter().any(|line| ours(line)),
            "{:#?}",
            differences(&start, &bench.files())
        );
        assert!(rollback_unconfirmed(&site).unwrap().is_none());
    }
}

#[test]
fn a_rollback_of_the_switch_that_is_cut_off_goes_on_in_the_next_boot() {
    if !is_root() {
        return;
    }
    let (mut cut, mut at) = (0, 0);
    loop {
        let (bench, site, start) = Bench::applied(within());
        bench.reboot(&start);
        let faults = Faults::crash_at(at);
        let crashed = rollback_unconfirmed(&bench.site(faults.clone()));
        let is_over = faults.count() <= at;
        cut +=
            u32::from(crashed.is_err() || crashed.is_ok_and(|done| !done.is_some_and(|r| r.is_complete())));
        bench.reboot(&start);
        let files = bench.files();
        let is_begun = site.state.in_force().unwrap().is_none();
        // As long as a plan can be rolled back, the timer is started at boot.
        let is_armed = files.contains_key("etc/systemd/system/timers.target.wants/lowlat-confirm.timer");
        assert!(is_armed || is_begun, "operation {at}");
        rollback_unconfirmed(&site).unwrap();
        let left = differences(&start, &bench.files());
        assert!(!left.iter().any(|line| ours(line)), "operation {at}: {left:#?}");
        if is_over {
            break;
        }
        // A prime stride: other tests of the log visit each operation.
        at += 7;
    }
    assert!(cut > 3, "{cut}");
}

#[test]
fn what_an_unconfirmed_plan_was_laid_over_is_what_is_gone_back_to() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new();
    let site = bench.site(Faults::none());
    let first = bench.apply(&site, ApplyOptions::default()).unwrap().plan_id;
    let with_first = bench.files();
    for change in &mut bench.plan.changes {
        if matches!(change.target, lowlat_settings::change::Target::Sysctl { .. }) {
            change.after = "9".into();
        }
    }
    bench.apply(&site, within()).unwrap();
    let report = rollback_unconfirmed(&site).unwrap().unwrap();
    assert_eq!(report.in_force.as_deref(), Some(first.as_str()));
    assert_eq!(differences(&with_first, &bench.files()), Vec::<String>::new());
    assert_eq!(confirm(&site).unwrap(), Confirmed::Already);
}

#[test]
fn a_line_that_the_kernel_never_had_is_taken_back_without_a_restart() {
    if !is_root() {
        return;
    }
    for reboots_again in [false, true] {
        let mut bench = Bench::new();
        let site = bench.site(Faults::none());
        let start = bench.files();
        let first = bench.apply(&site, within()).unwrap().plan_id;
        bench.reboot(&start);
        apply_again(&site).unwrap();
        assert_eq!(confirm(&site).unwrap(), Confirmed::Now);
        let entry = bench.text(GRUB_CFG);
        with_another_line(&mut bench);
        bench.apply(&site, within()).unwrap();
        assert_ne!(bench.text(GRUB_CFG), entry);
        if reboots_again {
            bench.reboot(&start);
            apply_again(&site).unwrap();
        }
        let report = rollback_unconfirmed(&site).unwrap().unwrap();
        assert!(report.is_complete(), "{report:#?}");
        assert_eq!(report.in_force.as_deref(), Some(first.as_str()));
        assert_eq!(bench.text(GRUB_CFG), entry);
        assert_eq!(report.needs_reboot, reboots_again);
    }
}

#[test]
fn a_boot_file_that_others_have_changed_keeps_the_switch_armed() {
    if !is_root() {
        return;
    }
    let (mut bench, site, start) = Bench::applied(ApplyOptions::default());
    bench.reboot(&start);
    with_another_line(&mut bench);
    let drop_in = "etc/default/grub.d/99-lowlat.cfg";
    let second = bench.apply(&site, within()).unwrap().plan_id;
    bench.reboot(&start);
    bench.put(drop_in, "mine");
    for is_first in [true, false] {
        let report = rollback_unconfirmed(&site).unwrap().unwrap();
        let names: Vec<&str> = report.conflicts.iter().map(|conflict| conflict.name.as_str()).collect();
        assert_eq!(names, ["/etc/default/grub.d/99-lowlat.cfg"]);
        assert!(report.notes.iter().any(|note| note.contains("--force-path \"/etc/default/grub.d/")));
        assert_eq!(report.in_force.as_deref(), Some(second.as_str()));
        assert!(!site.state.in_force().unwrap().unwrap().0.is_complete);
        assert!(bench.files().contains_key("etc/systemd/system/timers.target.wants/lowlat-confirm.timer"));
        assert_eq!(bench.text(drop_in), "mine");
        // The reboot is requested once, for the restored changes, and not repeatedly.
        assert_eq!(report.needs_reboot, is_first);
        bench.reboot(&start);
    }
    let forced = vec![format!("/{drop_in}")];
    let report = rollback(&site, &RollbackRequest { forced, ..RollbackRequest::default() }).unwrap();
    assert!(report.is_complete() && report.notes.is_empty(), "{report:#?}");
    assert!(site.state.in_force().unwrap().is_none());
    let left = differences(&start, &bench.files());
    assert!(!left.iter().any(|line| ours(line)), "{left:#?}");
}

#[test]
fn a_plan_over_one_that_waits_for_its_confirmation_waits_too_and_goes_with_it() {
    if !is_root() {
        return;
    }
    for is_interrupted in [false, true] {
        let (mut bench, site, start) = Bench::applied(within());
        with_another_line(&mut bench);
        if is_interrupted {
            // The process is killed at the last moment before the switch is armed.
            bench.manager.dies.store(true, Ordering::Relaxed);
            let killed = catch_unwind(AssertUnwindSafe(|| bench.apply(&site, ApplyOptions::default())));
            assert!(killed.is_err());
            bench.manager.dies.store(false, Ordering::Relaxed);
            let (now, _) = site.state.in_force().unwrap().unwrap();
            assert!(!now.is_complete && now.confirm_within_s == Some(600), "{now:?}");
            bench.manager.active.lock().unwrap().clear();
        }
        bench.calls();
        let outcome = bench.apply(&site, ApplyOptions::default()).unwrap();
        assert_eq!(outcome.confirm_within_s, Some(600));
        assert!(outcome.notes.iter().any(|note| note.contains("needs confirmation too")), "{outcome:#?}");
        assert!(bench.calls().contains(&"start lowlat-confirm.timer".to_owned()));
        let Reading::Known(facts) = status(&site).unwrap().in_force else { panic!("nothing in force") };
        assert!(matches!(facts.confirmation, Confirmation::Waiting { within_s: 600, left_s: Some(_) }));
        // Applying the same plan again leaves the switch unchanged.
        assert_eq!(bench.apply(&site, ApplyOptions::default()).unwrap().confirm_within_s, None);
        assert!(!bench.calls().contains(&"start lowlat-confirm.timer".to_owned()));

        let report = rollback_unconfirmed(&site).unwrap().unwrap();
        assert!(report.is_complete() && report.in_force.is_none(), "{report:#?}");
        let left = differences(&start, &bench.files());
        assert!(!left.iter().any(|line| ours(line)), "{left:#?}");
    }
}

#[test]
fn a_confirmation_is_one_of_the_plans_below_as_well() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new();
    let site = bench.site(Faults::none());
    let start = bench.files();
    let first = bench.apply(&site, within()).unwrap().plan_id;
    with_another_line(&mut bench);
    let longer = ApplyOptions { confirm_within: Some(Duration::from_secs(900)), ..ApplyOptions::default() };
    let second = bench.apply(&site, longer).unwrap().plan_id;
    assert!(bench.text("etc/systemd/system/lowlat-confirm.timer").contains("OnActiveSec=900s"));
    bench.reboot(&start);
    apply_again(&site).unwrap();
    assert_eq!(confirm(&site).unwrap(), Confirmed::Now);
    assert!(!bench.files().keys().any(|path| path.contains("lowlat-confirm")));
    assert!(rollback_unconfirmed(&site).unwrap().is_none());
    assert_eq!(site.state.in_force().unwrap().unwrap().0.plan_id, second);

    let back = RollbackRequest { scope: RollbackScope::To(first.clone()), ..RollbackRequest::default() };
    assert!(rollback(&site, &back).unwrap().is_complete());
    let (now, _) = site.state.in_force().unwrap().unwrap();
    assert_eq!((now.plan_id, now.confirm_within_s), (first, None));
}

#[test]
fn an_apply_that_fails_leaves_the_switch_of_the_plan_below_armed() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new();
    let site = bench.site(Faults::none());
    let first = bench.apply(&site, within()).unwrap().plan_id;
    with_another_line(&mut bench);
    let mut failing = bench.site(Faults::none());
    failing.prepare = |_, _, _, _| Err(UndoError::Refused("cannot find plan x".into()));
    bench.calls();
    let error = bench.apply(&failing, ApplyOptions::default()).unwrap_err().to_string();
    assert!(error.contains("all changes were rolled back"), "{error}");
    let (now, _) = site.state.in_force().unwrap().unwrap();
    assert_eq!((now.plan_id, now.confirm_within_s), (first, Some(600)));
    let calls = bench.calls();
    let last = calls.iter().rfind(|call| call.ends_with("lowlat-confirm.timer"));
    assert_eq!(last.map(String::as_str), Some("start lowlat-confirm.timer"), "{calls:?}");
}

#[test]
fn what_the_switch_takes_back_during_the_question_is_not_built_on() {
    if !is_root() {
        return;
    }
    let (mut bench, site, _) = Bench::applied(within());
    with_another_line(&mut bench);
    let ready = bench.ready(&site, ApplyOptions::default()).unwrap();
    rollback_unconfirmed(&site).unwrap();
    let taken_back = bench.files();
    let error = ready.carry_out(&site, &bench.host, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("nothing was changed") && error.contains("run it again"), "{error}");
    assert!(site.state.in_force().unwrap().is_none());
    assert_eq!(differences(&taken_back, &bench.files()), Vec::<String>::new());
    bench.apply(&site, ApplyOptions::default()).unwrap();
}

#[test]
fn a_switch_at_rest_is_armed_by_the_reboot_and_by_the_next_plan() {
    if !is_root() {
        return;
    }
    for is_reboot in [true, false] {
        let (mut bench, site, start) = Bench::applied(within());
        assert_eq!(confirm(&site).unwrap(), Confirmed::UntilReboot);
        assert!(rollback_unconfirmed(&site).unwrap().is_none());
        if is_reboot {
            bench.reboot(&start);
        } else {
            with_another_line(&mut bench);
            bench.apply(&site, within()).unwrap();
        }
        let report = rollback_unconfirmed(&site).unwrap().unwrap();
        assert!(report.is_complete() && report.in_force.is_none(), "{report:#?}");
    }
}

/// Runs `act` while the log is held, so that it waits. `meanwhile` runs before the log is released.
fn while_the_log_is_held<T: Send>(
    bench: &Bench,
    act: impl Fn(&Site) -> T + Send,
    meanwhile: impl FnOnce(&Site),
) -> T {
    let site = bench.site(Faults::none());
    let held =
        UndoLog::open(site.state.make_undo_log().unwrap(), Writer::below(&bench.tree()).unwrap(), |_| true)
            .unwrap();
    let (tree, state, manager) = (bench.tree(), bench.state(), bench.manager.clone());
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let mut site = super::bench::site(&tree, &state, manager, Faults::none());
            site.log_wait = Duration::from_secs(60);
            act(&site)
        });
        // Long enough for `act` to read what it reads before it waits.
        thread::sleep(Duration::from_millis(500));
        assert!(!waiting.is_finished());
        meanwhile(&site);
        drop(held);
        waiting.join().unwrap()
    })
}

#[test]
fn what_is_decided_while_the_log_is_held_by_another_counts() {
    if !is_root() {
        return;
    }
    let (bench, site, start) = Bench::applied(within());
    bench.reboot(&start);
    apply_again(&site).unwrap();

    // The timer fires while a confirmation holds the log.
    let confirmed = |site: &Site| {
        let (now, plan) = site.state.in_force().unwrap().unwrap();
        site.state.put_in_force(&InForce { confirm_within_s: None, ..now }, &plan).unwrap();
    };
    let in_force = site.state.in_force().unwrap().unwrap();
    let switch = |line: &String| line.contains("lowlat-confirm") || line.contains("timers.target.wants/:");
    let applied = bench.files();
    assert!(while_the_log_is_held(&bench, |site| rollback_unconfirmed(site).unwrap(), confirmed).is_none());
    let changed = differences(&applied, &bench.files());
    assert!(changed.iter().all(switch), "{changed:#?}");

    // The reverse, and the service of the next boot: a rollback holds the log.
    let taken_back = |site: &Site| site.state.take_out_of_force().unwrap();
    site.state.put_in_force(&in_force.0, &in_force.1).unwrap();
    let told = while_the_log_is_held(&bench, |site| confirm(site).unwrap(), taken_back);
    assert_eq!((told, site.state.in_force().unwrap()), (Confirmed::NothingInForce, None));
    site.state.put_in_force(&in_force.0, &in_force.1).unwrap();
    let again = while_the_log_is_held(&bench, |site| apply_again(site).unwrap(), taken_back);
    assert_eq!(again, Again::default());

    // A plan that replaced the present one is not confirmed.
    site.state.put_in_force(&in_force.0, &in_force.1).unwrap();
    let other = |site: &Site| {
        let (mut now, mut plan) = site.state.in_force().unwrap().unwrap();
        plan.changes.truncate(1);
        now.plan_id = plan.id();
        site.state.put_in_force(&now, &plan).unwrap();
    };
    let told = while_the_log_is_held(&bench, |site| confirm(site).unwrap_err().to_string(), other);
    assert!(told.contains("was replaced by plan"), "{told}");
    assert!(site.state.in_force().unwrap().unwrap().0.confirm_within_s.is_some());
}
