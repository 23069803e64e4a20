//! Claims in reports that the measurement does not carry.

use crate::{
    common::{fixtures, text},
    support::{binary, lowlat},
};
use lowlat_model::{
    CpuId, CpuSet, Reading,
    jitter::{
        Cause, CauseKind, CausePart, CauseSource, Change, CpuCauses, Explained, Interruption, JitterCauses,
        JitterCpu, JitterRecord, TimelineStep,
    },
    result::ResultDocument,
};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A run of ten strategies with 100 orders in all, which carry no p99. The goal is one that every host keeps.
const SIZE: [&str; 11] =
    ["pipeline", "size", "--check", "10", "--rate", "10", "--duration", "1s", "--goal", "10s", "--force"];

/// Runs one sizing in a run folder of this test.
fn size(more: &[&str]) -> Output {
    let runs = tempfile::tempdir().expect("a folder for runs");
    let mut command = Command::new(binary());
    command.args(SIZE).args(more).env("XDG_RUNTIME_DIR", runs.path()).env("NO_COLOR", "1");
    command.output().expect("the binary starts")
}

#[test]
fn size_does_not_claim_strategies_that_no_run_checked() {
    let output = size(&[]);
    let (told, errors) = (text(&output.stdout), text(&output.stderr));
    let headline: String = told.lines().take(2).collect::<Vec<_>>().join(" ");
    // A busy machine may be too slow for the run.
    let is_broken = headline.starts_with("The run with 10 strategies");
    assert!(is_broken || headline.starts_with("Predicted, not checked: "), "{headline}\n{errors}");
    assert!(!headline.contains("at p99"), "{headline}");
    assert!(is_broken || told.contains("no run had enough orders for a p99"), "{told}");
    assert_eq!(output.status.code(), Some(1), "nothing shows that the goal is kept: {told}{errors}");
}

#[test]
fn size_separates_checked_from_predicted_in_its_document() {
    let output = size(&["--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let answer = &document["answer"];
    assert_eq!(answer["checked"], Value::Null, "100 orders carry no p99: {answer}");
    let predicted = answer["predicted"].as_u64().expect("a number");
    assert_eq!(answer["is_extrapolated"], Value::Bool(predicted > 0), "{answer}");
}

#[test]
fn size_refuses_a_host_that_is_not_running() {
    let (_, capture) = fixtures().into_iter().next().expect("a captured host");
    let output = lowlat(&["pipeline", "size", "--root", &capture.display().to_string()]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("hint: leave out --root"), "{errors}");
}

/// Interruptions of CPUs 1 to 3 as a document of an earlier lowlat has them, on a host that isolates CPU 1, stops the
/// tick on CPU 2, and has CPU 3 chosen for isolation. Most of each was not traced, but a thread's step claims it.
fn jitter_document(folder: &Path) -> PathBuf {
    let (_, capture) =
        fixtures().into_iter().find(|(name, _)| name == "epyc-7f32-stock").expect("a stock host");
    let file = |name: &str| folder.join(name).display().to_string();
    let capture = capture.display().to_string();
    let (page, result) = (file("page.html"), file("result.json"));
    let output = lowlat(&["assess", "--root", &capture, "--json", "--report", &page, "--result", &result]);
    let mut document: ResultDocument = serde_json::from_slice(&output.stdout).expect("a document");
    let cpus = [1, 2, 3];
    let topology = &mut document.snapshot.topology;
    topology.isolated = Reading::Known(CpuSet::of(1));
    topology.nohz_full = Reading::Known(CpuSet::of(2));
    for cpu in cpus {
        document.allocation.isolated.insert(cpu);
        document.allocation.housekeeping.remove(cpu);
    }
    document.jitter = Some(JitterRecord {
        threshold_ns: 200,
        duration_ns: 1_000_000_000,
        cpus: cpus.map(interrupted).into(),
        causes: Some(JitterCauses {
            source: CauseSource::Trace,
            cpus: cpus.map(|cpu| CpuCauses { cpu, worst: vec![explained()], ..CpuCauses::default() }).into(),
            ..JitterCauses::default()
        }),
        ..JitterRecord::default()
    });
    let path = folder.join("jitter.json");
    std::fs::write(&path, serde_json::to_vec(&document).expect("JSON")).expect("a file");
    path
}

const INTERRUPTION: Interruption = Interruption { at_ns: 1_000, length_ns: 2_420_000 };
/// That one length as a histogram.
const LENGTHS: &str = "HISTFAAAACN4nJNpmSzMwMDAwgABzFCaEUza//9v/wEisPMQIxMAaFkGOQ==";

fn interrupted(cpu: CpuId) -> JitterCpu {
    JitterCpu {
        cpu,
        runtime_ns: 1_000_000_000,
        interruption_count: 1,
        interruption_ns_total: INTERRUPTION.length_ns,
        interruption_ns_min: INTERRUPTION.length_ns,
        interruption_ns_max: INTERRUPTION.length_ns,
        histogram: LENGTHS.into(),
        worst: vec![INTERRUPTION],
        ..JitterCpu::default()
    }
}

fn explained() -> Explained {
    let worker = Cause { name: "kworker/3:1".into(), number: Some(41), ..Cause::of(CauseKind::Thread) };
    let step = |offset_ns, change| TimelineStep { offset_ns, depth: 0, change, cause: worker.clone() };
    let part = |cause: Cause, ns| CausePart { cause, ns };
    Explained {
        interruption: INTERRUPTION,
        parts: vec![part(Cause::of(CauseKind::NotTraced), 2_400_000), part(worker.clone(), 20_000)],
        timeline: vec![step(0, Change::Begins), step(2_420_000, Change::Ends)],
        timeline_cut_count: 0,
    }
}

#[test]
fn a_cpu_is_called_isolated_only_if_the_kernel_isolates_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let document = jitter_document(folder.path()).display().to_string();
    let table = text(&lowlat(&["jitter", "--from", &document]).stdout);
    let (_, rows) = table.split_once("Per CPU").expect("a table");
    let part = |cpu: u32| -> Option<String> {
        let mut rows = rows.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.find_map(|row| {
            (row.first() == Some(&cpu.to_string().as_str())).then(|| row.get(1).map(|of| (*of).to_owned()))?
        })
    };
    let parts = [1, 2, 3].map(|cpu| part(cpu).unwrap_or_default());
    assert_eq!(parts, ["isolated", "nohz_full", "chosen"], "{table}");

    let page = folder.path().join("again.html");
    let json =
        lowlat(&["jitter", "--from", &document, "--format", "json", "--report", &page.display().to_string()]);
    let printed: Value = serde_json::from_slice(&json.stdout).expect("a document");
    let of = |at: usize| printed["jitter_study"]["cpus"][at]["isolation"].clone();
    assert_eq!([of(0), of(1), of(2)], ["isolated", "nohz_full", "chosen"].map(Value::from));
    let page = std::fs::read_to_string(page).expect("the page");
    for (cpu, words) in [(1, "isolated"), (2, "nohz_full"), (3, "chosen for isolation")] {
        assert!(page.contains(&format!("CPU {cpu}, {words}")), "CPU {cpu} on the page");
    }
}

#[test]
fn a_step_does_not_claim_time_that_the_parts_call_not_traced() {
    let folder = tempfile::tempdir().expect("a folder");
    let document = jitter_document(folder.path()).display().to_string();
    let told = text(&lowlat(&["jitter", "--from", &document, "--explain", "1"]).stdout);
    let (_, steps) = told.split_once("Step by step").expect("the steps");
    assert!(steps.contains("2.40 ms of it not traced"), "{told}");
}
