//! Compacting a long log loses nothing active, whenever the process or the power dies.

use super::{super::*, Host, damage::boundaries, host::file};
use proptest::prelude::*;
use std::{fs, path::Path};

/// A log with one active plan, and a long history of plans applied and rolled back.
pub(super) fn with_long_past() -> (Host, Vec<UndoStep>, String) {
    let host = Host::new();
    let (start, plan) = (host.tree(true), host.plan());
    let filling = "x".repeat(2_000);
    {
        let mut log = host.open(Faults::none()).unwrap();
        log.apply("kept", &plan, OnFailure::RollBack).unwrap();
        for boot in 0..60 {
            let name = format!("boot-{boot}");
            let text = format!("{boot} {filling}");
            let value = TargetSpec::value("/sys/class/x/value", Comparison::Words);
            let steps = [
                host.step("value", value, State::Value(text.clone())),
                host.step("file", TargetSpec::file("/etc/existing"), file(&text, 0o644)),
            ];
            log.apply(&name, &steps, OnFailure::RollBack).unwrap();
            assert!(log.rollback_where(|entry| entry.plan == name).is_complete());
        }
    }
    let length: usize = host.records().iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(length > 300 << 10, "{length} bytes are too few for a compaction");
    (host, plan, start)
}

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn segments(host: &Host) -> Vec<String> {
    let files = host.records().into_iter().map(|(path, _)| path.file_name().unwrap().to_owned());
    files.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with("segment-")).collect()
}

fn contents(host: &Host) -> usize {
    fs::read_dir(host.log.join("contents")).unwrap().count()
}

#[test]
fn what_is_in_force_is_all_that_is_left() {
    let (host, plan, start) = with_long_past();
    let before = host.inspection().history;
    assert!(contents(&host) > 60 && before.plans.len() == 61);
    let log = host.open(Faults::none()).unwrap();
    let after = log.history().clone();
    assert_eq!(after.entries, before.entries);
    assert_eq!(after.plans, before.plans[..1]);
    drop(log);
    assert_eq!(segments(&host), ["segment-00000002"]);
    assert!(contents(&host) <= 2 * plan.len(), "{}", contents(&host));
    // Opened again, it is unchanged and can be continued.
    let records = host.records();
    drop(host.open(Faults::none()).unwrap());
    assert_eq!(host.records()[1..], records[1..]);
    let mut log = host.open(Faults::none()).unwrap();
    let more = host.step("more", TargetSpec::file("/etc/more"), file("more", 0o644));
    log.apply("more", &[more], OnFailure::RollBack).unwrap();
    drop(log);
    let mut log = host.open(Faults::none()).unwrap();
    assert_eq!(log.history().plans.len(), 2);
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(host.tree(true), start);
}

#[test]
fn crash_or_error_at_every_operation_of_it() {
    let (host, _, start) = with_long_past();
    let history = host.inspection().history.entries;
    let past = host.log.with_file_name("past");
    copy(&host.log, &past);
    let end = host.tree(true);
    let enospc = rustix::io::Errno::NOSPC.raw_os_error();
    let kinds: [fn(u64, i32) -> Faults; 3] = [
        |at, _| Faults::crash_at(at),
        |at, errno| Faults::error_at(at, errno),
        |at, _| Faults::full_from(at),
    ];
    for faults in kinds {
        let mut is_done = false;
        for at in 0..400 {
            fs::remove_dir_all(&host.log).unwrap();
            copy(&past, &host.log);
            let faults = faults(at, enospc);
            let opened = host.open(faults.clone());
            // Records appended now must exist the next time, whichever segment is the log's.
            let step = host.step("later", TargetSpec::file("/etc/later"), file("later", 0o644));
            let applied = opened.and_then(|mut log| log.apply("later", &[step], OnFailure::RollBack));
            let found = host.inspection();
            assert_eq!(found.damage, None, "fault at {at}");
            assert_eq!(found.history.entries[..history.len()], history, "fault at {at}");
            if applied.is_ok() {
                let last = &found.history.entries.last().unwrap().step;
                assert_eq!(last, "later", "fault at {at}");
            }
            let mut log = host.open(Faults::none()).unwrap();
            assert_eq!(log.damage(), None);
            assert!(log.rollback_where(|entry| entry.plan != "kept").is_complete());
            assert_eq!(host.tree(true), end, "fault at {at}");
            assert!(!segments(&host).contains(&"segment-00000001".to_owned()), "fault at {at}: not removed");
            is_done = faults.count() < at;
            if is_done {
                break;
            }
        }
        assert!(is_done, "never got through");
    }
    let mut log = host.open(Faults::none()).unwrap();
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(host.tree(true), start);
}

#[test]
fn a_log_with_a_plan_in_progress_or_damage_is_untouched() {
    let (host, ..) = with_long_past();
    let segment = host.log.join("segment-00000001");
    let whole = fs::read(&segment).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    fs::write(&segment, &flipped).unwrap();
    assert!(host.open(Faults::none()).unwrap().damage().is_some());
    assert_eq!(fs::read(&segment).unwrap(), flipped);
    // Cut after the last plan's second step, before its end and the rollback of both.
    let boundaries = boundaries(&whole);
    fs::write(&segment, &whole[..boundaries[boundaries.len() - 4]]).unwrap();
    assert!(host.inspection().history.is_open("boot-59"));
    drop(host.open(Faults::none()).unwrap());
    assert_eq!(segments(&host), ["segment-00000001"]);
}

#[test]
fn damage_of_the_new_segment_is_reported() {
    let (host, ..) = with_long_past();
    drop(host.open(Faults::none()).unwrap());
    let segment = host.log.join("segment-00000002");
    let whole = fs::read(&segment).unwrap();
    for at in [0, 9, 20, 30, 33, 500, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 16;
        fs::write(&segment, &flipped).unwrap();
        assert!(host.inspection().damage.is_some(), "byte {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever steps are active and whatever their progress: after compaction they read the same.
    #[test]
    fn records_compacted_say_the_same(
        entries in prop::collection::vec((0usize..4, 0u8..3, "[a-z]{0,6}", any::<bool>()), 0..20),
    ) {
        let value = |text: &str| LoggedState::Value(text.to_owned());
        let mut history = History::default();
        let mut records = Vec::new();
        for (number, (plan, progress, text, is_again)) in entries.iter().enumerate() {
            let mut push = |event| records.push(Record {
                plan: format!("plan {plan}"),
                boot: format!("boot {}", number / 5),
                unix_ms: u64::try_from(number).unwrap(),
                event,
            });
            let step = format!("step {text}");
            push(Event::Begin);
            push(Event::Intend {
                step: step.clone(),
                target: TargetSpec::value(format!("/sys/{text}"), Comparison::Words),
                old: value(text),
                new: LoggedState::Absent,
                directories: vec![format!("/{text}")],
                again: *is_again,
            });
            match progress {
                0 => {}
                1 => push(Event::Done { step, read_back: value("done") }),
                _ => push(Event::Failed { step, reason: String::new(), present: Some(value("odd")) }),
            }
            push(Event::End);
        }
        for record in records {
            history.fold(record);
        }
        let mut anew = History::default();
        for record in compact::records_of(&history) {
            anew.fold(record);
        }
        prop_assert_eq!(&anew.entries, &history.entries);
        let in_force = |plan: &&PlanEntry| history.entries.iter().any(|entry| entry.plan == plan.id);
        prop_assert_eq!(anew.plans, history.plans.iter().filter(in_force).cloned().collect::<Vec<_>>());
    }
}
