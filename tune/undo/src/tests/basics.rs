//! Rejected changes, edits from outside, the lock, links, and the kernel's own files.

use super::{super::*, Host, host::file};
use std::{fs, os::unix::fs::symlink};

#[test]
fn an_edit_by_others_is_shown_with_three_states_and_kept() {
    let host = Host::new();
    let plan = host.plan();
    let mut log = host.open(Faults::none()).unwrap();
    log.apply("p", &plan, OnFailure::RollBack).unwrap();
    fs::write(host.root.join("etc/existing"), "theirs").unwrap();
    fs::write(host.root.join("etc/a/b/theirs"), "theirs").unwrap();
    let report = log.rollback_where(|entry| entry.plan == "p");
    let [Left::Conflict(conflict)] = report.left.as_slice() else { panic!("{report}") };
    let bytes = |state: &State| match state {
        State::File(file) => String::from_utf8(file.bytes.clone()).unwrap(),
        other => panic!("{other}"),
    };
    assert_eq!(bytes(&conflict.old), "old text\n");
    assert_eq!(bytes(&conflict.ours), "new text, longer\n");
    assert_eq!(bytes(&conflict.present), "theirs");
    assert_eq!(
        (report.restored.len(), &report.directories_left[..]),
        (6, &["/etc/a/b".into(), "/etc/a".into()][..])
    );
    assert_eq!(fs::read_to_string(host.root.join("etc/existing")).unwrap(), "theirs");
    // After a manual restore the step counts as not applied.
    host.put("etc/existing", "old text\n", 0o640);
    let report = log.rollback_where(|_| true);
    assert_eq!((report.unchanged.len(), report.is_complete()), (1, true));
}

#[test]
fn a_host_that_changed_since_the_plan_is_refused_whole() {
    let host = Host::new();
    let plan = host.plan();
    host.put("etc/plain", "changed", 0o755);
    let before = host.tree(true);
    let mut log = host.open(Faults::none()).unwrap();
    let error = log.apply("p", &plan, OnFailure::RollBack).unwrap_err();
    assert_eq!(error.to_string().matches("(step ").count(), 1, "{error}");
    assert_eq!(host.tree(true), before);
    assert!(log.history().plans.is_empty());
}

#[test]
fn contradictory_plans_are_refused() {
    let host = Host::new();
    let plan = host.plan();
    let mut log = host.open(Faults::none()).unwrap();
    let mut twice =
        host.step("other", TargetSpec::value("/sys/devices/x/value", Comparison::Exact), State::Absent);
    twice.new = State::Value("1".to_owned());
    let error = log.apply("p", &[plan[0].clone(), twice], OnFailure::RollBack).unwrap_err();
    assert!(error.to_string().contains("have the same target"), "one file by two paths: {error}");
    log.apply("p", &plan, OnFailure::RollBack).unwrap();
    let mut changed = plan.clone();
    changed[1].new = file("something else", 0o600);
    let error = log.apply("p", &changed, OnFailure::RollBack).unwrap_err();
    assert!(matches!(error, UndoError::PlanDiffers { .. }), "{error}");
}

/// Applies the same plan again after its targets were edited.
#[test]
fn an_edit_between_two_applies_of_a_plan() {
    let host = Host::new();
    let plan = host.plan();
    let mut log = host.open(Faults::none()).unwrap();
    let now = || -> Vec<UndoStep> {
        plan.iter().map(|step| host.step(&step.id, step.target.clone(), step.new.clone())).collect()
    };
    let value = || fs::read_to_string(host.root.join("sys/devices/x/value")).unwrap();
    log.apply("p", &plan, OnFailure::RollBack).unwrap();
    // An edited file needs a separate plan, so that the rollback reports the edit.
    fs::write(host.root.join("etc/existing"), "theirs").unwrap();
    let records = host.records();
    let error = log.apply("p", &now(), OnFailure::RollBack).unwrap_err();
    assert!(matches!(&error, UndoError::PlanDiffers { step, .. } if step == "replace"), "{error}");
    assert_eq!(host.records(), records);
    assert_eq!(log.apply("p.1", &now(), OnFailure::RollBack).unwrap().done, ["replace"]);
    let report = log.rollback_where(|entry| entry.plan == "p.1");
    assert!(report.is_complete(), "{report}");
    assert_eq!(fs::read_to_string(host.root.join("etc/existing")).unwrap(), "theirs");
    log.apply("p.1", &now(), OnFailure::RollBack).unwrap();
    // Removed, as it was before: nothing is lost.
    fs::remove_file(host.root.join("etc/a/beside")).unwrap();
    assert_eq!(log.apply("p", &now(), OnFailure::RollBack).unwrap().done, ["beside"]);
    // A value: the found one or the first one.
    for (is_first, back) in [(false, "5\n"), (true, "0\n")] {
        host.put("sys/devices/x/value", "5\n", 0o644);
        let again = if is_first { UndoLog::apply_once_more } else { UndoLog::apply };
        assert_eq!(again(&mut log, "p", &now(), OnFailure::SkipRefused).unwrap().done, ["value"]);
        assert_eq!(value().trim(), "7");
        log.rollback_where(|entry| entry.step == "value");
        assert_eq!(value().trim(), back.trim());
        host.put("sys/devices/x/value", "0\n", 0o644);
        log.apply("p", &now(), OnFailure::RollBack).unwrap();
    }
    let report = log.rollback_where(|_| true);
    assert_eq!(report.left.len(), 1, "{report}");
    assert!(matches!(&report.left[0], Left::Conflict(conflict) if conflict.step == "replace"), "{report}");
}

/// A failing apply over a changed value restores that value; a successful one can be rolled back to the
/// first.
#[test]
fn an_apply_once_more_that_fails_goes_back_to_what_it_found() {
    for at in 0.. {
        let host = Host::new();
        let (start, plan) = (host.tree(true), host.plan());
        host.open(Faults::none()).unwrap().apply("p", &plan, OnFailure::RollBack).unwrap();
        host.put("sys/devices/x/value", "5\n", 0o644);
        fs::remove_file(host.root.join("etc/a/beside")).unwrap();
        let now: Vec<UndoStep> =
            plan.iter().map(|step| host.step(&step.id, step.target.clone(), step.new.clone())).collect();
        let done = host
            .open(Faults::error_at(at, rustix::io::Errno::NOSPC.raw_os_error()))
            .and_then(|mut log| log.apply_once_more("p", &now, OnFailure::SkipRefused));
        if done.is_ok() {
            assert!(at > 20, "only {at} operations");
            let report = host.open(Faults::none()).unwrap().rollback_where(|_| true);
            assert!(report.is_complete(), "{report}");
            assert_eq!(host.tree(true), start);
            return;
        }
        let value = fs::read_to_string(host.root.join("sys/devices/x/value")).unwrap();
        // If only the end could not be recorded, everything is done.
        let is_done = value.trim() == "7" && !matches!(done, Err(UndoError::Step { .. }));
        assert!(value.trim() == "5" || is_done, "error at {at}: {value}, {done:?}");
    }
}

#[test]
fn an_unfinished_plan_comes_before_another() {
    let host = Host::new();
    let plan = host.plan();
    let _ = host.open(Faults::crash_at(50)).unwrap().apply("p", &plan, OnFailure::RollBack);
    let mut log = host.open(Faults::none()).unwrap();
    let refused = log.apply("q", &plan, OnFailure::RollBack).unwrap_err().to_string();
    assert!(refused.contains("was applied only in part"), "{refused}");
    log.rollback_where(|_| true);
    log.apply("q", &plan, OnFailure::RollBack).unwrap();
}

#[test]
fn a_failing_step_can_be_skipped() {
    let host = Host::new();
    let mut plan = host.plan();
    // A file in the place of a directory.
    plan.insert(2, host.step("into", TargetSpec::file("/etc/a"), file("", 0o644)));
    let mut log = host.open(Faults::none()).unwrap();
    let report = log.apply("p", &plan, OnFailure::Continue).unwrap();
    assert_eq!(report.done.len() + report.failed.len(), plan.len());
    assert_eq!(report.failed.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["create", "beside"]);
}

#[test]
fn the_lock_names_its_holder() {
    let host = Host::new();
    let _log = host.open(Faults::none()).unwrap();
    let error = host.open(Faults::none()).unwrap_err().to_string();
    assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
}

#[test]
fn nothing_leads_out_of_the_root() {
    let host = Host::new();
    let writer = host.writer(Faults::none());
    symlink("../../undo", host.root.join("etc/out")).unwrap();
    symlink("/etc/default", host.root.join("etc/inside")).unwrap();
    symlink("round", host.root.join("etc/round")).unwrap();
    let new = file("x", 0o644);
    let refused = |path| writer.write_file(path, &new).unwrap_err().to_string();
    assert!(refused("/etc/out/x").contains("leads out of the root"));
    assert!(refused("/etc/round/x").contains("more than 40 links"));
    for path in ["etc/x", "/etc/../x", "/etc//x", "/etc/\0", ""] {
        assert!(refused(path).contains("is not a path on a host"), "{path:?}");
    }
    writer.write_file("/etc/inside/x", &new).unwrap();
    assert!(host.root.join("etc/default/x").exists());
    assert!(matches!(writer.read_file("/etc/default"), Err(HostError::Kind { .. })));
    assert!(matches!(writer.write_value("/sys/class/none", "1"), Err(HostError::Io { .. })));
    for root in ["/", "/proc/self/root"] {
        let error = Writer::below(root.as_ref()).unwrap_err().to_string();
        assert!(error.contains("is the root of the running host"), "{error}");
    }
}

#[test]
fn hard_links_and_large_files_are_refused() {
    let host = Host::new();
    fs::hard_link(host.root.join("etc/plain"), host.root.join("etc/second")).unwrap();
    fs::File::create(host.root.join("etc/large")).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
    let writer = host.writer(Faults::none());
    assert!(writer.read_file("/etc/second").unwrap_err().to_string().contains("hard links"));
    assert!(matches!(writer.read_file("/etc/large"), Err(HostError::TooLarge { .. })));
}

#[test]
fn extended_attributes_are_restored() {
    let host = Host::new();
    let path = host.root.join("etc/existing");
    if let Err(errno) = rustix::fs::setxattr(&path, "user.note", b"kept", rustix::fs::XattrFlags::empty()) {
        eprintln!("skipped: user attributes on this file system: {errno}");
        return;
    }
    let plan = host.plan();
    let mut log = host.open(Faults::none()).unwrap();
    log.apply("p", &plan, OnFailure::RollBack).unwrap();
    rustix::fs::removexattr(&path, "user.note").unwrap();
    log.rollback_where(|_| true);
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(&path, "user.note", &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"kept");
}

#[test]
fn a_link_keeps_its_context() {
    let tree = tempfile::tempdir().unwrap();
    let link = tree.path().join("link");
    symlink("elsewhere", &link).unwrap();
    let label = b"system_u:object_r:systemd_unit_t:s0\0";
    if let Err(errno) =
        rustix::fs::lsetxattr(&link, "security.selinux", label, rustix::fs::XattrFlags::empty())
    {
        eprintln!("skipped: labels of links on this file system: {errno}");
        return;
    }
    let writer = Writer::live().unwrap();
    let path = link.to_str().unwrap();
    let before = writer.read_file(path).unwrap();
    assert!(
        matches!(&before, State::Link { context: Some(of), .. } if of.ends_with("unit_t:s0")),
        "{before:?}"
    );
    writer.write_file(path, &State::Absent).unwrap();
    writer.write_file(path, &before).unwrap();
    assert_eq!(writer.read_file(path).unwrap(), before);
}

#[test]
fn a_value_of_the_running_kernel() {
    let dir = tempfile::tempdir().unwrap();
    let mut log =
        UndoLog::open(PrivateDirectory::create(dir.path(), &[]).unwrap(), Writer::live().unwrap(), |_| true)
            .unwrap();
    let name = TargetSpec::value("/proc/self/comm", Comparison::Exact);
    let old = log.present(&name).unwrap();
    let step = |new: &str| {
        let new = State::Value(new.to_owned());
        [UndoStep { id: "name".to_owned(), target: name.clone(), old: old.clone(), new }]
    };
    // The kernel keeps 15 letters: what is read back differs from what was written.
    let error = log.apply("long", &step("a-name-of-more-letters"), OnFailure::RollBack).unwrap_err();
    assert!(error.to_string().contains("read back \"a-name-of-more-"), "{error}");
    assert_eq!(log.present(&name).unwrap(), old);
    log.apply("short", &step("lowlat-undo"), OnFailure::RollBack).unwrap();
    assert_eq!(log.present(&name).unwrap(), State::Value("lowlat-undo\n".to_owned()));
    assert_eq!(log.history().entries[0].boot.len(), 36);
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(log.present(&name).unwrap(), old);
}

#[test]
fn a_choice_in_a_tree_shows_what_the_kernel_would() {
    let host = Host::new();
    host.put("sys/devices/x/value", "[always] madvise never\n", 0o644);
    let start = host.tree(true);
    let choice = TargetSpec::value("/sys/class/x/value", Comparison::Choice);
    let step = host.step("choice", choice, State::Value("never".to_owned()));
    let mut log = host.open(Faults::none()).unwrap();
    log.apply("p", &[step], OnFailure::RollBack).unwrap();
    let shown = fs::read_to_string(host.root.join("sys/devices/x/value")).unwrap();
    assert_eq!(shown, "always madvise [never]\n");
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(host.tree(true), start);
}

#[test]
fn values_are_compared_by_their_meaning() {
    let same = |comparison: Comparison, a, b| comparison.same_text(a, b);
    assert!(same(Comparison::Exact, "1", "1\n") && !same(Comparison::Exact, "1", "01"));
    assert!(same(Comparison::Words, "4096\t87380", "4096 87380\n"));
    assert!(same(Comparison::Number, "0x10", "16\n") && !same(Comparison::Number, "x", "0"));
    assert!(same(Comparison::CpuList, "0-3,8", "0,1,2,3,8\n") && !same(Comparison::CpuList, "0-3", "0-4"));
    assert!(same(Comparison::CpuMask, "ff", "00000000,000000ff\n"));
    assert!(same(Comparison::Choice, "never", "always madvise [never]\n"));
    assert!(!same(Comparison::Choice, "always", "always madvise [never]\n"));
}

#[test]
fn states_of_units_are_the_same_as_far_as_they_count() {
    let same = |a, b| Comparison::Service.same_text(a, b);
    assert!(same("active, enabled", "activating, enabled\nlink /etc/x -> /y (0:0 at 1.2)"));
    assert!(same("inactive, disabled", "failed, disabled") && same("inactive", "inactive, static"));
    assert!(
        !same("active, enabled", "inactive, enabled") && !same("active, enabled", "active, enabled-runtime")
    );
    assert!(!same("", "inactive") && !same("gone", "inactive") && same("gone", "gone"));
    let value = |text: &str| State::Value(text.to_owned());
    assert!(Comparison::Service.same(&State::Absent, &value("inactive, disabled")));
    assert!(!Comparison::Service.same(&State::Absent, &value("inactive, static")));
    assert!(!Comparison::Exact.same(&State::Absent, &value("inactive, disabled")));
    assert_eq!(value("active\nlink a\nlink b\n").to_string(), "\"active\" (and 2 more lines)");
    let between = |present: &str| {
        let (old, new) = (value("active, enabled"), value("inactive, disabled"));
        Comparison::Service.is_between(&value(present), &old, &new)
    };
    assert!(between("inactive, enabled") && between("active, disabled") && between("failed, enabled"));
    assert!(!between("active, masked") && !between("gone, enabled"));
    assert!(!Comparison::Exact.is_between(&value("a"), &value("a"), &value("b")));
}

#[test]
fn what_only_one_text_tells_does_not_count() {
    let same = |a, b| Comparison::Leading.same_text(a, b);
    assert!(same("SCHED_FIFO 2", "SCHED_FIFO 2 reset-on-fork") && same("SCHED_OTHER nice -5", "SCHED_OTHER"));
    assert!(!same("SCHED_FIFO 2", "SCHED_FIFO 20") && !same("SCHED_OTHER nice 0", "SCHED_OTHER nice -5"));
    assert!(!same("", "SCHED_FIFO") && same("", ""));
}

#[test]
fn directories_are_listed_inside_the_root_only() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    for name in ["b", "a"] {
        fs::write(dir.path().join("d").join(name), "").unwrap();
    }
    symlink("/d", dir.path().join("inside")).unwrap();
    symlink("/../../etc", dir.path().join("outside")).unwrap();
    let writer = Writer::below(dir.path()).unwrap();
    assert!(!writer.is_live());
    assert_eq!(writer.list("/d", 2).unwrap(), ["a", "b"]);
    assert_eq!(writer.list("/inside", 2).unwrap(), ["a", "b"]);
    assert_eq!(writer.list("/none/below", 2).unwrap(), Vec::<String>::new());
    assert_eq!(writer.list("/d/a", 2).unwrap(), Vec::<String>::new());
    let error = writer.list("/d", 1).unwrap_err().to_string();
    assert_eq!(error, "/d: cannot list: more than 1 names; expected fewer, check the directory");
    assert!(writer.list("/outside", 2).unwrap_err().to_string().contains("leads out of the root"));
}

#[test]
fn a_profile_and_its_mode_are_two_things() {
    let same = |a, b| Comparison::Profile.same_text(a, b);
    assert!(same("lowlat", "lowlat manual") && same("a  b auto", "a b auto") && same("auto", "auto manual"));
    assert!(!same("lowlat auto", "lowlat manual") && !same("a b", "a manual") && !same("", "lowlat"));
    let between = |present: &str| {
        let value = |text: &str| State::Value(text.to_owned());
        Comparison::Profile.is_between(&value(present), &value("a b auto"), &value("lowlat manual"))
    };
    assert!(between("lowlat auto") && between("a b manual"));
    assert!(!between("lowlat unset") && !between("balanced auto") && !between("a auto"));
}

/// irqbalance moves interrupts between the check and the change. The state that the change replaced comes back.
#[test]
fn an_interrupt_that_moves_meanwhile_is_moved_all_the_same() {
    let host = Host::empty();
    for (path, is_moved) in
        [("/proc/irq/5/smp_affinity_list", true), ("/proc/irq/default_smp_affinity", false)]
    {
        fs::create_dir_all(host.root.join(path.trim_start_matches('/')).parent().unwrap()).unwrap();
        host.put(path.trim_start_matches('/'), "0-3\n", 0o644);
        let step = host.step(path, TargetSpec::value(path, Comparison::CpuList), State::Value("0".into()));
        host.put(path.trim_start_matches('/'), "2\n", 0o644);
        let mut log = host.open(Faults::none()).unwrap();
        let applied = log.apply(path, std::slice::from_ref(&step), OnFailure::RollBack);
        assert_eq!(applied.is_ok(), is_moved, "{applied:?}");
        if is_moved {
            assert_eq!(log.present(&step.target).unwrap(), State::Value("0".into()));
            assert!(log.rollback_where(|_| true).is_complete());
        }
        assert_eq!(log.present(&step.target).unwrap(), State::Value("2\n".into()));
    }
}
