//! Claims in reports that the measurement does not support.

use crate::{
    common::text,
    common::{binary, lowlat},
};
use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_jitter::{
    Cause, CauseKind, CausePart, CauseSource, CpuCauses, Explained, Interruption, JitterCauses, JitterCpu,
    JitterMeasurement, JitterRecord, TimelineChange, TimelineStep,
};
use lowlat_results::ResultDocument;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// A run of ten strategies with 100 orders in all, too few for a p99. Every host meets the goal.
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

/// Interruptions of CPUs 1 to 3 as a document of an earlier lowlat has them, on a host that isolates CPU 1, stops the
/// tick on CPU 2, and has CPU 3 chosen for isolation. Most of each was not traced, but a thread's step claims it.
fn jitter_document(folder: &Path) -> PathBuf {
    let capture = crate::common::capture("epyc-7f32-stock");
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
    let record = JitterRecord {
        threshold_ns: 200,
        duration_ns: 1_000_000_000,
        cpus: cpus.map(interrupted).into(),
        causes: Some(JitterCauses {
            source: CauseSource::Trace,
            cpus: cpus.map(|cpu| CpuCauses { cpu, worst: vec![explained()], ..CpuCauses::default() }).into(),
            ..JitterCauses::default()
        }),
        ..JitterRecord::default()
    };
    document.measurements = vec![JitterMeasurement::from(record).into()];
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
    let step = |offset_ns, change| TimelineStep {
        offset_ns,
        change,
        cause: worker.clone(),
        ..TimelineStep::default()
    };
    let part = |cause: Cause, ns| CausePart { cause, ns };
    Explained {
        interruption: INTERRUPTION,
        parts: vec![part(Cause::of(CauseKind::NotTraced), 2_400_000), part(worker.clone(), 20_000)],
        timeline: vec![step(0, TimelineChange::Begins), step(2_420_000, TimelineChange::Ends)],
        timeline_cut_count: 0,
    }
}

#[test]
fn a_cpu_is_called_isolated_only_if_the_kernel_isolates_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let document = jitter_document(folder.path()).display().to_string();
    let table = text(&lowlat(&["report", "render", &document, "--verbose"]).stdout);
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
    let json = lowlat(&["report", "render", &document, "--json", "--report", &page.display().to_string()]);
    let printed: Value = serde_json::from_slice(&json.stdout).expect("a document");
    let of = |at: usize| printed["measurements"][0]["study"]["cpus"][at]["isolation"].clone();
    assert_eq!([of(0), of(1), of(2)], ["isolated", "nohz_full", "chosen"].map(Value::from));
    let page = std::fs::read_to_string(page).expect("the page");
    for (cpu, words) in [(1, "isolated"), (2, "nohz_full"), (3, "chosen for isolation")] {
        assert!(page.contains(&format!("CPU {cpu}, {words}")), "CPU {cpu} on the page");
    }
}

/// A captured host of so many CPUs as a plain tar: packages and last-level caches of eight, a frequency policy each.
fn many_cpus(path: &Path, count: u32) {
    let mut archive = Vec::new();
    let mut add = |path: &str, text: &str| add_to_tar(&mut archive, path, text.as_bytes());
    let all = format!("0-{}", count - 1);
    for name in ["online", "present", "possible"] {
        add(&format!("{CPU}/{name}"), &all);
    }
    for cpu in 0..count {
        let of = |size: u32| format!("{}-{}", cpu / size * size, cpu / size * size + size - 1);
        let topology = format!("{CPU}/cpu{cpu}/topology");
        add(&format!("{topology}/core_id"), &(cpu / 2).to_string());
        add(&format!("{topology}/physical_package_id"), &(cpu / 8).to_string());
        add(&format!("{topology}/core_cpus_list"), &of(2));
        add(&format!("{topology}/package_cpus_list"), &of(8));
        for (index, (level, cpus)) in [("2", of(2)), ("3", of(8))].iter().enumerate() {
            let cache = format!("{CPU}/cpu{cpu}/cache/index{index}");
            add(&format!("{cache}/level"), level);
            add(&format!("{cache}/type"), "Unified");
            add(&format!("{cache}/shared_cpu_list"), cpus);
        }
        let policy = format!("{CPU}/cpufreq/policy{cpu}");
        add(&format!("{policy}/affected_cpus"), &cpu.to_string());
        add(&format!("{policy}/scaling_governor"), "powersave");
        add(&format!("{policy}/scaling_driver"), "acpi-cpufreq");
        add(&format!("{policy}/boost"), "1");
    }
    add("proc/sys/kernel/osrelease", "6.12.0");
    archive.extend([0; 1_024]);
    std::fs::write(path, archive).expect("a file");
}

const CPU: &str = "sys/devices/system/cpu";

/// Adds a file to a tar (POSIX.1-1988, ustar).
fn add_to_tar(archive: &mut Vec<u8>, path: &str, content: &[u8]) {
    let mut header = [0_u8; 512];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, path);
    put(100, "0000444\x000000000\x000000000\x00");
    put(124, &format!("{:011o}\x0000000000000\x00", content.len()));
    put(148, "        0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\x00 ").as_bytes());
    archive.extend(header);
    archive.extend(content);
    archive.resize(archive.len().next_multiple_of(512), 0);
}

/// The CPU time of a run in clock ticks. Other load on the machine lengthens the run, but not this.
fn cpu_ticks(arguments: &[&str]) -> u64 {
    let mut command = Command::new(binary());
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary starts");
    let pid = Pid::from_child(&child);
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("the run ends");
    let stat =
        std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("a process that has ended");
    let code = child.wait().expect("the run ended").code();
    assert!(matches!(code, Some(0 | 1)), "{arguments:?}: {code:?}");
    let (_, fields) = stat.rsplit_once(") ").expect("the fields behind the name");
    fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("ticks")).sum()
}

#[test]
fn cost_is_linear_in_the_number_of_cpus() {
    /// Four times the CPUs may take at most this many times as long: linear is 4, quadratic 16.
    const RATIO_MAX: u64 = 8;
    let folder = tempfile::tempdir().expect("a folder");
    let [few, many] = [512, 2_048].map(|count: u32| {
        let path = folder.path().join(count.to_string());
        many_cpus(&path, count);
        path.display().to_string()
    });
    for command in ["tune plan", "audit", "cpus isolated", "host show"] {
        let ticks = |root: &str| cpu_ticks(&[command.split(' ').collect(), vec!["--root", root]].concat());
        let (short, long) = (ticks(&few), ticks(&many));
        assert!(long <= short.max(1) * RATIO_MAX, "lowlat {command}: {short} and {long} ticks");
    }
}

#[test]
fn audit_is_sorted_by_impact_and_shows_it() {
    let capture = crate::common::capture("epyc-7f32-stock");
    let capture = capture.display().to_string();
    let printed: Value =
        serde_json::from_slice(&lowlat(&["audit", "--root", &capture, "--json"]).stdout).expect("JSON");
    let is_fault = |verdict: &str| ["wrong", "conflicting", "ineffective", "shadowed"].contains(&verdict);
    let place =
        |word: &str| ["high", "medium", "low"].iter().position(|impact| *impact == word).expect("an impact");
    let word = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let findings = printed["findings"].as_array().expect("findings");
    let faults: Vec<&Value> = findings.iter().filter(|of| is_fault(&word(of, "verdict"))).collect();
    assert!(
        faults.len() > 10 && findings.iter().take(faults.len()).eq(faults.iter().copied()),
        "faults come first"
    );
    assert!(faults.is_sorted_by_key(|of| place(&word(of, "impact"))), "by impact");
    let told = text(&lowlat(&["audit", "--root", &capture]).stdout);
    let lines: Vec<Vec<&str>> = told.lines().map(|line| line.split_whitespace().collect()).collect();
    let ids = lines.iter().filter(|words| words.len() == 3 && is_fault(words[0]));
    let shown: Vec<(String, String)> = ids.map(|words| (words[1].to_owned(), words[2].to_owned())).collect();
    let wanted: Vec<(String, String)> =
        faults.iter().map(|of| (word(of, "impact"), word(of, "id"))).collect();
    assert_eq!(shown, wanted, "{told}");
}

#[test]
fn suggestions_are_valid() {
    let told = |arguments: &[&str]| text(&lowlat(arguments).stderr);
    let explained = told(&["audit", "--explain", "nohz_full"]);
    assert!(explained.contains("\"boot.nohz_full\""), "{explained}");
    let bios = told(&["bios", "audit"]);
    assert!(bios.contains("--file") && bios.contains("--redfish"), "{bios}");
    let threshold = told(&["jitter", "--threshold", "0"]);
    assert!(threshold.contains("100ns") && !threshold.contains("write 0ns"), "{threshold}");
}

#[test]
fn piped_output_follows_columns() {
    let capture = crate::common::capture("epyc-7f32-stock");
    let widest = |arguments: &[&str], columns: &str| {
        let mut command = Command::new(binary());
        command.args(arguments).arg("--root").arg(&capture).env("COLUMNS", columns);
        let told = text(&command.output().expect("the binary starts").stdout);
        told.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    };
    for arguments in [&["audit"][..], &["cpus", "isolated", "--why"]] {
        assert!(widest(arguments, "64") <= 64, "{arguments:?}");
        let wide = widest(arguments, "110");
        assert!(wide > 64 && wide <= 110, "{arguments:?}: {wide}");
        assert!((65..=100).contains(&widest(arguments, "")), "{arguments:?}: 100 by default");
    }
}
