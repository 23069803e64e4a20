//! Plans that were written, or could have been, by somebody else than lowlat: `apply --plan` runs as root.

use super::tree::{FAMILIES, Family, Tree, differences, is_root, said};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::PathBuf,
};

/// Changes that an attacker adds to a plan.
const CHANGES: &str = include_str!("../inputs/plans.json");
/// Boot parameters that take over the host at its next start, or remove its protection.
const TOKENS: [(&str, &str); 4] = [
    ("init", "/tmp/evil"),
    ("selinux", "0"),
    ("systemd.debug_shell", "1"),
    ("isolcpus", "0-15 init=/tmp/evil"),
];

/// A tree with a plan of lowlat's own beside it.
fn planned(family: Family) -> (Tree, PathBuf, Value) {
    let tree = Tree::new(family);
    fs::create_dir(tree.beside("plans")).unwrap();
    let path = tree.beside("plans/plan.json");
    let output = tree.tune(&["plan", "--out", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let plan = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    (tree, path, plan)
}

fn changes(plan: &mut Value) -> &mut Vec<Value> {
    plan["changes"].as_array_mut().unwrap()
}

/// A change of this kind of target in the plan.
fn of_kind<'a>(plan: &'a mut Value, kind: &str) -> &'a mut Value {
    let mut all = changes(plan).iter_mut();
    all.find(|change| change["target"]["kind"] == kind).unwrap_or_else(|| panic!("no {kind} in the plan"))
}

#[track_caller]
fn assert_refused(family: Family, name: &str, attack: impl FnOnce(&mut Value)) {
    let (tree, path, mut plan) = planned(family);
    attack(&mut plan);
    fs::write(&path, plan.to_string()).unwrap();
    let before = tree.all_files();
    let output = tree.tune(&["apply", "--yes", "--plan", path.to_str().unwrap()]);
    let changed = differences(&before, &tree.all_files());
    assert_eq!(changed, Vec::<String>::new(), "{family:?}, {name}: {}", said(&output));
    assert_eq!(output.status.code(), Some(2), "{family:?}, {name}: {}", said(&output));
    assert!(
        said(&output).contains("lowlat would not plan this here"),
        "{family:?}, {name}: {}",
        said(&output)
    );
}

#[test]
fn targets_that_lowlat_does_not_plan_are_refused() {
    let attacks: Vec<Value> = serde_json::from_str(CHANGES).unwrap();
    for (attack, family) in attacks.iter().zip(FAMILIES.into_iter().cycle()) {
        let name = attack["name"].as_str().unwrap();
        assert_refused(family, name, |plan| {
            let mut change = of_kind(plan, "sysctl").clone();
            change["target"] = attack["target"].clone();
            change["after"] = attack["after"].clone();
            change["before"] = json!("absent");
            changes(plan).push(change);
        });
    }
}

#[test]
fn values_that_lowlat_does_not_plan_are_refused() {
    for family in FAMILIES {
        assert_refused(family, "another value", |plan| of_kind(plan, "sysctl")["after"] = json!("77"));
        assert_refused(family, "further sysctls in the file", |plan| {
            let mut all = changes(plan).iter_mut();
            let file = all.find(|change| {
                change["target"]["path"].as_str().is_some_and(|path| path.starts_with("/etc/sysctl.d/"))
            });
            let file = file.unwrap();
            file["after"] =
                json!(file["after"].as_str().unwrap().to_owned() + "kernel.core_pattern = |/tmp/evil\n");
        });
        assert_refused(family, "more than at run time", |plan| {
            of_kind(plan, "sysctl")["moment"] = json!("at_boot");
        });
        assert_refused(family, "a value that nobody lists", |plan| {
            plan["isolated"] = json!("0-4095");
        });
    }
    for (name, value) in TOKENS {
        for family in FAMILIES {
            assert_refused(family, name, |plan| {
                let tokens = of_kind(plan, "command_line")["target"]["tokens"].as_array_mut().unwrap();
                let mut token = tokens[0].clone();
                token["name"] = json!(name);
                token["value"] = json!(value);
                token["before"] = Value::Null;
                tokens.retain(|token| token["name"] != name);
                tokens.push(token);
            });
        }
    }
}

#[test]
fn a_plan_that_others_can_write_is_refused() {
    type Attack = (&'static str, fn(&Tree));
    let attacks: [Attack; 5] = [
        ("file for all", |tree| chmod(tree, "plans/plan.json", 0o666)),
        ("file for the group", |tree| chmod(tree, "plans/plan.json", 0o664)),
        ("folder for all", |tree| chmod(tree, "plans", 0o777)),
        ("file of another user", |tree| chown(tree.beside("plans/plan.json"), Some(65_534), None).unwrap()),
        ("folder of another user", |tree| chown(tree.beside("plans"), Some(65_534), None).unwrap()),
    ];
    for (name, attack) in attacks {
        if name.contains("another user") && !is_root() {
            continue;
        }
        let (tree, path, _) = planned(Family::Debian);
        attack(&tree);
        let before = tree.all_files();
        // Through a link as well.
        std::os::unix::fs::symlink(&path, tree.beside("link.json")).unwrap();
        for path in [path, tree.beside("link.json")] {
            let mut command = tree.command(&["apply", "--yes", "--plan", path.to_str().unwrap()]);
            let output = command.env_remove("SUDO_UID").output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{name}: {}", said(&output));
            assert!(said(&output).contains("cannot trust the plan"), "{name}: {}", said(&output));
            assert!(said(&output).contains("\nhint: "), "{name}: {}", said(&output));
        }
        assert_eq!(differences(&before, &tree.all_files()), Vec::<String>::new(), "{name}");
    }
}

fn chmod(tree: &Tree, name: &str, mode: u32) {
    fs::set_permissions(tree.beside(name), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_pipe_for_a_plan_is_refused() {
    let tree = Tree::new(Family::Debian);
    let path = tree.beside("plan.json");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    let mut command = std::process::Command::new("timeout");
    command.arg("60").arg(crate::common::binary()).args(["tune", "apply", "--yes", "--plan"]).arg(&path);
    let output = command.arg("--root").arg(tree.root()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

/// The procedure of the README, also if the host has changed outside the plan, or a part of the plan is in effect.
#[test]
fn a_reviewed_plan_is_applied() {
    if !is_root() {
        return;
    }
    for family in FAMILIES {
        for profile in ["trading", "guide-57037"] {
            for drift in ["none", "irrelevant", "partly in effect"] {
                let tree = Tree::new(family);
                let path = tree.beside("plan.json");
                let plan = path.to_str().unwrap();
                let mut arguments = vec!["plan", "--profile", profile, "--out", plan];
                if profile == "guide-57037" {
                    arguments.extend(["--accept-risk", "boot.selinux", "--accept-risk", "boot.mitigations"]);
                }
                let output = tree.tune(&arguments);
                assert_eq!(output.status.code(), Some(1), "{}", said(&output));
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
                let saved: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                drift_by(&tree, &saved, drift);
                let start = tree.files();
                let output = tree.tune(&["apply", "--yes", "--plan", plan]);
                assert!(
                    output.status.code().is_some_and(|code| code < 2),
                    "{family:?}, {profile}, {drift}: {}",
                    said(&output)
                );
                let again = tree.tune(&["apply", "--yes", "--plan", plan, "--json"]);
                let again: Value = serde_json::from_slice(&again.stdout).unwrap();
                assert_eq!(again["is_changed"], false, "{family:?}, {profile}, {drift}");
                let output = tree.tune(&["rollback", "--yes"]);
                assert_eq!(
                    output.status.code(),
                    Some(0),
                    "{family:?}, {profile}, {drift}: {}",
                    said(&output)
                );
                assert_eq!(
                    differences(&start, &tree.files()),
                    Vec::<String>::new(),
                    "{family:?}, {profile}, {drift}"
                );
            }
        }
    }
}

fn drift_by(tree: &Tree, plan: &Value, drift: &str) {
    if drift == "irrelevant" {
        // Not in the plan: another row becomes a fault, and a file of others appears.
        tree.put("etc/sysctl.d/10-theirs.conf", "net.core.somaxconn = 4096\n");
        tree.put("proc/loadavg", "3.00 2.00 1.00 4/200 4242\n");
    }
    if drift == "partly in effect" {
        let sysctls =
            plan["changes"].as_array().unwrap().iter().filter(|change| change["target"]["kind"] == "sysctl");
        for change in sysctls.take(2) {
            let key = change["target"]["key"].as_str().unwrap().replace('.', "/");
            tree.put(&format!("proc/sys/{key}"), &format!("{}\n", change["after"].as_str().unwrap()));
        }
    }
}
