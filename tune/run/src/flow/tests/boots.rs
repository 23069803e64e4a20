//! Proofs over reboots of a simulated host.

use super::super::*;
use super::bench::{Bench, differences, is_root};
use lowlat_plan::proof::{BootProof, PlanProof, ProofFigure, ProofUnit, ProofVerdict};
use lowlat_settings::change::Target as PlanTarget;
use lowlat_undo::Faults;
use std::{collections::BTreeMap, time::Duration};

const SETTINGS: [&str; 3] = ["boot.skew_tick", "boot.psi", "boot.nohz_full"];

/// A bench with a plan of three settings of the command line, which was applied and completed by a reboot, with its files
/// before and then.
fn applied() -> (Bench, BTreeMap<String, String>, BTreeMap<String, String>) {
    let mut bench = Bench::new();
    bench.plan.changes.retain_mut(|change| match &mut change.target {
        PlanTarget::CommandLine { tokens } => {
            tokens.retain(|token| SETTINGS.contains(&token.setting.as_str()));
            true
        }
        _ => false,
    });
    let (site, start) = (bench.site(Faults::none()), bench.files());
    bench.apply(&site, ApplyOptions::default()).unwrap();
    reboot(&bench, &start, &site);
    let now = bench.files();
    (bench, start, now)
}

fn reboot(bench: &Bench, start: &BTreeMap<String, String>, site: &Site) {
    bench.reboot(start);
    apply_again(site).unwrap();
}

fn proof_of(board: &BootBoard<'_>) -> BootProof {
    let figures = vec![ProofFigure { name: "number printed".into(), unit: ProofUnit::Number }];
    let proof = PlanProof { plan_id: board.plan().id(), figures, ..PlanProof::default() };
    BootProof::of(board.plan(), proof, Duration::from_secs(3600), 7).unwrap()
}

/// 10 if the host runs without ticks, and 50 if not.
fn measure(bench: &Bench) -> Vec<f64> {
    let is_tickless = bench.text("proc/cmdline").contains("nohz_full=");
    vec![if is_tickless { 10.0 } else { 50.0 }]
}

/// Files that a proof must leave as they are. Those of the command line are written again, with another time.
fn without_times(files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let lasting = files
        .iter()
        .filter(|(path, _)| !path.starts_with("proc/sys/kernel/random/") && !path.starts_with("run/"));
    let timeless = |text: &String| match text.rsplit_once('|') {
        Some((content, meta)) => {
            format!("{content}|{}", meta.rsplit_once(' ').map_or(meta, |(rights, _)| rights))
        }
        None => text.clone(),
    };
    lasting.map(|(path, text)| (path.clone(), timeless(text))).collect()
}

fn start(bench: &Bench) {
    let site = bench.site(Faults::none());
    let board = BootBoard::open(&site).unwrap();
    board.check().unwrap();
    let mut boots = proof_of(&board);
    boots.started_unix_ms = u64::MAX / 2;
    board.start(&mut boots, &["tune".into(), "prove".into()], "/").unwrap();
}

/// What the unit does in a boot. True if the proof is over.
fn unit(bench: &Bench, site: &Site) -> Result<bool, FlowError> {
    let board = BootBoard::open(site)?;
    let Some(mut boots) = board.proof()? else { return Ok(true) };
    board.go_on(&mut boots, &mut || Ok(Some(measure(bench))))?;
    if boots.ended_by.is_none() && boots.proof.rounds < boots.rounds_min() {
        return Ok(false);
    }
    let is_whole = board.restore(&boots)?;
    boots.proof.judge();
    bench.put("run/verdicts.json", &serde_json::to_string(&boots.proof).unwrap());
    board.close()?;
    Ok(is_whole)
}

fn verdicts(bench: &Bench) -> BTreeMap<String, ProofVerdict> {
    let proof: PlanProof = serde_json::from_str(&bench.text("run/verdicts.json")).unwrap();
    proof.settings.into_iter().map(|mut proven| (proven.settings.remove(0), proven.verdict)).collect()
}

fn gains(bench: &Bench) -> Vec<String> {
    verdicts(bench)
        .into_iter()
        .filter(|(_, verdict)| *verdict == ProofVerdict::Gain)
        .map(|(id, _)| id)
        .collect()
}

#[test]
fn parameters_are_told_apart_by_their_boots() {
    if !is_root() {
        return;
    }
    let (bench, start_files, applied) = applied();
    let site = bench.site(Faults::none());
    start(&bench);
    assert!(bench.files().keys().any(|path| path.ends_with("multi-user.target.wants/lowlat-prove.service")));
    let mut boots = 0;
    loop {
        reboot(&bench, &start_files, &site);
        boots += 1;
        if unit(&bench, &site).unwrap() || site.state.boot_proof().unwrap().is_none() {
            break;
        }
    }
    reboot(&bench, &start_files, &site);
    assert_eq!(gains(&bench), ["boot.nohz_full"]);
    let measured =
        verdicts(&bench).into_values().filter(|verdict| *verdict == ProofVerdict::NoDifferenceShown);
    assert_eq!((measured.count(), boots % (SETTINGS.len() + 1)), (2, 0), "{boots} boots");
    let (before, now) = (without_times(&applied), without_times(&bench.files()));
    assert_eq!(differences(&before, &now), Vec::<String>::new());
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
}

/// Power cuts at any operation cost boots, and nothing else.
#[test]
fn a_proof_goes_on_after_a_cut_at_any_moment() {
    if !is_root() {
        return;
    }
    let (bench, start_files, applied) = applied();
    start(&bench);
    let (mut cuts, mut at) = (0, 0);
    loop {
        let site = bench.site(Faults::none());
        reboot(&bench, &start_files, &site);
        let mut failing = bench.site(Faults::crash_at(at));
        failing.state.faults = failing.faults.clone();
        // Not at each boot, since three failures in a row give a setting up.
        at = (at + 7) % 40;
        if unit(&bench, &failing).is_err() {
            cuts += 1;
            reboot(&bench, &start_files, &site);
            unit(&bench, &site).unwrap();
        }
        if site.state.boot_proof().unwrap().is_none() {
            break;
        }
    }
    assert!(cuts > 5, "{cuts}");
    assert_eq!(gains(&bench), ["boot.nohz_full"]);
    let site = bench.site(Faults::none());
    reboot(&bench, &start_files, &site);
    let (before, now) = (without_times(&applied), without_times(&bench.files()));
    assert_eq!(differences(&before, &now), Vec::<String>::new());
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
}

#[test]
fn a_rollback_of_the_plan_ends_the_proof() {
    if !is_root() {
        return;
    }
    let (bench, start_files, _) = applied();
    let site = bench.site(Faults::none());
    start(&bench);
    reboot(&bench, &start_files, &site);
    unit(&bench, &site).unwrap();
    reboot(&bench, &start_files, &site);
    let board = BootBoard::open(&site).unwrap();
    let mut boots = board.proof().unwrap().unwrap();
    let went_on = board.go_on(&mut boots, &mut || {
        assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
        Ok(Some(measure(&bench)))
    });
    assert_eq!(went_on.unwrap(), None);
    bench.reboot(&start_files);
    let changed = differences(&start_files, &bench.files());
    let left: Vec<&String> = changed.iter().filter(|line| !line.starts_with("proc/")).collect();
    assert_eq!(left, Vec::<&String>::new());
    assert!(site.state.boot_proof().unwrap().is_none());
}

#[test]
fn a_plan_that_is_not_in_effect_at_boot_is_refused() {
    if !is_root() {
        return;
    }
    let refused = |options: ApplyOptions, why: &str| {
        let (_bench, site, _) = Bench::applied(options);
        let error = BootBoard::open(&site).unwrap().check().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(ApplyOptions::default(), "takes effect at a reboot first");
    refused(ApplyOptions { persist: false, ..ApplyOptions::default() }, "does not keep the plan in force");
    let confirm_within = Some(Duration::from_secs(600));
    refused(ApplyOptions { confirm_within, ..ApplyOptions::default() }, "waits for `lowlat tune confirm`");
}
