//! `lowlat tune prove` on a tree, by commands that read it.

use crate::common::{binary, folder, lowlat, text, unpack};
use lowlat_catalogue::CATALOGUE;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const KEPT: [&str; 2] = ["sysctl.vm.swappiness", "sysctl.vm.dirty_ratio"];

/// A tree, and a role whose plan has two sysctls.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Option<Self> {
        if !geteuid().is_root() {
            eprintln!("skipped: takes root, since lowlat's files belong to root");
            return None;
        }
        let folder = folder();
        unpack("epyc-7f32-stock", &folder.path().join("host"));
        let left_out: Vec<&str> = CATALOGUE.ids().filter(|id| !KEPT.contains(id)).collect();
        fs::write(folder.path().join("role.toml"), format!("leave-out = {left_out:?}\n")).unwrap();
        Some(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn value(&self, key: &str) -> String {
        fs::read_to_string(self.path("host/proc/sys/vm").join(key)).unwrap().trim().to_owned()
    }

    fn values(&self) -> [String; 2] {
        ["swappiness", "dirty_ratio"].map(|key| self.value(key))
    }

    /// The arguments of a proof by a shell script, which finds the tree's values in the directory $V.
    fn arguments(&self, options: &[&str], script: &str) -> Vec<String> {
        let budget: &[&str] = if options.contains(&"--budget") { &[] } else { &["--budget", "30s"] };
        let path = |name| self.path(name).display().to_string();
        let script = format!("V={}; {script}", self.path("host/proc/sys/vm").display());
        ["tune", "prove", "--yes", "--root", &path("host"), "--role", &path("role.toml")]
            .iter()
            .chain(budget)
            .chain(options)
            .chain(&["--", "sh", "-c", &script])
            .map(|word| (*word).to_owned())
            .collect()
    }

    /// True once no plan is in force and all values are those from before.
    fn is_as_before(&self, before: &[String; 2]) -> bool {
        let status =
            lowlat(&["tune", "status", "--json", "--root", &self.path("host").display().to_string()]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap();
        self.values() == *before && status["in_force"] == "absent"
    }
}

/// Less is better: 1 with the planned swappiness, 5 without.
const SWAPPINESS: &str = "test $(cat $V/swappiness) = 10 && echo 1 || echo 5";

#[test]
fn a_proof_tells_gains_writes_its_files_and_restores_the_host() {
    let Some(bench) = Bench::new() else { return };
    let (before, path) = (bench.values(), |name| bench.path(name).display().to_string());
    let (role, page) = (path("minimal.toml"), path("page.html"));
    let options = ["--json", "--minimal-role", &role, "--report", &page, "--result", &path("proof.json")];
    let output = lowlat(&bench.arguments(&options, SWAPPINESS));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let proof: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verdict = |id: &str| {
        let all = proof["settings"].as_array().unwrap();
        all.iter().find(|proven| proven["settings"][0] == id).unwrap()["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!((verdict(KEPT[0]).as_str(), verdict(KEPT[1]).as_str()), ("gain", "no_difference_shown"));
    assert_eq!(proof["not_restored"], Value::Array(Vec::new()));
    assert!(bench.is_as_before(&before));
    assert!(fs::read_to_string(page).unwrap().contains("What each setting is worth here"));
    let shown = lowlat(&["report", "render", &path("proof.json")]);
    assert!(
        text(&shown.stdout)
            .starts_with("Of 2 settings: gain 1, harm 0, trade 0, no difference shown 1, not measured 0."),
        "{shown:?}"
    );

    // Dirty pages stay limited: the setting acts only while files are written.
    let plan = lowlat(&["tune", "plan", "--json", "--root", &path("host"), "--role", &role]);
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["changes"].as_array().unwrap().len(), 3, "{}", plan["changes"]);
}

#[test]
fn a_killed_proof_is_taken_back_by_its_guard() {
    let Some(bench) = Bench::new() else { return };
    let before = bench.values();
    let mut child = start(&bench, "test -e $V/go && sleep 0.2; touch $V/go; echo 1");
    wait_for("a switch", || bench.values() != before && bench.path("host/proc/sys/vm/go").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the guard", || bench.is_as_before(&before));
}

#[test]
fn an_interrupted_proof_says_so_and_restores_the_host() {
    let Some(bench) = Bench::new() else { return };
    let before = bench.values();
    let child = start(&bench, "echo 1");
    wait_for("a switch", || bench.values() != before);
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let proof: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(proof["is_interrupted"], true);
    assert!(bench.is_as_before(&before));
}

#[test]
fn numbers_come_from_json_and_a_command_that_fails_changes_nothing() {
    let Some(bench) = Bench::new() else { return };
    let before = bench.values();
    let refused = |options: &[&str], script: &str, why: &str| {
        let output = lowlat(&bench.arguments(options, script));
        let error = text(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(why), "{error}");
        assert!(bench.is_as_before(&before), "{why}");
    };
    let pointer = ["--figure", "/a/p50_ns"];
    refused(&pointer, r#"echo '{"a": {}}'"#, "sh printed no number at /a/p50_ns");
    refused(&pointer, "echo 7", "sh printed no number at /a/p50_ns");
    refused(&[], "echo text", "no number: \"text\"");
    refused(&[], "exit 3", "sh failed");
    refused(&["--budget", "1s"], "echo 1", "hint: --budget ");
    // It fails while the plan is applied.
    refused(&[], "test $(cat $V/swappiness) = 10 && exit 3; echo 1", "sh failed");
}

fn start(bench: &Bench, script: &str) -> std::process::Child {
    Command::new(binary())
        .args(bench.arguments(&["--json"], script))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < Duration::from_secs(120), "no sign of {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn only_the_plan_in_force_of_the_running_host_is_proven_over_reboots() {
    let Some(bench) = Bench::new() else { return };
    let refused = |arguments: &[&str], why: &str| {
        let root = bench.path("host").display().to_string();
        let output = lowlat(&[&["tune", "prove", "--root", &root], arguments].concat());
        let error = text(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(why), "{error}");
    };
    refused(&["--reboots"], "only the running host is proven over reboots");
    refused(&["--cancel"], "cannot reboot");
    refused(&["--settle", "1s"], "--reboots");
}
