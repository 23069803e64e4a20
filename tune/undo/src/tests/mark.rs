//! Marks of the log's end, and directories that are not lowlat's own.

use super::{
    super::*,
    Host,
    compact::{copy, with_long_past},
    damage::boundaries,
};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

fn inspect(host: &Host) -> Inspection {
    host.inspection()
}

#[test]
fn every_lost_record_is_noticed_and_every_new_one_is_fine() {
    let host = Host::new();
    let plan = host.plan();
    let mut log = host.open(Faults::none()).unwrap();
    let empty = log.mark();
    log.apply("p", &plan, OnFailure::RollBack).unwrap();
    let mark = log.mark();
    assert!(log.inspection().compare(&empty).is_ok() && log.inspection().compare(&mark).is_ok());
    log.rollback_where(|_| true);
    assert!(log.inspection().compare(&mark).is_ok(), "a longer log has all that the mark counts");
    drop(log);
    assert_eq!(inspect(&host).compare(&mark), Ok(()));
    let segment = host.log.join("segment-00000001");
    let bytes = fs::read(&segment).unwrap();
    let boundaries = boundaries(&bytes);
    for (records, cut) in (0u64..).zip(&boundaries) {
        fs::write(&segment, &bytes[..*cut]).unwrap();
        let is_whole = records >= mark.sequence;
        assert_eq!(inspect(&host).compare(&mark).is_ok(), is_whole, "{records} records");
    }
    fs::remove_file(&segment).unwrap();
    assert_eq!(inspect(&host).compare(&mark), Err(LogMismatch::Missing { expected: mark.sequence }));
    assert_eq!(inspect(&host).compare(&empty), Ok(()));
    // The same number of records, but different ones.
    host.open(Faults::none()).unwrap().apply("q", &plan, OnFailure::RollBack).unwrap();
    assert_eq!(inspect(&host).compare(&mark), Err(LogMismatch::Different { expected: mark.sequence }));
}

/// At each operation of a compaction, the mark of the old log or of the new one matches, and the old one
/// always does.
#[test]
fn a_mark_outlives_a_compaction_that_a_crash_cuts_anywhere() {
    let (host, _, start) = with_long_past();
    let mark = UndoLog::open(open(&host), host.writer(Faults::none()), |_| false).unwrap().mark();
    assert!(inspect(&host).compare(&mark).is_ok());
    let past = host.log.with_file_name("past");
    copy(&host.log, &past);
    let again = || {
        fs::remove_dir_all(&host.log).unwrap();
        copy(&past, &host.log);
    };
    for at in 0.. {
        let faults = Faults::crash_at(at);
        let _ = UndoLog::open(open(&host), host.writer(faults.clone()), |end| *end == mark);
        assert_eq!(inspect(&host).compare(&mark), Ok(()), "operation {at}");
        again();
        if faults.count() <= at {
            break;
        }
    }
    // Not if a mark counts records that would be removed.
    let older = LogMark { sequence: mark.sequence - 1, ..mark.clone() };
    let log = UndoLog::open(open(&host), host.writer(Faults::none()), |end| *end == older).unwrap();
    assert!(!log.is_compacted());
    drop(log);
    let mut log = UndoLog::open(open(&host), host.writer(Faults::none()), |end| *end == mark).unwrap();
    assert!(log.is_compacted());
    let renewed = log.mark();
    assert!(renewed.sequence > mark.sequence && log.inspection().compare(&mark).is_ok());
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(host.tree(true), start);
    assert!(log.inspection().compare(&renewed).is_ok());
}

fn open(host: &Host) -> PrivateDirectory {
    host.directory().unwrap()
}

#[test]
fn looking_at_a_log_makes_and_changes_nothing() {
    let host = Host::new();
    let plan = host.plan();
    host.open(Faults::none()).unwrap().apply("p", &plan, OnFailure::RollBack).unwrap();
    let (records, tree) = (host.records(), host.tree(true));
    fs::remove_file(host.log.join("lock")).unwrap();
    let mut log = UndoLog::look(open(&host), host.writer(Faults::none())).unwrap();
    assert!(log.preview_where(|_| true, &[]).left.is_empty());
    assert!(matches!(log.close_where(|_, _| true), Ok(())), "nothing to append");
    let error = log.give_up_where(|_| true).unwrap_err().to_string();
    assert!(error.contains("the log was opened for reading"), "{error}");
    drop(log);
    let without_lock: Vec<_> = records.into_iter().filter(|(path, _)| !path.ends_with("lock")).collect();
    assert_eq!((host.records(), host.tree(true)), (without_lock, tree));
    // While another process changes it, it is not inspected.
    let held = host.open(Faults::none()).unwrap();
    assert!(matches!(UndoLog::look(open(&host), host.writer(Faults::none())), Err(UndoError::Locked { .. })));
    drop(held);
}

#[test]
fn links_and_directories_of_others_are_refused() {
    let host = Host::new();
    let elsewhere = host.root.parent().unwrap().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let victim = elsewhere.join("victim");
    fs::write(&victim, "theirs").unwrap();
    symlink(&elsewhere, &host.log).unwrap();
    let refused = |result: Result<UndoLog, UndoError>| match result {
        Err(UndoError::Host(error @ HostError::Unfit(_))) => error.to_string(),
        other => panic!("not refused: {other:?}"),
    };
    let error = refused(host.open(Faults::none()));
    assert!(error.contains("a symbolic link") && error.contains("\nhint: "), "{error}");
    fs::remove_file(&host.log).unwrap();
    for name in ["lock", "segment-00000001", "contents"] {
        fs::create_dir(&host.log).unwrap();
        fs::set_permissions(&host.log, fs::Permissions::from_mode(0o700)).unwrap();
        symlink(&victim, host.log.join(name)).unwrap();
        refused(host.open(Faults::none()));
        fs::remove_dir_all(&host.log).unwrap();
    }
    // A name that a write will use is replaced, and its target stays.
    fs::create_dir(&host.log).unwrap();
    fs::set_permissions(&host.log, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&victim, host.log.join("new.tmp")).unwrap();
    let plan = host.plan();
    host.open(Faults::none()).unwrap().apply("p", &plan, OnFailure::RollBack).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
    fs::set_permissions(&host.log, fs::Permissions::from_mode(0o770)).unwrap();
    let error = refused(host.open(Faults::none()));
    assert!(error.contains("mode 0770"), "{error}");
}
