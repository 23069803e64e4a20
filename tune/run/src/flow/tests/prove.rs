//! Proofs over a tree whose values disturb a simulated measurement.

use super::super::*;
use super::bench::{Bench, differences, is_root};
use lowlat_host::snapshot::sysctl_path;
use lowlat_plan::proof::{PlanProof, ProofFigure, ProofSchedule, ProofUnit, ProofVerdict, ProvenSettings};
use lowlat_settings::change::Target as PlanTarget;
use lowlat_undo::Faults;
use std::{collections::BTreeMap, sync::atomic::AtomicBool, time::Duration};

/// A bench with a plan of ten sysctls and its file, and the path and wanted value of each sysctl.
fn ten() -> (Bench, Vec<(String, String)>) {
    let mut bench = Bench::new();
    bench.plan = bench.whole_plan();
    let mut kept = 0;
    bench.plan.changes.retain(|change| match &change.target {
        PlanTarget::Sysctl { .. } => {
            kept += 1;
            kept <= 10
        }
        PlanTarget::OwnedFile { path } => path.contains("/sysctl.d/"),
        _ => false,
    });
    let values = bench.plan.changes.iter().filter_map(|change| match &change.target {
        PlanTarget::Sysctl { key } => {
            Some((sysctl_path(key).trim_start_matches('/').to_owned(), change.after.clone()))
        }
        _ => None,
    });
    let values: Vec<_> = values.collect();
    assert_eq!(values.len(), 10);
    (bench, values)
}

const SCHEDULE: ProofSchedule = ProofSchedule {
    rounds: 13,
    pairs: 130,
    rounds_min: 13,
    slice: Duration::ZERO,
    settle: Duration::ZERO,
    total: Duration::ZERO,
    budget: Duration::ZERO,
};

/// Proves the plan in force by figures that `measure` returns.
fn prove(site: &Site, measure: &mut dyn FnMut() -> Result<Vec<f64>, String>) -> Result<PlanProof, FlowError> {
    let board = Switchboard::open(site)?;
    let stop = AtomicBool::new(false);
    let mut with = Measuring { measure, tell: &mut |_, _| (), stop: &stop };
    let settings = board.prove(&SCHEDULE, &mut with)?;
    let figure = |name: &str| ProofFigure { name: name.into(), unit: ProofUnit::Number };
    let mut proof =
        PlanProof { figures: vec![figure("first"), figure("second")], settings, ..PlanProof::default() };
    proof.judge();
    Ok(proof)
}

/// A figure with a long tail, as times taken from a thread have.
fn noise() -> f64 {
    -10.0 * fastrand::f64().max(1e-9).ln() + if fastrand::u32(0..20) == 0 { 300.0 } else { 0.0 }
}

fn verdicts(proof: &PlanProof) -> BTreeMap<&str, ProofVerdict> {
    proof.settings.iter().map(|proven| (proven.settings[0].as_str(), proven.verdict)).collect()
}

/// Five values remove a disturbance each, and five do nothing.
#[test]
fn settings_that_matter_are_told_from_those_that_do_not() {
    if !is_root() {
        return;
    }
    fastrand::seed(11);
    let (bench, values) = ten();
    let (site, start) = (bench.site(Faults::none()), bench.files());
    bench.apply(&site, ApplyOptions { only_run_time: true, ..ApplyOptions::default() }).unwrap();
    let applied = bench.files();
    let (mut told_apart, mut false_gains) = (0, 0);
    for _ in 0..3 {
        let mut measure = || {
            let off = values.iter().take(5).filter(|(path, on)| bench.text(path).trim() != on).count();
            Ok(vec![noise() + 400.0 * off as f64, noise()])
        };
        let proof = prove(&site, &mut measure).unwrap();
        let verdicts: Vec<ProofVerdict> = proof.settings.iter().map(|proven| proven.verdict).collect();
        let (active, inert) = verdicts.split_at(5);
        told_apart += active.iter().filter(|verdict| **verdict == ProofVerdict::Gain).count();
        told_apart += inert.iter().filter(|verdict| **verdict == ProofVerdict::NoDifferenceShown).count();
        false_gains += inert.iter().filter(|verdict| **verdict == ProofVerdict::Gain).count();
        assert_eq!(differences(&applied, &bench.files()), Vec::<String>::new());
    }
    assert!(told_apart >= 27 && false_gains == 0, "{told_apart} of 30, {false_gains} false gains");
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
    assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
}

/// The values of a plan that was cut off in a measurement come back by either way.
#[test]
fn a_proof_that_ends_anywhere_can_be_completed_and_rolled_back() {
    if !is_root() {
        return;
    }
    for cut in [1, 2, 3, 7, 40] {
        let (bench, _) = ten();
        let (site, start) = (bench.site(Faults::none()), bench.files());
        bench.apply(&site, ApplyOptions { only_run_time: true, ..ApplyOptions::default() }).unwrap();
        let applied = bench.files();
        let mut count = 0;
        let mut measure = || {
            count += 1;
            if count == cut { Err("the command failed".to_owned()) } else { Ok(vec![0.0, 0.0]) }
        };
        let error = prove(&site, &mut measure).unwrap_err();
        assert_eq!(error.to_string(), "the command failed");
        if cut % 2 == 0 {
            assert!(apply_again(&site).unwrap().refused.is_empty());
            assert_eq!(differences(&applied, &bench.files()), Vec::<String>::new());
        }
        assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
        assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
    }
}

/// As by the guard when its time is over, or by the user.
#[test]
fn a_rollback_meanwhile_ends_the_proof_and_stays() {
    if !is_root() {
        return;
    }
    for at in [1, 2, 5] {
        let (bench, _) = ten();
        let (site, start) = (bench.site(Faults::none()), bench.files());
        bench.apply(&site, ApplyOptions { only_run_time: true, ..ApplyOptions::default() }).unwrap();
        let mut count = 0;
        let mut measure = || {
            count += 1;
            if count == at {
                assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
            }
            Ok(vec![0.0, 0.0])
        };
        let error = prove(&site, &mut measure).unwrap_err().to_string();
        assert!(error.contains("is no longer in force"), "{error}");
        assert_eq!(differences(&start, &bench.files()), Vec::<String>::new());
    }
}

#[test]
fn a_value_that_another_program_sets_is_not_measured() {
    if !is_root() {
        return;
    }
    let (bench, values) = ten();
    let site = bench.site(Faults::none());
    bench.apply(&site, ApplyOptions { only_run_time: true, ..ApplyOptions::default() }).unwrap();
    let (path, on) = &values[3];
    // The second value was changed since the apply.
    bench.put(&values[1].0, "7777\n");
    let mut measure = || {
        bench.put(path, &format!("{on}\n"));
        Ok(vec![1.0, 1.0])
    };
    let proof = prove(&site, &mut measure).unwrap();
    let of = |at: usize| -> &ProvenSettings { &proof.settings[at] };
    assert_eq!(of(3).unmeasured.as_deref(), Some("another program sets it again at once"));
    assert_eq!((of(3).disturbed_pairs, of(3).pairs.len()), (SCHEDULE.rounds, 0));
    assert_eq!(of(1).unmeasured.as_deref(), Some("it is not in effect"));
    let others = verdicts(&proof).into_values().filter(|verdict| *verdict == ProofVerdict::NoDifferenceShown);
    assert_eq!(others.count(), 8);
}

#[test]
fn a_proof_needs_a_plan_in_force() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let site = bench.site(Faults::none());
    let error = Switchboard::open(&site).unwrap_err().to_string();
    assert!(error.contains("no plan is in force"), "{error}");
}
