//! Role that a host is judged by, on captured hosts that were unpacked.

use crate::common::{self, text};
use serde_json::Value;
use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

const DESK: &str =
    "housekeeping = \"0-1,8\"\nisolated = \"2-7,9-15\"\naccept-risk = [\"boot.nosoftlockup\"]\n";
const OF_DESK: &str = "2-7,9-15";
/// Isolated CPUs that lowlat chooses on the host.
const OWN: &str = "1-7,9-15";

struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(common::folder());
        common::unpack("epyc-7f32-stock", &tree.root());
        fs::write(tree.role(), DESK).unwrap();
        tree
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("host")
    }

    fn role(&self) -> PathBuf {
        self.0.path().join("desk.toml")
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Has the kernel boot with more parameters, and show their lists.
    fn isolates(&self, parameters: &str, isolated: &str, nohz_full: &str) {
        let line = fs::read_to_string(self.root().join("proc/cmdline")).unwrap();
        self.put("proc/cmdline", &format!("{} {parameters}\n", line.trim()));
        self.put("sys/devices/system/cpu/isolated", &format!("{isolated}\n"));
        self.put("sys/devices/system/cpu/nohz_full", &format!("{nohz_full}\n"));
    }

    fn apply(&self, more: &[&str]) {
        let role = self.role().display().to_string();
        let applied = self.run(&[&["tune", "apply", "--yes", "--role", &role], more].concat());
        assert_eq!(applied.status.code(), Some(1), "{}{}", text(&applied.stdout), text(&applied.stderr));
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run_on(&self.root(), arguments)
    }
}

fn run_on(root: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(common::binary());
    command.args(arguments).arg("--root").arg(root).stdin(Stdio::null()).output().unwrap()
}

/// The isolated CPUs, the source of the role, and the messages about it.
fn judged(root: &Path, more: &[&str]) -> (String, String, String) {
    let output = run_on(root, &[&["audit", "--json"], more].concat());
    let audit: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let role = &audit["role"];
    let isolated = role["isolated"].as_str().unwrap().to_owned();
    let cpus = run_on(root, &[&["cpus", "isolated"], more].concat());
    assert_eq!(text(&cpus.stdout).trim(), isolated);
    let warnings: Vec<&str> =
        role["warnings"].as_array().unwrap().iter().map(|warning| warning.as_str().unwrap()).collect();
    for warning in &warnings {
        assert!(text(&cpus.stderr).contains(warning), "{warning}: {}", text(&cpus.stderr));
    }
    (isolated, role["source"].as_str().unwrap().to_owned(), warnings.join(" "))
}

fn of(isolated: &str, source: &str, warnings: &str) -> (String, String, String) {
    (isolated.to_owned(), source.to_owned(), warnings.to_owned())
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: takes root, since lowlat's files belong to root");
    }
    is_root
}

#[test]
fn the_role_in_force_is_not_forgotten() {
    if !is_root() {
        return;
    }
    let tree = Tree::new();
    let root = tree.root();
    assert_eq!(judged(&root, &[]), of(OWN, "own", ""));
    tree.apply(&[]);
    assert_eq!(judged(&root, &[]), of(OF_DESK, "in_force", ""));
    let line = format!("Judged by the role in force: housekeeping 0-1,8, isolated {OF_DESK}.");
    for arguments in [
        vec!["audit"],
        vec!["audit", "--explain", "boot.isolcpus"],
        vec!["tune", "plan"],
        vec!["host", "show"],
    ] {
        let shown = text(&tree.run(&arguments).stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(&line), "{arguments:?}: {shown}");
    }
    let exported = tree.run(&["tune", "export", "--format", "tuned"]);
    assert!(text(&exported.stderr).contains(&line), "{}", text(&exported.stderr));
    assert!(!text(&exported.stdout).contains(OWN), "{}", text(&exported.stdout));
    // Its accepted risk is still accepted.
    let plan = tree.run(&["tune", "plan", "--json"]);
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["role"]["accepted_risks"][0], "boot.nosoftlockup");
    assert_eq!(plan["isolated"], OF_DESK);
    // Another role is named.
    assert_eq!(judged(&root, &["--role", "trading"]), of(OWN, "named", ""));
    let guide = tree.run(&["audit", "--profile", "guide-57037", "--json"]);
    let guide: Value = serde_json::from_slice(&guide.stdout).unwrap();
    assert_eq!(guide["role"]["profile"], "guide-57037");
    let plan = text(&tree.run(&["tune", "plan", "--role", "trading"]).stdout);
    assert!(!plan.contains("Judged by"), "{plan}");
    // A second apply keeps the role, and the rollback ends it.
    assert_eq!(tree.run(&["tune", "apply", "--yes"]).status.code(), Some(1));
    assert_eq!(judged(&root, &[]).0, OF_DESK);
    assert_eq!(tree.run(&["tune", "rollback", "--yes"]).status.code(), Some(0));
    // With nothing to roll back, there is nothing to ask.
    let again = tree.run(&["tune", "rollback"]);
    assert_eq!((again.status.code(), text(&again.stderr)), (Some(0), String::new()));
    assert_eq!(judged(&root, &[]), of(OWN, "own", ""));
}

#[test]
fn a_capture_has_the_role_of_its_host() {
    if !is_root() {
        return;
    }
    let tree = Tree::new();
    tree.apply(&[]);
    for more in [&[][..], &["--unredacted"]] {
        let capture = tree.0.path().join("desk.tar.gz");
        let shown = capture.display().to_string();
        assert!(tree.run(&[&["host", "capture", &shown], more].concat()).status.success());
        assert_eq!(judged(&capture, &[]), of(OF_DESK, "in_force", ""));
    }
}

#[test]
fn a_role_that_no_longer_fits_is_said() {
    if !is_root() {
        return;
    }
    let tree = Tree::new();
    tree.apply(&[]);
    tree.put("sys/devices/system/cpu/online", "0-14\n");
    tree.put("sys/devices/system/cpu/offline", "15\n");
    let offline = "Named by the role in force, but offline: CPU 15.";
    assert_eq!(judged(&tree.root(), &[]), of("2-7,9-14", "in_force", offline));
    tree.put("sys/devices/system/cpu/online", "0-1,8\n");
    let none = "The role in force isolates CPUs 2-7,9-15, none of which is online, so it is not used.";
    assert_eq!(judged(&tree.root(), &[]).2, none);
    let plans = tree.root().join("var/lib/lowlat/plans");
    let plan = fs::read_dir(plans).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&plan).unwrap();
    assert!(text.contains("ProLiant DL385"), "the plan has the mark of its host");
    fs::write(&plan, text.replace("ProLiant DL385", "Another")).unwrap();
    let (_, source, warnings) = judged(&tree.root(), &[]);
    let said = "The plan in force was made on another host, so its role is not used.";
    assert_eq!((source.as_str(), warnings.as_str()), ("own", said));
}

#[test]
fn a_role_that_cannot_be_read_is_not_replaced_silently() {
    if !is_root() {
        return;
    }
    let tree = Tree::new();
    tree.apply(&["--install-role"]);
    let (root, state) = (tree.root(), tree.root().join("var/lib/lowlat"));
    fs::set_permissions(tree.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut nobody = Command::new(common::binary());
    nobody.args(["cpus", "isolated", "--root"]).arg(&root).uid(65534).gid(65534);
    match nobody.output() {
        Ok(output) => {
            let said = text(&output.stderr);
            assert_eq!(text(&output.stdout).trim(), OF_DESK, "{said}");
            assert!(said.contains("warning: The role in force is not known (permission denied)."), "{said}");
            assert!(said.contains("Judged by the role in /etc/lowlat/role.toml: "), "{said}");
        }
        Err(error) => eprintln!("skipped: another user cannot run the binary: {error}"),
    }
    fs::write(state.join("in-force.json"), "{").unwrap();
    let (isolated, source, warnings) = judged(&root, &[]);
    assert_eq!((isolated.as_str(), source.as_str()), (OF_DESK, "installed"));
    assert!(warnings.starts_with("The role in force is not known (cannot parse "), "{warnings}");
}

#[test]
fn an_installed_role_goes_with_the_rollback() {
    if !is_root() {
        return;
    }
    let tree = Tree::new();
    tree.apply(&["--install-role"]);
    let installed = tree.root().join("etc/lowlat/role.toml");
    assert_eq!(fs::read_to_string(&installed).unwrap(), DESK);
    assert_eq!(tree.run(&["tune", "rollback", "--yes"]).status.code(), Some(0));
    assert!(!installed.parent().unwrap().exists());
    // Without the flag or an answer nothing is installed.
    tree.apply(&[]);
    assert!(!installed.exists());
}

#[test]
fn an_installed_role_is_used_or_refused() {
    let tree = Tree::new();
    tree.put("etc/lowlat/role.toml", "isolated = \"4-7,12-15\"\n");
    assert_eq!(judged(&tree.root(), &[]), of("4-7,12-15", "installed", ""));
    for (content, part) in [
        ("isolated = 4-7\n", "etc/lowlat/role.toml:1:"),
        ("isolated = \"4-99\"\n", "no CPU 16-99"),
        ("isolatedd = \"4\"\n", "unknown field"),
        ("\u{0}\u{1}", "/etc/lowlat/role.toml"),
    ] {
        tree.put("etc/lowlat/role.toml", content);
        for arguments in [&["audit"][..], &["tune", "plan"], &["cpus", "isolated"], &["host", "show"]] {
            let output = tree.run(arguments);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(
                said.contains("cannot use role file /etc/lowlat/role.toml") && said.contains(part),
                "{said}"
            );
        }
        // A named role has precedence.
        assert_eq!(judged(&tree.root(), &["--role", "trading"]).1, "named");
    }
}

#[test]
fn the_isolation_of_the_owner_is_kept_if_it_is_consistent() {
    for (parameters, isolated, nohz_full, wanted) in [
        // SEAPATH isolates up to the last CPU.
        ("isolcpus=domain,managed_irq,4-N nohz_full=4-N rcu_nocbs=4-N", "4-15", "4-15", Some("4-15")),
        // They differ.
        ("isolcpus=4-15 nohz_full=2-15", "4-15", "2-15", None),
    ] {
        let tree = Tree::new();
        tree.isolates(parameters, isolated, nohz_full);
        let source = if wanted.is_some() { "isolation" } else { "own" };
        assert_eq!(judged(&tree.root(), &[]), of(wanted.unwrap_or(OWN), source, ""), "{parameters}");
        let audit = text(&tree.run(&["audit"]).stdout);
        assert_eq!(
            audit.contains("Judged by the isolation that this host has: "),
            wanted.is_some(),
            "{audit}"
        );
    }
}
