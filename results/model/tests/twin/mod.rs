//! Twins: two hosts that differ in one harmful setting and in about thirty harmless ones. The harmful one is ranked
//! first by what was measured.

mod hosts;
mod runs;

use hosts::{Twin, pairs};
use lowlat_host::Profile;
use lowlat_results::{
    ResultDocument,
    compare::{Comparison, Direction, compare_documents},
};
use lowlat_settings::audit::Audit;

/// Harmless settings that differ in every pair, at least.
const HARMLESS_MIN: usize = 25;
/// Pairs in which the harmful setting must be first.
const FIRST_MIN: f64 = 0.9;

fn document(twin: &Twin, started_at: &str) -> ResultDocument {
    let bench = &twin.bench;
    ResultDocument {
        document: ResultDocument::DOCUMENT.into(),
        schema_version: ResultDocument::SCHEMA_VERSION,
        lowlat_version: "0".into(),
        command: "jitter".into(),
        started_at: started_at.into(),
        elapsed_s: 60.0,
        is_interrupted: false,
        labels: lowlat_host::Labels::default(),
        role: bench.role.clone(),
        snapshot: bench.host.clone(),
        allocation: bench.allocation.clone(),
        audit: Audit::of(&bench.context()),
        measurements: vec![runs::jitter(bench, &twin.causes, twin.seed).into()],
        readiness: Vec::new(),
        warnings: Vec::new(),
    }
}

fn compared(good: &Twin, bad: &Twin) -> Comparison {
    let (good, bad) = (document(good, "2026-01-01T00:00:00Z"), document(bad, "2026-01-02T00:00:00Z"));
    compare_documents(&[&good], &[&bad]).unwrap()
}

fn ids(comparison: &Comparison, count: usize) -> Vec<&str> {
    comparison.explanations.iter().take(count).map(|of| of.id.as_str()).collect()
}

#[test]
fn the_harmful_setting_is_first_among_thirty_harmless_ones() {
    let all = pairs(Profile::Trading);
    assert!(all.len() >= 10, "{} pairs", all.len());
    let mut missed = Vec::new();
    for pair in &all {
        let found = compared(&pair.good, &pair.bad);
        let harmless = found.setting_changes.iter().filter(|change| change.id != pair.harmful).count();
        let differ: Vec<&str> = found.setting_changes.iter().map(|change| change.id.as_str()).collect();
        assert!(
            harmless >= HARMLESS_MIN,
            "{}: only {harmless} other settings differ: {differ:?}",
            pair.harmful
        );
        assert!(
            found.explanations.iter().any(|of| of.id == pair.harmful),
            "{} does not differ: {:?}",
            pair.harmful,
            ids(&found, 50)
        );
        if ids(&found, 1) != [pair.harmful] {
            missed.push(format!("{}: {:?}", pair.harmful, ids(&found, 3)));
        }
    }
    let first = all.len() - missed.len();
    println!("the harmful setting is first in {first} of {} pairs", all.len());
    assert!(first as f64 >= FIRST_MIN * all.len() as f64, "first in {first} of {}: {missed:#?}", all.len());
}

/// Seen from the bad twin, the same setting explains what vanished.
#[test]
fn the_same_setting_explains_what_vanished() {
    for pair in pairs(Profile::Trading).iter().filter(|pair| !pair.bad.causes.is_empty()).step_by(3) {
        let found = compared(&pair.bad, &pair.good);
        let Some(first) = found.explanations.first().filter(|of| of.id == pair.harmful) else { continue };
        assert!(first.explains() && first.direction == Direction::Better, "{first:?}");
        assert!(first.share.is_some_and(|share| share > 0.5), "{}: {:?}", pair.harmful, first.share);
        let housekeeping = &pair.good.bench.allocation.housekeeping;
        assert!(first.cpus.is_disjoint(housekeeping), "{}: {}", pair.harmful, first.cpus);
    }
}

/// Two hosts with the same interruptions: settings differ, and none of them is blamed.
#[test]
fn without_a_measured_difference_nothing_is_explained() {
    for pair in pairs(Profile::Trading).into_iter().step_by(3) {
        let calm = Twin { causes: Vec::new(), seed: pair.bad.seed, ..pair.bad };
        let found = compared(&pair.good, &calm);
        let blamed: Vec<_> = found.explanations.iter().filter(|of| of.explains()).collect();
        assert!(blamed.is_empty(), "{}: {blamed:#?}", pair.harmful);
        assert!(found.explanations.len() > HARMLESS_MIN);
    }
}
