//! The document as a whole.

use super::super::{Counts, Outcome, Refusal};
use super::*;
use crate::LeftOut;
use lowlat_catalogue::testing::junk;
use lowlat_settings::change::{WhyLeftOut, nic};

#[test]
fn counts_and_outcome_follow_from_the_rows() {
    let case = Case::new(Bench::trading().sysctl("a.b", "1").sysctl("a.c", "2"))
        .sysctl("a.b", "0", "1")
        .sysctl("a.c", "2", "1")
        .sysctl("a.d", "2", "1");
    let verification = case.verify();
    assert_eq!(verification.counts, Counts { held: 1, lost: 1, unreadable: 1, ..Counts::default() });
    assert_eq!((verification.counts.rows(), verification.counts.not_held()), (3, 2));
    assert_eq!(verification.outcome(), Outcome::NotHeld);
    assert_eq!((verification.document.as_str(), verification.schema_version), ("lowlat-verification", 1));
    assert_eq!(verification.plan_id, case.plan.id());
    let json = serde_json::to_string(&verification).unwrap();
    assert_eq!(serde_json::from_str::<Verification>(&json).unwrap(), verification);
}

#[test]
fn a_refused_value_is_not_called_lost() {
    let target = |key: &str| Target::Sysctl { key: key.into() };
    let case = |refused: &str| {
        Case::new(Bench::trading().sysctl("a.b", "0").sysctl("a.c", "0"))
            .sysctl("a.b", "0", "1")
            .sysctl("a.c", "0", "1")
            .with(|case| {
                let reason = "cannot write: Device or resource busy".into();
                case.evidence.refused = vec![Refusal { target: target(refused), reason }];
            })
    };
    case("a.b").says("a.b", Standing::Refused, &["resource busy"]);
    case("a.b").says("a.c", Standing::Lost, &[]);
    let counts = case("a.b").verify().counts;
    assert_eq!((counts.refused, counts.lost, counts.not_held(), counts.rows()), (1, 1, 2, 2));
    assert_eq!(case("a.b").verify().outcome(), Outcome::NotHeld);
    // A value that another tool set later, or that is held after all, is judged on its own.
    let other = case("a.b").with(|case| {
        case.bench.host.files.insert("/proc/sys/a/b".into(), Reading::Known("7".into()));
    });
    other.says("a.b", Standing::Overridden, &[]);
}

#[test]
fn the_headline_asks_for_what_the_plan_counts_on() {
    let bench = || {
        Bench::trading().line("ro").with(|bench| {
            bench.host.topology.isolated = Reading::Known(CpuSet::new());
            bench.host.topology.nohz_full = Reading::Known(list("1-7,9-15"));
        })
    };
    let rows = |case: &Case| case.verify().rows.iter().map(|row| row.what.clone()).collect::<Vec<_>>();
    assert!(rows(&Case::new(bench())).is_empty(), "nothing planned, nothing asked for");
    let left = |case: &mut Case, setting: &str, why| {
        case.plan.left_out.push(LeftOut {
            setting: setting.into(),
            layer: "boot".into(),
            why,
            text: "x".into(),
        });
    };
    let case = Case::new(bench()).with(|case| {
        left(case, "boot.isolcpus", WhyLeftOut::Good);
        left(case, "boot.nohz_full", WhyLeftOut::NotApplicable);
    });
    assert_eq!(rows(&case), ["isolated CPUs"]);
    case.says("isolated CPUs", Standing::Lost, &["set when the plan was made"]);
}

#[test]
fn a_plan_for_another_host_is_told() {
    let case = Case::new(Bench::trading()).with(|case| {
        case.plan.host.machine_id_digest = Reading::Known("aaaa".into());
        case.bench.host.kernel.machine_id_digest = Reading::Known("bbbb".into());
    });
    let verification = case.verify();
    assert!(verification.warnings[0].contains("another host") && verification.is_of_other_host);
    assert_eq!(verification.outcome(), Outcome::NotHeld, "whatever its rows say");
    let case = Case::new(Bench::trading()).with(|case| {
        case.bench.host.topology.online.remove(3);
    });
    assert!(case.verify().warnings[0].contains("CPUs or nodes"));
}

/// A host may return anything; verifying it must not panic and must give a document.
#[test]
fn nonsense_gives_a_verification_without_a_panic() {
    let junk_bench = || {
        CATALOGUE.knob_globs().into_iter().fold(
            Bench::trading().line("nohz_full=\" isolcpus=,,, =x \"=\" --").irq(
                u32::MAX,
                "",
                "0-15",
                Reading::Denied,
            ),
            |bench, glob| bench.reading(&glob.replace('*', "7"), junk(glob)),
        )
    };
    let odd = ["", "-", "0-", "99999999999999999999", "\u{1}", "=", "a,b", "1-65535"];
    for text in odd {
        let cpus = list("1-7");
        let name = || text.to_owned();
        let case = Case::new(junk_bench())
            .sysctl(text, text, text)
            .file(text, text, text)
            .line(&[text, "isolcpus=,", "nohz_full=x", "a.b=c"])
            .irq(u32::MAX, text, text)
            .change(Target::DefaultIrqAffinity, text, text)
            .change(Target::IdleState { name: name(), cpus: cpus.clone() }, text, text)
            .change(Target::HugePages { node: Some(u32::MAX), size_bytes: u64::MAX }, text, text)
            .change(Target::KernelThreadAffinity { comm: name(), pid: 0 }, text, text)
            .change(Target::KernelThreadScheduling { comm: name(), pid: 0 }, text, text)
            .change(Target::WorkqueueCpus { name: Some(name()) }, text, text)
            .change(Target::Service { unit: name() }, text, text)
            .change(nic::XPS.of(name(), name()), text, text)
            .change(Target::FileKey { path: name(), key: name() }, text, text)
            .change(Target::OwnedFile { path: name() }, text, text)
            .with(|case| {
                case.evidence.files.insert(name(), Reading::Known(name()));
                case.evidence.tuned = vec![tuned(text, text, text), tuned("net", "coalesce", text)];
                case.ticks = Some(TickProof { window_ns: u64::MAX, ..proof([u64::MAX, 0], TickLoad::Idle) });
            });
        let verification = case.verify();
        assert_eq!(verification.counts.rows() as usize, verification.rows.len());
        assert!(serde_json::to_string(&verification).is_ok());
    }
}
