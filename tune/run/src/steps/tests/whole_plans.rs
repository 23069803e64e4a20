//! Every captured host, with both profiles and every risk accepted: prepared, applied to its tree, judged again, rolled
//! back.

use super::{
    super::*,
    host::{Host, HostWithRole},
};
use lowlat_host::Profile;
use lowlat_settings::change::Target;
use lowlat_undo::{Faults, OnFailure, State};
use std::collections::BTreeSet;

const HOSTS: [&str; 5] = ["epyc-7f32-2x8", "epyc-7f32-stock", "one-cpu", "smt-2s", "xeon6-e-2x4-modules"];
const PARTS: [(Part, &str); 4] = [
    (Part::Files, "p/files"),
    (Part::Tuned, "p/tuned"),
    (Part::Queues, "p/queues"),
    (Part::RunTime, "p/run"),
];

fn steps(preparation: &Preparation) -> Vec<UndoStep> {
    preparation.steps.iter().map(|prepared| prepared.step.clone()).collect()
}

/// Applies the parts in their order, with the host read again before each. Returns changes that became steps.
fn apply(host: &Host, plan: &Plan, log: &mut UndoLog, names: &str) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    for (part, plan_id) in PARTS {
        let preparation = prepare(plan, &host.snapshot(), log, part).unwrap();
        // A capture without systemd's answer has no units that could be stopped.
        let of_no_unit = |left: &&NotPrepared| {
            let change = plan.changes.get(left.change);
            host.has_units() || !change.is_some_and(|change| is_of_unit(&change.target))
        };
        assert_eq!(preparation.left.iter().find(of_no_unit), None, "{names}");
        assert_eq!(preparation.notes, [], "{names}");
        let report = log.apply(plan_id, &steps(&preparation), OnFailure::SkipRefused).unwrap();
        assert_eq!(report.failed, [], "{names}");
        for prepared in preparation.steps {
            seen.extend(prepared.also);
            seen.insert(prepared.change);
        }
    }
    seen
}

/// True if only the next boot shows the effect: parameters, and modules that are no longer loaded.
fn is_of_boot(target: &Target) -> bool {
    match target {
        Target::CommandLine { .. } => true,
        Target::OwnedFile { path } => path.starts_with("/etc/modprobe.d/"),
        _ => false,
    }
}

fn is_of_unit(target: &Target) -> bool {
    matches!(target, Target::Service { .. })
}

#[test]
fn applied_they_make_their_rows_good_and_rolled_back_the_tree_is_the_same() {
    for (name, profile) in HOSTS.into_iter().flat_map(|name| Profile::ALL.map(|profile| (name, profile))) {
        let Some(host) = Host::captured(name) else { return };
        let names = format!("{name}, {profile}");
        let start = host.tree();
        let before = HostWithRole::of(host.snapshot(), profile);
        let plan = before.plan();
        let mut log = host.log();
        let seen = apply(&host, &plan, &mut log, &names);
        // Each change is a step, and each row judged again is good.
        let verdicts = HostWithRole::of(host.snapshot(), profile).verdicts();
        let of_boot: BTreeSet<&String> = plan
            .changes
            .iter()
            .filter(|change| is_of_boot(&change.target))
            .flat_map(|c| &c.settings)
            .collect();
        let mut wrong = Vec::new();
        for (place, change) in plan.changes.iter().enumerate().filter(|(_, c)| !is_of_boot(&c.target)) {
            if is_of_unit(&change.target) && !host.has_units() {
                continue;
            }
            assert!(seen.contains(&place), "{names}: {:?} became no step", change.target);
            for id in &change.settings {
                let (verdict, seen) = &verdicts[id.as_str()];
                let is_in_part = plan.left_out.iter().any(|left| left.setting == *id) || of_boot.contains(id);
                if verdict.is_fault() && !is_in_part {
                    wrong.push(format!("{id} is {verdict:?}: {seen}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{names}: {wrong:#?}");
        // Applying again changes nothing, not even the log.
        let (tree, history) = (host.tree(), log.history().clone());
        let again = apply(&host, &plan, &mut log, &names);
        assert_eq!((host.tree() == tree, log.history() == &history, again), (true, true, seen), "{names}");
        let report = log.rollback_where(|entry| entry.plan.starts_with("p/"));
        assert!(report.is_complete(), "{names}: {report}");
        assert_eq!(host.tree(), start, "{names}");
    }
}

/// The guide's own server: the tree must contain the values that the guide gives.
#[test]
fn the_guide_s_server_gets_the_guide_s_values() {
    let Some(host) = Host::captured("epyc-7f32-stock") else { return };
    let plan = HostWithRole::of(host.snapshot(), Profile::Guide57037).plan();
    apply(&host, &plan, &mut host.log(), "guide");
    for (path, wanted) in [
        ("/sys/devices/virtual/workqueue/cpumask", "0101"),
        ("/sys/devices/virtual/workqueue/writeback/cpumask", "0101"),
        ("/proc/sys/vm/stat_interval", "3600"),
        ("/proc/sys/kernel/watchdog_cpumask", "0,8"),
    ] {
        assert_eq!(host.text(path).trim_end(), wanted, "{path}");
    }
    let variables = host.text("/etc/tuned/cpu-partitioning-variables.conf");
    assert!(
        variables.contains("\nhousekeeping_cpus=0,8\n") && variables.contains("no_balance_cores=1-7,9-15\n")
    );
    let snapshot = host.snapshot();
    let fifo = snapshot.tasks.kernel_threads.iter().filter(|thread| thread.comm.starts_with("ksoftirqd/"));
    assert!(fifo.clone().count() == 16 && fifo.into_iter().all(|thread| thread.rt_priority == 2));
}

/// A crash at many of the operations; then the same plan is prepared again and completed, and finally rolled back.
#[test]
fn a_crash_within_a_plan_is_finished_by_preparing_it_again() {
    let Some(host) = Host::captured("epyc-7f32-stock") else { return };
    let start = host.tree();
    let plan = HostWithRole::of(host.snapshot(), Profile::Trading).plan();
    let mut at = 0;
    loop {
        let result = host.log_with(Faults::crash_at(at)).and_then(|mut log| {
            let preparation = prepare(&plan, &host.snapshot(), &log, Part::RunTime)?;
            log.apply("p/run", &steps(&preparation), OnFailure::SkipRefused)
        });
        let mut log = host.log();
        // The tree may be in an intermediate state: each newly prepared step starts from the present value.
        let again = prepare(&plan, &host.snapshot(), &log, Part::RunTime).unwrap();
        log.apply("p/run", &steps(&again), OnFailure::RollBack)
            .unwrap_or_else(|e| panic!("crash at {at}: {e}"));
        for prepared in &again.steps {
            let present = log.present(&prepared.step.target).unwrap();
            assert!(prepared.step.target.comparison.same(&present, &prepared.step.new), "crash at {at}");
        }
        let report = log.rollback_where(|_| true);
        assert!(report.is_complete(), "crash at {at}: {report}");
        assert_eq!(host.tree(), start, "crash at {at}");
        if result.is_ok() {
            assert!(at > 100);
            return;
        }
        at += 47;
    }
}

#[test]
fn old_states_are_what_the_log_reads() {
    let Some(host) = Host::captured("epyc-7f32-stock") else { return };
    let plan = HostWithRole::of(host.snapshot(), Profile::Trading).plan();
    let log = host.log();
    for (part, _) in PARTS {
        for Prepared { step, .. } in prepare(&plan, &host.snapshot(), &log, part).unwrap().steps {
            assert_eq!(step.old, log.present(&step.target).unwrap());
            assert!(!matches!(step.old, State::Absent) || step.target.kind == "file");
        }
    }
}
