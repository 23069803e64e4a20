//! One failing operation at each place, in apply and in rollback, on a tree that lacks the directories of lowlat's
//! files, including its own state.

use super::super::*;
use super::bench::{Bench, differences, is_root};
use crate::StateDir;
use lowlat_plan::outcome::RollbackOutcome;
use lowlat_settings::change::Target;
use lowlat_undo::Faults;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const EPERM: i32 = 1;
const EIO: i32 = 5;

/// A tree without /var, /etc/systemd and /etc/sysctl.d, and a plan of one change of each kind.
fn bare() -> Bench {
    let mut bench = Bench::new();
    for gone in ["var", "etc/systemd", "etc/sysctl.d"] {
        let _ = fs::remove_dir_all(bench.tree().join(gone));
    }
    // These tests are not about reading the host.
    for gone in ["sys/devices", "sys/class", "proc/irq", "proc/1"] {
        let _ = fs::remove_dir_all(bench.tree().join(gone));
    }
    bench.host = bench.site(Faults::none()).snapshot();
    let mut kinds: Vec<std::mem::Discriminant<Target>> = Vec::new();
    bench.plan.changes.retain(|change| {
        let kind = std::mem::discriminant(&change.target);
        let is_first = !kinds.contains(&kind);
        kinds.push(kind);
        is_first
    });
    bench
}

/// The bench's site, with lowlat's own files in the tree, and with faults there too.
fn site(bench: &Bench, faults: &Faults) -> Site {
    let mut site = bench.site(faults.clone());
    site.state = StateDir::below(&bench.tree());
    site.state.faults = faults.clone();
    site
}

/// Every file outside of /proc, /sys and /run.
fn files(bench: &Bench) -> BTreeMap<String, String> {
    let is_on_disk = |path: &String| !["proc/", "sys/", "run/"].iter().any(|of| path.starts_with(of));
    bench.files().into_iter().filter(|(path, _)| is_on_disk(path)).collect()
}

fn roll_back(bench: &Bench, faults: &Faults) -> Result<RollbackOutcome, FlowError> {
    rollback(&site(bench, faults), &RollbackRequest::default())
}

/// Rolls back with `faults`, then without. A rollback reported as complete must be complete.
fn ends_as_it_started(bench: &Bench, start: &BTreeMap<String, String>, faults: &Faults, what: &str) {
    let first = roll_back(bench, faults);
    if first.as_ref().is_ok_and(RollbackOutcome::is_complete) {
        assert_eq!(differences(start, &files(bench)), Vec::<String>::new(), "{what}: {first:#?}");
        return;
    }
    let outcome = roll_back(bench, &Faults::none()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(outcome.is_complete(), "{what}: {outcome:#?}");
    assert_eq!(differences(start, &files(bench)), Vec::<String>::new(), "{what}");
}

#[test]
fn directories_have_a_system_s_modes_and_go_with_the_rollback() {
    if !is_root() {
        return;
    }
    let bench = bare();
    let start = files(&bench);
    bench.apply(&site(&bench, &Faults::none()), ApplyOptions::default()).unwrap();
    let modes =
        [("var", 0o755), ("var/lib", 0o755), ("var/lib/lowlat", 0o700), ("etc/systemd/system", 0o755)];
    for (path, mode) in modes.into_iter().chain([("etc/systemd", 0o755), ("etc/sysctl.d", 0o755)]) {
        let found = fs::metadata(bench.tree().join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(found, mode, "{path}: {found:o}");
    }
    ends_as_it_started(&bench, &start, &Faults::none(), "no fault");
    // A rollback of nothing leaves nothing behind.
    assert!(roll_back(&bench, &Faults::none()).unwrap().is_complete());
    assert_eq!(differences(&start, &files(&bench)), Vec::<String>::new());
    // Files of others in lowlat's directories stay, and are reported once.
    bench.apply(&site(&bench, &Faults::none()), ApplyOptions::default()).unwrap();
    bench.put("var/log/theirs", "text");
    let outcome = roll_back(&bench, &Faults::none()).unwrap();
    assert!(outcome.directories_left.iter().any(|path| path.ends_with("/var")), "{outcome:#?}");
    assert_eq!(bench.text("var/log/theirs"), "text");
    assert!(roll_back(&bench, &Faults::none()).unwrap().is_complete());
}

#[test]
fn an_error_anywhere_in_apply_leaves_nothing_behind() {
    if !is_root() {
        return;
    }
    let bench = bare();
    let start = files(&bench);
    for at in 0.. {
        let faults = Faults::error_at(at, EIO);
        let applied = bench.apply(&site(&bench, &faults), ApplyOptions::default());
        let is_over = faults.count() <= at;
        if let Err(error) = applied {
            let error = error.to_string();
            let is_back = differences(&start, &files(&bench)).is_empty();
            assert!(is_back || !error.contains("all changes were rolled back"), "{at}: {error}");
        }
        ends_as_it_started(&bench, &start, &Faults::none(), &format!("EIO at {at} of apply"));
        if is_over {
            assert!(at > 150, "only {at} operations");
            break;
        }
    }
}

#[test]
fn an_error_anywhere_in_rollback_leaves_nothing_behind() {
    if !is_root() {
        return;
    }
    let bench = bare();
    let start = files(&bench);
    for at in 0.. {
        bench.apply(&site(&bench, &Faults::none()), ApplyOptions::default()).unwrap();
        let faults = Faults::error_at(at, EPERM);
        ends_as_it_started(&bench, &start, &faults, &format!("EPERM at {at} of rollback"));
        if faults.count() <= at {
            assert!(at > 60, "only {at} operations");
            break;
        }
    }
}
