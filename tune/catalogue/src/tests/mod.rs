//! Each judge on artificial hosts: as wanted, not as wanted, unreadable, missing, and nonsense.

mod boot;
mod cpus;
mod debugfs;
mod guide_rows;
mod hardware;
mod newer;
mod service;
mod sysctl;
mod tuned;

use super::CATALOGUE;
use super::testing::Bench;
use lowlat_host::{Profile, Reading};
use lowlat_settings::{Layer, Risk, Verdict, Want, audit::Audit};
use std::collections::BTreeSet;

#[test]
fn every_setting_is_complete() {
    let mut ids = BTreeSet::new();
    for setting in CATALOGUE.settings() {
        let id = setting.id;
        assert!(ids.insert(id), "{id} occurs twice");
        assert!(
            id.starts_with(&format!("{}.", setting.layer.word())),
            "{id} is of layer {:?}",
            setting.layer
        );
        assert_eq!(id.to_lowercase(), id);
        assert!(!setting.name.is_empty(), "{id} has no name");
        assert!(!setting.effective.is_empty(), "{id} does not say how to see that it is in force");
        assert!(!setting.sources.is_empty(), "{id} has no source");
        assert!(setting.sources.iter().all(|source| !source.is_empty()), "{id} has an empty source");
        assert!(!setting.reason.is_empty(), "{id} has no reason");
        for text in [setting.reason, setting.cost, setting.hazard, setting.effective] {
            assert!(text.is_empty() || text.ends_with('.'), "{id}: \"{text}\" ends without a full stop");
            assert!(
                !text.contains("  ") && !text.contains('\n'),
                "{id}: \"{text}\" has white space in a row"
            );
        }
        if setting.risk != Risk::None && setting.layer != Layer::Firmware {
            assert!(!setting.cost.is_empty(), "{id} has a risk without a cost");
        }
        let is_wanted = Profile::ALL.iter().any(|profile| !matches!(setting.want(*profile), Want::Nothing));
        assert!(is_wanted, "{id} is wanted in no profile");
        for path in setting.reads {
            assert!(path.starts_with('/'), "{id} reads \"{path}\", which is no absolute path");
        }
    }
}

#[test]
fn hazards_exist_only_for_rows_of_the_guide() {
    for setting in CATALOGUE.settings().filter(|setting| !setting.hazard.is_empty()) {
        assert!(!matches!(setting.want(Profile::Guide57037), Want::Nothing), "{}", setting.id);
    }
}

/// A host of which nothing could be read must have no fault, because nothing was seen.
#[test]
fn an_unreadable_host_has_no_faults() {
    for profile in Profile::ALL {
        let bench = Bench::of(profile).with(|bench| bench.host = lowlat_host::HostSnapshot::default());
        for setting in CATALOGUE.settings() {
            // Things whose absence is the fault: a file of the guide, TuneD, its profile.
            let may_be_absent =
                setting.id.starts_with("service.tuned.") || setting.id == "sysctl.file.100-lowlatency";
            let finding = bench.judge(setting.id);
            assert!(
                may_be_absent || setting.id == "readiness.tuned" || !finding.verdict.is_fault(),
                "{}: {} {}",
                setting.id,
                finding.observed,
                finding.because
            );
        }
    }
}

/// No judge panics or calls nonsense good or bad.
#[test]
fn nonsense_in_a_file_is_never_good() {
    for profile in Profile::ALL {
        let mut bench = Bench::of(profile).kernel(6, 12);
        for glob in CATALOGUE.knob_globs() {
            let path = glob.replace('*', "1");
            bench = bench.reading(&path, super::testing::junk(&path));
        }
        for setting in
            CATALOGUE.settings().filter(|setting| matches!(setting.layer, Layer::Sysctl | Layer::Debugfs))
        {
            let finding = bench.judge(setting.id);
            let is_told = finding.verdict == Verdict::Unknown || finding.verdict == Verdict::NotApplicable;
            let is_the_guides_file = setting.id == "sysctl.file.100-lowlatency";
            assert!(is_told || is_the_guides_file, "{}: {:?}", setting.id, finding);
        }
    }
}

#[test]
fn unreadable_files_are_unknown_with_a_reason() {
    for profile in Profile::ALL {
        let mut bench = Bench::of(profile).kernel(6, 5);
        for glob in CATALOGUE.knob_globs() {
            bench = bench.reading(&glob.replace('*', "1"), Reading::Denied);
        }
        for setting in
            CATALOGUE.settings().filter(|setting| matches!(setting.layer, Layer::Sysctl | Layer::Debugfs))
        {
            let finding = bench.judge(setting.id);
            let is_the_guides_file = setting.id == "sysctl.file.100-lowlatency";
            match finding.verdict {
                Verdict::Unknown => assert!(finding.because.contains("root"), "{finding:?}"),
                Verdict::NotApplicable => {}
                _ => assert!(is_the_guides_file, "{finding:?}"),
            }
        }
    }
}

#[test]
fn every_row_is_counted_also_if_nothing_is_known() {
    let bench = Bench::of(Profile::Trading).with(|bench| bench.host = lowlat_host::HostSnapshot::default());
    let audit = Audit::of(&bench.context());
    assert_eq!(audit.findings.len(), CATALOGUE.settings().count());
    let counted: usize = Verdict::WORST_FIRST.iter().map(|verdict| audit.score.count(*verdict)).sum();
    assert_eq!(counted, audit.findings.len());
}
