//! Recordings: directories that are damaged, truncated or prepared, and runs that record.

use crate::common::binary;
use lowlat_ipc::stream::{Record, Stamp};
use lowlat_journal::{
    read::{Recording, verify},
    record::{Options, Recorder},
};
use lowlat_node::records::{Order, SCHEMA, kind};
use std::{
    collections::BTreeSet,
    fs,
    io::Read as _,
    os::unix::{fs::symlink, net::UnixListener},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Guards against a hang; not an expected duration.
const WATCHDOG_S: &str = "60";
const WATCHDOG: Duration = Duration::from_secs(120);
/// Exit code of `timeout` if it had to end the command.
const HUNG: i32 = 124;

/// Orders in several small files; returns the number of files.
fn make(folder: &Path) -> u64 {
    let options = Options { file_bytes_max: 16 << 10, block_bytes: 4 << 10, ..Options::default() };
    let mut recorder = Recorder::open(folder, options).unwrap();
    let orders = recorder.add_stream("orders.alpha", 2, "lowlat-trade", Some(0)).unwrap();
    for sequence in 0..500 {
        let stamp =
            Stamp { kind: kind::ORDER, schema: SCHEMA, generated: 1_000 + sequence, ..Stamp::default() };
        let record = Record { position: 128 * sequence, sequence, stamp };
        let order = Order { number: sequence, ..Order::default() };
        recorder.record(orders, 1, &record, &order.encode()).unwrap();
    }
    recorder.stop().unwrap().written.files
}

fn journal(arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", WATCHDOG_S]).arg(binary()).arg("journal").args(arguments);
    command.env("NO_COLOR", "1").output().expect("timeout of coreutils starts")
}

/// Every command that reads the recording `dir` and anything it is compared with. All records are requested.
fn commands<'a>(dir: &'a str, other: &'a str) -> [Vec<&'a str>; 7] {
    [
        vec!["verify", dir],
        vec!["ls", dir],
        vec!["export", dir],
        vec!["replay", dir, "--speed", "max"],
        vec!["tail", dir, "-n", "10"],
        vec!["tail", dir, "-n", "0", "--follow"],
        vec!["diff", dir, other],
    ]
}

fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// Replacement of a file: its description, and a function that creates it.
type Planted = (&'static str, fn(&Path));
/// Damage to a directory whose last file has this number, and the text that must be reported.
type Attack = (&'static str, fn(&Path, u64), &'static str);

fn data(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.journal"))
}

fn cut(path: &Path, bytes: impl Fn(usize) -> usize) {
    let contents = fs::read(path).unwrap();
    fs::write(path, &contents[..bytes(contents.len())]).unwrap();
}

/// Offset of the nth block from the end of a file.
fn block_from_end(path: &Path, nth: usize) -> usize {
    let contents = fs::read(path).unwrap();
    let begins = (0..contents.len()).step_by(64).filter(|at| contents[*at..].starts_with(b"LLBLOCK1"));
    begins.rev().nth(nth).unwrap()
}

fn remove(folder: &Path, number: u64) {
    fs::remove_file(data(folder, number)).unwrap();
}

const DAMAGES: &[Attack] = &[
    (
        "a killed recorder",
        |folder, last| {
            // Without the end block, and with the reserved space.
            let path = data(folder, last);
            let end = block_from_end(&path, 0);
            cut(&path, |_| end);
            fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
            fs::remove_file(path.with_extension("index")).unwrap();
        },
        "no end",
    ),
    (
        "the last file cut behind a block",
        |folder, last| {
            let at = block_from_end(&data(folder, last), 1);
            cut(&data(folder, last), |_| at);
        },
        "no end",
    ),
    ("the last file cut to its head", |folder, last| cut(&data(folder, last), |_| 4096), "no end"),
    ("the last file empty", |folder, last| cut(&data(folder, last), |_| 0), "no head of a data file"),
    (
        "the last file zeroed",
        |folder, last| {
            let bytes = fs::metadata(data(folder, last)).unwrap().len();
            fs::write(data(folder, last), vec![0; usize::try_from(bytes).unwrap()]).unwrap();
        },
        "no head of a data file",
    ),
    ("the last file missing", remove, "the file is missing"),
    (
        "the last file and its index missing",
        |folder, last| {
            remove(folder, last);
            fs::remove_file(data(folder, last).with_extension("index")).unwrap();
        },
        "the file is missing",
    ),
    ("the first file missing", |folder, _| remove(folder, 1), "00000001.journal"),
    (
        "the first files missing",
        |folder, _| [1, 2].into_iter().for_each(|number| remove(folder, number)),
        "00000002.journal",
    ),
    ("a middle file missing", |folder, _| remove(folder, 3), "00000003.journal"),
    (
        "a middle file cut behind a block",
        |folder, _| {
            let at = block_from_end(&data(folder, 3), 1);
            cut(&data(folder, 3), |_| at);
        },
        "no end",
    ),
    ("a middle file cut to its head", |folder, _| cut(&data(folder, 3), |_| 4096), "no end"),
    ("a middle file empty", |folder, _| cut(&data(folder, 3), |_| 0), "no head of a data file"),
    (
        "two files swapped",
        |folder, _| {
            fs::rename(data(folder, 2), folder.join("x")).unwrap();
            fs::rename(data(folder, 3), data(folder, 2)).unwrap();
            fs::rename(folder.join("x"), data(folder, 3)).unwrap();
        },
        "a file of another recording",
    ),
    (
        "a file twice",
        |folder, last| {
            fs::copy(data(folder, 2), data(folder, last + 1)).unwrap();
        },
        "a file of another recording",
    ),
];

/// Runs every command on a damaged copy. Each must exit with 1 and report the text; remaining records are still
/// printed.
fn attack((name, damage, told): &Attack) {
    let (home, whole) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let last = make(home.path());
    make(whole.path());
    assert!(last > 4, "{last}");
    damage(home.path(), last);
    let (dir, other) = (home.path().to_str().unwrap(), whole.path().to_str().unwrap());
    for words in commands(dir, other) {
        let output = journal(&words);
        let (code, said) = (output.status.code(), said(&output));
        assert_ne!(code, Some(HUNG), "{name}: {words:?} hangs");
        assert_eq!(code, Some(1), "{name}: {words:?}: {said}");
        // `ls` only counts, and `tail` reports only what is among its records.
        if !["ls", "tail"].contains(&words[0]) {
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(told), "{name}: {words:?}: {said}");
        }
    }
    let rows = String::from_utf8(journal(&["export", dir]).stdout).unwrap().lines().count();
    assert!((200..=501).contains(&rows), "{name}: remaining records are exported: {rows}");
}

#[test]
fn every_command_reports_what_is_missing_or_damaged() {
    let whole = TempDir::new().unwrap();
    make(whole.path());
    let dir = whole.path().to_str().unwrap();
    for words in commands(dir, dir) {
        let output = journal(&words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", said(&output));
    }
    DAMAGES.iter().for_each(attack);
}

#[test]
fn a_recording_of_one_useless_file_is_not_clean() {
    for bytes in [vec![], vec![0; 8192], vec![0x55; 8192]] {
        let folder = TempDir::new().unwrap();
        fs::write(data(folder.path(), 1), &bytes).unwrap();
        let dir = folder.path().to_str().unwrap();
        for words in [vec!["verify", dir], vec!["ls", dir], vec!["export", dir], vec!["replay", dir]] {
            let output = journal(&words);
            assert_eq!(output.status.code(), Some(1), "{} bytes, {words:?}: {}", bytes.len(), said(&output));
        }
    }
}

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo of coreutils starts");
    assert!(made.success());
}

#[test]
fn irregular_files_are_reported_and_nothing_hangs() {
    let kinds: [Planted; 4] = [
        ("a FIFO", fifo),
        ("a socket", |path| drop(UnixListener::bind(path).unwrap())),
        ("a symbolic link", |path| symlink("/dev/zero", path).unwrap()),
        ("a directory", |path| fs::create_dir(path).unwrap()),
    ];
    for (kind, plant) in kinds {
        let (home, whole) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let next = make(home.path()) + 1;
        make(whole.path());
        // As a data file, and as an index, which is read before its data file.
        plant(&data(home.path(), next));
        let index = data(home.path(), 1).with_extension("index");
        fs::remove_file(&index).unwrap();
        plant(&index);
        for words in commands(home.path().to_str().unwrap(), whole.path().to_str().unwrap()) {
            let output = journal(&words);
            let (code, said) = (output.status.code(), said(&output));
            assert_ne!(code, Some(HUNG), "{kind}: {words:?} hangs");
            assert_eq!(code, Some(1), "{kind}: {words:?}: {said}");
            if ["verify", "export", "replay", "diff"].contains(&words[0]) {
                let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
                let named = format!("{next:08}.journal");
                assert!(said.contains(&named) && said.contains(&format!("found {kind}")), "{said}");
            }
        }
    }
    // The directory itself.
    let home = TempDir::new().unwrap();
    fifo(&home.path().join("monday"));
    let output = journal(&["verify", home.path().join("monday").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

/// A run that records into a directory. Its run folders are in `runs`, and its umask lets other users read
/// every file that it does not protect.
fn recorded_run(runs: &Path, out: &Path, duration: &str) -> Child {
    let words = ["pipeline", "run", "--strategies", "2", "--rate", "200", "--force", "--json", "--duration"];
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(binary()).args(words).arg(duration);
    command.arg("--record").arg(out).env("XDG_RUNTIME_DIR", runs).env("NO_COLOR", "1");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A directory for runs that other users cannot enter.
fn runs() -> TempDir {
    TempDir::new().unwrap()
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < WATCHDOG, "no {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a run has recorded something.
fn wait_for_records(run: &mut Child, out: &Path) {
    wait_for("record", || {
        let has_ended = run.try_wait().unwrap().is_some();
        has_records(out)
            || has_ended && {
                let mut told = String::new();
                run.stderr.take().unwrap().read_to_string(&mut told).unwrap();
                panic!("a run without records: {told}")
            }
    });
}

fn has_records(out: &Path) -> bool {
    Recording::open(out).is_ok_and(|recording| verify(&recording, false, &mut |_, _| ()).records() > 0)
}

/// The recorder of the run that records into this directory.
fn recorder_of(out: &Path) -> Option<u32> {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_recorder = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        words.iter().any(|word| word == "record") && words.iter().any(|word| Path::new(word.as_ref()) == out)
    };
    processes.into_iter().find(is_recorder)
}

/// True if no process holds the lock of the recording any more. The kernel releases it after the command line of a
/// killed recorder is gone, and even after its first thread is a zombie, because another thread still holds the files.
fn is_released(out: &Path) -> bool {
    let folder = fs::File::open(out).unwrap();
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::NonBlockingLockShared).is_ok()
}

fn kill(pid: u32) {
    send(pid, rustix::process::Signal::KILL);
}

fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended already.
    rustix::process::kill_process(pid, signal).ok();
}

#[test]
fn a_killed_run_leaves_an_incomplete_recording() {
    let (runs, home) = (runs(), TempDir::new().unwrap());
    let out = home.path().join("monday");
    let mut run = recorded_run(runs.path(), &out, "300s");
    wait_for_records(&mut run, &out);
    let dir = out.to_str().unwrap();
    for words in [vec!["verify", dir], vec!["export", dir], vec!["tail", dir]] {
        let output = journal(&words);
        assert_eq!(output.status.code(), Some(0), "during the recording: {words:?}: {}", said(&output));
    }
    // A stopped run does not start a second recorder.
    send(run.id(), rustix::process::Signal::STOP);
    kill(recorder_of(&out).unwrap());
    kill(run.id());
    run.wait().unwrap();
    wait_for("release of the recording", || is_released(&out));
    for words in commands(dir, dir) {
        let output = journal(&words);
        let said = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(words[0] == "ls" || said.contains("has no end"), "{words:?}: {said}");
    }
}

#[test]
fn a_run_does_not_overwrite_a_recording() {
    let (runs, home) = (runs(), TempDir::new().unwrap());
    let first = recorded_run(runs.path(), home.path(), "1s").wait_with_output().unwrap();
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let output = recorded_run(runs.path(), home.path(), "1s").wait_with_output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("it holds a recording") && said.contains("hint: "), "{said}");
    assert_eq!(names(), before, "nothing was written");
}

/// Starts of a recorder within a minute, after which a run's master starts none any more.
const STARTS_MAX: usize = 4;

/// Kills every recorder of a run; `None` if the run ends before its master starts none any more.
fn with_recorders_killed(runs: &Path, out: &Path, duration: &str) -> Option<Output> {
    let mut run = recorded_run(runs, out, duration);
    wait_for_records(&mut run, out);
    let mut killed = BTreeSet::new();
    while killed.len() < STARTS_MAX && run.try_wait().unwrap().is_none() {
        let recorder = recorder_of(out);
        recorder.into_iter().for_each(kill);
        killed.extend(recorder);
        thread::sleep(Duration::from_millis(20));
    }
    let output = run.wait_with_output().unwrap();
    (killed.len() == STARTS_MAX).then_some(output)
}

#[test]
fn a_run_keeps_its_figures_when_its_recorder_dies() {
    let (runs, home) = (runs(), TempDir::new().unwrap());
    // A busy machine restarts slowly.
    let (out, output) = ["8s", "30s", "60s"]
        .into_iter()
        .find_map(|duration| {
            let out = home.path().join(duration);
            let output = with_recorders_killed(runs.path(), &out, duration)?;
            Some((out, output))
        })
        .expect("a run whose master stops restarting the recorder");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["failed"], serde_json::json!(["recorder"]), "{document}");
    assert!(document["stages"]["t2o"]["count"].as_u64().unwrap() > 0, "{document}");
    assert!(document["warnings"].to_string().contains("recorder ended"), "{document}");
    assert!(said(&output).contains("recorded in part"), "{}", said(&output));
    assert_eq!(journal(&["verify", out.to_str().unwrap()]).status.code(), Some(1));
}

#[test]
fn only_the_owner_can_read_a_recording() {
    use std::os::unix::fs::MetadataExt;
    let (runs, home) = (runs(), TempDir::new().unwrap());
    let out = home.path().join("monday");
    let output = recorded_run(runs.path(), &out, "1s").wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o077;
    assert_eq!(mode(&out), 0);
    for file in fs::read_dir(&out).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0, "{}", path.display());
    }
}
