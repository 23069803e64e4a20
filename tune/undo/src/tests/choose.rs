//! Steps chosen one by one.

use super::{super::*, Host};

const VALUE: &str = "/sys/devices/x/value";

fn value(host: &Host, id: &str, new: &str) -> UndoStep {
    host.step(id, TargetSpec::value(VALUE, Comparison::Number), State::Value(new.to_owned()))
}

fn text(host: &Host) -> String {
    std::fs::read_to_string(host.root.join("sys/devices/x/value")).unwrap().trim().to_owned()
}

#[test]
fn a_rehearsal_says_what_the_rollback_does_and_changes_nothing() {
    let host = Host::new();
    let mut log = host.open(Faults::none()).unwrap();
    log.apply("a", &[value(&host, "v", "1")], OnFailure::RollBack).unwrap();
    // A second layer on the same target: its old state is what the first one wrote.
    log.apply("b", &[value(&host, "w", "2")], OnFailure::RollBack).unwrap();
    let before = host.tree(true);
    let preview = log.preview_where(|_| true, &[]);
    assert_eq!(host.tree(true), before);
    let done = log.rollback_where(|_| true);
    assert_eq!(preview.restore.iter().map(|r| r.step.clone()).collect::<Vec<_>>(), done.restored);
    assert_eq!((done.restored, text(&host)), (vec!["w".to_owned(), "v".to_owned()], "0".to_owned()));
}

#[test]
fn a_conflict_is_left_unless_its_name_is_forced() {
    let host = Host::new();
    let mut log = host.open(Faults::none()).unwrap();
    log.apply("a", &[value(&host, "v", "1")], OnFailure::RollBack).unwrap();
    host.put("sys/devices/x/value", "7\n", 0o644);
    for left in [log.preview_where(|_| true, &[]).left, log.rollback_where(|_| true).left] {
        assert!(matches!(left.as_slice(), [Left::Conflict(c)] if c.name == VALUE), "{left:?}");
    }
    assert_eq!(text(&host), "7");
    let names = [VALUE.to_owned(), "/etc/other".to_owned()];
    let preview = log.preview_where(|_| true, &names);
    assert_eq!((preview.restore.len(), preview.left.len()), (1, 0));
    assert_eq!(log.take_for_ours(|_| true, &names).unwrap(), ["/etc/other"]);
    let report = log.rollback_where(|_| true);
    assert!(report.is_complete(), "{report}");
    assert_eq!(text(&host), "0");
    assert!(log.history().entries.is_empty());
}

#[test]
fn a_plan_that_will_not_continue_can_be_closed() {
    let host = Host::new();
    let step = value(&host, "v", "1");
    // Dies at some operation after the step is recorded and while the plan is open.
    let open = (0..40).find_map(|at| {
        let mut log = host.open(Faults::none()).unwrap();
        log.rollback_where(|_| true);
        drop(log);
        let mut log = host.open(Faults::crash_at(at)).ok()?;
        let _ = log.apply("a", std::slice::from_ref(&step), OnFailure::RollBack);
        drop(log);
        let log = host.open(Faults::none()).unwrap();
        (log.history().is_open("a") && !log.history().entries.is_empty()).then_some(log)
    });
    let mut log = open.expect("a crash within the plan");
    let other = host.step("o", TargetSpec::file("/etc/plain"), super::host::file("x", 0o755));
    let refused = log.apply("b", std::slice::from_ref(&other), OnFailure::RollBack);
    assert!(refused.unwrap_err().to_string().contains("plan a was applied only in part"));
    log.close_where(|id, _| id == "a").unwrap();
    log.apply("b", &[other], OnFailure::RollBack).unwrap();
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(text(&host), "0");
}

#[test]
fn what_times_out_stays_as_it_is() {
    let host = Host::new();
    let mut log = host.open(Faults::none()).unwrap();
    log.apply("a", &[value(&host, "v", "1")], OnFailure::RollBack).unwrap();
    assert!(log.history().entries.iter().all(|entry| log.goes_with_boot(entry)));
    assert_eq!(log.give_up_where(|entry| entry.step == "v").unwrap(), 1);
    assert_eq!((text(&host).as_str(), log.history().entries.len()), ("1", 0));
}
