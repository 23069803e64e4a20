//! Applies, applies again, boots again and rolls back.

use super::super::*;
use super::bench::{Bench, GRUB_CFG, differences, is_root};
use lowlat_host::Reading;
use lowlat_plan::outcome::{Confirmation, Fate, RebootStatus};
use lowlat_undo::Faults;

#[test]
fn a_plan_goes_all_the_way_and_back() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let site = bench.site(Faults::none());
    let start = bench.files();
    let outcome = bench.apply(&site, ApplyOptions::default()).unwrap();
    assert!(outcome.changes.iter().all(|change| change.fate == Fate::Done), "{outcome:#?}");
    assert!(outcome.is_changed && outcome.needs_reboot);
    assert_eq!(outcome.boot_loader.as_deref(), Some("GRUB (test)"));
    assert_ne!(bench.files(), start);
    assert!(bench.text("boot/grub/grub.cfg").contains("nohz_full="));
    assert_eq!(bench.calls(), ["daemon-reload", "restart irqbalance.service", "start lowlat.service"]);

    let status = status(&site).unwrap();
    let Reading::Known(in_force) = &status.in_force else { panic!("{status:#?}") };
    assert!(in_force.is_complete && in_force.is_of_this_boot);
    assert_eq!(in_force.confirmation, Confirmation::NotNeeded);
    assert_eq!(status.reboot, RebootStatus::Pending);
    assert!(status.units.iter().any(|unit| unit.name == "lowlat.service" && unit.is_enabled));

    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(report.is_complete() && report.given_up.is_empty(), "{report:#?}");
    assert!(!report.needs_reboot, "the line was never in effect");
    assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
    assert!(site.state.in_force().unwrap().is_none());
    assert_eq!(bench.calls(), ["daemon-reload", "restart irqbalance.service", "stop lowlat.service"]);
    let again = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(again.restored.is_empty() && again.is_complete());
}

#[test]
fn applying_twice_changes_nothing() {
    if !is_root() {
        return;
    }
    let (bench, site, _) = Bench::applied(ApplyOptions::default());
    let applied = bench.files();
    let id = site.state.in_force().unwrap().unwrap().0.plan_id;
    // The second plan requests only what is still missing: the command line, until the reboot.
    let mut second = bench.plan.clone();
    second.changes.retain(|change| change.layer == "boot");
    assert!(!second.changes.is_empty());
    for wanted in [bench.plan.clone(), second] {
        let ready = Ready::new(&site, &bench.host, wanted, PlanFrom::Host, ApplyOptions::default()).unwrap();
        assert!(ready.is_in_force());
        let outcome = ready.carry_out(&site, &bench.host, &mut |_| ()).unwrap();
        assert!(!outcome.is_changed && outcome.plan_id == id, "{outcome:#?}");
        assert_eq!(differences(&applied, &bench.files()), Vec::<String>::new());
    }
}

#[test]
fn the_next_boot_applies_the_run_time_part_again() {
    if !is_root() {
        return;
    }
    let (bench, site, start) = Bench::applied(ApplyOptions::default());
    let applied = bench.files();
    bench.reboot(&start);
    for _ in 0..2 {
        let again = apply_again(&site).unwrap();
        assert!(again.refused.is_empty(), "{again:?}");
    }
    let ours = |line: &String| !line.starts_with("proc/cmdline") && !line.contains("boot_id");
    assert!(!differences(&applied, &bench.files()).iter().any(ours));
    let reboot = |site| status(site).unwrap().reboot;
    assert_eq!(reboot(&site), RebootStatus::Done, "{}", bench.text("proc/cmdline"));

    // Stopping the service rolls back the run-time part, and nothing else.
    let stop = RollbackRequest { scope: RollbackScope::RunTime, ..RollbackRequest::default() };
    let report = rollback(&site, &stop).unwrap();
    assert!(report.is_complete() && !report.restored.is_empty());
    assert!(site.state.in_force().unwrap().is_some());
    let values = |line: &String| line.starts_with("proc/sys/vm") || line.starts_with("sys/");
    assert!(!differences(&start, &bench.files()).iter().any(values));
    apply_again(&site).unwrap();

    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(report.is_complete() && report.needs_reboot, "{report:#?}");
    assert!(
        !differences(&start, &bench.files()).iter().any(ours),
        "{:#?}",
        differences(&start, &bench.files())
    );
    assert_eq!(reboot(&site), RebootStatus::PendingRollback);
    bench.reboot(&bench.files());
    assert_eq!(reboot(&bench.site(Faults::none())), RebootStatus::NotNeeded);
}

/// Without a command line no reboot is needed, and systemd-sysctl has set lowlat's values again. All of them are rolled
/// back, whether the service ran at boot, was stopped, or never ran.
#[test]
fn values_that_a_file_set_at_boot_are_taken_back() {
    if !is_root() {
        return;
    }
    for service in ["off", "on", "stopped in an earlier boot"] {
        let mut bench = Bench::new();
        bench.plan.changes.retain(|change| change.target.kind().facts().part != crate::steps::Part::Boot);
        let (site, start) = (bench.site(Faults::none()), bench.files());
        bench.apply(&site, ApplyOptions::default()).unwrap();
        let applied = bench.files();
        for _ in 0..2 {
            bench.reboot(&start);
            if service != "off" {
                assert!(apply_again(&site).unwrap().refused.is_empty());
            }
            if service.starts_with("stopped") {
                let stop = RollbackRequest { scope: RollbackScope::RunTime, ..RollbackRequest::default() };
                let report = rollback(&site, &stop).unwrap();
                assert!(report.is_complete() && !report.restored.is_empty(), "{report:#?}");
            }
        }
        if service.starts_with("stopped") {
            bench.reboot(&start);
        }
        let of_kernel = |line: &&String| line.starts_with("proc/sys/") && !line.contains("boot_id");
        let tuned = differences(&start, &applied).iter().filter(of_kernel).count();
        let left = differences(&start, &bench.files());
        assert!(
            left.iter().any(|line| of_kernel(&line)),
            "{service}: the drop-in set {tuned} values\n{left:#?}"
        );
        let report = rollback(&site, &RollbackRequest::default()).unwrap();
        assert!(report.is_complete() && report.in_force.is_none(), "{service}: {report:#?}");
        let left = differences(&start, &bench.files());
        assert!(!left.iter().any(|line| !line.contains("boot_id")), "{service}: {left:#?}");
    }
}

#[test]
fn only_the_run_time_part_leaves_nothing_for_the_next_boot() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let site = bench.site(Faults::none());
    let start = bench.files();
    let options = ApplyOptions { only_run_time: true, ..ApplyOptions::default() };
    let outcome = bench.apply(&site, options).unwrap();
    assert!(!outcome.needs_reboot && outcome.units.is_empty());
    let lines = differences(&start, &bench.files());
    assert!(!lines.is_empty());
    assert!(!lines.iter().any(|line| line.starts_with("etc/") || line.starts_with("boot/")), "{lines:#?}");
}

#[test]
fn a_preview_says_what_a_rollback_does() {
    if !is_root() {
        return;
    }
    let (bench, site, _) = Bench::applied(ApplyOptions::default());
    let applied = bench.files();
    let preview = RollbackRequest { is_preview: true, ..RollbackRequest::default() };
    let preview = rollback(&site, &preview).unwrap();
    assert_eq!(differences(&applied, &bench.files()), Vec::<String>::new());
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    assert_eq!(preview.restored, report.restored);
    assert!(preview.is_preview && !report.is_preview);
}

#[test]
fn a_tree_without_a_running_host_takes_files_and_values() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let mut site = bench.site(Faults::none());
    (site.manager, site.programs, site.targets) = (None, None, Vec::new);
    let start = bench.files();
    let outcome = bench.apply(&site, ApplyOptions::default()).unwrap();
    let refused: Vec<_> = outcome.changes.iter().filter(|change| change.fate == Fate::Refused).collect();
    assert!(!refused.is_empty() && outcome.count(Fate::Done) > 0);
    assert!(refused.iter().all(|change| change.reasons.iter().any(|why| why.contains("running host"))));
    // The boot loader's sources are written, but its menu is not, so a reboot would not apply them.
    let generator = "run `grub-mkconfig -o /boot/grub/grub.cfg` inside the tree";
    assert!(refused.iter().any(|change| change.reasons.iter().any(|why| why.contains(generator))));
    assert!(!outcome.needs_reboot);
    let shown = status(&site).unwrap();
    assert_eq!(shown.reboot, RebootStatus::Refused);
    assert!(shown.in_force.known().unwrap().refused.iter().any(|refusal| refusal.reason.contains(generator)));
    let menu = bench.text(GRUB_CFG);
    let words = bench.text("etc/default/grub.d/99-lowlat.cfg") + " ";
    bench.put(GRUB_CFG, &format!("menuentry linux {}\n", words.replace("= ", " ")));
    assert_eq!(status(&site).unwrap().reboot, RebootStatus::Pending, "its menu was generated since");
    bench.put(GRUB_CFG, &menu);
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
    let differing = differences(&start, &bench.files());
    assert!(differing.iter().all(|line| line.starts_with(GRUB_CFG)), "{differing:?}");
}
