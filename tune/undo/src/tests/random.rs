//! Random trees, random plans, random crashes.

use super::{
    super::*,
    Host,
    host::{file, me},
};
use proptest::prelude::*;

/// One name of a small set, so that plans and trees overlap.
fn path() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["/a", "/b", "/d/a", "/d/b", "/d/e/f/g", "/d/e/h", "/n/a", "/n/m/b"])
        .prop_map(str::to_owned)
}

fn state() -> impl Strategy<Value = State> {
    let (uid, gid) = me();
    let mode = prop::sample::select(vec![0o600, 0o644, 0o755, 0o4755, 0o444]);
    prop_oneof![
        3 => ("[a-z\n]{0,40}", mode).prop_map(|(text, mode)| file(&text, mode)),
        1 => Just(State::Absent),
        1 => "[a-z]{1,8}".prop_map(move |to| State::Link { to, uid, gid, mtime: None, context: None }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_plan_crashed_anywhere_can_be_finished_and_undone(
        tree in prop::collection::btree_map(path(), state(), 0..8),
        plan in prop::collection::btree_map(path(), state(), 1..8),
        second in prop::collection::btree_map(path(), state(), 0..4),
        crash in 0u64..150,
        back in 0u64..100,
    ) {
        let host = Host::empty();
        let writer = host.writer(Faults::none());
        for (path, state) in &tree {
            writer.write_file(path, state).unwrap();
        }
        let start = host.tree(true);
        let steps = |plan: &std::collections::BTreeMap<String, State>| {
            let step = |(path, new): (&String, &State)| host.step(path, TargetSpec::file(path), new.clone());
            plan.iter().map(step).collect::<Vec<_>>()
        };
        let first = steps(&plan);
        if let Ok(mut log) = host.open(Faults::crash_at(crash)) {
            let _ = log.apply("first", &first, OnFailure::RollBack);
        }
        let mut log = host.open(Faults::none()).unwrap();
        log.apply("first", &first, OnFailure::RollBack).unwrap();
        for step in &first {
            let present = writer.read_file(&step.target.name).unwrap();
            prop_assert!(Comparison::Exact.same(&present, &step.new));
        }
        let between = host.tree(true);
        log.apply("second", &steps(&second), OnFailure::RollBack).unwrap();
        // Applied again, nothing changes, not even the log.
        let records = host.records();
        prop_assert!(log.apply("second", &steps(&second), OnFailure::RollBack).unwrap().done.is_empty());
        prop_assert_eq!(records, host.records());
        if !second.is_empty() && log.history().plans.len() > 1 {
            log.rollback_where(|entry| entry.plan != "first");
            prop_assert_eq!(&host.tree(true), &between);
        }
        drop(log);
        if let Ok(mut log) = host.open(Faults::crash_at(back)) {
            log.rollback_where(|_| true);
        }
        let report = host.open(Faults::none()).unwrap().rollback_where(|_| true);
        prop_assert!(report.is_complete(), "{}", report);
        prop_assert_eq!(host.tree(true), start);
    }
}
