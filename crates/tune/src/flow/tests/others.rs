//! Other people's edits.

use super::super::*;
use super::bench::{Bench, GRUB_CFG, differences, is_root};
use lowlat_model::tune::outcome::StateText;
use lowlat_sys::undo::Faults;

#[test]
fn an_edited_file_is_shown_with_three_states_and_left_until_it_is_forced() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let site = bench.site(Faults::none());
    let start = bench.files();
    bench.apply(&site, ApplyOptions::default()).unwrap();
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
    assert!(error.contains("no step in force is on that path"), "{error}");
    assert_eq!(bench.text(unit), edited);
    assert!(rollback(&site, &forced(&format!("/{unit}"))).unwrap().is_complete());
    assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
}

#[test]
fn a_boot_menu_that_a_kernel_update_has_rewritten_is_generated_again() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let site = bench.site(Faults::none());
    bench.apply(&site, ApplyOptions::default()).unwrap();
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
        .retain(|change| matches!(change.target, lowlat_model::tune::Target::IrqAffinity { .. }));
    assert!(bench.plan.changes.len() >= 3);
    let site = bench.site(Faults::none());
    bench.apply(&site, ApplyOptions::default()).unwrap();
    let irqs: Vec<u32> = bench
        .plan
        .changes
        .iter()
        .filter_map(|change| match &change.target {
            lowlat_model::tune::Target::IrqAffinity { irq, .. } => Some(*irq),
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
    let bench = Bench::new();
    let site = bench.site(Faults::none());
    bench.apply(&site, ApplyOptions::default()).unwrap();
    let (_, plan) = site.state.in_force().unwrap().unwrap();
    let brought = plan.changes.iter().find_map(|change| match &change.target {
        lowlat_model::tune::Target::CommandLine { tokens } => {
            tokens.iter().find_map(lowlat_model::tune::spell)
        }
        _ => None,
    });
    let brought = brought.unwrap();
    bench.put("boot/loader/entries/later.conf", &format!("root=/dev/sda1 ro {brought} mine=1\n"));
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    let note = report.notes.iter().find(|note| note.starts_with("/boot/loader/entries/later.conf"));
    let note = note.unwrap_or_else(|| panic!("{report:#?}"));
    assert!(note.contains(&format!("take {brought} off")) && !note.contains("mine=1"), "{note}");
    // Without any of them there is nothing to tell.
    bench.apply(&site, ApplyOptions::default()).unwrap();
    bench.put("boot/loader/entries/later.conf", "root=/dev/sda1 ro mine=1\n");
    assert_eq!(rollback(&site, &RollbackRequest::default()).unwrap().notes, Vec::<String>::new());
}
