//! A crash after every single operation, in both directions, and both ways to recover.

use super::{super::*, Host};

/// The tree after the whole plan, without times.
fn end() -> String {
    let host = Host::new();
    let plan = host.plan();
    host.open(Faults::none()).unwrap().apply("p", &plan, OnFailure::RollBack).unwrap();
    host.tree(false)
}

/// Runs `crash` on a fresh host, and then `way` without faults, for every crash point until `crash` gets through.
fn at_every_point(
    prepare: impl Fn(&Host, &[UndoStep]),
    crash: impl Fn(&mut UndoLog, &[UndoStep]) -> bool,
    way: impl Fn(&Host, &mut UndoLog, &[UndoStep], &str, u64),
) {
    for at in 0.. {
        let host = Host::new();
        let (start, plan) = (host.tree(true), host.plan());
        prepare(&host, &plan);
        let got_through = match host.open(Faults::crash_at(at)) {
            Ok(mut log) => crash(&mut log, &plan),
            Err(_) => false,
        };
        let mut log = host.open(Faults::none()).unwrap();
        assert_eq!(log.damage(), None, "crash at {at}");
        way(&host, &mut log, &plan, &start, at);
        if got_through {
            assert!(at > 30, "only {at} operations: the faults are not where the work is");
            return;
        }
    }
}

fn apply_all(log: &mut UndoLog, plan: &[UndoStep]) -> bool {
    log.apply("p", plan, OnFailure::RollBack).is_ok()
}

fn roll_back_all(log: &mut UndoLog, _plan: &[UndoStep]) -> bool {
    // A dead log cannot record, but the host may still be restored.
    let report = log.rollback_where(|_| true);
    report.is_complete() && report.not_recorded.is_none()
}

fn applied(host: &Host, plan: &[UndoStep]) {
    assert!(apply_all(&mut host.open(Faults::none()).unwrap(), plan));
}

fn ends_at_start(host: &Host, log: &mut UndoLog, _plan: &[UndoStep], start: &str, at: u64) {
    let report = log.rollback_where(|_| true);
    assert!(report.is_complete(), "crash at {at}: {report}");
    assert_eq!(host.tree(true), start, "crash at {at}");
    assert!(log.history().entries.is_empty());
}

#[test]
fn crash_in_apply_then_rollback() {
    at_every_point(|_, _| {}, apply_all, ends_at_start);
}

#[test]
fn crash_in_apply_then_apply_then_rollback() {
    let end = end();
    at_every_point(
        |_, _| {},
        apply_all,
        |host, log, plan, start, at| {
            log.apply("p", plan, OnFailure::RollBack).unwrap_or_else(|e| panic!("crash at {at}: {e}"));
            assert_eq!(host.tree(false), end, "crash at {at}");
            ends_at_start(host, log, plan, start, at);
        },
    );
}

#[test]
fn crash_in_rollback_then_rollback() {
    at_every_point(applied, roll_back_all, ends_at_start);
}

#[test]
fn crash_in_rollback_then_apply_then_rollback() {
    let end = end();
    at_every_point(applied, roll_back_all, |host, log, plan, start, at| {
        log.apply("p", plan, OnFailure::RollBack).unwrap_or_else(|e| panic!("crash at {at}: {e}"));
        assert_eq!(host.tree(false), end, "crash at {at}");
        ends_at_start(host, log, plan, start, at);
    });
}

#[test]
fn intention_and_content_are_durable_before_the_host_is_touched() {
    let host = Host::new();
    let (faults, plan) = (Faults::traced(), host.plan());
    let step = plan.into_iter().filter(|s| s.id == "replace").collect::<Vec<_>>();
    let mut log = host.open(faults.clone()).unwrap();
    log.apply("p", &step, OnFailure::RollBack).unwrap();
    let trace = faults.trace();
    let host_at = trace.iter().position(|op| op.ends_with(" /etc/existing")).unwrap();
    let before = &trace[..host_at];
    assert!(before.last().unwrap().starts_with("fsync ") && before.last().unwrap().contains("segment-"));
    // Contents before and after are written, synced and renamed, and the directory is synced, before the
    // intention.
    let contents: Vec<_> = before.iter().filter(|op| op.contains("/contents")).collect();
    assert_eq!(contents.iter().filter(|op| op.starts_with("fsync the directory")).count(), 2);
    assert_eq!(contents.iter().filter(|op| op.starts_with("rename")).count(), 2);
    // Done is recorded only after the host's own fsync of file and directory.
    let on_host: Vec<_> =
        trace.iter().filter(|op| op.ends_with(" /etc/existing")).map(|op| &op[..6]).collect();
    assert_eq!(on_host, ["create", "write ", "set ow", "fsync ", "rename", "fsync "]);
    let last_host = trace.iter().rposition(|op| op.ends_with(" /etc/existing")).unwrap();
    assert!(trace[last_host + 1].contains("contents") || trace[last_host + 1].contains("segment-"));
}
