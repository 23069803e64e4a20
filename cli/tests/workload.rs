//! `lowlat workload`.

use crate::common::{self, text};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Longest wait for processes to appear or disappear.
const PATIENCE: Duration = Duration::from_secs(60);
/// Held by tests that make System V objects, so that each knows its own.
static OBJECTS: Mutex<()> = Mutex::new(());

/// The host's System V semaphores and queues.
fn objects() -> BTreeSet<String> {
    let lines = |kind: &'static str| {
        let text = std::fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
        let ids = text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned));
        ids.map(|id| format!("{kind} {id}")).collect::<Vec<_>>()
    };
    ["msg", "sem"].into_iter().flat_map(lines).collect()
}

/// Processes whose command line is that of a run, children that were forked included.
fn processes(time: &str) -> usize {
    let folders = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = folders.filter_map(|folder| std::fs::read(folder.path().join("cmdline")).ok());
    lines.filter(|line| text(line).replace('\0', " ").contains(&format!("--duration {time} "))).count()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a long run, and waits until its objects exist.
fn start(time: &str, names: &[&str], before: &BTreeSet<String>) -> Child {
    let mut command = Command::new(common::binary());
    command.args(["workload", "run", "--duration", time, "--rounds", "1", "--copies", "2"]).args(names);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the objects appear", || objects().difference(before).next().is_some());
    wait_until("all processes appear", || processes(time) > 3);
    child
}

#[test]
fn a_run_that_is_killed_or_stopped_leaves_nothing() {
    let _alone = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, signal, time, code) in [
        ("sem-sysv", Signal::KILL, "571s", None),
        ("msg-sysv", Signal::KILL, "572s", None),
        ("sem-sysv", Signal::TERM, "573s", Some(130)),
        ("msg-sysv", Signal::INT, "574s", Some(130)),
    ] {
        let before = objects();
        let mut child = start(time, &[name], &before);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code, "{name} {signal:?}");
        wait_until("the objects disappear", || objects().difference(&before).next().is_none());
        wait_until("the processes disappear", || processes(time) == 0);
    }
}

#[test]
fn runs_and_comparisons_give_figures_documents_and_pages() {
    let _alone = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (file, page) = (path("run.json"), path("run.html"));
    let quick = ["--duration", "20ms", "--rounds", "2", "--json", "--result", &file, "--report", &page];
    let runs: [&[&str]; 3] = [
        &["run", "pipe", "sem-sysv", "--under", "place=one", "--under", "place=kernel"],
        &["compare", "futex", "--copies", "1,2", "--b", "place=one,policy=batch"],
        &["article", "pipe"],
    ];
    for arguments in runs {
        let output = common::lowlat(&[&["workload"], arguments, &quick].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let measurement = &document["measurements"][0];
        assert_eq!(measurement["kind"], "workload");
        let cells = measurement["record"]["cells"].as_array().unwrap().len();
        let runs = measurement["record"]["runs"].as_array().unwrap();
        assert!(cells >= 2 && runs.iter().any(|run| run["per_s"].as_f64().unwrap() > 0.0), "{measurement}");
        let again = common::lowlat(&["report", "render", &file]);
        let shown = text(&again.stdout);
        assert!(again.status.success() && shown.contains(arguments[1]), "{shown}{}", text(&again.stderr));
        let page = std::fs::read_to_string(&page).unwrap();
        assert!(page.contains("id=\"workload\"") && page.contains(arguments[1]));
    }
}

/// Changes the record of a document, and returns the path of the new one.
fn edited(path: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    change(&mut document["measurements"][0]["record"]);
    let new = path.replace(".json", "-edited.json");
    std::fs::write(&new, document.to_string()).unwrap();
    new
}

#[test]
fn two_documents_are_compared_with_a_verdict_and_nothing_in_common_is_not_clean() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [a, b, other, page] = ["a.json", "b.json", "other.json", "page.html"].map(path);
    for (workload, file) in [("pipe", &a), ("pipe", &b), ("eventfd", &other)] {
        let run =
            ["workload", "run", workload, workload, "--duration", "10ms", "--rounds", "6", "--result", file];
        let output = common::lowlat(&run);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    // A busy machine may have counted nothing in some rounds.
    let at = |path: &str, per_s: f64| {
        edited(path, |record| {
            for run in record["runs"].as_array_mut().unwrap() {
                run["per_s"] = per_s.into();
            }
        })
    };
    let (a, slower) = (at(&a, 1_000.0), at(&b, 1.0));
    for (sides, code, said) in [
        (&[a.as_str(), &slower][..], 0, "Slower after: pipe, 1 copy with place=kernel 0.0"),
        (&[&slower, &a], 0, "Faster after: pipe, 1 copy with place=kernel "),
        (&["--pairs", &a, &slower, &a, &slower], 0, "Slower after: pipe, 1 copy with place=kernel 0.0"),
        (&[&a, &other], 4, "No workload was counted on both sides"),
    ] {
        let output = common::lowlat(&[&["report", "compare", "--report", &page], sides].concat());
        let shown = text(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{sides:?}: {shown}{}", text(&output.stderr));
        assert!(shown.contains(said), "{sides:?}: {shown}");
        assert!(std::fs::read_to_string(&page).unwrap().contains("id=\"workloads\""));
    }
    // Workloads that only one side could run were not compared.
    let one = edited(&a, |record| record["purpose"] = "compare".into());
    let output = common::lowlat(&["report", "render", &one]);
    assert!(text(&output.stdout).contains("Nothing was compared"), "{}", text(&output.stderr));
}

#[test]
fn what_cannot_run_is_an_error_with_a_hint() {
    for (arguments, cause) in [
        (&["run", "pipes"][..], "no such workload; expected one of sem-posix"),
        (&["run", "pipe", "--duration", "1ms"], "expected 10 ms to 600 s"),
        (&["run", "pipe", "--under", "place=near"], "place=kernel|one|pack|spread"),
        (&["compare", "pipe", "--b", "place=kernel"], "cannot compare place=kernel with itself"),
        (&["article", "spec"], "no such gain; expected one of spec-base"),
    ] {
        let output = common::lowlat(&[&["workload"], arguments].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(cause), "{said}");
    }
}

#[test]
fn a_missing_program_is_one_clear_line_in_the_list_and_in_a_run() {
    let bare = |arguments: &[&str]| {
        Command::new(common::binary()).env("PATH", "/nowhere").args(arguments).output().unwrap()
    };
    let output = bare(&["workload", "list", "--json"]);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |name: &str| {
        list["workloads"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone()
    };
    assert!(of("pipe")["why_not"].is_null());
    assert_eq!(of("stress-ng-sem")["why_not"], "stress-ng is not installed (package stress-ng)");
    let output = bare(&["workload", "run", "stress-ng-sem"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("stress-ng is not installed") && said.contains("hint: `lowlat workload list`"),
        "{said}"
    );
    let output =
        bare(&["workload", "run", "stress-ng-sem", "eventfd", "--duration", "10ms", "--rounds", "1"]);
    let shown = text(&output.stdout);
    assert!(
        output.status.success() && shown.contains("stress-ng-sem: stress-ng is not installed"),
        "{shown}"
    );
}
