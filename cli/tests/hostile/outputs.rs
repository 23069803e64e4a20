//! Files that lowlat writes for its user: where it writes them, through what, and what happens when it cannot.

use crate::common::{binary, programs::copy_binary, text};
use lowlat_journal::record::{Options, Recorder};
use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown, lchown, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// A user that owns nothing here.
const STRANGER: u32 = 65_534;
/// Content of another user's file.
const THEIRS: &str = "theirs";

/// Commands that write `{out}`, and the names below it that an attacker can predict: the file itself and names of
/// unfinished files that do not change from run to run. `{host}` is a captured host, `{bios}` saved settings, `{rec}` a
/// recording.
const WRITERS: &[(&[&str], &[&str])] = &[
    (&["assess", "--no-measure", "--root", "{host}", "--report", "{out}"], &["out"]),
    (&["assess", "--no-measure", "--root", "{host}", "--result", "{out}"], &["out"]),
    (&["tune", "plan", "--root", "{host}", "--out", "{out}"], &["out"]),
    (
        &["tune", "export", "--format", "shell", "--root", "{host}", "--force", "--out", "{out}"],
        &["out", "out.new"],
    ),
    (&["host", "capture", "{out}", "--root", "{host}"], &["out"]),
    (&["bios", "apply", "--dry-run", "--file", "{bios}", "--out", "{out}"], &["out"]),
    (&["journal", "export", "{rec}", "--format", "csv", "--out", "{out}"], &["out", "out.tmp"]),
    (&["jitter", "--duration", "100ms", "--no-causes", "--force", "--result", "{out}"], &["out"]),
    (&["jitter", "--duration", "100ms", "--no-causes", "--force", "--report", "{out}"], &["out"]),
    (&["jitter", "--duration", "100ms", "--no-causes", "--force", "--hlog", "{out}"], &["out"]),
    (
        &["jitter", "--duration", "100ms", "--no-causes", "--force", "--cpus", "0", "--raw", "{out}"],
        &["out.0", "out.0.part"],
    ),
    (&["man", "--dir", "{dir}"], &["lowlat.1", "lowlat-assess.1"]),
];

/// A directory for outputs, with a recording.
struct OutputFolder {
    folder: TempDir,
}

impl OutputFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("here")).unwrap();
        let mut recorder = Recorder::open(&folder.path().join("rec"), Options::default()).unwrap();
        recorder.add_stream("md", 1, "lowlat-trade", Some(0)).unwrap();
        recorder.stop().unwrap();
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The arguments with their places filled in; `dir` is where `{out}` is.
    fn filled(&self, arguments: &[&str], dir: &Path) -> Vec<String> {
        let fixture = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(name);
        let host = crate::common::capture("one-cpu");
        let fill = |argument: &&str| {
            [
                ("{host}", host.as_path()),
                ("{bios}", &fixture("redfish/standard-bios.json")),
                ("{rec}", &self.at("rec")),
                ("{out}", &dir.join("out")),
                ("{dir}", dir),
            ]
            .iter()
            .fold((*argument).to_owned(), |text, (name, path)| {
                text.replace(name, &path.display().to_string())
            })
        };
        arguments.iter().map(fill).collect()
    }

    fn run(&self, arguments: &[&str], dir: &Path) -> Output {
        Command::new(binary())
            .args(self.filled(arguments, dir))
            .current_dir(self.at("here"))
            .output()
            .unwrap()
    }
}

fn is_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: {test}: only root can act for another user");
    }
    is_root
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The writers work at all: an attack on a command that fails anyway shows nothing.
#[test]
fn every_writer_writes() {
    for (arguments, _) in WRITERS {
        let (desk, dir) = (OutputFolder::new(), tempfile::tempdir().unwrap());
        let output = desk.run(arguments, dir.path());
        assert!(output.status.code().is_some_and(|code| code < 2), "{arguments:?}: {}", text(&output.stderr));
        let written = names(dir.path());
        assert!(
            !written.is_empty() && written.iter().all(|name| !name.starts_with(".lowlat")),
            "{written:?}"
        );
    }
}

#[test]
fn planted_links_are_not_followed() {
    let mut failures = Vec::new();
    for (arguments, planted) in WRITERS {
        for name in *planted {
            let (desk, dir) = (OutputFolder::new(), tempfile::tempdir().unwrap());
            let victim = desk.at("victim");
            fs::write(&victim, THEIRS).unwrap();
            symlink(&victim, dir.path().join(name)).unwrap();
            let output = desk.run(arguments, dir.path());
            if fs::read(&victim).unwrap_or_default() != THEIRS.as_bytes() {
                failures.push(format!("{name} of lowlat {}", arguments.join(" ")));
            }
            // A link in the file's own place is refused in words; other names do not matter to the command.
            if output.status.code() == Some(2) {
                let said = text(&output.stderr);
                assert!(said.contains("through links") && said.contains("\nhint: "), "{said}");
            }
        }
    }
    assert!(failures.is_empty(), "written through:\n{}", failures.join("\n"));
}

/// Names of unfinished files held the number of the process, and the next ones can be guessed.
#[test]
fn unfinished_files_have_no_name_that_can_be_guessed() {
    let (desk, dir) = (OutputFolder::new(), tempfile::tempdir().unwrap());
    let victim = desk.at("victim");
    fs::write(&victim, THEIRS).unwrap();
    for process in std::process::id()..std::process::id() + 20_000 {
        symlink(&victim, dir.path().join(format!("out.{process}.tmp"))).unwrap();
    }
    let host: &[&str] = &["assess", "--no-measure", "--root", "{host}", "--result", "{out}"];
    assert_eq!(desk.run(host, dir.path()).status.code(), Some(0));
    assert_eq!(fs::read_to_string(&victim).unwrap(), THEIRS);
}

/// `sudo lowlat assess` in another user's folder, where the usual names wait as links and pipes.
#[test]
fn the_usual_names_are_passed_by_when_they_are_taken() {
    let desk = OutputFolder::new();
    let (here, victim) = (desk.at("here"), desk.at("victim"));
    fs::write(&victim, THEIRS).unwrap();
    symlink(&victim, here.join("lowlat-report.html")).unwrap();
    symlink(desk.at("new-victim"), here.join("lowlat-result.json")).unwrap();
    symlink("/etc/none/such", here.join("lowlat-report-2.html")).unwrap();
    if rustix::process::geteuid().is_root() {
        for name in ["lowlat-report.html", "lowlat-result.json", "lowlat-report-2.html"] {
            lchown(here.join(name), Some(STRANGER), None).unwrap();
        }
        chown(&here, Some(STRANGER), None).unwrap();
    }
    let output = desk.run(&["assess", "--no-measure", "--root", "{host}"], &here);
    assert_eq!(fs::read_to_string(&victim).unwrap(), THEIRS);
    assert!(!desk.at("new-victim").exists());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(here.join("lowlat-report-3.html").is_file() && here.join("lowlat-result-3.json").is_file());
}

#[test]
fn a_strangers_link_to_a_directory_is_not_followed() {
    if !is_root("a_strangers_link_to_a_directory_is_not_followed") {
        return;
    }
    let mut failures = Vec::new();
    for (arguments, _) in WRITERS {
        let (desk, dir) = (OutputFolder::new(), tempfile::tempdir().unwrap());
        fs::create_dir(desk.at("system")).unwrap();
        let link = dir.path().join("reports");
        symlink(desk.at("system"), &link).unwrap();
        lchown(&link, Some(STRANGER), None).unwrap();
        let output = desk.run(arguments, &link);
        if names(&desk.at("system")).is_empty() {
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        } else {
            failures.push(arguments.join(" "));
        }
    }
    assert!(failures.is_empty(), "written through:\n{}", failures.join("\n"));
}

#[test]
fn exported_orders_are_their_owners_alone() {
    let (desk, dir) = (OutputFolder::new(), tempfile::tempdir().unwrap());
    desk.run(&["journal", "export", "{rec}", "--format", "csv", "--out", "{out}"], dir.path());
    let mode = fs::metadata(dir.path().join("out")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_earlier_report_stays() {
    let desk = OutputFolder::new();
    let here = desk.at("here");
    let assess: &[&str] = &["assess", "--no-measure", "--root", "{host}"];
    for name in ["lowlat-report.html", "lowlat-result.json"] {
        fs::write(here.join(name), THEIRS).unwrap();
    }
    for number in 2..4 {
        let output = desk.run(assess, &here);
        assert_eq!(output.status.code(), Some(0));
        let shown = text(&output.stdout) + &text(&output.stderr);
        for name in [format!("lowlat-report-{number}.html"), format!("lowlat-result-{number}.json")] {
            assert!(here.join(&name).is_file() && shown.contains(&name), "{name}: {shown}");
        }
    }
    for name in ["lowlat-report.html", "lowlat-result.json"] {
        assert_eq!(fs::read_to_string(here.join(name)).unwrap(), THEIRS);
    }
}

#[test]
fn a_named_file_is_replaced_and_that_is_said() {
    let (desk, dir) = (OutputFolder::new(), tempfile::tempdir().unwrap());
    let assess: &[&str] = &["assess", "--no-measure", "--root", "{host}", "--report", "{out}"];
    assert!(!text(&desk.run(assess, dir.path()).stdout).contains("replacing an earlier file"));
    assert!(text(&desk.run(assess, dir.path()).stdout).contains("out, replacing an earlier file"));
}

#[test]
fn a_full_disk_costs_the_file_and_not_the_results() {
    let results: [(&[&str], &str); 5] = [
        (&["assess", "--no-measure", "--root", "{host}", "--report", "/dev/full"], "Score"),
        (&["assess", "--no-measure", "--root", "{host}", "--result", "/dev/full"], "Score"),
        (&["tune", "plan", "--root", "{host}", "--out", "/dev/full"], "Plan"),
        (&["jitter", "--duration", "100ms", "--no-causes", "--force", "--result", "/dev/full"], "CPU"),
        (&["assess", "--json", "--no-measure", "--root", "{host}", "--result", "/dev/full"], "lowlat-result"),
    ];
    for (arguments, shown) in results {
        let desk = OutputFolder::new();
        let output = desk.run(arguments, &desk.at("here"));
        let (out, said) = (text(&output.stdout), text(&output.stderr));
        assert!(out.to_lowercase().contains(&shown.to_lowercase()), "{arguments:?}: {out}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("cannot write /dev/full: No space left on device"), "{said}");
        assert!(said.contains("\nhint: name another file with --"), "{said}");
    }
}

/// A limit on the size of files is a disk that is full for this process.
#[test]
fn a_file_that_cannot_be_finished_leaves_the_earlier_one() {
    let (desk, dir) = (OutputFolder::new(), tempfile::tempdir().unwrap());
    let out = dir.path().join("out");
    fs::write(&out, THEIRS).unwrap();
    let arguments =
        desk.filled(&["assess", "--no-measure", "--root", "{host}", "--report", "{out}"], dir.path());
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 8; exec \"$@\"", "sh"])
        .arg(binary())
        .args(arguments)
        .current_dir(desk.at("here"))
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(text(&output.stdout).contains("Score"), "the summary is printed: {said}");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("File too large") && said.contains("\nhint: "), "{said}");
    assert_eq!(fs::read_to_string(&out).unwrap(), THEIRS);
    assert_eq!(names(dir.path()), ["out"]);
}

#[test]
fn assess_ends_with_what_to_do_next() {
    let desk = OutputFolder::new();
    let output = desk.run(&["assess", "--no-measure", "--root", "{host}"], &desk.at("here"));
    let out = text(&output.stdout);
    let end = out.split("Change first").nth(1).unwrap_or_default();
    let changes = end.lines().skip(1).take_while(|line| !line.is_empty()).count();
    assert!(changes > 3, "{out}");
    assert!(
        end.contains(
            "Report  lowlat-report.html\nData    lowlat-result.json\nNext    lowlat tune plan --root"
        ),
        "{out}"
    );
    assert!(out.lines().count() <= 20, "{out}");
}

/// A user without root sees on the terminal, not only on the page, that no interruption was traced.
#[test]
fn assess_without_root_says_that_causes_were_not_traced() {
    let desk = OutputFolder::new();
    let mut command = Command::new(binary());
    command.args(["assess", "--duration", "1s"]).current_dir(desk.at("here"));
    if rustix::process::geteuid().is_root() {
        // The binary where the other user may run it.
        let copy = desk.at("lowlat");
        copy_binary(&copy);
        for path in [desk.folder.path(), &desk.at("here")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }
        command = Command::new(copy);
        command.args(["assess", "--duration", "1s"]).current_dir(desk.at("here")).uid(STRANGER).gid(STRANGER);
    }
    let output = command.output().unwrap();
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document: serde_json::Value =
        serde_json::from_slice(&fs::read(desk.at("here/lowlat-result.json")).unwrap()).unwrap();
    if document["measurements"][0]["record"]["causes"]["source"] == "trace" {
        eprintln!(
            "skipped: assess_without_root_says_that_causes_were_not_traced: this user may trace the kernel"
        );
        return;
    }
    assert!(out.contains("Causes were not traced."), "{out}");
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    for arguments in [&["--help"][..], &["--version"], &["audit", "-h"], &["help", "tune"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(binary()).args(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains("cannot write to stdout: No space left"), "{arguments:?}");
    }
}
