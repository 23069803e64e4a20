//! `lowlat tune apply`, `status`, `confirm` and `rollback` on a captured host that was unpacked. The machine that runs the
//! tests is never written to.

use crate::common::{self, fixtures, text};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Self { dir: common::folder() };
        common::unpack("epyc-7f32-stock", &tree.root());
        fs::create_dir_all(tree.root().join("usr/local/sbin")).unwrap();
        fs::write(tree.root().join("usr/local/sbin/lowlat"), "binary").unwrap();
        tree
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("host")
    }

    fn tune(&self, arguments: &[&str]) -> Output {
        self.lowlat("tune", arguments)
    }

    fn lowlat(&self, command: &str, arguments: &[&str]) -> Output {
        Command::new(common::binary())
            .arg(command)
            .args(arguments)
            .arg("--root")
            .arg(self.root())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let output = self.tune(arguments);
        let value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)));
        (output.status.code().unwrap(), value)
    }

    fn swappiness(&self) -> String {
        self.value("proc/sys/vm/swappiness")
    }

    fn value(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap().trim().to_owned()
    }
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: takes root, since lowlat's files belong to root");
    }
    is_root
}

#[test]
fn applied_looked_at_and_taken_back() {
    if !is_root() {
        return;
    }
    let tree = Tree::new();
    let before = tree.swappiness();
    let (code, applied) = tree.json(&["apply", "--yes", "--json"]);
    // A tree has no running host: its threads and interfaces are refused.
    assert_eq!((code, applied["document"].as_str()), (1, Some("lowlat-apply")));
    assert_eq!(tree.swappiness(), "10");
    let (code, status) = tree.json(&["status", "--json"]);
    // It has no known boot loader either.
    assert_eq!((code, &status["reboot"], &applied["needs_reboot"]), (1, &"refused".into(), &false.into()));
    assert_eq!(status["in_force"]["known"]["plan_id"], applied["plan_id"], "{status}");
    let verified = text(&tree.tune(&["verify"]).stdout);
    assert!(verified.contains("no known boot loader found") && !verified.contains("waits for the reboot"));
    let boot_id = tree.root().join("proc/sys/kernel/random/boot_id");
    fs::create_dir_all(boot_id.parent().unwrap()).unwrap();
    fs::write(&boot_id, "another").unwrap();
    let verified = text(&tree.tune(&["verify"]).stdout);
    assert!(
        verified.contains("no known boot loader found") && !verified.contains("another entry"),
        "{verified}"
    );
    fs::remove_file(&boot_id).unwrap();
    assert!(status["units"].as_array().unwrap().iter().any(|unit| unit["is_enabled"] == true));

    let (_, again) = tree.json(&["apply", "--yes", "--json"]);
    assert_eq!((&again["is_changed"], &again["plan_id"]), (&Value::Bool(false), &applied["plan_id"]));
    let confirmed = tree.tune(&["confirm"]);
    assert_eq!(text(&confirmed.stdout), "The plan in force needs no confirmation.\n");

    let (code, preview) = tree.json(&["rollback", "--dry-run", "--json"]);
    assert_eq!((code, &preview["is_preview"]), (0, &Value::Bool(true)));
    assert_eq!(tree.swappiness(), "10");
    let (code, back) = tree.json(&["rollback", "--yes", "--json"]);
    assert_eq!((code, &back["restored"]), (0, &preview["restored"]));
    assert_eq!(tree.swappiness(), before);
    assert_eq!(tree.tune(&["confirm"]).status.code(), Some(1));
    let status = text(&tree.tune(&["status"]).stdout);
    assert!(status.starts_with("No plan is in force.\n"), "{status}");
}

#[test]
fn net_prepare_changes_what_concerns_the_network_and_tune_takes_it_back() {
    if !is_root() {
        return;
    }
    let tree = Tree::new();
    let (busy_read, swappiness) = (tree.value("proc/sys/net/core/busy_read"), tree.swappiness());
    let unknown = tree.lowlat("net", &["prepare", "eth9", "--dry-run"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("hint: choose one of ens1"), "{}", text(&unknown.stderr));

    let planned = tree.lowlat("net", &["prepare", "ens1", "--dry-run", "--json"]);
    assert_eq!(
        (planned.status.code(), tree.value("proc/sys/net/core/busy_read")),
        (Some(1), busy_read.clone())
    );
    let plan: Value = serde_json::from_slice(&planned.stdout).unwrap();
    let kinds: Vec<&str> = plan["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["target"]["kind"].as_str().unwrap())
        .collect();
    assert!(!kinds.contains(&"command_line") && kinds.contains(&"default_irq_affinity"), "{kinds:?}");
    assert!(!text(&planned.stdout).contains("\"nic\":\"ens2\""), "another interface is left alone");

    let applied = tree.lowlat("net", &["prepare", "ens1", "--yes", "--json"]);
    let outcome: Value = serde_json::from_slice(&applied.stdout).expect("an outcome");
    assert_eq!((tree.value("proc/sys/net/core/busy_read"), tree.swappiness()), ("50".into(), swappiness));
    let (_, status) = tree.json(&["status", "--json"]);
    assert_eq!(status["in_force"]["known"]["plan_id"], outcome["plan_id"], "{status}");
    let (code, _) = tree.json(&["rollback", "--yes", "--json"]);
    assert_eq!((code, tree.value("proc/sys/net/core/busy_read")), (0, busy_read));

    for (name, below) in [("bond0.7", &["bond0"][..]), ("bond0", &["ens1", "ens2"])] {
        let nic = tree.root().join("sys/class/net").join(name);
        fs::create_dir(&nic).unwrap();
        fs::write(nic.join("operstate"), "up\n").unwrap();
        for lower in below {
            fs::write(nic.join(format!("lower_{lower}")), "").unwrap();
        }
    }
    let planned = tree.lowlat("net", &["prepare", "bond0.7", "--dry-run"]);
    let said = text(&planned.stderr);
    assert!(said.contains("bond0.7 stands on ens1, ens2: prepared in its place"), "{said}");
}

#[test]
fn nobody_to_ask_is_an_error_and_nothing_is_changed() {
    let tree = Tree::new();
    let is_refused = |command| {
        let before = tree.swappiness();
        let output = tree.tune(&[command]);
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert!(said.contains("stdin is not a terminal\nhint: pass --yes"), "{said}");
        assert_eq!(tree.swappiness(), before);
    };
    is_refused("apply");
    if is_root() {
        assert_eq!(tree.tune(&["apply", "--yes"]).status.code(), Some(1));
        is_refused("rollback");
    }
}

#[test]
fn a_saved_plan_is_refused_on_another_host_and_when_it_is_none() {
    let tree = Tree::new();
    let file = tree.dir.path().join("plan.json");
    let plan = file.to_str().unwrap();
    assert_eq!(tree.tune(&["plan", "--out", plan]).status.code(), Some(1));
    let saved = fs::read_to_string(&file).unwrap();
    let mut other: Value = serde_json::from_str(&saved).unwrap();
    other["host"]["topology_digest"] = "0123456789abcdef".into();
    fs::write(&file, other.to_string()).unwrap();
    let output = tree.tune(&["apply", "--plan", plan, "--yes"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("CPUs and memory nodes (digest): 0123456789abcdef in the plan"), "{error}");
    for (broken, why) in [
        ("{}", "is not a plan of lowlat: missing field `document`"),
        ("[", "is not a plan of lowlat: EOF"),
        (&saved.replace("lowlat-plan", "x"), "found a \"x\""),
    ] {
        fs::write(&file, broken).unwrap();
        let output = tree.tune(&["apply", "--plan", plan, "--yes"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
    fs::write(&file, saved).unwrap();
    if is_root() {
        assert_eq!(tree.tune(&["apply", "--plan", plan, "--yes"]).status.code(), Some(1));
        assert_eq!(tree.swappiness(), "10");
    }
}

#[test]
fn a_read_only_etc_is_refused_before_anything_is_changed() {
    let tree = Tree::new();
    let before = tree.swappiness();
    // A private mount, visible only to the child.
    let script = "mount --bind \"$1/etc\" \"$1/etc\" && mount -o remount,ro,bind \"$1/etc\" || exit 77
        exec \"$2\" tune apply --root \"$1\" --yes";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(tree.root())
        .arg(common::binary())
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) if output.status.code() == Some(2) => output,
        other => {
            eprintln!("skipped: no mount namespace here: {other:?}");
            return;
        }
    };
    let error = text(&output.stderr);
    assert!(error.contains("/etc is mounted read-only; remount it writable"), "{error}");
    assert_eq!(tree.swappiness(), before);
    assert!(!tree.root().join("var/lib/lowlat").exists());
}

#[test]
fn a_capture_file_cannot_be_written_to() {
    let (_, capture) = fixtures().into_iter().next().unwrap();
    let output = common::lowlat(&["tune", "apply", "--yes", "--root", capture.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("it is a capture, which is read-only\nhint: "),
        "{}",
        text(&output.stderr)
    );
}
