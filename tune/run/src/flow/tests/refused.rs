//! Obstacles to applying a plan. Nothing is changed then.

use super::super::*;
use super::bench::{Bench, differences, is_root};
use crate::boot_loader::BootLoaderError;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::Reading;
use lowlat_plan::outcome::{Fate, RebootStatus};
use lowlat_settings::change::Target;
use lowlat_undo::Faults;
use std::fs;

fn from_file(bench: &Bench, site: &Site) -> Result<Ready, FlowError> {
    Ready::new(site, &bench.host, bench.plan.clone(), PlanFrom::File, ApplyOptions::default())
}

/// The lines of a refusal's list.
fn obstacles<T>(result: Result<T, FlowError>) -> Vec<String> {
    let Err(FlowError::Refused(text)) = result else { panic!("not refused") };
    text.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect()
}

#[test]
fn a_plan_for_another_host_names_the_marks_that_differ() {
    let mut bench = Bench::new();
    bench.plan = bench.whole_plan();
    let site = bench.site(Faults::none());
    assert!(from_file(&bench, &site).is_ok());
    bench.plan.host.kernel_release = Reading::Known("4.18.0-147.el8.x86_64".into());
    bench.plan.host.topology_digest = "0123456789abcdef".into();
    let lines = obstacles(from_file(&bench, &site));
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].starts_with("kernel: 4.18.0-147.el8.x86_64 in the plan, "), "{lines:#?}");
}

#[test]
fn a_host_that_was_changed_underneath_is_told_value_by_value() {
    let mut bench = Bench::new();
    bench.plan = bench.whole_plan();
    let found = bench.text("proc/sys/vm/swappiness");
    bench.put("proc/sys/vm/swappiness", "33\n");
    let site = bench.site(Faults::none());
    bench.host = site.snapshot();
    let lines = obstacles(from_file(&bench, &site));
    let line = format!("sysctl.vm.swappiness: {} in the plan, 33 now, wanted 10", found.trim());
    assert_eq!(lines, [line]);
    // The planned value and the value that the plan found are both accepted.
    bench.put("proc/sys/vm/swappiness", "10\n");
    bench.host = site.snapshot();
    assert!(from_file(&bench, &site).is_ok());
}

#[test]
fn a_damaged_log_stops_new_plans_until_it_is_accepted() {
    if !is_root() {
        return;
    }
    let (bench, site, start) = Bench::applied(ApplyOptions::default());
    let segment = bench.state().join("undo/segment-00000001");
    let mut bytes = fs::read(&segment).unwrap();
    let last = bytes.len() - 40;
    bytes[last] ^= 0x10;
    fs::write(&segment, bytes).unwrap();
    assert!(status(&site).unwrap().damage.is_some());
    let lines = obstacles(bench.ready(&site, ApplyOptions::default()));
    assert!(lines.iter().any(|line| line.contains("--accept-damage")), "{lines:#?}");
    assert!(apply_again(&site).unwrap_err().to_string().contains("cannot rely on the undo log"));
    let request = RollbackRequest { accept_damage: true, ..RollbackRequest::default() };
    let report = rollback(&site, &request).unwrap();
    assert!(report.damage.is_some() && !report.is_complete());
    // The damage was after the last step's record, so all steps were known.
    assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
    assert!(bench.ready(&site, ApplyOptions::default()).is_ok());
}

#[test]
fn a_container_s_capture_file_and_too_short_a_switch_are_refused() {
    let bench = Bench::new();
    let capture =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts/one-cpu.tar.gz");
    assert!(obstacles(Site::below(&capture, CATALOGUE))[0].contains("is a capture file"));
    let site = bench.site(Faults::none());
    let options =
        ApplyOptions { confirm_within: Some(std::time::Duration::from_secs(1)), ..ApplyOptions::default() };
    assert!(obstacles(bench.ready(&site, options))[0].contains("must be between 30s and 168h"));
}

/// A plan lists beforehand what apply would refuse.
#[test]
fn what_apply_will_refuse_is_said_of_the_plan() {
    let bench = Bench::new();
    let site = bench.site(Faults::none());
    assert_eq!(hindrances(&site, &bench.plan), Vec::<String>::new());
    let mut site = bench.site(Faults::none());
    site.detect = crate::boot_loader::detect;
    fs::remove_dir_all(bench.tree().join("boot")).unwrap();
    let lines = hindrances(&site, &bench.plan);
    assert!(lines[0].starts_with("the command line: no known boot loader found"), "{lines:#?}");
}

#[test]
fn lowlat_s_own_files_that_are_damaged_leave_the_way_back_open() {
    if !is_root() {
        return;
    }
    let (bench, site, start) = Bench::applied(ApplyOptions::default());
    fs::write(bench.state().join("in-force.json"), "{\"plan_id\": tru").unwrap();
    let error = bench.ready(&site, ApplyOptions::default()).unwrap_err().to_string();
    assert!(error.contains("in-force.json") && error.contains("lowlat tune rollback"), "{error}");
    // The end of the log is unknown, so its changes are restored only on request.
    let applied = bench.files();
    let refused = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(refused.is_preview && !refused.is_complete() && !refused.restored.is_empty(), "{refused:#?}");
    assert_eq!(differences(&applied, &bench.files()), Vec::<String>::new());
    let accepted =
        rollback(&site, &RollbackRequest { accept_damage: true, ..RollbackRequest::default() }).unwrap();
    assert!(accepted.failures.is_empty() && accepted.damage.is_some(), "{accepted:#?}");
    assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
    assert!(bench.ready(&site, ApplyOptions::default()).is_ok());
}

#[test]
fn a_saved_plan_of_what_lowlat_would_not_plan_is_refused() {
    let mut bench = Bench::new();
    let site = bench.site(Faults::none());
    // The bench's own plan stops a service that the catalogue does not have.
    let lines = obstacles(from_file(&bench, &site));
    assert!(lines.contains(&"sleepless.service = \"inactive, disabled\"".to_owned()), "{lines:#?}");
    bench.plan = bench.whole_plan();
    assert!(from_file(&bench, &site).is_ok());
}

#[test]
fn what_the_host_refuses_is_recorded_for_its_boot() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let refuses = "run/units/sleepless.service.refuses";
    bench.put(refuses, "yes");
    let site = bench.site(Faults::none());
    let start = bench.files();
    let recorded = || {
        let found = site.state.refused(site.boot_id().text()).unwrap();
        found.into_iter().map(|refusal| (refusal.target, refusal.reason)).collect::<Vec<_>>()
    };
    let outcome = bench.apply(&site, ApplyOptions::default()).unwrap();
    assert_eq!(outcome.count(Fate::Refused), 1, "{outcome:#?}");
    let unit = Target::Service { unit: "sleepless.service".into() };
    let expect_one = || match &recorded()[..] {
        [(target, why)] => assert!(*target == unit && why.contains("resource busy"), "{why}"),
        other => panic!("{other:?}"),
    };
    expect_one();
    bench.reboot(&start);
    assert_eq!(recorded(), [], "not tried in this boot yet");
    apply_again(&site).unwrap();
    expect_one();
    fs::remove_file(bench.tree().join(refuses)).unwrap();
    apply_again(&site).unwrap();
    assert_eq!(recorded(), []);
    bench.put(refuses, "yes");
    bench.put("run/units/sleepless.service", "active, enabled");
    apply_again(&site).unwrap();
    expect_one();
    fs::remove_file(bench.tree().join(refuses)).unwrap();
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().failures.is_empty());
    assert!(!bench.state().join("refused.json").exists());
}

/// If the command line was refused, no reboot is pending, in later processes and boots too.
#[test]
fn a_refused_command_line_waits_for_no_reboot() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let site = || {
        let mut site = bench.site(Faults::none());
        site.detect = |_| Err(BootLoaderError::Refused("set it manually: isolcpus=1".to_owned()));
        site
    };
    let start = bench.files();
    let confirm_within = Some(std::time::Duration::from_secs(600));
    let outcome = bench.apply(&site(), ApplyOptions { confirm_within, ..ApplyOptions::default() }).unwrap();
    assert_eq!((outcome.count(Fate::Refused), outcome.needs_reboot), (1, false), "{outcome:#?}");
    let expect_refused = || {
        let shown = status(&site()).unwrap();
        assert_eq!(shown.reboot, RebootStatus::Refused);
        match &shown.in_force.known().unwrap().refused[..] {
            [one] => assert!(
                matches!(one.target, Target::CommandLine { .. })
                    && one.reason.contains("manually: isolcpus=1"),
                "{one:?}"
            ),
            other => panic!("{other:?}"),
        }
    };
    expect_refused();
    assert_eq!(confirm(&site()).unwrap(), Confirmed::Now, "there is no reboot to wait for");
    expect_refused();
    bench.reboot(&start);
    expect_refused();
    apply_again(&site()).unwrap();
    expect_refused();
    // If set manually, it is in effect like any other.
    let tokens = bench.plan.changes.iter().find_map(|change| match &change.target {
        Target::CommandLine { tokens } => Some(tokens.clone()),
        _ => None,
    });
    let words: Vec<String> = tokens.unwrap().iter().filter_map(lowlat_plan::spell).collect();
    bench.put("proc/cmdline", &format!("root=/dev/vda1 {}\n", words.join(" ")));
    assert_eq!(status(&site()).unwrap().reboot, RebootStatus::Done);
    let outcome = rollback(&site(), &RollbackRequest::default()).unwrap();
    assert!(outcome.is_complete() && !outcome.needs_reboot, "{outcome:#?}");
}
