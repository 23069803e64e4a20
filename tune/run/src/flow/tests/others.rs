//! Changes by other programs and people.

use super::super::*;
use super::bench::{Bench, GRUB_CFG, differences, is_root};
use lowlat_plan::outcome::StateText;
use lowlat_undo::Faults;

#[test]
fn an_edited_file_is_shown_with_three_states_and_left_until_it_is_forced() {
    if !is_root() {
        return;
    }
    let (bench, site, start) = Bench::applied(ApplyOptions::default());
    let unit = "etc/systemd/system/lowlat.service";
    let edited = bench.text(unit) + "# mine\n";
    bench.put(unit, &edited);
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(!report.is_complete());
    let [conflict] = report.conflicts.as_slice() else { panic!("{report:#?}") };
    assert_eq!(
        (conflict.name.as_str(), &conflict.before),
        ("/etc/systemd/system/lowlat.service", &StateText::Absent)
    );
    assert!(matches!(&conflict.now, StateText::File { text, .. } if text.ends_with("# mine\n")));
    assert_eq!(bench.text(unit), edited);
    assert!(site.state.in_force().unwrap().is_none());

    let forced = |path: &str| RollbackRequest { forced: vec![path.into()], ..RollbackRequest::default() };
    let error = rollback(&site, &forced("/etc/other")).unwrap_err().to_string();
    assert!(error.contains("no change in force affects that path"), "{error}");
    assert_eq!(bench.text(unit), edited);
    assert!(rollback(&site, &forced(&format!("/{unit}"))).unwrap().is_complete());
    assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
}

/// The original of an edited file survives a second apply, which restores lowlat's content and reports it.
#[test]
fn an_edit_that_a_second_apply_went_over_is_kept_and_told() {
    if !is_root() {
        return;
    }
    let (bench, site, start) = Bench::applied(ApplyOptions::default());
    let applied = bench.files();
    let drop_in = bench.plan.changes.iter().find_map(|change| match &change.target {
        lowlat_settings::change::Target::OwnedFile { path } => Some(path.clone()),
        _ => None,
    });
    let paths = [drop_in.unwrap(), "/etc/systemd/system/lowlat.service".to_owned()];
    // Twice, because the second edit replaces the first one.
    for edit in ["# mine\n", "# mine too\n"] {
        for path in &paths {
            bench.put(&path[1..], &(bench.text(&path[1..]) + edit));
        }
        let outcome = bench.apply(&site, ApplyOptions::default()).unwrap();
        let is_told = |path: &String| outcome.notes.iter().any(|note| note.starts_with(path.as_str()));
        assert!(paths.iter().all(is_told), "{:?}", outcome.notes);
        // For existing files, only the times differ.
        let is_elsewhere = |line: &String| !line.starts_with("etc/");
        assert!(!differences(&applied, &bench.files()).iter().any(is_elsewhere));
        assert!(paths.iter().all(|path| !bench.text(&path[1..]).contains("mine")));
        assert!(bench.apply(&site, ApplyOptions::default()).unwrap().notes.is_empty());
    }
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(!report.is_complete());
    let mut told: Vec<&str> = report.conflicts.iter().map(|conflict| conflict.name.as_str()).collect();
    told.sort_unstable();
    assert_eq!(told, [paths[0].as_str(), paths[1].as_str()]);
    for conflict in &report.conflicts {
        assert_eq!(conflict.before, StateText::Absent);
        assert!(matches!(&conflict.now, StateText::File { text, .. } if text.ends_with("# mine too\n")));
    }
    let forced = RollbackRequest { forced: paths.to_vec(), ..RollbackRequest::default() };
    assert!(rollback(&site, &forced).unwrap().is_complete());
    assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
}

#[test]
fn edits_that_applies_went_over_are_taken_back_on_demand_at_once() {
    if !is_root() {
        return;
    }
    let (bench, site, start) = Bench::applied(ApplyOptions::default());
    let unit = "etc/systemd/system/lowlat.service";
    bench.put(unit, &(bench.text(unit) + "# mine\n"));
    bench.apply(&site, ApplyOptions::default()).unwrap();
    bench.put(unit, &(bench.text(unit) + "# last\n"));
    let forced = RollbackRequest { forced: vec![format!("/{unit}")], ..RollbackRequest::default() };
    let report = rollback(&site, &forced).unwrap();
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
}

/// The path of a sysctl that the plan changes.
fn sysctl_of(bench: &Bench) -> String {
    let changes = bench.plan.changes.iter().filter(|change| change.before.text().trim() != change.after);
    let key = changes.filter_map(|change| match &change.target {
        lowlat_settings::change::Target::Sysctl { key } => Some(key.as_str()),
        _ => None,
    });
    let path = key.map(lowlat_host::snapshot::sysctl_path).next().unwrap();
    path[1..].to_owned()
}

/// A rollback restores the value from before the first apply, even if it changed between two applies.
#[test]
fn a_value_that_a_second_apply_went_over_goes_back_to_the_first() {
    if !is_root() {
        return;
    }
    let (bench, site, start) = Bench::applied(ApplyOptions::default());
    let applied = bench.files();
    let value = sysctl_of(&bench);
    bench.put(&value, "33\n");
    bench.apply(&site, ApplyOptions::default()).unwrap();
    assert_eq!(bench.text(&value).trim(), applied.get(&value).unwrap().trim());
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
}

/// In a later boot lowlat finds TuneD's value, before its own rounds or between them. That value is restored.
#[test]
fn a_value_that_others_set_by_rule_at_boot_is_what_a_rollback_leaves() {
    if !is_root() {
        return;
    }
    let (bench, site, start) = Bench::applied(ApplyOptions::default());
    let value = sysctl_of(&bench);
    bench.reboot(&start);
    apply_again(&site).unwrap();
    let stop = RollbackRequest { scope: RollbackScope::RunTime, ..RollbackRequest::default() };
    assert!(rollback(&site, &stop).unwrap().is_complete());
    assert_eq!(bench.text(&value), start[&value], "what the boot found");
    apply_again(&site).unwrap();
    bench.put(&value, "33\n");
    apply_again(&site).unwrap();
    assert_ne!(bench.text(&value).trim(), "33");
    assert!(rollback(&site, &stop).unwrap().is_complete());
    assert_eq!(bench.text(&value).trim(), "33", "TuneD's");
}

/// A value that another program set since the reboot stays, and the rollback reports it.
#[test]
fn a_value_that_others_have_set_since_a_reboot_is_reported() {
    if !is_root() {
        return;
    }
    let (bench, site, start) = Bench::applied(ApplyOptions::default());
    let value = sysctl_of(&bench);
    bench.reboot(&start);
    bench.put(&value, "33\n");
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    let of_path = report.given_up.iter().find(|given| given.name == format!("/{value}"));
    let reason = of_path.map(|given| given.reason.as_str()).unwrap_or_default();
    assert!(reason.ends_with("something else has set \"33\" since the reboot"), "{report:#?}");
    assert_eq!(bench.text(&value), "33\n");
}

/// A copy of the disk has another machine ID. Its boots apply nothing until the plan is adopted or rolled back.
#[test]
fn a_plan_that_came_with_a_copy_of_the_disk_is_not_applied() {
    if !is_root() {
        return;
    }
    for is_kept in [true, false] {
        let mut bench = Bench::new();
        bench.put("etc/machine-id", "11111111111111111111111111111111\n");
        let site = bench.site(Faults::none());
        bench.plan.host.machine_id_digest = lowlat_host_run::snapshot::machine_id_digest(&site.root);
        let start = bench.files();
        bench.apply(&site, ApplyOptions::default()).unwrap();
        let state = |site: &Site| status(site).unwrap().in_force.into_known().unwrap();
        assert!(!state(&site).is_of_other_host);
        assert_eq!(adopt(&site).unwrap(), Adopted::Already);

        bench.reboot(&start);
        bench.put("etc/machine-id", "22222222222222222222222222222222\n");
        let booted = bench.files();
        let why = apply_again(&site).unwrap_err().to_string();
        assert!(why.contains("`lowlat tune adopt`") && why.contains("another host"), "{why}");
        assert!(state(&site).is_of_other_host);
        assert_eq!(differences(&booted, &bench.files()), Vec::<String>::new());
        if is_kept {
            assert_eq!(adopt(&site).unwrap(), Adopted::Now);
            assert!(!state(&site).is_of_other_host);
            assert!(!apply_again(&site).unwrap().done.is_empty());
        }
        let report = rollback(&site, &RollbackRequest::default()).unwrap();
        assert!(report.is_complete(), "{report:#?}");
        assert_eq!(adopt(&site).unwrap(), Adopted::NothingInForce);
        let mut start = start;
        start.insert("etc/machine-id".into(), bench.files()["etc/machine-id"].clone());
        let of_host = |line: &String| !line.contains("boot_id") && !line.starts_with("proc/cmdline");
        let left = differences(&start, &bench.files());
        assert!(!left.iter().any(of_host), "{left:#?}");
    }
}

/// A disk that moved to another machine keeps its ID. A plan that verify attributes to another host can be adopted.
#[test]
fn a_plan_that_came_with_the_disk_of_another_model_can_be_adopted() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new();
    bench.put("sys/class/dmi/id/sys_vendor", "Maker\n");
    bench.put("sys/class/dmi/id/product_name", "Model 2\n");
    let site = bench.site(Faults::none());
    let marks = |site: &Site| lowlat_plan::HostMark::of(&site.snapshot());
    bench.plan.host = marks(&site);
    bench.plan.host.system = lowlat_host::Reading::Known("Maker Model 1".into());
    bench.apply(&site, ApplyOptions::default()).unwrap();
    assert!(site.state.in_force().unwrap().unwrap().1.host.is_other_machine(&marks(&site)));
    assert_eq!(adopt(&site).unwrap(), Adopted::Now);
    assert!(!site.state.in_force().unwrap().unwrap().1.host.is_other_machine(&marks(&site)));
    assert_eq!(adopt(&site).unwrap(), Adopted::Already);
}

#[test]
fn a_boot_menu_that_a_kernel_update_has_rewritten_is_generated_again() {
    if !is_root() {
        return;
    }
    let (bench, site, _) = Bench::applied(ApplyOptions::default());
    // The package of a new kernel has run the generator.
    bench.put("boot/kernels", "linux-new linux");
    let line = bench.text("etc/default/grub.d/99-lowlat.cfg");
    bench.put(GRUB_CFG, &format!("menuentry linux-new linux {line}\n"));
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(report.is_complete() && report.conflicts.is_empty(), "{report:#?}");
    assert_eq!(report.given_up.len(), 1);
    assert_eq!(bench.text(GRUB_CFG).trim_end(), "menuentry linux-new linux");
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().restored.is_empty());
}

#[test]
fn applying_again_after_a_kernel_update_follows_the_new_boot_menu() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let site = bench.site(Faults::none());
    let start = bench.files();
    let first = bench.apply(&site, ApplyOptions::default()).unwrap().plan_id;
    bench.put("boot/kernels", "linux-new linux");
    // Its package has lost the parameters.
    bench.put(GRUB_CFG, "menuentry linux-new linux\n");
    assert_eq!(bench.apply(&site, ApplyOptions::default()).unwrap().plan_id, first);
    let menu = bench.text(GRUB_CFG);
    assert!(menu.starts_with("menuentry linux-new linux") && menu.contains("nohz_full="), "{menu}");
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(bench.text(GRUB_CFG).trim_end(), "menuentry linux-new linux");
    let left = differences(&start, &bench.files());
    assert!(left.iter().all(|line| line.starts_with("boot/")), "{left:#?}");
}

#[test]
fn values_that_are_gone_or_moved_on_by_irqbalance_are_no_conflicts() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new();
    bench.plan = bench.whole_plan();
    bench
        .plan
        .changes
        .retain(|change| matches!(change.target, lowlat_settings::change::Target::IrqAffinity { .. }));
    assert!(bench.plan.changes.len() >= 3);
    let site = bench.site(Faults::none());
    bench.apply(&site, ApplyOptions::default()).unwrap();
    let irqs: Vec<u32> = bench
        .plan
        .changes
        .iter()
        .filter_map(|change| match &change.target {
            lowlat_settings::change::Target::IrqAffinity { irq, .. } => Some(*irq),
            _ => None,
        })
        .collect();
    let path = |irq: u32| format!("proc/irq/{irq}/smp_affinity_list");
    std::fs::remove_file(bench.tree().join(path(irqs[0]))).unwrap();
    bench.put(&path(irqs[1]), "5\n");
    bench.manager.active.lock().unwrap().insert("irqbalance.service".into(), 1);
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(report.given_up.len(), 2, "{report:#?}");
    assert_eq!(bench.text(&path(irqs[1])), "5\n");
}

#[test]
fn an_entry_of_a_kernel_that_came_later_keeps_the_parameters_and_is_told() {
    if !is_root() {
        return;
    }
    let (bench, site, _) = Bench::applied(ApplyOptions::default());
    let (_, plan) = site.state.in_force().unwrap().unwrap();
    let brought = plan.changes.iter().find_map(|change| match &change.target {
        lowlat_settings::change::Target::CommandLine { tokens } => tokens.iter().find_map(lowlat_plan::spell),
        _ => None,
    });
    let brought = brought.unwrap();
    bench.put("boot/loader/entries/later.conf", &format!("root=/dev/sda1 ro {brought} mine=1\n"));
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    let note = report.notes.iter().find(|note| note.starts_with("/boot/loader/entries/later.conf"));
    let note = note.unwrap_or_else(|| panic!("{report:#?}"));
    assert!(note.contains(&format!("Remove {brought} with")) && !note.contains("mine=1"), "{note}");
    // Without any of them there is nothing to report.
    bench.apply(&site, ApplyOptions::default()).unwrap();
    bench.put("boot/loader/entries/later.conf", "root=/dev/sda1 ro mine=1\n");
    assert_eq!(rollback(&site, &RollbackRequest::default()).unwrap().notes, Vec::<String>::new());
}
