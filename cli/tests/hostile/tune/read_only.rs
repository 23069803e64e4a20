//! Commands that only read: they create and change nothing, not even a lock.

use super::tree::{Family, Files, Tree, differences, is_root, said};

/// Without an answer, `apply` and `rollback` read first and then refuse.
const LOOKING: [&[&str]; 15] = [
    &["plan"],
    &["plan", "--json"],
    &["plan", "--profile", "guide-57037"],
    &["status"],
    &["status", "--json"],
    &["verify", "--no-ticks"],
    &["verify", "--no-ticks", "--json"],
    &["rollback", "--dry-run"],
    &["rollback", "--dry-run", "--json"],
    &["rollback", "--dry-run", "--run-time"],
    &["rollback"],
    &["apply"],
    &["export", "--format", "sysctl"],
    &["export", "--format", "shell"],
    &["export", "--format", "tuned"],
];

#[track_caller]
fn assert_unchanged(tree: &Tree, before: &Files, arguments: &[&str]) {
    let output = tree.tune(arguments);
    assert!(output.status.code().is_some_and(|code| code <= 3), "{arguments:?}: {}", said(&output));
    let changed = differences(before, &tree.all_files());
    assert_eq!(changed, Vec::<String>::new(), "{arguments:?}: {}", said(&output));
}

#[test]
fn on_a_host_that_lowlat_never_changed() {
    let tree = Tree::new(Family::Debian);
    let before = tree.all_files();
    for arguments in LOOKING.into_iter().chain([&["confirm"][..], &["apply", "--at-boot"]]) {
        assert_unchanged(&tree, &before, arguments);
    }
}

#[test]
fn on_a_host_with_a_plan_in_force() {
    let Some((tree, _)) = Tree::applied(Family::Debian) else { return };
    let before = tree.all_files();
    for arguments in LOOKING {
        assert_unchanged(&tree, &before, arguments);
    }
    // A missing lock is not created.
    std::fs::remove_file(tree.path("var/lib/lowlat/undo/lock")).unwrap();
    let before = tree.all_files();
    for arguments in LOOKING {
        assert_unchanged(&tree, &before, arguments);
    }
}

#[test]
fn on_a_host_whose_plan_was_rolled_back() {
    if !is_root() {
        return;
    }
    let Some((tree, start)) = Tree::applied(Family::Debian) else { return };
    assert_eq!(tree.tune(&["rollback", "--yes"]).status.code(), Some(0));
    assert_eq!(differences(&start, &tree.files()), Vec::<String>::new());
    let before = tree.all_files();
    for arguments in LOOKING {
        assert_unchanged(&tree, &before, arguments);
    }
}
