//! An undo log that was truncated, exchanged or deleted after the plan in force was recorded.

use super::super::*;
use super::bench::{Bench, differences, is_root};
use lowlat_undo::Faults;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn accepted() -> RollbackRequest {
    RollbackRequest { accept_damage: true, ..RollbackRequest::default() }
}

fn segment(bench: &Bench) -> std::path::PathBuf {
    bench.state().join("undo/segment-00000001")
}

/// Asserts that a rollback changes nothing if the log is not the recorded one.
#[track_caller]
fn assert_refused(bench: &Bench, site: &Site, what: &str) {
    let (applied, note) = (bench.files(), fs::read(bench.state().join("in-force.json")).unwrap());
    let outcome = rollback(site, &RollbackRequest::default()).unwrap();
    assert!(!outcome.is_complete() && outcome.is_preview, "{what}: {outcome:#?}");
    assert!(
        outcome.damage.as_ref().is_some_and(|damage| damage.contains("in-force.json")),
        "{what}: {outcome:#?}"
    );
    assert_eq!(differences(&applied, &bench.files()), Vec::<String>::new(), "{what}");
    assert_eq!(fs::read(bench.state().join("in-force.json")).unwrap(), note, "{what}");
    assert!(status(site).unwrap().damage.is_some(), "{what}");
    for error in [
        bench.ready(site, ApplyOptions::default()).map(drop).unwrap_err(),
        apply_again(site).map(drop).unwrap_err(),
        confirm(site).map(drop).unwrap_err(),
    ] {
        let error = error.to_string();
        assert!(error.contains("undo log") && error.contains("lowlat tune rollback"), "{what}: {error}");
    }
    assert_eq!(differences(&applied, &bench.files()), Vec::<String>::new(), "{what}");
}

#[test]
fn a_log_cut_anywhere_is_noticed_and_what_is_left_can_be_restored() {
    if !is_root() {
        return;
    }
    let whole = fs::metadata(segment(&Bench::applied(ApplyOptions::default()).0)).unwrap().len();
    for sixth in 0..6 {
        let cut = whole * sixth / 6;
        let (bench, site, start) = Bench::applied(ApplyOptions::default());
        fs::File::options().write(true).open(segment(&bench)).unwrap().set_len(cut).unwrap();
        assert_refused(&bench, &site, &format!("cut at {cut}"));
        // The remaining records restore their changes. The others are reported until they no longer exist.
        let outcome = rollback(&site, &accepted()).unwrap();
        let left = differences(&start, &bench.files());
        assert!(!outcome.is_complete() && outcome.failures.is_empty(), "cut at {cut}: {outcome:#?}");
        let of_files = |line: &&String| {
            let is_dir = line.split(':').next().is_some_and(|path| path.ends_with('/'));
            !is_dir && (line.starts_with("etc/") || line.starts_with("boot/"))
        };
        let unnamed = |line: &&String| {
            !outcome
                .remaining
                .iter()
                .any(|one| line.starts_with(&format!("{}:", one.name.trim_start_matches('/'))))
        };
        assert_eq!(left.iter().filter(of_files).find(unnamed), None, "cut at {cut}: {outcome:#?}");
        let again = rollback(&site, &RollbackRequest::default()).unwrap();
        assert_eq!(again.remaining, outcome.remaining, "cut at {cut}");
        for one in &outcome.remaining {
            let path = bench.tree().join(one.name.trim_start_matches('/'));
            match start.get(one.name.trim_start_matches('/')) {
                Some(_) => fs::write(path, "as from a backup").unwrap(),
                None => drop(fs::remove_file(path)),
            }
        }
        bench.put("run/units/sleepless.service", "active, enabled");
        let last = rollback(&site, &RollbackRequest::default()).unwrap();
        assert!(last.is_complete(), "cut at {cut}: {last:#?}");
        assert!(!bench.state().join("lost.json").exists());
        assert!(bench.ready(&site, ApplyOptions::default()).is_ok(), "cut at {cut}");
    }
}

#[test]
fn a_log_that_is_missing_or_another_one_is_noticed() {
    if !is_root() {
        return;
    }
    let (bench, site, _) = Bench::applied(ApplyOptions::default());
    let undo = bench.state().join("undo");
    fs::remove_dir_all(&undo).unwrap();
    let outcome =
        rollback(&site, &RollbackRequest { is_preview: true, ..RollbackRequest::default() }).unwrap();
    assert!(!outcome.is_complete() && outcome.remaining.len() > 3, "{outcome:#?}");
    assert!(!undo.exists(), "a preview makes nothing");
    assert_refused(&bench, &site, "deleted");
    // A log of the same length that another host wrote.
    let (other, ..) = Bench::applied(ApplyOptions::default());
    fs::remove_dir_all(&undo).unwrap();
    copy(&other.state().join("undo"), &undo);
    assert_refused(&bench, &site, "exchanged");
    // If the note is lost too, lowlat's units are still reported.
    fs::remove_dir_all(bench.state()).unwrap();
    let outcome = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(outcome.remaining.iter().any(|one| one.name.ends_with("/lowlat.service")), "{outcome:#?}");
    assert!(!outcome.is_complete());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
}

/// The host may be unreachable, so the dead-man switch restores what it can.
#[test]
fn the_dead_man_switch_restores_what_a_cut_log_knows_and_stays() {
    if !is_root() {
        return;
    }
    let within = Some(std::time::Duration::from_secs(600));
    let (bench, site, _) = Bench::applied(ApplyOptions { confirm_within: within, ..ApplyOptions::default() });
    let length = fs::metadata(segment(&bench)).unwrap().len();
    fs::File::options().write(true).open(segment(&bench)).unwrap().set_len(length * 2 / 3).unwrap();
    let outcome = rollback_unconfirmed(&site).unwrap().unwrap();
    assert!(!outcome.restored.is_empty() && !outcome.is_complete(), "{outcome:#?}");
    assert!(!site.state.in_force().unwrap().unwrap().0.is_complete);
    assert!(bench.tree().join("etc/systemd/system/lowlat-confirm.timer").exists());
    assert!(status(&site).unwrap().damage.is_some(), "what is missing is still known");
}

/// The note does not contain the end of the log.
#[test]
fn a_note_that_is_not_sealed_opens() {
    if !is_root() {
        return;
    }
    for is_deleted in [false, true] {
        let (bench, site, start) = Bench::applied(ApplyOptions::default());
        let path = bench.state().join("in-force.json");
        let mut note: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert!(note.as_object_mut().unwrap().remove("undo_log").is_some());
        fs::write(&path, note.to_string()).unwrap();
        assert!(status(&site).unwrap().damage.is_none());
        if is_deleted {
            fs::remove_dir_all(bench.state().join("undo")).unwrap();
            assert_refused(&bench, &site, "deleted");
        } else {
            apply_again(&site).unwrap();
            assert!(fs::read_to_string(&path).unwrap().contains("undo_log"), "noted from now on");
            assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
            assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
        }
    }
}

/// A process that is killed between a record and the note leaves a log that is longer than noted. That is no damage.
#[test]
fn a_log_that_is_longer_than_noted_is_whole() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let start = bench.files();
    for at in (5..).step_by(23) {
        let faults = Faults::crash_at(at);
        let applied = bench.apply(&bench.site(faults), ApplyOptions::default());
        let site = bench.site(Faults::none());
        assert!(status(&site).unwrap().damage.is_none(), "operation {at}");
        // The service of the next boot and a rollback append as well.
        if applied.is_ok() {
            let _ = apply_again(&bench.site(Faults::crash_at(at % 17)));
            assert!(status(&site).unwrap().damage.is_none(), "operation {at}");
        }
        let _ = rollback(&bench.site(Faults::crash_at(at)), &RollbackRequest::default());
        assert!(status(&site).unwrap().damage.is_none(), "operation {at}");
        assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete(), "operation {at}");
        assert_eq!(differences(&start, &bench.files()), Vec::<String>::new(), "operation {at}");
        if applied.is_ok() {
            return;
        }
    }
}
