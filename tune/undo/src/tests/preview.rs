//! Previews of rollbacks, and rollbacks of some plans.

use super::{super::*, Host, host::file};
use std::fs;

/// Three plans; the second and the third change one file of the first again.
fn three() -> (Host, UndoLog, Vec<String>) {
    let host = Host::new();
    let mut log = host.open(Faults::none()).unwrap();
    let mut trees = vec![host.tree(true)];
    let plan = host.plan();
    log.apply("a/run", &plan[..3], OnFailure::RollBack).unwrap();
    trees.push(host.tree(true));
    for (name, text) in [("b/run", "second"), ("b/files", "third")] {
        let steps = [
            host.step("replace", TargetSpec::file("/etc/existing"), file(text, 0o600)),
            host.step(name, TargetSpec::file(format!("/etc/{}", name.replace('/', "-"))), file("", 0o644)),
        ];
        log.apply(name, &steps, OnFailure::RollBack).unwrap();
        trees.push(host.tree(true));
    }
    (host, log, trees)
}

/// Plan, step and path of what would be restored.
fn shown(preview: &RollbackPreview) -> Vec<String> {
    preview.restore.iter().map(|r| format!("{} {} {}", r.plan, r.step, r.name)).collect()
}

#[test]
fn a_preview_tells_what_the_rollback_then_does_and_changes_nothing() {
    let (host, mut log, trees) = three();
    let (tree, records) = (host.tree(true), host.records());
    let preview = log.preview_where(|_| true, &[]);
    assert_eq!((host.tree(true), host.records()), (tree, records));
    assert!(preview.left.is_empty() && preview.damage.is_none());
    assert_eq!(
        shown(&preview),
        [
            "b/files b/files /etc/b-files",
            "b/files replace /etc/existing",
            "b/run b/run /etc/b-run",
            "b/run replace /etc/existing",
            "a/run create /etc/a/b/made",
            "a/run replace /etc/existing",
            "a/run value /sys/class/x/value",
        ]
    );
    let report = log.rollback_where(|_| true);
    let steps: Vec<_> = preview.restore.iter().map(|r| r.step.clone()).collect();
    assert_eq!(report.restored, steps);
    assert_eq!(host.tree(true), trees[0]);
}

#[test]
fn conflicts_are_previewed_with_three_states() {
    let (host, mut log, _) = three();
    fs::write(host.root.join("etc/existing"), "theirs").unwrap();
    let preview = log.preview_where(|entry| entry.plan.starts_with("b/"), &[]);
    let report = log.rollback_where(|entry| entry.plan.starts_with("b/"));
    assert_eq!(preview.left, report.left);
    let [Left::Conflict(last), Left::Conflict(_)] = &preview.left[..] else { panic!("{preview:?}") };
    let text = |state: &State| match state {
        State::File(file) => String::from_utf8_lossy(&file.bytes).into_owned(),
        other => other.to_string(),
    };
    assert_eq!(
        (text(&last.old), text(&last.ours), text(&last.present)),
        ("second".into(), "third".into(), "theirs".into())
    );
}

#[test]
fn plans_of_a_prefix_are_rolled_back() {
    let (host, mut log, trees) = three();
    assert_eq!(log.rollback_where(|entry| entry.plan.starts_with("c/")), RollbackReport::default());
    assert!(log.rollback_where(|entry| entry.plan.starts_with("b/")).is_complete());
    assert_eq!(host.tree(true), trees[1]);
    assert!(log.rollback_where(|entry| entry.plan.starts_with("a/")).is_complete());
    assert_eq!(host.tree(true), trees[0]);
}

#[test]
fn a_single_plan_is_rolled_back() {
    let (host, mut log, _) = three();
    let only = |entry: &Entry| entry.plan == "b/run";
    let preview = log.preview_where(only, &[]);
    assert_eq!(shown(&preview), ["b/run b/run /etc/b-run"]);
    let report = log.rollback_where(only);
    // The third plan has changed the file again, so the second one's change cannot be rolled back.
    assert!(matches!(&report.left[..], [Left::Conflict(conflict)] if conflict.name == "/etc/existing"));
    assert_eq!(report.restored, ["b/run"]);
    assert!(!host.root.join("etc/b-run").exists() && host.root.join("etc/b-files").exists());
}
