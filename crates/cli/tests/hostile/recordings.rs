//! Recordings: folders that were damaged, cut off or prepared, and runs that record.

use super::support::binary;
use lowlat_ipc::stream::{Record, Stamp};
use lowlat_journal::{
    read::{Recording, verify},
    record::{Options, Recorder},
};
use lowlat_trade::records::{Order, SCHEMA, kind};
use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A guard against hanging for ever, no measure of anything.
const WATCHDOG_S: &str = "60";
const WATCHDOG: Duration = Duration::from_secs(120);
/// What `timeout` exits with when it had to end the command.
const HUNG: i32 = 124;

/// Orders in several small files; gives back how many files.
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

/// Every command that reads the recording `dir`, and what is compared with it. All records are asked for.
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

/// What is made in place of a file, and how it is called.
type Planted = (&'static str, fn(&Path));
/// A damage done to a folder whose last file has this number, and what must be named.
type Attack = (&'static str, fn(&Path, u64), &'static str);

fn data(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.journal"))
}

fn cut(path: &Path, bytes: impl Fn(usize) -> usize) {
    let contents = fs::read(path).unwrap();
    fs::write(path, &contents[..bytes(contents.len())]).unwrap();
}

/// The offset of the last block of a file but so many.
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
            // Without the end, and with the room that was reserved.
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

/// Runs every command on a damaged copy. Each must exit 1 and the names must be told; what is left is still given.
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
        // ls counts, and tail names what is among its records.
        if !["ls", "tail"].contains(&words[0]) {
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(told), "{name}: {words:?}: {said}");
        }
    }
    let rows = String::from_utf8(journal(&["export", dir]).stdout).unwrap().lines().count();
    assert!((200..=501).contains(&rows), "{name}: what is left is exported: {rows}");
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
fn one_file_that_is_useless_is_no_clean_recording() {
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
fn files_that_are_not_regular_are_named_and_nothing_hangs() {
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
        // A data file, and an index that would be read before its data file.
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
    // The folder itself.
    let home = TempDir::new().unwrap();
    fifo(&home.path().join("monday"));
    let output = journal(&["verify", home.path().join("monday").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

/// A run that records into a folder; its run folders are in `runs`, and its files may be read by others as far as it does
/// not forbid it.
fn recorded_run(runs: &Path, out: &Path, duration: &str) -> Child {
    let words = ["pipeline", "run", "--strategies", "2", "--rate", "200", "--force", "--json", "--duration"];
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(binary()).args(words).arg(duration);
    command.arg("--record").arg(out).env("XDG_RUNTIME_DIR", runs).env("NO_COLOR", "1");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A folder for runs, which other users may not enter.
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

fn has_records(out: &Path) -> bool {
    Recording::open(out).is_ok_and(|recording| verify(&recording, false, &mut |_, _| ()).records() > 0)
}

/// The recorder of a run into this folder.
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

fn kill(pid: u32) {
    send(pid, rustix::process::Signal::KILL);
}

fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended by now.
    rustix::process::kill_process(pid, signal).ok();
}

#[test]
fn a_run_that_is_killed_leaves_no_complete_recording() {
    let (runs, home) = (runs(), TempDir::new().unwrap());
    let out = home.path().join("monday");
    let mut run = recorded_run(runs.path(), &out, "300s");
    wait_for("record", || has_records(&out));
    let dir = out.to_str().unwrap();
    for words in [vec!["verify", dir], vec!["export", dir], vec!["tail", dir]] {
        let output = journal(&words);
        assert_eq!(output.status.code(), Some(0), "while it is made: {words:?}: {}", said(&output));
    }
    // A stopped run starts no second recorder.
    send(run.id(), rustix::process::Signal::STOP);
    kill(recorder_of(&out).unwrap());
    kill(run.id());
    run.wait().unwrap();
    wait_for("end of the recorder", || recorder_of(&out).is_none());
    for words in commands(dir, dir) {
        let output = journal(&words);
        let said = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(words[0] == "ls" || said.contains("has no end"), "{words:?}: {said}");
    }
}

#[test]
fn a_run_does_not_record_into_a_recording() {
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
    assert_eq!(names(), before, "nothing was begun");
}

#[test]
fn a_recorder_that_is_lost_costs_the_run_no_figure() {
    let (runs, home) = (runs(), TempDir::new().unwrap());
    let out = home.path().join("monday");
    let run = recorded_run(runs.path(), &out, "8s");
    wait_for("record", || has_records(&out));
    // Until its master starts no other one.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        recorder_of(&out).into_iter().for_each(kill);
        thread::sleep(Duration::from_millis(20));
    }
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["failed"], serde_json::json!(["recorder"]), "{document}");
    assert!(document["stages"]["t2o"]["count"].as_u64().unwrap() > 0, "{document}");
    assert!(document["warnings"].to_string().contains("recorder ended"), "{document}");
    assert!(said(&output).contains("recorded in part"), "{}", said(&output));
    assert_eq!(journal(&["verify", out.to_str().unwrap()]).status.code(), Some(1));
}

#[test]
fn a_recording_is_read_by_its_owner_alone() {
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
