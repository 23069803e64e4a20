//! Changes reverted by a restart are recorded as expired, and nothing is touched.

use super::{super::*, Host, host::file};
use proptest::prelude::*;
use std::fs;

const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

/// A host in its first boot.
fn host() -> Host {
    let host = Host::new();
    fs::create_dir_all(host.root.join("proc/sys/kernel/random")).unwrap();
    host.put(BOOT_ID, "first\n", 0o444);
    host
}

/// The host is restarted: the value is the kernel's own again, or one that another tool sets at boot.
fn restart(host: &Host, value: &str) {
    host.put(BOOT_ID, "second\n", 0o444);
    host.put("sys/devices/x/value", value, 0o644);
}

/// A value that a file set again at boot is lowlat's; one that something else set is kept, and reported.
#[test]
fn after_a_restart_lowlats_value_is_restored_and_others_stay() {
    for (found, then, restored, expired, different) in
        [("0\n", "0\n", 6, 0, 0), ("7\n", "0\n", 7, 0, 0), ("55\n", "55\n", 6, 1, 1)]
    {
        let host = host();
        let (start, plan) = (host.tree(true), host.plan());
        host.open(Faults::none()).unwrap().apply("p", &plan, OnFailure::RollBack).unwrap();
        restart(&host, found);
        let mut log = host.open(Faults::none()).unwrap();
        assert_eq!(log.expire().unwrap(), []);
        let preview = log.preview_where(|_| true, &[]);
        let report = log.rollback_where(|_| true);
        assert!(report.is_complete(), "{found}: {report}");
        assert_eq!(
            (report.restored.len(), report.expired.len(), report.different.len()),
            (restored, expired, different),
            "{found}: {report}"
        );
        assert_eq!((&preview.expired, preview.restore.len()), (&report.expired, restored));
        for conflict in &report.different {
            let value = |text: &str| State::Value(text.to_owned());
            let states = (&conflict.old, &conflict.ours, &conflict.present, conflict.is_after_reboot);
            assert_eq!(states, (&value("0\n"), &value("7\n"), &value("55\n"), true));
        }
        assert!(log.history().entries.is_empty());
        let present = fs::read_to_string(host.root.join("sys/devices/x/value")).unwrap();
        assert_eq!(present, then, "found {found}");
        restart(&host, "0\n");
        host.put(BOOT_ID, "first\n", 0o444);
        assert_eq!(host.tree(true), start);
    }
}

/// The first value stays recorded over any number of boots, and so do those of layers above it.
#[test]
fn the_first_value_is_kept_as_long_as_a_plan_is_in_force() {
    let host = host();
    let value = |host: &Host, to: &str| {
        let target = TargetSpec::value("/sys/class/x/value", Comparison::Exact);
        host.step("value", target, State::Value(to.to_owned()))
    };
    let apply = |plan: &str, to: &str| {
        let step = value(&host, to);
        host.open(Faults::none()).unwrap().apply(plan, &[step], OnFailure::RollBack).unwrap()
    };
    apply("a/run", "1");
    apply("b/run", "2");
    for boot in 0..3 {
        // A file sets it in every other boot.
        restart(&host, if boot % 2 == 0 { "2\n" } else { "0\n" });
        host.put(BOOT_ID, &format!("boot {boot}\n"), 0o444);
        assert_eq!(apply(&format!("b/boot-{boot}"), "2").done.len(), boot % 2, "boot {boot}");
        let log = host.open(Faults::none()).unwrap();
        assert!(log.history().entries.len() <= 3, "{:?}", log.history());
    }
    let present = || fs::read_to_string(host.root.join("sys/devices/x/value")).unwrap();
    let mut log = host.open(Faults::none()).unwrap();
    // Until the next boot, twice: the values are as before, and their records stay.
    for restored in [2, 0] {
        let report = log.rollback_until_boot(|_| true);
        assert_eq!((report.restored.len(), report.is_complete()), (restored, true), "{report}");
        assert_eq!((present().trim(), log.history().entries.len()), ("0", 2));
    }
    drop(log);
    restart(&host, "2\n");
    host.put(BOOT_ID, "last\n", 0o444);
    let mut log = host.open(Faults::none()).unwrap();
    assert_eq!(log.rollback_where(|entry| entry.plan.starts_with('b')).restored.len(), 1);
    assert_eq!(present().trim(), "1");
    assert_eq!(log.rollback_where(|_| true).restored.len(), 1);
    assert_eq!((present().trim(), log.history().entries.len()), ("0", 0));
}

/// The number of an interrupt means another one in the next boot.
#[test]
fn records_without_a_lasting_name_expire_once() {
    let host = host();
    fs::create_dir_all(host.root.join("proc/irq/9")).unwrap();
    host.put("proc/irq/9/smp_affinity_list", "0-3\n", 0o644);
    let target = TargetSpec::value("/proc/irq/9/smp_affinity_list", Comparison::Exact);
    let mut plan = host.plan();
    plan.push(host.step("irq", target, State::Value("0".to_owned())));
    let mut log = host.open(Faults::none()).unwrap();
    log.apply("p", &plan, OnFailure::RollBack).unwrap();
    assert!(log.expire().unwrap().is_empty(), "the same boot");
    drop(log);
    restart(&host, "0\n");
    let mut log = host.open(Faults::none()).unwrap();
    let gone: Vec<String> = log.expire().unwrap().into_iter().map(|entry| entry.step).collect();
    assert_eq!((gone, log.history().entries.len()), (vec!["irq".to_owned()], 7));
    assert!(log.expire().unwrap().is_empty());
    drop(log);
    let log = host.open(Faults::none()).unwrap();
    assert_eq!(log.history().entries.len(), 7, "read again from the records");
}

#[test]
fn the_same_plan_sets_the_value_again_in_the_next_boot() {
    let host = host();
    let plan = host.plan();
    host.open(Faults::none()).unwrap().apply("p", &plan, OnFailure::RollBack).unwrap();
    restart(&host, "3\n");
    // Prepared for the current state of the host.
    let again: Vec<UndoStep> =
        plan.iter().map(|step| host.step(&step.id, step.target.clone(), step.new.clone())).collect();
    let mut log = host.open(Faults::none()).unwrap();
    let report = log.apply("p", &again, OnFailure::SkipRefused).unwrap();
    assert_eq!(report.done, ["value"]);
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(fs::read_to_string(host.root.join("sys/devices/x/value")).unwrap(), "3\n");
}

#[test]
fn a_plan_that_a_crash_cut_off_before_the_restart_does_not_block_others() {
    let mut is_seen = false;
    for at in 0.. {
        let host = host();
        let value = &host.plan()[..1];
        let got_through = host
            .open(Faults::crash_at(at))
            .is_ok_and(|mut log| log.apply("p", value, OnFailure::RollBack).is_ok());
        if got_through {
            break;
        }
        restart(&host, "0\n");
        let mut log = host.open(Faults::none()).unwrap();
        let was_open = log.history().is_open("p") && !log.history().entries.is_empty();
        is_seen |= was_open;
        let report = log.apply("q", value, OnFailure::RollBack).unwrap();
        assert_eq!(report.done.len(), 1, "crash at {at}");
        assert!(!was_open || !log.history().is_open("p"));
        assert!(log.rollback_where(|_| true).is_complete());
    }
    assert!(is_seen);
}

#[test]
fn a_boot_that_is_not_known_forgets_nothing() {
    let host = Host::new();
    host.open(Faults::none()).unwrap().apply("p", &host.plan(), OnFailure::RollBack).unwrap();
    fs::create_dir_all(host.root.join("proc/sys/kernel/random")).unwrap();
    host.put(BOOT_ID, "second\n", 0o444);
    let mut log = host.open(Faults::none()).unwrap();
    assert!(log.expire().unwrap().is_empty());
    assert_eq!(log.rollback_where(|_| true).restored.len(), 7);
}

#[test]
fn crash_at_every_point_of_the_rollback_in_the_next_boot() {
    for at in 0.. {
        let host = host();
        let (start, plan) = (host.tree(true), host.plan());
        host.open(Faults::none()).unwrap().apply("p", &plan, OnFailure::RollBack).unwrap();
        restart(&host, "0\n");
        let got_through = host
            .open(Faults::crash_at(at))
            .map(|mut log| log.rollback_where(|_| true))
            .is_ok_and(|report| report.is_complete() && report.not_recorded.is_none());
        let report = host.open(Faults::none()).unwrap().rollback_where(|_| true);
        assert!(report.is_complete(), "crash at {at}: {report}");
        host.put(BOOT_ID, "first\n", 0o444);
        assert_eq!(host.tree(true), start, "crash at {at}");
        if got_through {
            assert!(at > 20);
            return;
        }
    }
}

/// An event on a host.
#[derive(Debug, Clone)]
enum Happening {
    /// A plan's value and files are set; the process may die at some operation.
    Apply { plan: u8, text: String, crash: Option<u64> },
    /// Everything is rolled back; the process may die.
    RollBack { crash: Option<u64> },
    /// The host is restarted, with this value.
    Restart { value: u8 },
}

fn happening() -> impl Strategy<Value = Happening> {
    let crash = || prop_oneof![2 => Just(None), 1 => (0u64..60).prop_map(Some)];
    prop_oneof![
        4 => (0u8..3, "[a-z]{0,4}", crash()).prop_map(|(plan, text, crash)| Happening::Apply { plan, text, crash }),
        1 => crash().prop_map(|crash| Happening::RollBack { crash }),
        2 => (0u8..4).prop_map(|value| Happening::Restart { value }),
    ]
}

const VALUE: &str = "sys/devices/x/value";

/// Whatever happened: after a final rollback, files are as at the start, and the value is as this boot found
/// it.
fn live_through(happenings: &[Happening]) -> Result<(), TestCaseError> {
    let host = host();
    let start = host.tree(true);
    let mut found = fs::read_to_string(host.root.join(VALUE)).unwrap();
    for (number, happening) in happenings.iter().enumerate() {
        let faults = |crash: &Option<u64>| crash.map_or_else(Faults::none, Faults::crash_at);
        match happening {
            Happening::Restart { value } => {
                found = format!("{value}\n");
                // The kernel creates its attributes again; only this tree can have a leftover beside one.
                fs::remove_dir_all(host.root.join("sys/devices/x")).unwrap();
                fs::create_dir(host.root.join("sys/devices/x")).unwrap();
                host.put(VALUE, &found, 0o644);
                host.put(BOOT_ID, &format!("boot {number}\n"), 0o444);
            }
            Happening::RollBack { crash } => {
                let _ = host.open(faults(crash)).map(|mut log| log.rollback_where(|_| true));
            }
            Happening::Apply { plan, text, crash } => {
                let value = TargetSpec::value("/sys/class/x/value", Comparison::Exact);
                let steps = [
                    host.step("value", value, State::Value(text.clone())),
                    host.step("existing", TargetSpec::file("/etc/existing"), file(text, 0o600)),
                    host.step("new", TargetSpec::file(format!("/etc/{plan}/new")), file(text, 0o600)),
                ];
                // Each apply is a separate plan, like each boot's. An open plan after a crash blocks later
                // ones.
                let id = format!("{plan}/{number}");
                let _ = host
                    .open(faults(crash))
                    .and_then(|mut log| log.apply(&id, &steps, OnFailure::SkipRefused));
            }
        }
        let log = host.open(Faults::none()).unwrap();
        prop_assert_eq!(log.damage(), None);
        prop_assert!(log.preview_where(|_| true, &[]).left.is_empty());
    }
    let mut log = host.open(Faults::none()).unwrap();
    let preview = log.preview_where(|_| true, &[]);
    let report = log.rollback_where(|_| true);
    prop_assert!(report.is_complete(), "{}", report);
    let restored: Vec<String> = preview.restore.into_iter().map(|restoration| restoration.step).collect();
    prop_assert_eq!(
        (restored, preview.unchanged, preview.expired),
        (report.restored, report.unchanged, report.expired)
    );
    prop_assert_eq!(fs::read_to_string(host.root.join(VALUE)).unwrap(), found);
    host.put(VALUE, "0\n", 0o644);
    host.put(BOOT_ID, "first\n", 0o444);
    prop_assert_eq!(host.tree(true), start);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_life_can_be_rolled_back(happenings in prop::collection::vec(happening(), 1..12)) {
        live_through(&happenings)?;
    }
}

/// Records byte for byte as in logs of the first version; the names in them never change.
#[test]
fn old_records_stay_readable() {
    let target = r#""target":{"kind":"value","name":"/sys/x","comparison":"cpu_list"}"#;
    let events = [
        r#""begin""#.to_owned(),
        format!(
            r#"{{"intend":{{"step":"s",{target},"old":"absent","new":{{"value":"1"}},"directories":["/d"],"again":false}}}}"#
        ),
        r#"{"done":{"step":"s","read_back":{"value":"1\n"}}}"#.to_owned(),
        r#"{"failed":{"step":"s","reason":"no","present":null}}"#.to_owned(),
        r#"{"undone":{"step":"s"}}"#.to_owned(),
        r#""end""#.to_owned(),
    ];
    for event in events {
        let text = format!(r#"{{"plan":"p","boot":"b","unix_ms":1,"event":{event}}}"#);
        let record: Record = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
    }
}
